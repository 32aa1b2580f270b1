"""Cases of `local_dp/curator/query_release` and `local_dp/curator/marginals`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.baselines import DependentPair, OneMarginal
from local_dp.curator.query_release.boosting import BadlyAnswered
from local_dp.curator.query_release.counting import CountingQueries, SmallDatabase
from local_dp.curator.query_release.pmw import Asked, FirstFar, NoisyCount
from local_dp.curator.query_release.synthetic import SampledQueries, WorstMarginal
from tests.support.mechanisms.case import POINTS, Case, Twin, cut, tallied, twin_of


def rows(d: int) -> Callable[[tuple[tuple[int], ...]], BinaryTable]:
    return lambda records: BinaryTable(d, np.array([row for (row,) in records], dtype=np.uint64))


Printed = twin_of(SmallDatabase, choice=lambda own, right: replace(right, epsilon=2 * own.epsilon))
"""Without the half of the exponential mechanism."""
MovedByOne = twin_of(SmallDatabase, choice=lambda own, right: replace(right, sensitivity=1))
"""By a score that a record is said to move by 1, whatever the rows."""
MarginalMovedByOne = twin_of(WorstMarginal, choice=lambda own, right: replace(right, sensitivity=1))
TermMovedByOne = twin_of(BadlyAnswered, choice=lambda own, right: replace(right, sensitivity=1))
"""By a sum that a record is said to move by 1, whatever the number of its terms."""
ALL: list[Any] = [(point,) for point in range(4)]
UNEVEN = ((0,),) * 9 + ((1,),) * 3 + ((3,),) * 6
COUNTED = CountingQueries.conjunctions(2)
ONES: Any = Marginals.ways(2, 1)
SCORED = np.array([0, 2, 2, 0])
BELOW = np.array([1, 0, 1, 0])
ROWS: list[Any] = [(0,), (1,), (6,)]
TOLD = np.array([[0] * 9, [0] * 9])
CASES = (
    Case(FirstFar(Asked(COUNTED, 3, np.full(4, 0.25)), 1, 1.0), POINTS, tallied, steep=8.0),
    Case(NoisyCount(COUNTED, 0, 1.0), ALL, tallied, tight=1),
    Case(
        SmallDatabase(COUNTED, 2, 1.0),
        ALL,
        tallied,
        (1, 2, 4),
        (Twin(Printed(COUNTED, 2, 1.0)),),
        tight=0.49,
        sample=UNEVEN,
    ),
    Case(SmallDatabase(COUNTED, 1, 1.0), ALL, tallied, (1, 2, 4), tight=0.49),
    Case(
        SmallDatabase(COUNTED, 3, 1.0),
        ALL,
        tallied,
        (1, 2),
        (Twin(MovedByOne(COUNTED, 3, 1.0)),),
        tight=0.49,
    ),
    Case(
        WorstMarginal(ONES, SCORED, 1.0),
        ALL,
        rows(2),
        (1, 2),
        (Twin(MarginalMovedByOne(ONES, SCORED, 1.0)),),
    ),
    Case(
        SampledQueries(ONES, BELOW, 2, 1.0),
        POINTS,
        rows(2),
        (1, 2),
        (Twin(SampledQueries(ONES, BELOW, 2, 2.0)),),
    ),
    Case(
        BadlyAnswered(COUNTED, TOLD, 0, 2, 1, 1.0),
        ALL,
        tallied,
        (1, 2),
        (Twin(TermMovedByOne(COUNTED, TOLD, 0, 2, 1, 1.0)),),
        tight=0.49,
    ),
    Case(
        BadlyAnswered(COUNTED, TOLD[:1], 1, 1, 2, 1.0),
        ALL,
        tallied,
        (2,),
        (Twin(BadlyAnswered(COUNTED, TOLD[:1], 1, 1, 2, 4.0)),),
        tight=0.3,
    ),
    Case(DependentPair(((0, 1), (0, 2), (1, 2)), (0, 1, -1), 1.0), ROWS, rows(3), factor=3),
    Case(OneMarginal(3, 5, 1.0), ROWS, rows(3), name_of=cut),
)
