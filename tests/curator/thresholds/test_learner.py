"""Thresholds: by the exponential mechanism, by RecConcave and from dyadic intervals; rank queries
and rectangles."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Ints
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.sanitizers.medians import Medians, SparseMedians
from local_dp.curator.selection.stable import Promise, levels_of
from local_dp.curator.thresholds import rectangles
from local_dp.curator.thresholds.dyadic import DyadicThresholds, dyadic_records, middles
from local_dp.curator.thresholds.learner import (
    HardThreshold,
    PureThresholds,
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
)
from local_dp.draws import Draws
from local_dp.loss import Approximate
from tests.support.mechanisms.case import labelled, share
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong


def hard(bits: int, targets: int = 1, flips: float = 0.0) -> list[dict[str, HardThreshold]]:
    """The hard distributions at alpha .1 around random targets."""
    generator = np.random.default_rng(bits)
    return [
        hard_thresholds(bits, 0.1, random_target(bits, generator), flips) for _ in range(targets)
    ]


def test_the_chance_is_that_of_the_learner() -> None:
    """The pure learner's chance of the needle is what two counts say; RecConcave's is a sum of its
    law."""
    sample = hard_thresholds(64, 0.1, 1 << 63 | 1)["needle"].sample(1000, np.random.default_rng(1))
    left, right = ((sample.zeros + sample.ones)[1:3]).tolist()
    others = (1 << 63) * (math.exp(-left / 2) + math.exp(-right / 2))
    chance = PureThresholds(1.0).chance(sample, 1 << 63 | 1, 1 << 63 | 1)
    assert chance == pytest.approx(1 / (1 + others), rel=1e-6)
    sample = LabelledMultiset.of([2] * 20 + [9] * 30 + [12] * 20, [0] * 20 + [1] * 50, 4)
    learner = tuned(0.5, 2.0, 0.05)
    law = share(learner.law(sample))
    within = float(sum(law.get(t, 0) for t in range(3, 10)))
    assert learner.chance(sample, 3, 9) == pytest.approx(within, abs=1e-6)


@pytest.mark.parametrize("flips", [0.0, 0.2])
def test_hard_distributions_are_what_they_say(flips: float) -> None:
    """The good thresholds by definition, on eight bits: the needle alone, and all of a plateau;
    with flipped labels alpha counts in excess."""
    widths = {"needle": 1, "needle with staircase": 1, "narrow plateau": 15, "wide plateau": 63}
    for name, law in hard_thresholds(8, 0.1, 101, flips).items():
        ones, shares = np.array(law.points) >= 101, np.array(law.shares)
        wrong = [shares[(np.array(law.points) >= t) != ones].sum() for t in range(257)]
        good = [t for t in range(257) if wrong[t] * (1 - 2 * flips) <= 0.1]
        assert good == list(range(law.good(0.1)[0], law.good(0.1)[1] + 1))
        assert len(good) == widths.get(name, len(good))
        assert shares.sum() == pytest.approx(1)
        least = errors_by_gap(law.sample(10_000, np.random.default_rng(0))).min()
        assert least == pytest.approx(10_000 * flips, abs=160)  # four standard errors


def test_parameters_as_printed() -> None:
    """Theorem 3.18: 3.0e6 records at 32 bits, 3.5e7 at 64; every part is epsilon / (3 N); the parts
    counted come to less than epsilon and delta."""
    sizes = [printed_records(bits, 0.1, 1.0, 1e-6) for bits in (32, 64)]
    learner = printed(64, 0.1, 1.0, 1e-6)
    assert sizes == [pytest.approx(3.03e6, rel=0.005), pytest.approx(3.475e7, rel=0.005)]
    assert (learner.levels, learner.least, levels_of(1 << 64)) == (3, sizes[1], 3)
    assert printed_records(2, 1e-3, 1.0, 1e-6) == math.ceil(2e8 * math.log(4e4))
    assert learner.loss == Approximate(7 * 111_111_111, 4 * 111_111_111_111)
    assert learner.solver(sizes[1]).promise == Promise(sizes[1] - sizes[1] // 20, sizes[1])
    assert tuned(0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 63, 64, 65, 130])
def test_candidates_are_the_middles(bits: int) -> None:
    """Each middle of an interval that holds a point once, with the score that one gets interval by
    interval; `within` counts them."""
    generator = np.random.default_rng(bits)
    for _ in range(6):
        words = generator.integers(0, 1 << min(bits, 32), 4).tolist()
        near = [word << max(bits - 32, 0) for word in words]
        near += [near[0] ^ change % (1 << bits) for change in (1, 2, 3)]
        points = [point for point in (*near, 0, (1 << bits) - 1) if generator.random() < 0.7] or [0]
        labels = generator.integers(0, 2, len(points))
        sample = LabelledMultiset.of(points, labels, bits)
        multiset = Multiset(bits, sample.values, sample.zeros + sample.ones)
        groups = middles(multiset, 1000 - errors_by_gap(sample))

        def right(t: int, points: list[int] = points, labels: Ints = labels) -> int:
            return 1000 - int((np.array([point >= t for point in points]) != labels).sum())

        expected = {t: right(t) for t in (0, 1 << bits)}
        for point, height in product(points, range(1, bits + 1)):
            interval = point >> height
            t = (2 * interval + 1) << (height - 1)
            expected[t] = min(sum(other >> height == interval for other in points), right(t))
        members = [(candidate, int(groups.scores[group])) for group, candidate in groups.members()]
        assert sorted(members) == sorted(expected.items())
        low, high = sorted(points)[len(points) // 2], max(points)
        inside = [group for group, candidate in groups.members() if low <= candidate <= high]
        counts = np.bincount(inside, minlength=len(groups.sizes))
        assert groups.within(low, high).tolist() == counts.tolist()


def test_the_chance_of_dyadic_intervals_is_a_sum_of_the_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the fallback where it lies; of a noisy optimum over all noises, which a tenth of epsilon
    pays for: one so low that no score is left has the fallback."""
    learner, draws = DyadicThresholds(4, 0.1, 1.0, 1e-3), seeded(5)
    agnostic = DyadicThresholds(4, 0.1, 1.0, 1e-2, agnostic=True)
    sample = LabelledMultiset.of([3] * 15 + [5] * 12 + [11, 12], [0] * 15 + [1] * 13 + [0], 4)
    law = share(learner.law(sample))
    for low, high in ((0, 16), (4, 5), (8, 8), (6, 11)):
        within = float(sum(law.get(answer, 0) for answer in range(low, high + 1)))
        assert learner.chance(sample, low, high) == pytest.approx(within, abs=1e-12)
    sample = LabelledMultiset.of([3] * 20 + [5] * 18 + [11, 12], [0] * 15 + [1] * 24 + [0], 4)
    chance = agnostic.chance(sample, 4, 5)
    exact, best = 0.0, int(errors_by_gap(sample).min())
    for noise in range(-400, 401):
        law = share(agnostic.choice.law(agnostic.candidates(sample, best + noise)))
        exact += float(law.get(4, 0) + law.get(5, 0)) * stats.dlaplace.pmf(noise, 0.1)
    assert chance == pytest.approx(exact, abs=1e-9)
    monkeypatch.setattr(Draws, "discrete_laplace", lambda _, nats: -9999 * (nats * 10 == 1))
    assert agnostic.release(sample, draws) == 8
    losses = [each.nano for each in (learner.loss, agnostic.choice.loss, agnostic.loss)]
    assert losses == [10**9, 9 * 10**8, 10**9]


