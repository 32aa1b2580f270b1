"""Counts with Gaussian noise: discrete, and rounded."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.accounting.gaussian import DiscreteGaussian
from local_dp.accounting.rules import delta
from local_dp.arrays import Counts, Floats
from local_dp.curator.counts.laplace import ColumnCounts, CountsMechanism, NoisyCounts
from local_dp.curator.inversion import Cumulative, exp_minus, signed, summed
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.rounded_normal import least_variance, rounded_normals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Concentrated
from local_dp.optimise import least_clients

_MOST = 1 << 36  # of a variance


@dataclass(frozen=True)
class DiscreteGaussianCounts(CountsMechanism[Concentrated]):
    """`k` counts, each with noise y of weight e^(-y^2 / (2 V)), V = k / (2 rho).

    Privacy: rho-zCDP. With a delta, exactly the composition of k `parts`: a record that moves all counts by 1 is the worst.
    Utility: as `GaussianCounts` of the same V, whose (eps, delta) has a closed form. Cost: a table of 11 sqrt(V) rows, made once; then 30 ns a count.
    Source: Canonne, Kamath, Steinke 2020, Theorem 4.
    """

    rho: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1e-9 <= self.rho <= 1e3 or self.variance > _MOST:  # also false for NaN
            raise InputError(f"rho is {self.rho} for {self.k} counts; give a number from 1e-9 to 1,000, and a variance k / (2 rho) of at most 2^36")

    @property
    def loss(self) -> Concentrated:
        return Concentrated(math.floor(Fraction(repr(float(self.rho))) * ATTO))

    @property
    def variance(self) -> Fraction:
        """V: the variance of the noise up to a tiny share."""
        return Fraction(self.k * ATTO, 2 * self.loss.atto_rho)

    @property
    def parts(self) -> dict[DiscreteGaussian, int]:
        """The loss of each count, for `accounting.rules`."""
        return {_part(self.variance): self.k}

    def noise(self, draws: Draws) -> Counts:
        return signed(_sizes(self.variance), draws, self.k)

    def within(self, error: int) -> float:
        return float(self._cumulative[min(error, len(self._cumulative) - 1)]) ** self.k

    @cached_property
    def _cumulative(self) -> Floats:
        """Pr[|y| <= 0], Pr[|y| <= 1], ... of one count, while it is below 1 as a float."""
        y = np.arange(math.ceil(12 * math.sqrt(self.variance)) + 2)
        sums = np.cumsum(np.exp(-(y**2) / (2 * float(self.variance))) * np.where(y > 0, 2, 1))
        return np.asarray(sums / sums[-1])


def least_discrete_variance(k: int, loss: Approximate) -> int:
    """The least whole V with which discrete Gaussian noise on k counts keeps to `loss`, by the exact rule; that of normal noise is about the same."""
    return least_clients(lambda variance: delta({_part(Fraction(variance)): k}, loss.epsilon) <= loss.delta)


def _part(variance: Fraction) -> DiscreteGaussian:
    """The loss of one count, rounded up."""
    return DiscreteGaussian(math.ceil(ATTO / variance))


@lru_cache(maxsize=4)
def _sizes(variance: Fraction) -> Cumulative:
    """The law of |y|: weight 1 for 0 and twice e^(-y^2 / (2 V)) for the others, summed and divided by their sum."""

    def weights(digits: int) -> Iterator[Decimal]:
        decay = exp_minus(1 / (2 * variance))
        weight, ratio, least = Decimal(1), decay, Decimal(10) ** -(digits + 2)
        yield weight
        while weight > least:  # the rest is less than sqrt(V) of it, and the division takes that away
            weight, ratio = weight * ratio, ratio * decay * decay
            yield 2 * weight

    return summed(weights)


@dataclass(frozen=True)
class GaussianCounts(CountsMechanism[Approximate], WithinDelta[ColumnCounts, NoisyCounts]):
    """`k` counts, each with round(N(0, V)), V the least whole number that keeps to (eps, delta).

    Privacy: (eps, delta), in closed form: a replaced record moves the counts by at most sqrt(k) in L2, and the answer is that of a Gaussian mechanism, rounded.
    Utility: a largest error of about sqrt(V 2 ln k), V proportional to k. Cost: a table of 11 sqrt(V) rows, made once; then 30 ns a count.
    """

    epsilon: float
    delta: float

    @cached_property
    def variance(self) -> int:
        """V: the variance of each count's noise before rounding."""
        return least_variance(self.k, self.loss)

    def noise(self, draws: Draws) -> Counts:
        return rounded_normals(draws, self.variance, self.k)

    def within(self, error: int) -> float:
        return math.exp(self.k * math.log1p(-math.erfc((error + 0.5) / math.sqrt(2 * self.variance))))
