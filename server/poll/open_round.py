"""An open round: members join one by one. Each is asked at its hello, and confirmed when its
reports are stored, until the round is closed."""

import math
from dataclasses import dataclass

from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Member
from local_dp.server.phases import Answer, Collecting, Phase, Send
from local_dp.server.quorum import Terms
from local_dp.server.round import Round
from local_dp.wire import MAX_RECEIPTS, Receipt

AGAIN = 5.0  # seconds between two requests to those who owe: a person thinks for a while
STORED = 0.05  # seconds for which stored reports are gathered, to be confirmed together


@dataclass(frozen=True)
class AnyTurnout(Terms):
    """A round counts, however few have answered."""

    def judge(self, round: Round) -> None:
        return


class OpenRound(Collecting):
    """Lasts until `over`, not until all places have answered: most of them are never taken. Nobody
    is called who did not come first.

    With a `limit` in seconds, it also ends then, or when everybody has answered or gone; after a
    restart not before all of `awaited` are back.
    """

    def __init__(
        self, round: Round, coordinator: "OpenCoordinator", now: float, awaited: frozenset[str]
    ) -> None:
        super().__init__(
            round, coordinator.members, coordinator.terms, coordinator.pace, coordinator.rolls, now
        )
        self.limit = coordinator.limit
        self._awaited = awaited
        self.over = False
        self._asked = now  # when those who owe were last asked
        self._stored: list[Member] = []  # whose receipts are due
        self._confirm = math.inf  # when

    @property
    def end(self) -> float:
        return self.began + self.limit

    def joined(self, member: Member, now: float) -> None:
        super().joined(member, now)
        self._greeted(member, now)

    def returned(self, member: Member) -> None:
        if member.owes:
            self._waves.settled(member)
            self._waves.add(member)
        self._greeted(member, self._asked)

    def _greeted(self, member: Member, now: float) -> None:
        if not member.owes and member.name in self.round.sums:
            self._stored.append(member)
            self._confirm = min(self._confirm, now)

    def report(self, member: Member, message: Answer, now: float) -> None:
        super().report(member, message, now)
        # also where it came again: the receipt may be lost
        if not member.owes and member.name in self.round.sums:
            self._stored.append(member)
            self._confirm = min(self._confirm, now + STORED)

    def due(self, run: str, rejoined: bool, now: float) -> list[Send]:
        sends = Phase.due(self, run, rejoined, now)
        if self._asked + AGAIN <= now:
            self._asked, self._waves.asked = now, [wave for wave in self._waves.asked if wave.owing]
            sends += [send for wave in self._waves.asked for send in self._again(wave)]
        while (wave := self._waves.ask(now)) is not None:
            sends += self._again(wave)
        if self._confirm <= now:
            sends += receipts(run, self.round, self._stored)
            self._stored, self._confirm = [], math.inf
        return sends

    def is_settled(self, now: float) -> bool:
        is_idle = (
            self.end < math.inf
            and self._waves.idle_from() <= now
            and self._awaited <= self.members.named.keys()
        )
        return self.over or self.end <= now or is_idle

    def wake(self, now: float) -> float:
        return min(
            self._asked + AGAIN,
            self._confirm,
            self.end,
            now if self._waves.has_room(now) else math.inf,
        )


def receipts(run: str, round: Round, members: list[Member]) -> list[Send]:
    """The stored reports of these members, a message for each group."""
    groups: dict[str, dict[str, Member]] = {}
    for member in members:
        groups.setdefault(member.group, {})[member.name] = member
    return [
        Send(
            group,
            Receipt(
                run=run,
                round=round.number,
                accepted=tuple(
                    (each.start, each.stop, round.sums[each.name].checksum)
                    for each in some.values()
                ),
            ),
        )
        for group, some in groups.items()
        if len(some) <= MAX_RECEIPTS
    ]


class OpenCoordinator(Coordinator):
    """A coordinator whose rounds are open, for `limit` seconds at most."""

    limit = math.inf

    def _collecting(self, round: Round, now: float) -> Collecting:
        first = self._history.get(1, round)
        return OpenRound(round, self, now, frozenset(first.sums))

    def round(self, number: int) -> Round | None:
        """A round, once it was opened."""
        return self._history.get(number)

    def shut_open(self) -> None:
        """Ends the open round at the next look."""
        if isinstance(self.phase, OpenRound):
            self.phase.over = True
