"""Thresholds: by the exponential mechanism, by RecConcave and from dyadic intervals; rank queries
and rectangles."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.arrays import Naturals
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.sanitizers.medians import Medians, SparseMedians
from local_dp.curator.selection.stable import Promise, levels_of
from local_dp.curator.thresholds import rectangles
from local_dp.curator.thresholds.dyadic import DyadicThresholds, dyadic_records, middles
from local_dp.curator.thresholds.learner import (
    PureThresholds,
    agreements,
    errors_by_gap,
    hard_thresholds,
    printed,
    printed_records,
    random_target,
    tuned,
)
from local_dp.curator.thresholds.rectangles import (
    LabelledPoints,
    PartitionRectangles,
    QuantilePartition,
    RankQuery,
    RankRectangles,
    Rectangle,
)
from local_dp.loss import Approximate, Loss
from tests.support.long import short
from tests.support.mechanisms.case import share
from tests.support.runs.scripted import seeded
from tests.support.theory.fits import mean_chance


def test_agreements_are_counted_one_by_one() -> None:
    generator = np.random.default_rng(0)
    for _ in range(30):
        points, labels = generator.integers(0, 16, 9), generator.integers(0, 2, 9)
        runs = agreements(LabelledMultiset.of(points, labels, 4))
        assert [int(runs.scores[runs.run_of(t)]) for t in range(17)] == [
            int(np.sum((points >= t) == labels)) for t in range(17)
        ]


def needle_success(n: int, bits: int) -> float:
    """Pr[the pure learner at epsilon 1 finds the needle]: an exact sum over the records just below
    and just above it, alpha .1."""
    counts = np.arange(n + 1)
    left = binom.pmf(counts, n, 0.1)
    total = 0.0
    for below in np.flatnonzero(left > 1e-9).tolist():
        right = np.arange(n - below + 1)
        others = np.logaddexp(
            (bits - 1) * np.log(2) - below / 2, (bits - 1) * np.log(2) - right / 2
        )
        total += left[below] * float(
            binom.pmf(right, n - below, 1 / 9) @ np.exp(-np.logaddexp(0, others))
        )
    return total


@pytest.mark.parametrize(
    ("bits", "n"),
    [(16, 314), (64, 1048), (256, 3904), pytest.param(1024, 14848, marks=pytest.mark.slow)],
)
def test_records_for_the_pure_learner(bits: int, n: int) -> None:
    """Exact sums: this many are enough for nine successes of ten, a twentieth fewer are not."""
    assert needle_success(n, bits) > 0.9 > needle_success(n * 19 // 20, bits)


def test_the_sum_is_that_of_the_learner() -> None:
    """On one sample: the chance of the needle is what two counts say; the other hard distributions
    are easier."""
    generator = np.random.default_rng(1)
    laws = hard_thresholds(64, 0.1, 1 << 63 | 1)
    sample = laws["needle"].sample(1000, generator)
    left, right = (int(held) for held in (sample.zeros + sample.ones)[1:3])
    others = (1 << 63) * (np.exp(-left / 2) + np.exp(-right / 2))
    assert PureThresholds(1.0).chance(sample, 1 << 63 | 1, 1 << 63 | 1) == pytest.approx(
        1 / (1 + others), rel=1e-6
    )
    for name in set(laws) - {"needle"}:
        assert (
            PureThresholds(1.0).chance(laws[name].sample(1048, generator), *laws[name].good(0.1))
            > 0.99
        )


@pytest.mark.long(keep="32-1e-06")
@pytest.mark.parametrize(
    ("bits", "delta", "n"),
    [(32, 1e-6, 1280), (64, 1e-6, 1490), (128, 1e-6, 1660), (64, 1e-3, 1100)],
)
def test_records_for_rec_concave(bits: int, delta: float, n: int) -> None:
    """Nine successes of ten on each of the hard distributions, by two standard errors of the
    mean."""
    generator, learner = np.random.default_rng(bits), tuned(0.1, 1.0, delta)
    laws = [hard_thresholds(bits, 0.1, random_target(bits, generator)) for _ in range(16)]
    for name in laws[0]:
        mean, error = mean_chance(learner.chance, [each[name] for each in laws], n, 0.1, generator)
        assert mean - 2 * error > 0.9, name


def test_words_and_whole_numbers_are_treated_alike() -> None:
    """64 bits fit a machine word and 65 do not: the chance of the same thresholds on the same
    points is the same to a millionth; a release is of both."""
    generator, learner = np.random.default_rng(9), tuned(0.1, 1.0, 1e-6)
    law = hard_thresholds(64, 0.1, random_target(64, generator))["staircase"]
    sample = law.sample(1490, generator)
    wide = LabelledMultiset(64, sample.values.astype(object), sample.zeros, sample.ones)
    low, high = law.good(0.1)
    assert learner.chance(sample, low, high) == learner.chance(wide, low, high) > 0.9
    assert learner.release(sample, seeded(3)) == learner.release(wide, seeded(3))
    ends = np.array([0, 0, (1 << 64) - 1, (1 << 64) - 1] * 200, dtype=np.uint64)
    assert (
        0
        < learner.release(
            LabelledMultiset.of(ends, ends.astype(bool).astype(np.int64), 64), seeded(0)
        )
        < 1 << 64
    )


def test_hard_distributions_are_what_they_say() -> None:
    """The good thresholds by definition, on eight bits: the needle alone, and all of a plateau;
    with flipped labels alpha counts in excess."""
    for flipped in (0.0, 0.2):
        for name, law in hard_thresholds(8, 0.1, 101, flipped).items():
            wrong = [
                sum(
                    share
                    for point, share in zip(law.points, law.shares, strict=True)
                    if (point >= t) != (point >= 101)
                )
                for t in range(257)
            ]
            good = [t for t in range(257) if wrong[t] * (1 - 2 * flipped) <= 0.1]
            assert good == list(range(law.good(0.1)[0], law.good(0.1)[1] + 1))
            width = {
                "needle": 1,
                "needle with staircase": 1,
                "narrow plateau": 15,
                "wide plateau": 63,
            }.get(name, len(good))
            assert len(good) == width
            assert sum(law.shares) == pytest.approx(1)
    sample = hard_thresholds(8, 0.1, 101, 0.2)["staircase"].sample(10000, np.random.default_rng(0))
    assert errors_by_gap(sample).min() == pytest.approx(2000, abs=160)  # four standard errors


def test_the_chance_is_a_sum_of_the_law() -> None:
    learner = tuned(0.5, 2.0, 0.05)
    sample = LabelledMultiset.of([2] * 20 + [9] * 30 + [12] * 20, [0] * 20 + [1] * 50, 4)
    law = learner.law(sample)
    share = Fraction(
        sum(weight for answer, weight in law.items() if 3 <= answer <= 9), sum(law.values())
    )
    assert learner.chance(sample, 3, 9) == pytest.approx(float(share), abs=1e-6)


def test_parameters_as_printed() -> None:
    """Theorem 3.18: 3.0e6 records at 32 bits, 3.5e7 at 64; every part is epsilon / (3 N); the parts
    counted come to less than epsilon and delta."""
    sizes = [printed_records(bits, 0.1, 1.0, 1e-6) for bits in (32, 64)]
    assert sizes == [pytest.approx(3.03e6, rel=0.005), pytest.approx(3.475e7, rel=0.005)]
    learner = printed(64, 0.1, 1.0, 1e-6)
    assert (learner.levels, learner.least) == (levels_of(1 << 64), sizes[1]) == (3, sizes[1])
    assert learner.loss == Approximate(7 * 111_111_111, 4 * 111_111_111_111)
    assert learner.solver(sizes[1]).promise == Promise(sizes[1] - sizes[1] // 20, sizes[1])
    assert tuned(0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)


TOP = 1000


def random_points(bits: int, generator: np.random.Generator) -> list[int]:
    far = [int(word) << max(bits - 32, 0) for word in generator.integers(0, 1 << min(bits, 32), 4)]
    near = [far[0] ^ int(word) % (1 << bits) for word in generator.integers(0, 4, 3)]
    return [point for point in (*far, *near, 0, (1 << bits) - 1) if generator.random() < 0.7] or [0]


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 63, 64, 65, 130])
def test_candidates_are_the_middles(bits: int) -> None:
    """Each middle of an interval that holds a point once, with the score that one gets interval by
    interval; `within` counts them."""
    generator = np.random.default_rng(bits)
    for _ in range(6):
        points = random_points(bits, generator)
        sample = LabelledMultiset.of(points, generator.integers(0, 2, len(points)), bits)
        pairs = [
            (int(value), int(label))
            for label in (0, 1)
            for value in np.repeat(sample.labelled(label).values, sample.labelled(label).counts)
        ]
        groups = middles(
            Multiset(bits, sample.values, sample.zeros + sample.ones), TOP - errors_by_gap(sample)
        )
        expected = {
            t: TOP - sum((point >= t) != label for point, label in pairs) for t in (0, 1 << bits)
        }
        for point, height in {
            (point >> height, height) for point in points for height in range(1, bits + 1)
        }:
            t = (2 * point + 1) << (height - 1)
            support = sum(other >> height == point for other in points)
            expected[t] = min(support, TOP - sum((other >= t) != label for other, label in pairs))
        members = [(candidate, int(groups.scores[group])) for group, candidate in groups.members()]
        assert sorted(members) == sorted(expected.items())
        low, high = sorted(points)[len(points) // 2], max(points)
        counted = Counter(
            group for group, candidate in groups.members() if low <= candidate <= high
        )
        assert [counted[group] for group in range(len(groups.sizes))] == groups.within(
            low, high
        ).tolist()


def test_the_chance_of_dyadic_intervals_is_a_sum_of_the_law() -> None:
    """With the fallback where it lies; with a noisy optimum 300 releases are within 4.9 standard
    errors of it (failure 1e-6)."""
    learner = DyadicThresholds(4, 0.1, 1.0, 1e-3)
    sample = LabelledMultiset.of([3] * 15 + [5] * 12 + [11, 12], [0] * 15 + [1] * 13 + [0], 4)
    law = share(learner.law(sample))
    for low, high in ((0, 16), (4, 5), (8, 8), (6, 11)):
        assert learner.chance(sample, low, high) == pytest.approx(
            float(sum(law.get(answer, 0) for answer in range(low, high + 1))), abs=1e-12
        )
    agnostic, draws = DyadicThresholds(4, 0.1, 1.0, 1e-2, agnostic=True), seeded(5)
    sample = LabelledMultiset.of([3] * 20 + [5] * 18 + [11, 12], [0] * 15 + [1] * 24 + [0], 4)
    chance, hits = (
        agnostic.chance(sample, 4, 5),
        sum(4 <= agnostic.release(sample, draws) <= 5 for _ in range(300)),
    )
    assert 0.1 < chance < 0.95
    assert abs(hits - 300 * chance) < 4.9 * (300 * chance * (1 - chance)) ** 0.5
    assert (learner.choice.loss.nano, agnostic.choice.loss.nano, agnostic.loss.nano) == (
        10**9,
        9 * 10**8,
        10**9,
    )


RECORDS = [(16, 1e-6, 340), (64, 1e-6, 380), (1024, 1e-6, 440), (16, 1e-3, 240), (128, 1e-3, 300)]


@pytest.mark.parametrize(
    ("bits", "delta", "n"), short(RECORDS, lambda case: case[1:] == (1e-3, 240), several=True)
)
def test_records_for_a_threshold(bits: int, delta: float, n: int) -> None:
    """Nine successes of ten on each of the hard distributions, over 40 odd targets, by four
    standard errors of the mean."""
    generator, learner = np.random.default_rng(bits), DyadicThresholds(bits, 0.1, 1.0, delta)
    laws = [hard_thresholds(bits, 0.1, random_target(bits, generator)) for _ in range(40)]
    for name in laws[0]:
        mean, error = mean_chance(learner.chance, [each[name] for each in laws], n, 0.1, generator)
        assert mean - 4 * error > 0.9, name


@pytest.mark.long
def test_records_for_noisy_labels() -> None:
    """With 20 % of labels flipped, 460 records at 64 bits, on each of them."""
    generator, learner = (
        np.random.default_rng(1),
        DyadicThresholds(64, 0.1, 1.0, 1e-6, agnostic=True),
    )
    laws = [hard_thresholds(64, 0.1, random_target(64, generator), 0.2) for _ in range(2)]
    for name in laws[0]:
        assert (
            mean_chance(learner.chance, [each[name] for each in laws], 460, 0.1, generator)[0] > 0.9
        ), name


def test_the_proven_number_is_enough() -> None:
    """Empirical error at most alpha with probability .9 and more, on every sample that some
    threshold fits: here on the hard ones, at 64 bits."""
    m = dyadic_records(64, 0.1, 1.0, 1e-6)
    assert (
        [dyadic_records(bits, 0.1, 1.0, 1e-6) for bits in (16, 64, 256, 1024)]
        == [597, m, 707, 763]
        == [597, 652, 707, 763]
    )
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
    assert DyadicThresholds(65536, 0.1, 1.0, 1e-6).release(sample, seeded(0)) == far
    nobody = LabelledMultiset.of([], np.array([], dtype=np.int64), 3)
    assert DyadicThresholds(3, 0.1, 1.0, 1e-3).release(nobody, seeded(0)) in (0, 4, 8)
    ends = LabelledMultiset.of([0] * 300 + [(1 << 64) - 1] * 300, [1] * 300 + [0] * 300, 64)
    assert DyadicThresholds(64, 0.1, 1.0, 1e-6).release(ends, seeded(0)) in range((1 << 64) + 1)


def test_a_point_of_many_records_is_found() -> None:
    same = Multiset(64, np.array([12345], dtype=np.uint64), np.array([1000]))
    assert RankQuery(64, 300, 1.0, 1e-6).release(same, seeded(0)) == 12345
    counted = Counter(
        RankQuery(64, 300, 1.0, 1e-6).release(Multiset.of([], 64), seeded(seed))
        for seed in range(20)
    )
    assert set(counted) <= {None, 0, 1 << 64}


def populations(n: int, generator: np.random.Generator) -> Iterator[tuple[str, Naturals]]:
    """10,000 points of n axes and 32 bits: uniform, in clusters, log-uniform, nested around a
    point, of five values."""
    top, shape = 1 << 32, (10000, n)
    yield "uniform", generator.integers(0, top, shape, dtype=np.uint64)
    centres = generator.integers(1 << 20, top - (1 << 20), (20, n))
    yield (
        "clustered",
        (
            centres[generator.integers(0, 20, len(np.zeros(shape)))]
            + generator.integers(-1000, 1000, shape)
        ).astype(np.uint64),
    )
    yield (
        "log-uniform",
        np.minimum(np.exp2(generator.random(shape) * 32), top - 1).astype(np.uint64),
    )
    steps = generator.choice([-1, 1], shape) * (1 << generator.integers(0, 30, shape))
    yield "nested", (generator.integers(top // 4, 3 * top // 4, n) + steps).astype(np.uint64)
    yield (
        "of five values",
        generator.integers(0, top, (5, n), dtype=np.uint64)[generator.integers(0, 5, shape[0])],
    )


def successes(n: int, m: int, runs: int) -> dict[str, int]:
    """How often a rectangle learned from m records errs by at most .1, of `runs`, by distribution;
    the target holds about half of the points."""
    generator, learner, hits = np.random.default_rng(n), RankRectangles(32, n, 0.1, 1.0, 1e-6), {}
    for name, points in populations(n, generator):
        tail = (1 - 0.5 ** (1 / n)) / 2
        ends = np.quantile(points, [tail, 1 - tail], axis=0, method="lower")
        target = rectangles.inside(tuple((int(low), int(high)) for low, high in ends.T), points)
        hits[name] = 0
        for seed in range(runs):
            drawn = generator.integers(0, len(points), m)
            learned = learner.release(
                LabelledPoints(32, points[drawn], target[drawn].astype(np.int64)), seeded(seed)
            )
            hits[name] += bool(np.mean(rectangles.inside(learned, points) != target) <= 0.1)
    return hits


@pytest.mark.parametrize(("n", "m"), [(1, 2100), pytest.param(2, 9000, marks=pytest.mark.long)])
def test_records_for_a_rectangle(n: int, m: int) -> None:
    """All of ten, at 2^32: a learner that fails one time in five would pass five times ten of them
    once in 70,000 tests."""
    assert set(successes(n, m, 10).values()) == {10}


def test_nothing_outside_is_taken() -> None:
    """On one axis, points 100..199 are positive: the rectangle lies within."""
    points = np.arange(300, dtype=np.uint64).repeat(20)[:, None]
    labels = ((points[:, 0] >= 100) & (points[:, 0] < 200)).astype(np.int64)
    for seed in range(10):
        ((low, high),) = RankRectangles(9, 1, 0.1, 1.0, 1e-6).release(
            LabelledPoints(9, points, labels), seeded(seed)
        )
        assert 100 <= low <= 115
        assert 184 <= high <= 199
    none = LabelledPoints(9, points, np.zeros(len(points), dtype=np.int64))
    assert RankRectangles(9, 1, 0.1, 1.0, 1e-6).release(none, seeded(0)) == ()


def test_losses_are_counted() -> None:
    """2 n queries share epsilon and delta; the plan of Section 3.5 pays for n partitions and n
    times the counts; it needs some positive points."""
    assert RankRectangles(32, 2, 0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)
    partition = QuantilePartition(SparseMedians(0.5, 4, delta=1e-6), 11)
    plan: Mechanism[LabelledPoints, Rectangle, Loss] = PartitionRectangles(partition, 2, 0.2, 0.25)
    assert partition.loss.atto > 0
    assert plan.loss == Approximate(2 * (partition.loss.nano + 25 * 10**7), 2 * partition.loss.atto)
    points = np.arange(2000, dtype=np.uint64).reshape(1000, 2) % 512
    database = LabelledPoints(9, points, (points[:, 0] < 300).astype(np.int64))
    assert 0.3 < np.mean(rectangles.inside(plan.release(database, seeded(1)), points)) <= 1


def test_the_plan_with_a_sanitizer() -> None:
    """200,000 points of 2^32 on one axis, cut by a pure tree of medians: within .1 of the target
    three times of three, at delta 0."""
    generator, plan = (
        np.random.default_rng(5),
        PartitionRectangles(QuantilePartition(Medians(0.5, 5), 32), 1, 0.1, 0.5),
    )
    assert plan.loss == Approximate(10**9, 0)
    points = np.exp2(generator.random((200000, 1)) * 32).astype(np.uint64)
    target = rectangles.inside(((1000, 10**7),), points)
    for seed in range(3):
        learned = plan.release(LabelledPoints(32, points, target.astype(np.int64)), seeded(seed))
        assert 0 < np.mean(rectangles.inside(learned, points) != target) <= 0.1