def test_the_proven_number_is_enough() -> None:
    """Empirical error at most alpha with probability .9 and more, on every sample that some
    threshold fits: here on the hard ones, at 64 bits."""
    for bits, records in ((2, 517), (64, 652), (256, 707), (1024, 763)):
        assert dyadic_records(bits, 0.1, 1.0, 1e-6) == records
    assert dyadic_records(64, 0.1, 0.5, 1e-6) == 1326  # by decimal numbers
    for law in hard(64)[0].values():
        sample = law.sample(652, np.random.default_rng(2))
        good = np.flatnonzero(errors_by_gap(sample) <= 65.2)
        borders = [0, *(int(value) + 1 for value in sample.values), (1 << 64) + 1]
        learner, low, high = DyadicThresholds(64, 0.1, 1.0, 1e-6), good[0], good[-1] + 1
        assert learner.chance(sample, borders[low], borders[high] - 1) > 0.9


def test_large_domains_and_nobody() -> None:
    """Thresholds of 65,536 bits; of no record at all; of points at both ends; a point of many
    records."""
    far, ends = 1 << 65535, [0] * 300 + [(1 << 64) - 1] * 300
    sample = LabelledMultiset.of([far - 1] * 200 + [far] * 200, [0] * 200 + [1] * 200, 65536)
    assert DyadicThresholds(65536, 0.1, 1.0, 1e-6).release(sample, seeded(0)) == far
    nobody = labelled(3)([])
    assert DyadicThresholds(3, 0.1, 1.0, 1e-3).release(nobody, seeded(0)) in (0, 4, 8)
    sample = LabelledMultiset.of(ends, [1] * 300 + [0] * 300, 64)
    for learner in (DyadicThresholds(64, 0.1, 1.0, 1e-6), tuned(0.1, 1.0, 1e-6)):
        assert 0 <= learner.release(sample, seeded(0)) <= 1 << 64
    query, two = RankQuery(64, 300, 1.0, 1e-6), [12345] * 1000 + [99999] * 1000
    assert query.height == 93  # r = 65.2, and 28.6
    for seed in range(20):
        assert query.release(Multiset.of(two, 64), seeded(seed)) == 12345
        assert query.release(Multiset.of([], 64), seeded(seed)) in (None, 0, 1 << 64)


