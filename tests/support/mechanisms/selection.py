"""Cases of `local_dp/curator/selection`."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from local_dp.curator.multisets import Multiset
from local_dp.curator.oracle_efficient.separated import Parities, Thresholds
from local_dp.curator.selection.common import CommonRecord
from local_dp.curator.selection.exponential import ExponentialMechanism, Labelled, OccamLearner
from local_dp.curator.selection.groups import Listed, Runs
from local_dp.curator.selection.sparse import SparseChoice, SparseExponential
from local_dp.curator.selection.stable import (
    UNIT,
    Lead,
    Parts,
    Promise,
    RecConcave,
    StableChoice,
    printed_acceptance,
)
from tests.support.mechanisms.case import POINTS, Case, Twin, frequencies, points, twin_of


def occurring(database: Multiset) -> Listed:
    return Listed(database.counts, database.values)


def points_and_halves(database: Multiset) -> Listed:
    """The points 0..3, and the halves {0, 1} and {2, 3} as the candidates 4 and 5, by how often: a
    record is in two candidates."""
    counts = frequencies(database)
    scores = np.concatenate([counts, counts.reshape(2, 2).sum(axis=1)])
    return Listed(scores[scores > 0], np.flatnonzero(scores))


def leading(database: Multiset) -> Lead[int]:
    """The most frequent of the points 0, 1, ...; the lowest of those that tie."""
    counts = frequencies(database)
    best = int(np.argmax(counts))
    return Lead(best, int(counts[best] - np.delete(counts, best).max()))


def printed(choice: Any, _: object) -> Callable[[int | None], int]:
    """The test of the gap as printed (erratum E1)."""
    return lambda gap: UNIT if gap is None else round(printed_acceptance(gap, choice.loss) * UNIT)


PrintedTest = twin_of(StableChoice, answered=printed)
LightNone = twin_of(SparseChoice, _odds=lambda own, right: right / 2)
"""No answer weighs half of what it must."""


def stable(epsilon: float, delta: float) -> Case:
    """Three values and up to 60 records. From epsilon .5 on the printed test loses far more."""
    twins = (
        (Twin(PrintedTest(leading, epsilon, delta), 0.2, (6, 12, 60)),) if epsilon >= 0.5 else ()
    )
    return Case(
        StableChoice(leading, epsilon, delta),
        [(0,), (1,), (2,)],
        points(2),
        (1, 2, 3, 6, 9, 12, 60),
        twins,
        tight=0.99,
        sample=((0,),) * 20 + ((1,),) * 3,
    )


def by_value(database: Multiset) -> dict[int, int]:
    return dict(enumerate(frequencies(database).tolist()))


def ends(database: Multiset) -> Runs:
    """The number of records below each point, or not below if that is fewer: quasi-concave."""
    counts = frequencies(database)
    below = np.cumsum(counts) - counts
    return Runs(np.arange(3, dtype=np.uint64), np.minimum(below, counts.sum() - below), 3)


def occam(hypotheses: Any, size: int, epsilon: float) -> Case:
    return Case(
        OccamLearner(hypotheses, epsilon),
        list(product(range(size), (0, 1))),
        Labelled.of,
        (2,),
        tight=0.5,
        sample=((1, 1), (1, 1), (2, 0), (2, 0), (0, 0)),
    )


REC = Promise(0, 1)
CASES = (
    Case(ExponentialMechanism(frequencies, 1.0), POINTS, points(2)),
    Case(
        SparseExponential(occurring, SparseChoice(1.0, 1e-2)),
        [(0,), (1,), (2,), (3,)],
        points(2),
        (1, 2, 3, 6),
        (
            Twin(SparseExponential(occurring, SparseChoice(6.0, 1e-2))),
            Twin(SparseExponential(occurring, LightNone(1.0, 1e-2)), 0.017),
        ),
        tight=0.99,
        sample=((0,),) * 9 + ((1,),) * 8 + ((3,),) * 2,
    ),
    Case(
        SparseExponential(points_and_halves, SparseChoice(1.0, 1e-2, growth=2)),
        [(0,), (1,), (2,), (3,)],
        points(2),
        (1, 2, 3, 6),
        (Twin(SparseExponential(points_and_halves, SparseChoice(1.0, 1e-2)), 0.013),),
        tight=0.99,
    ),
    stable(0.5, 1e-2),
    stable(2.0, 1e-6),
    Case(
        CommonRecord(by_value, 0.5, 1e-2, 6),
        POINTS,
        points(2),
        (6,),
        tight=0.99,
        sample=((0,),) * 6,
    ),
    Case(
        RecConcave(ends, REC, Parts(0.5, 0.5, 1e-2, 0.5)),
        POINTS,
        points(2),
        (1, 2),
        (Twin(RecConcave(ends, REC, Parts(0.5, 0.5, 1e-2, 6.0))),),
    ),
    occam(Parities(2), 4, 0.5),
    occam(Thresholds(3), 3, 1.0),
)
