"""Intervals and how many records they hold, lazily in the domain: what SanThresholds scores its lengths and its blocks by."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.curator.multisets import WORD, Multiset
from local_dp.curator.selection.groups import Groups

Interval: TypeAlias = tuple[int, int]
"""The points from the first to the second, both included."""


@dataclass(frozen=True)
class Blocks(Groups[Interval]):
    """Intervals as candidates: of length 2^width, number `places[i]` from `origins[i]` on, trimmed at `high`; `scores` are the records that they hold."""

    scores: Counts
    places: Naturals
    origins: Naturals
    width: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", np.ones(len(self.scores), dtype=np.uint64))

    def member(self, group: int, place: int) -> Interval:
        first = int(self.origins[group]) + (int(self.places[group]) << self.width)
        return first, min(first + (1 << self.width) - 1, self.high)


def inside(points: Multiset, interval: Interval) -> Multiset:
    """The records in an interval, counted from its low end. O(log s)."""
    low, high = interval
    first, last = points.values.dtype.type(low), points.values.dtype.type(high)
    part = slice(int(np.searchsorted(points.values, first)), int(np.searchsorted(points.values, last, side="right")))
    return Multiset((high - low).bit_length() or 1, points.values[part] - first, points.counts[part])


def fullest_windows(points: Multiset, lengths: int) -> Counts:
    """I(S, j), j = 0..lengths - 1: the most records in an interval of 2^j points. O(s log s) for each j up to the one that holds all."""
    upto = np.concatenate([[0], np.cumsum(points.counts)])
    values, size = points.values, int(upto[-1])
    found = np.full(lengths, size, dtype=np.int64)
    for j in range(lengths if size else 0):
        room = values[-1] - values if j >= WORD and values.dtype != object else np.minimum(values[-1] - values, values.dtype.type((1 << j) - 1))
        found[j] = (upto[np.searchsorted(values, values + room, side="right")] - upto[:-1]).max()
        if found[j] == size:
            break
    return found


def fullest_blocks(points: Multiset, lengths: int) -> Counts:
    """The most records in one of the `blocks` of each number z = 0..lengths - 1. O(s) for each up to the one that holds all."""
    size = points.size
    found = np.full(lengths, size, dtype=np.int64)
    for z in range(lengths if size else 0):
        found[z] = blocks(points, (0, 0), z).scores.max()
        if found[z] == size:
            break
    return found


def blocks(points: Multiset, interval: Interval, z: int) -> Blocks:
    """The intervals that hold records, of two partitions of `interval` into lengths 2^(z + 1) from its low end and from 2^z on; single points if z is 0.

    `points` are counted from the low end (`inside`). A record lies in two of them, in one if z is 0.
    """
    low, high = interval
    if not z:
        return Blocks(points.counts, points.values, np.full(len(points.values), low, dtype=object), 0, high)
    parts = [_bucketed(points.values, points.counts, z + 1)]
    later = np.searchsorted(points.values, _as(points.values, 1 << z)) if z < WORD or points.values.dtype == object else len(points.values)
    parts.append(_bucketed(points.values[later:] - _as(points.values, 1 << z if later < len(points.values) else 0), points.counts[later:], z + 1))
    origins = np.repeat(np.array([low, low + (1 << z)], dtype=object), [len(places) for places, _ in parts])
    places, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Blocks(scores, places, origins, z + 1, high)


def _as(values: Naturals, number: int) -> int:
    """A number of the type of the values."""
    held: int = values.dtype.type(number) if values.dtype != object else number
    return held


def _bucketed(values: Naturals, counts: Counts, width: int) -> tuple[Naturals, Counts]:
    """The intervals of 2^width points from 0 on that hold records, and how many."""
    if not len(values):
        return values, counts
    places = values >> _as(values, width) if width < WORD or values.dtype == object else np.zeros_like(values)
    starts: Ints = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    return places[starts], np.add.reduceat(counts, starts)
