"""Learners of points and of labels: stable choices, buckets of public hashes, label privacy and
public points."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.arrays import Floats
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
    LabelPrivateLearner,
    PointLearner,
    ProperPointLearner,
    SemiPrivateLearner,
    Thresholds,
    leading_point,
)
from local_dp.curator.selection.exponential import ExponentialMechanism, log_probabilities
from local_dp.curator.selection.stable import Lead
from local_dp.loss import approximate
from tests.support.long import short
from tests.support.mechanisms.case import share
from tests.support.mechanisms.learners import EVERY, LISTED, PUBLIC
from tests.support.runs.scripted import seeded


def test_the_leader_is_found() -> None:
    """Against a loop over the domain: label 0 does not count, ties go to the lowest with no lead,
    nothing leads where no label is 1."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        n = int(generator.integers(0, 12))
        examples = LabelledMultiset.of(generator.integers(0, 4, n), generator.integers(0, 2, n), 2)
        counts = [int(examples.ones[examples.values == x].sum()) for x in range(4)]
        second, first = sorted(counts)[-2:]
        assert leading_point(examples) == Lead(counts.index(first), first - second)


def stable(delta: float, chance: float = 0.1) -> Callable[[int], float]:
    return lambda m: stable_success(approximate(1.0, delta), m, chance)


def pure(bits: int, epsilon: float = 1.0, chance: float = 0.1) -> Callable[[int], float]:
    return lambda m: pure_success(bits, epsilon, m, chance)


def uniform(bits: int) -> Callable[[int], float]:
    return lambda m: uniform_success(bits, approximate(1.0, 1e-6), m, alpha=0.1, beta=0.05)


RECORDS: list[tuple[Callable[[int], float], int]] = [
    (lambda m: plain_success(m, 0.1), 22),
    *((stable(delta), records) for delta, records in ((1e-6, 345), (1e-3, 192))),
    *(
        (uniform(bits), records)
        for bits, records in ((12, 363), (16, 346), (64, 345), (65536, 345))
    ),
    *(
        (pure(bits), records)
        for bits, records in (
            (16, 302),
            (32, 544),
            (64, 1018),
            (128, 1950),
            (256, 3790),
            (1024, 14663),
        )
    ),
]


@pytest.mark.parametrize(("success", "records"), RECORDS)
def test_records_for_a_point(success: Callable[[int], float], records: int) -> None:
    """Exact sums at epsilon 1 and alpha .1: with a delta they do not grow with the domain; for the
    pure proper learner they grow with its bits."""
    assert least_records(success) == records


def test_a_uniform_point_errs_twice() -> None:
    """In one of ten points of weight .1 it errs by twice alpha (erratum E3), and nothing is
    promised."""
    assert uniform_success(4, approximate(1.0, 1e-6), 10_000, 0.1, 0.1) == 0
    law = share(
        PointLearner(1.0, 1e-6, "uniform").law(
            LabelledMultiset.of_pairs([(3, 1)] * 10 + [(x, 0) for x in range(10) if x != 3], 4)
        )
    )
    assert sum(chance for x, chance in law.items() if x != 3 and x < 10) > 0.5


@pytest.mark.parametrize(
    ("learner", "success", "m", "bits"),
    [
        (PointLearner(1.0, 1e-3), stable(1e-3, 0.3), 60, 64),
        (ProperPointLearner(2.0), pure(8, 2.0, 0.3), 12, 8),
    ],
)
def test_success_is_that_of_the_law(
    learner: Mechanism[Any, Any, Any], success: Callable[[int], float], m: int, bits: int
) -> None:
    """The bound averages the target's probability in the law of the learner over the counts of its
    examples."""
    laws = [
        share(
            learner.law(LabelledMultiset.of_pairs([(5, 1)] * count + [(9, 0)] * (m - count), bits))
        )
        for count in range(m + 1)
    ]
    assert success(m) == pytest.approx(
        float(binom.pmf(np.arange(m + 1), m, 0.3) @ [float(law.get(5, 0)) for law in laws]),
        rel=1e-6,
    )


