"""SuLQ: statistical queries answered by a trusted curator's noisy sums (Blum, Dwork, McSherry, Nissim 2005; KLNRS Section 4, [7])."""

import math
from fractions import Fraction
from typing import Self

import numpy as np

from local_dp.budget import NANO, Ledger, nano_epsilon, split_epsilon
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.oracles.sq import StatisticalQuery
from local_dp.populations import Population
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
            self._ledger.charge("curator", 0, 1, self._each * len(queries))  # all records spend alike: one entry stands for all
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


def enough_records(queries: int, epsilon: float, tau: float, beta: float) -> int:
    """n for which `queries` answers, epsilon / queries each, are all within tau of the expectation except with probability beta.

    n >= max(8 ln(4t / beta) / tau^2, 4t ln(4t / beta) / (eps tau)): half of tau for sampling (Hoeffding), half for noise (Pr[|Y| > y] <= 2 e^(-eps y / t)).
    Against the local model's C^2 t ln(t / beta) / tau^2, privacy is free once tau < eps / t.
    """
    if queries < 1 or not 0 < tau < 1 or not 0 < beta < 1:
        raise InputError(f"there are {queries} queries, tau = {tau}, beta = {beta}; give at least one query, and tau and beta strictly between 0 and 1")
    tail = math.log(4 * queries / beta)
    return math.ceil(max(8 * tail / tau**2, 4 * queries * tail / (epsilon * tau)))
