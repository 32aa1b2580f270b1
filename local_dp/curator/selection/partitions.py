"""Partitions of 0..last into intervals of equal length, and which interval holds the best candidate, by how much."""

from dataclasses import dataclass
from typing import TypeAlias

from local_dp.curator.selection.runs import Runs
from local_dp.curator.selection.stable import Lead

Interval: TypeAlias = tuple[int, int]
"""low..high, both ends included."""


@dataclass(frozen=True)
class Partition:
    """The intervals offset..offset + length - 1, ... up to last, the last of them cut there; nothing below `offset` is in any."""

    offset: int
    length: int
    last: int

    def lead(self, runs: Runs) -> Lead[Interval]:
        """The interval with the highest score, an interval's score being that of its best candidate; the lowest of those that tie. O(runs)."""
        start = runs.run_of(self.offset)
        run = start + int(runs.scores[start:].argmax())
        low, high = self.interval(max(runs.start(run), self.offset))
        others = [runs.scores[start : runs.run_of(low - 1) + 1]] if low > self.offset else []
        others += [runs.scores[runs.run_of(high + 1) :]] if high < self.last else []
        return Lead((low, high), int(runs.scores[run]) - max(int(scores.max()) for scores in others) if others else None)

    def interval(self, candidate: int) -> Interval:
        """The interval that holds the candidate, which is no lower than `offset`."""
        low = candidate - (candidate - self.offset) % self.length
        return low, min(low + self.length - 1, self.last)


def crossing(width: int, last: int) -> tuple[Partition, ...]:
    """Two partitions into intervals of length 8 `width`, shifted by half of it: any 4 `width` candidates in a row lie within an interval of one of them."""
    return tuple(Partition(offset, 8 * width, last) for offset in (0, 4 * width) if offset <= last)


def union(intervals: list[Interval], last: int) -> tuple[Interval, ...]:
    """The same candidates up to `last` in disjoint intervals, ascending."""
    merged: list[Interval] = []
    for low, high in sorted((low, min(high, last)) for low, high in intervals if low <= last):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)
