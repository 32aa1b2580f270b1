"""k counts with pure noise in the shape of a record's influence on them: the discrete K-norm mechanism of the cube."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.curator.counts.laplace import ColumnCounts, CountsMechanism, NoisyCounts
from local_dp.curator.inversion import Cumulative, exp_minus, invert, summed
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, WithinEpsilon
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon

_MOST = 1 << 18  # rows of a table


@dataclass(frozen=True)
class KNormCounts(CountsMechanism[Pure], WithinEpsilon[ColumnCounts, NoisyCounts]):
    """`k` counts plus noise z of Z^k with Pr[z] proportional to e^(-eps max |z_i|).

    Privacy: epsilon, pure and exact: a replaced record moves the counts by a vector of entries -1, 0, 1, and max |z_i| by at most 1.
    Utility: the largest error is r with weight e^(-eps r) ((2r + 1)^k - (2r - 1)^k), about k / eps. For counts of any size no pure mechanism keeps within
    any t more often (`bounds.packing.best_within`). Noise on each count errs by about (k / eps) ln k.
    Cost: z is uniform in the cube [-R, R]^k, R with weight e^(-eps R) (2R + 1)^k. That takes a table of about (k + 12 sqrt(k) + 60) / eps rows, 7 us each,
    made once; then 40 ns a count. Source: Hardt, Talwar 2010, on the integers.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = (self.k + 12 * math.sqrt(self.k) + 60) / self.loss.epsilon
        if rows > _MOST:
            raise InputError(
                f"epsilon is {self.epsilon} for {self.k} counts: the noise has {rows:,.0f} sizes, at most {_MOST:,} are listed; give a larger epsilon"
            )

    def noise(self, draws: Draws) -> Counts:
        radius = int(invert(_radius(self.k, self.loss.nano), draws, 1)[0])
        return draws.many_below(2 * radius + 1, self.k) - radius

    def within(self, error: int) -> float:
        return float(self._cumulative[min(error, len(self._cumulative) - 1)])

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        """The law of the answers cut to 0..n: beyond, neighbours' laws have the ratios of the ends. e^eps is replaced by a fraction just below it.

        Raises InputError above 2^12 outcomes.
        """
        n, counts = database.size, self._listed(database)
        decay = 1 / exp_epsilon(self.loss.nano)
        total = _over_radii(lambda radius: (2 * radius + 1) ** self.k, 0, self.k, decay)
        weights = {cut: _cut_weight(counts, cut, n, decay) / total for cut in product(range(n + 1), repeat=self.k)}
        return whole_weights({NoisyCounts(np.array(cut, dtype=np.int64)): weight for cut, weight in weights.items()})

    @cached_property
    def _cumulative(self) -> Floats:
        """Pr[max |z_i| <= r] for r = 0, 1, ..., while it is below 1 as a float."""
        each = self.loss.epsilon
        r = np.arange(2 + math.ceil((self.k + 12 * math.sqrt(self.k) + 60) / each))
        inside = np.log1p(-((np.maximum(2 * r - 1, 0) / (2 * r + 1)) ** self.k))  # the share of the cube that is its surface
        peak = self.k / each
        logs = self.k * np.log((2 * r + 1) / (2 * peak + 1)) + inside - each * (r - peak)
        sums = np.cumsum(np.exp(logs - logs.max()))
        return np.asarray(sums / sums[-1])


@lru_cache(maxsize=16)
def _radius(k: int, nano: int) -> Cumulative:
    """The law of R, with weight e^(-eps R) (2R + 1)^k."""

    def weights(digits: int) -> Iterator[Decimal]:
        decay, least = exp_minus(Fraction(nano, NANO)), Decimal(10) ** -(digits + 2)
        scale, total, radius, ratio, weight = Decimal(1), Decimal(0), 0, Decimal(1), Decimal(1)
        while ratio >= 1 or weight * ratio >= least * total * (1 - ratio):
            weight = scale * Decimal(2 * radius + 1) ** k
            total += weight
            yield weight
            scale, radius = scale * decay, radius + 1
            ratio = decay * (Decimal(2 * radius + 1) / (2 * radius - 1)) ** k  # of the next weight to this; it falls

    return summed(weights)


def _cut_weight(counts: list[int], cut: tuple[int, ...], n: int, decay: Fraction) -> Fraction:
    """The sum over R of decay^R times the number of z of the cube [-R, R]^k that make these counts `cut`, once cut to 0..n."""

    def ways(radius: int) -> int:
        return prod(_ways(count, y, n, radius) for count, y in zip(counts, cut, strict=True))

    return _over_radii(ways, n, len(counts), decay)


def _over_radii(ways: Callable[[int], int], least: int, degree: int, decay: Fraction) -> Fraction:
    """sum over R of decay^R ways(R), where `ways` is a polynomial of this degree from R = `least` on.

    The sum over R >= n of x^R p(R) is the sum over j of (difference j of p at n) x^(n + j) / (1 - x)^(j + 1).
    """
    total = sum((decay**radius * ways(radius) for radius in range(least)), Fraction(0))
    differences = [ways(least + step) for step in range(degree + 1)]
    for j in range(degree + 1):
        total += differences[0] * decay ** (least + j) / (1 - decay) ** (j + 1)
        differences = [after - before for before, after in pairwise(differences)]
    return total


def _ways(count: int, cut: int, n: int, radius: int) -> int:
    """The number of whole numbers in [-R, R] that make a count `cut`, once cut to 0..n."""
    if cut in (0, n):
        return max(0, radius + 1 - abs(cut - count))
    return int(abs(cut - count) <= radius)
