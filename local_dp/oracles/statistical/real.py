"""Statistical queries for the mean of a real function: what the simulation of local randomizers asks (KLNRS Section 4.4 uses them; limits 6, L6)."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.records import Records

SPAN = 1 << 30


@dataclass(frozen=True)
class RealQuery(StatisticalQuery):
    """Asks for the mean of a real function of `query`: `values` holds one number in [-1, 1] for each value of the query's domain, ascending."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(f"the tolerance is {self.tolerance}; a statistical query needs one strictly between 0 and 1")
        if len(self.values) != self.query.domain.size or max(map(abs, self.values)) > 1:
            raise InputError(f"a real function on {self.query.domain} needs {self.query.domain.size} values in [-1, 1]")

    def expectation(self, law: Floats) -> float:
        """The mean under a law over the query's domain, shape (domain size,)."""
        return float(law @ np.asarray(self.values))

    @property
    def span(self) -> int:
        """The whole number that `numerators` is divided by."""
        return SPAN

    def numerators(self, records: Records) -> Counts:
        """span times the function of each record, rounded to whole numbers, so that sums over records are exact. Shape (n,)."""
        places = np.rint(np.asarray(self.values) * SPAN).astype(np.int64)
        found: Counts = places[self.query.values(records).astype(np.int64) - self.query.domain.low]
        return found


def on_domain(query: StatisticalQuery) -> Floats:
    """What each value of the query's domain counts as, in [-1, 1], shape (domain size,)."""
    return np.asarray(query.values) if isinstance(query, RealQuery) else np.linspace(-1.0, 1.0, query.query.domain.size)
