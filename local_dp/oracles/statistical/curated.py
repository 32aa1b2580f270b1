"""SuLQ: statistical queries answered by a trusted curator's noisy sums (Blum, Dwork, McSherry, Nissim 2005; KLNRS Section 4, [7])."""

from fractions import Fraction
from typing import Self

import numpy as np

from local_dp.draws import Draws
from local_dp.ledger import Charge, Ledger
from local_dp.loss import NANO, nano_epsilon, split_epsilon
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.populations.base import Population
from local_dp.records import chunks

_CHUNK = 1 << 16


class CuratedOracle:
    """Answers each query with the sum over all n records plus discrete Laplace noise, at `each` nats a query. Counts queries and rounds.

    Privacy: exchanging one record moves a sum of values 0..m by at most m, so noise of ratio e^(-each / m), sampled exactly, costs `each`; the costs add up
    (KLNRS Claim 2.1) and a query beyond `budget` is refused before anything is drawn. Utility: standard error about sqrt(8) / (n each) on the [-1, 1] scale
    beside the sampling error, so `enough_records` answers t queries within their tolerances. Cost: one pass over the records a query.
    """

    def __init__(self, population: Population, draws: Draws, budget: float, each: float) -> None:
        self.population = population
        self.queries = 0
        self.rounds = 0
        self._draws = draws
        self._each = nano_epsilon(each)
        self._ledger = Ledger(budget)

    @classmethod
    def for_queries(cls, population: Population, draws: Draws, budget: float, queries: int) -> Self:
        """The budget split equally over a declared number of queries."""
        return cls(population, draws, budget, split_epsilon(budget, queries))

    @property
    def max_epsilon_spent(self) -> float:
        """What every record has spent, in nats."""
        return self._ledger.max_spent

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """The noisy means, on the [-1, 1] scale, clipped to it. Raises RefusedError("budget") before anything is drawn."""
        if queries:
            self._ledger.charge("curator", [Charge(0, 1, self._each * len(queries))])  # all records spend alike: one entry stands for all
        self.rounds += 1
        self.queries += len(queries)
        return tuple(self._answer(query) for query in queries)

    def _answer(self, query: StatisticalQuery) -> float:
        domain, n = query.query.domain, self.population.size
        most = domain.size - 1
        total = 0
        for start, stop in chunks(0, n, _CHUNK):
            values = query.query.values(self.population.batch(start, stop))
            total += int(values.astype(np.int64).sum()) - domain.low * (stop - start)
        noisy = total + self._draws.discrete_laplace(Fraction(self._each, NANO * most))
        return min(1.0, max(-1.0, 2 * noisy / (most * n) - 1))
