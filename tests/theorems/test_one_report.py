"""One report a client, and every query answered: unbiased, at one charge of epsilon."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Local
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, RealQuery, Statistical, StatisticalQuery
from local_dp.populations.table import Rows
from local_dp.queries.encoded import Bit, packed
from local_dp.queries.examples import SignedLabel
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import SignOfAll, from_own_bits, one_query_each, one_sign_each, sign_correlation

TABLE = Records({"age": np.array([30, 40, 50]), "sick": np.array([1, 0, 1])})
QUERIES = (
    StatisticalQuery(Question("sick == 1"), 0.1),
    StatisticalQuery(Question("sick == 0 and age > 35"), 0.1),
    StatisticalQuery(Question("age > 45"), 0.1),  # of what is public alone
    StatisticalQuery(SignedLabel("age < 45", "sick"), 0.1),
    RealQuery(Question("sick == 1"), 0.1, (-0.25, 0.75)),
)
PLAIN: Statistical[tuple[float, ...]] = Nonadaptive(QUERIES, lambda answers: answers)
EPSILON, FAILURE = 1.0, 1e-6
Translation = Callable[[Statistical[tuple[float, ...]], float, int, int], Local[tuple[float, ...]]]


def blind(table: Records) -> Records:
    """The table with nothing in the secret column."""
    return Records({**table.columns, "sick": np.zeros(len(table), dtype=np.int64)})


def test_own_bits_are_unbiased_for_every_query() -> None:
    """Over all reports of three clients, by their exact probabilities, each answer averages to the table's, also of queries about public columns and numbers.

    Wrong twin: reports taken at their word do not.
    """
    algorithm, randomizer = from_own_bits(PLAIN, blind(TABLE), "sick", EPSILON), BinaryRR(epsilon=EPSILON)
    tables = randomizer.weight(np.array([[0], [1]]), np.array([0, 1]), np.zeros(1, dtype=np.int64)).astype(np.float64) / randomizer.total
    averages, at_their_word = np.zeros(len(QUERIES)), np.zeros(len(QUERIES))
    for reports in product((0, 1), repeat=3):
        chance = float(np.prod([tables[report, bit] for report, bit in zip(reports, TABLE["sick"], strict=True)]))
        tallies = tuple(Tally(np.eye(2, dtype=np.int64)[[report]]) for report in reports)
        averages += chance * np.array(algorithm.decode(tallies))
        believed = Records({**TABLE.columns, "sick": np.array(reports)})
        at_their_word += chance * np.array(ExactOracle(Rows(believed)).answer(QUERIES))
    truth = np.array(ExactOracle(Rows(TABLE)).answer(QUERIES))
    assert averages == pytest.approx(truth, abs=1e-7)  # a real query's values are rounded to 2^-30
    assert np.abs(at_their_word - truth).max() > 0.1


def test_own_bits_cost_one_epsilon_whatever_is_asked() -> None:
    """Clients of budget epsilon pay for any number of queries, in one round; of a little less they refuse before they answer."""
    algorithm = from_own_bits(PLAIN, blind(TABLE), "sick", EPSILON)
    oracle = PopulationOracle(Rows(TABLE), KeyedNoise(1), 0, EPSILON)
    assert len(run(algorithm, oracle)) == len(QUERIES)
    assert [(summary.n, summary.epsilon) for summary in oracle.rounds] == [(3, EPSILON)]
    with pytest.raises(RefusedError):
        run(algorithm, PopulationOracle(Rows(TABLE), KeyedNoise(1), 0, 0.99 * EPSILON))


@pytest.mark.parametrize("terms", [1, 3, 5, 7])
def test_a_sign_correlates_with_every_term(terms: int) -> None:
    """For all v and all signs z, exactly: the mean of z_j sign(<z, v>) is v_j C(t - 1, (t - 1) / 2) / 2^(t - 1); and for many terms about sqrt(2 / (pi t))."""
    signs = np.array(list(product((-1, 1), repeat=terms)))
    for v in signs:
        means = (signs * np.sign(signs @ v)[:, None]).mean(axis=0)
        assert means == pytest.approx(v * math.comb(terms - 1, terms // 2) / 2 ** (terms - 1), abs=1e-15)
        assert means == pytest.approx(v * sign_correlation(terms), abs=1e-12)
    assert sign_correlation(10_001) == pytest.approx(math.sqrt(2 / (math.pi * 10_001)), rel=1e-3)


def test_a_sign_is_told_of_yes_and_no_alone() -> None:
    """It is the sign of the sum under the client's own signs, of an odd number of terms; other queries are refused, and so are no clients."""
    rows = np.array(list(product((False, True), repeat=4)))
    for t in (3, 4):
        query = SignOfAll(tuple(StatisticalQuery(Bit(number), 0.1) for number in range(t)), 1, 2)
        sums = (2 * rows[:, :t].astype(int) - 1) @ query.signs[:t] + (0 if t % 2 else query.signs[t])
        assert len(query.signs) % 2 == 1
        assert query.values(packed(rows)).tolist() == (sums > 0).tolist()
        assert not np.array_equal(query.signs, SignOfAll(query.queries, 1, 0).signs) or t == 3
    with pytest.raises(InputError, match="yes/no"):
        one_sign_each(PLAIN, 1.0, 3, 1)
    with pytest.raises(InputError, match="give 1 or more"):
        one_sign_each(Nonadaptive(QUERIES[:1], lambda answers: answers), 1.0, 0, 1)


@pytest.mark.parametrize("translation", [one_query_each, one_sign_each])
def test_one_answer_each_is_unbiased(translation: Translation) -> None:
    """Three clients, two bits: over 600 draws of coins and reports the answers average to the table's; counted twice, they do not.

    Normal test at 1e-6. It costs epsilon, and needs a client.
    """
    held = packed(np.array([[True, False]] * 3))  # far from 0, so that a factor shows
    asked = tuple(StatisticalQuery(Bit(number), 0.1) for number in range(2))
    plain: Statistical[tuple[float, ...]] = Nonadaptive(asked, lambda answers: answers)
    oracles = [PopulationOracle(Rows(held), KeyedNoise(seed), 0, 3.0) for seed in range(600)]
    told: Floats = np.array([run(translation(plain, 3.0, 3, seed), oracle) for seed, oracle in enumerate(oracles)])
    truth = np.array(ExactOracle(Rows(held)).answer(asked))
    reach = stats.norm.isf(FAILURE / 4) * np.std(told, axis=0) / np.sqrt(len(told))
    assert np.all(np.abs(np.mean(told, axis=0) - truth) < reach)
    assert np.any(np.abs(2 * np.mean(told, axis=0) - truth) > reach)
    assert {summary.epsilon for oracle in oracles for summary in oracle.rounds} == {3.0}
    with pytest.raises(InputError, match="give 1 or more"):
        translation(plain, 1.0, 0, 1)
