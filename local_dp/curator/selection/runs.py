"""Runs: a whole-valued function on 0..last that changes at few places, in memory for those places."""

from dataclasses import dataclass, field

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.curator.multisets import WORD
from local_dp.curator.selection.groups import Groups


@dataclass(frozen=True)
class Runs(Groups[int]):
    """The candidates 0..last; run i has the score `scores[i]`.

    `ends`, shape (runs - 1,), ascending: the last candidate of each run except the final one, which ends at `last`. `last` may be 2^bits.
    """

    ends: Naturals
    scores: Ints
    last: int

    def __post_init__(self) -> None:
        lengths = self.ends[1:] - self.ends[:-1]
        first, rest = (int(self.ends[0]) + 1, self.last - int(self.ends[-1])) if len(self.ends) else (self.last + 1, 0)
        fits = self.ends.dtype != object and max(first, rest) >> WORD == 0
        ends = [first, rest] if len(self.ends) else [first]
        outer = np.array(ends, dtype=np.uint64 if fits else object)
        object.__setattr__(self, "sizes", np.concatenate([outer[:1], lengths if fits else lengths.astype(object), outer[1:]]))

    def start(self, run: int) -> int:
        """The first candidate of a run."""
        return int(self.ends[run - 1]) + 1 if run else 0

    def end(self, run: int) -> int:
        """The last candidate of a run."""
        return int(self.ends[run]) if run < len(self.ends) else self.last

    def run_of(self, candidate: int) -> int:
        """The number of the run with a candidate of 0..last."""
        if not len(self.ends) or candidate > int(self.ends[-1]):
            return len(self.ends)
        return int(np.searchsorted(self.ends, np.array(candidate, dtype=self.ends.dtype)))  # of another type it would be compared as floats

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
    """The candidates of `runs` in one of the intervals low..high, which are disjoint and within 0..last; there is at least one."""

    runs: Runs
    intervals: tuple[tuple[int, int], ...]

    _bounds: list[tuple[int, int, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bounds = [(low, self.runs.run_of(low), self.runs.run_of(high)) for low, high in self.intervals]
        parts = [self.runs.within(*interval)[first : final + 1] for interval, (_, first, final) in zip(self.intervals, bounds, strict=True)]
        object.__setattr__(self, "sizes", np.concatenate(parts))
        object.__setattr__(self, "scores", np.concatenate([self.runs.scores[first : final + 1] for _, first, final in bounds]))
        object.__setattr__(self, "_bounds", bounds)

    def member(self, group: int, place: int) -> int:
        for low, first, final in self._bounds:
            if group <= final - first:
                return max(self.runs.start(first + group), low) + place
            group -= final - first + 1
        raise AssertionError("a group is of one of the intervals")

    def within(self, low: int, high: int) -> Naturals:
        """The number of candidates of each group in low..high."""
        parts = [(max(low, start), min(high, end)) for start, end in self.intervals]
        return np.concatenate([self.runs.within(*part)[first : final + 1] for part, (_, first, final) in zip(parts, self._bounds, strict=True)])
