"""PrivUnit: a point of the sphere, from a cap about the own vector or from the rest; its privacy is a claim about real numbers."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.domains import Vectors, vectors
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.vectors.base import normal_means, pieces_of
from local_dp.tallies import Estimate, Tally

UNIT = 1 << 14  # a coordinate of 1 in a report
_BLOCK = 1 << 9  # clients at a time
_SLACK = 1e-9  # nats kept back for the rounding of the cap's share
_COIN = 20  # bits that decide the sign of a vector shorter than 1
_HEIGHT = 44  # bits that decide how near to the vector, within the cap or the rest


@dataclass(frozen=True)
class Cap:
    """The cap {v: <v, x> >= height} of the unit sphere in d dimensions: its share q of the sphere, and the integral of <v, x> over it."""

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
        """The probability of the cap at which its points are e^eps times as likely as the others: E q / (E q + 1 - q)."""
        return self.share * math.exp(epsilon) / (self.share * math.expm1(epsilon) + 1)

    def mean(self, epsilon: float) -> float:
        """m, the mean of <v, x> of a report."""
        return self.inside * math.expm1(epsilon) / (self.share * math.expm1(epsilon) + 1)

    def square(self, epsilon: float, d: int) -> float:
        """The mean of <v, x>^2 of a report: 1 / d on the whole sphere, more in the cap."""
        from scipy.special import betaincc

        within, chosen = float(betaincc(1.5, (d - 1) / 2, self.height**2)) / (2 * d), self.chosen(epsilon)
        return chosen * within / self.share + (1 - chosen) * (1 / d - within) / (1 - self.share)


@lru_cache(maxsize=1024)
def best_cap(epsilon: float, d: int) -> Cap:
    """The cap of the largest m, by thirds: of the least variance, 1 / m^2 - 1 for a unit vector."""
    low, high = 0.0, 1.0 - 1e-12
    while high - low > 1e-9:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if Cap.of(d, left).mean(epsilon) > Cap.of(d, right).mean(epsilon) else (left, high)
    return Cap.of(d, low)


def _across(drawn: Floats, towards: Floats) -> Floats:
    """Drawn directions made orthogonal to unit vectors, of length 1; where nothing is left, the axis furthest from the vector is taken."""
    across: Floats = drawn - (drawn * towards).sum(axis=1)[:, None] * towards
    lost = np.flatnonzero((across**2).sum(axis=1) < 1e-12)
    least = abs(towards[lost]).argmin(axis=1)
    across[lost] = np.eye(towards.shape[1])[least] - towards[lost, least][:, None] * towards[lost]
    across /= np.sqrt((across**2).sum(axis=1))[:, None]
    return across


def turned(rows: Floats, words: Words, steps: int) -> Floats:
    """The directions of lattice vectors, unit vectors of mean row / steps: for norm r < 1 the opposite one with probability (1 - r) / 2, by its word."""
    norms = np.sqrt((rows**2).sum(axis=1))
    towards: Floats = rows / np.maximum(norms, 1)[:, None]
    towards[norms == 0, 0] = 1.0  # nothing has no direction: any will do
    uniform = (words & np.uint64((1 << _COIN) - 1)).astype(np.float64) * 2 + (1 - (1 << _COIN))
    towards *= np.where(uniform * steps > norms * (1 << _COIN), -1.0, 1.0)[:, None]
    return towards


def on_sphere(tally: Tally, scale: float) -> Estimate:
    """The mean of what reports stand for, `scale` times them, from the sums of coordinates and of their squares, shape (2, d)."""
    n = tally.answered
    mean, square = tally.counts[0] / n, tally.counts[1] / n
    return Estimate(scale * mean, scale * np.sqrt(np.maximum(square - mean**2, 0.0) / n), n)


@dataclass(frozen=True, kw_only=True)
class PrivUnit(Randomizer):
    """Reports a uniform point of the cap about the vector with probability p, of the rest of the sphere otherwise; coordinates rounded to 2^-14.

    A vector of norm r < 1 takes the opposite direction with probability (1 - r) / 2, privately. The choice of the best cap spends all of epsilon. Privacy:
    eps for points drawn in real numbers, by the density. The choice itself is an exact integer threshold. But points come from a table of normals and
    floating-point arithmetic, and the vector determines which can occur. So the evidence is a density, which clients refuse unless their policy accepts it;
    `nearest-direction` costs 12 % more at epsilon 1 and is exact. Utility: E||estimate - x||^2 = 1 / m^2 - ||x||^2 (`bounds.means.privunit_variance`). Cost:
    16 d bits; d / 4 + 2 words.
    """

    name: ClassVar[str] = "privunit"
    source: ClassVar[str] = "Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018; Asi, Feldman, Talwar 2022"
    evidence: ClassVar[Evidence] = "density"
    d: int = 3
    steps: int = 1 << 10

    def check(self) -> None:
        if self.word_bits != 64:
            raise InputError(f"word_bits is {self.word_bits}; PrivUnit needs 64")
        if self.domain.d < 2:
            raise InputError(f"d is {self.d}; a sphere needs 2 coordinates or more")

    @cached_property
    def domain(self) -> Vectors:
        return vectors("ball", self.d, self.steps)

    @cached_property
    def cap(self) -> Cap:
        """The cap of least variance."""
        return best_cap(self._inner, self.d)

    @property
    def _inner(self) -> float:
        return self.nano / NANO * (1 - _SLACK)

    @property
    def mean(self) -> float:
        """m, the mean of <v, x> of a report."""
        return self.cap.mean(self._inner)

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

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports: Any = np.empty((len(values), self.d), dtype="<i2")
        for first in range(0, len(values), _BLOCK):
            some = slice(first, first + _BLOCK)
            towards = turned(values[some].astype(np.float64), words[some, 1], self.steps)
            reports[some] = np.rint(self.points(towards, words[some]) * UNIT)
        sent: Words = reports
        return sent

    def points(self, towards: Floats, words: Words) -> Floats:
        """Points of the sphere, from the caps about these unit vectors or from the rest."""
        height = self._heights(words)
        points = _across(normal_means().take(pieces_of(np.ascontiguousarray(words[:, 2:]), self.d)), towards)
        points *= np.sqrt(1 - height**2)[:, None]
        points += height[:, None] * towards
        return points

    def _heights(self, words: Words) -> Floats:
        """<v, x> of each report: whether in the cap by an integer threshold, and then by the inverse of its distribution function.

        Of a uniform point of the sphere sqrt(d - 1) h / sqrt(1 - h^2) is Student's t of d - 1 degrees of freedom.
        """
        from scipy.special import stdtrit

        within = ((words[:, 1] >> np.uint64(64 - _HEIGHT)).astype(np.float64) + 0.5) / (1 << _HEIGHT)
        share = self.cap.share
        above = np.where(words[:, 0] < np.uint64(self.threshold), share * within, share + (1 - share) * within)  # Pr[<v, x> above it]
        student: Floats = stdtrit(self.d - 1, above)
        return -student / np.sqrt(student**2 + (self.d - 1))

    def possible(self, reports: Words) -> Bools:
        """Points of the sphere, up to their rounding."""
        away = abs(np.sqrt((reports.astype(np.float64) ** 2).sum(axis=1)) - UNIT)
        possible: Bools = away <= math.sqrt(self.d) / 2 + 1e-6
        return possible

    def empty(self) -> Tally:
        return Tally(np.zeros((2, self.d), dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The sums of the coordinates and of their squares, shape (2, d)."""
        sums = np.zeros((2, self.d), dtype=np.int64)
        for first in range(0, len(reports), _BLOCK):
            some = reports[first : first + _BLOCK].astype(np.int64)
            sums += some.sum(axis=0), (some * some).sum(axis=0)
        return Tally(sums, len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased up to 1e-4, shape (d,)."""
        return on_sphere(tally, 1 / (self.mean * UNIT))
