"""What every mechanism of the curator must do: one suite over all cases of
`tests/support/mechanisms`; and what those draw whose laws are too large to list."""

import math
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from local_dp.accounting.losses import rho_within
from local_dp.accounting.rules import optimal_part
from local_dp.curator.counts import (
    ColumnCounts,
    DiscreteGaussianCounts,
    GaussianCounts,
    NoCounts,
    _sizes,
)
from local_dp.curator.intervals import CountTree, PrefixFactorization
from local_dp.curator.inversion import least_variance
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import (
    CharacterSums,
    DependentPair,
    PlainGaussian,
    SpanningTree,
)
from local_dp.curator.marginals.conjunctions import Disjunctions, WeightedMonomials
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.curator.marginals.pairs import PairGaussian, SignTable
from local_dp.curator.mechanism import Mechanism, Neighbours, hockey_stick, mechanisms
from local_dp.curator.multisets import Multiset
from local_dp.curator.query_release.counting import (
    CountingQueries,
    GaussianAnswers,
    LaplaceAnswers,
    moved,
)
from local_dp.curator.query_release.synthetic import GaussianMarginal, Mwem, PureRounds
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.san_points import PrintedSanPoints, SanPoints
from local_dp.curator.sanitizers.san_thresholds import PrintedSanThresholds, SanThresholds
from local_dp.curator.selection.exponential import BoundedRange, ExponentialChoice
from local_dp.curator.selection.sparse import Goals, SparseChoice
from local_dp.curator.sensitivity.mechanisms import CauchyNoise, Median, SmoothMedian
from local_dp.curator.sensitivity.triangles import SmoothTriangles, Triangles
from local_dp.curator.thresholds.rectangles import (
    LabelledPoints,
    PartitionRectangles,
    QuantilePartition,
    RankRectangles,
)
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Pure, approximate, exp_epsilon
from local_dp.populations.graphs import Graph
from tests.support.mechanisms.case import Case, all_cases, delta, share
from tests.support.mechanisms.paths import Ask, asks_of, follows
from tests.support.wrong import wrong as wrong_twin

CASES, KINDS = all_cases(), {kind.__name__ for kind in mechanisms()}
# of each kind of mechanism, for the normal suite
ONE = {type(case.mechanism): place for place, case in reversed(list(enumerate(CASES)))}.values()
# whose other cases take long
DEAR = ("Lowered", "Medians", "PerturbedMinimum", "ProposedMedian", "StableChoice")
IDS = [type(case.mechanism).__name__ for case in CASES]
NAMED = [
    pytest.param(case, id=name, marks=() if place in ONE else pytest.mark.long)
    for place, (case, name) in enumerate(zip(CASES, IDS, strict=True))
]
FIRST = dict(zip(reversed(IDS), reversed(CASES), strict=True))


@wrong_twin(
    "local_dp.curator.clipped:NoisyMean._nano",
    "nano // 2",
    "nano",
    "a value that appears costs half as much again as a replaced one",
    at="NoisyMean1",
)
@wrong_twin(
    "local_dp.curator.clipped:NoisySum.noisy",
    "nano_epsilon(self.epsilon)",
    "2 * nano_epsilon(self.epsilon)",
    "a noisy sum with half the noise",
    at="NoisySum0",
)
@wrong_twin(
    "local_dp.curator.sensitivity.mechanisms:InHalves.margin",
    "self._half",
    "2 * self._half",
    "the threshold is for less noise than the distance has",
    at="ProposedMedian0",
)
@wrong_twin(
    "local_dp.curator.selection.stable:best_acceptance",
    "min(UNIT, likelier, UNIT - unlikelier)",
    "min(UNIT, likelier)",
    "no answer becomes too unlikely from one database to its neighbour",
    at="PointLearner1",
)
@wrong_twin(
    "local_dp.curator.counts:LaplaceCounts.step",
    "Fraction(self.loss.nano, self.k)",
    "Fraction(self.loss.nano)",
    "k counts are charged as one",
    at="LaplaceCounts1",
)
@wrong_twin(
    "local_dp.curator.intervals:Level.noise",
    "Fraction(self.loss.nano, 2)",
    "Fraction(self.loss.nano)",
    "a replaced record moves two counts of a level, not one",
    at="OneMarginal",
)
@wrong_twin(
    "local_dp.curator.query_release.boosting:BadlyAnswered.choice",
    "ExponentialChoice(len(self.expected) * nano_epsilon(self.each) / NANO, len(self.expected))",
    "ExponentialChoice(len(self.expected) * nano_epsilon(self.each) / NANO)",
    "a sum of terms is said to move by one, as each term does",
    at="BadlyAnswered0",
)
@wrong_twin(
    "local_dp.curator.query_release.counting:SmallDatabase.choice",
    "ExponentialChoice(self.epsilon, self.rows)",
    "ExponentialChoice(self.epsilon)",
    "a replaced record moves n q(y) - m q(x) by m",
    at="SmallDatabase0",
)
@wrong_twin(
    "local_dp.curator.selection.exponential:decay_of",
    "2 * sensitivity",
    "sensitivity",
    "the mechanism spends twice epsilon",
    at="SmallDatabase0",
)
@pytest.mark.slow(only=("Lowered1",))
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(*each.values, id=each.id, marks=each.marks if each.id in DEAR else ())
        for each in NAMED
    ],
)
def test_the_loss_holds_on_every_pair_of_neighbours(case: Case) -> None:
    """By enumeration in whole numbers: at its epsilon the mechanism has at most its delta; a stated
    share of its loss is too little."""
    loss = case.mechanism.loss
    assert isinstance(loss, Pure | Approximate)
    laws, less = list(case.laws(case.mechanism)), case.too_little
    assert max(hockey_stick(*pair, exp_epsilon(loss.nano)) for pair in laws) <= delta(loss)
    short = any(hockey_stick(*pair, exp_epsilon(less.nano)) > delta(less) for pair in laws)
    assert short, (
        f"{less} is enough on these databases; give the case a lower `tight`, or more records `n`"
    )