def test_a_domain_beyond_reach() -> None:
    """65,536 bits: the target is released, and a uniform point has about as many; the pure learner
    needs more than 80,000 examples."""
    top = (1 << 65536) - 1
    examples = LabelledMultiset.of([top] * 60 + list(range(940)), [1] * 60 + [0] * 940, 65536)
    nobody = LabelledMultiset.of_pairs([], 65536)
    assert [
        PointLearner(1.0, 1e-6).release(database, seeded(0)) for database in (examples, nobody)
    ] == [top, None]
    anywhere = PointLearner(1.0, 1e-6, "uniform").release(nobody, seeded(0))
    assert anywhere is not None
    assert 65536 - 40 < anywhere.bit_length() <= 65536
    for count, right in ((100_000, True), (80_000, False)):
        many = LabelledMultiset(
            65536, np.array([3, top], dtype=object), np.array([5, 0]), np.array([1, count])
        )
        assert (ProperPointLearner(1.0).release(many, seeded(1)) == top) is right


@pytest.mark.parametrize("bits", [3, 64, 65])
def test_all_points_are_there_once(bits: int) -> None:
    """Those that occur and all others make 2^bits; each of the others is one that does not
    occur."""
    for pairs in ([], [(0, 1), (5, 1), (5, 1), (7, 0)]):
        groups = AllPoints(LabelledMultiset.of_pairs(pairs, bits).labelled(1))
        assert groups.total == 1 << bits
        others = [groups.member(len(groups.scores) - 1, place) for place in range(6)]
        assert others == [x for x in range(9) if x not in {x for x, label in pairs if label}][:6]


def test_the_law_of_groups_is_the_law_of_points() -> None:
    examples = LabelledMultiset.of_pairs([(1, 1)] * 4 + [(6, 1)] * 2 + [(3, 0)], 3)
    listed: ExponentialMechanism[int] = ExponentialMechanism(
        lambda _: np.array([0, 4, 0, 0, 0, 0, 2, 0]), 1.0
    )
    assert ProperPointLearner(1.0).law(examples) == listed.law(0)


def drawn_class(seed: int, bits: int = 64, hashes: int = 8, width: int = 4) -> BucketClass:
    return BucketClass.drawn(bits, seeded(seed), hashes, width)


def test_two_points_meet_as_seldom_as_they_must() -> None:
    """Over all 64 pairs of masks of 3 bits, any two of the 8 points meet in one of 4 buckets under
    exactly 16."""
    points = np.arange(8, dtype=np.uint64)
    hashes = [BucketClass(3, (masks,)).hash(0, points) for masks in product(range(8), repeat=2)]
    met = sum((values[:, None] == values[None, :]).astype(int) for values in hashes)
    assert np.array_equal(met, np.where(np.eye(8, dtype=bool), 64, 16))


@pytest.mark.parametrize(
    "masses",
    short(
        [[0.9], [0.45] * 2, [0.18] * 5, [0.3, 0.15, 0.15, 0.1, 0.1, 0.05, 0.05]],
        lambda masses: len(masses) in (1, 7),
    ),
    ids=len,
)
def test_it_represents_points(masses: list[float]) -> None:
    """Exactly, over all masks: on 8 points no hash of 16 buckets errs by more than .1 with
    probability above 1 / (16 .1); so 8 hashes fail with below .024. With 4 buckets the bound is
    void, and one hash does fail in a quarter of the draws."""
    weights = np.array([0.1, *masses])
    points = np.arange(1, len(weights) + 1, dtype=np.uint64)

    def failure(width: int) -> float:
        wrong = 0.0
        for masks in product(range(8), repeat=width):
            values = BucketClass(3, (masks,)).hash(0, points)
            wrong += float(weights[1:][values[1:] == values[0]].sum()) > 0.1 + 1e-12
        return float(wrong / 8**width)

    assert failure(4) <= 1 / 1.6
    assert failure(4) ** 8 < 0.024
    if len(masses) == 1:
        assert failure(2) == 0.25
    assert drawn_class(0).size == 129


