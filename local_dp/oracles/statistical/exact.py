"""The oracle that knows the distribution."""

from abc import ABC, abstractmethod

from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population


class SQOracle(ABC):
    """Answers statistical queries, and counts queries and rounds."""

    def __init__(self) -> None:
        self.queries = 0
        self.rounds = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """One answer for each query, on the [-1, 1] scale."""
        self.rounds += 1
        self.queries += len(queries)
        return tuple(self.answer_one(query) for query in queries)

    @abstractmethod
    def answer_one(self, query: StatisticalQuery) -> float:
        """The answer to one query."""


class ExactOracle(SQOracle):
    """Answers with the exact expectation under the population's distribution."""

    def __init__(self, population: Population) -> None:
        super().__init__()
        self.population = population

    def answer_one(self, query: StatisticalQuery) -> float:
        if isinstance(self.population, Finite):  # a few kinds of record, where a law may have 65,537 values
            return float(self.population.shares @ query.numerators(self.population.kinds)) / query.span
        return query.expectation(self.population.law(query.query))
