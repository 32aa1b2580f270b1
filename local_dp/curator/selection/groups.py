"""Candidates in groups of equal score: the view that a choice by score has of a domain too large to
list."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Generic

import numpy as np

from local_dp.arrays import Bools, Ints, Naturals
from local_dp.curator.mechanism import R_co
from local_dp.curator.multisets import WORD
from local_dp.draws import Draws
from local_dp.errors import InputError

_GUARD_BITS = 128
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


class Groups(ABC, Generic[R_co]):
    """Groups of candidates: for each group a whole number in `scores` and a number of candidates in
    `sizes`."""

    scores: Ints
    sizes: Naturals

    @abstractmethod
    def member(self, group: int, place: int) -> R_co:
        """Candidate number `place` of the group."""

    @property
    def total(self) -> int:
        return sum_by(self.sizes, np.zeros(len(self.sizes), dtype=np.int64), 1)[0]

    def members(self) -> Iterator[tuple[int, R_co]]:
        for group, size in enumerate(self.sizes.tolist()):
            for place in range(size):
                yield group, self.member(group, place)

    def pick(self, mask: Bools, draws: Draws) -> R_co:
        """A uniform candidate of the groups that `mask` marks, of which at least one is not
        empty."""
        groups = np.flatnonzero(mask)
        upto = list(accumulate(map(int, self.sizes[groups].tolist())))
        number = draws.below(upto[-1])
        at = bisect_right(upto, number)
        return self.member(int(groups[at]), number - (upto[at - 1] if at else 0))


class Singles(Groups[R_co]):
    """Groups of one candidate each."""

    @cached_property
    def sizes(self) -> Naturals:  # type: ignore[override]  # a frozen class sets it once
        return np.ones(len(self.scores), dtype=np.uint64)


@dataclass(frozen=True)
class Listed(Singles[int]):
    """Candidates that are whole numbers, one in each group: `scores` and `names`, both of shape
    (k,)."""

    scores: Ints
    names: Naturals

    def __post_init__(self) -> None:
        if (
            self.scores.shape != self.names.shape
            or self.scores.ndim != 1
            or self.scores.dtype.kind != "i"
        ):
            raise InputError(
                f"the scores have shape {self.scores.shape} and type {self.scores.dtype}; give a "
                "signed whole number for each candidate"
            )

    def member(self, group: int, place: int) -> int:
        return int(self.names[group])


@dataclass(frozen=True)
class Joined(Groups[R_co]):
    one: Groups[R_co]
    other: Groups[R_co]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", np.concatenate([self.one.scores, self.other.scores]))
        object.__setattr__(self, "sizes", np.concatenate([self.one.sizes, self.other.sizes]))

    def member(self, group: int, place: int) -> R_co:
        before = len(self.one.scores)
        if group < before:
            return self.one.member(group, place)
        return self.other.member(group - before, place)


def sum_by(sizes: Naturals, groups: Ints, count: int) -> list[int]:
    """The sum of `sizes` for each group number 0..count - 1, exactly: a sum of 64-bit sizes may
    need more than 64 bits."""
    sums = [0] * count
    if not len(sizes):
        return sums
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ordered_sizes = sizes[order]
    if ordered_sizes.dtype == object:
        parts = [int(part) for part in np.add.reduceat(ordered_sizes, starts)]
    else:
        low, high = (
            np.add.reduceat(ordered_sizes & _LOW, starts),
            np.add.reduceat(ordered_sizes >> _HALF, starts),
        )
        parts = [
            less + (more << 32) for less, more in zip(low.tolist(), high.tolist(), strict=True)
        ]
    for group, part in zip(ordered[starts].tolist(), parts, strict=True):
        sums[group] = part
    return sums


def powers(decay: Fraction, gaps: Ints, reach: int) -> list[int]:
    """decay^gap for ascending gaps in 0..reach, as whole numbers on one scale, within 2^-96 and of
    over 128 bits; `decay` is a multiple of 2^-40."""
    shift = (decay.denominator - 1).bit_length()
    bits = _GUARD_BITS + math.ceil(-reach * math.log2(decay)) + 1
    weight, at, weights = 1 << bits, 0, []
    for gap in gaps.tolist():
        if gap > at:
            weight = (weight * decay.numerator ** (gap - at)) >> shift * (gap - at)
            at = gap
        weights.append(weight)
    return weights


@dataclass(frozen=True)
class Runs(Groups[int]):
    """The candidates 0..last; run i has the score `scores[i]`.

    `ends`, shape (runs - 1,), ascending: the last candidate of each run except the final one, which
    ends at `last`. `last` may be 2^bits.
    """

    ends: Naturals
    scores: Ints
    last: int

    def __post_init__(self) -> None:
        outer = [self.last + 1]
        if len(self.ends):
            outer = [int(self.ends[0]) + 1, self.last - int(self.ends[-1])]
        fits = self.ends.dtype != object and max(outer) >> WORD == 0
        sizes = np.array(outer, dtype=np.uint64 if fits else object)
        lengths = (self.ends[1:] - self.ends[:-1]).astype(sizes.dtype)
        object.__setattr__(self, "sizes", np.concatenate([sizes[:1], lengths, sizes[1:]]))

    def start(self, run: int) -> int:
        return int(self.ends[run - 1]) + 1 if run else 0

    def end(self, run: int) -> int:
        return int(self.ends[run]) if run < len(self.ends) else self.last

    def run_of(self, candidate: int) -> int:
        """The number of the run with a candidate of 0..last."""
        if not len(self.ends) or candidate > int(self.ends[-1]):
            return len(self.ends)
        # of another type it would be compared as floats
        return int(np.searchsorted(self.ends, np.array(candidate, dtype=self.ends.dtype)))

    def member(self, group: int, place: int) -> int:
        return self.start(group) + place

    def within(self, low: int, high: int) -> Naturals:
        """The number of candidates of each run in low..high."""
        low, high = max(low, 0), min(high, self.last)
        inside = np.zeros_like(self.sizes)
        if low <= high:
            first, final = self.run_of(low), self.run_of(high)
            inside[first : final + 1] = self.sizes[first : final + 1]
            inside[first] = int(inside[first]) - (low - self.start(first))
            inside[final] = int(inside[final]) - (self.end(final) - high)
        return inside


@dataclass(frozen=True)
class Restricted(Groups[int]):
    """The candidates of `runs` in one of the intervals low..high, which are disjoint and within
    0..last; there is at least one."""

    runs: Runs
    intervals: tuple[tuple[int, int], ...]

    _bounds: list[tuple[int, int, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bounds = [
            (low, self.runs.run_of(low), self.runs.run_of(high)) for low, high in self.intervals
        ]
        parts = [
            self.runs.within(*interval)[first : final + 1]
            for interval, (_, first, final) in zip(self.intervals, bounds, strict=True)
        ]
        scores = [self.runs.scores[first : final + 1] for _, first, final in bounds]
        object.__setattr__(self, "sizes", np.concatenate(parts))
        object.__setattr__(self, "scores", np.concatenate(scores))
        object.__setattr__(self, "_bounds", bounds)

    def member(self, group: int, place: int) -> int:
        for low, first, final in self._bounds:
            if group <= final - first:
                return max(self.runs.start(first + group), low) + place
            group -= final - first + 1
        raise AssertionError("a group is of one of the intervals")

    def within(self, low: int, high: int) -> Naturals:
        """The number of candidates of each group in low..high."""
        parts = []
        for (start, end), (_, first, final) in zip(self.intervals, self._bounds, strict=True):
            inside = self.runs.within(max(low, start), min(high, end))
            parts.append(inside[first : final + 1])
        return np.concatenate(parts)