def test_errors_are_counted_right() -> None:
    """Against each hypothesis' own predictions; number 0 is never 1."""
    generator = np.random.default_rng(0)
    for bits in (5, 64, 200):
        hypotheses = drawn_class(1, bits, 3, 2)
        x = [int.from_bytes(generator.bytes(32), "little") % (1 << bits) for _ in range(30)]
        y = generator.integers(0, 2, 30)
        examples = LabelledMultiset.of(x, y, bits)
        points = np.array(x, dtype=np.uint64 if bits <= 64 else object)
        by_hand = [
            int((hypotheses.predict(number, points) != (y == 1)).sum())
            for number in range(hypotheses.size)
        ]
        assert hypotheses.errors(examples).tolist() == by_hand
        assert not hypotheses.predict(0, points).any()


def success(m: int, masses: Floats, samples: int, width: int = 4) -> float:
    """Pr[error <= .1] with just over .1 on the target and `masses` on others, given hashes and a
    sample by the law, averaged over both."""
    generator, result = np.random.default_rng([m, len(masses)]), 0.0
    shares = np.array([0.1, *masses])
    points = np.sort(generator.choice(1 << 40, len(shares), replace=False)).astype(np.uint64)
    generator.shuffle(shares[1:])
    for number in range(samples):
        hypotheses, counts = drawn_class(number, 40, 8, width), generator.multinomial(m, shares)
        target = np.eye(1, len(shares), dtype=np.int64)[0]
        examples = LabelledMultiset(40, points, counts * (1 - target), counts * target)
        scale = LabelledMultiset(
            40, points, np.rint(shares * 10**9).astype(np.int64) * (1 - target), 10**8 * target
        )
        good = hypotheses.errors(scale) < 10**8  # just over alpha at the target itself
        result += float(np.exp(log_probabilities(-hypotheses.errors(examples), 1.0))[good].sum())
    return result / samples


SPREADS = [np.full(parts, 0.9 / parts) for parts in (1, 2, 5, 9, 17, 27, 64, 300)]


@pytest.mark.parametrize("masses", short(SPREADS, lambda masses: len(masses) in (1, 27)), ids=len)
def test_records_of_buckets(masses: Floats) -> None:
    """140 examples are enough at any number of bits, wherever the rest of the distribution lies:
    .93 in the hardest (27 points), over 300 hashes and samples. The mean of 300 chances of
    deviation .12 at most is within .03 of its expectation except with probability 1e-5; with 80
    examples the hardest has .75."""
    assert success(140, masses, 300) > 0.9
    if len(masses) == 27:
        assert success(80, masses, 300) < 0.85


def predictions(concept: Any, points: list[int]) -> tuple[bool, ...]:
    if concept is None:
        return (False,) * len(points)
    low, high = concept if isinstance(concept, tuple) else (concept, 1 << 70)
    return tuple(low <= x <= high for x in points)


@pytest.mark.parametrize("bits", [4, 64, 70])
def test_each_dichotomy_has_one_candidate(bits: int) -> None:
    """All ways to label the points are there, once each; scores are errors counted one by one, on
    examples at other points too."""
    generator, top = np.random.default_rng(0), (1 << bits) - 1
    points = Multiset.of([1, 3, 6, 6, top], bits)
    pairs = [
        (int(x), int(y))
        for x, y in zip(
            [*generator.integers(0, 9, 12), top, top], generator.integers(0, 2, 14), strict=True
        )
    ]
    groups = Thresholds().candidates(points, LabelledMultiset.of_pairs(pairs, bits))
    result = [groups.member(number, 0) for number in range(len(groups.scores))]
    records = [int(x) for x in points.values]
    every = {
        predictions(concept, records)
        for concept in [None, *((a, b) for a in range(8) for b in [*range(9), top])]
    }
    every |= {predictions((top, top), records)}
    wanted = {labels for labels in every if list(labels) == sorted(labels)}
    dichotomies = [predictions(concept, records) for concept in result]
    assert len(set(dichotomies)) == len(dichotomies)
    assert set(dichotomies) == wanted
    errors = [
        sum(
            label != (y == 1)
            for (_, y), label in zip(
                pairs, predictions(concept, [x for x, _ in pairs]), strict=True
            )
        )
        for concept in result
    ]
    assert groups.scores.tolist() == [-error for error in errors]


