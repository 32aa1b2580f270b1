"""Privacy-loss laws on whole multiples of one step, in whole weights: the losses of small mechanisms, and their exact sums."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Pure, exp_epsilon


@dataclass(frozen=True)
class Lattice:
    """The loss is (least + i) ln(growth) nats with probability `weights[i]` / `total`, and infinite with probability `infinite` / `total`.

    The law of ln(Pr[y] / Pr'[y]) for y drawn from Pr, which dominates every pair of neighbours both ways. `growth` = e^step is a fraction.
    Where e^step is irrational, `growth` is just below it (`exp_epsilon`). All else is exact. Raises InputError where no law Pr' fits.
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
        return sum(self.weights) + self.infinite

    @property
    def other_mass(self) -> Fraction:
        """The sum of weight e^-loss: the mass of the other law where the loss is finite."""
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
        """The total loss of `parts` of them, adaptive or not. Raises InputError unless parts is 1 or more."""
        if parts < 1:
            raise InputError(f"parts is {parts}; give 1 or more")
        if parts == 1:
            return self
        half = self.times(parts // 2)
        return half + half + self if parts % 2 else half + half

    def __add__(self, other: "Lattice | Pure | Approximate") -> "Lattice":
        """The law of the sum; a pure or approximate loss counts as a randomized response, rounded up to this step. Raises InputError where steps differ."""
        if isinstance(other, Pure | Approximate):
            steps, ratio = 0, exp_epsilon(other.nano)
            while self.growth**steps < ratio:
                steps += 1
            return self + response(self.growth, steps, Fraction(other.atto, ATTO))
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


def response(growth: Fraction, steps: int = 1, delta: Fraction = Fraction(0)) -> Lattice:
    """The loss of a randomized response of `steps` steps that reveals its input with probability `delta`: the worst of all mechanisms of that loss.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3: every mechanism of this loss can be computed from its answer.
    """
    if steps == 0:
        return Lattice(growth, 0, (delta.denominator - delta.numerator,), delta.numerator)
    ratio, hidden = growth**steps, delta.denominator - delta.numerator
    whole = ratio.numerator + ratio.denominator
    weights = (ratio.denominator * hidden, *(0,) * (2 * steps - 1), ratio.numerator * hidden)
    return Lattice(growth, -steps, weights, delta.numerator * whole)


def discrete_laplace(nano: int, sensitivity: int = 1) -> Lattice:
    """The exact loss of discrete Laplace noise of ratio e^(-eps / m), eps = `nano` / 1e9 nats. One record moves the sum by m = `sensitivity`.

    With r = e^(-eps / m): loss (m - 2 y) eps / m where the noise is y. For m = 1 it is always +-eps, as for a randomized response.
    """
    if nano < 1 or sensitivity < 1:
        raise InputError(f"discrete Laplace noise of {nano} nano-nats and sensitivity {sensitivity}; give 1 or more of each")
    growth, m = exp_epsilon(Fraction(nano, sensitivity)), sensitivity
    more, less = growth.numerator, growth.denominator
    inside = {m - 2 * y: less**y * more ** (m - y) * (more - less) for y in range(1, m)}
    weights = {m: more ** (m + 1), **inside, -m: less**m * more}
    return Lattice(growth, -m, tuple(weights.get(place, 0) for place in range(-m, m + 1)))
