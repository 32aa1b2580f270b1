"""Privacy-loss laws on whole multiples of one step, in whole weights: what small mechanisms lose, and what they lose together, exactly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Self, TypeVar

from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Pure, exp_epsilon

R = TypeVar("R")


@dataclass(frozen=True)
class Lattice:
    """The loss is (least + i) ln(growth) nats with probability `weights[i]` / `total`, and infinite with probability `infinite` / `total`.

    The law of ln(Pr[y] / Pr'[y]) for y drawn from Pr, which dominates every pair of neighbours both ways. `growth`, e^step, is a fraction: where e^step is
    none, it is one just below (`exp_epsilon`), and everything is exact for whatever stands there. Raises InputError where no law Pr' could be the other one.
    """

    growth: Fraction
    least: int
    weights: tuple[int, ...]
    infinite: int = 0

    def __post_init__(self) -> None:
        if self.growth <= 1 or not self.weights or min(*self.weights, self.infinite) < 0 or not sum(self.weights):
            raise InputError("a loss law needs a growth above 1 and weights of 0 or more, not all 0")
        if self.other_mass > self.total:
            raise InputError("these losses are too low: the other law would have more than all probability")

    @property
    def total(self) -> int:
        """All weights together."""
        return sum(self.weights) + self.infinite

    @property
    def other_mass(self) -> Fraction:
        """The sum of weight e^-loss: what the other law puts where the loss is finite."""
        return self._summed(self.weights, self.least)

    @property
    def step(self) -> float:
        """In nats."""
        with localcontext() as context:
            context.prec = 60
            return float((Decimal(self.growth.numerator) / Decimal(self.growth.denominator)).ln())

    @property
    def epsilon(self) -> float:
        """The largest finite loss, in nats."""
        return self.step * (self.least + len(self.weights) - 1)

    def delta(self, whole: Fraction) -> Fraction:
        """The least delta beside epsilon = ln `whole`: Pr[loss infinite] + the mean of max(0, 1 - whole e^-loss), exactly."""
        high = 0
        while high < len(self.weights) and self.growth ** (self.least + high) <= whole:
            high += 1
        above = self.weights[high:]
        return (self.infinite + sum(above) - whole * self._summed(above, self.least + high)) / Fraction(self.total)

    def times(self, parts: int) -> "Lattice":
        """What `parts` of them lose together, chosen adaptively or not. Raises InputError unless parts is 1 or more."""
        if parts < 1:
            raise InputError(f"parts is {parts}; give 1 or more")
        half = self.times(parts // 2) if parts > 1 else None
        even = half + half if half else None
        return self if even is None else even + self if parts % 2 else even

    def __add__(self, other: "Lattice | Pure | Approximate") -> "Lattice":
        """The law of the sum. A loss that is no lattice is that of a randomized response, rounded up to this one. Raises InputError where the steps differ."""
        if isinstance(other, Pure | Approximate):
            return self + response(self.growth, self._reaching(exp_epsilon(other.nano)), Fraction(other.atto, ATTO))
        if not isinstance(other, Lattice):
            return NotImplemented
        if other.growth != self.growth:
            raise InputError(f"loss laws of steps {self.step:g} and {other.step:g} do not add up exactly; give them one step")
        weights = [0] * (len(self.weights) + len(other.weights) - 1)
        for place, weight in enumerate(self.weights):
            if weight:
                for further, factor in enumerate(other.weights, place):
                    weights[further] += weight * factor
        infinite = self.total * other.total - sum(weights)
        return Lattice(self.growth, self.least + other.least, tuple(weights), infinite)

    __radd__ = __add__

    def _summed(self, weights: tuple[int, ...], least: int) -> Fraction:
        """The sum of weights[i] growth^-(least + i), by Horner's rule in whole numbers."""
        more, less = self.growth.numerator, self.growth.denominator
        total, scale = 0, 1  # total / (more^(i - 1)), read from the highest weight on
        for weight in reversed(weights):
            total, scale = total * less + weight * scale, scale * more
        return Fraction(total * more, scale) / self.growth**least if weights else Fraction(0)

    def _reaching(self, ratio: Fraction) -> int:
        """The least number of steps that reaches the ratio."""
        steps = 0
        while self.growth**steps < ratio:
            steps += 1
        return steps

    @classmethod
    def of_laws(cls, law: Mapping[R, int], other: Mapping[R, int], growth: Fraction) -> Self:
        """The loss of a pair of laws in whole weights. Raises InputError where a ratio of two probabilities is no power of `growth`."""
        total, others, found, infinite = sum(law.values()), sum(other.values()), dict[int, int](), 0
        more, less, step = growth.numerator, growth.denominator, math.log(growth)
        for outcome, weight in law.items():
            against = other.get(outcome, 0)
            if weight and against:
                here, there = weight * others, against * total
                place = round((math.log(here) - math.log(there)) / step)
                if here * (less**place if place > 0 else more**-place) != there * (more**place if place > 0 else less**-place):
                    raise InputError(f"a ratio of two probabilities, {here / there:g}, is no power of {float(growth):g}")
                found[place] = found.get(place, 0) + weight
            infinite += 0 if against else weight
        least = min(found)
        return cls(growth, least, tuple(found.get(place, 0) for place in range(least, max(found) + 1)), infinite)


def response(growth: Fraction, steps: int = 1, delta: Fraction = Fraction(0)) -> Lattice:
    """The loss of a randomized response of `steps` steps that tells all with probability `delta`: the worst of all mechanisms of that loss.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3: whatever has this loss is computed from its answer.
    """
    if steps == 0:
        return Lattice(growth, 0, (delta.denominator - delta.numerator,), delta.numerator)
    ratio, shown = growth**steps, delta.denominator - delta.numerator
    whole = ratio.numerator + ratio.denominator
    weights = (ratio.denominator * shown, *(0,) * (2 * steps - 1), ratio.numerator * shown)
    return Lattice(growth, -steps, weights, delta.numerator * whole)


def discrete_laplace(nano: int, sensitivity: int = 1) -> Lattice:
    """The loss of discrete Laplace noise of ratio e^(-eps / m) on a sum that one record moves by m = `sensitivity`, eps = `nano` / 1e9 nats: exact.

    With r = e^(-eps / m): loss (m - 2 y) eps / m where the noise is y. For m = 1 it is always +-eps, as a randomized response's is.
    """
    if nano < 1 or sensitivity < 1:
        raise InputError(f"discrete Laplace noise of {nano} nano-nats and sensitivity {sensitivity}; give 1 or more of each")
    growth, m = exp_epsilon(Fraction(nano, sensitivity)), sensitivity
    more, less = growth.numerator, growth.denominator
    inside = {m - 2 * y: less**y * more ** (m - y) * (more - less) for y in range(1, m)}
    found = {m: more ** (m + 1), **inside, -m: less**m * more}
    return Lattice(growth, -m, tuple(found.get(place, 0) for place in range(-m, m + 1)))
