"""Which model and which privacy an algorithm of many answers has, as types: checked by mypy, not run.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever does.
"""

from typing import assert_type

from local_dp.arrays import Counts
from local_dp.curator.account import TrustedOracle
from local_dp.curator.marginals.base import BinaryTable, Synthetic
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.query_release.counting import SmallDatabase
from local_dp.curator.query_release.dual_query import DualQuery, SampledQueries
from local_dp.curator.query_release.mwem import Answer, Mwem
from local_dp.curator.query_release.pmw import Answered, Asks, MultiplicativeWeights
from local_dp.interaction import Adaptive, Nonadaptive, Oracle, run
from local_dp.loss import Concentrated, Pure
from local_dp.oracles.local.population import PopulationOracle


def mwem_is_interactive(pure: Mwem[Pure], concentrated: Mwem[Concentrated], tables: TrustedOracle[BinaryTable]) -> None:
    """MWEM is CI by its type, and pure or concentrated by its type, too: one algorithm, whose rounds say what they cost."""
    assert_type(pure.algorithm(100), Adaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic])
    assert_type(concentrated.algorithm(100), Adaptive[Mechanism[BinaryTable, Answer, Concentrated], Answer, Synthetic])
    assert_type(run(pure.algorithm(100), tables), Synthetic)
    assert_type(run(concentrated.algorithm(100), tables), Synthetic)
    assert_type(pure.loss, Pure)
    assert_type(concentrated.loss, Concentrated)


def so_are_weights_and_dual_weights(weights: MultiplicativeWeights, dual: DualQuery, small: SmallDatabase, tables: TrustedOracle[BinaryTable]) -> None:
    """PMW asks tests and counts, DualQuery samples of queries; a small database is one pure mechanism."""
    assert_type(weights.algorithm(), Adaptive[Asks, int | None, Answered])
    assert_type(dual.algorithm(100, 0), Adaptive[SampledQueries, tuple[int, ...], Synthetic])
    assert_type(run(dual.algorithm(100, 0), tables), Synthetic)
    assert_type(small.loss, Pure)


def not_claimed(
    pure: Mwem[Pure], concentrated: Mwem[Concentrated], weights: MultiplicativeWeights, clients: PopulationOracle, counts: TrustedOracle[Counts]
) -> tuple[object, ...]:
    """Clients answer no mechanisms, counts are no table, rounds do not vanish, and rho is no epsilon."""
    by_clients: Oracle[Mechanism[BinaryTable, Answer, Pure], Answer] = clients  # type: ignore[assignment]
    tests_by_clients: Oracle[Asks, int | None] = clients  # type: ignore[assignment]
    of_counts: Oracle[Mechanism[BinaryTable, Answer, Pure], Answer] = counts  # type: ignore[assignment]
    at_once: Nonadaptive[Mechanism[BinaryTable, Answer, Pure], Answer, Synthetic] = pure.algorithm(100)  # type: ignore[assignment]
    all_at_once: Nonadaptive[Asks, int | None, Answered] = weights.algorithm()  # type: ignore[assignment]
    unpaid: Mwem[Pure] = concentrated  # type: ignore[assignment]
    return by_clients, tests_by_clients, of_counts, at_once, all_at_once, unpaid
