"""Counts with discrete Laplace noise on each; and no look at the data at all."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Counts
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.counts.base import ColumnCounts, CountsMechanism, NoisyCounts
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.laws import independent
from local_dp.curator.mechanism import L_co, Law, Mechanism, WithinDelta, WithinEpsilon
from local_dp.draws import Draws
from local_dp.loss import NANO, Approximate, Pure


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

    Privacy: 0. Utility: off by at most n / 2, rounded up, and by that much where nobody or everybody has some property.
    """

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        return {NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64)): 1}
