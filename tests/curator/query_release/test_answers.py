"""Many queries answered: counts, small databases, DualQuery and MWEM: privacy by enumerated
transcripts, noise, weights, and what they get right."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from local_dp.accounting.losses import gaussian_delta, rho_within
from local_dp.accounting.rules import optimal_delta
from local_dp.arrays import Counts
from local_dp.curator.account import Account, ConcentratedAccount, TrustedOracle
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals, Synthetic, Weights
from local_dp.curator.mechanism import Mechanism, SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.query_release import synthetic
from local_dp.curator.query_release.counting import (
    CountingQueries,
    GaussianAnswers,
    LaplaceAnswers,
    SmallDatabase,
    moved,
    table,
)
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
from tests.support.inputs.fair_columns import fair_table
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.answers import rows
from tests.support.runs.scripted import seeded

RANDOM = CountingQueries.random(5000, 40, np.random.default_rng(0))  # more than a block


def test_counts_are_exact() -> None:
    """As those of whole numbers, also with nearly 2^52 records and beyond one block of queries."""
    database = np.random.default_rng(1).integers(0, 1 << 46, 40)
    assert np.array_equal(RANDOM.counts(database), RANDOM.values.astype(np.int64) @ database)
    blocks = [block.values for _, block in RANDOM.blocks(17)]
    assert [len(block) for block in blocks] == [64, 128, 256, 512, 1024, 2048, 951]
    assert np.array_equal(np.concatenate(blocks), RANDOM.values[17:])


def test_what_a_record_moves() -> None:
    for queries in (RANDOM, RANDOM.part(0, 50)):
        columns = queries.values.T
        assert moved(queries) == max(int((x != y).sum()) for x in columns for y in columns)


def test_noise_is_of_the_parts_that_move() -> None:
    """The parts' exact price is within delta, a nano-nat more is not; variance likewise. By k in
    place of what moves, it would be twice as much."""
    laplace, gaussian, many = (
        LaplaceAnswers(RANDOM, 1.0, 1e-6),
        GaussianAnswers(RANDOM, 1.0, 1e-6),
        moved(RANDOM),
    )
    assert many < 0.6 * RANDOM.k
    assert (
        optimal_delta(laplace.part, many, Pure(laplace.loss.nano))
        <= laplace.loss.atto
        < optimal_delta(Pure(laplace.part.nano + 1), many, Pure(10**9))
    )
    assert (
        gaussian_delta(math.sqrt(many / gaussian.variance), 1.0)
        <= 1e-6
        < gaussian_delta(math.sqrt(many / (gaussian.variance - 1)), 1.0)
    )
    database = table(np.arange(4000) % 40, 40)
    for release, spread in (
        (laplace, math.sqrt(2) / laplace.part.epsilon),
        (gaussian, math.sqrt(gaussian.variance)),
    ):
        off = release.release(database, seeded(1)) - RANDOM.counts(database)
        # 5,000 draws: a relative standard error of 1.6 % for Laplace noise, so six of them
        assert np.std(off) == pytest.approx(spread, rel=0.1)


QUERIES = CountingQueries.conjunctions(2)


def test_it_weighs_sequences() -> None:
    """A multiset's weight is its orders times e^(-eps n error / 2): all multisets of 3 of 4 points,
    against the formula in floats."""
    database, n = np.array([3, 1, 0, 2]), 6
    law = SmallDatabase(QUERIES, 3, 1.0).law(database)
    weights = {}
    for three in combinations_with_replacement(range(4), 3):
        counts = np.bincount(three, minlength=4)
        error = np.abs(QUERIES.shares(counts / 3) - QUERIES.shares(database / n)).max()
        weights[tuple(counts.tolist())] = (
            math.factorial(3)
            / math.prod(map(math.factorial, counts.tolist()))
            * math.exp(-n * error / 2)
        )
    total, weight = sum(law.values()), sum(weights.values())
    assert set(law) == set(weights)
    assert max(abs(float(Fraction(law[key], total)) - weights[key] / weight) for key in law) < 1e-9


def test_rows_that_are_enough() -> None:
    """Of ln(2 k) / (2 alpha^2) rows some are within alpha, so 27 conjunctions of 3 bits are
    answered within 2 alpha by 10^5 records; one row is not enough."""
    queries, alpha = CountingQueries.conjunctions(3), 0.45
    enough, n = math.ceil(math.log(2 * 27) / (2 * alpha**2)), 10**5
    assert enough == 10
    database = np.random.default_rng(0).multinomial(n, np.full(8, 1 / 8))
    errors = {}
    for each in (enough, 1):
        counts = SmallDatabase(queries, each, 1.0).release(database, seeded(1))
        assert sum(counts) == each
        errors[each] = float(
            np.abs(queries.shares(np.array(counts) / each) - queries.shares(database / n)).max()
        )
    assert errors[enough] < 2 * alpha / 4 < 0.4 < errors[1]


ONES = Marginals.ways(2, 1)
SMALL = DualQuery(ONES, 3, 1, 0.5)


def databases(n: int) -> SmallDatabases[tuple[int], BinaryTable]:
    return SmallDatabases([(row,) for row in range(4)], n, rows(2))


def worst(algorithm: Adaptive[Any, Any, Synthetic], n: int) -> float:
    """The loss of whole transcripts on n records of two bits."""
    return epsilon_of(max(worst_transcripts(algorithm, databases(n)).values()))


def test_transcripts_of_dual_query_are_private() -> None:
    """At most eta s T (T - 1) / n, and more than half of it; at twice the eta, more. Terms:
    multiples of (n eps)^(1/3), so eta hardly depends on n."""
    claim = sum(loss.epsilon for loss in SMALL.losses(2))
    assert claim == pytest.approx(0.5 * 1 * 3 * 2 / 2)
    assert (
        0.5 * claim
        < worst(SMALL.algorithm(2, 1), 2)
        <= claim
        < worst(replace(SMALL, eta=2 * SMALL.eta).algorithm(2, 1), 2)
    )
    assert synthetic.dual_terms(6366, 1.0) == (25, 9)
    etas = [DualQuery.within(ONES, n, 1.0).eta for n in (10**4, 10**5, 10**7)]
    assert max(etas) / min(etas) < 1.2


def test_a_few_rows_answer_many_marginals() -> None:
    """n = 10^4, 6 columns, all 2-way marginals: less than two thirds of the error of no data, and
    paid for."""
    generator, n = np.random.default_rng(0), 10**4
    table = BinaryTable.of(generator.random((n, 6)) < np.linspace(0.05, 0.6, 6))
    workload = Marginals.ways(6, 2)
    truth, dual, account = (
        workload.answers(table),
        DualQuery.within(workload, n, 1.0),
        Account(Pure(10**9)),
    )
    made = run(dual.algorithm(n, 1), TrustedOracle(table, account, seeded(1)))
    assert 1 - 1e-4 < account.spent.epsilon <= 1
    assert made.weights.sum() == pytest.approx(n)
    assert np.count_nonzero(made.weights) <= dual.rounds
    nothing = Errors.of(np.full(workload.cells, n / 4), truth, n)
    assert Errors.of(made.answers(workload), truth, n).mean < 2 / 3 * nothing.mean


BUDGET = approximate(1.0, 1e-6)


@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (1, 2), (2, 1)])
def test_transcripts_of_mwem_are_private(n: int, rounds: int) -> None:
    """N = 4: the loss is at most that of the rounds, and half of it or more."""
    mwem = Mwem(ONES, PureRounds(rounds, 1.0, 1.0))
    assert mwem.loss == Pure(2 * 10**9 * rounds)
    assert 0.49 * mwem.loss.epsilon < worst(mwem.algorithm(n), n) <= mwem.loss.epsilon


def ranges(mechanism: Any) -> tuple[float, float]:
    """Over all tables of two records: the widest range of losses of one pair, and the largest Renyi
    divergence of an order over the order."""
    width = divergence = 0.0
    for law, other in databases(2).laws(mechanism):
        total, others = sum(law.values()), sum(other.values())
        losses = [math.log(Fraction(law[each] * others, other[each] * total)) for each in law]
        width = max(width, max(losses) - min(losses))
        for order in (1.01, 2.0, 8.0, 32.0):
            moment = sum(
                law[each] / total * math.exp((order - 1) * loss)
                for each, loss in zip(law, losses, strict=True)
            )
            divergence = max(divergence, math.log(moment) / (order - 1) / order)
    return width, divergence


def scores(table: BinaryTable) -> Counts:
    """Three candidates: records with the first bit, records without it, and nothing."""
    ones = int((table.rows & np.uint64(1)).sum())
    return np.array([ones, table.size - ones, 1])


def test_a_choice_in_rho() -> None:
    """Its losses on two databases span at most epsilon, so rho is eps^2 / 8: nearly met."""
    for epsilon in (0.5, 2.0):
        choice = BoundedRange(ExponentialMechanism(scores, epsilon))
        width, divergence = ranges(choice)
        assert 0.95 * epsilon < width <= epsilon + 1e-9
        assert (
            0.5 * choice.loss.rho < divergence <= choice.loss.rho == pytest.approx(epsilon**2 / 8)
        )


def test_a_measurement_in_rho() -> None:
    """A replaced record moves the cells of each marginal by 2 squared or not at all, so rho is 1 /
    V; the noise has variance V + 1/12."""
    for mask in (1, 2, 3):
        truths = [
            Marginals(2, (mask,)).answers(BinaryTable(2, np.array([row], dtype=np.uint64)))
            for row in range(4)
        ]
        assert (
            max(float(((here - there) ** 2).sum()) for here, there in product(truths, repeat=2))
            == 2
        )
    measured = GaussianMarginal(4, 15, 50)
    assert measured.loss == Concentrated(10**18 // 50)
    draws, table = seeded(1), BinaryTable(4, np.zeros(100, dtype=np.uint64))
    noise = np.concatenate([measured.release(table, draws).counts for _ in range(200)]).astype(
        float
    )
    # five standard errors
    assert noise.mean() * 16 == pytest.approx(100, abs=16 * 5 * math.sqrt(50 / 3200))
    assert noise.reshape(200, 16)[:, 1:].var() == pytest.approx(
        50 + 1 / 12, rel=5 * math.sqrt(2 / 3000)
    )


def test_weights_are_moved_as_by_hand() -> None:
    """Against a loop over all rows, at odd and even d: the marginal, and e^(should - is) of each
    row's cell."""
    generator = np.random.default_rng(0)
    for d, sets in ((5, [(0,), (1, 4), (0, 2, 3), (3, 4)]), (4, [(0, 1, 2, 3), (2,)]), (1, [(0,)])):
        weights, workload = Weights(d), Marginals.of(d, sets)
        for number, mask in enumerate(workload.masks):
            before, cells, shares = (
                weights.flat.copy(),
                workload.cells_of(number),
                generator.random(1 << mask.bit_count()),
            )
            assert weights.marginal(mask) == pytest.approx(np.bincount(cells, before))
            weights.move(mask, shares)
            assert weights.flat == pytest.approx(
                before * np.exp(shares - np.bincount(cells, before))[cells]
            )
            weights.normalise()
            assert weights.flat.sum() == pytest.approx(1)


