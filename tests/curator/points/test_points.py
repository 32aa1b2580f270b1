"""Learners of points and of labels: stable choices, buckets of public hashes, label privacy and
public points."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.bounds.frequencies import label_examples, public_points, semi_private_examples
from local_dp.bounds.packing import (
    least_records,
    plain_success,
    pure_success,
    stable_success,
    uniform_success,
)
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.points.learner import (
    AllPoints,
    BucketClass,
    PointLearner,
    ProperPointLearner,
    SemiPrivateLearner,
    Thresholds,
    leading_point,
)
from local_dp.curator.selection.stable import Lead
from local_dp.loss import approximate
from tests.support.mechanisms.case import labelled, share
from tests.support.mechanisms.learners import EVERY, LISTED, PUBLIC
from tests.support.runs.scripted import seeded

LOSS = approximate(1.0, 1e-6)


def test_the_leader_is_found() -> None:
    """Against a loop over the domain: label 0 does not count, ties go to the lowest with no lead,
    nothing leads where no label is 1."""
    generator = np.random.default_rng(0)
    for n in range(200):
        points, labels = generator.integers(0, 4, n % 12), generator.integers(0, 2, n % 12)
        counts = np.bincount(points[labels == 1], minlength=4).tolist()
        second, first = sorted(counts)[-2:]
        assert leading_point(LabelledMultiset.of(points, labels, 2)) == Lead(
            counts.index(first), first - second
        )


@pytest.mark.parametrize(("success", "records"), [
    (lambda m: plain_success(m, 0.1), 22), (lambda m: stable_success(LOSS, m, 0.1), 345),
    *((partial(uniform_success, bits, LOSS, alpha=0.1, beta=0.05), records) for bits,
    records in ((12, 363), (16, 346), (65536, 345))),
    *((partial(pure_success, bits, 1.0, alpha=0.1), records) for bits,
    records in ((2, 78), (16, 302), (64, 1018), (256, 3790), (1024, 14663))),
])  # fmt: skip
def test_records_for_a_point(success: Callable[..., float], records: int) -> None:
    """Exact sums at epsilon 1 and alpha .1: with a delta they do not grow with the domain; for the
    pure proper learner they grow with its bits."""
    assert least_records(lambda m: success(m=m)) == records


def test_a_uniform_point_errs_twice() -> None:
    """In one of ten points of weight .1 it errs by twice alpha (erratum E3), and nothing is
    promised."""
    assert uniform_success(4, LOSS, 10_000, 0.1, 0.1) == 0
    pairs = [(3, 1)] * 10 + [(x, 0) for x in range(10) if x != 3]
    law = share(PointLearner(1.0, 1e-6, "uniform").law(labelled(4)(pairs)))
    assert sum(chance for x, chance in law.items() if x < 10) - law[3] > 0.5


@pytest.mark.parametrize(
    ("learner", "success", "m"),
    [
        (PointLearner(1.0, 1e-3), stable_success(approximate(1.0, 1e-3), 60, 0.3), 60),
        (ProperPointLearner(2.0), pure_success(8, 2.0, 12, 0.3), 12),
    ],
)
def test_success_is_that_of_the_law(
    learner: Mechanism[Any, Any, Any], success: float, m: int
) -> None:
    """The bound averages the target's probability in the law of the learner over the counts of its
    examples."""
    right = []
    for count in range(m + 1):
        examples = labelled(8)([(5, 1)] * count + [(9, 0)] * (m - count))
        right.append(float(share(learner.law(examples)).get(5, 0)))
    expected = binom.pmf(np.arange(m + 1), m, 0.3) @ right
    assert success == pytest.approx(expected, rel=1e-6)


def test_a_domain_beyond_reach() -> None:
    """65,536 bits: the target is released, and a uniform point has about as many; the pure learner
    needs more than 80,000 examples."""
    top = (1 << 65536) - 1
    examples = LabelledMultiset.of([top] * 60, [1] * 60, 65536)
    nobody = LabelledMultiset.of([], [], 65536)
    assert PointLearner(1.0, 1e-6).release(examples, seeded(0)) == top
    assert PointLearner(1.0, 1e-6).release(nobody, seeded(0)) is None
    anywhere = PointLearner(1.0, 1e-6, "uniform").release(nobody, seeded(0))
    assert anywhere is not None
    assert 65536 - 40 < anywhere.bit_length() <= 65536
    for count in (100_000, 80_000):
        many = LabelledMultiset(
            65536, np.array([3, top], dtype=object), np.array([5, 0]), np.array([1, count])
        )
        assert (ProperPointLearner(1.0).release(many, seeded(1)) == top) == (count == 100_000)


@pytest.mark.parametrize("bits", [3, 64, 65])
def test_all_points_are_there_once(bits: int) -> None:
    """Those that occur and all others make 2^bits; each of the others is one that does not
    occur."""
    for pairs in ([], [(0, 1), (5, 1), (5, 1), (7, 0)]):
        groups = AllPoints(labelled(bits)(pairs).labelled(1))
        assert groups.total == 1 << bits
        others = [groups.member(len(groups.scores) - 1, place) for place in range(6)]
        assert others == [x for x in range(9) if x not in {x for x, label in pairs if label}][:6]


def test_two_points_meet_as_seldom_as_they_must() -> None:
    """Over all 64 pairs of masks of 3 bits, any two of the 8 points meet in one of 4 buckets under
    exactly 16."""
    classes = [BucketClass(3, (masks,)) for masks in product(range(8), repeat=2)]
    values = np.array([each.hash(0, np.arange(8, dtype=np.uint64)) for each in classes])
    meetings = (values[:, :, None] == values[:, None, :]).sum(axis=0)
    assert np.array_equal(meetings, np.where(np.eye(8, dtype=bool), 64, 16))


@pytest.mark.parametrize("bits", [5, 64, 200])
def test_errors_are_counted_right(bits: int) -> None:
    """Against each hypothesis' own predictions; number 0 is never 1."""
    generator, hypotheses = np.random.default_rng(0), BucketClass.drawn(bits, seeded(1), 3, 2)
    x = [int.from_bytes(generator.bytes(32), "little") % (1 << bits) for _ in range(30)]
    y = generator.integers(0, 2, 30)
    points = np.array(x, dtype=np.uint64 if bits <= 64 else object)
    by_hand = [
        int((hypotheses.predict(number, points) != (y == 1)).sum())
        for number in range(hypotheses.size)
    ]
    assert hypotheses.size == 13
    assert hypotheses.errors(LabelledMultiset.of(x, y, bits)).tolist() == by_hand
    assert not hypotheses.predict(0, points).any()


