"""Sanitizers: released counts of points and of sets of points by the exact law, and trees of
medians on five shapes of data."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.packing import (
    cell_failures,
    histogram_success,
    least_multiple,
    per_cell_success,
)
from local_dp.curator.mechanism import SmallDatabases, hockey_stick
from local_dp.curator.multisets import BITS, Multiset, absent, points_of, value_of
from local_dp.curator.sanitizers.medians import (
    Medians,
    Node,
    SparseMedians,
    Spread,
    Steps,
    TreeOfMedians,
    ranks,
)
from local_dp.curator.sanitizers.point_counts import (
    CellNoise,
    KPointAnswers,
    KPointSanitizer,
    NoisyCounts,
    PerCellHistogram,
    ThresholdedHistogram,
)
from local_dp.curator.selection.exponential import numbered
from local_dp.loss import ATTO, exp_epsilon
from local_dp.populations.parity import SHAPES, shaped
from tests.support.inputs.tables import fair
from tests.support.long import short
from tests.support.mechanisms.sanitizers import LightGrowth
from tests.support.runs.scripted import seeded


def test_thresholds() -> None:
    """1 + ceil((2 / eps) ln(1 / (delta (1 + e^(-eps / 2))))): 28 and 14; one less would release a
    single record too often."""
    for delta, threshold in ((1e-6, 28), (1e-3, 14)):
        histogram = ThresholdedHistogram(1.0, delta)
        assert histogram.threshold == threshold
        assert (
            histogram.noise.beyond(threshold - 1)
            <= Fraction(histogram.loss.atto, ATTO)
            < histogram.noise.beyond(threshold - 2)
        )


def partitions(m: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways to write m as a sum of counts."""
    if not m:
        yield ()
    for first in range(min(m, most), 0, -1):
        for rest in partitions(m - first, first):
            yield (first, *rest)


@pytest.mark.parametrize(("m", "alpha"), [(12, 0.25), (15, 0.3), (9, 0.5)])
def test_the_worst_database_is_found(m: int, alpha: float) -> None:
    """Against every database of m records by hand: the sum of the cells' exact laws beyond the
    error."""
    noise, error = ThresholdedHistogram(2.0, 0.05).noise, int(alpha * m)
    right = []
    for counts in range(m + 1):
        law = noise.law(counts, m)
        right.append(
            float(sum(share for answer, share in law.items() if abs(answer - counts) <= error))
        )
    assert 1 - cell_failures(noise, m, error) == pytest.approx(right, rel=1e-12)
    by_hand = min(float(np.prod([right[count] for count in counts])) for counts in partitions(m, m))
    assert histogram_success(noise, m, alpha) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("delta", "records"), [(1e-6, 340), (1e-3, 200)])
def test_records_for_point_counts_of_histogram(delta: float, records: int) -> None:
    """All counts within .1 m nine times of ten, in the worst database and a domain of any size: 340
    and 200 at epsilon 1."""
    noise = ThresholdedHistogram(1.0, delta).noise
    assert least_multiple(lambda m: histogram_success(noise, m, 0.1), 0.1) == records


def test_sizes_of_any_kind() -> None:
    """Heavy points of a domain of 65,536 bits are released close to their counts, light ones not at
    all; of no records, nothing."""
    top = (1 << 65536) - 1
    values = np.array([5, *(1 << place for place in range(10, 500)), top], dtype=object)
    points = Multiset(65536, values, np.array([10**9, *[1] * 490, 400]))
    answer = ThresholdedHistogram(1.0, 1e-9).release(points, seeded(0))
    assert answer.values.tolist() == [5, top]
    assert np.abs(answer.counts - [10**9, 400]).max() < 60
    assert answer.at(np.array([5, 6, top], dtype=object)).tolist() == [
        answer.counts[0],
        0,
        answer.counts[1],
    ]
    assert len(ThresholdedHistogram(1.0, 1e-6).release(Multiset.of([], 8), seeded(0)).values) == 0


