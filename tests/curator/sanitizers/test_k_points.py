"""Sets of k points from released counts."""

from itertools import combinations

import numpy as np
import pytest

from local_dp.bounds.packing import histogram_success, least_multiple
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.cells import NoisyCounts
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.curator.sanitizers.k_points import KPointAnswers, KPointSanitizer
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise


@pytest.mark.parametrize(("k", "records"), [(1, 340), (2, 720), (4, 1480), (8, 3120)])
def test_records_for_sets_of_points(k: int, records: int) -> None:
    """All sums of k counts within .1 m nine times of ten, in the worst database, at (1, 1e-6)."""
    noise = ThresholdedHistogram(1.0, 1e-6).noise
    assert least_multiple(lambda m: histogram_success(noise, m, 0.1, k), 0.1, k) == records


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8])
def test_the_worst_set_is_found(k: int) -> None:
    """Against all sets of k of 8 points, on 40 random databases and answers: without points of no error there may be none to fill up with."""
    generator, domain = np.random.default_rng(k), np.arange(8, dtype=np.uint64)
    for _ in range(40):
        points = Multiset.of(generator.integers(0, 8, 12), 3)
        values = np.sort(generator.choice(domain, int(generator.integers(0, 9)), replace=False))
        answers = KPointAnswers(k, NoisyCounts(3, values, generator.integers(1, 5, len(values)), 12))
        truth = [int(points.counts[points.values == point].sum()) / 12 for point in domain]
        by_hand = max(abs(answers.share(np.array(asked)) - sum(truth[point] for point in asked)) for asked in combinations(range(8), k))
        assert answers.worst_error(points) == pytest.approx(by_hand)


def test_the_loss_is_that_of_the_counts() -> None:
    """And so is the law, outcome by outcome."""
    counts = ThresholdedHistogram(2.0, 0.05)
    sums = KPointSanitizer(2, counts)
    assert sums.loss == counts.loss
    small = SmallDatabases([(0,), (1,)], 4, lambda records: Multiset.of([value for (value,) in records], 1))
    assert small.worst_delta(sums) == small.worst_delta(counts) > 0


def test_sums_are_of_what_was_told() -> None:
    points = Multiset(64, np.array([3, 9, 1 << 63], dtype=np.uint64), np.array([500, 300, 200]))
    answers = KPointSanitizer(2, ThresholdedHistogram(1.0, 1e-6)).release(points, Draws(KeyedNoise(0)))
    assert answers.share(np.array([3, 1 << 63], dtype=np.uint64)) == pytest.approx(0.7, abs=0.05)
    assert answers.share(np.array([4, 5])) == 0
    assert answers.worst_error(points) < 0.05


def test_bad_input_gets_a_line() -> None:
    told = NoisyCounts(3, np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), 5)
    with pytest.raises(InputError, match="give 2 distinct points"):
        KPointAnswers(2, told).share(np.array([1, 1]))
    with pytest.raises(InputError, match="k is 0"):
        KPointSanitizer(0, ThresholdedHistogram(1.0, 1e-6))