def test_nothing_outside_is_taken() -> None:
    """On one axis, points 100..199 are positive: the rectangle lies within."""
    learner = RankRectangles(9, 1, 0.1, 1.0, 1e-6)
    points = np.arange(300, dtype=np.uint64).repeat(20)[:, None]
    labels = ((points[:, 0] >= 100) & (points[:, 0] < 200)).astype(np.int64)
    for seed in range(10):
        ((low, high),) = learner.release(LabelledPoints(9, points, labels), seeded(seed))
        assert 100 <= low <= 115
        assert 184 <= high <= 199
    assert learner.release(LabelledPoints(9, points, 0 * labels), seeded(0)) == ()


@wrong(
    "local_dp.curator.thresholds.rectangles:RankRectangles.side",
    "RankQuery(self.bits, rank, self.epsilon / (2 * self.axes), self.delta / (2 * self.axes))",
    "RankQuery(self.bits, rank, self.epsilon / self.axes, self.delta / self.axes)",
    "both sides of an axis spend the share of one",
)
def test_losses_are_counted() -> None:
    """2 n queries share epsilon and delta; the plan of Section 3.5 pays for n partitions and n
    times the counts."""
    assert RankRectangles(32, 2, 0.1, 1.0, 1e-6).loss == Approximate(10**9, 10**12)
    medians = SparseMedians(0.5, 4, delta=1e-6)
    assert medians.choice(8).growth == 9  # an interval of each height, and all that are left out
    partition = QuantilePartition(medians, 11)
    assert partition.loss.nano == 5e8
    assert 0.99 < partition.loss.atto / 10**12 <= 1
    loss = PartitionRectangles(partition, 2, 0.2, 0.25).loss
    assert loss.nano == 2 * (partition.loss.nano + 25 * 10**7)
    assert loss.atto == 2 * partition.loss.atto


def test_the_plan_with_a_sanitizer() -> None:
    """200,000 points of 2^32 on one axis, cut by a pure tree of medians: within .1 of the target
    three times of three, at delta 0."""
    plan = PartitionRectangles(QuantilePartition(Medians(0.5, 5), 32), 1, 0.1, 0.5)
    assert plan.loss == Approximate(10**9, 0)
    points = np.exp2(np.random.default_rng(5).random((200_000, 1)) * 32).astype(np.uint64)
    target = rectangles.inside(((1000, 10**7),), points)
    for seed in range(3):
        rectangle = plan.release(LabelledPoints(32, points, target.astype(np.int64)), seeded(seed))
        assert 0 < np.mean(rectangles.inside(rectangle, points) != target) <= 0.1
    # 12 records reach the bar, .69 * 800 / (12 * 2 * 2), and 11 do not
    plan = PartitionRectangles(QuantilePartition(Medians(24.0, 1), 2), 2, 0.69, 24.0)
    points = np.repeat([[0, 0], [15, 15]], 400, axis=0).astype(np.uint64)
    labels = np.r_[[1] * 12, [0] * 777, [1] * 11]
    rectangle = plan.release(LabelledPoints(4, points, labels), seeded(0))
    assert (rectangles.inside(rectangle, points) == (points[:, 0] == 0)).all()