@pytest.mark.parametrize("case", NAMED)
def test_wrong_twins_lose_more(case: Case) -> None:
    assert case.wrong, "give the case a wrong twin"
    assert [twin for twin in case.wrong if not case.exceeds(twin)] == []


@wrong_twin(
    "local_dp.curator.oracle_efficient.perturbed:Perturbation.step",
    "nano_epsilon(self.epsilon)",
    "2 * nano_epsilon(self.epsilon)",
    "an example moves a difference of totals by 2, and the noise is for 1",
    at="PerturbedMinimum0",
)
@wrong_twin(
    "local_dp.curator.selection.stable:StableChoice.release",
    "draws.below(UNIT) < self.answered(lead.gap)",
    "draws.below(UNIT) <= self.answered(lead.gap)",
    "the sampler differs from its law by 2^-64",
    at="PointLearner0",
)
@wrong_twin(
    "local_dp.curator.counts:KNormCounts.noise",
    "self.loss.nano",
    "2 * self.loss.nano",
    "the cubes are half as large as the law says",
    at="KNormCounts0",
)
@pytest.mark.parametrize("case", NAMED)
def test_every_path_of_the_sampler_adds_up_to_its_law(case: Case) -> None:
    """The law that is proven private is that of the releases, exactly, on several databases."""
    mechanism = case.tried
    for records in case.samples:
        database = case.build(records)
        assert follows(
            lambda draws, on=database: case.name_of(mechanism.release(on, draws), on),  # type: ignore[misc]
            mechanism.law(database),
            len(records) + 2,
        )


@pytest.mark.parametrize("case", FIRST.values(), ids=FIRST)
def test_the_order_of_the_records_does_not_matter(case: Case) -> None:
    records = case.example
    orders = records, records[::-1], records[1:] + records[:1]
    law, *others = (share(case.mechanism.law(case.build(each))) for each in orders)
    assert [law, law] == others


@pytest.mark.parametrize("kind", mechanisms(), ids=lambda kind: str(kind.__name__))
def test_a_mechanism_is_data_and_its_loss_is_computed(kind: type[Mechanism[Any, Any, Any]]) -> None:
    """A frozen dataclass without a field for its loss or its neighbours; the loss is a property,
    the neighbours a known kind; its docstring states privacy."""
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not {"loss", "neighbours"} & {field.name for field in fields(kind)}
    assert isinstance(kind.loss, property)
    assert kind.neighbours in get_args(Neighbours)
    docs = [base.__doc__ or "" for base in kind.__mro__[:-2]]
    assert any("Privacy" in text for text in docs), kind.__module__


