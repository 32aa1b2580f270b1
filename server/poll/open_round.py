"""An open round: members join one by one. Each is asked at its hello, and confirmed when its
reports are stored, until the round is closed."""

import math
from dataclasses import dataclass

from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Member
from local_dp.server.phases import Answer, Collecting, Phase, Send, receipts
from local_dp.server.quorum import Terms
from local_dp.server.round import Round

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
    restart not before all `returnees` are back.
    """

    def __init__(
        self, round: Round, coordinator: "OpenCoordinator", now: float, returnees: frozenset[str]
    ) -> None:
        super().__init__(
            round, coordinator.members, coordinator.terms, coordinator.pace, coordinator.rolls, now
        )
        self.limit = coordinator.limit
        self._returnees = returnees
        self.over = False
        self._last_call = now  # when those who owe were last asked
        self._receivers: list[Member] = []  # whose receipts are due
        self._confirm = math.inf  # when

    @property
    def end(self) -> float:
        return self.began + self.limit

    def joined(self, member: Member, now: float) -> None:
        super().joined(member, now)
        self._greet(member, now)

    def returned(self, member: Member) -> None:
        if member.owes:
            self.waves.settled(member)
            self.waves.add(member)
        self._greet(member, self._last_call)

    def _greet(self, member: Member, now: float) -> None:
        if not member.owes and member.name in self.round.sums:
            self._receivers.append(member)
            self._confirm = min(self._confirm, now)

    def report(self, member: Member, message: Answer, now: float) -> None:
        super().report(member, message, now)
        # also where it came again: the receipt may be lost
        self._greet(member, now + STORED)

    def due(self, run: str, has_rejoined: bool, now: float) -> list[Send]:
        sends = Phase.due(self, run, has_rejoined, now)
        if self._last_call + AGAIN <= now:
            self._last_call, self.waves.current = (
                now,
                [wave for wave in self.waves.current if wave.owing],
            )
            sends += [send for wave in self.waves.current for send in self._again(wave)]
        while (wave := self.waves.ask(now)) is not None:
            sends += self._again(wave)
        if self._confirm <= now:
            sends += receipts(self.round, self._receivers)
            self._receivers, self._confirm = [], math.inf
        return sends

    def is_settled(self, now: float) -> bool:
        is_idle = (
            self.end < math.inf
            and self.waves.idle_from() <= now
            and self._returnees <= self.members.by_name.keys()
        )
        return self.over or self.end <= now or is_idle

    def wake(self, now: float) -> float:
        return min(
            self._last_call + AGAIN,
            self._confirm,
            self.end,
            now if self.waves.has_room(now) else math.inf,
        )


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
