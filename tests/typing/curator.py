"""The curator's models, losses, query releases and oracle-efficient releases, as types: checked by
mypy, not run.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever
does.
"""

from typing import assert_type

from local_dp.accounting.losses import Lattice
from local_dp.arrays import Counts
from local_dp.curator.account import TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.curator.counts import (
    ColumnCounts,
    ComposedLaplaceCounts,
    CountsMechanism,
    DiscreteGaussianCounts,
    GaussianCounts,
    KNormCounts,
    LaplaceCounts,
    NoisyCounts,
)
from local_dp.curator.intervals import CountTree, IntervalCounts, Level, PrefixFactorization
from local_dp.curator.marginals.base import BinaryTable, Synthetic
from local_dp.curator.marginals.baselines import NoisySums, Part, SpanningTree, TreeTable
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.oracle_efficient.branching import BranchAndBound, FullSearch
from local_dp.curator.oracle_efficient.perturbed import Attempt, Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import (
    Certifying,
    Conjunctions,
    Exhaustive,
    Parities,
    Perfect,
    Plain,
)
from local_dp.curator.parity.learner import Examples, ParityLearner
from local_dp.curator.points.learner import (
    LabelPrivateLearner,
    PointLearner,
    ProperPointLearner,
    Thresholds,
)
from local_dp.curator.query_release.counting import SmallDatabase
from local_dp.curator.query_release.pmw import Answered, Asks, MultiplicativeWeights
from local_dp.curator.query_release.synthetic import Answer, DualQuery, Mwem, SampledQueries
from local_dp.curator.reductions.learners import (
    Amplified,
    ByLabel,
    LabelSanitizer,
    MediansByLabel,
    Processed,
    averaged,
    best_threshold,
    learner_of_thresholds,
)
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, Steps
from local_dp.curator.sanitizers.point_counts import (
    KPointAnswers,
    KPointSanitizer,
    PerCellHistogram,
    ThresholdedHistogram,
)
from local_dp.curator.sanitizers.san_points import PrintedSanPoints, SanPoints
from local_dp.curator.sanitizers.san_thresholds import PrintedSanThresholds, SanThresholds
from local_dp.curator.selection.exponential import ExponentialChoice, Labelled, OccamLearner
from local_dp.curator.selection.sparse import Goals
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import LearnThresholds, PureThresholds, ThresholdLearner
from local_dp.curator.thresholds.rectangles import RankRectangles
from local_dp.interaction import Adaptive, Nonadaptive, Oracle, run
from local_dp.loss import Approximate, Concentrated, Loss, Pure
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, Statistical, StatisticalRounds
from local_dp.populations.finite import Population
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.curated import curated_from_sq

CNI = Nonadaptive[NoisySum, int, str]
CI = Adaptive[NoisySum, int, str]
NASQ = Statistical[str]
SQ = StatisticalRounds[str]


def sq_is_curated(nasq: NASQ, sq: SQ) -> tuple[CNI, CI]:
    """A non-adaptive SQ algorithm becomes a curator's non-interactive one, an adaptive one an
    interactive one."""
    assert_type(curated_from_sq(nasq, 1.0, 100), Nonadaptive[NoisySum, int, str])
    assert_type(curated_from_sq(sq, 1.0, 100), Adaptive[NoisySum, int, str])
    return curated_from_sq(nasq, 1.0, 100), curated_from_sq(sq, 1.0, 100)


def run_by_the_curator(
    cni: CNI, ci: CI, records: TrustedOracle[Records], population: TrustedOracle[Population]
) -> None:
    """One interpreter runs both, on records in memory or handed out in chunks."""
    assert_type(run(cni, records), str)
    assert_type(run(ci, population), str)


def losses_add(pure: Pure, approximate: Approximate, either: Loss) -> None:
    """Pure and pure is pure; anything with an approximate part is approximate."""
    assert_type(pure + pure, Pure)
    assert_type(pure + approximate, Approximate)
    assert_type(approximate + pure, Approximate)
    assert_type(approximate + approximate, Approximate)


