"""One attack, three models, as types: checked by mypy.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever
does.
"""

from typing import assert_type

from local_dp.arrays import Bools, Floats
from local_dp.attacks import BonehShaw, Pirates, Traced, least_squares, reconstruction, tracing
from local_dp.curator.account import TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.interaction import Nonadaptive, run
from local_dp.oracles.local.asked import Local
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, Statistical
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import from_own_bits, one_sign_each

Attack = Statistical[Bools]


def attacks(subsets: Bools, shares: Floats, suspects: Bools) -> tuple[Attack, Statistical[Traced]]:
    """Reconstruction and tracing are non-adaptive SQ algorithms; what they guess is their
    result."""
    assert_type(BonehShaw(2, 1, 0).tracing(0.1), Statistical[int])
    return reconstruction(subsets, 0.1, least_squares), tracing(shares, suspects, 0.1)


def three_models(
    attack: Attack,
    exact: ExactOracle,
    trusted: TrustedOracle[Records],
    clients: PopulationOracle,
    public: Records,
    epsilons: tuple[float, float],
) -> tuple[Bools, Bools, Bools]:
    """The one attack asks expectations, the curator's mechanisms, and clients: each translation
    keeps its result and that it is non-adaptive.

    `epsilons` are the curator's for a query and the client's for its bit.
    """
    curator = curated_from_sq(attack, epsilons[0], len(public))
    local = from_own_bits(attack, public, "secret", epsilons[1])
    assert_type(curator, Nonadaptive[NoisySum, int, Bools])
    assert_type(local, Local[Bools])
    assert_type(one_sign_each(attack, 1.0, 10, 1), Local[Bools])
    return run(attack, exact), run(curator, trusted), run(local, clients)


def not_claimed(
    attack: Attack, exact: ExactOracle, clients: PopulationOracle, pirates: Pirates
) -> tuple[Bools, ...]:
    """Untranslated, an attack reaches expectations and pirates alone."""
    run(attack, clients)  # type: ignore[misc]
    run(curated_from_sq(attack, 1.0, 10), exact)  # type: ignore[misc]
    return run(attack, pirates), run(attack, exact)
