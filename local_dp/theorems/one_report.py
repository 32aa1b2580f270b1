"""Local algorithms from SQ algorithms with more queries than there are clients: one report a client, and every query answered from all of them."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Column, Counts, Floats, Ints
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.interaction import R, translate
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.queries.examples import Correlation
from local_dp.queries.query import Query
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import local_query


def from_own_bits(algorithm: Statistical[R], public: Records, secret: str, epsilon: float) -> Local[R]:
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


def one_query_each(algorithm: Statistical[R], epsilon: float, clients: int, seed: int) -> Local[R]:
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


@dataclass(frozen=True)
class SignOfAll(Query):
    """1 where the sum of all yes/no queries, as +1 and -1, each under a public sign of this client's, is positive; an odd number of terms is never 0."""

    name: ClassVar[str] = "sign-of-all"
    queries: tuple[StatisticalQuery, ...]
    seed: int
    client: int

    @property
    def domain(self) -> Domain:
        return symbols(2)

    @property
    def signs(self) -> Counts:
        """+1 or -1 for each query, and where these are even in number for a last term that is always +1, shape (t,) or (t + 1,)."""
        terms = len(self.queries) | 1
        words = philox_words(stream_key("one-sign-each", self.seed, self.client), 0, -(-terms // 64))
        signs: Counts = 2 * np.unpackbits(words.view(np.uint8))[:terms].astype(np.int64) - 1
        return signs

    def __call__(self, records: Records) -> Ints:
        signs = self.signs
        total = np.full(len(records), 0 if len(self.queries) % 2 else signs[-1], dtype=np.int64)
        for sign, query in zip(signs.tolist(), self.queries, strict=False):
            total += sign * query.numerators(records)
        return (total > 0).view(np.uint8)


def sign_correlation(terms: int) -> float:
    """E[z_j sign(<z, v>)] v_j for fair signs z, any v of +1 and -1, and every j: C(t - 1, (t - 1) / 2) / 2^(t - 1) for an odd t, about sqrt(2 / (pi t))."""
    half = terms // 2
    return math.exp(math.lgamma(2 * half + 1) - 2 * math.lgamma(half + 1) - 2 * half * math.log(2))


def one_sign_each(algorithm: Statistical[R], epsilon: float, clients: int, seed: int) -> Local[R]:
    """The same algorithm with each client telling one sign, of the sum of its answers to all t yes/no queries under signs of its own by public coins.

    Privacy: epsilon. Utility: unbiased for the clients' own table, standard error about C sqrt(pi t / (2 n)) for every query on the [-1, 1] scale, so that the
    largest error of t answers is smaller than by `one_query_each`. Raises InputError without clients, or for a query that is no yes/no query.
    Source: Duchi, Jordan, Wainwright 2018, whose vectors of one length these are, with the report in place of the vector.
    """
    if clients < 1:
        raise InputError(f"clients is {clients}; give 1 or more")
    if any(query.span != 1 for query in algorithm.queries):
        raise InputError("a sign is told of yes/no queries alone; `boolean_from_real` makes them of others")
    told = [SignOfAll(algorithm.queries, seed, client) for client in range(clients)]

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[LocalQuery, ...]) -> tuple[LocalQuery, ...]:
        return tuple(LocalQuery(query, BinaryRR(epsilon=epsilon), Cohort(query.client, query.client + 1)) for query in told)

    def read(queries: tuple[StatisticalQuery, ...], asked: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[float, ...]:
        sums = np.zeros(len(queries))
        for query, sign, tally in zip(asked, told, tallies, strict=True):
            sums += (2 * float(query.randomizer.estimate(tally).value) - 1) * sign.signs[: len(queries)]
        return tuple((sums / (clients * sign_correlation(len(queries) | 1))).tolist())

    return translate(algorithm, ask, read)
