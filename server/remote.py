"""The LR oracle over a message bus: real clients answer. Whatever the bus loses is asked for again; a round ends when all have answered, or at its deadline."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from local_dp.bus.base import Bus, Connected, Delivery
from local_dp.errors import InputError, QuorumError, RefusedError, WireError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.base import LocalOracle
from local_dp.tallies import Tally
from local_dp.wire import EVERYBODY, End, Gone, Hello, Refusal, Reply, Roll, decode, encode, topic
from server.round import Round, Turnout, joined

WINDOW = 750  # members whose replies may be outstanding: what every broker survives in its default configuration
ASK_AGAIN = 1.0  # seconds without any reply
STALE = 5.0  # seconds after which a group that owes replies no longer holds up the next one
GRACE = 2.0  # seconds that a member must have been gone before the round stops waiting for it
BATCH = 4000  # missing spans named in one request


@dataclass(frozen=True)
class RoundProgress:
    """How far a round is."""

    round: int
    answered: int
    asked: int
    epsilon: float
    seconds_left: float


@dataclass
class Member:
    """A client process or a host, and the clients it holds."""

    group: str
    start: int
    stop: int
    gone_since: float | None = None


def filters(run: str) -> list[str]:
    """What the server subscribes to."""
    return [topic(run, leaf, "+", "+") for leaf in ("rep", "hello", "gone")]


def check_terms(deadline: float, quorum: float) -> None:
    """Raises InputError unless a round can end on these terms."""
    if not 0 < quorum <= 1:
        raise InputError(f"the quorum is {quorum}; give a fraction above 0 and at most 1")
    if not 0 < deadline <= 86_400:
        raise InputError(f"the deadline is {deadline} seconds; give a number above 0 and at most 86400")


class RemoteOracle(LocalOracle):
    """Asks the clients 0..expected-1 that have said hello on the bus.

    `serve` must run beside `ready` and `answer`: it is the only reader of the bus. Rejected messages are counted, never raised.
    """

    def __init__(
        self,
        bus: Bus,
        run: str,
        expected: int,
        coin_seed: int,
        budget: float,
        deadline: float,
        quorum: float,
        on_progress: Callable[[RoundProgress], None] = lambda progress: None,
    ) -> None:
        super().__init__(budget, run)
        check_terms(deadline, quorum)
        self.bus = bus
        self.expected = expected
        self.coin_seed = coin_seed
        self.deadline = deadline
        self.quorum = quorum
        self.on_progress = on_progress
        self.members: dict[str, Member] = {}
        self.present = 0
        self.rejected = 0
        self.seconds: list[float] = []
        self._history: dict[int, Round] = {}
        self._current: Round | None = None
        self._pending: dict[str, set[str]] = {}
        self._sent: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._heard = 0.0

    @property
    def counts(self) -> Turnout:
        """The counts of all rounds together."""
        return sum((round.counts for round in self._history.values()), Turnout())

    async def serve(self, patience: float) -> None:
        """Reads the bus until cancelled. Raises BusError if the broker cannot be joined within `patience` seconds."""
        async with aclosing(self.bus.messages(patience)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    await self._call_roll()
                    await self._ask_again()
                else:
                    self._deliver(event)
                self._changed.set()

    def _deliver(self, delivery: Delivery) -> None:
        parts = delivery.topic.split("/")
        try:
            message = decode(delivery.payload)
            if message.run != self.run or len(parts) != 6 or getattr(message, "member", None) != parts[5]:
                raise WireError("a message under another name than its topic's")
            group, name = parts[4], parts[5]
            if isinstance(message, Hello):
                self._hello(group, name, message)
            elif isinstance(message, Gone) and name in self.members:
                self.members[name].gone_since = asyncio.get_running_loop().time()
            elif isinstance(message, Reply | Refusal):
                self._report(name, message)
        except WireError:
            self.rejected += 1

    def _hello(self, group: str, name: str, hello: Hello) -> None:
        known = self.members.get(name)
        if known is not None and (known.group, known.start, known.stop) == (group, hello.start, hello.stop):
            known.gone_since = None
            return
        clash = any(member.start < hello.stop and hello.start < member.stop for member in self.members.values())
        if known is not None or clash or not hello.start < hello.stop <= self.expected:
            raise WireError(f"member {name} claims the clients {hello.start}..{hello.stop}, which are not free")
        self.members[name] = Member(group, hello.start, hello.stop)
        self.present += hello.stop - hello.start
        self._heard = asyncio.get_running_loop().time()
        if self._current is not None and self._current.is_awaited(hello.start, hello.stop):  # it joined late, and is asked with its group
            self._pending.setdefault(group, set()).add(name)
            self._sent.setdefault(group, self._heard)

    def _report(self, name: str, message: Reply | Refusal) -> None:
        round, member = self._history.get(message.round), self.members.get(name)
        if round is None or member is None:
            raise WireError("a report for a round that was not asked, or of a member that did not say hello")
        stop = message.stop if isinstance(message, Refusal) else message.start + len(message.reports) // message.width
        if not member.start <= message.start <= stop <= member.stop:
            raise WireError(f"member {name} speaks for the clients {message.start}..{stop}, which are not its own")
        if isinstance(message, Refusal):
            round.refuse(message)
        else:
            round.accept(message)
        member.gone_since = None
        self._heard = asyncio.get_running_loop().time()
        if round is self._current and not round.is_awaited(member.start, member.stop):
            self._pending.get(member.group, set()).discard(name)

    async def ready(self, patience: float) -> None:
        """Waits until every expected client is present, or `patience` seconds: who is missing then is counted as missing in each round."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while self.present < self.expected and loop.time() < end:
            await self._wait(min(ASK_AGAIN, end - loop.time()), lambda: self.present >= self.expected)
            if loop.time() - self._heard >= ASK_AGAIN:
                await self._call_roll()
        if self.present == 0:
            raise QuorumError(f"none of the {self.expected} clients joined run {self.run!r} in {patience:g} seconds; start them, or check their broker")

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """One round. Raises RefusedError or QuorumError if it closes with fewer replies than its quorum."""
        highest = max(query.cohort.stop for query in queries)
        if highest > self.expected:
            raise InputError(f"the round asks client {highest - 1}, but there are {self.expected} clients")
        number = self.begin(queries)
        round = Round(self.run, number, queries, self.coin_seed)
        self._history[number] = self._current = round
        loop = asyncio.get_running_loop()
        started = loop.time()
        await self._collect(round, started + self.deadline)
        self._current = None
        round.close()
        self.seconds.append(loop.time() - started)
        self._show(round, started + self.deadline)
        self._judge(round)
        self.finish(queries, round.counts.answered, round.digest())
        return round.tallies()

    async def _collect(self, round: Round, end: float) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._groups(round)
        self._pending, self._sent = {}, {}
        asked_again = loop.time()
        while not self._is_over(round, waiting) and (now := loop.time()) < end:
            while waiting and self._has_room(waiting[0][1]):
                group, names = waiting.pop(0)
                self._pending.setdefault(group, set()).update(names)
                self._sent[group] = now
                await self.bus.publish(topic(self.run, "req", group), encode(round.request()))
            if now - max(asked_again, self._heard) >= ASK_AGAIN:  # while replies flow, what is missing is on its way
                await self._ask_again()
                if self.present < self.expected:
                    await self._call_roll()
                asked_again = now
            self._show(round, end)
            await self._wait(min(ASK_AGAIN, end - now), lambda: self._is_over(round, waiting) or (bool(waiting) and self._has_room(waiting[0][1])))

    def _show(self, round: Round, end: float) -> None:
        epsilon = max(part.query.randomizer.epsilon for part in round.parts)
        left = max(0.0, end - asyncio.get_running_loop().time())
        self.on_progress(RoundProgress(round.number, round.counts.answered, round.counts.asked, epsilon, left))

    def _groups(self, round: Round) -> list[tuple[str, set[str]]]:
        groups: dict[str, set[str]] = {}
        for name, member in self.members.items():
            if round.is_awaited(member.start, member.stop):
                groups.setdefault(member.group, set()).add(name)
        return sorted(groups.items())

    def _has_room(self, names: set[str]) -> bool:
        fresh = asyncio.get_running_loop().time() - STALE
        outstanding = sum(len(owing) for group, owing in self._pending.items() if self._sent[group] > fresh)
        return outstanding == 0 or outstanding + len(names) <= WINDOW

    def _is_over(self, round: Round, waiting: list[tuple[str, set[str]]]) -> bool:
        """Everybody answered or refused, or whoever did not has been gone for a while."""
        if round.outstanding == 0:
            return True
        if waiting:
            return False
        now = asyncio.get_running_loop().time()
        absent = [self.members[name].gone_since for names in self._pending.values() for name in names]
        return all(since is not None and now - since >= GRACE for since in absent)

    async def _call_roll(self) -> None:
        await self.bus.publish(topic(self.run, "req", EVERYBODY), encode(Roll(run=self.run)))

    async def _ask_again(self) -> None:
        """Sends each group that was asked the request once more, for the clients it still owes."""
        round = self._current
        if round is None:
            return
        for group, names in list(self._pending.items()):
            spans = [span for name in sorted(names) for span in round.awaited(self.members[name].start, self.members[name].stop)]
            spans = joined(spans)
            for at in range(0, len(spans), BATCH):
                await self.bus.publish(topic(self.run, "req", group), encode(round.request(tuple(spans[at : at + BATCH]))))

    async def _wait(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Until `enough()`, at most `seconds`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not enough() and (left := end - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return

    def _judge(self, round: Round) -> None:
        counts = round.counts
        if counts.answered >= max(1, self.quorum * counts.asked):
            return
        if round.refusals:
            code, text = next(iter(round.refusals.items()))
            raise RefusedError(code, f"{counts.refused} of {counts.asked} clients refused round {round.number}: {text}")
        raise QuorumError(
            f"round {round.number} closed with {counts.answered} of {counts.asked} replies, below the quorum of {self.quorum:g}; "
            "give it a longer --deadline or a lower --quorum"
        )

    async def end(self) -> None:
        """Tells every client that the run is over."""
        await self.bus.publish(topic(self.run, "req", EVERYBODY), encode(End(run=self.run)))