def other_losses_add(
    pure: Pure, approximate: Approximate, concentrated: Concentrated, lattice: Lattice
) -> tuple[object, ...]:
    """Rhos take pure losses in, loss laws take all that has a worst one; what has a delta is never
    concentrated."""
    assert_type(concentrated + concentrated, Concentrated)
    assert_type(pure + concentrated, Concentrated)
    assert_type(concentrated + pure, Concentrated)
    assert_type(lattice + lattice, Lattice)
    assert_type(pure + lattice, Lattice)
    assert_type(approximate + lattice, Lattice)
    hidden: Pure = pure + lattice  # type: ignore[assignment]
    return hidden, approximate + concentrated, concentrated + lattice  # type: ignore[operator]


def a_curator_answers_what_is_concentrated(
    oracle: TrustedOracle[int], asked: Nonadaptive[Mechanism[int, int, Concentrated], int, str]
) -> object:
    """A mechanism with a rho is asked as any other, and is no approximate one."""
    assert_type(run(asked, oracle), str)
    approximate: Nonadaptive[Mechanism[int, int, Loss], int, str] = asked  # type: ignore[assignment]
    return approximate


def counts_show_their_loss(
    asked: Nonadaptive[KNormCounts, NoisyCounts, str], oracle: TrustedOracle[ColumnCounts]
) -> CountsMechanism[Pure]:
    """Noise in the shape of the cube is pure, normal noise not; discrete Gaussian noise is
    concentrated. Asked at once, they are CNI."""
    assert_type(run(asked, oracle), str)
    assert_type(LaplaceCounts(2, 1.0).loss, Pure)
    assert_type(
        ComposedLaplaceCounts(2, 1.0, 1e-6).loss + GaussianCounts(2, 1.0, 1e-6).loss, Approximate
    )
    assert_type(DiscreteGaussianCounts(2, 0.1).loss, Concentrated)
    unpaid: CountsMechanism[Pure] = GaussianCounts(2, 1.0, 1e-6)  # type: ignore[assignment]
    return KNormCounts(2, 1.0) or unpaid


def a_mechanism_shows_its_loss(
    parity: ParityLearner, somewhat: Mechanism[Labelled, int, Approximate]
) -> Mechanism[Labelled, int, Pure]:
    """Which privacy a mechanism has is read off its type."""
    assert_type(parity.loss, Pure)
    assert_type(somewhat.loss, Approximate)
    assert_type(OccamLearner(Parities(2), 1.0).loss + parity.loss, Pure)
    assert_type(OccamLearner(Parities(2), 1.0).choice, ExponentialChoice)
    assert_type(somewhat.loss + parity.loss, Approximate)
    return OccamLearner(Parities(2), 1.0)


def reductions_carry_the_loss(
    pure: PerCellHistogram, thresholded: ThresholdedHistogram
) -> tuple[Mechanism[Multiset, KPointAnswers, Pure], PointLearner]:
    """Sums of k counts are as private as the counts; points cost a delta or a domain, and labels
    alone neither."""
    assert_type(KPointSanitizer(2, pure).loss, Pure)
    assert_type(KPointSanitizer(2, thresholded).loss, Approximate)
    assert_type(ProperPointLearner(1.0).loss, Pure)
    assert_type(LabelPrivateLearner(Thresholds(), 1.0).loss, Pure)
    return KPointSanitizer(2, pure), PointLearner(1.0, 1e-6)


def learners_of_thresholds(
    sparse: DyadicThresholds, searched: LearnThresholds, rectangles: RankRectangles
) -> tuple[ThresholdLearner[Pure], ThresholdLearner[Approximate]]:
    """The pure one by its type, those that pay with a delta by theirs."""
    assert_type(PureThresholds(1.0).loss, Pure)
    assert_type(sparse.loss, Approximate)
    assert_type(searched.loss, Approximate)
    assert_type(rectangles.loss + PureThresholds(1.0).loss, Approximate)
    unpaid: ThresholdLearner[Pure] = sparse  # type: ignore[assignment]
    return PureThresholds(1.0) or unpaid, searched


