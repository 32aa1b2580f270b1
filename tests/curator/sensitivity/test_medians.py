"""Cauchy noise, its price and its smooth scales; private medians: sensitivity by brute force,
privacy on every small database."""

import math
from collections import defaultdict
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
from local_dp.loss import Pure, approximate, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise
from tests.support.mechanisms.case import twin_of
from tests.support.wrong import wrong


class Listed(LocalSensitivity):
    """Sensitivities that are written down."""

    def __init__(self, sensitivities: Sequence[int], most: int) -> None:
        self.value, self.last, self.most, self.reach = 0, most, most, len(sensitivities)
        self.bounds = [*sensitivities, most]

    def within(self, distance: int) -> int:
        return self.bounds[min(distance, self.reach)]


def largest_log_ratio(shift: float, scale: float, other: float) -> float:
    """sup over y of the absolute log ratio of the two densities, at the roots of its derivative:
    y^2 - (shift - (other^2 - scale^2) / shift) y - scale^2."""
    middle = (shift + (other**2 - scale**2) / shift) / 2
    places = middle + np.array([-1, 1]) * math.sqrt(middle**2 + scale**2)
    ratios = scale / other * ((places - shift) ** 2 + other**2) / (places**2 + scale**2)
    return float(np.abs(np.log(ratios)).max())


def test_the_price_is_the_hyperbolic_distance() -> None:
    """The largest log ratio of 500 random pairs of Cauchy densities, at the stationary points, is
    arccosh of `cosh_loss` to 1e-9."""
    for triple in np.exp(np.random.default_rng(0).uniform(-1.5, 1.5, (500, 3))).tolist():
        price = math.acosh(cosh_loss(*map(Fraction, triple)))
        assert largest_log_ratio(*triple) == pytest.approx(price, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 3.0, 24.0])
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

    def fraction(part: Fraction) -> Decimal:
        return Decimal(part.numerator) / part.denominator

    with localcontext(prec=60):
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        totals = dict[int, Decimal]()
        for scale in range(3, LEAST + 10):  # of the weights: pi / (s tanh(pi s))
            decay = (-2 * pi * scale).exp()
            totals[scale] = pi / scale * (1 + decay) / (1 - decay)
        by_hand = sum(1 / (y * y + 9) for y in range(-20000, 20001)) + 1 / 10000
        assert float(totals[3]) == pytest.approx(by_hand, abs=1e-8)
        scales = range(LEAST, LEAST + 10)
        for scale, other, shift in product(scales, scales, (0, 1, 8, 20)):
            worst = max(
                Fraction((y - shift) ** 2 + other**2, y**2 + scale**2) for y in range(-80, 81)
            )
            bound = fraction(worst_ratio(cosh_loss(shift, scale, other)))
            assert fraction(worst) * totals[other] / totals[scale] <= bound


def smooth_by_definition(noise: CauchyNoise, local: Listed) -> int:
    """The largest of the scales for A_k, each divided k times."""
    result = LEAST
    for k in range(local.reach + 1):
        scale = max(LEAST, math.ceil(FINE * local.within(k) / noise.shift))
        for _ in range(k):
            scale = max(LEAST, math.ceil(scale / noise.stretch))
        result = max(result, scale)
    return result


@wrong(
    "local_dp.curator.sensitivity.mechanisms:CauchyNoise.scale",
    "max(enough, scale)",
    "enough",
    "the scale itself tells how sensitive the database is",
    at="0.2",
)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_scales_are_smooth(epsilon: float) -> None:
    """On 150 random pairs of neighbours (A'_k <= A_(k + 1) and back): each scale is as defined,
    hides A_0, and is within e^b of the other."""
    generator, noise = np.random.default_rng(1), CauchyNoise.exact(epsilon)
    for _ in range(150):
        most, n = int(generator.integers(1, 1 << 20)), int(generator.integers(1, 30))
        shares = generator.random(n + 1) ** generator.integers(1, 12)
        ours = np.sort((most * shares).astype(np.int64))
        steps = generator.integers([0, *ours[:-1]], np.append(ours[1:], most) + 1)
        theirs = np.maximum.accumulate(steps)
        scales = []
        for local in (Listed(ours.tolist(), most), Listed(theirs.tolist(), most)):
            scales.append(noise.scale(local))
            assert scales[-1] == smooth_by_definition(noise, local)
            assert FINE * local.within(0) <= noise.shift * scales[-1]
        assert max(scales) <= noise.stretch * min(scales)


