"""A number whose local sensitivity is known: at the global sensitivity, smoothly, by
propose-test-release; and the private medians of points."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace, laplace_tail, least_tail
from local_dp.curator.mechanism import (
    D_contra,
    L_co,
    Law,
    Mechanism,
    R_co,
    WithinDelta,
    probabilities,
    whole_weights,
)
from local_dp.curator.multisets import Multiset, upto
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Runs
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Pure, exp_epsilon, nano_epsilon, nano_of_ratio
from local_dp.optimise import least_clients

FINE = 1 << 16  # steps of the noise in one step of the answer, so that whole scales are fine enough
LEAST = 16  # the least scale, in fine steps
_WHOLE = 1 + Fraction(1, 10**43)  # above 1 / tanh(16 pi)
_BITS = 96
_ROOT_BITS = 200


class LocalSensitivity(ABC):
    """An answer in 0..`last` on one database, and its local sensitivity at every distance.
    Neighbours have the same `last`, `most` and `reach`."""

    value: int
    last: int
    most: int  # the global sensitivity
    reach: int  # within this distance of every database there is one of global sensitivity

    @abstractmethod
    def within(self, distance: int) -> int:
        """A_k: a bound of the local sensitivity of all databases within this distance; it grows
        with the distance, up to `most`.

        A_0 is at least the difference between the answer here and at any neighbour, and a
        neighbour's A_k is at most A_(k + 1).
        """

    def stable(self, bound: int, most: int) -> int:
        """The distance to the nearest database with a local sensitivity above the bound, at most
        `most`. O(log most) looks."""
        return (
            least_clients(lambda next_one: next_one > most or self.within(next_one - 1) > bound) - 1
        )


def cosh_loss(shift: Fraction | int, scale: Fraction | int, other: Fraction | int) -> Fraction:
    """cosh of the exact loss between continuous Cauchy noise of `scale` and of `other` whose
    centres are `shift` apart, in both directions.

    A Cauchy density is the Poisson kernel of the point centre + i scale, so the largest ratio of
    two is e^d, d their hyperbolic distance.
    """
    return 1 + Fraction(shift**2 + (scale - other) ** 2) / (2 * scale * other)


def worst_ratio(cosh: Fraction) -> Fraction:
    """An upper bound of e^d for cosh d = `cosh`, within 1e-40, also for noise on the whole numbers
    if scales are whole and at least `LEAST`.

    There the weights 1 / ((y - c)^2 + s^2) sum to pi / (s tanh(pi s)), which changes the ratio by a
    factor below 1 / tanh(16 pi).
    """
    return (cosh + _root_above(cosh**2 - 1)) * _WHOLE


@dataclass(frozen=True)
class CauchyNoise:
    """Discrete Cauchy noise, in steps of 2^-16, for answers whose local sensitivity is known at
    every distance. Its scale is S / shift, S smooth.

    S is the largest A_k / stretch^k, A_k the largest local sensitivity within distance k.
    Neighbours' answers differ by at most `shift` (a) times the smaller scale, their scales by at
    most the factor `stretch` (e^b). Privacy: epsilon, pure: max(2 asinh(a / 2), arccosh(cosh b +
    a^2 e^-b / 2)). The cosh of the loss is convex in the ratio of the scales. So the worst case is
    a shift of a, at equal scales or at scales 1 and e^b. Whole scales keep to it exactly: see
    `scale`. Utility: the median of |error| is S / a; there is no mean. Source: Nissim,
    Raskhodnikova, Smith 2007, Definition 2.2; the price is ours. Cauchy laws as points of the
    hyperbolic plane: Nielsen, Okamura 2021.
    """

    shift: Fraction
    stretch: Fraction

    def __post_init__(self) -> None:
        if not (self.shift > 0 and self.stretch > 1):
            raise InputError(
                f"the noise has shift {float(self.shift):g} and stretch {float(self.stretch):g}; "
                "give a shift above 0 and a stretch above 1"
            )

    @classmethod
    def exact(cls, epsilon: float) -> Self:
        """a = 2 sinh(eps / 2) and b = ln(2 cosh eps - 1), rounded down by 2^-96: they cost exactly
        epsilon."""
        growth = exp_epsilon(nano_epsilon(epsilon)) / _WHOLE**2
        cosh = (growth + 1 / growth) / 2
        return cls(_down(_root_above(2 * (cosh - 1))), _down(2 * cosh - 1))

    @classmethod
    def published(cls, epsilon: float) -> Self:
        """a = b = eps / 6, the published constants, which cost about a quarter of epsilon: the
        baseline."""
        nano = Fraction(nano_epsilon(epsilon), 6)
        return cls(nano / NANO, _down(exp_epsilon(nano)))

    @property
    def loss(self) -> Pure:
        """The exact price, rounded up to a whole nano-nat."""
        worst = max(cosh_loss(self.shift, 1, other) for other in (1, self.stretch))
        return Pure(nano_of_ratio(worst_ratio(worst)))

    def scale(self, local: LocalSensitivity) -> int:
        """s, in fine steps: the largest of A_k / a divided k times by e^b, rounded up each time.

        So neighbours keep to s' <= e^b s exactly, since a neighbour's A_k is at most A_(k + 1).
        Cost: at most `reach` looks and ln(most / A_0) / b.
        """
        most, enough, last = self._enough(local.most), self._enough(local.within(0)), 0
        while last < local.reach and most > enough:  # larger distances do not matter
            most, last = self._shrunk(most), last + 1
        scale = bound = self._enough(local.most)
        for k in reversed(range(last)):
            scale = self._shrunk(scale)
            if scale < bound:  # otherwise A_k, which is no larger, changes nothing
                bound = self._enough(local.within(k))
                scale = max(scale, bound)
        return max(enough, scale)

    def add(self, value: int, scale: int, draws: Draws) -> int:
        """The value with noise of this scale, rounded to a whole number."""
        return (FINE * value + draws.discrete_cauchy(scale) + FINE // 2) // FINE

    def _enough(self, sensitivity: int) -> int:
        """The least scale that hides a move of this size."""
        return max(LEAST, -(-FINE * sensitivity * self.shift.denominator // self.shift.numerator))

    def _shrunk(self, scale: int) -> int:
        """The least scale that a neighbour may have."""
        return max(LEAST, -(-scale * self.stretch.denominator // self.stretch.numerator))


def _down(number: Fraction) -> Fraction:
    return Fraction(math.floor(number * (1 << _BITS)), 1 << _BITS)


def _root_above(square: Fraction) -> Fraction:
    """sqrt, rounded up by at most 2^-200."""
    return Fraction(math.isqrt(math.floor(square * (1 << 2 * _ROOT_BITS))) + 1, 1 << _ROOT_BITS)


class OfSensitivity(Mechanism[D_contra, R_co, L_co]):
    """A mechanism that knows the local sensitivity of its answer."""

    @abstractmethod
    def local(self, database: D_contra) -> LocalSensitivity:
        """The answer and its sensitivity."""


@dataclass(frozen=True)
class GlobalNoise(OfSensitivity[D_contra, int, Pure], ClippedAnswer[D_contra]):
    """The answer with discrete Laplace noise for the global sensitivity, clipped: the baseline.

    Privacy: epsilon, exactly. Utility: standard error sqrt(2) GS / eps.
    """

    epsilon: float

    def noisy(self, database: D_contra) -> tuple[int, ClippedLaplace]:
        local = self.local(database)
        return local.value, ClippedLaplace(nano_epsilon(self.epsilon), local.most, local.last)


@dataclass(frozen=True)
class SmoothNoise(OfSensitivity[D_contra, int, Pure]):
    """The answer with Cauchy noise of its smooth sensitivity, clipped to its range.

    Privacy: the price of the noise, pure, on every database (`CauchyNoise`). Utility: the median of
    |error| is S / a. Source: Nissim, Raskhodnikova, Smith 2007; lecture notes 2.2.1.
    """

    noise: CauchyNoise

    @property
    def loss(self) -> Pure:
        return self.noise.loss

    def release(self, database: D_contra, draws: Draws) -> int:
        local = self.local(database)
        return min(local.last, max(0, self.noise.add(local.value, self.noise.scale(local), draws)))


class InHalves(WithinDelta[D_contra, R_co]):
    """A mechanism of two parts of eps / 2 each, the first of which fails with probability delta."""

    def __post_init__(self) -> None:
        super().__post_init__()
        nano_epsilon(self.epsilon / 2)

    @property
    def loss(self) -> Approximate:
        return Approximate(2 * self._half, super().loss.atto)

    @property
    def _half(self) -> int:
        """The cost of each part, in nano-nats."""
        return nano_epsilon(self.epsilon) // 2

    @property
    def margin(self) -> int:
        """The least whole number that the first part's noise exceeds with probability delta at
        most."""
        return least_tail(self._half, Fraction(self.loss.atto, ATTO)) - 1


@dataclass(frozen=True)
class Proposed(OfSensitivity[D_contra, int | None, Approximate], InHalves[D_contra, int | None]):
    """Propose, test, release: noise for a local sensitivity of `bound` if the database is far from
    all with a larger one, otherwise None: no answer.

    The distance to the nearest such database moves by at most 1. It is compared with a threshold
    with discrete Laplace noise of eps / 2; distance 0 passes with probability delta or less. The
    answer has noise of eps / 2. Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). A
    database more sensitive than `bound` is at distance 0 and answers with probability delta at
    most; otherwise the answers of neighbours differ by at most `bound`. Utility: answers from a
    distance of about (2 / eps) ln(1 / delta) on. Source: Dwork, Lei 2009; lecture notes 2.2.2.
    """

    bound: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("the proposed bound", self.bound, 1, 1 << 62)
        super().__post_init__()

    def release(self, database: D_contra, draws: Draws) -> int | None:
        local = self.local(database)
        if self._distance(local) + ClippedLaplace(self._half, 1, 0).noise(draws) <= self.margin:
            return None
        return self._noise(local).add(local.value, draws)

    def answered(self, distance: int) -> Fraction:
        """The probability of an answer at this distance from a more sensitive database."""
        return laplace_tail(self._half, self.margin + 1 - distance)

    def law(self, database: D_contra) -> Law[int | None]:
        local = self.local(database)
        chance = self.answered(self._distance(local))
        law = probabilities(self._noise(local).law(local.value))
        answers = {answer: chance * share for answer, share in law.items()}
        return whole_weights({None: 1 - chance, **answers})

    def _distance(self, local: LocalSensitivity) -> int:
        """At most three margins: larger distances do not matter."""
        return local.stable(self.bound, 3 * self.margin + 3)

    def _noise(self, local: LocalSensitivity) -> ClippedLaplace:
        return ClippedLaplace(self._half, self.bound, local.last)


MAX_BITS = 62


class Median(LocalSensitivity):
    """The median x_m of n sorted points, and A_k, the largest of x_(m + t) - x_(m + t - k - 1), t =
    0..k + 1, with 0 before the first and `last` after.

    Of k + 2 neighbouring points around place m, k replaced records can make any two adjacent. Cost:
    O(k) a look. Source: Nissim, Raskhodnikova, Smith 2007, Proposition 3.4; of an even number of
    points too. Raises InputError for no points, or beyond 62 bits.
    """

    def __init__(self, points: Multiset) -> None:
        check_whole("the number of bits", points.bits, 1, MAX_BITS)
        self.last = self.most = (1 << points.bits) - 1
        self.reach = points.size
        if not self.reach:
            raise InputError("there are no records; give one or more")
        self._middle = (self.reach + 1) // 2
        self._upto: Counts = np.cumsum(points.counts)
        self._values = np.append(points.values.astype(np.int64), self.last)
        self._near = self._at(np.array([self._middle]))
        self.value = int(self._near[0])

    def within(self, distance: int) -> int:
        k, radius = min(distance, self.reach), len(self._near) // 2
        if k >= radius:
            radius = k + 1
            self._near = self._at(np.arange(self._middle - radius, self._middle + radius + 1))
        lower, upper = self._near[radius - k - 1 : radius + 1], self._near[radius : radius + k + 2]
        return int((upper - lower).max())

    def _at(self, places: Ints) -> Counts:
        """The points at these places, 1..n, and beyond."""
        values = self._values[np.searchsorted(self._upto, places)]
        return np.asarray(np.where(places < 1, 0, values))


class OfMedian:
    """A mechanism whose answer is the median. Domains of up to 2^62."""

    def local(self, database: Multiset) -> LocalSensitivity:
        return Median(database)


@dataclass(frozen=True)
class SmoothMedian(OfMedian, SmoothNoise[Multiset]):
    """The median with Cauchy noise of its smooth sensitivity, clipped to the domain: pure. Domains
    of up to 2^62."""

    summary = "Releases a median with noise of its smooth sensitivity"


@dataclass(frozen=True)
class ProposedMedian(OfMedian, Proposed[Multiset]):
    """The median with Laplace noise for a proposed sensitivity, or None: approximate. Domains of up
    to 2^62."""

    summary = "Releases a median if a proposed sensitivity holds"


@dataclass(frozen=True)
class GlobalMedian(OfMedian, GlobalNoise[Multiset]):
    """The median with noise for the whole domain: pure, and no better than a guess. The
    baseline."""

    summary = "Releases a median with noise for the whole domain"


@dataclass(frozen=True)
class ExponentialMedian(ByScore[Multiset, int]):
    """A point y with weight e^(-eps d / 2), d the number of records to replace until the median is
    y: the competitor of noise. Domains of any size.

    Privacy: epsilon, pure: a record that is replaced, added or removed moves d by at most 1.
    Without records d is 0 everywhere. When a record is added, the middle (n + 1) / 2, rounded down,
    and the number of records below y grow by 0 or 1. So their difference moves by 1 at most.
    Utility: a rank error of about (2 / eps) ln(2^bits), less where the points lie close. Source:
    Smith 2011; as inverse sensitivity, Asi, Duchi 2020.
    """

    summary = "Releases a median by the exponential mechanism"
    epsilon: float

    def candidates(self, database: Multiset) -> Runs:
        middle, last = (database.size + 1) // 2, (1 << database.bits) - 1
        if not database.size:
            return Runs(database.values, np.zeros(1, dtype=np.int64), last)
        ends = np.repeat(database.values, 2)
        ends[::2] -= 1
        below = middle - upto(database.counts)
        scores = np.empty(len(ends) + 1, dtype=np.int64)
        scores[::2] = -np.maximum(below, 1 - below)
        scores[1::2] = -np.maximum(0, np.maximum(below[1:], 1 - below[:-1]))
        if database.values[0] == 0:  # no candidate lies before the first point, or after the last
            ends, scores = ends[1:], scores[1:]
        if int(database.values[-1]) == last:
            ends, scores = ends[:-1], scores[:-1]
        return Runs(ends, scores, last)
