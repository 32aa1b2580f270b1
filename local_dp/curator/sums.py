"""Noisy sums: the answers of SuLQ (Blum, Dwork, McSherry, Nissim 2005; KLNRS Section 4, [7])."""

from dataclasses import dataclass

import numpy as np

from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.queries.query import Query
from local_dp.records import Records, chunks

_CHUNK = 1 << 16


@dataclass(frozen=True)
class NoisySum(ClippedAnswer[Records | Population]):
    """The sum over n records of a query's values, each counted as 0..m, plus discrete Laplace noise of ratio e^(-eps / m), clipped to 0..n m.

    Privacy: epsilon, exactly, since replacing one record moves the sum by at most m; n is public. Utility: standard error sqrt(2) m / eps. Cost: one pass.
    """

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(f"query {self.query.name!r} has values in {self.query.domain}; give a query with levels, or with two values")

    @property
    def sensitivity(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    def noisy(self, database: Records | Population) -> tuple[int, ClippedLaplace]:
        population = Rows(database) if isinstance(database, Records) else database
        total, low = 0, self.query.domain.low
        for start, stop in chunks(0, population.size, _CHUNK):
            values = self.query.values(population.batch(start, stop))
            total += int(values.astype(np.int64).sum()) - low * (stop - start)
        return total, ClippedLaplace(nano_epsilon(self.epsilon), self.sensitivity, self.sensitivity * population.size)
