"""DualQuery: its transcripts enumerated, its price by the published formula, and what a few rows get right."""

from dataclasses import replace

import numpy as np
import pytest

from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.laws import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.query_release.synthetic import DualQuery, SampledQueries, dual_terms
from local_dp.draws import Draws
from local_dp.interaction import run
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

ONES = Marginals.ways(2, 1)
SMALL = DualQuery(ONES, 3, 1, 0.5)


def worst(query: DualQuery) -> float:
    """The loss of whole transcripts of three rounds, two records of two bits."""
    databases = SmallDatabases([(row,) for row in range(4)], 2, lambda records: BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64)))
    return epsilon_of(max(worst_transcripts(query.algorithm(2, 1), databases).values()))


def test_whole_transcripts_are_private() -> None:
    """At most eta s T (T - 1) / n, and more than half of it; at twice the eta, more. Terms: multiples of (n eps)^(1/3), so eta hardly depends on n."""
    claim = sum(loss.epsilon for loss in SMALL.losses(2))
    assert claim == pytest.approx(0.5 * 1 * 3 * 2 / 2)
    assert 0.5 * claim < worst(SMALL) <= claim < worst(replace(SMALL, eta=2 * SMALL.eta))
    assert dual_terms(6366, 1.0) == (25, 9)
    etas = [DualQuery.within(ONES, n, 1.0).eta for n in (10**4, 10**5, 10**7)]
    assert max(etas) / min(etas) < 1.2


def test_a_few_rows_answer_many_marginals() -> None:
    """n = 10^4, 6 columns, all 2-way marginals: less than two thirds of the error of no data, and paid for."""
    generator, n = np.random.default_rng(0), 10**4
    table = BinaryTable.of(generator.random((n, 6)) < np.linspace(0.05, 0.6, 6))
    workload = Marginals.ways(6, 2)
    truth, dual, account = workload.answers(table), DualQuery.within(workload, n, 1.0), Account(Pure(10**9))
    made = run(dual.algorithm(n, 1), TrustedOracle(table, account, Draws(KeyedNoise(1))))
    assert 1 - 1e-4 < account.spent.epsilon <= 1
    assert made.weights.sum() == pytest.approx(n)
    assert np.count_nonzero(made.weights) <= dual.rounds
    nothing = Errors.of(np.full(workload.cells, n / 4), truth, n)
    assert Errors.of(made.answers(workload), truth, n).mean < 2 / 3 * nothing.mean


def test_bad_input() -> None:
    refuse(
        ("rounds is 0", lambda: DualQuery(ONES, 0, 1, 1.0)),
        ("eta is 0", lambda: DualQuery(ONES, 1, 1, 0.0)),
        ("each of 4 cells", lambda: SampledQueries(ONES, np.zeros(3, dtype=np.int64), 1, 1.0)),
        ("choose 9 of", lambda: SampledQueries(ONES, np.zeros(4, dtype=np.int64), 9, 1.0).law(BinaryTable(2, np.zeros(1, dtype=np.uint64)))),
    )
