"""Cases of `local_dp/curator/query_release`."""

from typing import Any

import numpy as np

from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.query_release.counting import CountingQueries
from local_dp.curator.query_release.dual_query import SampledQueries
from local_dp.curator.query_release.first_far import Asked, FirstFar, NoisyCount
from local_dp.curator.query_release.measuring import WorstMarginal
from local_dp.curator.query_release.small_databases import SmallDatabase
from tests.support.mechanisms.case import POINTS, Case, Twin, tallied


def rows(records: tuple[tuple[int], ...]) -> BinaryTable:
    """Two attributes."""
    return BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64))


COUNTED = CountingQueries.conjunctions(2)
ONES: Any = Marginals.ways(2, 1)
BELOW = np.array([1, 0, 1, 0])
CASES = (
    Case(FirstFar(Asked(COUNTED, 3, np.full(4, 0.25)), 1, 1.0), POINTS, tallied),
    Case(NoisyCount(COUNTED, 0, 1.0), POINTS, tallied),
    Case(SmallDatabase(COUNTED, 2, 1.0), POINTS, tallied),
    Case(WorstMarginal(ONES, np.array([0, 2, 2, 0]), 1.0), POINTS, rows),
    Case(SampledQueries(ONES, BELOW, 2, 1.0), POINTS, rows, (1, 2), (Twin(SampledQueries(ONES, BELOW, 2, 2.0)),)),
)
ELSEWHERE = {
    "GaussianAnswers": "tests/curator/query_release/test_counting.py",
    "GaussianMarginal": "tests/curator/query_release/test_mwem.py",
    "LaplaceAnswers": "tests/curator/query_release/test_counting.py",
    "Mwem": "tests/curator/query_release/test_mwem.py",
}
