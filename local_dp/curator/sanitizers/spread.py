"""Ties broken without a draw: the records of a value are spread evenly over finer points, so that every rank is near one.

The i-th record of a value gets the low bits i reversed (van der Corput). An added record adds one finer point and moves none: databases that are neighbours
stay neighbours, exactly, so whatever is private on finer points is private.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.curator.multisets import WORD, Multiset


@lru_cache(maxsize=8)
def reversed_bits(low: int) -> Ints:
    """The numbers 0..2^low - 1 with their bits in reversed order."""
    found = np.zeros(1, dtype=np.int64)
    for _ in range(low):
        found = np.concatenate([2 * found, 2 * found + 1])
    return found


@dataclass(frozen=True)
class Spread:
    """The records of `points` as finer points below 2^(bits + low), in order: record number r is the one with r others before it."""

    points: Multiset
    low: int

    @property
    def bits(self) -> int:
        """Of the finer points."""
        return self.points.bits + self.low

    @cached_property
    def upto(self) -> Counts:
        """How many records have a lower value, shape (s + 1,)."""
        return np.concatenate([[0], np.cumsum(self.points.counts)])

    def rank(self, threshold: int) -> int:
        """How many records lie below a threshold of 0..2^bits."""
        value, part = threshold >> self.low, threshold & ((1 << self.low) - 1)
        if value >> self.points.bits:
            return int(self.upto[-1])
        at = int(np.searchsorted(self.points.values, np.array(value, dtype=self.points.values.dtype)))
        below = int(self.upto[at])
        if part and at < len(self.points.values) and int(self.points.values[at]) == value:
            rounds, more = divmod(int(self.points.counts[at]), 1 << self.low)
            below += rounds * part + int(np.count_nonzero(reversed_bits(self.low)[:more] < part))
        return below

    def cell(self, record: int) -> int:
        """At most how many records share the finer point of this one."""
        at = int(np.searchsorted(self.upto, record, side="right")) - 1
        return (int(self.points.counts[at]) >> self.low) + 1 if at < len(self.points.values) else 1

    def between(self, first: int, last: int) -> tuple[Naturals, Counts]:
        """The finer points of the records first..last - 1, distinct and ascending, and how many records lie below each."""
        word = np.uint64 if self.bits <= WORD else object
        start = int(np.searchsorted(self.upto, first, side="right")) - 1
        stop = int(np.searchsorted(self.upto, last, side="left"))
        if first >= last:
            return np.zeros(0, dtype=word), np.zeros(0, dtype=np.int64)
        values, counts = self.points.values[start:stop], self.points.counts[start:stop]
        cells = np.minimum(counts, 1 << self.low)
        which = np.repeat(np.arange(len(values)), cells)
        number = np.arange(len(which)) - np.repeat(np.cumsum(cells) - cells, cells)
        part = reversed_bits(self.low)[number]
        order = np.argsort((which << self.low) + part)
        held = (counts[which] >> self.low) + (number < (counts[which] & ((1 << self.low) - 1)))
        upto = int(self.upto[start]) + np.cumsum(held[order])
        below = upto - held[order]
        kept = (upto > first) & (below < last)
        chosen = order[kept]
        fine = values[which[chosen]].astype(word) * (1 << self.low) + part[chosen].astype(word)
        return fine, below[kept]
