"""k counts of the same records: the database, the answer, and the common part of all mechanisms on them."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.curator.mechanism import L_co, Mechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.optimise import least_clients

MAX_COUNTS = 1 << 16
LISTED = 1 << 12  # outcomes of a law


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The number of n = `size` records with each of k properties: shape (k,), each 0..n. n is public; a replaced record moves each count by at most 1."""

    size: int
    counts: Counts

    @classmethod
    def of(cls, rows: Ints) -> Self:
        """From records that are rows of k bits: shape (n, k)."""
        return cls(len(rows), np.sum(rows, axis=0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Released counts: shape (k,). Equal if all counts are."""

    counts: Counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.counts.tobytes() == other.counts.tobytes()

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())

    def largest_error(self, database: ColumnCounts) -> int:
        """max |released - true| count over all k."""
        return int(np.abs(self.counts - database.counts).max())


@dataclass(frozen=True)
class CountsMechanism(Mechanism[ColumnCounts, NoisyCounts, L_co]):
    """`k` counts plus whole noise, whose law does not depend on the counts; so neither does that of the largest error."""

    k: int

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1, MAX_COUNTS)
        super().__post_init__()

    @abstractmethod
    def noise(self, draws: Draws) -> Counts:
        """The noise: shape (k,)."""

    @abstractmethod
    def within(self, error: int) -> float:
        """Pr[all k counts are off by at most `error`], 0 or more: in closed form."""

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(self._counts(database) + self.noise(draws))

    @cached_property
    def median_error(self) -> int:
        """The least whole number that the largest error exceeds with probability at most 1/2."""
        return least_clients(lambda above: self.within(above - 1) >= 0.5) - 1

    def _counts(self, database: ColumnCounts) -> Counts:
        """Raises InputError unless there are k counts."""
        if database.counts.shape != (self.k,):
            raise InputError(f"there are {len(database.counts)} counts and the mechanism is for {self.k}; give one number for both")
        return database.counts

    def _listed(self, database: ColumnCounts) -> list[int]:
        """The counts, if a law of outcomes cut to 0..n can be listed. Raises InputError above 2^12 outcomes."""
        if (database.size + 1) ** self.k > LISTED:
            raise InputError(f"there are {self.k} counts of up to {database.size} records; a law is listed up to {LISTED:,} outcomes")
        return list(map(int, self._counts(database)))
