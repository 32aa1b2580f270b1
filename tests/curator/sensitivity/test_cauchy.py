"""The price of Cauchy noise, and scales that are smooth in whole numbers."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.curator.sensitivity.cauchy import FINE, LEAST, CauchyNoise, LocalSensitivity, cosh_loss, worst_ratio
from local_dp.loss import Pure, nano_epsilon

EPSILONS = (1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 24.0)


class Listed(LocalSensitivity):
    """Sensitivities that are written down."""

    def __init__(self, sensitivities: Sequence[int], most: int) -> None:
        self.value, self.last, self.most, self.reach = 0, most, most, len(sensitivities)
        self.listed = [*sensitivities, most]

    def within(self, distance: int) -> int:
        return self.listed[min(distance, self.reach)]


def largest_log_ratio(shift: float, scale: float, other: float) -> float:
    """sup over y of the absolute log ratio of the two densities, at the roots of its derivative: y^2 - (shift - (other^2 - scale^2) / shift) y - scale^2."""
    middle = (shift + (other**2 - scale**2) / shift) / 2
    places = middle + np.array([-1, 1]) * math.sqrt(middle**2 + scale**2)
    ratios = scale * ((places - shift) ** 2 + other**2) / (other * (places**2 + scale**2))
    return float(np.abs(np.log(ratios)).max())


def test_the_price_is_the_hyperbolic_distance() -> None:
    """The largest log ratio of 500 random pairs of Cauchy densities, at the stationary points, is arccosh of `cosh_loss` to 1e-9; no other passes it."""
    generator = np.random.default_rng(0)
    for shift, scale, other in np.exp(generator.uniform(-1.5, 1.5, (500, 3))).tolist():
        price = math.acosh(cosh_loss(Fraction(shift), Fraction(scale), Fraction(other)))
        assert largest_log_ratio(shift, scale, other) == pytest.approx(price, abs=1e-9)
        y = np.linspace(-30, 30, 201)
        assert np.abs(np.log(scale * ((y - shift) ** 2 + other**2) / (other * (y**2 + scale**2)))).max() <= price + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_the_exact_constants_cost_epsilon(epsilon: float) -> None:
    """Over all shifts up to a and all ratios of scales up to e^b the loss is at most epsilon, and epsilon at both ends; a tenth more of either costs more."""
    a, b = 2 * math.sinh(epsilon / 2), math.log(2 * math.cosh(epsilon) - 1)
    noise = CauchyNoise.exact(epsilon)
    assert (float(noise.shift), math.log(noise.stretch)) == pytest.approx((a, b), rel=1e-9)

    def price(shift: float, log_ratio: float) -> float:
        return largest_log_ratio(shift, 1.0, math.exp(log_ratio))

    prices = [price(a * part, b * ratio) for part, ratio in product(np.linspace(0.01, 1, 25), np.linspace(0, 1, 25))]
    assert max(prices) <= epsilon + 1e-9
    assert (price(a, 0), price(a, b)) == pytest.approx((epsilon, epsilon), abs=1e-9)
    assert min(price(1.1 * a, 0), price(a, 1.1 * b)) > epsilon + 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_loss_is_derived(epsilon: float) -> None:
    """The exact constants cost epsilon to the nano-nat; 1e-6 more of either costs more; the published ones cost less than a quarter."""
    noise, nano = CauchyNoise.exact(epsilon), nano_epsilon(epsilon)
    assert noise.loss == Pure(nano)
    if epsilon >= 1e-3:
        more = 1 + Fraction(1, 10**6)
        assert CauchyNoise(noise.shift * more, noise.stretch).loss.nano > nano
        assert CauchyNoise(noise.shift, 1 + (noise.stretch - 1) * more).loss.nano > nano
        assert CauchyNoise.published(epsilon).loss.nano < 0.24 * nano


def test_whole_numbers_cost_no_more() -> None:
    """On the whole numbers, with its own normaliser s tanh(pi s) / pi to 60 digits, no ratio passes `worst_ratio`, for 400 pairs of the least scales."""
    with localcontext() as context:
        context.prec = 60
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

        def total(scale: int) -> Decimal:  # of the weights: pi / (s tanh(pi s))
            decay = (-2 * pi * scale).exp()
            return pi / scale * (1 + decay) / (1 - decay)

        assert float(total(3)) == pytest.approx(sum(1 / (y * y + 9) for y in range(-20000, 20001)) + 1 / 10000, abs=1e-8)
        for scale, other, shift in product(range(LEAST, LEAST + 10), range(LEAST, LEAST + 10), (0, 1, 8, 20)):
            bound = worst_ratio(cosh_loss(shift, scale, other))
            worst = max(Fraction((y - shift) ** 2 + other**2, y**2 + scale**2) for y in range(-80, 81))
            exact = Decimal(worst.numerator) / worst.denominator * total(other) / total(scale)
            assert exact <= Decimal(bound.numerator) / bound.denominator


def smooth_by_definition(noise: CauchyNoise, local: Listed) -> int:
    """The largest of the scales for A_k, each divided k times."""
    result = LEAST
    for k in range(local.reach + 1):
        scale = max(LEAST, math.ceil(FINE * local.within(k) / noise.shift))
        for _ in range(k):
            scale = max(LEAST, math.ceil(scale / noise.stretch))
        result = max(result, scale)
    return result


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_scales_are_smooth(epsilon: float) -> None:
    """On 150 random pairs of neighbours (A'_k <= A_(k + 1) and back): each scale is as defined, hides A_0, and is within e^b of the other."""
    generator, noise = np.random.default_rng(1), CauchyNoise.exact(epsilon)
    for _ in range(150):
        most = int(generator.integers(1, 1 << 20))
        n = int(generator.integers(1, 30))
        ours = np.sort((most * generator.random(n + 1) ** generator.integers(1, 12)).astype(np.int64))
        low, high = np.concatenate([[0], ours[:-1]]), np.append(ours[1:], most)
        theirs = np.maximum.accumulate(generator.integers(low, high + 1))
        one, other = Listed(ours.tolist(), most), Listed(theirs.tolist(), most)
        scales = [noise.scale(one), noise.scale(other)]
        assert scales == [smooth_by_definition(noise, one), smooth_by_definition(noise, other)]
        assert max(scales) <= noise.stretch * min(scales)
        assert all(FINE * local.within(0) <= noise.shift * scale for local, scale in zip((one, other), scales, strict=True))
