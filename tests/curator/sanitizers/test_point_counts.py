"""Released counts of points, and of sets of k points: success by the exact law."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from local_dp.bounds.packing import cell_failures, histogram_success, least_multiple, per_cell_success, told_cells_success
from local_dp.curator.multisets import Multiset, absent
from local_dp.curator.sanitizers.point_counts import CellNoise, KPointAnswers, KPointSanitizer, NoisyCounts, PerCellHistogram, ThresholdedHistogram
from local_dp.draws import Draws
from local_dp.loss import ATTO
from local_dp.noise import KeyedNoise


def test_thresholds() -> None:
    """1 + ceil((2 / eps) ln(1 / (delta (1 + e^(-eps / 2))))): 28 and 14; one less would release a single record too often."""
    for delta, threshold in ((1e-6, 28), (1e-3, 14)):
        histogram = ThresholdedHistogram(1.0, delta)
        assert histogram.threshold == threshold
        assert histogram.noise.beyond(threshold - 1) <= Fraction(histogram.loss.atto, ATTO) < histogram.noise.beyond(threshold - 2)


def partitions(m: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways to write m as a sum of counts."""
    if not m:
        yield ()
    for first in range(min(m, most), 0, -1):
        for rest in partitions(m - first, first):
            yield (first, *rest)


@pytest.mark.parametrize(("m", "alpha"), [(12, 0.25), (15, 0.3), (9, 0.5)])
def test_the_worst_database_is_found(m: int, alpha: float) -> None:
    """Against every database of m records by hand: the sum of the cells' exact laws beyond the error."""
    noise, error = ThresholdedHistogram(2.0, 0.05).noise, int(alpha * m)
    right = []
    for counts in range(m + 1):
        law = noise.law(counts, m)
        right.append(float(sum(share for answer, share in law.items() if abs(answer - counts) <= error)))
    assert 1 - cell_failures(noise, m, error) == pytest.approx(right, rel=1e-12)
    by_hand = min(float(np.prod([right[count] for count in counts])) for counts in partitions(m, m))
    assert histogram_success(noise, m, alpha) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("delta", "records"), [(1e-6, 340), (1e-3, 200)])
def test_records_for_point_counts_of_histogram(delta: float, records: int) -> None:
    """All counts within .1 m nine times of ten, in the worst database and a domain of any size: 340 and 200 at epsilon 1."""
    noise = ThresholdedHistogram(1.0, delta).noise
    assert least_multiple(lambda m: histogram_success(noise, m, 0.1), 0.1) == records


def test_sizes_of_any_kind() -> None:
    """Heavy points of a domain of 65,536 bits are released close to their counts, light ones not at all; of no records, nothing."""
    top = (1 << 65536) - 1
    values = np.array([5, *(1 << place for place in range(10, 500)), top], dtype=object)
    points = Multiset(65536, values, np.array([10**9, *[1] * 490, 400]))
    answer = ThresholdedHistogram(1.0, 1e-9).release(points, Draws(KeyedNoise(0)))
    assert answer.values.tolist() == [5, top]
    assert np.abs(answer.counts - [10**9, 400]).max() < 60
    assert answer.at(np.array([5, 6, top], dtype=object)).tolist() == [answer.counts[0], 0, answer.counts[1]]
    assert len(ThresholdedHistogram(1.0, 1e-6).release(Multiset.of([], 8), Draws(KeyedNoise(0))).values) == 0


def test_a_count_moves_the_law_of_its_cell_by_e() -> None:
    """The law of a cell with its tails sums to 1, and between neighbouring counts no released value is more than e^e likelier."""
    noise = CellNoise(Fraction(10**9, 2), 4)
    laws = [noise.law(count, 12) for count in range(13)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(one[answer] / other[answer], other[answer] / one[answer]) for one, other in pairwise(laws) for answer in one)
    assert np.exp(0.5) * (1 - 1e-9) < float(worst) <= np.exp(0.5) * (1 + 1e-15)


@pytest.mark.parametrize(("bits", "records"), [(16, 270), (32, 490), (64, 930), (128, 1820), (256, 3590)])
def test_records_for_point_counts_of_per_cell(bits: int, records: int) -> None:
    """In closed form; releasing only the 64 largest strangers saves up to 20 records, since the others count 0."""
    assert least_multiple(lambda m: per_cell_success(bits, 1.0, m, 0.1), 0.1) == records


@pytest.mark.parametrize(("bits", "records"), [(16, 250), (64, 920), (256, 3580)])
def test_records_for_the_counts_that_are_told(bits: int, records: int) -> None:
    """In the worst of all databases, unreleased points included."""
    noise = PerCellHistogram(bits, 1.0).noise
    assert least_multiple(lambda m: told_cells_success(bits, noise, m, 0.1), 0.1) == records


@pytest.mark.parametrize("bits", [64, 65, 65536])
def test_a_domain_beyond_reach(bits: int) -> None:
    """About 64 strangers are released, within six standard deviations, all distinct and without records; heavy points are, too."""
    cells, top = PerCellHistogram(bits, 1.0), (1 << bits) - 1
    points = Multiset.of([top] * 3 + [7], bits)
    heavy = Multiset(bits, points.values, np.array([1, 10**7]))
    answer = cells.release(heavy, Draws(KeyedNoise(1)))
    strangers = [value for value in answer.values.tolist() if value not in (7, top)]
    assert 64 / np.exp(0.5) - 6 * 8 < len(strangers) < 64 + 6 * 8
    assert len(set(strangers)) == len(strangers)
    assert answer.values.tolist() == sorted(answer.values.tolist())
    assert abs(int(answer.at(np.array([top], dtype=object))[0]) - 10**7) < 100
    assert answer.counts.min() >= cells.noise.least


def test_absent_points_are_counted_in_order() -> None:
    """The points without records, one by one, below, between and above those that occur."""
    for values in (np.array([0, 1, 4, 7], dtype=np.uint64), np.array([0, 1, 4, 7], dtype=object)):
        assert absent(values, range(4)) == [2, 3, 5, 6]
    assert absent(np.array([(1 << 64) - 1], dtype=np.uint64), [(1 << 64) - 2]) == [(1 << 64) - 2]
    assert absent(np.zeros(0, dtype=np.uint64), [5]) == [5]


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


def test_sums_are_of_what_was_told() -> None:
    points = Multiset(64, np.array([3, 9, 1 << 63], dtype=np.uint64), np.array([500, 300, 200]))
    answers = KPointSanitizer(2, ThresholdedHistogram(1.0, 1e-6)).release(points, Draws(KeyedNoise(0)))
    assert answers.share(np.array([3, 1 << 63], dtype=np.uint64)) == pytest.approx(0.7, abs=0.05)
    assert answers.share(np.array([4, 5])) == 0
    assert answers.worst_error(points) < 0.05