def sanitizers_show_their_loss(goals: Goals) -> None:
    """Medians are pure, on dyadic candidates approximate; what chooses among what occurs in the
    data has a delta."""
    assert_type(Medians(1.0, 4).loss, Pure)
    assert_type(MediansByLabel(1.0, 4).loss, Pure)
    assert_type(SparseMedians(1.0, 4).loss, Approximate)
    assert_type(
        SanPoints(1.0, 1e-6, goals).loss + PrintedSanPoints(1.0, 1e-6, goals).loss, Approximate
    )
    assert_type(
        SanThresholds(1.0, 1e-6, goals).loss + PrintedSanThresholds(1.0, 1e-6, goals).loss,
        Approximate,
    )


def sanitizing_carries_the_loss(
    pure: Mechanism[Multiset, Steps, Pure], somewhat: Mechanism[Multiset, Steps, Approximate]
) -> None:
    """Pure to pure, approximate to approximate, in each of Lemmas 5.1, 5.3 and 5.4, and in Theorem
    5.5."""
    assert_type(Amplified(pure, 10, averaged), Amplified[Steps, Pure])
    assert_type(Amplified(somewhat, 10, averaged), Amplified[Steps, Approximate])
    assert_type(LabelSanitizer(pure, 10, 1.0), LabelSanitizer[Steps, Pure])
    assert_type(LabelSanitizer(somewhat, 10, 1.0), LabelSanitizer[Steps, Approximate])
    assert_type(
        Processed(MediansByLabel(1.0, 3), best_threshold),
        Processed[LabelledMultiset, ByLabel[Steps], int, Pure],
    )
    assert_type(learner_of_thresholds(pure, 10, 1.0).loss, Pure)
    assert_type(learner_of_thresholds(somewhat, 10, 1.0).loss, Approximate)


def no_delta_is_lost(somewhat: Mechanism[Multiset, Steps, Approximate]) -> tuple[object, ...]:
    """A learner from an approximate sanitizer is not pure."""
    learner: Mechanism[LabelledMultiset, int, Pure] = learner_of_thresholds(somewhat, 10, 1.0)  # type: ignore[arg-type]
    larger: Mechanism[Multiset, Steps, Pure] = Amplified(somewhat, 10, averaged)  # type: ignore[arg-type]
    return learner, larger


def trees_are_non_interactive(
    tree: CountTree,
    roots: PrefixFactorization,
    points: TrustedOracle[Multiset],
    clients: PopulationOracle,
) -> object:
    """A tree of counts is CNI by its type and pure, the factorization pays with a delta; clients
    cannot be asked for a level."""
    assert_type(tree.algorithm(100), Nonadaptive[Level, NoisyCounts, IntervalCounts])
    assert_type(run(tree.algorithm(100), points), IntervalCounts)
    assert_type(tree.loss, Pure)
    assert_type(roots.loss, Approximate)
    by_clients: Oracle[Level, NoisyCounts] = clients  # type: ignore[assignment]
    return by_clients


def a_spanning_tree_is_interactive(
    tree: SpanningTree, tables: TrustedOracle[BinaryTable]
) -> object:
    """MST is CI by its type, since a pair is chosen after those before it; it pays with a delta."""
    assert_type(tree.algorithm(), Adaptive[Part, NoisySums | int, TreeTable])
    assert_type(run(tree.algorithm(), tables), TreeTable)
    assert_type(tree.loss, Approximate)
    at_once: Nonadaptive[Part, NoisySums | int, TreeTable] = tree.algorithm()  # type: ignore[assignment]
    return at_once


def not_claimed(
    sq: SQ,
    clients: PopulationOracle,
    exact: ExactOracle,
    examples: TrustedOracle[Examples],
    somewhat: Mechanism[Labelled, int, Approximate],
) -> tuple[object, ...]:
    """Clients and expectations do not answer mechanisms, a curator does not answer clients'
    queries; adaptivity and deltas do not vanish."""
    by_clients: Oracle[NoisySum, int] = clients  # type: ignore[assignment]
    by_expectations: Oracle[NoisySum, int] = exact  # type: ignore[assignment]
    by_a_curator: Oracle[LocalQuery, Tally] = examples  # type: ignore[assignment]
    on_other_records: Oracle[NoisySum, int] = examples  # type: ignore[assignment]
    at_once: CNI = curated_from_sq(sq, 1.0, 100)  # type: ignore[assignment]
    pure: Mechanism[Labelled, int, Pure] = somewhat  # type: ignore[assignment]
    return by_clients, by_expectations, by_a_curator, on_other_records, at_once, pure


