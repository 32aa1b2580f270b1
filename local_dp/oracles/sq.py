"""Statistical queries (KLNRS Definition 4.1)."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.populations import Population
from local_dp.queries import Query


@dataclass(frozen=True)
class StatisticalQuery:
    """Asks for the expectation over the distribution of a query with values in [-1, 1], within `tolerance`.

    A yes/no query counts as +1 for yes and -1 for no (Definition 4.1's {+1, -1}); a query with values on a lattice of levels counts as 2 x - 1.
    """

    query: Query
    tolerance: float

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(f"the tolerance is {self.tolerance}; a statistical query needs one strictly between 0 and 1")
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(f"query {self.query.name!r} has values in {self.query.domain}; a statistical query has two, or levels")

    def expectation(self, law: Floats) -> float:
        """The expectation on the [-1, 1] scale under a law over the query's domain, shape (domain size,)."""
        return float(law @ np.linspace(-1.0, 1.0, len(law)))


class ExactOracle:
    """Answers with the exact expectation under the population's distribution. Counts queries and rounds."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.queries = 0
        self.rounds = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """The expectations, on the [-1, 1] scale."""
        self.rounds += 1
        self.queries += len(queries)
        return tuple(query.expectation(self.population.law(query.query)) for query in queries)
