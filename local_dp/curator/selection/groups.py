"""Candidates in groups of equal score: the view that a choice by score has of a domain too large to list."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Generic

import numpy as np

from local_dp.arrays import Bools, Ints, Naturals
from local_dp.curator.mechanism import R_co
from local_dp.draws import Draws
from local_dp.errors import InputError

_GUARD_BITS = 128
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


class Groups(ABC, Generic[R_co]):
    """Groups of candidates: for each group a whole number in `scores` and a number of candidates in `sizes`."""

    scores: Ints
    sizes: Naturals

    @abstractmethod
    def member(self, group: int, place: int) -> R_co:
        """Candidate number `place` of the group."""

    @property
    def total(self) -> int:
        """The number of candidates."""
        return sum_by(self.sizes, np.zeros(len(self.sizes), dtype=np.int64), 1)[0]

    def members(self) -> Iterator[tuple[int, R_co]]:
        """Every candidate with the number of its group."""
        for group, size in enumerate(self.sizes.tolist()):
            for place in range(size):
                yield group, self.member(group, place)

    def pick(self, chosen: Bools, draws: Draws) -> R_co:
        """A uniform candidate of the groups that `chosen` marks, of which at least one is not empty."""
        groups = np.flatnonzero(chosen)
        upto = list(accumulate(map(int, self.sizes[groups].tolist())))
        drawn = draws.below(upto[-1])
        at = bisect_right(upto, drawn)
        return self.member(int(groups[at]), drawn - (upto[at - 1] if at else 0))


@dataclass(frozen=True)
class Listed(Groups[int]):
    """Candidates that are whole numbers, one in each group: `scores` and `names`, both of shape (k,)."""

    scores: Ints
    names: Naturals

    def __post_init__(self) -> None:
        if self.scores.shape != self.names.shape or self.scores.ndim != 1 or self.scores.dtype.kind != "i":
            raise InputError(f"the scores have shape {self.scores.shape} and type {self.scores.dtype}; give a signed whole number for each candidate")
        object.__setattr__(self, "sizes", np.ones(len(self.scores), dtype=np.uint64))

    def member(self, group: int, place: int) -> int:
        return int(self.names[group])


@dataclass(frozen=True)
class Joined(Groups[R_co]):
    """The groups of `one`, then those of `other`."""

    one: Groups[R_co]
    other: Groups[R_co]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", np.concatenate([self.one.scores, self.other.scores]))
        object.__setattr__(self, "sizes", np.concatenate([self.one.sizes, self.other.sizes]))

    def member(self, group: int, place: int) -> R_co:
        before = len(self.one.scores)
        return self.one.member(group, place) if group < before else self.other.member(group - before, place)


def sum_by(sizes: Naturals, groups: Ints, count: int) -> list[int]:
    """The sum of `sizes` for each group number 0..count - 1, exactly: a sum of 64-bit sizes may need more than 64 bits."""
    sums = [0] * count
    if not len(sizes):
        return sums
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    placed = sizes[order]
    if placed.dtype == object:
        parts = [int(part) for part in np.add.reduceat(placed, starts)]
    else:
        low, high = np.add.reduceat(placed & _LOW, starts), np.add.reduceat(placed >> _HALF, starts)
        parts = [int(less) + (int(more) << 32) for less, more in zip(low, high, strict=True)]
    for group, part in zip(ordered[starts].tolist(), parts, strict=True):
        sums[group] = part
    return sums


def powers(decay: Fraction, gaps: Ints, reach: int) -> list[int]:
    """decay^gap for ascending gaps in 0..reach, as whole numbers on one scale: within 2^-96, and at `reach` still of more than 128 bits.

    Only the gaps that occur are computed: over 2^65536 candidates a power has up to 100,000 bits. `decay` is a multiple of 2^-40.
    """
    shift = (decay.denominator - 1).bit_length()
    weight, at, weights = 1 << (_GUARD_BITS + math.ceil(-reach * math.log2(decay)) + 1), 0, []
    for gap in gaps.tolist():
        if gap > at:
            weight = (weight * decay.numerator ** (gap - at)) >> shift * (gap - at)
            at = gap
        weights.append(weight)
    return weights
