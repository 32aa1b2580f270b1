"""Local algorithms from SQ algorithms with more queries than there are clients: one report a client, and every query answered from all of them."""

from typing import TypeVar

import numpy as np

from local_dp.arrays import Column, Floats
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive, translate
from local_dp.noise import stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.queries.examples import Correlation
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import local_query

R = TypeVar("R")
Local = Nonadaptive[LocalQuery, Tally, R]


def from_own_bits(algorithm: Nonadaptive[StatisticalQuery, float, R], public: Records, secret: str, epsilon: float) -> Local[R]:
    """The same algorithm on a table of which everything but one column of bits is public: client i tells the bit of row i once, by randomized response.

    The server knows what row i would answer with either bit, and mixes the two answers by its estimate of the bit. Privacy: epsilon for the bit, whatever the
    number of queries. Utility: unbiased for the table; n rows that all matter give a standard error of C / sqrt(n) or less on the [-1, 1] scale, C = (e^eps +
    1) / (e^eps - 1). `public` needs its `secret` column for the name alone. Source: the best any local algorithm can do for one bit a client (limits 1).
    """
    n = len(public)
    asked = tuple(LocalQuery(Correlation((), secret), BinaryRR(epsilon=epsilon), Cohort(i, i + 1)) for i in range(n))
    without, given = (_completed(public, secret, bit) for bit in (0, 1))

    def read(queries: tuple[StatisticalQuery, ...], asked: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[float, ...]:
        shares = np.array([float(query.randomizer.estimate(tally).value) for query, tally in zip(asked, tallies, strict=True)])
        return tuple(_mixed(query, without, given, shares) for query in queries)

    return translate(algorithm, lambda queries, before: asked, read)


def _completed(public: Records, secret: str, bit: int) -> Records:
    column: Column = np.full(len(public), bit, dtype=np.uint8)
    return Records({**public.columns, secret: column})


def _mixed(query: StatisticalQuery, without: Records, given: Records, shares: Floats) -> float:
    low, high = (query.numerators(table) / query.span for table in (without, given))
    return float(np.mean(low + (high - low) * shares))


def one_query_each(algorithm: Nonadaptive[StatisticalQuery, float, R], epsilon: float, clients: int, seed: int) -> Local[R]:
    """The same algorithm with each client answering one of its t queries, drawn by a public coin; an answer counts t times.

    Privacy: epsilon. Utility: unbiased for the clients' own table, variance about t C^2 / n a query on the [-1, 1] scale; unlike `one_random_query` it needs
    no client for each query. Raises InputError without clients.
    """
    if clients < 1:
        raise InputError(f"clients is {clients}; give 1 or more")
    t = len(algorithm.queries)
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key("one-query-each", seed), "little")))
    drawn = generator.integers(t, size=clients)

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[LocalQuery, ...]) -> tuple[LocalQuery, ...]:
        return tuple(local_query(queries[place], epsilon, Cohort(client, client + 1)) for client, place in enumerate(drawn.tolist()))

    def read(queries: tuple[StatisticalQuery, ...], asked: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[float, ...]:
        told = [2 * float(query.randomizer.estimate(tally).value) - 1 for query, tally in zip(asked, tallies, strict=True)]
        sums = np.bincount(drawn, weights=told, minlength=t)
        return tuple((sums * (t / clients)).tolist())

    return translate(algorithm, ask, read)
