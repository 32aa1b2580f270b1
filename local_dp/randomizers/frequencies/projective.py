"""Projective geometry response: a report is a point, more often one on the hyperplane of the
client's symbol."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.domains import symbols
from local_dp.loss import exp_epsilon
from local_dp.randomizers.frequencies.base import EvenDesign, TwoWeights
from local_dp.randomizers.frequencies.local_hashing import prime_power, recurring
from local_dp.randomizers.frequencies.subset_selection import total_variance

MAX_POINTS = 1 << 16  # so many that a client can enumerate the channel


@dataclass(frozen=True, kw_only=True)
class PGR(TwoWeights, EvenDesign):
    """Reports one of the K >= k points of a projective geometry over the field of order g: e^eps
    times as likely one on the symbol's hyperplane.

    Points and hyperplanes are numbered along a Singer cycle: y is on the hyperplane of v where y +
    v modulo K is in a set D of w differences. So a client draws a difference, and the server
    decodes by one cyclic correlation. Every two hyperplanes share equally many points. Privacy: T /
    s <= e^eps. Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q), p
    = w T / 2^m, q = (w - p) / (K - 1) (`bounds.frequencies.subset_variance`), for a rare symbol 4
    e^eps / (e^eps - 1)^2 / n at g = e^eps + 1 and large k. Cost: log2 K bits, one word; decoding
    O(n + K log K), exact up to 10^12 reports. K = k and w = 1, k-ary randomized response, where
    that is better. 2 <= k <= 4096; K <= 2^16.
    """

    name = "pgr"
    summary = "Reports a point of a projective geometry near the symbol"
    source = "Feldman, Nelson, Nguyen, Talwar 2022; the cycle: Singer 1938"

    @property
    def _geometry(self) -> tuple[int, int]:
        """g and t, the geometry of the vectors of length t; (k, 2) stands for single points."""
        return best_geometry(self.nano, symbols(self.k).size)

    @cached_property
    def differences(self) -> Counts:
        """D, shape (w,)."""
        g, t = self._geometry
        if t > 2:
            return np.flatnonzero(recurring(g, t, points(g, t)) == 0)
        return np.zeros(1, dtype=np.int64)

    @cached_property
    def alphabet(self) -> int:
        """K."""
        g, t = self._geometry
        return points(g, t) if t > 2 else self.k

    @property
    def w(self) -> int:
        return len(self.differences)

    @cached_property
    def _order(self) -> Counts:
        """Every difference, those of D first."""
        return np.concatenate(
            [self.differences, np.setdiff1d(np.arange(self.alphabet), self.differences)]
        )

    @cached_property
    def _place(self) -> Counts:
        return np.argsort(self._order)

    def report(self, values: Ints, ranks: Ints) -> Ints:
        away = self._order[ranks] - values
        return np.where(away < 0, away + self.alphabet, away)

    def rank(self, values: Ints, reports: Ints) -> Ints:
        return np.asarray(self._place[(reports + values) % self.alphabet])

    @property
    def sets(self) -> tuple[int, int]:
        return self.alphabet, self.w

    def _correlation(self, counts: Floats, size: int) -> Floats:
        """For j = 0..kept-1, the sum of held[d - j] over the differences d of D, along the last
        axis."""
        inside = np.bincount(self.differences, minlength=self.alphabet).astype(np.float64)
        sums: Floats = np.fft.irfft(
            np.fft.rfft(inside) * np.fft.rfft(counts, self.alphabet).conj(), self.alphabet
        )
        return sums[..., :size]

    def support(self, counts: Counts) -> Counts:
        return np.rint(self._correlation(counts[..., 0, :].astype(np.float64), self.k)).astype(
            np.int64
        )

    def gathered(self, weights: Floats) -> Floats:
        return self._correlation(weights, self.alphabet)[:, None, :]


def points(g: int, t: int) -> int:
    """The points of the projective geometry of the vectors of length t over the field of order
    g."""
    return int((g**t - 1) // (g - 1))


@lru_cache(maxsize=1024)
def best_geometry(nano: int, k: int) -> tuple[int, int]:
    """g and t of least total variance at the uniform law: t the least with k points, and (k, 2) for
    single points."""
    growth, sets = Fraction(float(exp_epsilon(nano))), {(k, 2): (k, 1)}
    for g in range(2, min(k, int(2 * growth) + 6)):
        t = 3
        while points(g, t) < k:
            t += 1
        if prime_power(g) and points(g, t) <= MAX_POINTS:
            sets[g, t] = points(g, t), points(g, t - 1)
    return min(sets, key=lambda each: total_variance(growth, *sets[each], k))
