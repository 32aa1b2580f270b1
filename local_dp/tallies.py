"""Tallies of reports, and estimates from them with their intervals."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_built
from local_dp.errors import InputError

Z95 = 1.959963984540054  # the normal quantile of a 95 % interval
# of the variance of the number of reports with one value: below it the ends of an interval are half
# a report further
FEW = 36
GRID, HALVINGS = 32, 30  # places that are looked at, and how often a step between two is halved
Ends: TypeAlias = tuple[Floats | float, Floats | float]


@dataclass(frozen=True)
class Tally:
    """Whole-number sums over `n` reports, sufficient for the randomizer's estimate. Addition makes
    it a commutative monoid.

    Tallies of parts add up to the tally of the whole. `n` may be left out where every report adds 1
    to one count.
    """

    counts: Counts
    n: int = -1

    def __post_init__(self) -> None:
        if self.n < 0:
            object.__setattr__(self, "n", int(self.counts.sum()))

    @property
    def answered(self) -> int:
        """The number of reports, for an estimator to divide by. Raises InputError if there is
        none."""
        if self.n == 0:
            raise InputError(
                "nobody answered: the tally holds 0 reports and there is nothing to estimate; ask "
                "at least one client of every cohort"
            )
        return self.n

    @property
    def weights(self) -> Floats:
        """The counts as weights of logarithms. Raises InputError without reports, which favour no
        hypothesis."""
        check_built(self.answered)
        return self.counts.astype(np.float64)

    def __add__(self, other: "Tally") -> "Tally":
        if self.counts.shape != other.counts.shape:
            raise InputError(
                f"tallies of shapes {self.counts.shape} and {other.counts.shape} come from "
                "different randomizers; add like to like"
            )
        return Tally(self.counts + other.counts, self.n + other.n)


class Possible(NamedTuple):
    """The least and the greatest value of each number. With `wholes` the numbers from 0 on, and
    from each of these places on, are disjoint parts: together at most `most`."""

    least: Floats | float = -np.inf
    most: Floats | float = np.inf
    wholes: tuple[int, ...] | None = None

    def nearest(self, value: Floats) -> Floats:
        """Each number moved to the nearest possible one. Parts of a whole that exceed it stay from
        the largest on, and the others share nothing but the rest.

        So large parts stay unbiased, and small ones, mostly noise, become 0 (Norm-Cut: Wang et al.
        2020). Parts add up to the whole up to its 10^-9.
        """
        inside = np.clip(value, *self[:2])
        for parts in () if self.wholes is None else np.split(np.atleast_1d(inside), self.wholes):
            order = np.argsort(-parts, kind="stable")
            before = np.cumsum(parts[order]) - parts[order]
            rest = np.maximum(self.most * (1 + 1e-9) - before, 0)
            parts[order] = np.minimum(parts[order], rest)
        return inside

    def interval(self, value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The possible part of an interval, and where there is none half of its width beside the
        nearest possible value; it has the moved `value`."""
        half = (high - low) / 2
        low_end = np.clip(np.where(low > self.most, self.most - half, low), *self[:2])
        high_end = np.clip(np.where(high < self.least, self.least + half, high), *self[:2])
        return np.fmin(low_end, value), np.fmax(high_end, value)


ANY = Possible()  # any number


