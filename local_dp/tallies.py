"""Tallies of reports, and estimates from them with their intervals."""

from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError

Z95 = 1.959963984540054  # the normal quantile of a 95 % interval
Ends: TypeAlias = tuple[Floats | float, Floats | float]


@dataclass(frozen=True)
class Tally:
    """Whole-number sums over `n` reports, sufficient for the randomizer's estimate. Addition makes it a commutative monoid.

    Reports may arrive in any order and on several hosts: tallies of parts add up to the tally of the whole. `n` may be left out where every report adds 1 to
    one count.
    """

    counts: Counts
    n: int = -1

    def __post_init__(self) -> None:
        if self.n < 0:
            object.__setattr__(self, "n", int(self.counts.sum()))

    @property
    def answered(self) -> int:
        """The number of reports, for an estimator to divide by. Raises InputError if there is none."""
        self._check_answered()
        return self.n

    @property
    def weights(self) -> Floats:
        """The counts as weights of logarithms. Raises InputError without reports, which favour no hypothesis."""
        self._check_answered()
        return self.counts.astype(np.float64)

    def _check_answered(self) -> None:
        if self.n == 0:
            raise InputError("nobody answered: the tally holds 0 reports and there is nothing to estimate; ask at least one client of every cohort")

    def __add__(self, other: "Tally") -> "Tally":
        if self.counts.shape != other.counts.shape:
            raise InputError(f"tallies of shapes {self.counts.shape} and {other.counts.shape} come from different randomizers; add like to like")
        return Tally(self.counts + other.counts, self.n + other.n)


@dataclass(frozen=True)
class Estimate:
    """A value (scalar or vector), its standard error and its number of reports.

    The truth is the mean of the distribution of the clients: error and interval include sampling and privacy noise. For a table whose every row answered, the
    interval covers the table's own mean more often than stated. `ends` (a, b), where known, are two values of one report's estimate with variance (b - f)(f -
    a) at the truth f.
    """

    value: Floats
    standard_error: Floats
    n: int
    ends: Ends | None = None

    @classmethod
    def between(cls, ends: Ends, value: Floats | float, n: int, least: float = 0.0) -> Self:
        """An estimate with known variance for each truth from `least` to 1. A value beyond is noise and must not make the error look small."""
        place = np.minimum(np.maximum(value, least), 1.0)  # of one number, several times as fast as np.clip
        variance = ends[1] - place
        variance *= place - ends[0]  # in place: of millions of coordinates, every array is paid for page by page
        variance /= n
        return cls(np.asarray(value), np.sqrt(np.maximum(variance, 0.0)), n, ends)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """A confidence interval for each coordinate, 95 % by default: Wilson's where `ends` are known; else the normal one with Student's correction."""
        if self.ends is not None:
            return score_interval(self.value, self.ends, self.n, z)
        half = z * (1 + (z**2 + 3) / (4 * self.n)) * self.standard_error  # Student's quantile to order 1/n: the error was measured from the same reports
        return self.value - half, self.value + half

    def at(self, place: int) -> "Estimate":
        """One coordinate of a vector."""
        ends = None if self.ends is None else tuple(np.broadcast_to(end, self.value.shape)[place] for end in self.ends)
        return Estimate(self.value[place], self.standard_error[place], self.n, ends)

    def on_scale(self, low: Floats | float, high: Floats | float) -> "Estimate":
        """The same estimate after 0 is moved to `low` and 1 to `high`: numbers, or one for each coordinate."""
        ends = None if self.ends is None else (low + (high - low) * self.ends[0], low + (high - low) * self.ends[1])
        return Estimate(low + (high - low) * self.value, (high - low) * self.standard_error, self.n, ends)


def score_interval(value: Floats | float, ends: Ends, n: int, z: float = Z95) -> tuple[Floats, Floats]:
    """Every f for which a mean of n reports with variance (b - f)(f - a) / n lies within z standard errors of `value`: Wilson's interval if a = 0, b = 1.

    The standard error is that at f, not at the estimate. So the interval is asymmetric, has width at either end, and keeps its level for small n. Source:
    Wilson 1927.
    """
    centre, reach = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    away, shrink = value - centre, 1 + z**2 / n
    half = z * np.sqrt(np.maximum((shrink * reach**2 - away**2) / n, 0.0))
    return np.asarray(centre + (away - half) / shrink), np.asarray(centre + (away + half) / shrink)


@dataclass(frozen=True)
class Ratio(Estimate):
    """The quotient of two shares of one law, from the same reports, with Fieller's interval inside [`least`, `most`].

    `moments` are numerator a, denominator b, and their variances and covariance (a, b, aa, ab, bb), each of the quotient's shape. The interval contains every
    t for which a - t b is within z of its standard errors of 0: exact for normal reports. It is the whole range where b might be 0; for b <= 0 the value is
    NaN. Source: Fieller 1954.
    """

    moments: tuple[Floats, ...] = ()
    least: Floats | float = -np.inf
    most: Floats | float = np.inf

    @classmethod
    def of(cls, moments: tuple[Floats, ...], n: int, least: Floats | float, most: Floats | float) -> Self:
        """The quotient with its standard error by linear approximation."""
        a, b, aa, ab, bb = np.broadcast_arrays(*moments)
        with np.errstate(all="ignore"):
            value = np.where(b > 0, a / b, np.nan)
            error = np.sqrt(np.maximum(aa - 2 * value * ab + value**2 * bb, 0.0)) / b
        return cls(value, np.where(b > 0, error, np.nan), n, None, (a, b, aa, ab, bb), least, most)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """Fieller's interval, cut to the range."""
        a, b, aa, ab, bb = self.moments
        square, half, rest = b**2 - z**2 * bb, a * b - z**2 * ab, a**2 - z**2 * aa
        certain = (square > 0) & (b > 0)
        with np.errstate(all="ignore"):
            reach = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
            low, high = (half - reach) / square, (half + reach) / square
        return np.where(certain, np.clip(low, self.least, self.most), self.least), np.where(certain, np.clip(high, self.least, self.most), self.most)

    def at(self, place: int) -> "Ratio":
        """One coordinate of a vector."""
        return Ratio(self.value[place], self.standard_error[place], self.n, None, tuple(part[place] for part in self.moments), self.least, self.most)

    def on_scale(self, low: Floats | float, high: Floats | float) -> "Ratio":
        """The same quotient after 0 is moved to `low` and 1 to `high`."""
        a, b, aa, ab, bb = self.moments
        width = high - low
        moved = (low * b + width * a, b, low**2 * bb + 2 * low * width * ab + width**2 * aa, low * bb + width * ab, bb)
        return Ratio.of(moved, self.n, low + width * self.least, low + width * self.most)


@dataclass(frozen=True)
class Joint:
    """Unbiased estimates of several linear functions of one law from the same n reports: values (m,), and their covariance (m, m)."""

    value: Floats
    covariance: Floats
    n: int

    def ratio(self, parts: slice | list[int], wholes: slice | list[int] | int, least: float = 0.0, most: float = 1.0) -> Ratio:
        """Each of the functions at `parts` as a share of the one at `wholes`."""
        part, whole = np.arange(len(self.value))[parts], np.broadcast_to(np.arange(len(self.value))[wholes], np.arange(len(self.value))[parts].shape)
        spread = np.diagonal(self.covariance)
        return Ratio.of((self.value[part], self.value[whole], spread[part], self.covariance[part, whole], spread[whole]), self.n, least, most)
