"""Many queries answered: counts, small databases, DualQuery and MWEM: privacy by enumerated
transcripts, noise, weights, and what they get right."""

import math
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Counts
from local_dp.curator.account import Account, ConcentratedAccount, TrustedOracle
from local_dp.curator.marginals.base import BinaryTable, Marginals, Synthetic, Weights
from local_dp.curator.mechanism import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.query_release import synthetic
from local_dp.curator.query_release.counting import CountingQueries, SmallDatabase, moved, table
from local_dp.curator.query_release.synthetic import (
    ConcentratedRounds,
    DualQuery,
    GaussianMarginal,
    Mwem,
    PureRounds,
    SampledQueries,
    WorstMarginal,
)
from local_dp.curator.selection.exponential import BoundedRange, ExponentialMechanism
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.errors import RefusedError
from local_dp.interaction import Adaptive, run
from local_dp.loss import Concentrated, Pure, approximate
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.answers import rows
from tests.support.mechanisms.case import share
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong

RANDOM = CountingQueries.random(5000, 40, np.random.default_rng(0))  # more than a block


def test_what_a_record_moves() -> None:
    for queries in (RANDOM, RANDOM.part(0, 50)):
        columns = queries.values.T
        assert moved(queries) == max(int((x != y).sum()) for x in columns for y in columns)


QUERIES = CountingQueries.conjunctions(2)
ONES = Marginals.ways(2, 1)
BUDGET = approximate(1.0, 1e-6)


def test_counts_are_exact() -> None:
    """As those of whole numbers, also with nearly 2^52 records and beyond one block of queries."""
    database = np.random.default_rng(1).integers(0, 1 << 46, 40)
    assert np.array_equal(RANDOM.counts(database), RANDOM.values.astype(np.int64) @ database)
    blocks = [block.values for _, block in RANDOM.blocks(17)]
    assert [len(block) for block in blocks] == [64, 128, 256, 512, 1024, 2048, 951]
    assert np.array_equal(np.concatenate(blocks), RANDOM.values[17:])


def test_it_weighs_sequences() -> None:
    """A multiset's weight is its orders times e^(-eps n error / 2): all multisets of 3 of 4 points,
    against the formula in floats."""
    database, weights = np.array([3, 1, 0, 2]), dict[tuple[int, ...], float]()
    for three in combinations_with_replacement(range(4), 3):
        counts = np.bincount(three, minlength=4)
        orders = len(set(permutations(three)))
        off = np.abs(QUERIES.shares(counts / 3) - QUERIES.shares(database / 6)).max()
        weights[tuple(counts.tolist())] = orders * math.exp(-3 * off)
    law, total = share(SmallDatabase(QUERIES, 3, 1.0).law(database)), sum(weights.values())
    assert law.keys() == weights.keys()
    for key, weight in weights.items():
        assert float(law[key]) == pytest.approx(weight / total)


def worst(algorithm: Adaptive[Any, Any, Synthetic], n: int) -> float:
    """The loss of whole transcripts on n records of two bits."""
    databases = SmallDatabases([(row,) for row in range(4)], n, rows(2))
    return epsilon_of(max(worst_transcripts(algorithm, databases).values()))


def test_transcripts_of_dual_query_are_private() -> None:
    """At most eta s T (T - 1) / n, and more than half of it; at twice the eta, more. `within` keeps
    to its epsilon, for about the same eta at any n."""
    small, claim = DualQuery(ONES, 3, 1, 0.5), 0.5 * 1 * 3 * 2 / 2
    assert sum(loss.epsilon for loss in small.losses(2)) == pytest.approx(claim)
    assert 0.5 * claim < worst(small.algorithm(2, 1), 2) <= claim
    assert worst(replace(small, eta=1.0).algorithm(2, 1), 2) > claim
    assert synthetic.dual_terms(12_732, 0.5) == (25, 9)
    dual = {n: DualQuery.within(ONES, n, 1.0) for n in (10**4, 10**7)}
    assert 1 / 1.2 < dual[10**4].eta / dual[10**7].eta < 1.2
    assert 1 - 1e-4 < sum(loss.epsilon for loss in dual[10**4].losses(10**4)) <= 1