@dataclass(frozen=True)
class Estimate:
    """A value (scalar or vector), its standard error and its number of reports.

    The truth is the mean of the distribution of the clients: error and interval include sampling
    and privacy noise. For a table whose every row answered, the interval covers its own mean more
    often than stated. `ends` (a, b), where known, are two values of a report with variance (b -
    f)(f - a) at the truth f. `sample` (l, h): the truth is the mean of the clients' own values, so
    that error and interval leave out the variance (h - f)(f - l) of the sample.
    """

    value: Floats
    standard_error: Floats
    n: int
    ends: Ends | None = None
    sample: Ends | None = field(default=None, kw_only=True)

    @classmethod
    def between(cls, ends: Ends, value: Floats | float, n: int, least: float = 0.0) -> Self:
        """An estimate with known variance for each truth from `least` to 1. A value beyond is noise
        and must not make the error look small."""
        place = np.maximum(value, least)
        # in place: of millions of coordinates, every array is paid for page by page
        spare = place if isinstance(place, np.ndarray) else None
        place = np.minimum(place, 1.0, out=spare)  # of one number, several times as fast as np.clip
        variance = ends[1] - place
        place -= ends[0]
        variance *= place
        variance /= n
        variance = np.maximum(variance, 0.0, out=spare)
        return cls(np.asarray(value), np.sqrt(variance, out=spare), n, ends)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """A confidence interval for each coordinate, 95 % by default: Wilson's where `ends` are
        known; else the normal one with Student's correction.

        With known ends it covers any truth in 94 % of runs or more, whatever n is. Source: Wilson
        1927; with few reports Newcombe 1998, method 4.
        """
        if self.ends is not None:
            if self.sample is not None:
                return noise_interval(self.value, self.ends, self.sample, self.n, z)
            return score_interval(self.value, self.ends, self.n, z, whole=True)
        return self.around(self.value, self.value, self.standard_error, z)

    def around(self, low: Floats, high: Floats, error: Floats, z: float) -> tuple[Floats, Floats]:
        """The normal interval with Student's correction, from one end and the other of the value;
        the whole line where there is none."""
        # Student's quantile to order 1/n: the error was measured from the same reports
        half = z * (1 + (z**2 + 3) / (4 * self.n)) * error
        missing = np.isnan(self.value)
        return np.where(missing, -np.inf, low - half), np.where(missing, np.inf, high + half)

    def at(self, place: int) -> "Estimate":
        """One coordinate of a vector."""
        ends = (
            None
            if self.ends is None
            else tuple(np.broadcast_to(end, self.value.shape)[place] for end in self.ends)
        )
        error = self.standard_error[place]
        return Estimate(self.value[place], error, self.n, ends, sample=self.sample)

    def within(self, possible: Possible) -> "Estimate":
        """The estimate moved to the nearest possible value, its interval cut there; no longer
        unbiased."""
        if possible is ANY:
            return self
        value = possible.nearest(self.value)
        return Within(value, self.standard_error, self.n, self.ends, raw=self, possible=possible)

    def on_scale(self, low: Floats | float, high: Floats | float) -> "Estimate":
        """The same estimate after 0 is moved to `low` and 1 to `high`: numbers, or one for each
        coordinate."""
        width = high - low
        ends, sample = (
            None if pair is None else (low + width * pair[0], low + width * pair[1])
            for pair in (self.ends, self.sample)
        )
        error = width * self.standard_error
        return Estimate(low + width * self.value, error, self.n, ends, sample=sample)

    @property
    def of_sample(self) -> "Estimate":
        """The same estimate of a share, of the clients' own values: the error is that of the noise.
        Where the `ends` of a report are not known, it stays: its interval holds too."""
        if self.ends is None:
            return self
        share = np.clip(self.value, 0.0, 1.0)
        spread = (self.ends[1] - share) * (share - self.ends[0]) - share * (1 - share)
        error = np.sqrt(np.maximum(spread, 0.0) / self.n)
        return replace(self, standard_error=error, sample=(0.0, 1.0))


@dataclass(frozen=True)
class Within(Estimate):
    """A possible estimate. Its interval covers whenever the raw one does."""

    raw: Estimate = field(kw_only=True)
    possible: Possible = field(kw_only=True)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        return self.possible.interval(self.value, *self.raw.interval(z))


