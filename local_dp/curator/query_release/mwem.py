"""MWEM over listed counting queries: each round counts the query that a table of weights answers
badly, and fits the weights to all counts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.account import PaidOracle
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.query_release.boosting import Asks, BadlyAnswered, fitted
from local_dp.curator.query_release.counting import MAX_RECORDS, CountingQueries
from local_dp.curator.query_release.pmw import NoisyCount
from local_dp.draws import Draws
from local_dp.interaction import Adaptive, Play, run
from local_dp.loss import Pure


@dataclass(frozen=True, eq=False)
class CountingMwem(WithinDelta[Counts, Floats]):
    """The weights on the points, shape (N,) of sum 1, that answer k counting queries.

    Each round chooses a query by the exponential mechanism, with its error as the score, and counts
    it with noise. Then it passes over all counts once. Privacy: (eps, delta): T choices and T
    counts, each of loss `part`, are composed exactly. Utility: measured. Cost: O(k N) a round and
    O(T^2 N) in all. Source: Hardt, Ligett, McSherry 2012; the last weights in place of their mean,
    as in its Section 2.3; lecture notes 3.2.3.
    """

    summary = "Releases weights on points that answer counting queries"
    queries: CountingQueries
    rounds: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("rounds", self.rounds, 1, 1 << 10)

    @cached_property
    def part(self) -> Pure:
        return optimal_part(self.loss, 2 * self.rounds)

    def release(self, database: Counts, draws: Draws) -> Floats:
        return run(self.algorithm(self.queries.size_of(database)), PaidOracle(database, draws))

    def algorithm(self, size: int) -> Adaptive[Asks, Any, Floats]:
        """For a table of `size` records, which are public."""
        check_whole("the number of records", size, 1, MAX_RECORDS)
        return Adaptive(lambda: self._play(size))

    def _play(self, size: int) -> Play[Asks, Any, Floats]:
        queries, each = self.queries, self.part.epsilon
        weights = np.full(queries.points, 1 / queries.points)
        measurements = list[tuple[Ints, float]]()
        for _ in range(self.rounds):
            expected = np.rint(size * queries.shares(weights)).astype(np.int64)
            ((query,),) = yield (BadlyAnswered(queries, expected[None], 0, size, 1, each),)
            (count,) = yield (NoisyCount(queries, query, each),)
            measurements.append((np.flatnonzero(queries.values[query]), count / size))
            weights = fitted(weights, measurements, 1)
        return weights
