"""What a run waits for: the members, a round's reports, the members' accounts. Sans I/O: who is
asked when and again, when the wait is over."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from local_dp.ledger import Steps
from local_dp.oracles.local.oracles import epsilon_of
from local_dp.records import chunks
from local_dp.server.losses import Unanswered
from local_dp.server.members import Member, Members
from local_dp.server.pace import Pace
from local_dp.server.progress import Attendance, Interim, Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.server.rolls import Rolls
from local_dp.server.round import Round, joined
from local_dp.wire import (
    EVERYBODY,
    MAX_RECEIPTS,
    Absent,
    End,
    Receipt,
    Refusal,
    Reply,
    Request,
    Roll,
)

STALE = 5.0  # seconds after which members that owe replies no longer hold up the next ones


@dataclass(eq=False)
class Wave:
    """Members of one group, by name; when they were asked, and which of them still owe replies."""

    group: str
    owing: dict[str, Member]
    asked_at: float = 0.0
    whole: bool = False  # the group's first: the request goes to all of it
    times: int = 0  # that it was asked
    has_answered: bool = False  # by one of them at least


class Waves:
    """The members of a round: who waits to be asked, and who was asked and owes.

    No more members than the pace's window, asked in the last STALE seconds, owe at any time, unless
    a single group is larger: it is then asked alone.
    """

    def __init__(self, members: Iterable[Member], terms: Terms, pace: Pace, began: float) -> None:
        self._terms = terms
        self._pace = pace
        self._began = began
        self._waiting: dict[str, Wave] = {}
        self.current: list[Wave] = []
        self._wave_of: dict[str, Wave] = {}
        self.everyone: set[str] = set()  # who was asked
        self._here: set[str] = set()  # who was asked, owes and is not gone
        self._groups: set[str] = set()  # those that were asked as a whole
        # a heap of who was asked, owed and went, the last one first
        self._went: list[tuple[float, str]] = []
        for member in members:
            self.add(member)
        self._waiting = dict(sorted(self._waiting.items()))

    def add(self, member: Member) -> None:
        """One more member that owes replies, to be asked with those of its group that still
        wait."""
        self._waiting.setdefault(member.group, Wave(member.group, {})).owing[member.name] = member

    def has_room(self, now: float) -> bool:
        """True if somebody waits and may be asked."""
        if not self._waiting:
            return False
        outstanding = sum(len(wave.owing) for wave in self.current if wave.asked_at + STALE > now)
        return (
            outstanding == 0
            or outstanding + len(next(iter(self._waiting.values())).owing) <= self._pace.window
        )

    def ask(self, now: float) -> Wave | None:
        """The wave to be asked now, if there is room for one."""
        if not self.has_room(now):
            return None
        wave = self._waiting.pop(next(iter(self._waiting)))
        wave.asked_at, wave.whole, wave.times = now, wave.group not in self._groups, 1
        self.everyone |= wave.owing.keys()
        self.current.append(wave)
        self._wave_of |= dict.fromkeys(wave.owing, wave)
        self._here |= {name for name, member in wave.owing.items() if member.gone_since is None}
        self._groups.add(wave.group)
        for member in wave.owing.values():
            self._note(member)
        return wave

    def heard(self, member: Member, now: float) -> None:
        """This member has answered for some of its clients: if it is the first of its wave, that
        took a round trip."""
        wave = self._wave_of.get(member.name)
        if wave is not None and not wave.has_answered:
            wave.has_answered = True
            self._pace.heard(now - wave.asked_at)

    def settled(self, member: Member) -> None:
        """This member has answered or refused for all its clients."""
        self._here.discard(member.name)
        # it may have answered what its group was asked before it joined
        wave = self._wave_of.pop(member.name, None) or self._waiting.get(member.group)
        if wave is not None:
            wave.owing.pop(member.name, None)

    def gone(self, member: Member) -> None:
        self._here.discard(member.name)
        self._note(member)

    def _note(self, member: Member) -> None:
        if member.name in self._wave_of and member.gone_since is not None:
            heappush(self._went, (-member.gone_since, member.name))

    def back(self, member: Member) -> None:
        if member.name in self._wave_of:
            self._here.add(member.name)

    def unanswered(self, others: Iterable[str]) -> Unanswered:
        """Who was asked and owes replies; `others` have answered too."""
        open_ones = [wave for wave in self.current if wave.owing]
        owing = tuple(name for wave in open_ones for name in wave.owing)
        return Unanswered(
            len(self.everyone.union(others)),
            min((wave.times for wave in open_ones), default=0),
            owing,
        )

    def lost(self) -> int:
        """How many reports are owed by members that were asked and are gone."""
        if len(self._wave_of) == len(self._here):
            return 0
        return sum(
            self._wave_of[name].owing[name].owes for name in self._wave_of.keys() - self._here
        )

    def idle_from(self) -> float:
        """When the wait ends: all were asked, and each member that owes has been gone for the
        grace. Infinite while one is present."""
        if self._waiting or self._here:
            return math.inf
        while self._went:
            since, name = self._went[0]
            wave = self._wave_of.get(name)
            if wave is not None and wave.owing[name].gone_since == -since:
                return self._terms.idle_from(-since, self._began)
            heappop(self._went)  # an outdated entry
        return -math.inf

    def wake(self, now: float) -> float:
        """When there may be room, or the wait may end, without a message."""
        if self.has_room(now):
            return now
        times = (
            [stale for wave in self.current if (stale := wave.asked_at + STALE) > now]
            if self._waiting
            else []
        )
        return min([*times, self.idle_from()])


SAID_AGAIN = 0.4  # seconds until the end is sent once more to the members without an account
BATCH = 4000  # missing spans named in one request
Answer: TypeAlias = Reply | Refusal | Absent


@dataclass(frozen=True)
class Send:
    """A message for a group of members, to be published."""

    group: str
    message: Request | Roll | End | Receipt


class Phase:
    """Waits for nothing. `now` is in seconds."""

    def joined(self, member: Member, now: float) -> None:
        """A new member has said hello."""

    def returned(self, member: Member) -> None:
        """A known member has said hello again."""

    def back(self, member: Member) -> None:
        """A member has sent a message again."""

    def gone(self, member: Member) -> None:
        """A member's connection has broken, or it is silenced."""

    def due(self, run: str, has_rejoined: bool, now: float) -> list[Send]:
        """The messages to publish now; if the bus `has_rejoined`, those that may be lost too."""
        return [Send(EVERYBODY, Roll(run=run))] if has_rejoined else []

    def is_settled(self, now: float) -> bool:
        """True if the wait is over."""
        return True

    def wake(self, now: float) -> float:
        """The time of the next look, if nothing happens before, while the wait goes on."""
        return math.inf

    def progress(self, now: float) -> Progress | None:
        """The state to show, if there is any."""
        return None


