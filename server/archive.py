"""What stays of rounds that are long over, so that a server's memory does not grow by their
reports. Sans I/O."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from local_dp.errors import WireError
from local_dp.server.losses import Loss, Unanswered, losses_of
from local_dp.server.progress import Turnout
from local_dp.wire import Account

RECENT = 64  # rounds that are kept whole, so that each late or differing report to them is counted


@dataclass
class Sum:
    """How many of a member's reports to one round were accepted, and the checksum of the replies
    they came in."""

    reports: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class Missed:
    """The members that had not answered when a round ended, those of them that answered late, and
    the most replies of all members."""

    round: int
    end: Unanswered
    late: set[str]
    replies: int

    def losses(self, accounts: Mapping[str, Account]) -> list[Loss]:
        return losses_of(self.round, self.end, frozenset(self.late), accounts, self.replies)


class Archive:
    """Rounds without their reports: 16 bytes for each member that answered, and who is missing."""

    def __init__(self) -> None:
        self.counts = Turnout()  # of all of them
        self.absences: dict[int, Missed] = {}
        self._sums: dict[int, tuple[tuple[str, ...], array[int]]] = {}
        self._names: tuple[str, ...] = ()  # of the last round, which most rounds share

    def add(
        self, number: int, counts: Turnout, sums: Mapping[str, Sum], absence: Missed | None
    ) -> None:
        names = tuple(sorted(sums))
        self._names = self._names if self._names == names else names
        values = (value for name in names for value in (sums[name].reports, sums[name].checksum))
        self._sums[number] = self._names, array("Q", values)
        self.counts += counts
        if absence is not None:
            self.absences[number] = absence

    def late(self, number: int, member: str) -> NoReturn:
        """Notes that a member reports to one of these rounds. Raises WireError, since the report is
        not compared with what came before."""
        if number not in self._sums:
            raise WireError("a report for a round that was not asked")
        if number in self.absences:
            self.absences[number].late.update(
                {member}.intersection(self.absences[number].end.owing)
            )
        raise WireError(
            f"a report for round {number}, which ended more than {RECENT} rounds ago", "too-late"
        )

    def sums(self) -> dict[int, dict[str, Sum]]:
        """What was accepted in each round, by member."""
        sums = dict[int, dict[str, Sum]]()
        for number, (names, values) in self._sums.items():
            pairs = map(Sum, values[::2], values[1::2])
            sums[number] = dict(zip(names, pairs, strict=True))
        return sums
