"""The theorems' "preserves adaptivity" clauses, as types: mypy checks every line of this file, and the tests also run it.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever does.
"""

from typing import assert_type

from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.encoded import Encoding
from local_dp.tallies import Tally
from local_dp.theorems.boolean_from_real import boolean_from_real
from local_dp.theorems.local_from_sq import local_from_sq, one_random_query, split_budget, tight_clients
from local_dp.theorems.on_table import among_complete, on_table
from local_dp.theorems.sq_from_local import sq_from_local
from local_dp.theorems.sq_from_local_by_table import sq_from_local_by_table

LNI = Nonadaptive[LocalQuery, Tally, str]
LI = Adaptive[LocalQuery, Tally, str]
NASQ = Nonadaptive[StatisticalQuery, float, str]
SQ = Adaptive[StatisticalQuery, float, str]


def lni_equals_nasq(lni: LNI, nasq: NASQ) -> tuple[NASQ, LNI, NASQ]:
    """Non-interactive local and non-adaptive SQ algorithms become each other, whichever simulation is used."""
    assert_type(local_from_sq(nasq, 1.0, tight_clients(1.0, 0.05)), Nonadaptive[LocalQuery, Tally, str])
    assert_type(sq_from_local(lni, 0.1, 8, 1), Nonadaptive[StatisticalQuery, float, str])
    assert_type(sq_from_local_by_table(lni, 0.1, 1), Nonadaptive[StatisticalQuery, float, str])
    assert_type(boolean_from_real(nasq), Nonadaptive[StatisticalQuery, float, str])
    assert_type(one_random_query(nasq, 1.0, 100, 1), Nonadaptive[LocalQuery, Tally, str])
    assert_type(split_budget(nasq, 1.0, 100, 2), Nonadaptive[LocalQuery, Tally, str])  # a client answers several things, all fixed beforehand
    return sq_from_local(lni, 0.1, 8, 1), local_from_sq(nasq, 1.0, tight_clients(1.0, 0.05)), boolean_from_real(nasq)


def li_equals_sq(li: LI, sq: SQ) -> tuple[SQ, LI, SQ]:
    """Interactive local and adaptive SQ algorithms become each other."""
    assert_type(local_from_sq(sq, 1.0, tight_clients(1.0, 0.05)), Adaptive[LocalQuery, Tally, str])
    assert_type(sq_from_local(li, 0.1, 8, 1), Adaptive[StatisticalQuery, float, str])
    assert_type(boolean_from_real(sq), Adaptive[StatisticalQuery, float, str])
    assert_type(split_budget(sq, 1.0, 100, 2), Adaptive[LocalQuery, Tally, str])
    return sq_from_local(li, 0.1, 8, 1), local_from_sq(sq, 1.0, tight_clients(1.0, 0.05)), boolean_from_real(sq)


def on_a_table(nasq: NASQ, sq: SQ, encoding: Encoding) -> None:
    """Encoding a table, and leaving out its incomplete rows, preserve adaptivity."""
    assert_type(on_table(nasq, encoding), Nonadaptive[StatisticalQuery, float, str])
    assert_type(among_complete(nasq, encoding), Nonadaptive[StatisticalQuery, float, str])
    assert_type(on_table(sq, encoding), Adaptive[StatisticalQuery, float, str])
    assert_type(among_complete(sq, encoding), Adaptive[StatisticalQuery, float, str])


def not_claimed(li: LI, sq: SQ) -> tuple[object, ...]:
    """Adaptivity is never lost on the way: an adaptive algorithm does not come back non-adaptive."""
    local: LNI = local_from_sq(sq, 1.0, tight_clients(1.0, 0.05))  # type: ignore[assignment]
    statistical: NASQ = sq_from_local(li, 0.1, 8, 1)  # type: ignore[assignment]
    boolean: NASQ = boolean_from_real(sq)  # type: ignore[assignment]
    return local, statistical, boolean