def receipts(round: Round, members: Iterable[Member]) -> list[Send]:
    """The accepted reports of these members, in messages to each group."""
    groups: dict[str, dict[str, tuple[int, int, int]]] = {}
    for member in members:
        if member.name in round.sums:
            line = member.start, member.stop, round.sums[member.name].checksum
            groups.setdefault(member.group, {})[member.name] = line
    sends = []
    for group, by_name in groups.items():
        lines = tuple(by_name.values())
        for low, high in chunks(0, len(lines), MAX_RECEIPTS):
            message = Receipt(run=round.run, round=round.number, accepted=lines[low:high])
            sends.append(Send(group, message))
    return sends


def called(rolls: Rolls, members: Members, now: float) -> list[Send]:
    """The roll, if it is due for the members that are missing."""
    if rolls.wake() > now:
        return []  # who is missing takes a look at all members
    return [Send(EVERYBODY, roll) for roll in rolls.due(members.missing(), now)]


class Gathering(Phase):
    """Waits until every client is present, for `patience` seconds at most. Absent clients then
    count as missing in each round."""

    def __init__(self, members: Members, rolls: Rolls, patience: float, now: float) -> None:
        self.members = members
        self.patience = patience
        self._end = now + patience
        self._rolls = rolls
        rolls.since = now

    def joined(self, member: Member, now: float) -> None:
        self._rolls.since = now

    def due(self, run: str, has_rejoined: bool, now: float) -> list[Send]:
        return super().due(run, has_rejoined, now) + called(self._rolls, self.members, now)

    def is_settled(self, now: float) -> bool:
        return self.members.present == self.members.clients or self._end <= now

    def wake(self, now: float) -> float:
        return min(self._rolls.wake(), self._end)

    def progress(self, now: float) -> Attendance:
        return Attendance(self.members.present, self.members.clients, tuple(self.members.missing()))


def parting(members: int) -> float:
    """Seconds to wait for the accounts of so many when the run is over, while somebody's is
    missing."""
    return 1 + members / 600


class Parting(Phase):
    """Waits for the accounts of the members that are present when the run is over, for `patience`
    seconds at most."""

    def __init__(self, members: Members, patience: float, now: float) -> None:
        self.owing = {name for name, member in members.by_name.items() if member.gone_since is None}
        self._end = now + patience
        self._last = -math.inf  # when the end was last sent

    def gone(self, member: Member) -> None:
        self.owing.discard(member.name)

    def due(self, run: str, has_rejoined: bool, now: float) -> list[Send]:
        if not has_rejoined and self._last + SAID_AGAIN > now:
            return []
        self._last = now
        return [Send(EVERYBODY, End(run=run))]

    def is_settled(self, now: float) -> bool:
        return self._last > -math.inf and (not self.owing or self._end <= now)

    def wake(self, now: float) -> float:
        return min(self._last + SAID_AGAIN, self._end)


