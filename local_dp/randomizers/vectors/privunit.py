"""PrivUnit: a point of the sphere, from a cap about the vector or from the rest; and ProjUnit, the
same of a random projection. Proved from a density."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.cube import walsh_hadamard
from local_dp.domains import Vectors, vectors
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.optimise import lowest
from local_dp.randomizers.places import Coined
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.vectors.base import (
    COIN,
    normal_means,
    of_moment,
    of_moments,
    pieces_of,
    signs_of,
    turns,
    words_of,
)
from local_dp.tallies import Estimate, Tally

UNIT = 1 << 14  # a coordinate of 1 in a report
_BLOCK = 1 << 9  # clients at a time
_SLACK = 1e-9  # nats kept back for the rounding of the cap's share
_HEIGHT = 44  # bits that decide how near to the vector, within the cap or the rest


@dataclass(frozen=True)
class Cap:
    """The cap {v: <v, x> >= height} of the unit sphere in d dimensions: its share q of the sphere,
    and the integral of <v, x> over it."""

    height: float
    share: float
    inside: float

    @classmethod
    def of(cls, d: int, height: float) -> "Cap":
        from scipy.special import betainc

        rest = 1 - height**2
        share = float(betainc((d - 1) / 2, 0.5, rest)) / 2
        scale = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) + (d - 1) / 2 * math.log(rest)
        return cls(height, share, math.exp(scale) / (math.sqrt(math.pi) * (d - 1)))

    def chosen(self, epsilon: float) -> float:
        """The probability of the cap at which its points are e^eps times as likely as the others: E
        q / (E q + 1 - q)."""
        return self.share * math.exp(epsilon) / (self.share * math.expm1(epsilon) + 1)

    def mean(self, epsilon: float) -> float:
        """m, the mean of <v, x> of a report."""
        return self.inside * math.expm1(epsilon) / (self.share * math.expm1(epsilon) + 1)

    def square(self, epsilon: float, d: int) -> float:
        """The mean of <v, x>^2 of a report: 1 / d on the whole sphere, more in the cap."""
        from scipy.special import betaincc

        within = float(betaincc(1.5, (d - 1) / 2, self.height**2)) / (2 * d)
        probability = self.chosen(epsilon)
        return probability * within / self.share + (1 - probability) * (1 / d - within) / (
            1 - self.share
        )


@lru_cache(maxsize=1024)
def best_cap(epsilon: float, d: int) -> Cap:
    """The cap of the largest m, to 1e-9: of the least variance, 1 / m^2 - 1 for a unit vector."""
    return Cap.of(d, lowest(0.0, 1.0 - 1e-12, lambda height: -Cap.of(d, height).mean(epsilon), 52))


def _across(directions: Floats, towards: Floats) -> Floats:
    """Drawn directions made orthogonal to unit vectors, of length 1; where nothing is left, the
    axis furthest from the vector is taken."""
    across: Floats = directions - (directions * towards).sum(axis=1)[:, None] * towards
    vanishing = np.flatnonzero((across**2).sum(axis=1) < 1e-12)
    axes = towards[vanishing]
    least = abs(axes).argmin(axis=1)
    axes *= -axes[np.arange(len(axes)), least][:, None]
    across[vanishing] = np.eye(towards.shape[1])[least] + axes
    across /= np.sqrt((across**2).sum(axis=1))[:, None]
    return across


def turned(rows: Floats, words: Words, steps: int) -> Floats:
    """The directions of lattice vectors, unit vectors of mean row / steps: for norm r < 1 the
    opposite one with probability (1 - r) / 2, by its word."""
    norms = np.sqrt((rows**2).sum(axis=1))
    towards: Floats = rows / np.maximum(norms, 1)[:, None]
    towards[norms == 0, 0] = 1.0  # nothing has no direction: any will do
    towards *= turns(words & np.uint64((1 << COIN) - 1), norms, steps)[:, None]
    return towards


@dataclass(frozen=True, kw_only=True)
class OfSphere(Randomizer):
    """A vector of the Euclidean ball, in d >= 2 dimensions, on a lattice of `steps` to either side;
    proved from a density."""

    evidence = "density"
    d: int = 3
    steps: int = 1 << 10

    @cached_property
    def domain(self) -> Vectors:
        domain = vectors("ball", self.d, self.steps)
        if domain.d < 2:
            raise InputError(f"d is {self.d}; a sphere needs 2 coordinates or more")
        return domain

    @property
    def block(self) -> int:
        """How many clients are handled at a time."""
        return _BLOCK

    def _blocks(self, n: int) -> Iterator[slice]:
        return (slice(start, start + self.block) for start in range(0, n, self.block))

    @abstractmethod
    def points(self, towards: Floats, words: Words, cells: Words) -> Floats:
        """Points of the sphere for these unit vectors, before they are rounded."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports: Any = np.empty(len(values), dtype=self.report_dtype)
        for some in self._blocks(len(values)):
            towards = turned(values[some].astype(np.float64), words[some, 1], self.steps)
            reports[some] = np.rint(self.points(towards, words[some], cells[some]) * UNIT)
        return np.asarray(reports)


