"""The progress of a run: the present clients, the state of a round, the fate of the reports."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from local_dp.oracles.local.asked import LocalQuery
from local_dp.tallies import Tally


@dataclass(frozen=True)
class Attendance:
    """How many of the clients are present, and the spans of those that are missing."""

    present: int
    clients: int
    missing: tuple[tuple[int, int], ...]

    def gaps(self, most: int, to: str) -> str:
        """The first `most` spans of missing clients, and how many more there are; empty if nobody
        is missing."""
        spans = [
            str(start) if stop == start + 1 else f"{start}{to}{stop - 1}"
            for start, stop in self.missing
        ]
        more = f" and {len(spans) - most:,} more gaps" if len(spans) > most else ""
        return f"{', '.join(spans[:most])}{more}"


@dataclass(frozen=True)
class Interim:
    """A round that is not over: its queries, and the tallies of the reports so far, which are added
    up each time they are asked for."""

    queries: tuple[LocalQuery, ...]
    tallies: Callable[[], tuple[Tally, ...]]


@dataclass(frozen=True)
class RoundProgress:
    """How far a round is: the reports that came of those asked for, the most epsilon that any one
    client pays, and the seconds that are left, if it ends.

    `refused` and `lost` count reports too: those that will not come, and those that members owe
    whose connection has broken. `spent` is the most epsilon that any one client has paid in all
    rounds.
    """

    round: int
    answered: int
    asked: int
    epsilon: float
    seconds_left: float
    refused: int = 0
    lost: int = 0
    spent: float = 0.0
    interim: Interim | None = field(default=None, compare=False, repr=False)


Progress: TypeAlias = Attendance | RoundProgress


@dataclass
class Turnout:
    """The counts of the reports of a run or a round; a client owes one for each query.

    A late report came after its round had closed, and is not in the estimate. A held-back one
    reached a shuffler in too small a crowd.
    """

    asked: int = 0
    answered: int = 0
    refused: int = 0
    late: int = 0
    duplicate: int = 0
    conflicting: int = 0
    missing: int = 0
    held_back: int = 0

    def __add__(self, other: "Turnout") -> "Turnout":
        return Turnout(**{name: value + getattr(other, name) for name, value in vars(self).items()})
