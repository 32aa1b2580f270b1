"""Bad parameters and databases of the curator's mechanisms: each is refused in one line that names
what is wrong."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.curator import parity_examples
from local_dp.bounds.frequencies import label_examples
from local_dp.curator.account import DeclaredAccount
from local_dp.curator.clipped import NoisySum
from local_dp.curator.counts import ColumnCounts, DiscreteGaussianCounts, KNormCounts
from local_dp.curator.intervals import CountTree, IntervalCounts, Level, PrefixFactorization
from local_dp.curator.inversion import rounded_normals
from local_dp.curator.multisets import LabelledMultiset, Multiset, naturals, points_of
from local_dp.curator.oracle_efficient.separated import Parities
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import (
    Examples,
    ParityLearner,
    amplified_learner,
    exact_learner,
    paper_learner,
    two_runs,
)
from local_dp.curator.points.learner import (
    BucketClass,
    BucketPointLearner,
    Candidates,
    PointLearner,
    SemiPrivateLearner,
    Thresholds,
)
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import (
    KPointAnswers,
    KPointSanitizer,
    NoisyCounts,
    PerCellHistogram,
    ThresholdedHistogram,
)
from local_dp.curator.selection.exponential import ExponentialMechanism, Labelled, log_probabilities
from local_dp.curator.selection.sparse import Goals, PrintedChoice, SparseChoice
from local_dp.curator.selection.stable import Lead, Parts, Promise, RecConcave
from local_dp.curator.sensitivity.mechanisms import (
    CauchyNoise,
    GlobalMedian,
    Median,
    ProposedMedian,
)
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import printed, printed_records, tuned
from local_dp.curator.thresholds.rectangles import LabelledPoints, RankQuery, RankRectangles
from local_dp.errors import InputError
from local_dp.loss import Pure
from local_dp.populations.parity import shaped
from local_dp.queries.tables import Category, Question
from local_dp.records import Records
from tests.support.mechanisms.case import labelled
from tests.support.runs.scripted import seeded

GOALS = Goals(0.1, 0.1)
DRAWS = seeded(0)
PREFIX = PrefixFactorization(4, 1.0, 1e-6)
ONE = labelled(3)([(1, 1)])
VOTES = Records({"v": np.ones(2000, dtype=np.int64)})
ZEROS = np.zeros(13, dtype=np.int64)
CHOOSE: ExponentialMechanism[Any] = ExponentialMechanism(np.asarray, 1.0)
PLANE = LabelledPoints(3, np.zeros((2, 1), dtype=np.uint64), np.array([0, 1]))

WRONG: list[tuple[Any, str]] = [
    ([8], "of 4 bits"),
    ([-1], "-1"),
    ([0.5], "whole"),
    ([True], "whole"),
    (["a"], "whole"),
]
BAD: list[tuple[Callable[[], object], str]] = [
    # databases
    *((partial(naturals, points, 3), word) for points, word in WRONG),
    (lambda: naturals([1 << 64], 64), "65 bits"),
    (lambda: naturals([1], 0), "bits is 0"),
    *(
        (partial(LabelledMultiset.of, [1, 2], labels, 3), "label of 0 or 1")
        for labels in ([0], [0, 2])
    ),
    (lambda: points_of([1.0, math.nan]), "not a number"),
    (lambda: Labelled(np.array([0, 1]), np.array([0, 2])), "labels"),
    (
        lambda: LabelledPoints(3, np.zeros((2, 1), dtype=np.uint64), np.array([0, 2])),
        "label of 0 or 1",
    ),
    (lambda: Examples(65, np.zeros((2, 1), dtype=np.uint64), np.zeros(2, dtype=np.uint8)), "shape"),
    (lambda: gf2.solve(np.zeros((2, 1), dtype=np.uint64), ZEROS[:2], 65), "need rows of shape"),
    (lambda: shaped("round", 10, 8, 0), "no shape"),
    (lambda: DeclaredAccount(Pure(10), 11), "fewer"),
    (lambda: DeclaredAccount(Pure(10), 0), "queries is 0"),
    # choices
    (lambda: CHOOSE.release(np.array([0.5]), DRAWS), "signed whole number"),
    (lambda: CHOOSE.release(ZEROS[:0], DRAWS), "at least one candidate"),
    (lambda: ExponentialMechanism(np.asarray, 1e-9, 10**6).release(ZEROS, DRAWS), "too small"),
    (lambda: log_probabilities(np.array([math.nan]), 1.0), "finite"),
    (lambda: Parities(40).errors(ZEROS, ZEROS), "up to 24"),
    (lambda: SparseChoice(0.1, 0.2), "at most"),
    (lambda: SparseChoice(1.0, 1e-6, growth=0), "growth is 0"),
    (lambda: Lead(0, -1), "whole numbers"),
    *(
        (partial(Goals, *goals), word)
        for goals, word in (
            ((0.0, 0.1), "alpha is 0"),
            ((0.1, 1.0), "beta is 1"),
        )
    ),
    (lambda: PrintedChoice(1e-9, 1e-6, GOALS), "half"),
    (lambda: Promise(3, 3), "whole numbers"),
    (
        lambda: RecConcave(lambda runs: runs, Promise(0, 1), Parts(1.0, 1.0, 1e-2, 1.0), 0),
        "levels is 0",
    ),
    (lambda: Parts(1.0, 1.0, 0.0, 1.0), "delta"),
    # points and labels
    (lambda: PointLearner(1.0, 1e-6, "any"), "otherwise is 'any'"),  # type: ignore[arg-type]
    (
        lambda: PointLearner(1.0, 1e-6, "uniform").law(labelled(64)([(1, 1)])),
        "2\\^64 points",
    ),
    (lambda: BucketClass(3, ()), "masks"),
    (lambda: BucketClass(3, ((8,),)), "3 bits"),
    (lambda: BucketClass.drawn(3, DRAWS, 8, 11), "width is 11"),
    (
        lambda: BucketPointLearner(BucketClass.drawn(64, DRAWS), 1.0).release(ONE, DRAWS),
        "one domain",
    ),
    (lambda: Thresholds(apart=0), "apart is 0"),
    (
        lambda: SemiPrivateLearner(Thresholds(), 1.0, public=Multiset.of([0], 2)).release(
            ONE, DRAWS
        ),
        "one domain",
    ),
    (
        lambda: Candidates(np.zeros((1 << 22) + 1, dtype=np.int64), lambda number: number),
        "dichotomies",
    ),
    (lambda: label_examples(0, 1.0, 0.1, 0.1), "dimension is 0"),
    # sanitizers
    (lambda: ThresholdedHistogram(1.0, 1e-3).law(Multiset.of(range(40), 6)), "outcomes"),
    (
        lambda: (
            ThresholdedHistogram(1.0, 1e-3).release(Multiset.of([1], 6), DRAWS).at(np.array([64]))
        ),
        "domain",
    ),
    (lambda: PerCellHistogram(2, 1.5).release(ONE.labelled(1), DRAWS), "one domain"),
    (lambda: PerCellHistogram(0, 1.0), "bits is 0"),
    (lambda: PerCellHistogram(40, 1.0).law(Multiset.of([1], 40)), "2\\^40 cells"),
    (
        lambda: KPointAnswers(2, NoisyCounts(3, np.zeros(0, dtype=np.uint64), ZEROS[:0], 5)).share(
            np.array([1, 1])
        ),
        "2 distinct points",
    ),
    (lambda: KPointSanitizer(0, ThresholdedHistogram(1.0, 1e-6)), "k is 0"),
    *(
        (partial(Medians, 1.0, *arguments), word)
        for arguments, word in (((0,), "levels is 0"), ((3, 21), "low is 21"))
    ),
    # counts, intervals and numbers
    (lambda: NoisySum(Category("v", ("a", "b", "c")), 1.0), "levels"),
    (lambda: NoisySum(Question("v == 1"), 1.0).law(VOTES), "1024"),
    (lambda: KNormCounts(0, 1.0), "k is 0"),
    (lambda: KNormCounts(3, 1.0).release(ColumnCounts(1, np.array([0, 1])), DRAWS), "2 counts"),
    (lambda: KNormCounts(4096, 0.01), "262,144"),
    (lambda: KNormCounts(13, 1.0).law(ColumnCounts(1, ZEROS)), "4096 outcomes"),
    *((partial(DiscreteGaussianCounts, 3, rho), "rho is") for rho in (2000.0, math.nan)),
    (lambda: rounded_normals(DRAWS, 0, 5), "variance is 0"),
    (lambda: CountTree(23, 1.0), "bits is 23"),
    (lambda: CountTree(4, 1.0, 1), "branching is 1"),
    (lambda: CountTree(4, 3e-9, 2), "4 levels"),
    (lambda: CountTree(2, 1.5, 2).release(ONE.labelled(1), DRAWS), "one domain"),
    (lambda: Level(2, 0, 1.0), "width is 0"),
    (lambda: Level(2, 1, 1.0).law(Multiset.of([0] * 9, 2)), "4096 outcomes"),
    (lambda: IntervalCounts(np.zeros(5)).count(3, 2), "low <= x < high"),
    (
        lambda: PREFIX.release(
            Multiset(4, np.array([1], dtype=np.uint64), np.array([1 << 33])), DRAWS
        ),
        "2\\^32",
    ),
    (lambda: CauchyNoise(Fraction(0), Fraction(2)), "shift above 0"),
    (lambda: CauchyNoise(Fraction(1), Fraction(1)), "stretch above 1"),
    (lambda: Median(Multiset.of([], 3)), "no records"),
    (lambda: Median(Multiset.of([1], 63)), "is 63"),
    (lambda: ProposedMedian(0, 1.0, 1e-6), "bound is 0"),
    (lambda: GlobalMedian(1.0).law(Multiset.of([1], 20)), "listed up to"),
    # thresholds and parity
    (
        lambda: printed(32, 0.1, 1.0, 1e-6).release(labelled(6)([(1, 1)] * 8), DRAWS),
        "8 records",
    ),
    (lambda: tuned(0.0, 1.0, 1e-6), "alpha"),
    (lambda: printed_records(0, 0.1, 1.0, 1e-6), "bits"),
    *(
        (partial(DyadicThresholds, *arguments, 1.0, 1e-3), word)
        for arguments, word in (((0, 0.1), "bits is 0"), ((8, 1.0), "alpha"))
    ),
    (lambda: DyadicThresholds(8, 0.1, 1.0, 0.9), "delta"),
    (lambda: DyadicThresholds(4, 0.1, 1.0, 1e-3).release(ONE, DRAWS), "2\\^3 - 1"),
    (lambda: DyadicThresholds(3, 0.1, 1.0, 1e-3, agnostic=True).law(ONE), "not listed"),
    (lambda: RankQuery(3, 0, 1.0, 1e-3), "rank is 0"),
    (lambda: RankQuery(3, 1, 1.0, 1e-3).release(Multiset.of([1], 4), DRAWS), "2\\^4 - 1"),
    (lambda: RankRectangles(3, 2, 0.1, 1.0, 1e-3).release(PLANE, DRAWS), "1 coordinates"),
    (lambda: RankRectangles(3, 2, 1.0, 1.0, 1e-3), "alpha"),
    (lambda: ParityLearner(Fraction(1, 3), Fraction(1, 2)), "multiple of 2"),
    (lambda: paper_learner(0.6), "1/2"),
    (lambda: two_runs(1.0, 0.0), "between 0 and 1"),
    (lambda: amplified_learner(1.0, 0.1, 0), "runs is 0"),
    (lambda: parity_examples(exact_learner(0.5), 8, 0.9), "reach"),
    (lambda: exact_learner(0.5).law(Examples.of(2, ((1, 1),) * 15)), "up to 16 of both"),
]


@pytest.mark.parametrize(("make", "word"), BAD, ids=[word for _, word in BAD])
def test_bad_input_is_refused_in_one_line(make: Callable[[], object], word: str) -> None:
    with pytest.raises(InputError, match=word) as error:
        make()
    assert "\n" not in str(error.value)