def skewed(n: int, d: int) -> BinaryTable:
    """Two kinds of records, whose bits are 1 with probability .8 and .2."""
    generator = np.random.default_rng(0)
    return BinaryTable.of(
        generator.random((n, d)) < np.where(generator.random((n, 1)) < 0.5, 0.8, 0.2)
    )


def test_it_is_paid_for_as_it_says() -> None:
    """By a curator: the whole of the price, in epsilon and in rho, and nothing is left for another
    round."""
    table, workload = skewed(500, 4), Marginals.ways(4, 2)
    pure = synthetic.pure_mwem(workload, 500, 1.0)
    account = Account(pure.loss)
    run(pure.algorithm(500), TrustedOracle(table, account, seeded(1)))
    assert account.spent == account.budget == pure.loss
    assert 0.999999 < pure.loss.epsilon <= 1
    concentrated = synthetic.concentrated_mwem(workload, 500, BUDGET)
    filtered = ConcentratedAccount(BUDGET)
    oracle = TrustedOracle(table, filtered, seeded(1))
    made = run(concentrated.algorithm(500), oracle)
    assert filtered.spent_rho == concentrated.loss
    assert 0.99 * filtered.rho.rho < concentrated.loss.rho <= filtered.rho.rho
    with pytest.raises(RefusedError, match="exceeds"):
        run(concentrated.algorithm(500), oracle)
    assert set(made.rows(10, np.random.default_rng(0)).tolist()) <= set(range(16))


