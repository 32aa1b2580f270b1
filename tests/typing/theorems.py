"""The theorems' "preserves adaptivity" clauses, and the learners' models, as types: mypy checks
every line, and tests also run the clauses.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever
does.
"""

from typing import assert_type

from local_dp.learners.halfspaces import Halfspace, Perceptron
from local_dp.learners.moments import Centres, KMeans, LowDegree, Polynomial
from local_dp.learners.rules import DecisionLists, RuleList, Stump, Stumps
from local_dp.oracles.local.asked import Local, LocalRounds
from local_dp.oracles.statistical.oracles import Statistical, StatisticalRounds
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.queries.encoded import Encoding
from local_dp.theorems.from_sq import (
    among_complete,
    boolean_from_real,
    enough_clients,
    local_from_sq,
    on_table,
    one_random_query,
    split_budget,
    tight_clients,
)
from local_dp.theorems.sq_from_local import sq_from_local

LNI = Local[str]
LI = LocalRounds[str]
NASQ = Statistical[str]
SQ = StatisticalRounds[str]


def lni_equals_nasq(lni: LNI, nasq: NASQ) -> tuple[NASQ, LNI, NASQ]:
    """Non-interactive local and non-adaptive SQ algorithms become each other, by every
    simulation."""
    assert_type(local_from_sq(nasq, 1.0, tight_clients(1.0, 0.05)), Local[str])
    assert_type(sq_from_local(lni, 0.1, 8, 1), Statistical[str])
    assert_type(boolean_from_real(nasq), Statistical[str])
    assert_type(one_random_query(nasq, 1.0, 100, 1), Local[str])
    # a client answers several things, all fixed beforehand
    assert_type(split_budget(nasq, 1.0, 100, 2), Local[str])
    return (
        sq_from_local(lni, 0.1, 8, 1),
        local_from_sq(nasq, 1.0, tight_clients(1.0, 0.05)),
        boolean_from_real(nasq),
    )


def li_equals_sq(li: LI, sq: SQ) -> tuple[SQ, LI, SQ]:
    """Interactive local and adaptive SQ algorithms become each other."""
    assert_type(local_from_sq(sq, 1.0, tight_clients(1.0, 0.05)), LocalRounds[str])
    assert_type(sq_from_local(li, 0.1, 8, 1), StatisticalRounds[str])
    assert_type(boolean_from_real(sq), StatisticalRounds[str])
    assert_type(split_budget(sq, 1.0, 100, 2), LocalRounds[str])
    return (
        sq_from_local(li, 0.1, 8, 1),
        local_from_sq(sq, 1.0, tight_clients(1.0, 0.05)),
        boolean_from_real(sq),
    )


def not_claimed(li: LI, sq: SQ) -> tuple[object, ...]:
    """Adaptivity is never lost on the way: an adaptive algorithm does not come back
    non-adaptive."""
    local: LNI = local_from_sq(sq, 1.0, tight_clients(1.0, 0.05))  # type: ignore[assignment]
    statistical: NASQ = sq_from_local(li, 0.1, 8, 1)  # type: ignore[assignment]
    boolean: NASQ = boolean_from_real(sq)  # type: ignore[assignment]
    return local, statistical, boolean


def learners(nasq: NASQ, sq: SQ, encoding: Encoding) -> None:
    """NASQ learners, SQ learners, and the one that is local only; encoding a table, and leaving out
    its incomplete rows, preserve adaptivity."""
    assert_type(Stumps().algorithm(), Statistical[Stump])
    assert_type(LowDegree().algorithm(), Statistical[Polynomial])
    assert_type(DecisionLists().algorithm(), StatisticalRounds[RuleList])
    assert_type(Perceptron().algorithm(), StatisticalRounds[Halfspace])
    assert_type(KMeans().algorithm(), StatisticalRounds[Centres])
    assert_type(LocalSGD().algorithm(1.0, 1000), LocalRounds[Halfspace])
    assert_type(local_from_sq(Stumps().algorithm(), 1.0, enough_clients(1.0, 0.01)), Local[Stump])
    assert_type(on_table(nasq, encoding), Statistical[str])
    assert_type(among_complete(sq, encoding), StatisticalRounds[str])