LOSS = approximate(1.0, 1e-3)
ROWS = BinaryTable(3, np.array([0, 1, 6, 7, 7], dtype=np.uint64))
WORKLOAD: Any = Marginals.ways(3, 2)
QUERIES = CountingQueries.conjunctions(2)
COLUMNS, TALLIED = ColumnCounts(9, np.array([3, 0, 9])), np.array([3, 0, 2, 4])
POINTS = Multiset.of([0, 0, 3, 9, 9, 9, 14, 15] * 60, 4)
FLAT = LabelledPoints(
    4, np.arange(64, dtype=np.uint64).reshape(32, 2) % np.uint64(16), np.ones(32, dtype=np.int64)
)
GRAPH = Graph.of([(0, 1), (0, 2), (1, 2), (2, 3)], 5)
CAUCHY = CauchyNoise.exact(1.0)
MOVED = moved(QUERIES)
PREFIX = PrefixFactorization(4, 1.0, 1e-3)
FOURIER = FourierGaussian(WORKLOAD, 1.0, 1e-3)
SPREAD = FOURIER.variances
MONOMIALS = WeightedMonomials(Disjunctions(3, 2, 2), 1.0, 1e-3)
THIRD = rho_within(LOSS).atto_rho // 3
SPLIT = PartitionRectangles(QuantilePartition(Medians(0.5, 2), 4), 2, 0.2, 0.25)
GOALS = Goals(0.5, 0.1)
SAN, PRINTED, LINES = (
    SanPoints(1.0, 1e-3, GOALS),
    PrintedSanPoints(1.0, 1e-3, GOALS),
    SanThresholds(1.0, 1e-3, GOALS),
)
COARSE = PrintedSanThresholds(4.0, 1e-3, Goals(1.0, 0.1))
MANY = Multiset(6, np.arange(64, dtype=np.uint64), np.where(np.arange(64) == 9, 8 * 10**6, 300_000))


def laplace(epsilon: Fraction, times: int) -> list[Ask]:
    return [("discrete_laplace", epsilon)] * times


def medians(epsilon: Fraction, levels: int) -> list[Ask]:
    """The cuts of a tree: the choices of a level share it, by scores in half-records."""
    return [("choose", ExponentialChoice(float(epsilon) / levels, 2))] * ((1 << levels) - 1)


def normal(variance: int, count: int) -> list[Ask]:
    return [("rounded_normals", variance, count)]