def test_rounds_see_no_data() -> None:
    """As many as balance a measurement's noise with what is left unmeasured: sqrt(rho) n and (n
    eps)^(2/3), within 1..200."""
    rho = rho_within(BUDGET).rho
    assert synthetic.concentrated_rounds(17, 6366, rho) == 49
    assert synthetic.pure_rounds(17, 6366, 1.0) == 20
    assert synthetic.concentrated_rounds(17, 2 * 6366, rho / 4) == 49
    assert (
        synthetic.concentrated_rounds(17, 10, rho),
        synthetic.concentrated_rounds(17, 10**6, rho),
    ) == (1, 200)
    assert synthetic.pure_rounds(17, 6366, 2.0) == pytest.approx(20 * 2 ** (2 / 3), abs=1)


WORKLOAD = Marginals.ways(17, 3)


@pytest.mark.long
def test_weights_pay_where_a_histogram_cannot() -> None:
    """Largest and mean error of a cell, means of five runs, of which this is one, at (1, 1e-6) and
    epsilon 1: MWEM in rho .022 and .0040, pure .062 and .011, DualQuery .28 and .054; a product of
    the columns, without noise, .26 and .033. Numbers of rounds come from rules that see n and the
    budget alone."""
    table = fair_table()
    truth, n = WORKLOAD.answers(table), table.size

    def errors(made: Synthetic) -> Errors:
        return Errors.of(made.answers(WORKLOAD), truth, n)

    def released(mechanism: Mechanism[BinaryTable, Synthetic, Pure | Concentrated]) -> Errors:
        return errors(mechanism.release(table, seeded(1)))

    concentrated, pure = (
        released(synthetic.concentrated_mwem(WORKLOAD, n, approximate(1.0, 1e-6))),
        released(synthetic.pure_mwem(WORKLOAD, n, 1.0)),
    )
    dual = errors(
        run(
            DualQuery.within(WORKLOAD, n, 1.0).algorithm(n, 1),
            TrustedOracle(table, Account(Pure(10**9)), seeded(1)),
        )
    )
    product = np.ones(1)
    for mean in table.bits.mean(axis=0):
        product = np.concatenate([product * (1 - mean), product * mean])
    columns = errors(Synthetic(17, n * product))
    assert round(columns.largest, 3) == 0.261
    assert round(columns.mean, 4) == 0.0328
    assert concentrated.largest < 0.03 < pure.largest < 0.1 < columns.largest
    assert concentrated.mean < 0.005 < pure.mean < 0.016 < columns.mean < dual.mean < 0.07


