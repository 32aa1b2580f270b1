"""Learners of thresholds: by the exponential mechanism, by RecConcave as printed and tuned; and the distributions that are hard for them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.selection.quasi_concave import Promise, levels_of
from local_dp.curator.thresholds.learner import PureThresholds, agreements, errors_by_gap, hard_thresholds, printed, printed_records, random_target, tuned
from local_dp.draws import Draws
from local_dp.loss import Approximate
from local_dp.noise import KeyedNoise
from tests.support.theory.fits import mean_chance


def test_agreements_are_counted_one_by_one() -> None:
    """Against a loop over thresholds and records, labels arbitrary."""
    generator = np.random.default_rng(0)
    for _ in range(30):
        points, labels = generator.integers(0, 16, 9), generator.integers(0, 2, 9)
        runs = agreements(LabelledMultiset.of(points, labels, 4))
        assert [int(runs.scores[runs.run_of(t)]) for t in range(17)] == [int(np.sum((points >= t) == labels)) for t in range(17)]


def needle_success(n: int, bits: int) -> float:
    """Pr[the pure learner at epsilon 1 finds the needle]: an exact sum over the records just below and just above it, alpha .1."""
    counts = np.arange(n + 1)
    left = binom.pmf(counts, n, 0.1)
    total = 0.0
    for below in np.flatnonzero(left > 1e-9).tolist():
        right = np.arange(n - below + 1)
        others = np.logaddexp((bits - 1) * np.log(2) - below / 2, (bits - 1) * np.log(2) - right / 2)
        total += left[below] * float(binom.pmf(right, n - below, 1 / 9) @ np.exp(-np.logaddexp(0, others)))
    return total


@pytest.mark.parametrize(("bits", "n"), [(16, 314), (64, 1048), (256, 3904), pytest.param(1024, 14848, marks=pytest.mark.slow)])
def test_records_for_the_pure_learner(bits: int, n: int) -> None:
    """Exact sums: this many are enough for nine successes of ten, a twentieth fewer are not."""
    assert needle_success(n, bits) > 0.9 > needle_success(n * 19 // 20, bits)


def test_the_sum_is_that_of_the_learner() -> None:
    """On one sample: the chance of the needle is what two counts say; the other hard distributions are easier."""
    generator = np.random.default_rng(1)
    laws = hard_thresholds(64, 0.1, 1 << 63 | 1)
    sample = laws["needle"].sample(1000, generator)
    left, right = (int(held) for held in (sample.zeros + sample.ones)[1:3])
    others = (1 << 63) * (np.exp(-left / 2) + np.exp(-right / 2))
    assert PureThresholds(1.0).chance(sample, 1 << 63 | 1, 1 << 63 | 1) == pytest.approx(1 / (1 + others), rel=1e-6)
    for name in set(laws) - {"needle"}:
        assert PureThresholds(1.0).chance(laws[name].sample(1048, generator), *laws[name].good(0.1)) > 0.99


@pytest.mark.long(keep="32-1e-06")
@pytest.mark.parametrize(("bits", "delta", "n"), [(32, 1e-6, 1280), (64, 1e-6, 1490), (128, 1e-6, 1660), (64, 1e-3, 1100)])
def test_records_for_rec_concave(bits: int, delta: float, n: int) -> None:
    """Nine successes of ten on each of the hard distributions, by two standard errors of the mean."""
    generator, learner = np.random.default_rng(bits), tuned(0.1, 1.0, delta)
    laws = [hard_thresholds(bits, 0.1, random_target(bits, generator)) for _ in range(16)]
    for name in laws[0]:
        mean, error = mean_chance(learner.chance, [each[name] for each in laws], n, 0.1, generator)
        assert mean - 2 * error > 0.9, name


def test_records_for_rec_concave_in_short() -> None:
    """1,100 records at 2^64 and delta 1e-3: nine successes of ten on the distribution with one good threshold, by two standard errors of the mean."""
    generator = np.random.default_rng(64)
    laws = [hard_thresholds(64, 0.1, random_target(64, generator))["needle"] for _ in range(8)]
    mean, error = mean_chance(tuned(0.1, 1.0, 1e-3).chance, laws, 1100, 0.1, generator)
    assert mean - 2 * error > 0.9


def test_words_and_whole_numbers_are_treated_alike() -> None:
    """64 bits fit a machine word and 65 do not: the chance of the same thresholds on the same points is the same to a millionth; a release is of both."""
    generator, learner = np.random.default_rng(9), tuned(0.1, 1.0, 1e-6)
    law = hard_thresholds(64, 0.1, random_target(64, generator))["staircase"]
    sample = law.sample(1490, generator)
    wide = LabelledMultiset(64, sample.values.astype(object), sample.zeros, sample.ones)
    low, high = law.good(0.1)
    assert learner.chance(sample, low, high) == learner.chance(wide, low, high) > 0.9
    assert learner.release(sample, Draws(KeyedNoise(3))) == learner.release(wide, Draws(KeyedNoise(3)))
    ends = np.array([0, 0, (1 << 64) - 1, (1 << 64) - 1] * 200, dtype=np.uint64)
    assert 0 < learner.release(LabelledMultiset.of(ends, ends.astype(bool).astype(np.int64), 64), Draws(KeyedNoise(0))) < 1 << 64


def test_hard_distributions_are_what_they_say() -> None:
    """The good thresholds by definition, on eight bits: the needle alone, and all of a plateau; with flipped labels alpha counts in excess."""
    for flipped in (0.0, 0.2):
        for name, law in hard_thresholds(8, 0.1, 101, flipped).items():
            wrong = [sum(share for point, share in zip(law.points, law.shares, strict=True) if (point >= t) != (point >= 101)) for t in range(257)]
            good = [t for t in range(257) if wrong[t] * (1 - 2 * flipped) <= 0.1]
            assert good == list(range(law.good(0.1)[0], law.good(0.1)[1] + 1))
            width = {"needle": 1, "needle with staircase": 1, "narrow plateau": 15, "wide plateau": 63}.get(name, len(good))
            assert len(good) == width
            assert sum(law.shares) == pytest.approx(1)
    sample = hard_thresholds(8, 0.1, 101, 0.2)["staircase"].sample(10000, np.random.default_rng(0))
    assert errors_by_gap(sample).min() == pytest.approx(2000, abs=160)  # four standard errors


def test_the_chance_is_a_sum_of_the_law() -> None:
    learner = tuned(0.5, 2.0, 0.05)
    sample = LabelledMultiset.of([2] * 20 + [9] * 30 + [12] * 20, [0] * 20 + [1] * 50, 4)
    law = learner.law(sample)
    share = Fraction(sum(weight for answer, weight in law.items() if 3 <= answer <= 9), sum(law.values()))
    assert learner.chance(sample, 3, 9) == pytest.approx(float(share), abs=1e-6)


def test_parameters_as_printed() -> None:
    """Theorem 3.18: 3.0e6 records at 32 bits, 3.5e7 at 64; every part is epsilon / (3 N); the parts counted come to less than epsilon and delta."""
    sizes = [printed_records(bits, 0.1, 1.0, 1e-6) for bits in (32, 64)]
    assert sizes == [pytest.approx(3.03e6, rel=0.005), pytest.approx(3.475e7, rel=0.005)]
    learner = printed(64, 0.1, 1.0, 1e-6)
    assert (learner.levels, learner.least) == (levels_of(1 << 64), sizes[1]) == (3, sizes[1])
    assert learner.loss == Approximate(7 * 111_111_111, 4 * 111_111_111_111)
    assert learner.solver(sizes[1]).promise == Promise(sizes[1] - sizes[1] // 20, sizes[1])
    assert tuned(0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)