@dataclass(frozen=True, kw_only=True)
class PrivUnit(OfSphere):
    """Reports a uniform point of the cap about the vector with probability p, of the rest of the
    sphere otherwise; coordinates rounded to 2^-14.

    A vector of norm r < 1 takes the opposite direction with probability (1 - r) / 2, privately. The
    choice of the best cap spends all of epsilon. Privacy: eps for points drawn in real numbers, by
    the density. The choice is an exact integer threshold, but points come from floating-point
    arithmetic, and the vector determines which can occur. So the evidence is a density, which
    clients refuse unless their policy accepts it; `nearest-direction` costs 12 % more at epsilon 1
    and is exact. Utility: E||estimate - x||^2 = 1 / m^2 - ||x||^2. Cost: 16 d bits; d / 4 + 2
    words.
    """

    name = "privunit"
    summary = "Reports a random direction near a unit vector"
    source = "Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018; Asi, Feldman, Talwar 2022"

    def check(self) -> None:
        if self.word_bits != 64:
            raise InputError(f"word_bits is {self.word_bits}; PrivUnit needs 64")
        super().check()

    @cached_property
    def cap(self) -> Cap:
        return best_cap(self._inner, self.d)

    @property
    def _inner(self) -> float:
        return self.nano / NANO * (1 - _SLACK)

    @property
    def mean(self) -> float:
        return self.cap.mean(self._inner)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return of_moment(self, values, law, np.full(len(values), 1 / self.mean**2))

    @property
    def threshold(self) -> int:
        """The weight of the cap, out of 2^64."""
        return int(self.cap.chosen(self._inner) * 2.0**64)

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return np.dtype(("<i2", (self.d,)))

    @property
    def words(self) -> int:
        return 2 - (-self.d // 4)

    def points(self, towards: Floats, words: Words, cells: Words) -> Floats:
        """From the caps about the unit vectors or from the rest."""
        height = self._heights(words)
        points = _across(
            normal_means().take(pieces_of(np.ascontiguousarray(words[:, 2:]), self.d)), towards
        )
        points *= np.sqrt(1 - height**2)[:, None]
        points += height[:, None] * towards
        return points

    def _heights(self, words: Words) -> Floats:
        """<v, x> of each report: in the cap by an integer threshold, then by the inverse of
        Student's t, the law of sqrt(d - 1) h / sqrt(1 - h^2)."""
        from scipy.special import stdtrit

        drawn_height = (words[:, 1] >> np.uint64(64 - _HEIGHT)).astype(np.float64)
        within = (drawn_height + 0.5) / (1 << _HEIGHT)
        share, in_cap = self.cap.share, words[:, 0] < np.uint64(self.threshold)
        # Pr[<v, x> above it]
        above = np.where(in_cap, share * within, share + (1 - share) * within)
        student: Floats = stdtrit(self.d - 1, above)
        return -student / np.sqrt(student**2 + (self.d - 1))

    def possible(self, reports: Words) -> Bools:
        """Points of the sphere, up to their rounding."""
        away = abs(np.sqrt((reports.astype(np.float64) ** 2).sum(axis=1)) - UNIT)
        return np.asarray(away <= math.sqrt(self.d) / 2 + 1e-6)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The sums of the coordinates and of their squares, shape (2, d)."""
        sums = np.zeros((2, self.d), dtype=np.int64)
        for block in self._blocks(len(reports)):
            some = reports[block].astype(np.int64)
            sums += some.sum(axis=0), (some * some).sum(axis=0)
        return Tally(sums, len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased up to 1e-4, shape (d,)."""
        return of_moments(tally, 1 / (self.mean * UNIT))


LEAST = (
    32  # coordinates of a projection: with fewer, its length has another mean than a uniform one's
)
_ENTRIES = 1 << 15  # of the vectors transformed at a time: they stay in cache
_SHIFT = 4  # bits that squares leave out, so that they add up in 64 bits


@dataclass(frozen=True, kw_only=True)
class ProjUnit(OfSphere, Coined):
    """Projects the vector, filled up to D = 2^l coordinates, onto k random ones, and reports the
    direction of the projection by PrivUnit in k dimensions.

    The projection is W = S D3 H D2 H D1: signs D1, D2, D3 by the coin, H the Walsh-Hadamard
    transform, S the sums over k residue classes, scaled to orthonormal rows. The server adds up W^T
    times the reports. A vector of norm r < 1 takes the opposite direction with probability (1 - r)
    / 2. Privacy: PrivUnit's whatever the coin, by the density. Utility: unbiased for k = D, as for
    d <= 32; else as far as W shortens vectors like a uniform projection: within 1e-3 where
    measured. E||estimate||^2 is `projunit_moment`, about 1 + 1 / (2 k) of PrivUnit's in all
    dimensions. `k` is D, or a power of two from 32 on; 0 picks the least within 2 % of the error of
    D. Cost: 16 k bits; k / 4 + 2 words. Clients take about twice PrivUnit's time.
    """

    name = "projunit"
    summary = "Reports a random projection of a unit vector"
    source = "Asi, Feldman, Nelson, Nguyen, Talwar 2024 (fast ProjUnit)"
    k: int = 0

    def check(self) -> None:
        check_whole("k", self.k, 0, self.filled)
        if self.k & (self.k - 1) or 0 < self.k < min(LEAST, self.filled):
            raise InputError(
                f"k is {self.k}; give a power of two from {min(LEAST, self.filled)} to "
                f"{self.filled}, or 0 for the best"
            )
        super().check()

    @property
    def filled(self) -> int:
        """D."""
        return 1 << (self.d - 1).bit_length()

    @cached_property
    def chosen(self) -> int:
        """k."""
        return self.k or least_projection(self.nano, self.domain.d)

    @cached_property
    def inner(self) -> PrivUnit:
        return PrivUnit(self.epsilon, word_bits=self.word_bits, d=self.chosen)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return of_moment(
            self,
            values,
            law,
            np.full(len(values), projunit_moment(self.epsilon, self.d, self.chosen)),
        )

    @property
    def block(self) -> int:
        return max(32, _ENTRIES // self.filled)

    def _signs(self, coins: Words) -> Ints:
        """D1, D2 and D3, shape (3, D, n)."""
        each = -(-self.filled // 64)
        words = words_of(coins, 3 * each).reshape(-1, 3, each)
        return np.stack([signs_of(words[:, place], self.filled).T for place in range(3)])

    def projected(self, rows: Floats, coins: Words) -> Floats:
        """The projections of vectors, shape (n, d) to (n, k)."""
        first, second, third = self._signs(coins)
        columns = np.zeros((self.filled, len(rows)))
        columns[: self.d] = rows.T
        mixed = walsh_hadamard(walsh_hadamard(columns * first) * second) * third
        sums: Floats = mixed.reshape(-1, self.chosen, len(rows)).sum(axis=0).T
        return sums * (math.sqrt(self.chosen / self.filled) / self.filled)

    def _directions(self, rows: Floats, coins: Words) -> Floats:
        """Those of the projections: unit vectors."""
        projections = self.projected(rows, coins)
        norms = np.sqrt((projections**2).sum(axis=1))
        vanishing = norms < 1e-12
        projections[vanishing, 0] = 1.0  # nothing is left: any direction will do
        return projections / np.where(vanishing, 1.0, norms)[:, None]

    def points(self, towards: Floats, words: Words, cells: Words) -> Floats:
        return self.inner.points(self._directions(towards, cells), words, cells)

    def possible(self, reports: Words) -> Bools:
        return self.inner.possible(reports)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The sums of the coordinates of the reports turned back, and of the squares of their
        leading parts, shape (2, d): whole numbers, exact."""
        sums = np.zeros((2, self.d), dtype=np.int64)
        for some in self._blocks(len(reports)):
            first, second, third = self._signs(cells[some])
            spread = (
                np.tile(reports[some].T.astype(np.float64), (self.filled // self.chosen, 1)) * third
            )
            turned_back = (
                walsh_hadamard(walsh_hadamard(spread) * second)[: self.d] * first[: self.d]
            )
            whole = np.rint(turned_back / self.root).astype(np.int64)
            sums += whole.sum(axis=1), ((whole >> _SHIFT) ** 2).sum(axis=1)
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
        return of_moments(
            Tally(tally.counts * np.array([[1], [1 << 2 * _SHIFT]]), tally.n), self.scale
        )


def mean_length(dimensions: int, k: int) -> float:
    """c, the mean length of a uniform projection of a unit vector of D dimensions on k: E
    sqrt(Beta(k / 2, (D - k) / 2))."""
    if k == dimensions:
        return 1.0
    above, below = ((k + 1) / 2, dimensions / 2), (k / 2, (dimensions + 1) / 2)
    return math.exp(sum(map(math.lgamma, above)) - math.lgamma(below[0]) - math.lgamma(below[1]))


def projunit_moment(epsilon: float, d: int, k: int) -> float:
    """E||estimate||^2 of one report, over d of D coordinates, of a unit vector, and of others: (s +
    (d - 1) / (D - 1) (1 - s)) / (c m)^2.

    s = E[h^2] k / D, the mean square along the vector, for h = <v, x> of PrivUnit in k dimensions
    and a projection of squared length k / D on average.
    """
    dimensions = 1 << (d - 1).bit_length()
    along, square = _along(epsilon, dimensions, k)
    return (along + (d - 1) / (dimensions - 1) * (1 - along)) * square


def projunit_on_axis(epsilon: float, d: int, k: int) -> float:
    """The largest mean square of a coordinate of what one report stands for: s / (c m)^2, along a
    vector that points there."""
    along, square = _along(epsilon, 1 << (d - 1).bit_length(), k)
    return along * square


def _along(epsilon: float, dimensions: int, k: int) -> tuple[float, float]:
    """s, and 1 / (c m)^2."""
    cap = best_cap(epsilon, k)
    return cap.square(epsilon, k) * k / dimensions, 1 / (
        mean_length(dimensions, k) * cap.mean(epsilon)
    ) ** 2


@lru_cache(maxsize=1024)
def least_projection(nano: int, d: int) -> int:
    """The least power of two, `LEAST` or more where d allows, within 2 % of the error of no
    projection."""
    epsilon, dimensions = nano / NANO, 1 << (d - 1).bit_length()
    whole, k = projunit_moment(epsilon, d, dimensions), min(LEAST, dimensions)
    while projunit_moment(epsilon, d, k) > 1.02 * whole:
        k *= 2
    return k
