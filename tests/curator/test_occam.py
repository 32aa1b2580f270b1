"""The exponential mechanism and the private Occam learner."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.arrays import Ints
from local_dp.bounds.curator import occam_examples, occam_examples_printed, occam_examples_realizable, occam_examples_uniform
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.selection.exponential import ExponentialMechanism, log_probabilities
from local_dp.curator.selection.occam import HypothesisClass, Labelled, OccamLearner, ParityClass, ThresholdClass
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise
from tests.support.long import short

CLASSES: list[tuple[HypothesisClass, int]] = [(ParityClass(2), 4), (ThresholdClass(3), 3)]


@pytest.mark.parametrize(("hypotheses", "points"), CLASSES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_loss_is_at_most_epsilon_by_enumeration(hypotheses: HypothesisClass, points: int, epsilon: float) -> None:
    """The law that is sampled, rounding and all, has delta 0 at its loss over all neighbours for n = 2; without the 2 of the exponent it has not."""
    small = SmallDatabases(list(product(range(points), (0, 1))), 2, Labelled.of)
    learner, twin = OccamLearner(hypotheses, epsilon), OccamLearner(hypotheses, 2 * epsilon)
    assert learner.loss == Pure(nano_epsilon(epsilon))
    assert small.worst_delta(learner) == 0
    assert 1 < max(small.worst_ratios(learner).values()) <= exp_epsilon(learner.loss.nano)
    assert small.worst_delta(twin, learner.loss) > 0.05


def chooser(epsilon: float, sensitivity: int = 1) -> ExponentialMechanism[Ints]:
    """The exponential mechanism whose database is its scores."""
    return ExponentialMechanism(np.asarray, epsilon, sensitivity)


def probabilities(mechanism: ExponentialMechanism[Ints], scores: Ints) -> list[Fraction]:
    """The exact law as fractions."""
    law = mechanism.law(scores)
    return [Fraction(law[candidate], sum(law.values())) for candidate in range(len(scores))]


def test_loss_is_tight() -> None:
    """Scores moved by one towards a candidate and by one away from all others come within 1e-9 of e^eps: the charge is not slack."""
    before, after = probabilities(chooser(1.0), np.array([-80] + [0] * 3)), probabilities(chooser(1.0), np.array([-79] + [-1] * 3))
    assert math.e * (1 - 1e-9) < after[0] / before[0] <= exp_epsilon(nano_epsilon(1.0))


@pytest.mark.parametrize("best", [0, 5, -1000, 10**6])
def test_clamping_keeps_the_loss(best: int) -> None:
    """Across the end of `reach`, where scores stop counting, neighbouring scores still have ratios of at most e^eps."""
    mechanism = chooser(2.0)
    far = best - mechanism.choice.reach(3)
    limit = exp_epsilon(nano_epsilon(2.0))
    for low, move in product((far - 1, far, far + 1), product((-1, 0, 1), repeat=3)):
        scores = np.array([best, low, best - 1])
        before, after = probabilities(mechanism, scores), probabilities(mechanism, scores + np.array(move))
        assert all(high / low <= limit for high, low in zip(before, after, strict=True))


def test_the_code_draws_from_its_law() -> None:
    """5,000 draws fit the exact law (chi-squared, failure 1e-6); those of a mechanism of 1.5 eps do not."""
    scores = np.array([-3, -1, -1, -4, -2, 0])

    def p_value(epsilon: float) -> float:
        draws = Draws(KeyedNoise(4))
        drawn = Counter(chooser(epsilon).release(scores, draws) for _ in range(5000))
        law = probabilities(chooser(1.0), scores)
        return float(chisquare([drawn[h] for h in range(6)], [5000 * float(p) for p in law]).pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(1.5) < 1e-6


@pytest.mark.parametrize("epsilon", short([1e-4, 1.0, 24.0], lambda epsilon: epsilon >= 1))
def test_extreme_scores_never_overflow(epsilon: float) -> None:
    """The ends of int64 give a legal choice; at 1e-4 it takes seconds."""
    ends = np.iinfo(np.int64)
    scores = np.array([ends.min, ends.max, 0, ends.max - 1])
    assert chooser(epsilon).release(scores, Draws(KeyedNoise(0))) in (1, 3)
    assert chooser(epsilon).release(np.full(3, ends.min), Draws(KeyedNoise(0))) in (0, 1, 2)


def test_extreme_logarithms_are_finite() -> None:
    """The ends of float64 and epsilon from 1e-6 to 24."""
    for epsilon in (1e-6, 1.0, 24.0):
        with np.errstate(all="raise", under="ignore"):
            logs = log_probabilities(np.array([1.7e308, -1.7e308, 0.0, 1.7e308]), epsilon)
        assert np.all(np.isfinite(logs))
        assert float(np.exp(logs).sum()) == pytest.approx(1)


def test_log_domain_agrees_with_the_exact_law() -> None:
    """The analytic log-probabilities and the sampled law differ by rounding only."""
    scores = np.array([0, -7, 3, 3, -20])
    exact = [float(p) for p in probabilities(chooser(0.7, sensitivity=2), scores)]
    assert np.exp(log_probabilities(scores, 0.7, 2)) == pytest.approx(exact, rel=1e-9)


def errors_by_hand(predict: Callable[[int, int], int], size: int, x: Ints, y: Ints) -> list[int]:
    return [sum(predict(h, int(point)) != label for point, label in zip(x, y, strict=True)) for h in range(size)]


def test_class_errors_are_counted_right() -> None:
    """Both classes count the errors of every hypothesis as a loop over the examples does."""
    generator = np.random.default_rng(0)
    x, y = generator.integers(0, 16, 30), generator.integers(0, 2, 30)
    assert ParityClass(4).errors(x, y).tolist() == errors_by_hand(lambda r, point: (r & point).bit_count() % 2, 16, x, y)
    assert ThresholdClass(16).errors(x, y).tolist() == errors_by_hand(lambda t, point: int(point >= t), 17, x, y)


def test_a_million_hypotheses() -> None:
    """The right one of all 2^20 parities from 200 noise-free examples at epsilon 1, and a good one of all thresholds on 2^20 points from noisy ones."""
    generator = np.random.default_rng(1)
    x, r = generator.integers(0, 1 << 20, 200), 0xBEEF5
    y = (np.bitwise_count(x & r) & 1).astype(np.int64)
    assert OccamLearner(ParityClass(20), 1.0).release(Labelled(x, y), Draws(KeyedNoise(0))) == r
    x = generator.integers(0, 1 << 20, 100_000)
    y = ((x >= 300_000) ^ (generator.random(100_000) < 0.2)).astype(np.int64)
    t = OccamLearner(ThresholdClass(1 << 20), 0.1).release(Labelled(x, y), Draws(KeyedNoise(0)))
    assert abs(t - 300_000) < 0.02 * (1 << 20)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.4])
def test_the_sizes_are_ordered(epsilon: float, alpha: float) -> None:
    """Realizable <= agnostic <= the printed size <= the size by uniform convergence: the printed one holds agnostically."""
    each = [size(1000, epsilon, alpha, 0.1) for size in (occam_examples_realizable, occam_examples, occam_examples_printed, occam_examples_uniform)]
    assert each == sorted(each)


@pytest.mark.parametrize(("flip", "size"), [(0.0, occam_examples_realizable), (0.25, occam_examples)])
def test_the_sizes_are_enough(flip: float, size: Callable[[int, float, float, float], int]) -> None:
    """At the size for alpha = beta = .1, thresholds on 64 points exceed the best error by alpha in at most a share beta of 200 runs (failure 1e-6)."""
    alpha, beta, epsilon, points, target = 0.1, 0.1, 0.5, 64, 20
    n = size(points + 1, epsilon, alpha, beta)
    learner, failed = OccamLearner(ThresholdClass(points), epsilon), 0
    for trial in range(200):
        generator = np.random.default_rng([7, trial])
        x = generator.integers(0, points, n)
        y = ((x >= target) ^ (generator.random(n) < flip)).astype(np.int64)
        t = learner.release(Labelled(x, y), Draws(KeyedNoise(trial)))
        failed += (1 - 2 * flip) * abs(t - target) / points > alpha
    assert failed <= binom(200, beta).isf(1e-6)


def test_bad_input_is_refused() -> None:
    """What has no meaning is refused in one line."""
    with pytest.raises(InputError, match="signed whole number"):
        chooser(1.0).release(np.array([0.5]), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="at least one candidate"):
        chooser(1.0).release(np.zeros(0, dtype=np.int64), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="finite number"):
        log_probabilities(np.array([math.nan]), 1.0)
    with pytest.raises(InputError, match="too small to weigh"):
        chooser(1e-9, 10**6).release(np.array([0]), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="labels"):
        Labelled(np.array([0, 1]), np.array([0, 2]))
    with pytest.raises(InputError, match="from 1 to 24"):
        ParityClass(40)
