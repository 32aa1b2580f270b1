"""The curator's models, losses and releases, as types: checked by mypy, not run.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever
does.
"""

from typing import assert_type

from local_dp.accounting.losses import Lattice
from local_dp.arrays import Counts
from local_dp.curator.account import TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.curator.counts import (
    CountsMechanism,
    DiscreteGaussianCounts,
    GaussianCounts,
    KNormCounts,
    NoisyCounts,
)
from local_dp.curator.intervals import CountTree, IntervalCounts, Level
from local_dp.curator.marginals.base import BinaryTable, Synthetic
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.oracle_efficient.branching import BranchAndBound, FullSearch
from local_dp.curator.oracle_efficient.perturbed import Attempt, Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import Certifying, Conjunctions, Parities, Plain
from local_dp.curator.parity.learner import Examples
from local_dp.curator.query_release.synthetic import Answer, Mwem
from local_dp.curator.reductions.learners import (
    Amplified,
    LabelSanitizer,
    averaged,
    learner_of_thresholds,
)
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, Steps
from local_dp.curator.selection.exponential import Labelled, OccamLearner
from local_dp.interaction import Adaptive, Nonadaptive, Oracle, run
from local_dp.loss import Approximate, Concentrated, Loss, Pure
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, Statistical, StatisticalRounds
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.curated import curated_from_sq

CNI = Nonadaptive[NoisySum, int, str]


def sq_is_curated(
    nasq: Statistical[str], sq: StatisticalRounds[str], records: TrustedOracle[Records]
) -> CNI:
    """A non-adaptive SQ algorithm becomes a curator's non-interactive one, an adaptive one an
    interactive one; one interpreter runs both."""
    assert_type(curated_from_sq(nasq, 1.0, 100), Nonadaptive[NoisySum, int, str])
    assert_type(curated_from_sq(sq, 1.0, 100), Adaptive[NoisySum, int, str])
    assert_type(run(curated_from_sq(sq, 1.0, 100), records), str)
    at_once: CNI = curated_from_sq(sq, 1.0, 100)  # type: ignore[assignment]
    return at_once


def losses_add(
    pure: Pure, approximate: Approximate, loss: Concentrated, lattice: Lattice
) -> tuple[object, ...]:
    """Pure and pure is pure, anything with an approximate part is approximate; rhos take pure
    losses in, loss laws take all that has a worst one."""
    assert_type(pure + pure, Pure)
    assert_type(pure + approximate, Approximate)
    assert_type(approximate + pure, Approximate)
    assert_type(pure + loss, Concentrated)
    assert_type(approximate + lattice, Lattice)
    cover: Pure = pure + lattice  # type: ignore[assignment]
    return cover, approximate + loss, loss + lattice  # type: ignore[operator]


def mechanisms_show_their_loss(
    question: Nonadaptive[KNormCounts, NoisyCounts, str],
    somewhat: Mechanism[Labelled, int, Approximate],
) -> tuple[object, ...]:
    """Which privacy a mechanism has is read off its type."""
    assert_type(question.queries[0].loss + OccamLearner(Parities(2), 1.0).loss, Pure)
    assert_type(DiscreteGaussianCounts(2, 0.1).loss, Concentrated)
    assert_type(somewhat.loss + Medians(1.0, 4).loss, Approximate)
    assert_type(SparseMedians(1.0, 4).loss, Approximate)
    unpaid: CountsMechanism[Pure] = GaussianCounts(2, 1.0, 1e-6)  # type: ignore[assignment]
    cover: Mechanism[Labelled, int, Pure] = somewhat  # type: ignore[assignment]
    return unpaid, cover


def sanitizing_carries_the_loss(
    pure: Mechanism[Multiset, Steps, Pure], somewhat: Mechanism[Multiset, Steps, Approximate]
) -> tuple[object, ...]:
    """Pure to pure, approximate to approximate, in each of Lemmas 5.1 and 5.3, and in Theorem
    5.5."""
    assert_type(Amplified(pure, 10, averaged), Amplified[Steps, Pure])
    assert_type(LabelSanitizer(somewhat, 10, 1.0), LabelSanitizer[Steps, Approximate])
    assert_type(learner_of_thresholds(pure, 10, 1.0).loss, Pure)
    assert_type(learner_of_thresholds(somewhat, 10, 1.0).loss, Approximate)
    learner: Mechanism[LabelledMultiset, int, Pure] = learner_of_thresholds(somewhat, 10, 1.0)  # type: ignore[arg-type]
    larger: Mechanism[Multiset, Steps, Pure] = Amplified(somewhat, 10, averaged)  # type: ignore[arg-type]
    return learner, larger


def rounds_show_in_the_type(
    tree: CountTree,
    pure: Mwem[Pure],
    loss: Mwem[Concentrated],
    points: TrustedOracle[Multiset],
) -> tuple[object, ...]:
    """A tree of counts is CNI by its type; MWEM is CI, and pure or concentrated: one algorithm,
    whose rounds say what they cost."""
    assert_type(tree.algorithm(100), Nonadaptive[Level, NoisyCounts, IntervalCounts])
    assert_type(run(tree.algorithm(100), points), IntervalCounts)
    assert_type(
        pure.algorithm(100), Adaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic]
    )
    assert_type(loss.loss, Concentrated)
    at_once: Nonadaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic] = pure.algorithm(
        100
    )  # type: ignore[assignment]
    unpaid: Mwem[Pure] = loss  # type: ignore[assignment]
    return at_once, unpaid


def not_claimed(
    clients: PopulationOracle,
    exact: ExactOracle,
    examples: TrustedOracle[Examples],
    counts: TrustedOracle[Counts],
) -> tuple[object, ...]:
    """Clients and expectations do not answer mechanisms, a curator does not answer clients'
    queries, nor those of other records."""
    by_clients: Oracle[NoisySum, int] = clients  # type: ignore[assignment]
    by_expectations: Oracle[NoisySum, int] = exact  # type: ignore[assignment]
    by_a_curator: Oracle[LocalQuery, Tally] = examples  # type: ignore[assignment]
    on_other_records: Oracle[NoisySum, int] = examples  # type: ignore[assignment]
    of_counts: Oracle[Mechanism[BinaryTable, Answer, Pure], Answer] = counts  # type: ignore[assignment]
    return by_clients, by_expectations, by_a_curator, on_other_records, of_counts


def minima(
    queries: Conjunctions, search: FullSearch, branching: BranchAndBound, plain: Plain
) -> tuple[object, ...]:
    """RSPM with a perfect oracle is pure; failures cost PRSMA a delta, and are not private alone;
    an attempt is no mechanism."""
    whole: Mechanism[Labelled, int, Loss] = PerturbedMinimum(Perturbation(queries, 1.0), search)
    assert_type(
        RobustRelease(Attempt(Perturbation(queries, 0.01), branching), 100, Terms(0.25, 0.02)).loss,
        Approximate,
    )
    failing = PerturbedMinimum(Perturbation(queries, 1.0), branching)  # type: ignore[arg-type]
    claiming = PerturbedMinimum(Perturbation(queries, 1.0), plain)  # type: ignore[arg-type]
    trusted: Certifying = plain  # type: ignore[assignment]
    alone: Mechanism[Labelled, int, Pure] = Attempt(Perturbation(queries, 1.0), branching)  # type: ignore[assignment]
    return whole, failing, claiming, trusted, alone