def test_bad_input() -> None:
    sparse: Any = SimpleNamespace(choice=SparseChoice(1.0, 1e-3))
    refuse(
        ("give truth values", lambda: CountingQueries(np.zeros((2, 2)))),  # type: ignore[arg-type]
        ("d is 9", lambda: CountingQueries.conjunctions(9)),
        ("number of records is 0", lambda: RANDOM.counts(np.zeros(40, dtype=np.int64))),
        ("how often each of 40", lambda: RANDOM.counts(np.ones(3, dtype=np.int64))),
        ("how often each of 40", lambda: RANDOM.counts(-np.ones(40, dtype=np.int64))),
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
        ("each of 4 cells", lambda: SampledQueries(ONES, np.zeros(3, dtype=np.int64), 1, 1.0)),
        (
            "choose 9 of",
            lambda: SampledQueries(ONES, np.zeros(4, dtype=np.int64), 9, 1.0).law(
                BinaryTable(2, np.zeros(1, dtype=np.uint64))
            ),
        ),
        ("d is 23", lambda: Mwem(Marginals.ways(23, 1), PureRounds(1, 1.0, 1.0))),
        ("number of records is 0", lambda: Mwem(ONES, PureRounds(1, 1.0, 1.0)).algorithm(0)),
        ("for 2 rounds", lambda: PureRounds.within(1e-9, 2)),
        ("for 2 rounds", lambda: ConcentratedRounds.within(Concentrated(1), 2)),
        ("each of 4 cells", lambda: WorstMarginal(ONES, np.zeros(3, dtype=np.int64), 1.0)),
        ("no bounded range", lambda: BoundedRange(sparse)),
    )
