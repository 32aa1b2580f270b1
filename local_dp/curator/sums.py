"""Noisy sums: what SuLQ answers with (Blum, Dwork, McSherry, Nissim 2005; KLNRS Section 4, [7])."""

from dataclasses import dataclass

import numpy as np

from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure, nano_epsilon
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.queries.query import Query
from local_dp.records import Records, chunks

_CHUNK = 1 << 16


@dataclass(frozen=True)
class NoisySum(Mechanism[Records | Population, int, Pure]):
    """The sum over all n records of a query's values, counted 0..m from the lowest, plus discrete Laplace noise of ratio e^(-eps / m), clipped to 0..n m.

    Privacy: replacing one record moves the sum by at most m, so epsilon, exactly; n is public. Utility: standard error sqrt(2) m / eps. Cost: one pass.
    """

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(f"query {self.query.name!r} has values in {self.query.domain}; a sum is of levels, or of two values")

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @property
    def sensitivity(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    def release(self, database: Records | Population, draws: Draws) -> int:
        total, noise = self._total(database)
        return noise.add(total, draws)

    def law(self, database: Records | Population) -> Law[int]:
        total, noise = self._total(database)
        return noise.law(total)

    def _total(self, database: Records | Population) -> tuple[int, ClippedLaplace]:
        """The exact sum and its noise."""
        population = Rows(database) if isinstance(database, Records) else database
        total, low = 0, self.query.domain.low
        for start, stop in chunks(0, population.size, _CHUNK):
            values = self.query.values(population.batch(start, stop))
            total += int(values.astype(np.int64).sum()) - low * (stop - start)
        return total, ClippedLaplace(nano_epsilon(self.epsilon), self.sensitivity, self.sensitivity * population.size)
