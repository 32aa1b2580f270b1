"""Learners that protect the labels alone, or have public points; concept classes by their dichotomies: the ways in which a class labels given points."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Neighbours, R_co
from local_dp.curator.multisets import LabelledMultiset, Multiset, check_same
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Groups
from local_dp.errors import InputError

_MOST = 1 << 22  # candidates


class ConceptClass(Protocol[R_co]):
    """A class that can list its dichotomies."""

    @property
    def dimension(self) -> int:
        """Its VC dimension: points have at most sum over i <= dimension of C(points, i) dichotomies (Sauer)."""
        ...

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[R_co]:
        """One concept for each dichotomy of the points, or for some of them, whatever the examples. Its score is -errors on the examples."""
        ...


class Candidates(Groups[R_co]):
    """k candidates: their `errors`, shape (k,), and the concept of each number."""

    def __init__(self, errors: Ints, concept: Callable[[int], R_co]) -> None:
        if len(errors) > _MOST:
            raise InputError(f"there are {len(errors)} dichotomies; at most {_MOST} are listed")
        self.scores = -errors
        self.sizes = np.ones(len(errors), dtype=np.uint64)
        self._concept = concept

    def member(self, group: int, place: int) -> R_co:
        return self._concept(group)


@dataclass(frozen=True)
class Thresholds:
    """t = 0 .. 2^bits, 1 iff x >= t: s distinct points have s + 1 dichotomies, t one of the points or 2^bits. O(s log s).

    With `apart` above 1, only those at which the number of points below passes a multiple of it: many candidates close to each other outnumber the right one.
    """

    apart: int = 1

    def __post_init__(self) -> None:
        check_whole("apart", self.apart, 1, 1 << 40)

    @property
    def dimension(self) -> int:
        return 1

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        passed = upto(points.counts) // self.apart
        starts = np.flatnonzero(np.append(True, passed[1:] > passed[:-1]))
        places = np.append(np.searchsorted(examples.values, points.values), len(examples.values)).astype(np.int64)[starts]
        errors = upto(examples.ones)[places] + int(examples.zeros.sum()) - upto(examples.zeros)[places]
        last = len(points.values)  # the place of the dichotomy without a 1
        return Candidates(errors, lambda number: int(points.values[starts[number]]) if starts[number] < last else 1 << examples.bits)


@dataclass(frozen=True)
class Intervals:
    """(a, b), 1 iff a <= x <= b, or None, 0 everywhere: s points have s (s + 1) / 2 + 1 dichotomies. O(s^2)."""

    @property
    def dimension(self) -> int:
        return 2

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[tuple[int, int] | None]:
        values = points.values
        gains = upto(examples.ones - examples.zeros)
        firsts, lasts = np.triu_indices(len(values))
        before, through = (np.searchsorted(examples.values, values, side=side) for side in ("left", "right"))
        errors = int(examples.ones.sum()) - np.append(gains[through[lasts]] - gains[before[firsts]], 0)
        return Candidates(errors, lambda number: (int(values[firsts[number]]), int(values[lasts[number]])) if number < len(firsts) else None)


@dataclass(frozen=True)
class ListedClass:
    """Any finite class: concept number i labels points by `concepts[i]`; the first concept with a dichotomy stands for it."""

    concepts: tuple[Callable[[Naturals], Bools], ...]
    dimension: int

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        labels = np.array([concept(points.values) for concept in self.concepts], dtype=bool).reshape(len(self.concepts), len(points.values))
        _, numbers = np.unique(labels, axis=0, return_index=True)
        numbers = np.sort(numbers)
        errors = [np.where(self.concepts[number](examples.values), examples.zeros, examples.ones).sum() for number in numbers.tolist()]
        return Candidates(np.array(errors, dtype=np.int64), lambda number: int(numbers[number]))


def upto(counts: Counts) -> Counts:
    """The sums of the first 0, 1, ..., all counts."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])


@dataclass(frozen=True)
class DichotomyLearner(ByScore[LabelledMultiset, R_co]):
    """Chooses by the exponential mechanism among one concept for each dichotomy of `listed_on`."""

    concepts: ConceptClass[R_co]
    epsilon: float

    @abstractmethod
    def listed_on(self, database: LabelledMultiset) -> Multiset:
        """The points whose dichotomies are the candidates; neighbours have the same points."""

    def candidates(self, database: LabelledMultiset) -> Groups[R_co]:
        """A replaced label, or example, moves each number of errors by at most 1."""
        return self.concepts.candidates(self.listed_on(database), database)


@dataclass(frozen=True)
class LabelPrivateLearner(DichotomyLearner[R_co]):
    """One concept for each dichotomy of the examples' own points is a candidate, chosen with probability proportional to e^(-eps (errors) / 2).

    Privacy: eps for the labels alone; the points are not protected, and the candidates depend on them. Utility: by VC dimension, not by the size of the class
    (`bounds.frequencies.label_examples`). Cost: one score for each dichotomy, m + 1 for thresholds.
    Source: Beimel, Nissim, Stemmer 2013, Figure 13 and Theorem 6.2; erratum E4.
    """

    neighbours: ClassVar[Neighbours] = "labels"

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        return Multiset(database.bits, database.values, database.zeros + database.ones)


@dataclass(frozen=True, kw_only=True)
class SemiPrivateLearner(DichotomyLearner[R_co]):
    """One concept for each dichotomy of `public` points is a candidate, chosen with probability proportional to e^(-eps (errors) / 2) on private examples.

    Privacy: eps for whole examples, points and labels; none for the public points. Utility: as of label privacy, by VC dimension, given
    `bounds.frequencies.public_points` public points from the same distribution. Cost: one score for each dichotomy.
    Source: Beimel, Nissim, Stemmer 2013, Section 6.2 and Example 6.3.
    """

    public: Multiset

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        check_same(self.public.bits, database.bits)
        return self.public
