"""MWEM: its transcripts on four points enumerated, its price in rho, its weights, and what it gets right."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts
from local_dp.curator.account import Account, ConcentratedAccount, TrustedOracle
from local_dp.curator.laws import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.marginals.base import BinaryTable, Marginals, Weights
from local_dp.curator.query_release.synthetic import (
    ConcentratedRounds,
    GaussianMarginal,
    Mwem,
    PureRounds,
    WorstMarginal,
    concentrated_mwem,
    concentrated_rounds,
    pure_mwem,
    pure_rounds,
)
from local_dp.curator.selection.exponential import BoundedRange, ExponentialMechanism, PermutedMechanism
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import run
from local_dp.loss import Concentrated, Pure, approximate
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

ONES = Marginals.ways(2, 1)
BUDGET = approximate(1.0, 1e-6)


def databases(n: int) -> SmallDatabases[tuple[int], BinaryTable]:
    """All tables of n records of two bits."""
    return SmallDatabases([(row,) for row in range(4)], n, lambda records: BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64)))


def worst(n: int, rounds: int) -> float:
    """The loss of whole transcripts, a choice and a measurement of epsilon 1 each in a round."""
    return epsilon_of(max(worst_transcripts(Mwem(ONES, PureRounds(rounds, 1.0, 1.0)).algorithm(n), databases(n)).values()))


@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (1, 2), (2, 1)])
def test_whole_transcripts_are_private(n: int, rounds: int) -> None:
    """N = 4: the loss is at most that of the rounds, and half of it or more."""
    loss = Mwem(ONES, PureRounds(rounds, 1.0, 1.0)).loss
    assert loss == Pure(2 * 10**9 * rounds)
    assert 0.49 * loss.epsilon < worst(n, rounds) <= loss.epsilon


def ranges(mechanism: Any) -> tuple[float, float]:
    """Over all tables of two records: the widest range of losses of one pair, and the largest Renyi divergence of an order over the order."""
    width = divergence = 0.0
    for law, other in databases(2).laws(mechanism):
        total, others = sum(law.values()), sum(other.values())
        losses = [math.log(Fraction(law[each] * others, other[each] * total)) for each in law]
        width = max(width, max(losses) - min(losses))
        for order in (1.01, 2.0, 8.0, 32.0):
            moment = sum(law[each] / total * math.exp((order - 1) * loss) for each, loss in zip(law, losses, strict=True))
            divergence = max(divergence, math.log(moment) / (order - 1) / order)
    return width, divergence


def scores(table: BinaryTable) -> Counts:
    """Three candidates: records with the first bit, records without it, and nothing."""
    ones = int((table.rows & np.uint64(1)).sum())
    return np.array([ones, table.size - ones, 1])


def test_a_choice_in_rho() -> None:
    """Its losses on two databases span at most epsilon, so rho is eps^2 / 8: nearly met. Those of permute-and-flip span more, and it is refused."""
    for epsilon in (0.5, 2.0):
        choice = BoundedRange(ExponentialMechanism(scores, epsilon))
        width, divergence = ranges(choice)
        assert 0.95 * epsilon < width <= epsilon + 1e-9
        assert 0.5 * choice.loss.rho < divergence <= choice.loss.rho == pytest.approx(epsilon**2 / 8)
        permuted = PermutedMechanism(scores, epsilon)
        assert ranges(permuted)[0] > 1.02 * epsilon


def test_a_measurement_in_rho() -> None:
    """A replaced record moves the cells of each marginal by 2 squared or not at all, so rho is 1 / V; the noise has variance V + 1/12."""
    for mask in (1, 2, 3):
        truths = [Marginals(2, (mask,)).answers(BinaryTable(2, np.array([row], dtype=np.uint64))) for row in range(4)]
        assert max(float(((here - there) ** 2).sum()) for here, there in product(truths, repeat=2)) == 2
    measured = GaussianMarginal(4, 15, 50)
    assert measured.loss == Concentrated(10**18 // 50)
    draws, table = Draws(KeyedNoise(1)), BinaryTable(4, np.zeros(100, dtype=np.uint64))
    noise = np.concatenate([measured.release(table, draws).counts for _ in range(200)]).astype(float)
    assert noise.mean() * 16 == pytest.approx(100, abs=16 * 5 * math.sqrt(50 / 3200))  # five standard errors
    assert noise.reshape(200, 16)[:, 1:].var() == pytest.approx(50 + 1 / 12, rel=5 * math.sqrt(2 / 3000))


def test_weights_are_moved_as_by_hand() -> None:
    """Against a loop over all rows, at odd and even d: the marginal, and e^(should - is) of each row's cell."""
    generator = np.random.default_rng(0)
    for d, sets in ((5, [(0,), (1, 4), (0, 2, 3), (3, 4)]), (4, [(0, 1, 2, 3), (2,)]), (1, [(0,)])):
        weights, workload = Weights(d), Marginals.of(d, sets)
        for number, mask in enumerate(workload.masks):
            before, cells, shares = weights.flat.copy(), workload.cells_of(number), generator.random(1 << mask.bit_count())
            assert weights.marginal(mask) == pytest.approx(np.bincount(cells, before))
            weights.move(mask, shares)
            assert weights.flat == pytest.approx(before * np.exp(shares - np.bincount(cells, before))[cells])
            weights.normalise()
            assert weights.flat.sum() == pytest.approx(1)