Records = tuple[int, ...]


def databases(n: int, universe: Sequence[int]) -> SmallDatabases[tuple[int], Records]:
    """Multisets of n of these points, as tuples."""
    return SmallDatabases(
        [(value,) for value in universe], n, lambda records: tuple(value for (value,) in records)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sensitivities_by_brute_force(n: int) -> None:
    """On all multisets of n points of 0..3, odd and even n: A_k is the largest step of the median
    over all databases at distance k or less, for every k."""
    small, steps, middle = databases(n, range(4)), dict[Records, int](), (n - 1) // 2
    near = defaultdict[Records, set[Records]](set)
    for pair in small.pairs("replace"):
        one, other = map(small.build, pair)
        near[one].add(other)
    for records, others in near.items():
        steps[records] = max(abs(records[middle] - other[middle]) for other in others)
    for distance in range(n + 2):
        for records, step in steps.items():
            median = Median(Multiset.of(records, 2))
            assert (median.value, median.within(distance)) == (records[middle], step)
        steps = {
            records: max(step, *(steps[other] for other in near[records]))
            for records, step in steps.items()
        }


FIVE = (0, 1, 3, 6, 7)  # points of 0..7


LocalNoise = twin_of(
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
        small, steps = databases(5, FIVE), set[tuple[int, int, int]]()
        median = cache(lambda records: Median(Multiset.of(small.build(records), 3)))
        scale = cache(noise.scale)
        for pair in small.pairs("replace"):
            one, other = map(median, pair)
            steps.add((FINE * abs(one.value - other.value), scale(one), scale(other)))
        return max(worst_ratio(cosh_loss(*step)) for step in steps)

    exact = CauchyNoise.exact(epsilon)
    assert exp_epsilon(round(0.95 * exact.loss.nano)) < worst(exact) <= exp_epsilon(exact.loss.nano)
    assert worst(LocalNoise(exact.shift, exact.stretch)) > 10 * exp_epsilon(exact.loss.nano)


class Given(Draws):
    """Cauchy noise of so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__(KeyedNoise(0))
        self.steps = steps

    def discrete_cauchy(self, scale: int) -> int:
        return self.steps


def test_smooth_medians_are_rounded_to_the_nearest() -> None:
    """The noise is asked at the scale of the median (`tests/curator/test_conformance.py`); half a
    step is rounded up, and the ends of the range stay."""
    mechanism, points = SmoothMedian(CauchyNoise.exact(1.0)), Multiset.of([2, 2, 3, 5, 6], 3)
    half = FINE // 2
    answers = {0: 3, half - 1: 3, half: 4, -half: 3, -half - 1: 2, 5 * FINE: 7, -9 * FINE: 0}
    for steps, answer in answers.items():
        assert mechanism.release(points, Given(steps)) == answer


def test_proposals_answer_near_no_sensitive_database() -> None:
    """A database at distance 0 answers with probability at most delta, the least threshold for it;
    at twice that distance one that is stable nearly always. Both halves of epsilon are whole."""
    for epsilon, delta in ((1.0, 1e-6), (2.0, 0.05), (0.01, 1e-9), (20.0, 0.3)):
        mechanism = ProposedMedian(1, epsilon, delta)
        assert mechanism.answered(0) <= delta * (1 + 1e-12)
        assert mechanism.margin == 0 or mechanism.answered(1) > delta
        assert mechanism.answered(2 * mechanism.margin + 1) > 1 - delta * (1 + 1e-12)
    assert ProposedMedian(1, 1 + 1e-9, 0.05).loss == approximate(1.0, 0.05)


def test_scores_are_records_to_replace() -> None:
    """On all multisets of 1 to 5 from five points, each point's score is minus the least number of
    replaced records that makes it the median."""
    for n, y in product(range(1, 6), range(8)):
        for records in combinations_with_replacement(FIVE, n):
            runs, middle = ExponentialMedian(1.0).candidates(Multiset.of(records, 3)), (n + 1) // 2
            below, upto = sum(x < y for x in records), sum(x <= y for x in records)
            assert runs.scores[runs.run_of(y)] == -max(0, below - middle + 1, middle - upto)
