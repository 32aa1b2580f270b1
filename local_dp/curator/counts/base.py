"""k counts of the same records: the database, the answer, and what all mechanisms on them share."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Concentrated, Loss
from local_dp.optimise import least_clients

MAX_COUNTS = 1 << 16
LISTED = 1 << 12  # outcomes of a law
L_co = TypeVar("L_co", bound=Loss | Concentrated, covariant=True)


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """How many of n = `size` records have each of k properties: shape (k,), each 0..n. n is public; a replaced record may move all k, each by at most 1."""

    size: int
    counts: Counts

    @classmethod
    def of(cls, rows: Ints) -> Self:
        """Of records that are rows of k bits: shape (n, k)."""
        return cls(len(rows), np.sum(rows, axis=0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What is told of k counts: shape (k,)."""

    counts: Counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisyCounts) and self.counts.tobytes() == other.counts.tobytes()

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())

    def largest_error(self, database: ColumnCounts) -> int:
        """max |told - count| over all k."""
        return int(np.abs(self.counts - database.counts).max())


@dataclass(frozen=True)
class CountsMechanism(Mechanism[ColumnCounts, NoisyCounts, L_co]):
    """`k` counts plus whole noise whose law does not depend on them: so neither does that of the largest error."""

    k: int

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1, MAX_COUNTS)

    @abstractmethod
    def noise(self, draws: Draws) -> Counts:
        """What is added: shape (k,)."""

    @abstractmethod
    def within(self, error: int) -> float:
        """Pr[all k counts are off by at most `error`], 0 or more: in closed form."""

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(self._counts(database) + self.noise(draws))

    @cached_property
    def median_error(self) -> int:
        """The least whole number that the largest error exceeds at most every second time."""
        return least_clients(lambda above: self.within(above - 1) >= 0.5) - 1

    def _counts(self, database: ColumnCounts) -> Counts:
        """Raises InputError unless there are k of them: how many there are is public."""
        if database.counts.shape != (self.k,):
            raise InputError(f"there are {len(database.counts)} counts and the mechanism is for {self.k}; give one number for both")
        return database.counts
