"""Statistics whose law is known up to one unknown truth: by them a check computes its chance to
fail where a claim is true, and what it catches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import special

from local_dp.arrays import Floats
from local_dp.experiments.lab import intervals
from local_dp.experiments.lab.minimal_clients import ClientCount
from local_dp.tallies import Z95

POWER = 0.99  # the probability with which a check catches what it states


@dataclass(frozen=True)
class Normal:
    """A figure with a standard error: its error is normal, or follows Student's law with so many
    degrees of freedom.

    Each method is about a test that refuses a true bound with probability `alpha` at most.
    """

    value: float
    error: float
    degrees: float = math.inf

    @property
    def known(self) -> bool:
        """True if anything was measured: a figure that is not finite decides nothing."""
        return math.isfinite(self.value) and math.isfinite(self.error) and self.degrees > 0

    def quantile(self, tail: float) -> float:
        """In standard errors."""
        if math.isinf(self.degrees):
            return float(-special.ndtri(tail))
        return float(-special.stdtrit(self.degrees, tail))

    def below(self, bound: float, alpha: float) -> bool:
        """True if the truth is certainly below the bound."""
        return self._shift(self.quantile(alpha)) < bound

    def above(self, bound: float, alpha: float) -> bool:
        return self._shift(-self.quantile(alpha)) > bound

    def caught(self, bound: float, alpha: float, side: int) -> float:
        """The truth nearest to the bound, below it (side -1) or above (+1), that is refused with
        probability 0.99."""
        errors = self.quantile(alpha) + self.quantile(1 - POWER)
        return replace(self, value=bound)._shift(side * errors)

    def distance(self, bound: float, truth: float) -> tuple[float, str]:
        """How far a wrong truth is from a bound: a number that grows with it, and the words."""
        return abs(truth - bound), f"{abs(truth - bound):.2g} beyond {bound:.4g}"

    def _shift(self, errors: float) -> float:
        return self.value + errors * self.error

    @property
    def stated(self) -> tuple[float, float, float]:
        """The figure and its 95 % interval: (value, low, high)."""
        quantile = self.quantile((1 - intervals.LEVEL) / 2)
        return self.value, self._shift(-quantile), self._shift(quantile)

    def __str__(self) -> str:
        return "{:.4g} [{:.4g}, {:.4g}]".format(*self.stated)


@dataclass(frozen=True)
class Positive(Normal):
    """A positive figure: its error is that of its logarithm, which is nearer to normal."""

    @property
    def known(self) -> bool:
        return super().known and self.value > 0

    def distance(self, bound: float, truth: float) -> tuple[float, str]:
        factor = max(truth / bound, bound / truth)
        return factor, f"a factor of {factor:.2f}"

    def _shift(self, errors: float) -> float:
        return self.value * math.exp(errors * self.error)

    def __mul__(self, factor: float) -> Self:
        return replace(self, value=self.value * factor)

    def __truediv__(self, other: "float | Positive") -> Self:
        """The figure in units of another, which is a number or independent of it."""
        if not isinstance(other, Positive):
            return replace(self, value=self.value / other)
        error = math.hypot(self.error, other.error)
        degrees = _degrees([self, other], error)
        return replace(self, value=self.value / other.value, error=error, degrees=degrees)


def _degrees(figures: Sequence[Positive], error: float) -> float:
    """Welch's degrees of freedom of a figure with this error, which is the root of the sum of
    squares of theirs."""
    spread = sum((figure.error / error) ** 4 / figure.degrees for figure in figures if figure.error)
    return 1 / spread if spread else math.inf


@dataclass(frozen=True)
class Rate:
    """Successes of independent trials: the law is binomial, and exact."""

    successes: int
    trials: int

    @property
    def known(self) -> bool:
        return self.trials > 0

    def below(self, bound: float, alpha: float) -> bool:
        if bound >= 1:
            return self.successes < self.trials
        return bool(special.bdtr(self.successes, self.trials, bound) < alpha)

    def above(self, bound: float, alpha: float) -> bool:
        return Rate(self.trials - self.successes, self.trials).below(1 - bound, alpha)

    def caught(self, bound: float, alpha: float, side: int) -> float:
        if side > 0:
            return 1 - self.caught(1 - bound, alpha, -1)
        refusals = self.trials
        if bound < 1:
            chances = special.bdtr(np.arange(self.trials), self.trials, bound)
            refusals = int(np.count_nonzero(chances < alpha))
        return float(special.bdtri(refusals - 1, self.trials, POWER)) if refusals else 0.0

    def distance(self, bound: float, truth: float) -> tuple[float, str]:
        return abs(truth - bound), f"a rate of {truth:.3f} for {bound:.3f}"

    def __str__(self) -> str:
        low, high = intervals.wilson(self.successes, self.trials)
        return f"{self.successes:,} of {self.trials:,} [{low:.3f}, {high:.3f}]"

    def errors_off(self, share: float) -> float:
        """How far the successes are from a known probability, in standard errors; infinite where
        that allows no error."""
        off = abs(self.successes - self.trials * share)
        spread = math.sqrt(max(0.0, self.trials * share * (1 - share)))
        if not spread:
            return math.inf if off else 0.0
        return off / spread


Statistic = Normal | Rate


def mean(values: Sequence[float] | Floats) -> Normal:
    """The mean of independent values, by Student's law."""
    if len(values) < 2:
        return NOTHING
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Normal(float(np.mean(values)), error, len(values) - 1)


def positive_mean(values: Sequence[float] | Floats) -> Positive:
    """The mean of independent positive values, by Student's law on a logarithmic scale."""
    if len(values) < 2:
        return NO_FACTOR
    return Positive(float(np.mean(values)), intervals.relative_error(values), len(values) - 1)


def ratio(top: Sequence[float] | Floats, bottom: Sequence[float] | Floats) -> Positive:
    """The ratio of the means of two independent samples of positive values, with Welch's degrees of
    freedom."""
    return positive_mean(top) / positive_mean(bottom)


def geometric_mean(figures: Sequence[Positive]) -> Positive:
    """Of independent positive figures: the mean of their logarithms, which varies less than
    each."""
    if not figures or not all(figure.known for figure in figures):
        return NO_FACTOR
    number = len(figures)
    error = math.sqrt(sum(figure.error**2 for figure in figures)) / number
    level = sum(math.log(figure.value) for figure in figures) / number
    return Positive(math.exp(level), error, _degrees(figures, number * error))


def least_count(count: ClientCount) -> Positive:
    """A least number of clients or records, by the longer side of its 95 % interval.

    In units of that side the errors of 54,000 searches along known curves had no heavier tails than
    Student's law with 24 degrees of freedom.
    """
    if not 0 < count.low < count.high:
        return NO_FACTOR
    side = math.log(max(count.n / count.low, count.high / count.n))
    return Positive(count.n, side / Z95, 24)


NOTHING, NO_FACTOR = Normal(math.nan, math.nan), Positive(math.nan, math.nan)
