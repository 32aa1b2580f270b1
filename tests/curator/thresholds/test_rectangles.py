"""Rank queries and the rectangles that are made of them."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from local_dp.arrays import Naturals
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.thresholds.rectangles import (
    EqualRanks,
    LabelledPoints,
    PartitionRectangles,
    QuantilePartition,
    RankQuery,
    RankRectangles,
    Rectangle,
    inside,
)
from local_dp.draws import Draws
from local_dp.loss import Approximate, Loss
from local_dp.noise import KeyedNoise


def test_a_point_of_many_records_is_found() -> None:
    """A single value is the answer, whatever the rank; no answer where there is nobody."""
    same = Multiset(64, np.array([12345], dtype=np.uint64), np.array([1000]))
    assert RankQuery(64, 300, 1.0, 1e-6).release(same, Draws(KeyedNoise(0))) == 12345
    counted = Counter(RankQuery(64, 300, 1.0, 1e-6).release(Multiset.of([], 64), Draws(KeyedNoise(seed))) for seed in range(20))
    assert set(counted) <= {None, 0, 1 << 64}


def populations(n: int, generator: np.random.Generator) -> Iterator[tuple[str, Naturals]]:
    """10,000 points of n axes and 32 bits: uniform, in clusters, log-uniform, nested around a point, of five values."""
    top, shape = 1 << 32, (10000, n)
    yield "uniform", generator.integers(0, top, shape, dtype=np.uint64)
    centres = generator.integers(1 << 20, top - (1 << 20), (20, n))
    yield "clustered", (centres[generator.integers(0, 20, len(np.zeros(shape)))] + generator.integers(-1000, 1000, shape)).astype(np.uint64)
    yield "log-uniform", np.minimum(np.exp2(generator.random(shape) * 32), top - 1).astype(np.uint64)
    steps = generator.choice([-1, 1], shape) * (1 << generator.integers(0, 30, shape))
    yield "nested", (generator.integers(top // 4, 3 * top // 4, n) + steps).astype(np.uint64)
    yield "of five values", generator.integers(0, top, (5, n), dtype=np.uint64)[generator.integers(0, 5, shape[0])]


def successes(n: int, m: int, runs: int) -> dict[str, int]:
    """How often a rectangle learned from m records errs by at most .1, of `runs`, by distribution; the target holds about half of the points."""
    generator, learner, hits = np.random.default_rng(n), RankRectangles(32, n, 0.1, 1.0, 1e-6), {}
    for name, points in populations(n, generator):
        tail = (1 - 0.5 ** (1 / n)) / 2
        ends = np.quantile(points, [tail, 1 - tail], axis=0, method="lower")
        target = inside(tuple((int(low), int(high)) for low, high in ends.T), points)
        hits[name] = 0
        for seed in range(runs):
            drawn = generator.integers(0, len(points), m)
            learned = learner.release(LabelledPoints(32, points[drawn], target[drawn].astype(np.int64)), Draws(KeyedNoise(seed)))
            hits[name] += bool(np.mean(inside(learned, points) != target) <= 0.1)
    return hits


@pytest.mark.parametrize(("n", "m"), [(1, 2100), pytest.param(2, 9000, marks=pytest.mark.long)])
def test_records_for_a_rectangle(n: int, m: int) -> None:
    """All of ten, at 2^32: a learner that fails one time in five would pass five times ten of them once in 70,000 tests."""
    assert set(successes(n, m, 10).values()) == {10}


def test_nothing_outside_is_taken() -> None:
    """On one axis, points 100..199 are positive: the rectangle lies within."""
    points = np.arange(300, dtype=np.uint64).repeat(20)[:, None]
    labels = ((points[:, 0] >= 100) & (points[:, 0] < 200)).astype(np.int64)
    for seed in range(10):
        ((low, high),) = RankRectangles(9, 1, 0.1, 1.0, 1e-6).release(LabelledPoints(9, points, labels), Draws(KeyedNoise(seed)))
        assert 100 <= low <= 115
        assert 184 <= high <= 199
    none = LabelledPoints(9, points, np.zeros(len(points), dtype=np.int64))
    assert RankRectangles(9, 1, 0.1, 1.0, 1e-6).release(none, Draws(KeyedNoise(0))) == ()


def test_losses_are_counted() -> None:
    """2 n queries share epsilon and delta; the plan of Section 3.5 pays for n partitions and n times the counts; it needs some positive points."""
    assert RankRectangles(32, 2, 0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)
    partition = EqualRanks(9, 11, 0.5, 1e-6)
    plan: Mechanism[LabelledPoints, Rectangle, Loss] = PartitionRectangles(partition, 2, 0.2, 0.25)
    assert (partition.loss, plan.loss) == (Approximate(5 * 10**8, 10**12), Approximate(15 * 10**8, 2 * 10**12))
    points = np.arange(2000, dtype=np.uint64).reshape(1000, 2) % 512
    database = LabelledPoints(9, points, (points[:, 0] < 300).astype(np.int64))
    assert 0.3 < np.mean(inside(plan.release(database, Draws(KeyedNoise(1))), points)) <= 1


def test_the_plan_with_a_sanitizer() -> None:
    """200,000 points of 2^32 on one axis, cut by a pure tree of medians: within .1 of the target three times of three, at delta 0."""
    generator, plan = np.random.default_rng(5), PartitionRectangles(QuantilePartition(Medians(0.5, 5), 32), 1, 0.1, 0.5)
    assert plan.loss == Approximate(10**9, 0)
    points = np.exp2(generator.random((200000, 1)) * 32).astype(np.uint64)
    target = inside(((1000, 10**7),), points)
    for seed in range(3):
        learned = plan.release(LabelledPoints(32, points, target.astype(np.int64)), Draws(KeyedNoise(seed)))
        assert 0 < np.mean(inside(learned, points) != target) <= 0.1
