"""Cases of `local_dp/curator/points`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Naturals
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.points.learner import (
    BucketClass,
    BucketPointLearner,
    Candidates,
    ConceptClass,
    LabelPrivateLearner,
    PointLearner,
    ProperPointLearner,
    SemiPrivateLearner,
    Thresholds,
    leading_point,
)
from local_dp.curator.selection.groups import Groups
from local_dp.curator.selection.stable import Lead
from local_dp.loss import Pure
from tests.support.mechanisms.case import PAIRS, Case, Judged, Twin, labelled, twin_of
from tests.support.runs.scripted import seeded


def at_least(t: int) -> Callable[[Naturals], Bools]:
    """1 iff x >= t."""
    return lambda x: np.asarray(x >= t)


@dataclass(frozen=True)
class ListedClass:
    """Any finite class: concept number i labels points by `concepts[i]`; the first concept with a
    dichotomy stands for it."""

    concepts: tuple[Callable[[Naturals], Bools], ...]

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        labels = np.array([concept(points.values) for concept in self.concepts], dtype=bool)
        labels = labels.reshape(len(self.concepts), len(points.values))
        _, numbers = np.unique(labels, axis=0, return_index=True)
        numbers = np.sort(numbers)
        errors = [
            np.where(self.concepts[number](examples.values), examples.zeros, examples.ones).sum()
            for number in numbers.tolist()
        ]
        return Candidates(np.array(errors, dtype=np.int64), lambda number: int(numbers[number]))


ONES: list[Any] = [(x, 1) for x in range(3)]
EVERY: list[Any] = list(product(range(4), (0, 1)))
PUBLIC = Multiset.of([0, 2, 2, 3], 2)
LISTED = ListedClass(tuple(map(at_least, range(5))))
BUCKETS = BucketClass.drawn(3, seeded(0), 2, 2)


def by_its_count(examples: LabelledMultiset) -> Lead[int]:
    """The leader by its own count, whatever the second one has."""
    return Lead(leading_point(examples).best, int(examples.ones.max(initial=0)))


CountAlone = twin_of(PointLearner, choice=lambda own, right: replace(right, lead=by_its_count))
LabelsList = twin_of(
    LabelPrivateLearner, listed_on=lambda own, right: lambda database: database.labelled(1)
)
"""Candidates from the points that are labelled 1."""
EVERYTHING = Judged(LabelPrivateLearner(Thresholds(), 1.0), "replace", Pure(10**9))
"""Claims to protect whole examples."""


def labels(concepts: ConceptClass[Any], *twins: Twin) -> tuple[Case, Case]:
    """Two points apart leave one candidate of a single one: nothing is lost at n = 1."""
    beside = SemiPrivateLearner(concepts, 1.0, public=PUBLIC)
    return (
        Case(LabelPrivateLearner(concepts, 1.0), EVERY, labelled(2), (1, 2, 3), twins, factor=3),
        Case(
            beside,
            EVERY,
            labelled(2),
            (1, 2),
            factor=3,
            sample=((0, 0), (1, 0), (1, 1), (2, 1), (3, 1)),
        ),
    )


CASES = (
    Case(
        PointLearner(1.0, 1e-2), PAIRS, labelled(2), (1, 2, 3), sample=((1, 1),) * 9 + ((1, 0),) * 3
    ),
    Case(
        PointLearner(1.0, 1e-2),
        ONES,
        labelled(2),
        (20, 41),
        (Twin(CountAlone(1.0, 1e-2), 0.5, (30,)),),
        tight=0.7,
    ),
    Case(PointLearner(1.0, 1e-2, "uniform"), PAIRS, labelled(2), (1, 2, 3), factor=6),
    Case(PointLearner(1.0, 1e-2, "uniform"), ONES, labelled(2), (20, 41), tight=0.7),
    Case(ProperPointLearner(1.0), EVERY, labelled(2), (1, 2, 3), factor=3),
    Case(
        BucketPointLearner(BUCKETS, 1.0),
        list(product((0, 1, 6, 7), (0, 1))),
        labelled(3),
        (1, 2, 3),
        factor=3,
    ),
    *labels(Thresholds(), Twin(LabelsList(Thresholds(), 1.0), 0.05), Twin(EVERYTHING, 0.05)),
    labels(Thresholds(apart=2))[0],
    *labels(LISTED),
)
