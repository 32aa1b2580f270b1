"""Thresholds from dyadic intervals: which candidates there are, privacy by enumeration, and how many records are enough."""

from collections import Counter

import numpy as np
import pytest

from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.thresholds.dyadic import DyadicThresholds, dyadic_records, middles
from local_dp.curator.thresholds.learner import errors_by_gap, hard_thresholds, random_target
from local_dp.draws import Draws
from local_dp.noise import KeyedNoise
from tests.support.long import short
from tests.support.mechanisms.case import share
from tests.support.theory.fits import mean_chance

TOP = 1000


def random_points(bits: int, generator: np.random.Generator) -> list[int]:
    """Some points that share many, few or no high bits."""
    far = [int(word) << max(bits - 32, 0) for word in generator.integers(0, 1 << min(bits, 32), 4)]
    near = [far[0] ^ int(word) % (1 << bits) for word in generator.integers(0, 4, 3)]
    return [point for point in (*far, *near, 0, (1 << bits) - 1) if generator.random() < 0.7] or [0]


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 63, 64, 65, 130])
def test_candidates_are_the_middles(bits: int) -> None:
    """Each middle of an interval that holds a point once, with the score that one gets interval by interval; `within` counts them."""
    generator = np.random.default_rng(bits)
    for _ in range(6):
        points = random_points(bits, generator)
        sample = LabelledMultiset.of(points, generator.integers(0, 2, len(points)), bits)
        pairs = [(int(value), int(label)) for label in (0, 1) for value in np.repeat(sample.labelled(label).values, sample.labelled(label).counts)]
        groups = middles(Multiset(bits, sample.values, sample.zeros + sample.ones), TOP - errors_by_gap(sample))
        expected = {t: TOP - sum((point >= t) != label for point, label in pairs) for t in (0, 1 << bits)}
        for point, height in {(point >> height, height) for point in points for height in range(1, bits + 1)}:
            t = (2 * point + 1) << (height - 1)
            support = sum(other >> height == point for other in points)
            expected[t] = min(support, TOP - sum((other >= t) != label for other, label in pairs))
        members = [(candidate, int(groups.scores[group])) for group, candidate in groups.members()]
        assert sorted(members) == sorted(expected.items())
        low, high = sorted(points)[len(points) // 2], max(points)
        counted = Counter(group for group, candidate in groups.members() if low <= candidate <= high)
        assert [counted[group] for group in range(len(groups.sizes))] == groups.within(low, high).tolist()


def test_the_chance_is_a_sum_of_the_law() -> None:
    """With the fallback where it lies; with a noisy optimum 1,000 releases are within 4.9 standard errors of it (failure 1e-6)."""
    learner = DyadicThresholds(4, 0.1, 1.0, 1e-3)
    sample = LabelledMultiset.of([3] * 15 + [5] * 12 + [11, 12], [0] * 15 + [1] * 13 + [0], 4)
    law = share(learner.law(sample))
    for low, high in ((0, 16), (4, 5), (8, 8), (6, 11)):
        assert learner.chance(sample, low, high) == pytest.approx(float(sum(law.get(answer, 0) for answer in range(low, high + 1))), abs=1e-12)
    agnostic, draws = DyadicThresholds(4, 0.1, 1.0, 1e-2, agnostic=True), Draws(KeyedNoise(5))
    sample = LabelledMultiset.of([3] * 20 + [5] * 18 + [11, 12], [0] * 15 + [1] * 24 + [0], 4)
    chance, hits = agnostic.chance(sample, 4, 5), sum(4 <= agnostic.release(sample, draws) <= 5 for _ in range(1000))
    assert 0.1 < chance < 0.95
    assert abs(hits - 1000 * chance) < 4.9 * (1000 * chance * (1 - chance)) ** 0.5
    assert (learner.choice.loss.nano, agnostic.choice.loss.nano, agnostic.loss.nano) == (10**9, 9 * 10**8, 10**9)


RECORDS = [(16, 1e-6, 340), (64, 1e-6, 380), (1024, 1e-6, 440), (16, 1e-3, 240), (128, 1e-3, 300)]


@pytest.mark.parametrize(("bits", "delta", "n"), short(RECORDS, lambda case: case[1:] == (1e-3, 240), several=True))
def test_records_for_a_threshold(bits: int, delta: float, n: int) -> None:
    """Nine successes of ten on each of the hard distributions, over 40 odd targets, by four standard errors of the mean."""
    generator, learner = np.random.default_rng(bits), DyadicThresholds(bits, 0.1, 1.0, delta)
    laws = [hard_thresholds(bits, 0.1, random_target(bits, generator)) for _ in range(40)]
    for name in laws[0]:
        mean, error = mean_chance(learner.chance, [each[name] for each in laws], n, 0.1, generator)
        assert mean - 4 * error > 0.9, name


@pytest.mark.long
def test_records_for_noisy_labels() -> None:
    """With 20 % of labels flipped, 460 records at 64 bits, on each of them."""
    generator, learner = np.random.default_rng(1), DyadicThresholds(64, 0.1, 1.0, 1e-6, agnostic=True)
    laws = [hard_thresholds(64, 0.1, random_target(64, generator), 0.2) for _ in range(2)]
    for name in laws[0]:
        assert mean_chance(learner.chance, [each[name] for each in laws], 460, 0.1, generator)[0] > 0.9, name


def test_the_proven_number_is_enough() -> None:
    """Empirical error at most alpha with probability .9 and more, on every sample that some threshold fits: here on the hard ones, at 64 bits."""
    m = dyadic_records(64, 0.1, 1.0, 1e-6)
    assert [dyadic_records(bits, 0.1, 1.0, 1e-6) for bits in (16, 64, 1024)] == [597, m, 763] == [597, 652, 763]
    generator, learner = np.random.default_rng(2), DyadicThresholds(64, 0.1, 1.0, 1e-6)
    for law in hard_thresholds(64, 0.1, random_target(64, generator)).values():
        sample = law.sample(m, generator)
        errors, starts = errors_by_gap(sample), [0, *(int(value) + 1 for value in sample.values)]
        good = np.flatnonzero(errors <= 0.1 * m)
        ends = [*(start - 1 for start in starts[1:]), 1 << 64]
        assert learner.chance(sample, starts[good[0]], ends[good[-1]]) > 0.9


def test_large_domains_and_nobody() -> None:
    """Thresholds of 65,536 bits; of no record at all; of points at both ends."""
    far = 1 << 65535
    sample = LabelledMultiset.of([far - 1] * 200 + [far] * 200, [0] * 200 + [1] * 200, 65536)
    assert DyadicThresholds(65536, 0.1, 1.0, 1e-6).release(sample, Draws(KeyedNoise(0))) == far
    nobody = LabelledMultiset.of([], np.array([], dtype=np.int64), 3)
    assert DyadicThresholds(3, 0.1, 1.0, 1e-3).release(nobody, Draws(KeyedNoise(0))) in (0, 4, 8)
    ends = LabelledMultiset.of([0] * 300 + [(1 << 64) - 1] * 300, [1] * 300 + [0] * 300, 64)
    assert DyadicThresholds(64, 0.1, 1.0, 1e-6).release(ends, Draws(KeyedNoise(0))) in range((1 << 64) + 1)
