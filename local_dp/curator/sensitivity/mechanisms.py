"""Three ways to answer with a number whose local sensitivity is known: at the global sensitivity, smoothly, and by propose-test-release."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace, laplace_tail, least_tail
from local_dp.curator.mechanism import D_contra, L_co, Law, Mechanism, R_co, WithinDelta, probabilities, whole_weights
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
    """An answer in 0..`last` on one database, and its local sensitivity at every distance. Neighbours have the same `last`, `most` and `reach`."""

    value: int
    last: int
    most: int  # the global sensitivity
    reach: int  # within this distance of every database there is one of global sensitivity

    @abstractmethod
    def within(self, distance: int) -> int:
        """A_k: a bound of the local sensitivity of all databases within this distance; it grows with the distance, up to `most`.

        A_0 is at least the difference between the answer here and at any neighbour, and a neighbour's A_k is at most A_(k + 1).
        """

    def stable(self, bound: int, most: int) -> int:
        """The distance to the nearest database with a local sensitivity above the bound, at most `most`. O(log most) looks."""
        return least_clients(lambda next_one: next_one > most or self.within(next_one - 1) > bound) - 1


def cosh_loss(shift: Fraction | int, scale: Fraction | int, other: Fraction | int) -> Fraction:
    """cosh of the exact loss between continuous Cauchy noise of `scale` and of `other` whose centres are `shift` apart, in both directions.

    A Cauchy density is the Poisson kernel of the point centre + i scale, so the largest ratio of two is e^d, d their hyperbolic distance.
    """
    return 1 + Fraction(shift**2 + (scale - other) ** 2) / (2 * scale * other)


def worst_ratio(cosh: Fraction) -> Fraction:
    """An upper bound of e^d for cosh d = `cosh`, within 1e-40, also for noise on the whole numbers if scales are whole and at least `LEAST`.

    There the weights 1 / ((y - c)^2 + s^2) sum to pi / (s tanh(pi s)), which changes the ratio by a factor below 1 / tanh(16 pi).
    """
    return (cosh + _root_above(cosh**2 - 1)) * _WHOLE


@dataclass(frozen=True)
class CauchyNoise:
    """Discrete Cauchy noise, in steps of 2^-16, for answers whose local sensitivity is known at every distance. Its scale is S / shift, S smooth.

    S is the largest A_k / stretch^k, A_k the largest local sensitivity within distance k. Neighbours' answers differ by at most `shift` (a) times the smaller
    scale, their scales by at most the factor `stretch` (e^b).
    Privacy: epsilon, pure: max(2 asinh(a / 2), arccosh(cosh b + a^2 e^-b / 2)). The cosh of the loss is convex in the ratio of the scales. So the worst case
    is a shift of a, at equal scales or at scales 1 and e^b. Whole scales keep to it exactly: see `scale`. Utility: the median of |error| is S / a; there is
    no mean. Source: Nissim, Raskhodnikova, Smith 2007, Definition 2.2; the price is ours.
    Cauchy laws as points of the hyperbolic plane: Nielsen, Okamura 2021.
    """

    shift: Fraction
    stretch: Fraction

    def __post_init__(self) -> None:
        if not (self.shift > 0 and self.stretch > 1):
            raise InputError(f"the noise has shift {float(self.shift):g} and stretch {float(self.stretch):g}; give a shift above 0 and a stretch above 1")

    @classmethod
    def exact(cls, epsilon: float) -> Self:
        """a = 2 sinh(eps / 2) and b = ln(2 cosh eps - 1), rounded down by 2^-96: they cost exactly epsilon."""
        growth = exp_epsilon(nano_epsilon(epsilon)) / _WHOLE**2
        cosh = (growth + 1 / growth) / 2
        return cls(_down(_root_above(2 * (cosh - 1))), _down(2 * cosh - 1))

    @classmethod
    def published(cls, epsilon: float) -> Self:
        """a = b = eps / 6, the published constants, which cost about a quarter of epsilon: the baseline."""
        nano = Fraction(nano_epsilon(epsilon), 6)
        return cls(nano / NANO, _down(exp_epsilon(nano)))

    @property
    def loss(self) -> Pure:
        """The exact price, rounded up to a whole nano-nat."""
        return Pure(nano_of_ratio(worst_ratio(max(cosh_loss(self.shift, 1, 1), cosh_loss(self.shift, 1, self.stretch)))))

    def scale(self, local: LocalSensitivity) -> int:
        """s, in fine steps: the largest of A_k / a divided k times by e^b, rounded up each time.

        So neighbours keep to s' <= e^b s exactly, since a neighbour's A_k is at most A_(k + 1). Cost: at most `reach` looks and ln(most / A_0) / b.
        """
        most, enough, last = self._enough(local.most), self._enough(local.within(0)), 0
        while last < local.reach and most > enough:  # larger distances do not matter
            most, last = self._shrunk(most), last + 1
        scale = known = self._enough(local.most)
        for k in reversed(range(last)):
            scale = self._shrunk(scale)
            if scale < known:  # otherwise A_k, which is no larger, changes nothing
                known = self._enough(local.within(k))
                scale = max(scale, known)
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

    Privacy: the price of the noise, pure, on every database (`CauchyNoise`). Utility: the median of |error| is S / a.
    Source: Nissim, Raskhodnikova, Smith 2007; lecture notes 2.2.1.
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
        """The least whole number that the first part's noise exceeds with probability delta at most."""
        return least_tail(self._half, Fraction(self.loss.atto, ATTO)) - 1


@dataclass(frozen=True)
class Proposed(OfSensitivity[D_contra, int | None, Approximate], InHalves[D_contra, int | None]):
    """Propose, test, release: noise for a local sensitivity of `bound` if the database is far from all with a larger one, otherwise None: no answer.

    The distance to the nearest such database moves by at most 1. It is compared with a threshold with discrete Laplace noise of eps / 2; distance 0 passes
    with probability delta or less. The answer has noise of eps / 2.
    Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). A database more sensitive than `bound` is at distance 0 and answers with probability
    delta at most; otherwise the answers of neighbours differ by at most `bound`. Utility: answers from a distance of about (2 / eps) ln(1 / delta) on.
    Source: Dwork, Lei 2009; lecture notes 2.2.2.
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
        answered, answers = self.answered(self._distance(local)), probabilities(self._noise(local).law(local.value))
        return whole_weights({None: 1 - answered, **{answer: answered * share for answer, share in answers.items()}})

    def _distance(self, local: LocalSensitivity) -> int:
        """At most three margins: larger distances do not matter."""
        return local.stable(self.bound, 3 * self.margin + 3)

    def _noise(self, local: LocalSensitivity) -> ClippedLaplace:
        return ClippedLaplace(self._half, self.bound, local.last)
