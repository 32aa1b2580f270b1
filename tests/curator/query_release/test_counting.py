"""Counting queries: exact counts, and how many of them a record moves; and noise on each of them."""

import math

import numpy as np
import pytest

from local_dp.accounting.losses import gaussian_delta
from local_dp.accounting.rules import optimal_delta
from local_dp.curator.query_release.counting import CountingQueries, GaussianAnswers, LaplaceAnswers, moved, table
from local_dp.draws import Draws
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise
from tests.support.inputs.refusals import refuse

RANDOM = CountingQueries.random(5000, 40, np.random.default_rng(0))  # more than a block


def test_counts_are_exact() -> None:
    """As those of whole numbers, also with nearly 2^52 records and beyond one block of queries."""
    database = np.random.default_rng(1).integers(0, 1 << 46, 40)
    assert np.array_equal(RANDOM.counts(database), RANDOM.values.astype(np.int64) @ database)
    blocks = [block.values for _, block in RANDOM.blocks(17)]
    assert [len(block) for block in blocks] == [64, 128, 256, 512, 1024, 2048, 951]
    assert np.array_equal(np.concatenate(blocks), RANDOM.values[17:])


def test_what_a_record_moves() -> None:
    """By all pairs of points; one block and two."""
    for queries in (RANDOM, RANDOM.part(0, 50)):
        columns = queries.values.T
        assert moved(queries) == max(int((x != y).sum()) for x in columns for y in columns)


def test_noise_is_of_the_parts_that_move() -> None:
    """The parts' exact price is within delta, a nano-nat more is not; variance likewise. By k in place of what moves, it would be twice as much."""
    laplace, gaussian, many = LaplaceAnswers(RANDOM, 1.0, 1e-6), GaussianAnswers(RANDOM, 1.0, 1e-6), moved(RANDOM)
    assert many < 0.6 * RANDOM.k
    assert optimal_delta(laplace.part, many, Pure(laplace.loss.nano)) <= laplace.loss.atto < optimal_delta(Pure(laplace.part.nano + 1), many, Pure(10**9))
    assert gaussian_delta(math.sqrt(many / gaussian.variance), 1.0) <= 1e-6 < gaussian_delta(math.sqrt(many / (gaussian.variance - 1)), 1.0)
    database = table(np.arange(4000) % 40, 40)
    for release, spread in ((laplace, math.sqrt(2) / laplace.part.epsilon), (gaussian, math.sqrt(gaussian.variance))):
        off = release.release(database, Draws(KeyedNoise(1))) - RANDOM.counts(database)
        assert np.std(off) == pytest.approx(spread, rel=0.1)  # 5,000 draws: a relative standard error of 1.6 % for Laplace noise, so six of them


def test_bad_input() -> None:
    refuse(
        ("give truth values", lambda: CountingQueries(np.zeros((2, 2)))),  # type: ignore[arg-type]
        ("d is 9", lambda: CountingQueries.conjunctions(9)),
        ("number of records is 0", lambda: RANDOM.counts(np.zeros(40, dtype=np.int64))),
        ("how often each of 40", lambda: RANDOM.counts(np.ones(3, dtype=np.int64))),
        ("how often each of 40", lambda: RANDOM.counts(-np.ones(40, dtype=np.int64))),
        ("some point is 3", lambda: table(np.array([3]), 3)),
    )
