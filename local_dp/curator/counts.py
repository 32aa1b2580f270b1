"""k counts of the same records, of which one record may change all: pure noise in the shape of the
cube, noise on each count, normal noise."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod
from typing import Self

import numpy as np

from local_dp.accounting.losses import DiscreteGaussian
from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.inversion import (
    MOST_VARIANCE,
    Cumulative,
    discrete_laplaces,
    exp_minus,
    invert,
    least_variance,
    rounded_normals,
    signed,
    summed,
)
from local_dp.curator.mechanism import (
    L_co,
    Law,
    Mechanism,
    WithinDelta,
    WithinEpsilon,
    check_listed,
    independent,
    whole_weights,
)
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, exp_epsilon
from local_dp.optimise import least_clients

MAX_COUNTS = 1 << 16
LISTED = 1 << 12  # outcomes of a law


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The number of n = `size` records with each of k properties: shape (k,), each 0..n. n is
    public; a replaced record moves each count by at most 1."""

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
    """`k` counts plus whole noise, whose law does not depend on the counts; so neither does that of
    the largest error."""

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
            raise InputError(
                f"there are {len(database.counts)} counts and the mechanism is for {self.k}; give "
                "one number for both"
            )
        return database.counts


def check_small(k: int, most: int) -> None:
    """Raises InputError above 2^12 outcomes: k counts cut to 0..`most`."""
    check_listed(f"{k} counts of up to {most} records", (most + 1) ** k, LISTED, " outcomes")


def cut_law(counts: Counts, step: Fraction, most: int) -> Law[NoisyCounts]:
    """The law of counts with discrete Laplace noise of `step` nano-nats, cut to 0..`most`: beyond,
    the ratios are those of the ends. Raises InputError above 2^12 outcomes."""
    check_small(len(counts), most)
    noise = ClippedLaplace(step.numerator, step.denominator, most)
    laws = [noise.law(count) for count in counts.tolist()]
    return {NoisyCounts(np.array(cut, dtype=np.int64)): weight for cut, weight in independent(laws)}


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
        beyond = 2 * math.exp(-each * (error + 1)) / (1 + math.exp(-each))
        return math.exp(self.k * math.log1p(-beyond))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        return cut_law(self._counts(database), self.step, database.size)


@dataclass(frozen=True)
class LaplaceCounts(NoiseOnEach[Pure], WithinEpsilon[ColumnCounts, NoisyCounts]):
    """`k` counts, each with discrete Laplace noise of eps / k.

    Privacy: epsilon, pure and exact: a replaced record moves each count by at most 1, and the
    losses add up. Utility: a largest error of about (k / eps) ln(1.44 k). Cost: 40 ns a count.
    """

    summary = "Releases counts with discrete Laplace noise"

    @property
    def step(self) -> Fraction:
        return Fraction(self.loss.nano, self.k)


