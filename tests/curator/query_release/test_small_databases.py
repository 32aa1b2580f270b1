"""BLR: its weights and its error."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from local_dp.curator.query_release.counting import CountingQueries, SmallDatabase
from local_dp.draws import Draws
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

QUERIES = CountingQueries.conjunctions(2)


def test_it_weighs_sequences() -> None:
    """A multiset's weight is its orders times e^(-eps n error / 2): all multisets of 3 of 4 points, against the formula in floats."""
    database, n = np.array([3, 1, 0, 2]), 6
    law = SmallDatabase(QUERIES, 3, 1.0).law(database)
    weights = {}
    for rows in combinations_with_replacement(range(4), 3):
        counts = np.bincount(rows, minlength=4)
        error = np.abs(QUERIES.shares(counts / 3) - QUERIES.shares(database / n)).max()
        weights[tuple(counts.tolist())] = math.factorial(3) / math.prod(map(math.factorial, counts.tolist())) * math.exp(-n * error / 2)
    total, weight = sum(law.values()), sum(weights.values())
    assert set(law) == set(weights)
    assert max(abs(float(Fraction(law[key], total)) - weights[key] / weight) for key in law) < 1e-9


def test_rows_that_are_enough() -> None:
    """Of ln(2 k) / (2 alpha^2) rows some are within alpha, so 27 conjunctions of 3 bits are answered within 2 alpha by 10^5 records; one row is not enough."""
    queries, alpha = CountingQueries.conjunctions(3), 0.45
    rows, n = math.ceil(math.log(2 * 27) / (2 * alpha**2)), 10**5
    assert rows == 10
    database = np.random.default_rng(0).multinomial(n, np.full(8, 1 / 8))
    errors = {}
    for each in (rows, 1):
        counts = SmallDatabase(queries, each, 1.0).release(database, Draws(KeyedNoise(1)))
        assert sum(counts) == each
        errors[each] = float(np.abs(queries.shares(np.array(counts) / each) - queries.shares(database / n)).max())
    assert errors[rows] < 2 * alpha / 4 < 0.4 < errors[1]


def test_bad_input() -> None:
    refuse(
        ("rows is 0", lambda: SmallDatabase(QUERIES, 0, 1.0)),
        ("too many databases of 6 rows of 64 points", lambda: SmallDatabase(CountingQueries.conjunctions(6), 6, 1.0)),
        ("a law is listed up to", lambda: SmallDatabase(CountingQueries.conjunctions(3), 8, 1.0).law(np.ones(8, dtype=np.int64))),
    )
