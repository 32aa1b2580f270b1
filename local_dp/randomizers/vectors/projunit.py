"""ProjUnit: PrivUnit of a random projection of the vector, named by a public coin and computed by a fast transform."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.cube import walsh_hadamard
from local_dp.domains import Vectors, vectors
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.per_coin import Coined
from local_dp.randomizers.randomizer import Evidence
from local_dp.randomizers.vectors.base import signs_of, words_of
from local_dp.randomizers.vectors.privunit import UNIT, PrivUnit, best_cap, on_sphere, turned
from local_dp.tallies import Estimate, Tally

LEAST = 32  # coordinates of a projection: with fewer, its length has another mean than a uniform one's
_ENTRIES = 1 << 15  # of the vectors transformed at a time: they stay in cache
_SHIFT = 4  # bits that squares leave out, so that they add up in 64 bits


@dataclass(frozen=True, kw_only=True)
class ProjUnit(Coined):
    """Projects the vector, filled up to D = 2^l coordinates, onto k random ones, and reports the direction of the projection by PrivUnit in k dimensions.

    The projection is W = S D3 H D2 H D1: signs D1, D2, D3 by the coin, H the Walsh-Hadamard transform, S the sums over k residue classes, scaled to
    orthonormal rows. The server adds up W^T times the reports. A vector of norm r < 1 takes the opposite direction with probability (1 - r) / 2. Privacy:
    PrivUnit's whatever the coin, by the density. Utility: unbiased for k = D, as for d <= 32; else as far as W shortens vectors like a uniform projection:
    within 1e-3 where measured. E||estimate||^2 is `projunit_moment`, about 1 + 1 / (2 k) of PrivUnit's in all dimensions. `k` is D, or a power of two from 32
    on; 0 picks the least within 2 % of the error of D. Cost: 16 k bits; k / 4 + 2 words. Clients take about twice PrivUnit's time, and the server transforms
    each report.
    """

    name: ClassVar[str] = "projunit"
    source: ClassVar[str] = "Asi, Feldman, Nelson, Nguyen, Talwar 2024 (fast ProjUnit)"
    evidence: ClassVar[Evidence] = "density"
    d: int = 3
    steps: int = 1 << 10
    k: int = 0

    def check(self) -> None:
        if self.domain.d < 2:
            raise InputError(f"d is {self.d}; a sphere needs 2 coordinates or more")
        check_whole("k", self.k, 0, self.filled)
        if self.k & (self.k - 1) or 0 < self.k < min(LEAST, self.filled):
            raise InputError(f"k is {self.k}; give a power of two from {min(LEAST, self.filled)} to {self.filled}, or 0 for the best")
        super().check()

    @cached_property
    def domain(self) -> Vectors:
        return vectors("ball", self.d, self.steps)

    @property
    def filled(self) -> int:
        """D."""
        return 1 << (self.d - 1).bit_length()

    @cached_property
    def chosen(self) -> int:
        """k."""
        return self.k or least_projection(self.nano, self.d)

    @cached_property
    def inner(self) -> PrivUnit:
        return PrivUnit(self.epsilon, word_bits=self.word_bits, d=self.chosen)

    def _blocks(self, n: int) -> Iterator[slice]:
        step = max(32, _ENTRIES // self.filled)
        return (slice(start, start + step) for start in range(0, n, step))

    def _signs(self, coins: Words) -> Ints:
        """D1, D2 and D3, shape (3, D, n)."""
        each = -(-self.filled // 64)
        words = words_of(coins, 3 * each)
        return np.stack([signs_of(words[:, first : first + each], self.filled).T for first in range(0, 3 * each, each)])

    def projected(self, rows: Floats, coins: Words) -> Floats:
        """The projections of vectors, shape (n, d) to (n, k)."""
        first, second, third = self._signs(coins)
        filled = np.zeros((self.filled, len(rows)))
        filled[: self.d] = rows.T
        mixed = walsh_hadamard(walsh_hadamard(filled * first) * second) * third
        sums: Floats = mixed.reshape(-1, self.chosen, len(rows)).sum(axis=0).T
        return sums * (math.sqrt(self.chosen / self.filled) / self.filled)

    def _directions(self, rows: Floats, coins: Words) -> Floats:
        """Those of the projections: unit vectors."""
        projected = self.projected(rows, coins)
        norms = np.sqrt((projected**2).sum(axis=1))
        lost = norms < 1e-12
        projected[lost, 0] = 1.0  # nothing is left: any direction will do
        directions: Floats = projected / np.where(lost, 1.0, norms)[:, None]
        return directions

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports: Any = np.empty((len(values), self.chosen), dtype="<i2")
        for some in self._blocks(len(values)):
            towards = turned(values[some].astype(np.float64), words[some, 1], self.steps)
            reports[some] = np.rint(self.inner.points(self._directions(towards, cells[some]), words[some]) * UNIT)
        sent: Words = reports
        return sent

    def possible(self, reports: Words) -> Bools:
        """Points of the sphere, up to their rounding."""
        return self.inner.possible(reports)

    def empty(self) -> Tally:
        return Tally(np.zeros((2, self.d), dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The sums of the coordinates of the reports turned back, and of the squares of their leading parts, shape (2, d): whole numbers, exact."""
        sums = np.zeros((2, self.d), dtype=np.int64)
        for some in self._blocks(len(reports)):
            first, second, third = self._signs(cells[some])
            spread = np.tile(reports[some].T.astype(np.float64), (self.filled // self.chosen, 1)) * third
            turned_back = walsh_hadamard(walsh_hadamard(spread) * second)[: self.d] * first[: self.d]
            told = np.rint(turned_back / self.root).astype(np.int64)
            sums += told.sum(axis=1), ((told >> _SHIFT) ** 2).sum(axis=1)
        return Tally(sums, len(reports))

    @property
    def scale(self) -> float:
        """The factor of a coordinate turned back: 1 / (c m), and the scale of W and of a report."""
        length = mean_length(self.filled, self.chosen) * math.sqrt(self.filled / self.chosen)
        return self.root / (length * self.inner.mean * self.filled * UNIT)

    @property
    def root(self) -> int:
        """A power of two next to the root of D."""
        return 1 << (self.filled.bit_length() - 1) // 2

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, shape (d,)."""
        return on_sphere(Tally(tally.counts * np.array([[1], [1 << 2 * _SHIFT]]), tally.n), self.scale)


def mean_length(filled: int, k: int) -> float:
    """c, the mean length of a uniform projection of a unit vector of D dimensions on k: E sqrt(Beta(k / 2, (D - k) / 2))."""
    if k == filled:
        return 1.0
    return math.exp(math.lgamma((k + 1) / 2) + math.lgamma(filled / 2) - math.lgamma(k / 2) - math.lgamma((filled + 1) / 2))


def projunit_moment(epsilon: float, d: int, k: int) -> float:
    """E||estimate||^2 of one report, over d of D coordinates, of a unit vector, and of others: (s + (d - 1) / (D - 1) (1 - s)) / (c m)^2.

    s = E[h^2] k / D, the mean square along the vector, for h = <v, x> of PrivUnit in k dimensions and a projection of squared length k / D on average.
    """
    filled = 1 << (d - 1).bit_length()
    along, square = _along(epsilon, filled, k)
    return (along + (d - 1) / (filled - 1) * (1 - along)) * square


def projunit_on_axis(epsilon: float, d: int, k: int) -> float:
    """The largest mean square of a coordinate of what one report stands for: s / (c m)^2, along a vector that points there."""
    along, square = _along(epsilon, 1 << (d - 1).bit_length(), k)
    return along * square


def _along(epsilon: float, filled: int, k: int) -> tuple[float, float]:
    """s, and 1 / (c m)^2."""
    cap = best_cap(epsilon, k)
    return cap.square(epsilon, k) * k / filled, 1 / (mean_length(filled, k) * cap.mean(epsilon)) ** 2


@lru_cache(maxsize=1024)
def least_projection(nano: int, d: int) -> int:
    """The least power of two, `LEAST` or more where d allows, within 2 % of the error of no projection."""
    epsilon, filled = nano / NANO, 1 << (d - 1).bit_length()
    whole, k = projunit_moment(epsilon, d, filled), min(LEAST, filled)
    while projunit_moment(epsilon, d, k) > 1.02 * whole:
        k *= 2
    return k