class Collecting(Phase):
    """Asks the members for a round's reports, and again for missing ones, until all have answered,
    refused or gone, until its deadline at most."""

    def __init__(
        self, round: Round, members: Members, terms: Terms, pace: Pace, rolls: Rolls, now: float
    ) -> None:
        self.members = members
        self.round = round
        self.began = now
        self._terms = terms
        self._pace = pace
        self._rolls = rolls
        self._queries = tuple(part.query for part in round.parts)
        self._epsilon = epsilon_of(self._queries)
        self._asks = Steps()
        for query in self._queries:
            self._asks.add(query.cohort.start, query.cohort.stop, 1)
        for start, stop in round.past_spans:
            self._asks.add(start, stop, -1)
        self.rejoins = 0  # times that the server's own connection was made again
        self._has_called = False  # the roll, of those that owe
        # when a report last came that was not there before, or the missing ones were asked for
        self._news = now
        members.assign(members, self._asks)
        self.waves = Waves((member for member in members if member.owes), terms, pace, now)

    def joined(self, member: Member, now: float) -> None:
        """Has it asked as soon as there is room."""
        self._rolls.since = now
        self.members.assign([member], self._asks)
        if member.owes:
            self.waves.add(member)

    def returned(self, member: Member) -> None:
        """A member does one thing after the other: what it was asked before the roll it has
        answered, or has not heard."""
        member.reachable = self._has_called

    def back(self, member: Member) -> None:
        self.waves.back(member)

    def gone(self, member: Member) -> None:
        self.waves.gone(member)

    def report(self, member: Member, message: Answer, now: float) -> None:
        """Counts a member's reports, its refusal or its lack of them. Raises WireError if they do
        not fit the round."""
        before = self.round.outstanding
        count(self.round, message)
        new = before - self.round.outstanding
        if new:
            self._news = now
            self.waves.heard(member, now)
            member.owes -= new
            if member.owes == 0:
                self.waves.settled(member)

    def due(self, run: str, has_rejoined: bool, now: float) -> list[Send]:
        sends = super().due(run, has_rejoined, now) + called(self._rolls, self.members, now)
        self.rejoins += has_rejoined
        # while replies flow, what is missing is on its way
        if has_rejoined or self._news + self._pace.again <= now:
            self._news = now
            for each in self.waves.current:
                each.times += 1
                sends += self._again(each)
        while (wave := self.waves.ask(now)) is not None:
            sends += (
                [Send(wave.group, self.round.request())]
                if wave.whole and not self.round.past_spans
                else self._again(wave)
            )
        if self._half <= now:
            self._has_called = True
            spans = [
                (member.start, member.stop)
                for wave in self.waves.current
                for member in wave.owing.values()
            ]
            if spans:
                sends.append(Send(EVERYBODY, Roll(run=run, missing=tuple(joined(spans)[:BATCH]))))
        return sends

    @property
    def _half(self) -> float:
        """When the roll of those that owe is called, once."""
        return math.inf if self._has_called else (self.began + self.end) / 2

    def _again(self, wave: Wave) -> list[Send]:
        """The request, addressed to the clients that a group still owes."""
        spans = joined(
            [
                span
                for member in wave.owing.values()
                for span in self.round.awaited(member.start, member.stop)
            ]
        )
        batches = [tuple(spans[low:high]) for low, high in chunks(0, len(spans), BATCH)]
        return [Send(wave.group, self.round.request(batch)) for batch in batches]

    def is_settled(self, now: float) -> bool:
        return self.round.outstanding == 0 or min(self.end, self.waves.idle_from()) <= now

    def wake(self, now: float) -> float:
        rolls = self._rolls.wake() if self.members.present < self.members.clients else math.inf
        return min(self._news + self._pace.again, rolls, self.end, self._half, self.waves.wake(now))

    @property
    def end(self) -> float:
        """When it is over, however few have answered: later, if no deadline was given and the round
        trip turns out to be long."""
        limit = self._terms.deadline
        return self.began + (self._pace.deadline(len(self.members)) if limit is None else limit)

    def progress(self, now: float) -> RoundProgress:
        round, left = self.round, max(0.0, self.end - now)
        counts, interim = round.counts, Interim(self._queries, round.tallies)
        refusals = counts.asked - counts.answered - round.outstanding
        return RoundProgress(
            round.number,
            counts.answered,
            counts.asked,
            self._epsilon,
            left,
            refusals,
            self.waves.lost(),
            interim=interim,
        )


def count(round: Round, message: Answer) -> None:
    """Counts reports, a refusal or the lack of them in their round, open or closed. Raises
    WireError if they do not fit."""
    if isinstance(message, Refusal):
        round.refuse(message)
    elif isinstance(message, Absent):
        round.miss(message)
    else:
        round.accept(message)
