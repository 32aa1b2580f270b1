"""Cauchy noise of a scale that follows the data, and its exact price.

The density of a Cauchy variable of centre c and scale s is the Poisson kernel of the point c + i s of the upper half-plane, so the largest ratio of two such
densities is e^d for the hyperbolic distance d of their points: cosh d = 1 + ((c - c')^2 + (s - s')^2) / (2 s s').
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from local_dp.curator.sensitivity.local import LocalSensitivity
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon, nano_of_ratio

FINE = 1 << 16  # steps of the noise to one step of the answer: what scales lose by being whole
LEAST = 16  # the least scale, in fine steps
_WHOLE = 1 + Fraction(1, 10**43)  # above 1 / tanh(16 pi)
_BITS = 96
_ROOT_BITS = 200


def cosh_loss(shift: Fraction | int, scale: Fraction | int, other: Fraction | int) -> Fraction:
    """cosh of the loss between continuous Cauchy noise of `scale` and of `other` whose centres are `shift` apart: it is met, in both directions."""
    return 1 + Fraction(shift**2 + (scale - other) ** 2) / (2 * scale * other)


def worst_ratio(cosh: Fraction) -> Fraction:
    """An upper bound of e^d for cosh d = `cosh`, within 1e-40, for whole scales of `LEAST` or more and noise on the whole numbers too.

    On the whole numbers the weights 1 / ((y - c)^2 + s^2) add up to pi / (s tanh(pi s)), which changes the ratio by less than 1 / tanh(16 pi).
    """
    return (cosh + _root_above(cosh**2 - 1)) * _WHOLE


@dataclass(frozen=True)
class CauchyNoise:
    """Discrete Cauchy noise, of 2^-16 steps, for answers whose local sensitivity is known at every distance: its scale is S / shift, S smooth.

    S is the largest A_k / stretch^k, where A_k is the largest local sensitivity of all databases at distance k or less: neighbours' answers differ by at most
    `shift` (a) times the smaller of their scales, and their scales at most by the factor `stretch` (e^b).
    Privacy: epsilon, pure (`loss`): the largest cosh of the loss is that of a shift of a at equal scales or at scales 1 and e^b, as it is convex in their
    ratio: max(2 asinh(a / 2), arccosh(cosh b + a^2 e^-b / 2)). Whole scales keep to it exactly: see `scale`.
    Utility: the median of |error| is S / a; there is no mean. Source: Nissim, Raskhodnikova, Smith 2007, Definition 2.2; the price is ours.
    """

    shift: Fraction
    stretch: Fraction

    def __post_init__(self) -> None:
        if not (self.shift > 0 and self.stretch > 1):
            raise InputError(f"the noise has shift {float(self.shift):g} and stretch {float(self.stretch):g}; give a shift above 0 and a stretch above 1")

    @classmethod
    def exact(cls, epsilon: float) -> Self:
        """a = 2 sinh(eps / 2) and b = ln(2 cosh eps - 1), rounded down by 2^-96: they cost epsilon, no less."""
        growth = exp_epsilon(nano_epsilon(epsilon)) / _WHOLE**2
        cosh = (growth + 1 / growth) / 2
        return cls(_down(_root_above(2 * (cosh - 1))), _down(2 * cosh - 1))

    @classmethod
    def published(cls, epsilon: float) -> Self:
        """a = b = eps / 6, the published constants: they cost about a quarter of epsilon. The baseline."""
        nano = Fraction(nano_epsilon(epsilon), 6)
        return cls(nano / NANO, _down(exp_epsilon(nano)))

    @property
    def loss(self) -> Pure:
        """The exact price, and the least whole nano-nat above it."""
        return Pure(nano_of_ratio(worst_ratio(max(cosh_loss(self.shift, 1, 1), cosh_loss(self.shift, 1, self.stretch)))))

    def scale(self, local: LocalSensitivity) -> int:
        """s, in fine steps: the largest of A_k / a divided k times by e^b, rounded up each time.

        So neighbours keep to s' <= e^b s exactly: one division of s' takes every A_k of the neighbour to at most what A_(k + 1) of the database has become.
        Cost: at most `reach` looks and ln(most / A_0) / b.
        """
        most, enough, last = self._enough(local.most), self._enough(local.within(0)), 0
        while last < local.reach and most > enough:  # beyond this distance nothing counts
            most, last = self._shrunk(most), last + 1
        scale = known = self._enough(local.most)
        for k in reversed(range(last)):
            scale = self._shrunk(scale)
            if scale < known:  # otherwise A_k, no larger than those of larger distances, changes nothing
                known = self._enough(local.within(k))
                scale = max(scale, known)
        return max(enough, scale)

    def add(self, value: int, scale: int, draws: Draws) -> int:
        """The value with noise of this scale, rounded to a whole number."""
        return (FINE * value + draws.discrete_cauchy(scale) + FINE // 2) // FINE

    def _enough(self, sensitivity: int) -> int:
        """The least scale that hides a shift of this size."""
        return max(LEAST, -(-FINE * sensitivity * self.shift.denominator // self.shift.numerator))

    def _shrunk(self, scale: int) -> int:
        """The least scale that may stand next to this one."""
        return max(LEAST, -(-scale * self.stretch.denominator // self.stretch.numerator))


def _down(number: Fraction) -> Fraction:
    return Fraction(math.floor(number * (1 << _BITS)), 1 << _BITS)


def _root_above(square: Fraction) -> Fraction:
    """sqrt, rounded up by at most 2^-200."""
    return Fraction(math.isqrt(math.floor(square * (1 << 2 * _ROOT_BITS))) + 1, 1 << _ROOT_BITS)