@dataclass(frozen=True)
class Steadied(Estimate):
    """Sums of means of reports whose spread the reports themselves show, with an interval that has
    width also where all of them agree.

    It is that of four reports more, two at either end of what one can stand for, moved outwards
    only: `steady` has their mean and its variance, shape (2, m). Source: Agresti, Coull 1998.
    """

    steady: Floats = field(kw_only=True)

    @classmethod
    def of(cls, value: Floats, variance: Floats, n: int, steady: Floats) -> Self:
        return cls(value, np.sqrt(np.maximum(variance, 0.0)), n, steady=steady)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        centre, variance = self.steady
        low = np.minimum(self.value, centre)
        high = np.maximum(self.value, centre)
        return self.around(low, high, np.sqrt(variance), z)

    def on_scale(self, low: Floats | float, high: Floats | float) -> "Steadied":
        width = high - low
        values = low + width * self.steady[0]
        variances = width**2 * self.steady[1]
        steady = np.stack([values, variances])
        return replace(
            self,
            value=low + width * self.value,
            standard_error=width * self.standard_error,
            steady=steady,
        )


def steadied(mean: Floats, square: Floats, ends: Ends, n: Counts | int) -> Floats:
    """`Steadied.steady` of means of n reports between `ends`, from their mean and mean square;
    shape (2, m)."""
    low, high = ends
    centre = (n * mean + 2 * (low + high)) / (n + 4)
    mean_square = (n * square + 2 * (low**2 + high**2)) / (n + 4)
    spread = np.maximum(mean_square - centre**2, 0.0)
    return np.stack([centre, spread / (n + 4)])


def score_interval(
    value: Floats | float, ends: Ends, n: int, z: float = Z95, *, whole: bool = False
) -> tuple[Floats, Floats]:
    """Every f for which a mean of n reports with variance (b - f)(f - a) / n lies within z standard
    errors of `value`: Wilson's interval if a = 0, b = 1.

    The standard error is that at f, not at the estimate. So the interval is asymmetric, has width
    at either end, and keeps its level for small n. With `whole`, half a report more is allowed
    where the variance of the number of reports with one value is below 36: that number is whole.
    """
    centre = (ends[0] + ends[1]) / 2
    reach = (ends[1] - ends[0]) / 2
    away = np.asarray(value - centre)
    shrink = 1 + z**2 / n
    variance = n * (reach**2 - away**2)
    few = whole & (variance < 4 * FEW * reach**2)
    low, high = (
        centre
        + (far + side * z * np.sqrt(np.maximum((shrink * reach**2 - far**2) / n, 0.0))) / shrink
        for side, far in ((-1, away - few * reach / n), (1, away + few * reach / n))
    )
    edge = reach * (1 - 0.5 / n)  # beyond it all reports have one value, which no truth excludes
    low_end = np.where(few & (away < -edge), np.minimum(low, ends[0]), low)
    high_end = np.where(few & (away > edge), np.maximum(high, ends[1]), high)
    return low_end, high_end


def noise_interval(
    value: Floats, ends: Ends, sample: Ends, n: int, z: float
) -> tuple[Floats, Floats]:
    """As `score_interval`, but of the mean of the n clients' own values: of the variance (b - f)(f
    - a) less (h - f)(f - l), which is linear in f; half a report more for few."""
    (low, high), (least, most) = ends, sample
    slope = low + high - least - most
    constant = least * most - low * high
    step = high - low

    def variance(at: Floats) -> Floats:
        return np.asarray(np.maximum(constant + slope * at, 0.0))

    few = n * variance(np.clip(value, least, most)) < FEW * step**2
    bounds = []
    for side in (-1, 1):
        start = value + side * few * step / (2 * n)
        shift = z**2 * slope / (2 * n)
        bounds.append(start + shift + side * np.sqrt(z**2 * variance(start) / n + shift**2))
    return np.asarray(bounds[0]), np.asarray(bounds[1])


