"""What every mechanism of the curator must do, whichever it is: one suite over all that there are.

A new mechanism has a case here, or the file that proves it by other means. Its own tests say more: how tight the loss is, and which wrong twins are caught.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from local_dp.curator.catalogue import mechanisms
from local_dp.curator.counts.base import ColumnCounts, NoisyCounts
from local_dp.curator.counts.k_norm import KNormCounts
from local_dp.curator.counts.laplace import ComposedLaplaceCounts, LaplaceCounts
from local_dp.curator.intervals.level import Level, LevelCounts
from local_dp.curator.labels.concepts import Thresholds
from local_dp.curator.labels.private import LabelPrivateLearner, SemiPrivateLearner
from local_dp.curator.laws import SmallDatabases, hockey_stick
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.curator.marginals.tree import DependentPair
from local_dp.curator.mechanism import Law, Mechanism, Neighbours
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.oracle_efficient.perturbed import Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.separated import Conjunctions, Exhaustive
from local_dp.curator.parity.learner import Examples, ParityLearner
from local_dp.curator.points.buckets import BucketClass, BucketPointLearner
from local_dp.curator.points.learner import PointLearner, ProperPointLearner
from local_dp.curator.query_release.counting import CountingQueries
from local_dp.curator.query_release.dual_query import SampledQueries
from local_dp.curator.query_release.mwem import WorstMarginal
from local_dp.curator.query_release.pmw import Asked, FirstFar, NoisyCount
from local_dp.curator.query_release.small_databases import SmallDatabase
from local_dp.curator.reductions.learners import LabelSanitizer, Processed
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.curator.sanitizers.k_points import KPointSanitizer
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.per_cell import PerCellHistogram
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.selection.exponential import ExponentialMechanism, numbered
from local_dp.curator.selection.groups import Listed
from local_dp.curator.selection.occam import Labelled, OccamLearner, ThresholdClass
from local_dp.curator.selection.permute_and_flip import PermutedMechanism
from local_dp.curator.selection.quasi_concave import Parts, Promise, RecConcave
from local_dp.curator.selection.runs import Runs
from local_dp.curator.selection.sparse import SparseChoice, SparseExponential
from local_dp.curator.selection.stable import Lead, StableChoice
from local_dp.curator.sensitivity.medians import ExponentialMedian, GlobalMedian, ProposedMedian
from local_dp.curator.sensitivity.restricted import RestrictedTriangles
from local_dp.curator.sensitivity.triangles import GlobalTriangles, LadderTriangles, NoisyLocalTriangles
from local_dp.curator.sums import NoisySum
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import PureThresholds, tuned
from local_dp.curator.thresholds.rectangles import RankQuery
from local_dp.draws import Draws
from local_dp.loss import ATTO, Approximate, Loss, Pure, exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.graphs import Graph
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.inputs.documents import ROOT
from tests.support.theory.fits import p_value

DRAWS = 600
FAILURE = 1e-6  # of a fit by chi-squared


@dataclass(frozen=True)
class Case:
    """A mechanism on all databases of n records: `build` makes one of records of the universe, `n` says which sizes are enumerated."""

    mechanism: Mechanism[Any, Any, Loss]
    universe: list[Any]
    build: Callable[[Any], Any]
    n: tuple[int, ...] = (1, 2)
    listed: Callable[[Any, Any], Any] = lambda released, database: released  # what the law calls a release

    def small(self, n: int) -> SmallDatabases[Any, Any]:
        return SmallDatabases(self.universe, n, self.build)


def points(records: tuple[tuple[int], ...]) -> Multiset:
    return Multiset.of([value for (value,) in records], 2)


def labelled(records: tuple[tuple[int, int], ...]) -> LabelledMultiset:
    return LabelledMultiset.of_pairs(records, 2)


def ones(records: tuple[tuple[int], ...]) -> Records:
    return Records({"yes": np.array([value for (value,) in records], dtype=np.int64)})


def binary(records: tuple[tuple[int], ...]) -> BinaryTable:
    return BinaryTable(3, np.array([row for (row,) in records], dtype=np.uint64))


def graph(edges: tuple[tuple[int, int], ...]) -> Graph:
    return Graph.of(list(edges), 4)


def columns(rows: tuple[tuple[int, int], ...]) -> ColumnCounts:
    return ColumnCounts.of(np.array(rows))


def cut(told: NoisyCounts, database: ColumnCounts) -> NoisyCounts:
    return NoisyCounts(np.clip(told.counts, 0, database.size))


def occurring(database: Multiset) -> Listed:
    return Listed(database.counts, database.values)


def frequencies(database: Multiset) -> np.ndarray[Any, Any]:
    counts = np.zeros(4, dtype=np.int64)
    counts[database.values.astype(np.int64)] = database.counts
    return counts


def leading(database: Multiset) -> Lead[int]:
    counts = frequencies(database)
    best = int(np.argmax(counts))
    return Lead(best, int(counts[best] - np.delete(counts, best).max()))


def below_and_above(database: Multiset) -> Runs:
    """How many records lie below each of the points, or not below, whichever is fewer: quasi-concave."""
    counts = frequencies(database)
    below = np.cumsum(counts) - counts
    return Runs(np.arange(3, dtype=np.uint64), np.minimum(below, counts.sum() - below), 3)


def rows(records: tuple[tuple[int], ...]) -> BinaryTable:
    return BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64))


def tallied(records: tuple[tuple[int], ...]) -> np.ndarray[Any, Any]:
    return frequencies(points(records))


COUNTED = CountingQueries.conjunctions(2)
ONES = Marginals.ways(2, 1)
POINTS: list[Any] = [(0,), (1,), (3,)]
PAIRS: list[Any] = list(product((0, 1, 3), (0, 1)))
BITS: list[Any] = list(product((0, 1), repeat=2))
EDGES: list[Any] = list(combinations(range(4), 2))
CASES = (
    Case(ExponentialMechanism(frequencies, 1.0), POINTS, points),
    Case(PermutedMechanism(lambda database: numbered(frequencies(database)), 1.0), POINTS, points),
    Case(SparseExponential(occurring, SparseChoice(1.0, 1e-2)), POINTS, points),
    Case(StableChoice(leading, 1.0, 1e-2), POINTS, points, (1, 2, 9)),
    Case(RecConcave(below_and_above, Promise(0, 1), Parts(0.5, 0.5, 1e-2, 0.5), 2), POINTS, points),
    Case(ExponentialMedian(1.0), POINTS, points),
    Case(GlobalMedian(1.0), POINTS, points),
    Case(ProposedMedian(1, 2.0, 0.05), POINTS, points, (1, 3, 5)),
    Case(Level(2, 1, 1.0), POINTS, points, listed=lambda told, database: LevelCounts(np.clip(told.counts, 0, database.size))),
    Case(KNormCounts(2, 1.0), BITS, columns, listed=cut),
    Case(LaplaceCounts(2, 1.0), BITS, columns, listed=cut),
    Case(ComposedLaplaceCounts(2, 1.0, 1e-2), BITS, columns, listed=cut),
    Case(DependentPair(((0, 1), (0, 2), (1, 2)), (0, 1, -1), 1.0), [(0,), (1,), (6,)], binary),
    Case(OneMarginal(3, 5, 1.0), [(0,), (1,), (6,)], binary, listed=lambda told, database: LevelCounts(np.clip(told.counts, 0, database.size))),
    Case(Medians(1.0, 1), POINTS, points),
    Case(SparseMedians(1.0, 1, delta=1e-2), POINTS, points),
    Case(PerCellHistogram(2, 1.0, strangers=1), POINTS, points),
    Case(ThresholdedHistogram(1.0, 1e-2), POINTS, points),
    Case(KPointSanitizer(2, ThresholdedHistogram(1.0, 1e-2)), POINTS, points),
    Case(Processed(ThresholdedHistogram(1.0, 1e-2), lambda told: len(told.values)), POINTS, points),
    Case(RankQuery(2, 1, 1.0, 1e-2), POINTS, points),
    Case(NoisySum(Question("yes == 1"), 1.0), [(0,), (1,)], ones, (1, 5)),
    Case(PointLearner(1.0, 1e-2), PAIRS, labelled),
    Case(ProperPointLearner(1.0), PAIRS, labelled),
    Case(BucketPointLearner(BucketClass.drawn(2, Draws(KeyedNoise(0)), 2, 2), 1.0), PAIRS, labelled),
    Case(PureThresholds(1.0), PAIRS, labelled),
    Case(DyadicThresholds(2, 0.3, 1.0, 1e-2), PAIRS, labelled),
    Case(tuned(0.5, 1.0, 0.05), PAIRS, labelled),
    Case(LabelPrivateLearner(Thresholds(), 1.0), PAIRS, labelled),
    Case(SemiPrivateLearner(Thresholds(), 1.0, public=Multiset.of([0, 2], 2)), PAIRS, labelled),
    Case(LabelSanitizer(Medians(1.0, 1), 1, 1.0), PAIRS, labelled, (1,)),
    Case(OccamLearner(ThresholdClass(4), 1.0), PAIRS, Labelled.of),
    Case(PerturbedMinimum(Perturbation(Conjunctions(2), 1.0), Exhaustive(Conjunctions(2))), PAIRS, Labelled.of),
    Case(ParityLearner(Fraction(1, 4), Fraction(1, 2)), PAIRS, lambda pairs: Examples.of(2, pairs)),
    Case(FirstFar(Asked(COUNTED, 3, np.full(4, 0.25)), 1, 1.0), POINTS, tallied),
    Case(NoisyCount(COUNTED, 0, 1.0), POINTS, tallied),
    Case(SmallDatabase(COUNTED, 2, 1.0), POINTS, tallied),
    Case(WorstMarginal(ONES, np.array([0, 2, 2, 0]), 1.0), POINTS, rows),
    Case(SampledQueries(ONES, np.array([1, 0, 1, 0]), 2, 1.0), POINTS, rows),
    Case(GlobalTriangles(1.0), EDGES, graph, (1, 3, 6)),
    Case(LadderTriangles(1.0), EDGES, graph, (1, 3, 6)),
    Case(NoisyLocalTriangles(1.0, 1e-2), EDGES, graph, (1, 3, 6)),
    Case(RestrictedTriangles(1.0, 2), EDGES, graph, (1, 3, 6)),
)
ELSEWHERE = {  # mechanisms whose law has no list, or whose privacy begins at a number of records, and where it is proved
    "Amplified": "tests/curator/reductions/test_reductions.py",
    "BoundedRange": "tests/curator/query_release/test_mwem.py",
    "CharacterSums": "tests/curator/marginals/test_tree.py",
    "CountTree": "tests/curator/intervals/test_levels.py",
    "DiscreteGaussianCounts": "tests/curator/counts/test_gaussian.py",
    "DyadicTree": "tests/curator/sanitizers/test_medians.py",
    "EqualRanks": "tests/curator/thresholds/test_rectangles.py",
    "FourierGaussian": "tests/curator/marginals/test_fourier.py",
    "GaussianAnswers": "tests/curator/query_release/test_counting.py",
    "GaussianCounts": "tests/curator/counts/test_gaussian.py",
    "GaussianMarginal": "tests/curator/query_release/test_mwem.py",
    "LaplaceAnswers": "tests/curator/query_release/test_counting.py",
    "MediansByLabel": "tests/curator/reductions/test_reductions.py",
    "Mwem": "tests/curator/query_release/test_mwem.py",
    "NoCounts": "tests/curator/counts/test_k_norm.py",
    "NoisyHistogram": "tests/curator/sanitizers/test_medians.py",
    "PairGaussian": "tests/curator/marginals/test_pairs.py",
    "PartitionRectangles": "tests/curator/thresholds/test_rectangles.py",
    "PlainGaussian": "tests/curator/marginals/test_tree.py",
    "PlainLaplace": "tests/curator/marginals/test_tree.py",
    "PrefixFactorization": "tests/curator/intervals/test_factorization.py",
    "PrintedChoosing": "tests/curator/test_printed.py",
    "PrintedSanPoints": "tests/curator/sanitizers/test_san.py",
    "PrintedSanThresholds": "tests/curator/sanitizers/test_san.py",
    "QuantilePartition": "tests/curator/thresholds/test_rectangles.py",
    "RankRectangles": "tests/curator/thresholds/test_rectangles.py",
    "RobustRelease": "tests/curator/oracle_efficient/test_robust.py",
    "SanPoints": "tests/curator/sanitizers/test_san.py",
    "SanThresholds": "tests/curator/sanitizers/test_san.py",
    "SmoothMedian": "tests/curator/sensitivity/test_medians.py",
    "SmoothTriangles": "tests/curator/sensitivity/test_triangles.py",
    "SpanningTree": "tests/curator/marginals/test_tree.py",
    "WeightedMonomials": "tests/curator/marginals/test_conjunctions.py",
}
NAMED = [pytest.param(case, id=type(case.mechanism).__name__) for case in CASES]


def test_every_mechanism_has_a_case() -> None:
    """Or a file that names it; none has both."""
    covered = [type(case.mechanism).__name__ for case in CASES]
    assert sorted([*covered, *ELSEWHERE]) == [kind.__name__ for kind in mechanisms()]
    for name, file in ELSEWHERE.items():
        assert name in (ROOT / file).read_text(), f"{file} does not speak of {name}"


@pytest.mark.parametrize("case", NAMED)
def test_the_loss_holds_on_every_pair_of_neighbours(case: Case) -> None:
    """By enumeration in whole numbers: no more than the mechanism's own delta at its own epsilon."""
    mechanism = case.mechanism
    assert isinstance(mechanism.loss, Pure | Approximate)
    assert max(case.small(n).worst_delta(mechanism) for n in case.n) <= Fraction(mechanism.loss.atto, ATTO)