def test_a_count_moves_the_law_of_its_cell_by_e() -> None:
    """The law of a cell with its tails sums to 1, and between neighbouring counts no released value
    is more than e^e likelier."""
    noise = CellNoise(Fraction(10**9, 2), 4)
    laws = [noise.law(count, 12) for count in range(13)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(
        max(one[answer] / other[answer], other[answer] / one[answer])
        for one, other in pairwise(laws)
        for answer in one
    )
    assert np.exp(0.5) * (1 - 1e-9) < float(worst) <= np.exp(0.5) * (1 + 1e-15)


@pytest.mark.parametrize(
    ("bits", "records"), [(16, 270), (32, 490), (64, 930), (128, 1820), (256, 3590)]
)
def test_records_for_point_counts_of_per_cell(bits: int, records: int) -> None:
    """In closed form; releasing only the 64 largest strangers saves up to 20 records, since the
    others count 0."""
    assert least_multiple(lambda m: per_cell_success(bits, 1.0, m, 0.1), 0.1) == records


@pytest.mark.parametrize("bits", [64, 65, 65536])
def test_a_domain_beyond_reach(bits: int) -> None:
    """About 64 strangers are released, within six standard deviations, all distinct and without
    records; heavy points are, too."""
    cells, top = PerCellHistogram(bits, 1.0), (1 << bits) - 1
    points = Multiset.of([top] * 3 + [7], bits)
    heavy = Multiset(bits, points.values, np.array([1, 10**7]))
    answer = cells.release(heavy, seeded(1))
    strangers = [value for value in answer.values.tolist() if value not in (7, top)]
    assert 64 / np.exp(0.5) - 6 * 8 < len(strangers) < 64 + 6 * 8
    assert len(set(strangers)) == len(strangers)
    assert answer.values.tolist() == sorted(answer.values.tolist())
    assert abs(int(answer.at(np.array([top], dtype=object))[0]) - 10**7) < 100
    assert answer.counts.min() >= cells.noise.least


def test_absent_points_are_counted_in_order() -> None:
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
    """Against all sets of k of 8 points, on 40 random databases and answers: without points of no
    error there may be none to fill up with."""
    generator, domain = np.random.default_rng(k), np.arange(8, dtype=np.uint64)
    for _ in range(40):
        points = Multiset.of(generator.integers(0, 8, 12), 3)
        values = np.sort(generator.choice(domain, int(generator.integers(0, 9)), replace=False))
        answers = KPointAnswers(
            k, NoisyCounts(3, values, generator.integers(1, 5, len(values)), 12)
        )
        truth = [int(points.counts[points.values == point].sum()) / 12 for point in domain]
        by_hand = max(
            abs(answers.share(np.array(asked)) - sum(truth[point] for point in asked))
            for asked in combinations(range(8), k)
        )
        assert answers.worst_error(points) == pytest.approx(by_hand)


def test_sums_are_of_what_was_told() -> None:
    points = Multiset(64, np.array([3, 9, 1 << 63], dtype=np.uint64), np.array([500, 300, 200]))
    answers = KPointSanitizer(2, ThresholdedHistogram(1.0, 1e-6)).release(points, seeded(0))
    assert answers.share(np.array([3, 1 << 63], dtype=np.uint64)) == pytest.approx(0.7, abs=0.05)
    assert answers.share(np.array([4, 5])) == 0
    assert answers.worst_error(points) < 0.05


def fine(database: Spread) -> list[int]:
    points, below = database.between(0, database.points.size)
    return np.repeat(points, np.diff([*below, database.points.size])).tolist()


def test_ranks_and_errors_are_those_of_the_records() -> None:
    """Against counting one by one, at every threshold of a small domain."""
    records = [0, 0, 3, 5, 5, 5, 7]
    points, release = Multiset.of(records, 3), Steps.of(3, [(1, 0.4), (4, 0.2), (6, 1.7)])
    truth = [sum(record < threshold for record in records) for threshold in range(9)]
    assert ranks(points, range(9)).tolist() == truth
    assert [release.share(t) for t in (0, 1, 3, 4, 6, 8)] == [0.0, 0.4, 0.4, 0.2, 1.0, 1.0]
    assert release.error(points) == pytest.approx(
        max(abs(rank / 7 - release.share(t)) for t, rank in enumerate(truth))
    )
    assert release.quantile(0.5) == 6


@pytest.mark.parametrize("bits", [64, 70])
def test_the_last_threshold_is_beyond_the_last_point(bits: int) -> None:
    """2^bits itself, which may not fit a machine word."""
    assert ranks(
        Multiset.of([0, (1 << bits) - 1], bits), [0, 1, (1 << bits) - 1, 1 << bits]
    ).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("low", [0, 1, 3])
def test_an_added_record_adds_one_finer_point_and_moves_none(low: int) -> None:
    """For every database of up to 12 records of two values: ties are broken, neighbours stay
    neighbours."""
    for n in range(1, 13):
        for larger, smaller in SmallDatabases([(0,), (1,)], n, list).pairs("add-remove"):
            if len(larger) > len(smaller):
                left = fine(Spread(Multiset.of([x for (x,) in larger], 1), low))
                for point in fine(Spread(Multiset.of([x for (x,) in smaller], 1), low)):
                    left.remove(point)
                assert len(left) == 1


@pytest.mark.parametrize("bits", [8, 64, 100])
def test_finer_points_are_even_and_ranked(bits: int) -> None:
    """A value's records are spread within one of even; ranks, cells and parts of the order agree
    with the list of all finer points."""
    records = [5] * 37 + [6] + [200] * 8 + [255] * 3
    database = Spread(Multiset.of(records, bits), 3)
    every = fine(database)
    assert [point >> 3 for point in every] == records
    assert set(np.bincount([point & 7 for point in every[:37]])) == {4, 5}
    for threshold in [0, 40, 41, 47, 48, 1600, 1603, 2047, 2048]:
        assert database.rank(threshold) == sum(point < threshold for point in every)
    assert database.rank(1 << database.bits) == 49
    assert (database.cell(0), database.cell(40)) == (5, 2)
    points, below = database.between(10, 40)
    assert points.tolist() == sorted(set(every[10:40]))
    assert below.tolist() == [database.rank(int(point)) for point in points]


def test_floats_keep_their_order() -> None:
    """Through infinities, both zeros, subnormals and back; a float's point is one more than that of
    the float before it."""
    values = [-np.inf, -1e300, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 1e300, np.inf]
    points = [int(point) for point in points_of(values)]
    assert points == sorted(points)
    assert points[4] == points[5]
    assert points[8] - points[7] == points[6] - points[5] == 1
    assert [value_of(point) for point in points] == values
    assert (value_of(0), value_of((1 << BITS) - 1)) == (-np.inf, np.inf)


def spare(mechanism: SparseMedians, pairs: Iterable[tuple[Multiset, Multiset]]) -> float:
    """The largest hockey stick when a record is removed, or was not there, in shares of the delta
    of that."""
    growth = exp_epsilon(mechanism.removed.nano)
    result = [
        max(
            hockey_stick(mechanism.law(one), mechanism.law(other), growth)
            for one, other in (pair, pair[::-1])
        )
        for pair in pairs
    ]
    return float(max(result)) / mechanism.removed.delta


@pytest.mark.parametrize(
    ("epsilon", "levels", "delta"), [(2.0, 1, 1e-2), (1.0, 3, 1e-6), (8.0, 2, 1e-4)]
)
def test_a_replaced_record_is_one_removed_and_one_added(
    epsilon: float, levels: int, delta: float
) -> None:
    """It costs twice the epsilon, and (1 + e^(eps / 2)) times the delta, rounded up by at most 1e-8
    of it; all is within the stated delta."""
    mechanism = SparseMedians(epsilon, levels, 0, delta)
    once, exact = (
        mechanism.removed,
        mechanism.removed.atto * (1 + exp_epsilon(mechanism.removed.nano)),
    )
    assert mechanism.loss.nano == 2 * once.nano
    assert (
        exact
        <= mechanism.loss.atto
        <= min(exact * (1 + Fraction(1, 10**8)) + 1, Fraction(delta) * ATTO)
    )


def test_a_record_alone_in_its_intervals() -> None:
    """One at 7 beside 30 at 0, eight points: candidates that only it makes weigh nearly all of
    delta; a forgotten growth is too much."""
    pair = Multiset.of([0] * 30 + [7], 3), Multiset.of([0] * 30, 3)
    assert 0.4 < spare(SparseMedians(2.0, 1, 0, 1e-2), [pair]) <= 1
    assert spare(LightGrowth(2.0, 1, 0, 1e-2), [pair]) > 1.4


def test_what_is_far_off_is_left_out_of_the_runs_and_not_of_the_law() -> None:
    """Scores that are clamped anyway: the same weights whether runs list them or not."""
    generator = np.random.default_rng(0)
    points = Multiset.of(generator.integers(256, size=3000), 8)
    database, mechanism = Spread(points, 2), Medians(6.0, 1, 2)
    node = Node(0, 1 << 10, 0, 3000)
    runs = mechanism.candidates(database, node)
    choice = mechanism.choice()
    every = -np.abs(2 * np.array([database.rank(cut) for cut in range((1 << 10) + 1)]) - 3000)
    law, dense = choice.law(runs), choice.law(numbered(every))
    assert len(runs.scores) < 600
    assert {cut: Fraction(weight, sum(law.values())) for cut, weight in law.items()} == {
        cut: Fraction(weight, sum(dense.values())) for cut, weight in dense.items()
    }


def test_points_of_65536_bits() -> None:
    """3,000 records at five points of a domain of 2^65536: the error is 1/16, as without noise."""
    database = Multiset.of(
        [place << 65_000 for place in (1, 2, 3, 5, 8) for _ in range(600)], 1 << 16
    )
    steps = SparseMedians(8.0, 3, 10, 1e-6).release(database, seeded(0))
    assert steps.error(database) < 0.07


def test_nobody_has_medians_too() -> None:
    for mechanism in (Medians(1.0, 3), SparseMedians(1.0, 3)):
        assert isinstance(mechanism.release(Multiset.of([], 70), seeded(0)), Steps)


def success(mechanism: TreeOfMedians[Any], shape: str, m: int, bits: int, runs: int) -> float:
    """How often all thresholds are within a tenth."""
    database = [Multiset.of(shaped(shape, m, bits, seed), bits) for seed in range(runs)]
    return (
        sum(
            mechanism.release(points, seeded(seed)).error(points) <= 0.1
            for seed, points in enumerate(database)
        )
        / runs
    )


@pytest.mark.parametrize(
    ("bits", "m"),
    short([(16, 1500), (32, 2700), (64, 4900)], lambda each: each[0] == 32, several=True),
)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_thresholds_within_a_tenth(shape: str, bits: int, m: int) -> None:
    """Four levels, epsilon 1, 12 runs: 6 succeed at least; where 9 of 10 do, fewer is a matter of 5
    in 100,000."""
    assert success(Medians(1.0, 4), shape, m, bits, 12) >= 0.5


@pytest.mark.parametrize("shape", ["nested", "five points"])
def test_sparse_medians_at_64_bits(shape: str) -> None:
    """Of the five shapes the two that are hardest, 6,400 records: both of two runs."""
    assert success(SparseMedians(1.0, 4), shape, 6400, 64, 2) == 1


def test_a_column_without_bounds() -> None:
    """`affairs` of 6,366 women as 2^64 points in order, epsilon 1, three levels: within .064, twice
    of two."""
    points = Multiset.of(points_of(fair()["affairs"]), 64)
    errors = [Medians(1.0, 3).release(points, seeded(seed)).error(points) for seed in range(2)]
    assert max(errors) <= 0.064