EXACT: list[tuple[Any, Any, list[Ask]]] = [
    (NoCounts(), COLUMNS, []),
    (DiscreteGaussianCounts(3, 0.25), COLUMNS,
    [("signed", _sizes(Fraction(3, 1) / (2 * Fraction(1, 4))), 3)]),
    (GaussianCounts(3, 1.0, 1e-3), COLUMNS, normal(least_variance(3, LOSS), 3)),
    (BoundedRange(DependentPair(((0, 1), (1, 2)), (0, 1), 1.0)), ROWS,
    [("choose", ExponentialChoice(1.0, 2))]),
    (GaussianMarginal(3, 5, 7), ROWS, normal(7, 4)),
    (CharacterSums(((0,), (0, 1), (2,)), ATTO // 8), ROWS, normal(2 * 3 * 8, 3)),
    (PlainGaussian(WORKLOAD, 1.0, 1e-3), ROWS, normal(least_variance(2 * 3, LOSS), 12)),
    (PairGaussian(3, 1.0, 1e-3), SignTable.of(np.array([[1, 0, 1], [0, 0, 1]])),
    normal(least_variance(4 * 2, LOSS), 3)),
    (CountTree(4, 2.0, 4), POINTS,
    [("discrete_laplaces", Fraction(1, 2), cells) for cells in (4, 16)]),
    (SmoothMedian(CAUCHY), POINTS, [("discrete_cauchy", CAUCHY.scale(Median(POINTS)))]),
    (SmoothTriangles(CAUCHY), GRAPH, [("discrete_cauchy", CAUCHY.scale(Triangles(GRAPH)))]),
    (QuantilePartition(Medians(1.0, 2), 4), POINTS, medians(Fraction(1), 2)),
    (RankRectangles(4, 2, 0.1, 1.0, 1e-3), FLAT, [("choose", SparseChoice(0.25, 2.5e-4, 5))] * 4),
    (Mwem(WORKLOAD, PureRounds(2, 0.25, 0.5)), ROWS,
    [("choose", ExponentialChoice(0.25, 2)), ("discrete_laplaces", Fraction(1, 4), 4)] * 2),
    (LaplaceAnswers(QUERIES, 1.0, 1e-3), TALLIED,
    [("discrete_laplaces", Fraction(optimal_part(LOSS, MOVED).nano, NANO), QUERIES.k)]),
    (GaussianAnswers(QUERIES, 1.0, 1e-3), TALLIED, normal(least_variance(MOVED, LOSS), QUERIES.k)),
    (PREFIX, POINTS, normal(least_variance(PREFIX.square, LOSS), 16)),
    (FOURIER, ROWS, [ask for kind in np.unique(SPREAD[1:]).tolist() for ask in normal(kind,
    int((kind == SPREAD).sum()))]),
    (MONOMIALS, ROWS, [ask for variance, size in zip(MONOMIALS.variances, (3, 3), strict=True)
    for ask in normal(variance, size)]),
    (SpanningTree(3, 1.0, 1e-3), ROWS, [
        *normal(math.ceil(Fraction(6 * ATTO, THIRD)), 3),
        *[("choose", ExponentialChoice(math.isqrt(8 * THIRD // 2) / NANO, 2))] * 2,
        *normal(math.ceil(Fraction(4 * ATTO, THIRD)), 2),
    ]),
]  # fmt: skip
DIFFERENT: list[tuple[Any, Any, set[Ask]]] = [
    (SPLIT, FLAT, {*medians(Fraction(1, 2), 2), *laplace(Fraction(1, 8), 1)}),
    (SAN, POINTS, {("choose", SparseChoice(SAN.part.epsilon, 125e-6, 1)),
    *laplace(Fraction(SAN.part.nano, NANO), 1)}),
    (LINES, MANY, {
        ("choose", ExponentialChoice(LINES.part.epsilon)),
        *[("choose", LINES.choice(growth)) for growth in (1, 2)],
        *laplace(Fraction(LINES.part.nano, NANO), 1),
    }),
    (COARSE, MANY, {
        ("choose", ExponentialChoice(COARSE.length(6).epsilon)),
        *[("choose", COARSE.choice(growth), MANY.size) for growth in (1, 2)],
        *laplace(Fraction(COARSE.part.nano, NANO), 1),
    }),
    (PRINTED, MANY, {("choose", PRINTED.choice(1), MANY.size), *laplace(Fraction(PRINTED.part.nano,
    NANO), 1)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "database", "asks"),
    [pytest.param(*each, id=type(each[0]).__name__) for each in EXACT],
)
def test_what_is_drawn(mechanism: Any, database: Any, asks: list[Ask]) -> None:
    assert asks_of(lambda draws: mechanism.release(database, draws)) == asks


@wrong_twin(
    "local_dp.curator.thresholds.rectangles:PartitionRectangles._side",
    "self.epsilon / 2",
    "self.epsilon * 101 / 200",
    "the same, in a mechanism whose law is not listed",
    at="PartitionRectangles",
)
@pytest.mark.parametrize(
    ("mechanism", "database", "asks"),
    [pytest.param(*each, id=type(each[0]).__name__) for each in DIFFERENT],
)
def test_what_is_drawn_as_often_as_the_data_ask(
    mechanism: Any, database: Any, asks: set[Ask]
) -> None:
    assert set(asks_of(lambda draws: mechanism.release(database, draws))) == asks


ENUMERATED = ("Boosting", "CountingMwem", "RobustRelease")
"""Mechanisms whose laws or transcripts their own tests enumerate."""


WITHOUT_LAW = [mechanism for mechanism, *_ in (*EXACT, *DIFFERENT)]


def test_every_mechanism_is_tried() -> None:
    """It has a case, or its draws are listed here, or its own tests enumerate it."""
    others = [type(mechanism).__name__ for mechanism in WITHOUT_LAW]
    assert sorted([*(KINDS & {*IDS}), *others, *ENUMERATED]) == sorted(KINDS)


CHECKED = {
    (type(mechanism).__name__, field): mechanism
    for mechanism in (*(case.mechanism for case in CASES), *WITHOUT_LAW)
    for field in ("epsilon", "delta")
    if field in vars(mechanism)
}


@pytest.mark.parametrize(("kind", "field"), CHECKED)
def test_what_is_no_loss_is_refused(kind: str, field: str) -> None:
    """In one line, by every mechanism that is made for an epsilon or a delta."""
    for wrong in (0.0, -1.0, math.nan, math.inf, *([1.0] if field == "delta" else [])):
        with pytest.raises(InputError, match=f"{field} is") as error:
            assert replace(CHECKED[kind, field], **{field: wrong}).loss
        assert "\n" not in str(error.value)
