"""Concept classes by their dichotomies: for given points, one concept for each way in which the class labels them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.selection.groups import Groups
from local_dp.errors import InputError

R_co = TypeVar("R_co", covariant=True)
_MOST = 1 << 22  # candidates


class ConceptClass(Protocol[R_co]):
    """A class that can list its dichotomies."""

    @property
    def dimension(self) -> int:
        """Its VC dimension: points have at most sum over i <= dimension of C(points, i) dichotomies (Sauer)."""
        ...

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[R_co]:
        """One concept for each dichotomy of the points, or for fewer of them, whatever the examples; the score of each is -errors on the examples."""
        ...


class Candidates(Groups[R_co]):
    """As many groups of one: `errors`, shape (k,), and the concept of each number."""

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
    """t = 0 .. 2^bits, 1 iff x >= t: s distinct points have s + 1 dichotomies, t each of them, or 2^bits. O(s log s).

    With `apart` above 1 only those at which the number of points below passes a multiple of it: neighbours that hardly differ only outnumber the right one.
    Where much of the distribution lies finely spread next to the target's two sides, all dichotomies take 95 examples and every third one 80.
    """

    apart: int = 1

    def __post_init__(self) -> None:
        check_whole("apart", self.apart, 1, 1 << 40)

    @property
    def dimension(self) -> int:
        return 1

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        passed = upto(points.counts) // self.apart
        chosen = np.flatnonzero(np.append(True, passed[1:] > passed[:-1]))
        places = np.append(np.searchsorted(examples.values, points.values), len(examples.values)).astype(np.int64)[chosen]
        errors = upto(examples.ones)[places] + int(examples.zeros.sum()) - upto(examples.zeros)[places]

        def threshold(number: int) -> int:
            place = int(chosen[number])
            return int(points.values[place]) if place < len(points.values) else 1 << examples.bits

        return Candidates(errors, threshold)


@dataclass(frozen=True)
class Intervals:
    """(a, b), 1 iff a <= x <= b, or None, 0 everywhere: s points have s (s + 1) / 2 + 1 dichotomies. O(s^2)."""

    @property
    def dimension(self) -> int:
        return 2

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[tuple[int, int] | None]:
        held = points.values
        gains = upto(examples.ones - examples.zeros)
        firsts, lasts = np.triu_indices(len(held))
        before, through = (np.searchsorted(examples.values, held, side=side) for side in ("left", "right"))
        errors = int(examples.ones.sum()) - np.append(gains[through[lasts]] - gains[before[firsts]], 0)
        return Candidates(errors, lambda number: (int(held[firsts[number]]), int(held[lasts[number]])) if number < len(firsts) else None)


@dataclass(frozen=True)
class ListedClass:
    """Any finite class: concept number i labels points by `concepts[i]`; the first of those that agree on the points stands for a dichotomy."""

    concepts: tuple[Callable[[Naturals], Bools], ...]
    dimension: int

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        labels = np.array([concept(points.values) for concept in self.concepts], dtype=bool).reshape(len(self.concepts), len(points.values))
        _, chosen = np.unique(labels, axis=0, return_index=True)
        chosen = np.sort(chosen)
        errors = [np.where(self.concepts[number](examples.values), examples.zeros, examples.ones).sum() for number in chosen.tolist()]
        return Candidates(np.array(errors, dtype=np.int64), lambda number: int(chosen[number]))


def upto(counts: Counts) -> Counts:
    """The sums of the first 0, 1, ..., all counts."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