@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (1, 2), (2, 1)])
def test_transcripts_of_mwem_are_private(n: int, rounds: int) -> None:
    """N = 4: the loss is at most that of the rounds, and half of it or more."""
    pure = PureRounds(rounds, 1.0, 1.0)
    mwem = Mwem(ONES, pure)
    assert mwem.loss == Pure(2 * 10**9 * rounds)
    assert 0.49 * mwem.loss.epsilon < worst(mwem.algorithm(n), n) <= mwem.loss.epsilon
    noises = np.arange(-99, 100)  # of each count, whose two parts share the epsilon
    law = np.exp(-np.abs(noises) * pure.measuring / 2)
    assert pure.deviation**2 == pytest.approx(law @ noises**2 / law.sum())


def scores(table: BinaryTable) -> Counts:
    """Three candidates: records with the first bit, records without it, and nothing."""
    ones = int((table.rows & np.uint64(1)).sum())
    return np.array([ones, table.size - ones, 1])


@wrong(
    "local_dp.curator.selection.exponential:BoundedRange.loss",
    "8",
    "16",
    "the range of a choice's losses is epsilon, not 70 % of it",
    at="0.5",
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_choice_in_rho(epsilon: float) -> None:
    """Its losses on two databases span at most epsilon, so rho is eps^2 / 8: no Renyi divergence
    over its order is more, and some is half of it."""
    choice: Any = BoundedRange(ExponentialMechanism(scores, epsilon))
    divergence = 0.0
    for pair in SmallDatabases([(row,) for row in range(4)], 2, rows(2)).laws(choice):
        law, other = (np.array(list(share(each).values()), dtype=float) for each in pair)
        losses = np.log(law) - np.log(other)
        assert np.ptp(losses) <= epsilon + 1e-9
        for order in (1.01, 2.0, 8.0, 32.0):
            renyi = math.log(law @ np.exp((order - 1) * losses)) / (order - 1)
            divergence = max(divergence, renyi / order)
    assert 0.5 * choice.loss.rho < divergence <= choice.loss.rho == pytest.approx(epsilon**2 / 8)


def test_a_measurement_in_rho() -> None:
    """A replaced record moves the cells of each marginal by 2 squared or not at all, so rho is 1 /
    V."""
    tables = [BinaryTable(2, np.array([row], dtype=np.uint64)) for row in range(4)]
    for mask in (1, 2, 3):
        truths = np.array([Marginals(2, (mask,)).answers(table) for table in tables])
        assert ((truths[:, None] - truths) ** 2).sum(axis=2).max() == 2
    assert GaussianMarginal(4, 15, 50).loss == Concentrated(10**18 // 50)


def test_weights_are_moved_as_by_hand() -> None:
    """Against a loop over all rows, at odd and even d: the marginal, and e^(should - is) of each
    row's cell."""
    generator = np.random.default_rng(0)
    for d, sets in ((5, [(0,), (1, 4), (0, 2, 3), (3, 4)]), (4, [(0, 1, 2, 3), (2,)]), (1, [(0,)])):
        weights, workload = Weights(d), Marginals.of(d, sets)
        for number, mask in enumerate(workload.masks):
            cells, shares = workload.cells_of(number), generator.random(1 << mask.bit_count())
            before, marginal = weights.flat.copy(), np.bincount(cells, weights.flat)
            assert weights.marginal(mask) == pytest.approx(marginal)
            weights.move(mask, shares)
            assert weights.flat == pytest.approx(before * np.exp(shares - marginal)[cells])
            weights.normalise()
            assert weights.flat.sum() == pytest.approx(1)


def test_it_is_paid_for_as_it_says() -> None:
    """By a curator: the whole of the price, in epsilon and in rho, and nothing is left for another
    round."""
    table = BinaryTable.of(np.random.default_rng(0).random((500, 4)) < 0.3)
    workload = Marginals.ways(4, 2)
    pure = synthetic.pure_mwem(workload, 500, 1.0)
    mwem = synthetic.concentrated_mwem(workload, 500, BUDGET)
    account, rhos = Account(pure.loss), ConcentratedAccount(BUDGET)
    run(pure.algorithm(500), TrustedOracle(table, account, seeded(1)))
    assert account.spent == account.budget == pure.loss
    assert pure.rounds == PureRounds(2, 0.25, 0.25)
    rounds = [synthetic.pure_rounds(4, n, 0.5) for n in (1, 10**5, 10**7)]
    rounds += [synthetic.concentrated_rounds(4, n, 0.01) for n in (1, 50_000, 10**7)]
    assert rounds == [1, 48, 200, 1, 119, 200]
    halves = ConcentratedRounds.within(Concentrated(10**18), 2)
    assert halves == ConcentratedRounds(2, 1.095445115, 3)  # the root of 8 * .15, and 1 / .35
    replays = [ConcentratedRounds(4, 1.0, 25).replays(n) for n in (1, 400, 10**6)]
    assert replays == [1, 20, 50]
    oracle = TrustedOracle(table, rhos, seeded(1))
    result = run(mwem.algorithm(500), oracle)
    assert rhos.spent_rho == mwem.loss
    assert 0.99 * rhos.rho.rho < mwem.loss.rho <= rhos.rho.rho
    with pytest.raises(RefusedError, match="exceeds"):
        run(mwem.algorithm(500), oracle)
    assert set(result.rows(10, np.random.default_rng(0)).tolist()) <= set(range(16))


def test_bad_input() -> None:
    zeros, one = np.zeros(40, dtype=np.int64), PureRounds(1, 1.0, 1.0)
    sparse: Any = SimpleNamespace(choice=SparseChoice(1.0, 1e-3))
    refuse(
        ("give truth values", lambda: CountingQueries(np.zeros((2, 2)))),  # type: ignore[arg-type]
        ("d is 9", lambda: CountingQueries.conjunctions(9)),
        ("number of records is 0", lambda: RANDOM.counts(zeros)),
        *(
            ("how often each of 40", partial(RANDOM.counts, wrong))
            for wrong in (zeros[:3], zeros - 1)
        ),
        ("some point is 3", lambda: table(np.array([3]), 3)),
        ("rows is 0", lambda: SmallDatabase(QUERIES, 0, 1.0)),
        (
            "too many databases of 6 rows of 64 points",
            lambda: SmallDatabase(CountingQueries.conjunctions(6), 6, 1.0),
        ),
        (
            "a law is listed up to",
            lambda: SmallDatabase(CountingQueries.conjunctions(3), 8, 1.0).law(
                np.ones(8, dtype=np.int64)
            ),
        ),
        ("rounds is 0", lambda: DualQuery(ONES, 0, 1, 1.0)),
        ("eta is 0", lambda: DualQuery(ONES, 1, 1, 0.0)),
        ("each of 4 cells", lambda: SampledQueries(ONES, zeros[:3], 1, 1.0)),
        (
            "choose 9 of",
            lambda: SampledQueries(ONES, zeros[:4], 9, 1.0).law(
                BinaryTable(2, np.zeros(1, dtype=np.uint64))
            ),
        ),
        ("d is 23", lambda: Mwem(Marginals.ways(23, 1), one)),
        ("number of records is 0", lambda: Mwem(ONES, one).algorithm(0)),
        ("for 2 rounds", lambda: PureRounds.within(1e-9, 2)),
        ("for 2 rounds", lambda: ConcentratedRounds.within(Concentrated(1), 2)),
        ("each of 4 cells", lambda: WorstMarginal(ONES, zeros[:3], 1.0)),
        ("no bounded range", lambda: BoundedRange(sparse)),
    )
