"""k counts with discrete Laplace noise on each, within a delta."""

from dataclasses import dataclass
from fractions import Fraction

from local_dp.accounting.shares import optimal_part
from local_dp.curator.counts.base import ColumnCounts, NoisyCounts
from local_dp.curator.counts.laplace import NoiseOnEach
from local_dp.curator.mechanism import WithinDelta
from local_dp.loss import Approximate


@dataclass(frozen=True)
class ComposedLaplaceCounts(NoiseOnEach[Approximate], WithinDelta[ColumnCounts, NoisyCounts]):
    """`k` counts, each with the least discrete Laplace noise that keeps to (eps, delta) together.

    Privacy: (eps, delta), exact: a count that moves by 1 loses exactly +-e, so k of them lose the binomial curve (`accounting.shares.optimal_part`).
    Utility: a largest error of about ln(1.44 k) sqrt(2 k ln(1 / delta)) / eps. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.step  # noqa: B018 - refuses a budget that is too small

    @property
    def step(self) -> Fraction:
        return Fraction(optimal_part(self.loss, self.k).nano)
