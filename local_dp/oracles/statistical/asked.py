"""What a statistical-query oracle is asked (KLNRS Definition 4.1)."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records


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

    @property
    def span(self) -> int:
        """The whole number that `numerators` is divided by."""
        return self.query.domain.size - 1

    def numerators(self, records: Records) -> Counts:
        """span times the value of each record on the [-1, 1] scale: whole numbers, so that sums over records are exact. Shape (n,)."""
        domain = self.query.domain
        return 2 * self.query.values(records).astype(np.int64) - (domain.low + domain.high)
