"""The oracle that answers from one sample."""

from local_dp.errors import InputError
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import SQOracle
from local_dp.populations.population import Population
from local_dp.records import chunks

CHUNK = 1 << 16


class EmpiricalOracle(SQOracle):
    """Answers with the mean over the first n individuals of the population: one sample, reused by every query.

    Within tau of the expectation except with probability 2 exp(-n tau^2 / 2) for a query fixed beforehand (Hoeffding).
    """

    def __init__(self, population: Population, n: int) -> None:
        super().__init__()
        if not 1 <= n <= population.size:
            raise InputError(f"the sample has n = {n}; give from 1 to the population's {population.size}")
        self.population = population
        self.n = n

    def answer_one(self, query: StatisticalQuery) -> float:
        sums = (query.numerators(self.population.batch(start, stop)).sum() for start, stop in chunks(0, self.n, CHUNK))
        return int(sum(sums)) / (self.n * query.span)