@dataclass(frozen=True)
class Boast(Mechanism[Any, Any, Loss]):
    """A wrong twin of any mechanism: it says that it loses a hundredth."""

    of: Mechanism[Any, Any, Loss]

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        return self.of.neighbours

    @property
    def loss(self) -> Loss:
        return Pure(self.of.loss.nano // 100)

    def release(self, database: Any, draws: Draws) -> Any:
        return self.of.release(database, draws)

    def law(self, database: Any) -> Law[Any]:
        return self.of.law(database)


@pytest.mark.parametrize("case", NAMED)
def test_a_boast_is_found_out(case: Case) -> None:
    """The same enumeration finds a loss of a hundredth wrong for every mechanism: on these databases each loses something."""
    boast = Boast(case.mechanism)
    growth = exp_epsilon(boast.loss.nano)
    small = [case.small(n) for n in case.n]
    assert any(hockey_stick(law, other, growth) for each in small for law, other in each.laws(boast))


@pytest.mark.parametrize("case", NAMED)
def test_releases_fit_the_law(case: Case) -> None:
    """On the largest of the databases, drawn with a fixed seed: the code draws from the law that the enumeration proves private."""
    records = tuple(case.universe[place % len(case.universe)] for place in range(case.n[-1]))
    database, draws = case.build(records), Draws(KeyedNoise(5))
    law = case.mechanism.law(database)
    drawn = Counter(case.listed(case.mechanism.release(database, draws), database) for _ in range(DRAWS))
    possible = {outcome for outcome, weight in law.items() if weight}
    assert drawn.keys() <= possible
    assert len(possible) == 1 or p_value(drawn, law) > FAILURE


@pytest.mark.parametrize("case", NAMED)
def test_the_order_of_the_records_does_not_matter(case: Case) -> None:
    """The law of the records in any of some orders is the same."""
    records = tuple(case.universe[place % len(case.universe)] for place in range(case.n[-1]))
    laws = [shares(case.mechanism.law(case.build(ordered))) for ordered in orders(records)]
    assert all(law == laws[0] for law in laws)


def shares(law: Law[Any]) -> dict[Any, Fraction]:
    total = sum(law.values())
    return {outcome: Fraction(weight, total) for outcome, weight in law.items() if weight}


def orders(records: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield records
    yield records[::-1]
    yield records[1:] + records[:1]


@pytest.mark.parametrize("kind", mechanisms(), ids=lambda kind: str(kind.__name__))
def test_a_mechanism_is_data_and_its_loss_is_computed(kind: type[Mechanism[Any, Any, Any]]) -> None:
    """A frozen dataclass without a field for its loss or its neighbours; the loss is a property, the neighbours a kind that there is; it says what it is."""
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not {"loss", "neighbours"} & {field.name for field in fields(kind)}
    assert isinstance(kind.loss, property)
    assert kind.neighbours in get_args(Neighbours)
    assert "Privacy" in (kind.__doc__ or "") or any("Privacy" in (base.__doc__ or "") for base in kind.__mro__[1:-2]), Path(kind.__module__).name
