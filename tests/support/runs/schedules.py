"""Random schedules for a coordinator under a virtual clock: members that die and return, a network that loses, repeats, delays and forges."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole
from local_dp.errors import QuorumError, RefusedError
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.server import flow_control
from local_dp.server.coordinator import Coordinator
from local_dp.server.phases import Send
from local_dp.server.quorum import Terms
from local_dp.tallies import Tally
from local_dp.wire import EVERYBODY, AnyMessage, Gone, Hello, Refusal, Request, topic
from tests.support.inputs.builders import RUN, SEED, survey_query, yes_records
from tests.support.runs.plain_account import Account
from tests.support.runs.puppets import Puppet, reply_of

ROUNDS = 3
ASKS = 5
BUDGET = float(ROUNDS * ASKS)
MOST_CLIENTS = 60
RECORDS = yes_records(MOST_CLIENTS)
QUERY = survey_query(1)
NARROW = 3  # a window that even few members fill
KIND_DEADLINE = 200.0  # 200 times asked again: a message that is lost half the time on both ways is lost as often with probability below 1e-24


@dataclass
class World:
    """One schedule, drawn from a seed. After every event the coordinator is compared with the naive account; an AssertionError says what it did wrong."""

    seed: int
    now: float = 0.0
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    happened: int = 0
    looked: float = -1.0  # when the coordinator last looked what is due
    idle: int = 0  # how often it has looked since, at the same instant
    rejoined: bool = False

    def __post_init__(self) -> None:
        self.chance = chance = random.Random(self.seed)
        self.kind = chance.random() < 0.25  # nobody dies, refuses or is mute, and there is time: everybody must be counted
        self.real = chance.random() < 0.05
        self.loss, self.repeat = chance.choice((0.0, 0.1, 0.5)), chance.choice((0.0, 0.3))
        self.delay = chance.choice((0.01, 0.3, 0.3 if self.kind else 3.0))
        self.clients = chance.randint(1, MOST_CLIENTS)
        terms = Terms(KIND_DEADLINE if self.kind else chance.choice((0.5, 4.0, 15.0)), chance.choice((0.01, 0.5, 0.9, 1.0)))
        self.coordinator = Coordinator(RUN, self.clients, SEED, BUDGET, terms)
        self.account = Account(RUN, self.clients)
        self.online = True
        self.puppets = [self._puppet(index, start, stop) for index, (start, stop) in enumerate(self._shares())]

    def _shares(self) -> list[tuple[int, int]]:
        edges = sorted({0, self.clients, *(self.chance.randint(0, self.clients) for _ in range(self.chance.randint(0, 11)))})
        return [span for span in pairwise(edges) if self.kind or self.chance.random() < 0.95]

    def _puppet(self, index: int, start: int, stop: int) -> Puppet:
        habit = "answers" if self.kind else self.chance.choice(("answers",) * 6 + ("refuses", "mute", "fickle"))
        name, role = f"m{index}", None
        if self.real:
            role = ClientRole(name, start, RECORDS.take(slice(start, stop)), KeyedNoise(SEED), MemoryStore(BUDGET))
            habit = "answers"
        return Puppet(name, f"g{index // 2 if self.seed // 2 % 2 else index // 5}", start, stop, habit, role)

    # the network

    def at(self, seconds: float, event: Callable[[], None]) -> None:
        """Something that will happen in `seconds`."""
        self.happened += 1
        heappush(self.events, (self.now + seconds, self.happened, event))

    def carry(self, deliver: Callable[[], None]) -> None:
        """A message on its way: lost, repeated, late."""
        copies = 0 if self.chance.random() < self.loss else 2 if self.chance.random() < self.repeat else 1
        for _ in range(copies):
            self.at(self.chance.random() * self.delay, deliver)

    def publish(self, send: Send) -> None:
        """The server's message, to each member of the group."""
        if isinstance(send.message, Request):
            self.account.published(send.message, send.group, self.now)
        for puppet in self.puppets if self.online else []:
            if send.group in (puppet.group, EVERYBODY):
                self.carry(lambda puppet=puppet: self._told(puppet, send.message))  # type: ignore[misc]

    def _told(self, puppet: Puppet, message: Any) -> None:
        for leaf, answer in puppet.handle(message) if puppet.alive else []:
            self.say(puppet, leaf, answer)

    def say(self, puppet: Puppet, leaf: str, message: AnyMessage) -> None:
        """A member's message, to the server."""
        self.carry(lambda: self._heard(topic(RUN, leaf, puppet.group, puppet.name), message))

    def _heard(self, where: str, message: AnyMessage) -> None:
        if self.online:
            self.coordinator.receive(where, message, self.now)
            self.account.hear(where, message, self.now)
            assert self.coordinator.rejected == self.account.rejected, "other messages are rejected than those that do not fit"
            assert self.coordinator.members.present == sum(stop - start for _, start, stop in self.account.known.values())

    # what happens

    def plan(self) -> None:
        """Hellos, and whatever else befalls this run."""
        for puppet in self.puppets:
            self.at(self.chance.random() * 2, lambda puppet=puppet: self.say(puppet, "hello", puppet.hello()))  # type: ignore[misc]
            if not self.kind and self.chance.random() < 0.3:
                self.at(self.chance.random() * 12, lambda puppet=puppet: self._die(puppet))  # type: ignore[misc]
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            self.at(self.chance.random() * 12, self._cut)
        for _ in range(0 if self.kind or self.real else self.chance.choice((0, 0, 3))):
            self.at(self.chance.random() * 12, self._forge)

    def _die(self, puppet: Puppet) -> None:
        puppet.alive = False
        self.say(puppet, "gone", Gone(run=RUN, member=puppet.name))
        if self.chance.random() < 0.5:
            self.at(self.chance.random() * 5, lambda: self._return(puppet))

    def _return(self, puppet: Puppet) -> None:
        puppet.alive = True
        self.say(puppet, "hello", puppet.hello())

    def _cut(self) -> None:
        self.online = False
        self.at(self.chance.random() * 2, self._rejoin)

    def _rejoin(self) -> None:
        self.online = self.rejoined = True
        self.coordinator.connected()
        assert self.coordinator.wake(self.now) <= self.now, "a reconnection is not noticed"

    def _forge(self) -> None:
        puppet, stop = self.chance.choice([*self.puppets, Puppet("stranger", "g0", 0, 1, "mute")]), self.chance.randint(1, self.clients + 1)
        start = self.chance.randint(0, stop - 1)
        round = self.chance.choice((0, 1, len(self.account.rounds), 99)) or 1
        forged: tuple[tuple[str, AnyMessage], ...] = (
            ("rep", reply_of(round, puppet.name, start, bytes(stop - start))),
            ("rep", reply_of(round, "m0", start, bytes(stop - start))),
            ("rep", Refusal(run=RUN, round=round, member=puppet.name, start=start, stop=stop, code="no", text="forged")),
            ("hello", Hello(run=RUN, member=puppet.name, start=start, stop=stop, private=False)),
            ("hello", Hello(run="other", member=puppet.name, start=start, stop=stop, private=False)),
        )
        self.say(puppet, *self.chance.choice(forged))

    # the clock, and the rounds

    def settle(self, check: Callable[[], None]) -> None:
        """What the bus and the clock do for the coordinator: publish what is due, then sleep until it wakes or an event stirs it."""
        while not self.coordinator.is_settled(self.now):
            sends = self.coordinator.due(self.now)
            self._check_rejoined(sends)
            for send in sends:
                self.publish(send)
            check()
            self.idle = 0 if self.now > self.looked else self.idle + 1
            self.looked = self.now
            assert self.idle < 5, "the coordinator spins"
            self._sleep(self.coordinator.wake(self.now))

    def _sleep(self, until: float) -> None:
        while self.events and self.events[0][0] <= until:
            moment, _, event = heappop(self.events)
            self.now = max(self.now, moment)
            event()
            if self.coordinator.wake(self.now) < until:
                return
        assert until < float("inf"), "the coordinator sleeps for ever"
        self._check_sleep(until)
        self.now = max(self.now, until)

    def play(self) -> None:
        """The whole run; every other seed has a narrow window."""
        with pytest.MonkeyPatch.context() as patch:
            if self.seed % 2:
                patch.setattr(flow_control, "WINDOW", NARROW)
            self._play()

    def _play(self) -> None:
        self.plan()
        self.coordinator.gather(3.0, self.now)
        end = self.now + 3.0
        self.settle(lambda: None)
        assert self.now <= end or not self.account.known
        try:
            self.coordinator.gathered()
        except QuorumError:
            assert not self.account.known, "nobody is said to have come, and somebody has"
            return
        assert self.account.known, "nobody has come, and nobody says so"
        for _ in range(self.chance.randint(1, ROUNDS)):
            self._round()
        while self.events:
            self._sleep(self.events[0][0])
        assert self.coordinator.counts == self.account.counts, "a closed round has changed by more than late and repeated reports"

    def _queries(self) -> tuple[LocalQuery, ...]:
        edges = sorted({self.chance.randint(0, self.clients) for _ in range(self.chance.randint(2, ASKS))} | {0})
        spans = [span for span in pairwise(edges) if self.chance.random() < 0.8] or [(0, self.clients)]
        if self.chance.random() < 0.3:  # somebody is asked several things
            ends = [sorted((self.chance.randrange(self.clients), self.chance.randrange(self.clients))) for _ in range(ASKS)]
            spans = [(first, last + 1) for first, last in ends]
        return tuple(survey_query(stop, start, QUERY.randomizer) for start, stop in spans)

    def _round(self) -> None:
        queries = self._queries()
        self.account.begin([query.cohort for query in queries], self.now + self.coordinator.terms.deadline)
        self.coordinator.open(queries, self.now)
        self.settle(self._check_open)
        tale = self.account.rounds[-1]
        assert self.now <= tale.end + 1e-9, "a round outlives its deadline"
        assert self.account.over_from(flow_control.GRACE) <= self.now, "a round ends while somebody is waited for"
        self.account.close()
        if self.kind:
            assert not self.account.owing(), "what was lost is not asked for again"
        if self.real:
            assert tale.counts.conflicting == 0, "a client role has answered one question twice"
        sizes = [len(query.cohort) for query in queries]
        short = [at for at, size in enumerate(sizes) if tale.answered(at) < self.coordinator.terms.quorum * size]
        ended, raised = len(self.coordinator.rounds), None
        tallies: tuple[Tally, ...] = ()
        try:
            tallies = self.coordinator.close(self.now)
        except (QuorumError, RefusedError) as error:
            raised = error
        assert (raised is not None) == bool(short), "a round with its quorum is thrown away, or a cohort under its quorum is used"
        assert isinstance(raised, RefusedError) == any(tale.refusals(at) for at in short)
        assert len(self.coordinator.rounds) == len(self.coordinator.seconds) == ended + (raised is None)
        assert raised is not None or self.coordinator.rounds[-1].n == len(tale.reports)
        for at, tally in enumerate(tallies):
            reports = [report for (cohort, _), report in tale.reports.items() if cohort == at]
            assert tally.counts.tolist() == [np.bincount(reports, minlength=2).tolist()], "the tally is not that of the reports that came"
        counts = self.coordinator.counts
        assert counts.answered + counts.refused + counts.missing == counts.asked, "the counts do not add up to asked"
        assert counts == self.account.counts, "the counts are not those of the messages that came"

    def _check_rejoined(self, sends: list[Send]) -> None:
        """After a reconnection the roll is called and whoever was asked is asked again, at once."""
        if self.rejoined:
            owing = [name for name in self.account.owing() if name in self.account.rounds[-1].asked_at] if self.account.rounds else []
            assert {EVERYBODY, *(self.account.known[name][0] for name in owing)} <= {send.group for send in sends}, "what a reconnection lost is not sent again"
        self.rejoined = False

    def _check_sleep(self, until: float) -> None:
        """It does not sleep beyond the moment when the round is over, or when somebody who waits can be asked."""
        tale = self.account.rounds[-1] if self.account.rounds else None
        if tale is None or tale.closed:
            return
        owing = self.account.owing()
        asked = [tale.asked_at[name] for name in owing if name in tale.asked_at]
        latest = self.account.over_from(flow_control.GRACE) if len(asked) == len(owing) else max(asked, default=-math.inf) + flow_control.STALE
        assert until <= max(self.now, latest) + 1e-9, "it sleeps too long"

    def _check_open(self) -> None:
        """What holds whenever the coordinator has published what is due."""
        owing, tale = self.account.owing(), self.account.rounds[-1]
        fresh = [name for name in owing if tale.asked_at.get(name, -np.inf) + flow_control.STALE > self.now]
        groups = {self.account.known[name][0] for name in fresh}
        assert len(fresh) <= flow_control.WINDOW or len(groups) == 1, "more replies are outstanding than the window holds"
        assert fresh or all(name in tale.asked_at for name in owing), "somebody is not asked, and nobody holds it up"
        if all(name in tale.asked_at for name in owing):
            assert self.coordinator.is_settled(self.now) == (self.account.over_from(flow_control.GRACE) <= self.now), "it waits for nobody, or for too few"