@dataclass(frozen=True)
class ComposedLaplaceCounts(NoiseOnEach[Approximate], WithinDelta[ColumnCounts, NoisyCounts]):
    """`k` counts, each with the least discrete Laplace noise that keeps all of them within (eps,
    delta).

    Privacy: (eps, delta), exact: a count that moves by 1 loses exactly +-e, so k of them lose the
    binomial curve (`accounting.rules.optimal_part`). Utility: a largest error of about ln(1.44 k)
    sqrt(2 k ln(1 / delta)) / eps. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """

    summary = "Releases counts with the least discrete Laplace noise"
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

    Privacy: 0. Utility: off by at most n / 2, rounded up, and by that much where no record or every
    record has some property.
    """

    summary = "Releases half of the records as every count"

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        return {NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64)): 1}


_MOST = 1 << 18  # rows of a table


@dataclass(frozen=True)
class KNormCounts(CountsMechanism[Pure], WithinEpsilon[ColumnCounts, NoisyCounts]):
    """`k` counts plus noise z of Z^k with Pr[z] proportional to e^(-eps max |z_i|).

    Privacy: epsilon, pure and exact: a replaced record moves the counts by a vector of entries -1,
    0, 1, and max |z_i| by at most 1. Utility: the largest error is r with weight e^(-eps r) ((2r +
    1)^k - (2r - 1)^k), about k / eps. For counts of any size no pure mechanism with whole answers
    keeps within a whole t more often (`bounds.packing.best_within`). Cost: z is uniform in the cube
    [-R, R]^k, R with weight e^(-eps R) (2R + 1)^k. That takes a table of about (k + 12 sqrt(k) +
    60) / eps rows, 7 us each, made once; then 40 ns a count. Source: Hardt, Talwar 2010, on the
    integers.
    """

    summary = "Releases counts with noise for their largest change"
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._rows > _MOST:
            raise InputError(
                f"epsilon is {self.epsilon} for {self.k} counts: give a larger epsilon, for noise "
                f"of {_MOST:,} sizes, not {self._rows:,.0f}"
            )

    @property
    def _rows(self) -> float:
        return (self.k + 12 * math.sqrt(self.k) + 60) / self.loss.epsilon

    def noise(self, draws: Draws) -> Counts:
        radius = int(invert(_radius(self.k, self.loss.nano), draws, 1)[0])
        return draws.many_below(2 * radius + 1, self.k) - radius

    def within(self, error: int) -> float:
        return float(self._cumulative[min(error, len(self._cumulative) - 1)])

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        """The law of the answers cut to 0..n; e^eps is replaced by a fraction just below it. Raises
        InputError above 2^12 outcomes."""
        n, counts = database.size, self._counts(database).tolist()
        check_small(self.k, n)
        decay = 1 / exp_epsilon(self.loss.nano)
        total = _over_radii(lambda radius: (2 * radius + 1) ** self.k, 0, self.k, decay)
        weights = {
            cut: _cut_weight(counts, cut, n, decay) / total
            for cut in product(range(n + 1), repeat=self.k)
        }
        return whole_weights(
            {NoisyCounts(np.array(cut, dtype=np.int64)): weight for cut, weight in weights.items()}
        )

    @cached_property
    def _cumulative(self) -> Floats:
        """Pr[max |z_i| <= r] for r = 0, 1, ..., while it is below 1 as a float."""
        each = self.loss.epsilon
        r = np.arange(2 + math.ceil(self._rows))
        # the share of the cube that is its surface
        inside = np.log1p(-((np.maximum(2 * r - 1, 0) / (2 * r + 1)) ** self.k))
        peak = self.k / each
        sizes = self.k * np.log((2 * r + 1) / (2 * peak + 1))
        logs = sizes + inside - each * (r - peak)
        sums = np.cumsum(np.exp(logs - logs.max()))
        return np.asarray(sums / sums[-1])


@lru_cache(maxsize=16)
def _radius(k: int, nano: int) -> Cumulative:

    def weights(digits: int) -> Iterator[Decimal]:
        decay, least = exp_minus(Fraction(nano, NANO)), Decimal(10) ** -(digits + 2)
        scale, total, radius, ratio, weight = Decimal(1), Decimal(0), 0, Decimal(1), Decimal(1)
        while ratio >= 1 or weight * ratio >= least * total * (1 - ratio):
            weight = scale * Decimal(2 * radius + 1) ** k
            total += weight
            yield weight
            scale, radius = scale * decay, radius + 1
            # of the next weight to this; it falls
            ratio = decay * (Decimal(2 * radius + 1) / (2 * radius - 1)) ** k

    return summed(weights)


def _cut_weight(counts: list[int], cut: tuple[int, ...], n: int, decay: Fraction) -> Fraction:
    """The sum over R of decay^R times the number of z of the cube [-R, R]^k that make these counts
    `cut`, once cut to 0..n."""

    moves = [(y in (0, n), abs(y - count)) for count, y in zip(counts, cut, strict=True)]

    def ways(radius: int) -> int:
        return prod(
            max(0, radius + 1 - away) if at_end else int(away <= radius) for at_end, away in moves
        )

    return _over_radii(ways, n, len(counts), decay)


def _over_radii(ways: Callable[[int], int], least: int, degree: int, decay: Fraction) -> Fraction:
    """sum over R of decay^R ways(R), where `ways` is a polynomial of this degree from R = `least`
    on.

    The sum over R >= n of x^R p(R) is the sum over j of (difference j of p at n) x^(n + j) / (1 -
    x)^(j + 1).
    """
    total = sum((decay**radius * ways(radius) for radius in range(least)), Fraction(0))
    differences = [ways(least + step) for step in range(degree + 1)]
    for j in range(degree + 1):
        total += differences[0] * decay ** (least + j) / (1 - decay) ** (j + 1)
        differences = [after - before for before, after in pairwise(differences)]
    return total


@dataclass(frozen=True)
class DiscreteGaussianCounts(CountsMechanism[Concentrated]):
    """`k` counts, each with noise y of weight e^(-y^2 / (2 V)), V = k / (2 rho).

    Privacy: rho-zCDP. With a delta, exactly the composition of k `parts`: a record that moves all
    counts by 1 is the worst. Utility: as `GaussianCounts` of the same V, whose (eps, delta) has a
    closed form. Cost: a table of 11 sqrt(V) rows, made once; then 30 ns a count. Source: Canonne,
    Kamath, Steinke 2020, Theorem 4.
    """

    summary = "Releases counts with discrete normal noise"
    rho: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1e-9 <= self.rho <= 1e3 or self.variance > MOST_VARIANCE:  # also false for NaN
            raise InputError(
                f"rho is {self.rho} for {self.k} counts; give a number from 1e-9 to 1,000, and a "
                "variance k / (2 rho) of at most 2^36"
            )

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
        return {DiscreteGaussian(math.ceil(ATTO / self.variance)): self.k}

    def noise(self, draws: Draws) -> Counts:
        return signed(_sizes(self.variance), draws, self.k)

    def within(self, error: int) -> float:
        return float(self._cumulative[min(error, len(self._cumulative) - 1)]) ** self.k

    @cached_property
    def _cumulative(self) -> Floats:
        """Pr[|y| <= 0], Pr[|y| <= 1], ... of one count, while it is below 1 as a float."""
        y = np.arange(math.ceil(12 * math.sqrt(self.variance)) + 2)
        weights = np.exp(-(y**2) / (2 * float(self.variance)))
        sums = np.cumsum(weights * np.where(y > 0, 2, 1))
        return np.asarray(sums / sums[-1])


@lru_cache(maxsize=4)
def _sizes(variance: Fraction) -> Cumulative:
    """The law of |y|: weight 1 for 0 and twice e^(-y^2 / (2 V)) for the others, summed and divided
    by their sum."""

    def weights(digits: int) -> Iterator[Decimal]:
        decay = exp_minus(1 / (2 * variance))
        weight, ratio, least = Decimal(1), decay, Decimal(10) ** -(digits + 2)
        yield weight
        # the rest is less than sqrt(V) of it, and the division takes that away
        while weight > least:
            weight, ratio = weight * ratio, ratio * decay * decay
            yield 2 * weight

    return summed(weights)


@dataclass(frozen=True)
class GaussianCounts(CountsMechanism[Approximate], WithinDelta[ColumnCounts, NoisyCounts]):
    """`k` counts, each with round(N(0, V)), V the least whole number that keeps to (eps, delta).

    Privacy: (eps, delta), in closed form: a replaced record moves the counts by at most sqrt(k) in
    L2, and the answer is that of a Gaussian mechanism, rounded. Utility: a largest error of about
    sqrt(V 2 ln k), V proportional to k. Cost: a table of 11 sqrt(V) rows, made once; then 30 ns a
    count.
    """

    summary = "Releases counts with rounded normal noise"
    epsilon: float
    delta: float

    @cached_property
    def variance(self) -> int:
        return least_variance(self.k, self.loss)

    def noise(self, draws: Draws) -> Counts:
        return rounded_normals(draws, self.variance, self.k)

    def within(self, error: int) -> float:
        beyond = math.erfc((error + 0.5) / math.sqrt(2 * self.variance))
        return math.exp(self.k * math.log1p(-beyond))