def test_a_listed_class_is_the_class() -> None:
    """Thresholds by their list have the law of `Thresholds`, on all databases of three examples; of
    those that agree on the points the first one stands."""
    everywhere = Multiset.of(range(4), 2)
    for pairs in product(EVERY, repeat=3):
        examples = LabelledMultiset.of_pairs(pairs, 2)
        laws = [
            SemiPrivateLearner(concepts, 1.0, public=everywhere).law(examples)
            for concepts in (Thresholds(), LISTED)
        ]
        assert laws[0] == laws[1]
    assert set(SemiPrivateLearner(LISTED, 1.0, public=PUBLIC).law(examples)) == {0, 1, 3, 4}


def success_of_labels(
    masses: Floats,
    m: int,
    learn: Callable[[LabelledMultiset, Multiset], Any],
    public: int = 0,
    samples: int = 400,
) -> float:
    """Pr[error <= .1], given a sample by the law, averaged over samples: `masses` from the target
    outwards on either side."""
    sides, result, points = len(masses), 0.0, 1000 + np.arange(2 * len(masses), dtype=np.uint64)
    shares = np.concatenate([masses[::-1], masses])
    upto = np.concatenate([[0.0], np.cumsum(shares)])
    generator = np.random.default_rng([m, sides])
    for _ in range(samples):
        counts = generator.multinomial(m, shares)
        records, ones = counts > 0, np.where(np.arange(2 * sides) >= sides, counts, 0)
        examples = LabelledMultiset(64, points[records], (counts - ones)[records], ones[records])
        seen = generator.multinomial(public, shares) if public else counts
        candidates = learn(examples, Multiset(64, points[seen > 0], seen[seen > 0]))
        named = np.array(
            [
                min(candidates.member(number, 0), 1000 + 2 * sides) - 1000
                for number in range(len(candidates.scores))
            ]
        )
        good = np.abs(upto[named] - 0.5) < 0.1 - 1e-9  # just over alpha is not good
        result += float(np.exp(log_probabilities(candidates.scores, 1.0))[good].sum())
    return result / samples


SHAPES = {
    "needle": np.array([0.1, 0.4]),
    "needle and steps": np.array([0.1, *[0.4 / 14] * 14]),
    "needle and fine steps": np.array([0.1, *[0.4 / 500] * 500]),
    "steps": np.full(62, 0.5 / 62),
    "plateau": np.full(2000, 0.5 / 2000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_examples_for_thresholds(shape: str) -> None:
    """80 examples at epsilon 1 and alpha .1 with every third dichotomy, their points their own or
    300 public ones; the domain does not matter. The mean of 400 chances, of deviation .16 at most,
    is within .01 of what it would be: .91 or more, of which .9 is asked; so is the twin's below."""
    masses = SHAPES[shape]
    own = success_of_labels(
        masses,
        80,
        lambda examples, _: LabelPrivateLearner(Thresholds(apart=3), 1.0).candidates(examples),
    )
    assert own > 0.9
    semi = success_of_labels(
        masses,
        80,
        lambda examples, points: SemiPrivateLearner(
            Thresholds(apart=12), 1.0, public=points
        ).candidates(examples),
        public=300,
    )
    assert semi > 0.9


def test_sizes_that_are_proven() -> None:
    """By VC dimension: 1,910 labels; beside 7,384 public points, 1,008 private examples."""
    assert label_examples(1, 1.0, 0.1, 0.1) == 1910
    assert (public_points(1, 0.1, 0.1), semi_private_examples(1, 1.0, 0.1, 0.1)) == (7384, 1008)
    assert (
        label_examples(1, 1.0, 0.1, 0.1)
        < label_examples(2, 1.0, 0.1, 0.1)
        < label_examples(2, 0.1, 0.1, 0.1)
    )


def test_a_domain_beyond_reach_of_labels() -> None:
    """Thresholds on 2^65536 points from 400 examples: nearly all are right."""
    generator, target = np.random.default_rng(0), 1 << 65535
    points = [int.from_bytes(generator.bytes(8192), "little") for _ in range(400)]
    examples = LabelledMultiset.of(points, [int(point >= target) for point in points], 65536)
    result = LabelPrivateLearner(Thresholds(), 1.0).release(examples, seeded(0))
    assert sum((point >= result) != (point >= target) for point in points) < 20