def mwem_is_interactive(
    pure: Mwem[Pure], concentrated: Mwem[Concentrated], tables: TrustedOracle[BinaryTable]
) -> None:
    """MWEM is CI by its type, and pure or concentrated by its type, too: one algorithm, whose
    rounds say what they cost."""
    assert_type(
        pure.algorithm(100), Adaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic]
    )
    assert_type(
        concentrated.algorithm(100),
        Adaptive[Mechanism[BinaryTable, Answer, Concentrated], Answer, Synthetic],
    )
    assert_type(run(pure.algorithm(100), tables), Synthetic)
    assert_type(run(concentrated.algorithm(100), tables), Synthetic)
    assert_type(pure.loss, Pure)
    assert_type(concentrated.loss, Concentrated)


def so_are_weights_and_dual_weights(
    weights: MultiplicativeWeights,
    dual: DualQuery,
    small: SmallDatabase,
    tables: TrustedOracle[BinaryTable],
) -> None:
    """PMW asks tests and counts, DualQuery samples of queries; a small database is one pure
    mechanism."""
    assert_type(weights.algorithm(), Adaptive[Asks, int | None, Answered])
    assert_type(dual.algorithm(100, 0), Adaptive[SampledQueries, tuple[int, ...], Synthetic])
    assert_type(run(dual.algorithm(100, 0), tables), Synthetic)
    assert_type(small.loss, Pure)


def not_claimed_of_many_answers(
    pure: Mwem[Pure],
    concentrated: Mwem[Concentrated],
    weights: MultiplicativeWeights,
    clients: PopulationOracle,
    counts: TrustedOracle[Counts],
) -> tuple[object, ...]:
    """Clients answer no mechanisms, counts are no table, rounds do not vanish, and rho is no
    epsilon."""
    by_clients: Oracle[Mechanism[BinaryTable, Answer, Pure], Answer] = clients  # type: ignore[assignment]
    tests_by_clients: Oracle[Asks, int | None] = clients  # type: ignore[assignment]
    of_counts: Oracle[Mechanism[BinaryTable, Answer, Pure], Answer] = counts  # type: ignore[assignment]
    at_once: Nonadaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic] = pure.algorithm(
        100
    )  # type: ignore[assignment]
    all_at_once: Nonadaptive[Asks, int | None, Answered] = weights.algorithm()  # type: ignore[assignment]
    unpaid: Mwem[Pure] = concentrated  # type: ignore[assignment]
    return by_clients, tests_by_clients, of_counts, at_once, all_at_once, unpaid


def a_perfect_oracle_certifies(exhaustive: Exhaustive) -> Certifying:
    """An oracle that never fails may be used where failures are expected."""
    perfect: Perfect = exhaustive
    return perfect


def a_perfect_oracle_is_pure(
    queries: Conjunctions, searched: FullSearch
) -> Mechanism[Labelled, int, Pure]:
    """RSPM."""
    return PerturbedMinimum(Perturbation(queries, 1.0), searched)


def a_failing_oracle_is_approximate(
    queries: Conjunctions, branching: BranchAndBound
) -> Mechanism[Labelled, int | None, Approximate]:
    """PRSMA: the price of failures is a delta, and an answer that may be withheld."""
    release = RobustRelease(Attempt(Perturbation(queries, 0.01), branching), 100, Terms(0.25, 0.02))
    assert_type(release.loss, Approximate)
    return release


def not_claimed_of_minima(
    queries: Conjunctions, branching: BranchAndBound, plain: Plain
) -> tuple[object, ...]:
    """Failures and claims are not private, and an attempt is no mechanism."""
    failing = PerturbedMinimum(Perturbation(queries, 1.0), branching)  # type: ignore[arg-type]
    claiming = PerturbedMinimum(Perturbation(queries, 1.0), plain)  # type: ignore[arg-type]
    trusted: Certifying = plain  # type: ignore[assignment]
    alone: Mechanism[Labelled, int, Pure] = Attempt(Perturbation(queries, 1.0), branching)  # type: ignore[assignment]
    return failing, claiming, trusted, alone
