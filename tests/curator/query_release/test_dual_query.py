"""DualQuery: its transcripts enumerated, its price by the published formula, and what a few rows get right."""

import math

import numpy as np
import pytest

from local_dp.curator.account import Account
from local_dp.curator.laws import SmallDatabases, epsilon_of, worst_transcripts
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.query_release.dual_query import DualQuery, SampledQueries, dual_terms
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise

ONES = Marginals.ways(2, 1)
SMALL = DualQuery(ONES, 3, 1, 0.5)


def worst() -> float:
    """The loss of whole transcripts of three rounds, two records of two bits."""
    databases = SmallDatabases([(row,) for row in range(4)], 2, lambda records: BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64)))
    return epsilon_of(max(worst_transcripts(SMALL.algorithm(2, 1), databases).values()))


def test_whole_transcripts_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most eta s T (T - 1) / n, and more than half of it; at twice the epsilon of each draw, more."""
    claimed = sum(loss.epsilon for loss in SMALL.losses(2))
    assert claimed == pytest.approx(0.5 * 1 * 3 * 2 / 2)
    assert 0.5 * claimed < worst() <= claimed
    monkeypatch.setattr(SampledQueries, "choice", property(lambda sampled: ExponentialChoice(2 * sampled.each)))
    assert worst() > claimed


def test_a_few_rows_answer_many_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    """n = 10^5, 8 columns, all 2-way marginals: less than two thirds of the error of no data, and paid for; by rows that satisfy fewest, more than it."""
    generator, n = np.random.default_rng(0), 10**5
    table = BinaryTable.of(generator.random((n, 8)) < np.linspace(0.05, 0.6, 8))
    workload = Marginals.ways(8, 2)
    truth, dual = workload.answers(table), DualQuery.within(workload, n, 1.0)
    account, satisfied = Account(Pure(10**9)), DualQuery._satisfied
    made = run(dual.algorithm(n, 1), TrustedOracle(table, account, Draws(KeyedNoise(1))))
    assert 1 - 1e-4 < account.spent.epsilon <= 1
    assert made.weights.sum() == pytest.approx(n)
    assert np.count_nonzero(made.weights) <= dual.rounds
    nothing = Errors.of(np.full(workload.cells, n / 4), truth, n)
    assert Errors.of(made.answers(workload), truth, n).mean < 2 / 3 * nothing.mean
    monkeypatch.setattr(DualQuery, "_satisfied", lambda dual, drawn, places: -satisfied(dual, drawn, places))
    wrong = run(dual.algorithm(n, 1), TrustedOracle(table, Account(Pure(10**9)), Draws(KeyedNoise(1))))
    assert Errors.of(wrong.answers(workload), truth, n).mean > nothing.mean


def test_terms_see_no_data() -> None:
    """Multiples of (n eps)^(1/3), so that eta is about the same for every n."""
    assert dual_terms(6366, 1.0) == (25, 9)
    etas = [DualQuery.within(ONES, n, 1.0).eta for n in (10**4, 10**5, 10**7)]
    assert max(etas) / min(etas) < 1.2


def test_many_choices_are_independent() -> None:
    """Two queries at once have the product of the laws of one; their law is listed."""
    sampled = SampledQueries(ONES, np.array([1, 0, 0, 1]), 2, 1.0)
    table = BinaryTable(2, np.array([0, 1, 3], dtype=np.uint64))
    both, one = sampled.law(table), SampledQueries(ONES, sampled.expected, 1, 1.0).law(table)
    assert all(both[first, second] == one[first,] * one[second,] for first, second in both)
    assert math.isclose(sampled.loss.epsilon, 2.0)


def test_bad_input_gets_a_line() -> None:
    for made, said in (
        (lambda: DualQuery(ONES, 0, 1, 1.0), "rounds is 0"),
        (lambda: DualQuery(ONES, 1, 1, 0.0), "eta is 0"),
        (lambda: SampledQueries(ONES, np.zeros(3, dtype=np.int64), 1, 1.0), "each of 4 cells"),
        (lambda: SampledQueries(ONES, np.zeros(4, dtype=np.int64), 9, 1.0).law(BinaryTable(2, np.zeros(1, dtype=np.uint64))), "choose 9 of"),
    ):
        with pytest.raises(InputError, match=said):
            made()
