"""Cases of `local_dp/curator/sensitivity` and of noisy sums."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.clipped import HasNumber, NoisyMean, NoisySum
from local_dp.curator.sensitivity.mechanisms import ExponentialMedian, GlobalMedian, ProposedMedian
from local_dp.curator.sensitivity.triangles import (
    GlobalTriangles,
    LadderTriangles,
    LocalOfTriangles,
    NoisyLocalTriangles,
)
from local_dp.domains import Domain, levels
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.mechanisms.case import (
    EDGES,
    LOST,
    Case,
    Twin,
    graph,
    numbered,
    points,
    present,
    twin_of,
)

FIVE: list[Any] = [(0,), (1,), (3,), (6,), (7,)]


Untested = twin_of(ProposedMedian, margin=lambda own, right: right // 2)
NoMargin = twin_of(NoisyLocalTriangles, margin=lambda own, right: 0)


@dataclass(frozen=True)
class Steps(Query):
    """A column of whole numbers 0..4 as levels."""

    name: ClassVar[str] = "steps"

    @property
    def domain(self) -> Domain:
        return levels(4)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


@dataclass(frozen=True)
class Lacking(Steps):
    """The same, and for a record without a value the middle, or as a wrong twin 0."""

    missing: int = 2

    def __call__(self, records: Records) -> Ints:
        return np.nan_to_num(records["v"], nan=self.missing).astype(np.int64)


def lacking(records: Sequence[tuple[int]]) -> Records:
    return Records({"v": np.array([math.nan if value < 0 else value for (value,) in records])})


HAS = HasNumber("v")
FullForBoth = twin_of(NoisyMean, _nano=lambda own, right: (right[0], right[0]))
"""The number of records with a value has noise of epsilon, and the sum too."""


def column(records: tuple[tuple[int], ...]) -> Records:
    return Records({"v": np.array([value for (value,) in records], dtype=np.int64)})


def proposed(bound: int) -> Case:
    return Case(
        ProposedMedian(bound, 2.0, 0.05),
        FIVE,
        points(3),
        (5,),
        (Twin(Untested(bound, 2.0, 0.05)),),
        tight=0.1,
    )


def triangles(build: Callable[[float], Any], *twins: Twin) -> Case:
    return Case(build(1.0), EDGES, graph(4), (1, 3, 6), twins, factor=3)


CASES = (
    Case(ExponentialMedian(1.0), FIVE, points(3), (2, 3, 4)),
    Case(
        ExponentialMedian(1.0),
        [LOST, *FIVE],
        present(3),
        (1, 2, 3, 4),
        (Twin(numbered(ExponentialMedian)(1.0)),),
    ),
    Case(GlobalMedian(1.0), FIVE, points(3), (2, 3, 4)),
    proposed(1),
    proposed(2),
    triangles(GlobalTriangles),
    triangles(LadderTriangles),
    triangles(LocalOfTriangles),
    triangles(lambda epsilon: NoisyLocalTriangles(epsilon, 1e-2), Twin(NoMargin(1.0, 1e-2))),
    Case(NoisySum(Question("v == 1"), 0.5), [(0,), (1,)], column, (1, 2, 5), tight=1),
    Case(
        NoisySum(Steps(), 0.5),
        [(value,) for value in range(5)],
        column,
        (1, 2),
        (Twin(NoisySum(Steps(), 2.0), 0.04),),
        tight=1,
    ),
    Case(NoisyMean(Steps(), None, 0.5), [(value,) for value in range(5)], column, (1, 2), tight=1),
    Case(
        NoisyMean(Lacking(), HAS, 0.5),
        [LOST, *((value,) for value in range(5))],
        lacking,
        (1, 2),
        (Twin(FullForBoth(Lacking(), HAS, 0.5)), Twin(NoisyMean(Lacking(0), HAS, 0.5))),
        tight=1,
    ),
)