def exact_interval(value: Floats, ends: Ends, n: int, z: float) -> tuple[Floats, Floats]:
    """Every f for which n two-valued reports of mean f reach `value`, on either side, with more
    than the probability of a normal variable beyond z.

    At most: each side misses no more than Pr[N(0, 1) > z], for every n, f and z, also far out where
    `score_interval` misses too often. With x a number of reports, Pr[X >= x] <= Pr[N(0, 1) > r] for
    p below (x - 1) / n, r^2 = 2 n KL((x - 1) / n, p); so for X <= x with x + 1. Source: Zubkov,
    Serov 2013.
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in ends)
    reports = np.rint(n * (value - low) / (high - low))
    bounds = []
    below = np.maximum(reports - 1, 0)
    above = np.minimum(reports + 1, n)
    for edge, last in ((below / n, 0.0), (above / n, 1.0)):
        beyond = np.full(edge.shape, last)
        within = edge
        for _ in range(HALVINGS + 20):
            middle = (beyond + within) / 2
            near = 2 * n * divergence(edge, middle) <= z * z
            beyond = np.where(near, beyond, middle)
            within = np.where(near, middle, within)
        edge_share = np.where((edge == 0) | (edge == 1), last, beyond)
        bounds.append(low + (high - low) * edge_share)
    return bounds[0], bounds[1]


def divergence(p: Floats, q: Floats) -> Floats:
    """KL(p, q) of two coins, for q between p and an end."""
    with np.errstate(all="ignore"):
        parts = [
            np.where(part > 0, part * np.log(part / other), 0.0)
            for part, other in ((p, q), (1 - p, 1 - q))
        ]
    return np.where((p == q), 0.0, parts[0] + parts[1])


@dataclass(frozen=True)
class OneReport:
    """What one report adds to a quotient's numerator and denominator, by the kind of its client: in
    the part, in the rest of the whole, outside.

    `squares` are the mean products of the two, shape (3, 2, 2); `step` is how far apart two reports
    can be.
    """

    squares: Floats
    step: float

    def variance(self, share: Floats, whole: Floats) -> Floats:
        """n times the variance of a - share b where `whole` of all clients are in the whole, and
        `share` of these in the part."""
        part, rest, outside = (
            kind[0, 0] - 2 * share * kind[0, 1] + share**2 * kind[1, 1] for kind in self.squares
        )
        inside = np.clip(whole, 0.0, 1.0)
        spread = inside * (share * part + (1 - share) * rest)
        return np.asarray(np.maximum(spread + (1 - inside) * outside, 0.0))


@dataclass(frozen=True)
class Ratio(Estimate):
    """The quotient of two shares of one law, from the same reports, with an interval inside
    [`least`, `most`].

    `moments` are numerator a, denominator b, and their variances and covariance (a, b, aa, ab, bb),
    each of the quotient's shape. The interval contains every t for which a - t b is within z of its
    standard errors of 0: for part and whole of known reports (`each`) by the law at t, with half a
    report more, so it has width where all reports agree; else by the moments. It is the whole range
    where b might be 0; for b <= 0 the value is NaN. Source: Fieller 1954; score interval:
    Miettinen, Nurminen 1985.
    """

    moments: tuple[Floats, ...] = ()
    least: Floats | float = -np.inf
    most: Floats | float = np.inf
    each: OneReport | None = None
    # the value and the interval are of the quotient times the second plus the first
    scale: tuple[Floats | float, Floats | float] = (0.0, 1.0)

    @classmethod
    def of(
        cls,
        moments: tuple[Floats, ...],
        n: int,
        least: Floats | float,
        most: Floats | float,
        each: OneReport | None = None,
    ) -> Self:
        """The quotient with its standard error by linear approximation."""
        a, b, aa, ab, bb = np.broadcast_arrays(*moments)
        with np.errstate(all="ignore"):
            value = np.where(b > 0, a / b, np.nan)
            if each is None:
                variance = aa - 2 * value * ab + value**2 * bb
            else:
                variance = each.variance(np.clip(value, 0.0, 1.0), b) / n
            error = np.sqrt(np.maximum(variance, 0.0)) / b
        spread = np.where(b > 0, error, np.nan)
        return cls(value, spread, n, None, (a, b, aa, ab, bb), least, most, each)

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """The interval, cut to the range."""
        (low, high) = self._fieller(z) if self.each is None else self._by_law(self.each, z)
        (shift, width) = self.scale
        return shift + width * low, shift + width * high

    def _fieller(self, z: float) -> tuple[Floats, Floats]:
        a, b, aa, ab, bb = self.moments
        square = b**2 - z**2 * bb
        half = a * b - z**2 * ab
        rest = a**2 - z**2 * aa
        certain = (square > 0) & (b > 0)
        with np.errstate(all="ignore"):
            reach = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
            low = (half - reach) / square
            high = (half + reach) / square
        low_end = np.clip(low, self.least, self.most)
        high_end = np.clip(high, self.least, self.most)
        return np.where(certain, low_end, self.least), np.where(certain, high_end, self.most)

    def _by_law(self, each: OneReport, z: float) -> tuple[Floats, Floats]:
        """From the first to the last share that is not excluded: on a grid and at the estimate,
        then halved to full precision."""
        a, b = self.moments[:2]

        def beyond(share: Floats) -> Floats:
            """How many standard errors the reports are from what this share would give."""
            gap = np.abs(a - share * b) - each.step / (2 * self.n)
            variance = np.maximum(each.variance(share, b), 1e-300)
            return np.asarray(gap / np.sqrt(variance / self.n))

        grid = np.linspace(0.0, 1.0, GRID + 1).reshape(-1, *[1] * a.ndim)
        shares = np.broadcast_to(grid, (GRID + 1, *a.shape))
        if np.any(b > 0):
            with np.errstate(all="ignore"):
                estimate = np.where(b > 0, np.clip(a / b, 0.0, 1.0), 0.0)
                shares = np.concatenate([shares, estimate[None]])
        away = beyond(shares)
        # where every share is excluded, z further than the nearest
        reach = np.where(away.min(axis=0) <= z, z, away.min(axis=0) + z)
        inside = away <= reach
        first = np.where(inside, shares, np.inf).min(axis=0)
        last = np.where(inside, shares, -np.inf).max(axis=0)
        within = np.stack([first, last])
        steps = np.reshape([-1, 1], (2, *[1] * a.ndim))
        outside = np.clip(within + steps / GRID, 0.0, 1.0)
        for _ in range(HALVINGS):
            middle = (within + outside) / 2
            near = beyond(middle) <= reach
            within = np.where(near, middle, within)
            outside = np.where(near, outside, middle)
        return within[0], within[1]

    def at(self, place: int | Ints) -> "Ratio":
        moments = tuple(part[place] for part in self.moments)
        return replace(
            self,
            value=self.value[place],
            standard_error=self.standard_error[place],
            moments=moments,
        )

    def on_scale(self, low: Floats | float, high: Floats | float) -> "Ratio":
        width = high - low
        (shift, scale) = self.scale
        shifted_value = low + width * self.value
        return replace(
            self,
            value=shifted_value,
            standard_error=width * self.standard_error,
            scale=(low + width * shift, width * scale),
        )


@dataclass(frozen=True)
class Joint:
    """Unbiased estimates of several linear functions of one law from the same n reports: values
    (m,), and their covariance (m, m).

    `ends` are the least and the greatest value of one report; None where they are not known, and
    some reports always differ.
    """

    value: Floats
    covariance: Floats
    n: int
    ends: Ends | None = None

    @property
    def variance(self) -> Floats:
        return np.diagonal(self.covariance)

    @property
    def terms(self) -> tuple[Floats, Floats]:
        """What adds up over independent reports: values and, as in `Steadied`, centres; variances
        and steady ones; each of shape (2, m)."""
        own = np.stack([self.value, self.variance])
        if self.ends is None:
            steady = own
        else:
            square = self.n * self.variance
            steady = steadied(self.value, square + self.value**2, self.ends, self.n)
        return np.stack([own[0], steady[0]]), np.stack([own[1], steady[1]])

    def ratio(
        self,
        parts: slice | list[int],
        wholes: slice | list[int] | int,
        least: float = 0.0,
        most: float = 1.0,
        each: OneReport | None = None,
    ) -> Ratio:
        """Each of the functions at `parts` as a share of the one at `wholes`."""
        places = np.arange(len(self.value))
        part = places[parts]
        whole = np.broadcast_to(places[wholes], part.shape)
        spread = self.variance
        share = self.covariance[part, whole]
        moments = (self.value[part], self.value[whole], spread[part], share, spread[whole])
        return Ratio.of(moments, self.n, least, most, each)
