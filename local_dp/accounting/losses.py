"""Losses with more than one number: laws on whole multiples of one step, exact in whole weights;
Gaussian noise, its price, and its discrete counterpart."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Self

from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Concentrated, Pure, exp_epsilon
from local_dp.optimise import crossing, least_whole


@dataclass(frozen=True)
class Lattice:
    """The loss is (least + i) ln(growth) nats with probability `weights[i]` / `total`, and infinite
    with probability `infinite` / `total`.

    The law of ln(Pr[y] / Pr'[y]) for y drawn from Pr, which dominates every pair of neighbours both
    ways. `growth` = e^step is a fraction. Where e^step is irrational, `growth` is just below it
    (`exp_epsilon`). All else is exact. Raises InputError where no law Pr' fits.
    """

    growth: Fraction
    least: int
    weights: tuple[int, ...]
    infinite: int = 0

    def __post_init__(self) -> None:
        if (
            self.growth <= 1
            or not self.weights
            or min(*self.weights, self.infinite) < 0
            or not sum(self.weights)
        ):
            raise InputError(
                "a loss law needs a growth above 1 and weights of 0 or more, not all 0"
            )
        if self._sum(self.weights, self.least) > self.total:
            raise InputError(
                "these losses are too low: the other law would have more than all probability"
            )

    @property
    def total(self) -> int:
        return sum(self.weights) + self.infinite

    @property
    def step(self) -> float:
        """In nats."""
        with localcontext(prec=60):
            return float((Decimal(self.growth.numerator) / Decimal(self.growth.denominator)).ln())

    @property
    def epsilon(self) -> float:
        """The largest finite loss, in nats."""
        return self.step * (self.least + len(self.weights) - 1)

    def delta(self, whole: Fraction) -> Fraction:
        """The least delta beside epsilon = ln `whole`: Pr[loss infinite] + the mean of max(0, 1 -
        whole e^-loss), exactly."""
        high = 0
        while high < len(self.weights) and self.growth ** (self.least + high) <= whole:
            high += 1
        above = self.weights[high:]
        rest = self._sum(above, self.least + high)
        return (self.infinite + sum(above) - whole * rest) / Fraction(self.total)

    def times(self, parts: int) -> "Lattice":
        """The total loss of `parts` of them, adaptive or not. Raises InputError unless parts is 1
        or more."""
        check_whole("parts", parts, 1, 10**8)
        if parts == 1:
            return self
        half = self.times(parts // 2)
        return half + half + self if parts % 2 else half + half

    def __add__(self, other: "Lattice | Pure | Approximate") -> "Lattice":
        """The law of the sum; a pure or approximate loss counts as a randomized response, rounded
        up to this step. Raises InputError where steps differ."""
        if isinstance(other, Pure | Approximate):
            steps, ratio = 0, exp_epsilon(other.nano)
            while self.growth**steps < ratio:
                steps += 1
            return self + response(self.growth, steps, Fraction(other.atto, ATTO))
        if not isinstance(other, Lattice):
            return NotImplemented
        if other.growth != self.growth:
            raise InputError(
                f"loss laws of steps {self.step:g} and {other.step:g} do not add up exactly; give "
                "them one step"
            )
        weights = [0] * (len(self.weights) + len(other.weights) - 1)
        for place, weight in enumerate(self.weights):
            if weight:
                for further, factor in enumerate(other.weights, place):
                    weights[further] += weight * factor
        infinite = self.total * other.total - sum(weights)
        return Lattice(self.growth, self.least + other.least, tuple(weights), infinite)

    __radd__ = __add__

    def _sum(self, weights: tuple[int, ...], least: int) -> Fraction:
        """The sum of weights[i] growth^-(least + i), by Horner's rule in whole numbers."""
        more, less = self.growth.numerator, self.growth.denominator
        total, scale = 0, 1  # total / (more^(i - 1)), read from the highest weight on
        for weight in reversed(weights):
            total = total * less + weight * scale
            scale = scale * more
        return Fraction(total * more, scale) / self.growth**least if weights else Fraction(0)


def response(growth: Fraction, steps: int = 1, delta: Fraction = Fraction(0)) -> Lattice:
    """The loss of a randomized response that reveals its input with probability `delta`: the worst
    of that loss (Kairouz, Oh, Viswanath 2015)."""
    if steps == 0:
        return Lattice(growth, 0, (delta.denominator - delta.numerator,), delta.numerator)
    ratio = growth**steps
    rest = delta.denominator - delta.numerator
    whole = ratio.numerator + ratio.denominator
    weights = (ratio.denominator * rest, *(0,) * (2 * steps - 1), ratio.numerator * rest)
    return Lattice(growth, -steps, weights, delta.numerator * whole)


def discrete_laplace(nano: int, sensitivity: int = 1) -> Lattice:
    """The exact loss of discrete Laplace noise of ratio e^(-eps / m), m = `sensitivity`, eps =
    `nano` / 1e9: (m - 2 y) eps / m where the noise is y."""
    if nano < 1 or sensitivity < 1:
        raise InputError(
            f"discrete Laplace noise of {nano} nano-nats and sensitivity {sensitivity}; give 1 or "
            "more of each"
        )
    growth, m = exp_epsilon(Fraction(nano, sensitivity)), sensitivity
    more, less = growth.numerator, growth.denominator
    inside = {m - 2 * y: less**y * more ** (m - y) * (more - less) for y in range(1, m)}
    weights = {m: more ** (m + 1), **inside, -m: less**m * more}
    masses = (weights.get(place, 0) for place in range(-m, m + 1))
    return Lattice(growth, -m, tuple(masses))


SIGMAS = (0.1, 10_000.0)
_FAR = 25.0  # standard deviations from where on a tail is its continued fraction
_MARGIN = 1 + 1e-11  # more than the rounding of a closed form


@dataclass(frozen=True)
class _Noise:
    """mu^2 = `atto_mu2` / 1e18; one answer of sensitivity 1 with noise of standard deviation sigma
    has mu = 1 / sigma."""

    atto_mu2: int

    def __post_init__(self) -> None:
        if type(self.atto_mu2) is not int or self.atto_mu2 < 1:
            raise InputError(
                f"mu^2 is {self.atto_mu2!r} units of 1e-18; give a whole number, 1 or more"
            )

    @classmethod
    def of_sigma(cls, sigma: float) -> Self:
        """One answer of sensitivity 1. Raises InputError unless .1 <= sigma <= 10,000."""
        if not SIGMAS[0] <= sigma <= SIGMAS[1]:  # also false for NaN
            raise InputError(
                f"sigma is {sigma:g}; give a number from {SIGMAS[0]:g} to {SIGMAS[1]:,.0f}"
            )
        return cls(math.ceil(ATTO / Fraction(repr(float(sigma))) ** 2))

    @property
    def mu(self) -> float:
        """The distance of the two laws, in standard deviations."""
        return math.sqrt(self.atto_mu2 / ATTO)


@dataclass(frozen=True)
class Gaussian(_Noise):
    """Normal noise, of one answer or many, to compare with: the loss is normal with mean mu^2 / 2
    and variance mu^2; several mu^2 add up exactly."""

    def __add__(self, other: "Gaussian") -> "Gaussian":
        return Gaussian(self.atto_mu2 + other.atto_mu2)


@dataclass(frozen=True)
class DiscreteGaussian(_Noise):
    """Noise y of weight e^(-y^2 mu^2 / 2) on a count that one record moves by 1: the loss is (1 - 2
    y) mu^2 / 2, and rho = mu^2 / 2.

    Several do not add up to another. Source: Canonne, Kamath, Steinke 2020, Theorem 4.
    """

    @property
    def step(self) -> float:
        """Losses are odd multiples of half of this, in nats."""
        return self.atto_mu2 / ATTO


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Phi(mu / 2 - eps / mu) - e^eps Phi(-mu / 2 - eps / mu): the least delta, exact, rounded up.
    Source: Balle, Wang 2018, Theorem 8."""
    near = epsilon / mu - mu / 2
    far = epsilon / mu + mu / 2
    density = math.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)  # that of `far` times e^eps
    if near >= _FAR:
        return density * (_mills(near) - _mills(far)) * _MARGIN
    other = density * _mills(far) if far >= _FAR else math.exp(epsilon) * _tail(far)
    return max(0.0, _tail(near) - other) * _MARGIN + 1e-16 * _tail(near)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon (nats) beside this delta, by bisection, rounded up."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta))  # the normal tail of the loss alone
    return crossing(0.0, most, lambda epsilon: gaussian_delta(mu, epsilon) > delta, 200)[1]


def _tail(z: float) -> float:
    """Pr[N(0, 1) > z], to full relative precision far out."""
    return math.erfc(z / math.sqrt(2)) / 2


def _mills(z: float) -> float:
    """Pr[N(0, 1) > z] over its density, for z of 25 or more: by its continued fraction."""
    fraction = z
    for term in range(20, 0, -1):
        fraction = z + term / fraction
    return 1 / fraction


_UP = 1 + 1e-12  # more than the rounding of a few floats


def conversion(rho: float, delta: float) -> float:
    """The least epsilon that rho-zCDP gives beside delta: a rho + ln(1 / (a delta)) / (a - 1) +
    ln(1 - 1 / a) at its best order a > 1; any order is safe.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """

    def at(log_more: float) -> float:
        order = 1 + math.exp(log_more)
        surcharge = math.log(order * delta)
        return order * rho - surcharge / (order - 1) + math.log1p(-1 / order)

    best = min(range(-40, 60), key=lambda quarter: at(quarter / 4)) / 4
    low = best - 0.25
    high = best + 0.25
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        near = high - golden * (high - low)
        far = low + golden * (high - low)
        low, high = (low, far) if at(near) < at(far) else (near, high)
    return at((low + high) / 2) * _UP


@lru_cache(maxsize=1024)  # the same budget is converted for each mechanism that is built
def rho_within(budget: Approximate) -> Concentrated:
    """The most rho, in whole units of 1e-18, that comes to no more than the budget. Raises
    InputError where there is none or no delta."""
    if budget.atto:
        most = (
            least_whole(
                0, 1 << 70, lambda rho: conversion(rho / ATTO, budget.delta) > budget.epsilon
            )
            - 1
        )
    else:
        most = 0
    if not most:
        raise InputError(f"{budget} is worth no rho; give a delta above 0 and a larger epsilon")
    return Concentrated(most)
