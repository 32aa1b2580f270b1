"""k counts of the same records; discrete Laplace noise on each, and no look at the data at all."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.laws import independent
from local_dp.curator.mechanism import L_co, Law, Mechanism, WithinDelta, WithinEpsilon
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure
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


@dataclass(frozen=True)
class NoiseOnEach(CountsMechanism[L_co]):
    """Discrete Laplace noise on each count, independent."""

    epsilon: float

    @property
    @abstractmethod
    def step(self) -> Fraction:
        """The cost of one count, in nano-nats."""

    def noise(self, draws: Draws) -> Counts:
        return discrete_laplaces(draws, self.step / NANO, self.k)

    def within(self, error: int) -> float:
        each = float(self.step) / NANO
        return math.exp(self.k * math.log1p(-2 * math.exp(-each * (error + 1)) / (1 + math.exp(-each))))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        """The law of the answers cut to 0..n: beyond, the ratios are those of the ends. Raises InputError above 2^12 outcomes."""
        cut = ClippedLaplace(self.step.numerator, self.step.denominator, database.size)
        laws = [cut.law(count) for count in self._listed(database)]
        return {NoisyCounts(np.array(counts, dtype=np.int64)): weight for counts, weight in independent(laws)}


@dataclass(frozen=True)
class LaplaceCounts(NoiseOnEach[Pure], WithinEpsilon[ColumnCounts, NoisyCounts]):
    """`k` counts, each with discrete Laplace noise of eps / k.

    Privacy: epsilon, pure and exact: a replaced record moves each count by at most 1, and the losses add up.
    Utility: a largest error of about (k / eps) ln(1.44 k), ln k times that of `KNormCounts`. Cost: 40 ns a count.
    """

    @property
    def step(self) -> Fraction:
        return Fraction(self.loss.nano, self.k)


@dataclass(frozen=True)
class ComposedLaplaceCounts(NoiseOnEach[Approximate], WithinDelta[ColumnCounts, NoisyCounts]):
    """`k` counts, each with the least discrete Laplace noise that keeps all of them within (eps, delta).

    Privacy: (eps, delta), exact: a count that moves by 1 loses exactly +-e, so k of them lose the binomial curve (`accounting.shares.optimal_part`).
    Utility: a largest error of about ln(1.44 k) sqrt(2 k ln(1 / delta)) / eps. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        optimal_part(self.loss, self.k)  # refuses a budget that is too small

    @property
    def step(self) -> Fraction:
        return Fraction(optimal_part(self.loss, self.k).nano)


@dataclass(frozen=True)
class NoCounts(Mechanism[ColumnCounts, NoisyCounts, Pure]):
    """Half of the records for each of the k counts, without a look at the data.

    Privacy: 0. Utility: off by at most n / 2, rounded up, and by that much where no record or every record has some property.
    """

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        return {NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64)): 1}
