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
        """Whether anything was measured: a figure that is not finite decides nothing."""
        return math.isfinite(self.value) and math.isfinite(self.error) and self.degrees > 0

    def quantile(self, tail: float) -> float:
        """In standard errors."""
        return float(
            -special.ndtri(tail)
            if math.isinf(self.degrees)
            else -special.stdtrit(self.degrees, tail)
        )

    def below(self, bound: float, alpha: float) -> bool:
        """Whether the truth is certainly below the bound."""
        return self._shift(self.quantile(alpha)) < bound

    def above(self, bound: float, alpha: float) -> bool:
        return self._shift(-self.quantile(alpha)) > bound

    def caught(self, bound: float, alpha: float, side: int) -> float:
        """The truth nearest to the bound, below it (side -1) or above (+1), that is refused with
        probability 0.99."""
        return replace(self, value=bound)._shift(
            side * (self.quantile(alpha) + self.quantile(1 - POWER))
        )

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
        parts = (
            (own.error, own.degrees)
            for own in (self, other)
            if own.error and math.isfinite(own.degrees)
        )
        spread = sum((own / error) ** 4 / degrees for own, degrees in parts)
        return replace(
            self,
            value=self.value / other.value,
            error=error,
            degrees=1 / spread if spread else math.inf,
        )


@dataclass(frozen=True)
class Rate:
    """Successes of independent trials: the law is binomial, and exact."""

    successes: int
    trials: int

    @property
    def known(self) -> bool:
        return self.trials > 0

    def below(self, bound: float, alpha: float) -> bool:
        return (
            bool(special.bdtr(self.successes, self.trials, bound) < alpha)
            if bound < 1
            else self.successes < self.trials
        )

    def above(self, bound: float, alpha: float) -> bool:
        return Rate(self.trials - self.successes, self.trials).below(1 - bound, alpha)

    def caught(self, bound: float, alpha: float, side: int) -> float:
        if side > 0:
            return 1 - self.caught(1 - bound, alpha, -1)
        counts = np.arange(self.trials)
        refusals = (
            int(np.count_nonzero(special.bdtr(counts, self.trials, bound) < alpha))
            if bound < 1
            else self.trials
        )
        return float(special.bdtri(refusals - 1, self.trials, POWER)) if refusals else 0.0

    def distance(self, bound: float, truth: float) -> tuple[float, str]:
        return abs(truth - bound), f"a rate of {truth:.3f} for {bound:.3f}"

    def __str__(self) -> str:
        low, high = intervals.wilson(self.successes, self.trials)
        return f"{self.successes:,} of {self.trials:,} [{low:.3f}, {high:.3f}]"

    def errors_off(self, share: float) -> float:
        """How far the successes are from a known probability, in standard errors; infinite where
        that allows no error."""
        off, spread = (
            abs(self.successes - self.trials * share),
            math.sqrt(max(0.0, self.trials * share * (1 - share))),
        )
        return off / spread if spread else math.inf if off else 0.0


Statistic = Normal | Rate


def mean(values: Sequence[float] | Floats) -> Normal:
    """The mean of independent values, by Student's law."""
    return (
        Normal(
            float(np.mean(values)),
            float(np.std(values, ddof=1)) / math.sqrt(len(values)),
            len(values) - 1,
        )
        if len(values) > 1
        else NOTHING
    )


def positive_mean(values: Sequence[float] | Floats) -> Positive:
    """The mean of independent positive values, by Student's law on a logarithmic scale."""
    return (
        Positive(float(np.mean(values)), intervals.relative_error(values), len(values) - 1)
        if len(values) > 1
        else NO_FACTOR
    )


def ratio(top: Sequence[float] | Floats, bottom: Sequence[float] | Floats) -> Positive:
    """The ratio of the means of two independent samples of positive values, with Welch's degrees of
    freedom."""
    return positive_mean(top) / positive_mean(bottom)


def geometric_mean(figures: Sequence[Positive]) -> Positive:
    """Of independent positive figures: the mean of their logarithms, which varies less than
    each."""
    if not figures or not all(figure.known for figure in figures):
        return NO_FACTOR
    error = math.sqrt(sum(figure.error**2 for figure in figures)) / len(figures)
    spread = (
        sum((figure.error / (len(figures) * error)) ** 4 / figure.degrees for figure in figures)
        if error
        else 0.0
    )
    return Positive(
        math.exp(sum(math.log(figure.value) for figure in figures) / len(figures)),
        error,
        1 / spread if spread else math.inf,
    )


def least_count(count: ClientCount) -> Positive:
    """A least number of clients or records, by the longer side of its 95 % interval.

    In units of that side the errors of 54,000 searches along known curves had no heavier tails than
    Student's law with 24 degrees of freedom.
    """
    return (
        Positive(count.n, math.log(max(count.n / count.low, count.high / count.n)) / Z95, 24)
        if 0 < count.low < count.high
        else NO_FACTOR
    )


NOTHING, NO_FACTOR = Normal(math.nan, math.nan), Positive(math.nan, math.nan)
