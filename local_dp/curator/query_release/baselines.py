"""What many counting queries are to be answered better than: noise of its own on every count."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Counts
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.query_release.counting import CountingQueries
from local_dp.curator.rounded_normal import least_variance, rounded_normals
from local_dp.draws import Draws
from local_dp.loss import NANO, Pure


@dataclass(frozen=True, eq=False)
class LaplaceAnswers(WithinDelta[Counts, Counts]):
    """All k counts, each with discrete Laplace noise of its part of the budget.

    Privacy: (eps, delta): a replaced record moves at most `moved` of the counts, by 1 each, and so many parts are composed exactly.
    Utility: a largest error of about ln(k) / part, which grows as sqrt(k).
    """

    queries: CountingQueries
    epsilon: float
    delta: float

    @cached_property
    def part(self) -> Pure:
        """What each count that is moved costs."""
        return optimal_part(self.loss, max(1, moved(self.queries)))

    def release(self, database: Counts, draws: Draws) -> Counts:
        return self.queries.counts(database) + discrete_laplaces(draws, Fraction(self.part.nano, NANO), self.queries.k)


@dataclass(frozen=True, eq=False)
class GaussianAnswers(WithinDelta[Counts, Counts]):
    """All k counts, each with rounded normal noise. Privacy: (eps, delta), by the exact price of a vector that a record moves by sqrt(`moved`)."""

    queries: CountingQueries
    epsilon: float
    delta: float

    @cached_property
    def variance(self) -> int:
        """Of each count's noise before it is rounded."""
        return least_variance(max(1, moved(self.queries)), self.loss)

    def release(self, database: Counts, draws: Draws) -> Counts:
        return self.queries.counts(database) + rounded_normals(draws, self.variance, self.queries.k)


def moved(queries: CountingQueries) -> int:
    """The most counts that a replaced record can change: how many queries tell two points apart, at most. For random queries little more than half of them."""
    both = np.zeros((queries.points, queries.points))
    for _, block in queries.blocks(0):
        values = block.values.astype(np.float64)
        both += values.T @ values
    alone = both.diagonal()
    return int((alone[:, None] + alone - 2 * both).max())
