"""k counts with pure noise in the shape of what one record can do to them: the discrete K-norm mechanism of the cube."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.curator.counts.base import LISTED, ColumnCounts, CountsMechanism, NoisyCounts
from local_dp.curator.inversion import Cumulative, exp_minus, invert
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon

_MOST = 1 << 18  # rows of a table
_GUARD = 20  # digits that rounding may eat


@dataclass(frozen=True)
class KNormCounts(CountsMechanism[Pure]):
    """`k` counts plus noise z of Z^k with Pr[z] proportional to e^(-eps max |z_i|).

    Privacy: epsilon, pure and exact: a replaced record moves the counts by a vector of entries -1, 0, 1, and max |z_i| by at most 1.
    Utility: the largest error is r with weight e^(-eps r) ((2r + 1)^k - (2r - 1)^k), about k / eps; if the counts may be of any size no pure mechanism keeps
    within any t more often (`bounds.packing.best_within`). Noise on each count errs by about (k / eps) ln k.
    Cost: z is uniform in the cube [-R, R]^k, R with weight e^(-eps R) (2R + 1)^k, since the sum of e^(-eps R) over R >= r is proportional to e^(-eps r): a
    table of about (k + 12 sqrt(k) + 60) / eps rows, 7 us each, made once; then 40 ns a count. Source: Hardt, Talwar 2010, on the integers.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = (self.k + 12 * math.sqrt(self.k) + 60) / (nano_epsilon(self.epsilon) / NANO)
        if rows > _MOST:
            raise InputError(f"epsilon is {self.epsilon} for {self.k} counts: their noise has about {rows:,.0f} sizes, and at most {_MOST:,} are listed")

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    def noise(self, draws: Draws) -> Counts:
        radius = int(invert(_radius(self.k, self.loss.nano), draws, 1)[0])
        return draws.many_below(2 * radius + 1, self.k) - radius

    def within(self, error: int) -> float:
        return float(self._cumulative[min(error, len(self._cumulative) - 1)])

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        """Of the answers cut to 0..n: beyond, neighbours' laws are in no other ratios. e^eps, which is no fraction, is replaced by one just below it.

        Raises InputError above 2^12 outcomes.
        """
        n, counts = database.size, self._counts(database).tolist()
        if (n + 1) ** self.k > LISTED:
            raise InputError(f"there are {self.k} counts of up to {n} records; a law is listed up to {LISTED:,} outcomes")
        decay = 1 / exp_epsilon(self.loss.nano)
        return whole_weights(
            {NoisyCounts(np.array(told, dtype=np.int64)): _cut_weight(counts, told, n, decay) for told in product(range(n + 1), repeat=self.k)}
        )

    @cached_property
    def _cumulative(self) -> Floats:
        """Pr[max |z_i| <= r] for r = 0, 1, ..., as far as it is below 1 for a float."""
        each = self.loss.epsilon
        r = np.arange(2 + math.ceil((self.k + 12 * math.sqrt(self.k) + 60) / each))
        inside = np.log1p(-((np.maximum(2 * r - 1, 0) / (2 * r + 1)) ** self.k))  # of the cube, what is its surface
        peak = self.k / each
        logs = self.k * np.log((2 * r + 1) / (2 * peak + 1)) + inside - each * (r - peak)
        sums = np.cumsum(np.exp(logs - logs.max()))
        return np.asarray(sums / sums[-1])


@lru_cache(maxsize=16)
def _radius(k: int, nano: int) -> Cumulative:
    """Of R, with weight e^(-eps R) (2R + 1)^k."""

    def cumulative(digits: int) -> list[Decimal]:
        with localcontext() as context:
            context.prec = digits + _GUARD
            decay, least = exp_minus(Fraction(nano, NANO)), Decimal(10) ** -(digits + 2)
            scale, total, sums, radius = Decimal(1), Decimal(0), list[Decimal](), 0
            while True:
                weight = scale * Decimal(2 * radius + 1) ** k
                total += weight
                sums.append(total)
                scale, radius = scale * decay, radius + 1
                ratio = decay * (Decimal(2 * radius + 1) / (2 * radius - 1)) ** k  # of the next weight to this; it falls
                if ratio < 1 and weight * ratio < least * total * (1 - ratio):
                    return [each / total for each in sums]

    return cumulative


def _cut_weight(counts: list[int], told: tuple[int, ...], n: int, decay: Fraction) -> Fraction:
    """The sum over R of decay^R times how many z of the cube [-R, R]^k make `told` of the counts, once cut to 0..n; over (2R + 1)^k it is no probability.

    From R = n on that many are a polynomial in R of degree k at most: sum over R >= n of x^R p(R) = sum over j of (difference j of p at n) x^(n + j) /
    (1 - x)^(j + 1).
    """

    def ways(radius: int) -> int:
        return prod(_ways(count, y, n, radius) for count, y in zip(counts, told, strict=True))

    inside = sum((decay**radius * ways(radius) for radius in range(n)), Fraction(0))
    differences, beyond = [ways(n + step) for step in range(len(counts) + 1)], Fraction(0)
    for j in range(len(counts) + 1):
        beyond += differences[0] * decay ** (n + j) / (1 - decay) ** (j + 1)
        differences = [after - before for before, after in pairwise(differences)]
    return inside + beyond


def _ways(count: int, told: int, n: int, radius: int) -> int:
    """How many whole numbers of [-R, R] make `told` of a count, once cut to 0..n."""
    if told in (0, n):
        return max(0, radius + 1 - abs(told - count))
    return int(abs(told - count) <= radius)
