"""One round while it is open, sans I/O: who is asked when, who is asked again, and when it is over."""

from dataclasses import dataclass
from typing import TypeAlias

from local_dp.loss import NANO
from local_dp.server.flow_control import Wave, Waves
from local_dp.server.members import Member, Members
from local_dp.server.progress import Interim, RoundProgress
from local_dp.server.round import Round, joined
from local_dp.steps import Steps
from local_dp.wire import EVERYBODY, Absent, End, Receipt, Refusal, Reply, Request, Roll

ASK_AGAIN = 1.0  # seconds without anything new
BATCH = 4000  # missing spans named in one request
Answer: TypeAlias = Reply | Refusal | Absent


@dataclass(frozen=True)
class Send:
    """A message for a group of members, to be published."""

    group: str
    message: Request | Roll | End | Receipt


class Collecting:
    """Asks the members for a round's reports, and again for what does not come, until all have answered, refused or gone, for `deadline` seconds at most."""

    def __init__(self, round: Round, members: Members, deadline: float, now: float) -> None:
        self.round = round
        self.members = members
        self.began = now
        self.end = now + deadline
        self._asks, epsilon = Steps(), Steps()
        for query in (part.query for part in round.parts):
            self._asks.add(query.cohort.start, query.cohort.stop, 1)
            epsilon.add(query.cohort.start, query.cohort.stop, query.randomizer.nano)
        for start, stop in round.restored:
            self._asks.add(start, stop, -1)
        self._epsilon = epsilon.maximum / NANO
        self._news = now  # when a report last came that was not there before, or the missing ones were asked for
        members.assign(members, self._asks)
        self._waves = Waves(member for member in members if member.owes)

    def joined(self, member: Member) -> None:
        """A member that joins during the round is asked as soon as there is room."""
        self.members.assign([member], self._asks)
        if member.owes:
            self._waves.add(member)

    def back(self, member: Member) -> None:
        """A member is heard again."""
        self._waves.back(member)

    def gone(self, member: Member) -> None:
        """A member's connection has broken."""
        self._waves.gone(member)

    def report(self, member: Member, message: Answer, now: float) -> None:
        """Counts a member's reports, its refusal or its lack of them. Raises WireError if they do not fit the round."""
        before = self.round.outstanding
        count(self.round, message)
        new = before - self.round.outstanding
        if new:
            self._news = now
            member.owes -= new
            if member.owes == 0:
                self._waves.settled(member)

    def due(self, rejoined: bool, now: float) -> list[Send]:
        """What to publish now; after the bus was `rejoined`, what may have been lost."""
        silent = self._news + ASK_AGAIN <= now
        sends: list[Send] = []
        if silent and self.members.present < self.members.clients:
            sends.append(Send(EVERYBODY, Roll(run=self.round.run)))
        if silent or rejoined:  # while replies flow, what is missing is on its way
            self._news = now
            sends += [send for wave in self._waves.asked() for send in self._again(wave)]
        while (wave := self._waves.ask(now)) is not None:
            sends += [Send(wave.group, self.round.request())] if wave.whole and not self.round.restored else self._again(wave)
        return sends

    def _again(self, wave: Wave) -> list[Send]:
        """The request, addressed to the clients that a group still owes."""
        spans = joined([span for member in wave.owing.values() for span in self.round.awaited(member.start, member.stop)])
        return [Send(wave.group, self.round.request(tuple(spans[at : at + BATCH]))) for at in range(0, len(spans), BATCH)]

    def is_settled(self, now: float) -> bool:
        """Whether the round is over: all have answered or refused, or whoever has not is gone for good, or the time is up."""
        return self.round.outstanding == 0 or min(self.end, self._waves.idle_from()) <= now

    def wake(self, now: float) -> float:
        """When to look again, if nothing happens before, while the round is not settled."""
        return min(self._news + ASK_AGAIN, self.end, self._waves.wake(now))

    def progress(self, now: float) -> RoundProgress:
        """How far the round is."""
        round, left = self.round, max(0.0, self.end - now)
        answered, asked = round.counts.answered, round.counts.asked
        interim = Interim(tuple(part.query for part in round.parts), round.tallies)
        refused = asked - answered - round.outstanding
        return RoundProgress(round.number, answered, asked, self._epsilon, left, refused, self._waves.lost(), interim=interim)


def count(round: Round, message: Answer) -> None:
    """Counts reports, a refusal or the lack of them in their round, open or closed. Raises WireError if they do not fit."""
    if isinstance(message, Refusal):
        round.refuse(message)
    elif isinstance(message, Absent):
        round.miss(message)
    else:
        round.accept(message)
