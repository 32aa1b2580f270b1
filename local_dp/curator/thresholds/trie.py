"""The dyadic intervals that hold a point, as a compressed trie: the same points are in every interval of a chain that does not branch.

The interval of height h around x is the 2^h points that agree with x above their last h bits, h = 1..bits. Every t in 1..2^bits - 1 is the middle of one.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals

_WORD = 64


@dataclass(frozen=True)
class Trie:
    """All intervals that hold a point: c chains, and s - 1 forks for s distinct points; whole numbers.

    Chain i: the intervals of heights `above[i]` + 1 .. `below[i]` - 1 around the points number `first[i]`..`final[i]`, which lie in one half of each. Fork j:
    the interval of height `heights[j]` around the points `left[j]`..`right[j]`, of which number j is the last in the left half.
    """

    first: Ints
    final: Ints
    above: Ints
    below: Ints
    left: Ints
    right: Ints
    heights: Ints

    @classmethod
    def of(cls, values: Naturals, bits: int) -> Self:
        """Of ascending distinct points: height by height, O(s) in all."""
        count = len(values)
        if not count:
            return cls(*(np.zeros(0, dtype=np.int64) for _ in range(7)))
        forks = fork_heights(values)
        index = np.arange(count, dtype=np.int32)
        first_of, final_of, top_of = index.copy(), index.copy(), np.zeros_like(index)  # by the last point, by the first, by the first
        left, right, above_left, above_right = (np.zeros_like(index[1:]) for _ in range(4))
        for merged in _by_height(forks):  # forks of one height lie apart
            low, high = first_of[merged], final_of[merged + 1]
            left[merged], right[merged] = low, high
            above_left[merged], above_right[merged] = top_of[low], top_of[merged + 1]
            first_of[high], final_of[low], top_of[low] = low, high, forks[merged[0]]
        first, final = np.concatenate([left, index[1:], index[:1]]), np.concatenate([index[:-1], right, index[-1:]])
        root = np.array([bits + 1], dtype=np.int32)
        above, below = np.concatenate([above_left, above_right, top_of[:1]]), np.concatenate([forks, forks, root])
        return cls(first, final, above, below, left, right, forks)


def _by_height(forks: Ints) -> list[Ints]:
    """The numbers of the forks of each height, the lowest first."""
    order = np.argsort(forks.astype(np.uint8 if forks.max(initial=0) < 256 else np.int32), kind="stable")  # of bytes: by counting
    return np.split(order, np.flatnonzero(np.diff(forks[order])) + 1) if len(forks) else []


def fork_heights(values: Naturals) -> Ints:
    """The height of the smallest dyadic interval that holds both a point and the next one."""
    apart = values[1:] ^ values[:-1]
    if apart.dtype == object:
        return np.array([number.bit_length() for number in apart.tolist()], dtype=np.int32)
    found: Ints = np.searchsorted(np.uint64(1) << np.arange(_WORD, dtype=np.uint64), apart, side="right").astype(np.int32)
    return found


def ones_between(values: Naturals, low: Ints, high: Ints) -> Counts:
    """How many of the bits low..high - 1 of each value are 1, low <= high."""
    if values.dtype == object:
        every = zip(values.tolist(), low.tolist(), high.tolist(), strict=True)
        return np.array([((value >> start) & ((1 << (stop - start)) - 1)).bit_count() for value, start, stop in every], dtype=np.int64)
    width = high - low
    masks = np.where(width > 0, ~np.uint64(0) >> (_WORD - np.maximum(width, 1)).astype(np.uint64), np.uint64(0))
    held: Counts = np.bitwise_count((values >> np.minimum(low, _WORD - 1).astype(np.uint64)) & masks).astype(np.int64)
    return held


def middle(value: int, height: int) -> int:
    """The middle of the dyadic interval of this height around the value."""
    return ((value >> height << 1) | 1) << (height - 1)