@pytest.mark.parametrize("bits", [4, 64, 70])
def test_each_dichotomy_has_one_candidate(bits: int) -> None:
    """All ways of a threshold to label the points are there, once each; scores are errors counted
    one by one, on examples at other points too."""
    generator, top = np.random.default_rng(0), (1 << bits) - 1
    points = Multiset.of([1, 3, 6, 6, top], bits)
    x = [*generator.integers(0, 9, 12).tolist(), top, top]
    y = generator.integers(0, 2, 14)
    groups = Thresholds().candidates(points, LabelledMultiset.of(x, y, bits))
    thresholds = [groups.member(number, 0) for number in range(len(groups.scores))]
    dichotomies = sorted([int(value) >= t for value in points.values] for t in thresholds)
    assert dichotomies == [[place >= first for place in range(4)] for first in range(4, -1, -1)]
    for t, score in zip(thresholds, groups.scores, strict=True):
        assert score == -sum((point >= t) != label for point, label in zip(x, y, strict=True))


def test_a_listed_class_is_the_class() -> None:
    """Thresholds by their list have the law of `Thresholds`, on all databases of three examples; of
    those that agree on the points the first one stands."""
    everywhere = Multiset.of(range(4), 2)
    for pairs in product(EVERY, repeat=3):
        examples = labelled(2)(pairs)
        laws = [
            SemiPrivateLearner(concepts, 1.0, public=everywhere).law(examples)
            for concepts in (Thresholds(), LISTED)
        ]
        assert laws[0] == laws[1]
    assert set(SemiPrivateLearner(LISTED, 1.0, public=PUBLIC).law(examples)) == {0, 1, 3, 4}


def test_sizes_that_are_proven() -> None:
    """By VC dimension: 1,910 labels; beside 7,384 public points, 1,008 private examples."""
    assert label_examples(1, 1.0, 0.1, 0.1) == 1910
    assert (public_points(1, 0.1, 0.1), semi_private_examples(1, 1.0, 0.1, 0.1)) == (7384, 1008)
    assert 1910 < label_examples(2, 1.0, 0.1, 0.1) < label_examples(2, 0.1, 0.1, 0.1)
