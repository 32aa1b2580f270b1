"""BLR: its exact law over all neighbours of four points, its weights, and what a histogram does better."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.arrays import Counts
from local_dp.curator.laws import SmallDatabases, epsilon_of
from local_dp.curator.query_release.counting import CountingQueries, table
from local_dp.curator.query_release.small_databases import SmallDatabase, rows_for
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise

QUERIES = CountingQueries.conjunctions(2)


def worst(rows: int, n: int) -> float:
    """The loss over all pairs of neighbours of n records of four points, at epsilon 1."""
    databases = SmallDatabases([(point,) for point in range(4)], n, lambda records: table(np.array([point for (point,) in records]), 4))
    return epsilon_of(max(databases.worst_ratios(SmallDatabase(QUERIES, rows, 1.0)).values()))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_private_by_enumeration(n: int) -> None:
    """N = 4: with one, two and three rows the loss is at most epsilon, and half of it or more."""
    for rows in (1, 2, 3):
        assert 0.49 < worst(rows, n) <= 1


def test_the_printed_weights_lose_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the half of the exponential mechanism, and by a score that a record is said to move by 1 whatever the rows."""
    right = SmallDatabase.choice
    monkeypatch.setattr(SmallDatabase, "choice", property(lambda release: ExponentialChoice(2.0, release.rows)))
    assert worst(2, 2) > 1
    monkeypatch.setattr(SmallDatabase, "choice", property(lambda release: ExponentialChoice(1.0)))
    assert worst(3, 2) > 1
    monkeypatch.setattr(SmallDatabase, "choice", right)
    assert worst(3, 2) <= 1


def test_it_weighs_sequences() -> None:
    """A multiset's weight is its orders times e^(-eps n error / 2): all multisets of 3 of 4 points, against the formula in floats."""
    database, n = np.array([3, 1, 0, 2]), 6
    law = SmallDatabase(QUERIES, 3, 1.0).law(database)
    found = {}
    for rows in combinations_with_replacement(range(4), 3):
        counts = np.bincount(rows, minlength=4)
        error = np.abs(QUERIES.shares(counts / 3) - QUERIES.shares(database / n)).max()
        found[tuple(counts.tolist())] = math.factorial(3) / math.prod(map(math.factorial, counts.tolist())) * math.exp(-n * error / 2)
    total, weight = sum(law.values()), sum(found.values())
    assert set(law) == set(found)
    assert max(abs(float(Fraction(law[key], total)) - found[key] / weight) for key in law) < 1e-9


def test_the_code_draws_from_its_law() -> None:
    """3,000 draws fit (chi-squared, failure 1e-6); not the law of four times the epsilon."""
    database: Counts = np.array([3, 1, 0, 2])
    draws = Draws(KeyedNoise(4))
    drawn = Counter(SmallDatabase(QUERIES, 2, 1.0).release(database, draws) for _ in range(3000))

    def p_value(epsilon: float) -> float:
        law = SmallDatabase(QUERIES, 2, epsilon).law(database)
        return float(chisquare([drawn[key] for key in law], [3000 * weight / sum(law.values()) for weight in law.values()]).pvalue)

    assert p_value(1.0) > 1e-6 > p_value(4.0)


def test_rows_that_are_enough() -> None:
    """Of ln(2 k) / (2 alpha^2) rows some are within alpha, so 27 conjunctions of 3 bits are answered within 2 alpha by 10^5 records; one row is not enough."""
    queries, alpha = CountingQueries.conjunctions(3), 0.45
    rows, n = rows_for(27, alpha), 10**5
    assert rows == 10
    database = np.random.default_rng(0).multinomial(n, np.full(8, 1 / 8))
    errors = {}
    for each in (rows, 1):
        told = SmallDatabase(queries, each, 1.0).release(database, Draws(KeyedNoise(1)))
        assert sum(told) == each
        errors[each] = float(np.abs(queries.shares(np.array(told) / each) - queries.shares(database / n)).max())
    assert errors[rows] < 2 * alpha / 4 < 0.4 < errors[1]


def test_bad_input_gets_a_line() -> None:
    for made, said in (
        (lambda: SmallDatabase(QUERIES, 0, 1.0), "rows is 0"),
        (lambda: SmallDatabase(CountingQueries.conjunctions(6), 6, 1.0), "too many databases of 6 rows of 64 points"),
        (lambda: SmallDatabase(CountingQueries.conjunctions(3), 8, 1.0).law(np.ones(8, dtype=np.int64)), "a law is listed up to"),
    ):
        with pytest.raises(InputError, match=said):
            made()
