"""CI = CNI: an interactive curator's algorithm is handed over as one mechanism."""

import numpy as np
import pytest

from local_dp.curator.account import Account
from local_dp.curator.sums import NoisySum
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import Adaptive, Play, run
from local_dp.loss import NANO, Pure
from local_dp.noise import KeyedNoise
from local_dp.queries.tables import Question
from local_dp.records import Records
from local_dp.theorems.curated import cni_from_ci

RECORDS = Records({"x": np.arange(100) % 2, "y": np.arange(100) % 5})


def two_rounds() -> Play[NoisySum, int, int]:
    """Asks about y or about x, as a first noisy sum says."""
    (first,) = yield (NoisySum(Question("x == 1"), 0.5),)
    (second,) = yield (NoisySum(Question("y == 0" if first > 50 else "x == 0"), 0.5),)
    return second


def oracle(budget: int, seed: int) -> TrustedOracle[Records]:
    return TrustedOracle(RECORDS, Account(Pure(budget)), Draws(KeyedNoise(seed)))


@pytest.mark.parametrize("seed", range(8))
def test_the_result_is_that_of_the_interaction(seed: int) -> None:
    """With the same draws the handed-over algorithm gives the same result in one round, for the same price."""
    interactive, handed = oracle(NANO, seed), oracle(NANO, seed)
    assert run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), handed) == run(Adaptive(two_rounds), interactive)
    assert (interactive.rounds, handed.rounds) == (2, 1)
    assert interactive.account.spent == handed.account.spent == Pure(NANO)


def test_it_spends_no_more_than_it_says() -> None:
    """An algorithm that asks for more than its budget is refused inside, and its budget is charged before anything is drawn."""
    with pytest.raises(RefusedError) as refused:
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO // 2)), oracle(NANO, 1))
    assert refused.value.code == "budget"
    with pytest.raises(RefusedError):
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), oracle(NANO // 2, 1))