def skewed(n: int, d: int) -> BinaryTable:
    """Two kinds of records, whose bits are 1 with probability .8 and .2."""
    generator = np.random.default_rng(0)
    return BinaryTable.of(generator.random((n, d)) < np.where(generator.random((n, 1)) < 0.5, 0.8, 0.2))


def test_it_is_paid_for_as_it_says() -> None:
    """By a curator: the whole of the price, in epsilon and in rho, and nothing is left for another round."""
    table, workload = skewed(500, 4), Marginals.ways(4, 2)
    pure = pure_mwem(workload, 500, 1.0)
    account = Account(pure.loss)
    run(pure.algorithm(500), TrustedOracle(table, account, Draws(KeyedNoise(1))))
    assert account.spent == account.budget == pure.loss
    assert 0.999999 < pure.loss.epsilon <= 1
    concentrated = concentrated_mwem(workload, 500, BUDGET)
    filtered = ConcentratedAccount(BUDGET)
    oracle = TrustedOracle(table, filtered, Draws(KeyedNoise(1)))
    synthetic = run(concentrated.algorithm(500), oracle)
    assert filtered.spent_rho == concentrated.loss
    assert 0.99 * filtered.rho.rho < concentrated.loss.rho <= filtered.rho.rho
    with pytest.raises(RefusedError, match="exceeds"):
        run(concentrated.algorithm(500), oracle)
    assert set(synthetic.rows(10, np.random.default_rng(0)).tolist()) <= set(range(16))


def test_rounds_see_no_data() -> None:
    """As many as balance a measurement's noise with what is left unmeasured: sqrt(rho) n and (n eps)^(2/3), within 1..200."""
    rho = rho_within(BUDGET).rho
    assert concentrated_rounds(17, 6366, rho) == 49
    assert pure_rounds(17, 6366, 1.0) == 20
    assert concentrated_rounds(17, 2 * 6366, rho / 4) == 49
    assert (concentrated_rounds(17, 10, rho), concentrated_rounds(17, 10**6, rho)) == (1, 200)
    assert pure_rounds(17, 6366, 2.0) == pytest.approx(20 * 2 ** (2 / 3), abs=1)


def test_bad_input() -> None:
    refuse(
        ("d is 23", lambda: Mwem(Marginals.ways(23, 1), PureRounds(1, 1.0, 1.0))),
        ("number of records is 0", lambda: Mwem(ONES, PureRounds(1, 1.0, 1.0)).algorithm(0)),
        ("for 2 rounds", lambda: PureRounds.within(1e-9, 2)),
        ("for 2 rounds", lambda: ConcentratedRounds.within(Concentrated(1), 2)),
        ("each of 4 cells", lambda: WorstMarginal(ONES, np.zeros(3, dtype=np.int64), 1.0)),
        ("no bounded range", lambda: BoundedRange(PermutedMechanism(scores, 1.0))),
    )
