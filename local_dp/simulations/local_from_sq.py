"""Local algorithms from SQ algorithms: KLNRS Lemma 4.3 and Theorem 4.8, one direction."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar, overload

from local_dp import bounds
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.oracles.local import Cohort, LocalQuery
from local_dp.oracles.sq import StatisticalQuery
from local_dp.randomizers.base import Domain, Randomizer, Tally
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.randomizers.one_bit_mean import OneBitMean

R = TypeVar("R")


ClientsFor: TypeAlias = Callable[[StatisticalQuery], int]


def enough_clients(epsilon: float, beta_each: float) -> ClientsFor:
    """How many fresh clients a query's tolerance needs, except with probability `beta_each` (give beta / t for t queries)."""
    return lambda query: bounds.rr_clients_hoeffding(epsilon, query.tolerance, beta_each)


class _FreshClients:
    """Hands each statistical query its own cohort, so that every client answers once with its whole epsilon."""

    def __init__(self, epsilon: float, clients_for: ClientsFor) -> None:
        self.epsilon = epsilon
        self.clients_for = clients_for
        self.used = 0

    def ask(self, queries: tuple[StatisticalQuery, ...]) -> tuple[LocalQuery, ...]:
        """One local query for each statistical query."""
        asked = []
        for query in queries:
            cohort = Cohort(self.used, self.used + self.clients_for(query))
            asked.append(LocalQuery(query.query, self.randomizer(query.query.domain), cohort))
            self.used = cohort.stop
        return tuple(asked)

    def randomizer(self, domain: Domain) -> Randomizer:
        """The minimax one-bit randomizer of a query with values in `domain`."""
        return OneBitMean(self.epsilon, steps=domain.high) if domain.kind == "levels" else BinaryRR(self.epsilon)


def read(queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[float, ...]:
    """The answers to statistical queries, on the [-1, 1] scale."""
    return tuple(2 * float(query.randomizer.estimate(tally).value) - 1 for query, tally in zip(queries, tallies, strict=True))


@overload
def local_from_sq(algorithm: Nonadaptive[StatisticalQuery, float, R], epsilon: float, clients_for: ClientsFor) -> Nonadaptive[LocalQuery, Tally, R]: ...
@overload
def local_from_sq(algorithm: Adaptive[StatisticalQuery, float, R], epsilon: float, clients_for: ClientsFor) -> Adaptive[LocalQuery, Tally, R]: ...
def local_from_sq(
    algorithm: Nonadaptive[StatisticalQuery, float, R] | Adaptive[StatisticalQuery, float, R],
    epsilon: float,
    clients_for: ClientsFor,
) -> Nonadaptive[LocalQuery, Tally, R] | Adaptive[LocalQuery, Tally, R]:
    """The same algorithm with every statistical query answered by fresh clients under randomized response.

    Privacy: each client answers at most once, with epsilon. Utility: with `enough_clients(epsilon, beta / t)` all of t answers are within their tolerances
    except with probability beta. Preserves adaptivity, and its type says so. Source: KLNRS Lemma 4.3 and Theorem 4.8; randomized response in place of
    Laplace noise needs half the clients or fewer (limits 1).
    """
    if isinstance(algorithm, Nonadaptive):
        asked, decode = _FreshClients(epsilon, clients_for).ask(algorithm.queries), algorithm.decode
        return Nonadaptive(asked, lambda tallies: decode(read(asked, tallies)))

    def play() -> Play[LocalQuery, Tally, R]:
        fresh = _FreshClients(epsilon, clients_for)
        inner = algorithm.play()
        try:
            queries = next(inner)
            while True:
                asked = fresh.ask(queries)
                queries = inner.send(read(asked, (yield asked)))
        except StopIteration as finished:
            result: R = finished.value
            return result

    return Adaptive(play)
