"""A population of the rows of a table."""

import numpy as np

from local_dp.arrays import Floats
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population, weights_of_values
from local_dp.queries.query import Query
from local_dp.records import Records


class Resampled(Finite):
    """As many clients as are wanted, each with a row of the table drawn with replacement: the distribution is the table itself. Memory does not grow with n."""

    def __init__(self, records: Records, size: int, seed: int) -> None:
        super().__init__(records, [1.0] * len(records), size, seed)

    @property
    def whole(self) -> Records:
        return self.kinds


class Rows(Population):
    """Rows held in memory: client i holds row i. Its law is that of the whole table the rows were sampled from, if that is given."""

    remembers = True

    def __init__(self, records: Records, sampled_from: Records | None = None) -> None:
        super().__init__(len(records))
        self.records = records
        self.whole = records if sampled_from is None else sampled_from

    def batch(self, start: int, stop: int) -> Records:
        return self.records.take(slice(start, stop))

    def law(self, query: Query) -> Floats:
        return weights_of_values(query, self.whole) / len(self.whole)

    def value_counts(self, query: Query, start: int, stop: int, generator: np.random.Generator) -> dict[int, int]:
        counts = weights_of_values(query, self.batch(start, stop))
        held = np.flatnonzero(counts)
        return dict(zip((held + query.domain.low).tolist(), counts[held].astype(int).tolist(), strict=True))


def weighted_records(population: Population) -> tuple[Records, Floats]:
    """The records of which the distribution of a `Finite` population or of a table is made, and their weights, shape (n,)."""
    if isinstance(population, Finite):
        return population.kinds, population.shares
    assert isinstance(population, Rows)
    return population.whole, np.ones(len(population.whole))
