"""Cases of `local_dp/curator/query_release`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.query_release.counting import CountingQueries, SmallDatabase
from local_dp.curator.query_release.pmw import Asked, FirstFar, NoisyCount
from local_dp.curator.query_release.synthetic import SampledQueries, WorstMarginal
from local_dp.curator.selection.exponential import ExponentialChoice
from tests.support.mechanisms.case import POINTS, Case, Twin, tallied


def rows(records: tuple[tuple[int], ...]) -> BinaryTable:
    return BinaryTable(2, np.array([row for (row,) in records], dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class Printed(SmallDatabase):
    """Without the half of the exponential mechanism."""

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(2.0, self.rows)


@dataclass(frozen=True, eq=False)
class MovedByOne(SmallDatabase):
    """By a score that a record is said to move by 1, whatever the rows."""

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(1.0)


@dataclass(frozen=True, eq=False)
class MarginalMovedByOne(WorstMarginal):
    """The same, of a marginal's score."""

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon)


ALL: list[Any] = [(point,) for point in range(4)]
UNEVEN = ((0,),) * 9 + ((1,),) * 3 + ((3,),) * 6
COUNTED = CountingQueries.conjunctions(2)
ONES: Any = Marginals.ways(2, 1)
SCORED = np.array([0, 2, 2, 0])
BELOW = np.array([1, 0, 1, 0])
CASES = (
    Case(FirstFar(Asked(COUNTED, 3, np.full(4, 0.25)), 1, 1.0), POINTS, tallied, steep=8.0),
    Case(NoisyCount(COUNTED, 0, 1.0), ALL, tallied, tight=1),
    Case(SmallDatabase(COUNTED, 2, 1.0), ALL, tallied, (1, 2, 4), (Twin(Printed(COUNTED, 2, 1.0)),), tight=0.49, sample=UNEVEN),
    Case(SmallDatabase(COUNTED, 1, 1.0), ALL, tallied, (1, 2, 4), tight=0.49),
    Case(SmallDatabase(COUNTED, 3, 1.0), ALL, tallied, (1, 2), (Twin(MovedByOne(COUNTED, 3, 1.0)),), tight=0.49),
    Case(WorstMarginal(ONES, SCORED, 1.0), ALL, rows, (1, 2), (Twin(MarginalMovedByOne(ONES, SCORED, 1.0)),)),
    Case(SampledQueries(ONES, BELOW, 2, 1.0), POINTS, rows, (1, 2), (Twin(SampledQueries(ONES, BELOW, 2, 2.0)),)),
)
ELSEWHERE = {
    "GaussianAnswers": "tests/curator/query_release/test_answers.py",
    "GaussianMarginal": "tests/curator/query_release/test_answers.py",
    "LaplaceAnswers": "tests/curator/query_release/test_answers.py",
    "Mwem": "tests/curator/query_release/test_answers.py",
}
