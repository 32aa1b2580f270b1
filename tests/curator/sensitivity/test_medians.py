"""Cauchy noise, its price and its smooth scales; private medians: sensitivity by brute force,
privacy on every small database."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sensitivity.mechanisms import (
    FINE,
    LEAST,
    CauchyNoise,
    ExponentialMedian,
    LocalSensitivity,
    Median,
    ProposedMedian,
    SmoothMedian,
    cosh_loss,
    worst_ratio,
)
from local_dp.draws import Draws
from local_dp.loss import Pure, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise
from tests.support.mechanisms.case import wrong
from tests.support.runs.scripted import seeded

EPSILONS = (1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 24.0)


class Listed(LocalSensitivity):
    """Sensitivities that are written down."""

    def __init__(self, sensitivities: Sequence[int], most: int) -> None:
        self.value, self.last, self.most, self.reach = 0, most, most, len(sensitivities)
        self.listed = [*sensitivities, most]

    def within(self, distance: int) -> int:
        return self.listed[min(distance, self.reach)]


def largest_log_ratio(shift: float, scale: float, other: float) -> float:
    """sup over y of the absolute log ratio of the two densities, at the roots of its derivative:
    y^2 - (shift - (other^2 - scale^2) / shift) y - scale^2."""
    middle = (shift + (other**2 - scale**2) / shift) / 2
    places = middle + np.array([-1, 1]) * math.sqrt(middle**2 + scale**2)
    ratios = scale * ((places - shift) ** 2 + other**2) / (other * (places**2 + scale**2))
    return float(np.abs(np.log(ratios)).max())


def test_the_price_is_the_hyperbolic_distance() -> None:
    """The largest log ratio of 500 random pairs of Cauchy densities, at the stationary points, is
    arccosh of `cosh_loss` to 1e-9; no other passes it."""
    generator = np.random.default_rng(0)
    for shift, scale, other in np.exp(generator.uniform(-1.5, 1.5, (500, 3))).tolist():
        price = math.acosh(cosh_loss(Fraction(shift), Fraction(scale), Fraction(other)))
        assert largest_log_ratio(shift, scale, other) == pytest.approx(price, abs=1e-9)
        y = np.linspace(-30, 30, 201)
        assert (
            np.abs(
                np.log(scale * ((y - shift) ** 2 + other**2) / (other * (y**2 + scale**2)))
            ).max()
            <= price + 1e-12
        )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_the_exact_constants_cost_epsilon(epsilon: float) -> None:
    """Over all shifts up to a and all ratios of scales up to e^b the loss is at most epsilon, and
    epsilon at both ends; a tenth more of either costs more."""
    a, b = 2 * math.sinh(epsilon / 2), math.log(2 * math.cosh(epsilon) - 1)
    noise = CauchyNoise.exact(epsilon)
    assert (float(noise.shift), math.log(noise.stretch)) == pytest.approx((a, b), rel=1e-9)

    def price(shift: float, log_ratio: float) -> float:
        return largest_log_ratio(shift, 1.0, math.exp(log_ratio))

    prices = [
        price(a * part, b * ratio)
        for part, ratio in product(np.linspace(0.01, 1, 25), np.linspace(0, 1, 25))
    ]
    assert max(prices) <= epsilon + 1e-9
    assert (price(a, 0), price(a, b)) == pytest.approx((epsilon, epsilon), abs=1e-9)
    assert min(price(1.1 * a, 0), price(a, 1.1 * b)) > epsilon + 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_loss_is_derived(epsilon: float) -> None:
    """The exact constants cost epsilon to the nano-nat; 1e-6 more of either costs more; the
    published ones cost less than a quarter."""
    noise, nano = CauchyNoise.exact(epsilon), nano_epsilon(epsilon)
    assert noise.loss == Pure(nano)
    if epsilon >= 1e-3:
        more = 1 + Fraction(1, 10**6)
        assert CauchyNoise(noise.shift * more, noise.stretch).loss.nano > nano
        assert CauchyNoise(noise.shift, 1 + (noise.stretch - 1) * more).loss.nano > nano
        assert CauchyNoise.published(epsilon).loss.nano < 0.24 * nano


def test_whole_numbers_cost_no_more() -> None:
    """On the whole numbers, with its own normaliser s tanh(pi s) / pi to 60 digits, no ratio passes
    `worst_ratio`, for 400 pairs of the least scales."""
    with localcontext() as context:
        context.prec = 60
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

        def total(scale: int) -> Decimal:  # of the weights: pi / (s tanh(pi s))
            decay = (-2 * pi * scale).exp()
            return pi / scale * (1 + decay) / (1 - decay)

        assert float(total(3)) == pytest.approx(
            sum(1 / (y * y + 9) for y in range(-20000, 20001)) + 1 / 10000, abs=1e-8
        )
        for scale, other, shift in product(
            range(LEAST, LEAST + 10), range(LEAST, LEAST + 10), (0, 1, 8, 20)
        ):
            bound = worst_ratio(cosh_loss(shift, scale, other))
            worst = max(
                Fraction((y - shift) ** 2 + other**2, y**2 + scale**2) for y in range(-80, 81)
            )
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
    """On 150 random pairs of neighbours (A'_k <= A_(k + 1) and back): each scale is as defined,
    hides A_0, and is within e^b of the other."""
    generator, noise = np.random.default_rng(1), CauchyNoise.exact(epsilon)
    for _ in range(150):
        most = int(generator.integers(1, 1 << 20))
        n = int(generator.integers(1, 30))
        ours = np.sort(
            (most * generator.random(n + 1) ** generator.integers(1, 12)).astype(np.int64)
        )
        low, high = np.concatenate([[0], ours[:-1]]), np.append(ours[1:], most)
        theirs = np.maximum.accumulate(generator.integers(low, high + 1))
        one, other = Listed(ours.tolist(), most), Listed(theirs.tolist(), most)
        scales = [noise.scale(one), noise.scale(other)]
        assert scales == [smooth_by_definition(noise, one), smooth_by_definition(noise, other)]
        assert max(scales) <= noise.stretch * min(scales)
        assert all(
            FINE * local.within(0) <= noise.shift * scale
            for local, scale in zip((one, other), scales, strict=True)
        )


Records = tuple[tuple[int], ...]
FIVE = [(0,), (1,), (3,), (6,), (7,)]  # points of 0..7


@cache
def multiset(records: Records, bits: int = 3) -> Multiset:
    return Multiset.of([value for (value,) in records], bits)


def small(n: int, universe: list[tuple[int]]) -> SmallDatabases[tuple[int], Multiset]:
    return SmallDatabases(universe, n, multiset)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sensitivities_by_brute_force(n: int) -> None:
    """On all multisets of n points of 0..3, odd and even n: A_k is the largest step of the median
    over all databases at distance k or less, for every k."""
    near: dict[Records, set[Records]] = {
        tuple((v,) for v in records): set()
        for records in combinations_with_replacement(range(4), n)
    }
    for one, other in small(n, [(value,) for value in range(4)]).pairs("replace"):
        near[one].add(other)

    def middle(records: Records) -> int:
        return records[(n + 1) // 2 - 1][0]

    database = {
        records: max(abs(middle(records) - middle(other)) for other in others)
        for records, others in near.items()
    }
    for distance in range(n + 2):
        for records, sensitivity in database.items():
            median = Median(multiset(records, 2))
            assert (median.value, median.within(distance)) == (middle(records), sensitivity)
        database = {
            records: max(sensitivity, *(database[other] for other in near[records]))
            for records, sensitivity in database.items()
        }


def test_distance_to_a_larger_sensitivity() -> None:
    """Found by halving, it is the first distance whose A_k is above the bound, or the largest that
    is asked for."""
    for records in combinations_with_replacement([value for (value,) in FIVE], 5):
        median = Median(Multiset.of(records, 3))
        for bound in range(9):
            for most in (0, 2, 6):
                assert median.stable(bound, most) == next(
                    (k for k in range(most) if median.within(k) > bound), most
                )


LocalNoise = wrong(
    CauchyNoise,
    scale=lambda own, right: (
        lambda local: max(LEAST, math.ceil(FINE * local.within(0) / own.shift))
    ),
)
"""The local sensitivity in place of the smooth one."""


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_smooth_medians_are_private_in_fractions(epsilon: float) -> None:
    """No float: on all multisets of 5 from five points and all replacements `worst_ratio`, which no
    ratio of the laws passes, is at most e^epsilon."""

    def worst(noise: CauchyNoise) -> Fraction:
        database = {
            records: Median(multiset(records))
            for pair in small(5, FIVE).pairs("replace")
            for records in pair
        }
        scales = {records: noise.scale(median) for records, median in database.items()}
        steps = {
            (FINE * abs(database[one].value - database[other].value), scales[one], scales[other])
            for one, other in small(5, FIVE).pairs("replace")
        }
        return max(worst_ratio(cosh_loss(*step)) for step in steps)

    exact = CauchyNoise.exact(epsilon)
    assert exp_epsilon(round(0.95 * exact.loss.nano)) < worst(exact) <= exp_epsilon(exact.loss.nano)
    assert worst(LocalNoise(exact.shift, exact.stretch)) > 10 * exp_epsilon(exact.loss.nano)


def test_smooth_medians_of_all_small_domains_are_within_the_price() -> None:
    """Exactly: on all multisets of 1 to 4 from all of 0..7, the shift is at most a times the
    smaller scale, and the scales at most e^b apart."""
    noise = CauchyNoise.exact(1.0)
    for n in range(1, 5):
        database = {
            records: Median(multiset(records))
            for pair in small(n, [(value,) for value in range(8)]).pairs("replace")
            for records in pair
        }
        scales = {records: noise.scale(median) for records, median in database.items()}
        for one, other in small(n, [(value,) for value in range(8)]).pairs("replace"):
            low, high = sorted([scales[one], scales[other]])
            assert FINE * abs(database[one].value - database[other].value) <= noise.shift * low
            assert high <= noise.stretch * low


def test_smooth_medians_are_rounded_to_the_nearest() -> None:
    """The noise is asked at the scale of the median (`tests/curator/test_conformance.py`); half a
    step is rounded up, and the ends of the range stay."""
    points = Multiset.of([2, 2, 3, 5, 6], 3)
    for steps, answer in (
        (0, 3),
        (FINE // 2 - 1, 3),
        (FINE // 2, 4),
        (-FINE // 2, 3),
        (-FINE // 2 - 1, 2),
        (5 * FINE, 7),
        (-9 * FINE, 0),
        (3 * FINE, 6),
    ):

        class Given(Draws):
            def discrete_cauchy(self, scale: int) -> int:
                return steps  # noqa: B023

        assert SmoothMedian(CauchyNoise.exact(1.0)).release(points, Given(KeyedNoise(0))) == answer


def test_proposals_answer_near_no_sensitive_database() -> None:
    """A database at distance 0 answers with probability at most delta, the least threshold for it;
    at twice that distance one that is stable nearly always."""
    for epsilon, delta in ((1.0, 1e-6), (2.0, 0.05), (0.01, 1e-9), (20.0, 0.3)):
        mechanism = ProposedMedian(1, epsilon, delta)
        assert mechanism.answered(0) <= delta * (1 + 1e-12)
        assert mechanism.margin == 0 or mechanism.answered(1) > delta
        assert mechanism.answered(2 * mechanism.margin + 1) > 1 - delta * (1 + 1e-12)
    mechanism = ProposedMedian(1, 2.0, 0.05)
    alike, spread = Multiset.of([3] * 40, 3), Multiset.of([0, 7], 3)
    draws = seeded(6)
    assert mechanism.release(alike, draws) is not None
    # fails once in 1e-4 at worst
    assert [mechanism.release(spread, draws) for _ in range(20)].count(None) >= 17


def test_scores_are_records_to_replace() -> None:
    """On all multisets of 1 to 5 from five points, each point's score is minus the least number of
    replaced records that makes it the median."""
    for n in range(1, 6):
        for records in combinations_with_replacement([value for (value,) in FIVE], n):
            runs, middle = ExponentialMedian(1.0).candidates(Multiset.of(records, 3)), (n + 1) // 2
            for y in range(8):
                below, upto = sum(x < y for x in records), sum(x <= y for x in records)
                assert runs.scores[runs.run_of(y)] == -max(0, below - middle + 1, middle - upto)
