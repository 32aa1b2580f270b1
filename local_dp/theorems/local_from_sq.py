"""Local algorithms from SQ algorithms: KLNRS Lemma 4.3 and Theorem 4.8, one direction.

`local_from_sq` gives every statistical query fresh clients. Two other ways to spend the same clients stand beside it, to be compared: `split_budget`,
where everybody answers every query, and `one_random_query`, where everybody draws the query to answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, overload

import numpy as np

from local_dp.arrays import Ints
from local_dp.bounds.response import rr_clients_exact, rr_clients_hoeffding
from local_dp.domains import Domain, levels
from local_dp.errors import InputError
from local_dp.interaction import R, translate
from local_dp.loss import split_epsilon
from local_dp.noise import stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalAlgorithm, LocalQuery, LocalRounds
from local_dp.oracles.statistical.oracles import RealQuery, Statistical, StatisticalAlgorithm, StatisticalQuery, StatisticalRounds, on_domain
from local_dp.queries.numbers import STEPS
from local_dp.queries.query import Query
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally

ClientsFor: TypeAlias = Callable[[StatisticalQuery], int]


def enough_clients(epsilon: float, beta_each: float) -> ClientsFor:
    """How many fresh clients a query's tolerance needs, except with probability `beta_each` (give beta / t for t queries)."""
    return lambda query: rr_clients_hoeffding(epsilon, query.tolerance, beta_each)


def tight_clients(epsilon: float, beta_each: float) -> ClientsFor:
    """The same by the exact binomial law (`bounds.response.rr_clients_exact`), about half of `enough_clients`."""
    return lambda query: rr_clients_exact(epsilon, query.tolerance, beta_each)


@dataclass(frozen=True)
class Rescaled(Query):
    """A real function of another query's value, as a level: `places` holds one lattice point for each value of that query's domain."""

    name: ClassVar[str] = "rescaled"
    query: Query
    places: tuple[int, ...]

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        values = self.query.values(records).astype(np.int64) - self.query.domain.low
        looked_up: Ints = np.array(self.places, dtype=np.int64)[values]
        return looked_up


def put_to_records(query: StatisticalQuery) -> Query:
    """What a record is asked: the query itself, or a real function of it rounded to 2^-16 of its range."""
    if not isinstance(query, RealQuery):
        return query.query
    return Rescaled(query.query, tuple(np.rint((on_domain(query) + 1) / 2 * STEPS).astype(np.int64).tolist()))


def local_query(query: StatisticalQuery, epsilon: float, cohort: Cohort) -> LocalQuery:
    """The statistical query put to a cohort under the minimax one-bit randomizer of its values."""
    asked = put_to_records(query)
    randomizer: Randomizer = OneBitMean(epsilon, steps=asked.domain.high) if asked.domain.kind == "levels" else BinaryRR(epsilon)
    return LocalQuery(asked, randomizer, cohort)


def read(queries: tuple[StatisticalQuery, ...], asked: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[float, ...]:
    """The answers to statistical queries, on the [-1, 1] scale."""
    return tuple(2 * float(query.randomizer.estimate(tally).value) - 1 for query, tally in zip(asked, tallies, strict=True))


@overload
def local_from_sq(algorithm: Statistical[R], epsilon: float, clients_for: ClientsFor) -> Local[R]: ...
@overload
def local_from_sq(algorithm: StatisticalRounds[R], epsilon: float, clients_for: ClientsFor) -> LocalRounds[R]: ...
def local_from_sq(algorithm: StatisticalAlgorithm[R], epsilon: float, clients_for: ClientsFor) -> LocalAlgorithm[R]:
    """The same algorithm with every statistical query answered by fresh clients under randomized response.

    Privacy: each client answers at most once, with epsilon. Utility: with `tight_clients(epsilon, beta / t)` all of t answers are within their tolerances
    except with probability beta. Preserves adaptivity, and its type says so. Source: KLNRS Lemma 4.3 and Theorem 4.8; randomized response in place of
    Laplace noise needs half the clients or fewer (limits 1).
    """

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[LocalQuery, ...]) -> tuple[LocalQuery, ...]:
        asked, used = [], before[-1].cohort.stop if before else 0
        for query in queries:
            cohort = Cohort(used, used + clients_for(query))
            asked.append(local_query(query, epsilon, cohort))
            used = cohort.stop
        return tuple(asked)

    return translate(algorithm, ask, read)


@overload
def split_budget(algorithm: Statistical[R], epsilon: float, clients: int, queries: int) -> Local[R]: ...
@overload
def split_budget(algorithm: StatisticalRounds[R], epsilon: float, clients: int, queries: int) -> LocalRounds[R]: ...
def split_budget(algorithm: StatisticalAlgorithm[R], epsilon: float, clients: int, queries: int) -> LocalAlgorithm[R]:
    """The same algorithm with every statistical query answered by every client with epsilon / `queries`, as many asks a round as the algorithm has.

    Privacy: epsilon in all, by composition (KLNRS Claim 2.1). Utility: variance C(eps/t)^2 / n a query, t times worse than fresh clients at small epsilon
    (`bounds.response.split_budget_cost`): a baseline. Preserves adaptivity: what was fixed beforehand is asked in one round (KLNRS Definition 4.4).
    Raises InputError when the algorithm asks more than `queries`.
    """
    each = split_epsilon(epsilon, queries)
    everybody = Cohort(0, clients)

    def ask(asked: tuple[StatisticalQuery, ...], before: tuple[LocalQuery, ...]) -> tuple[LocalQuery, ...]:
        if len(before) + len(asked) > queries:
            raise InputError(f"epsilon is split over {queries} queries and the algorithm asks more; split it over as many as it may ask")
        return tuple(local_query(query, each, everybody) for query in asked)

    return translate(algorithm, ask, read)


def one_random_query(algorithm: Statistical[R], epsilon: float, clients: int, seed: int) -> Local[R]:
    """The same algorithm with every client answering one of the t queries, drawn at random by a public coin.

    Cohorts of multinomial sizes stand for the draws: clients are independent draws of one distribution, so the law is the same. Privacy: epsilon.
    Utility: variance about t C^2 / n a query, that of fresh clients up to the spread of the sizes. Raises InputError if a query gets no client.
    """
    t = len(algorithm.queries)
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key("one-random-query", seed), "little")))
    sizes = generator.multinomial(clients, np.full(t, 1 / t))
    if sizes.min() < 1:
        raise InputError(f"{clients} clients drew one of {t} queries each, and one query was drawn by nobody; use more clients")
    drawn = iter(sizes.tolist())
    return local_from_sq(algorithm, epsilon, lambda query: next(drawn))
