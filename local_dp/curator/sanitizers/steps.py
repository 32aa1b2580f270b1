"""What a sanitizer of thresholds releases: an answer for each threshold t of 0..2^bits, the share of the records below t."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.curator.multisets import Multiset


def ranks(points: Multiset, thresholds: Sequence[int]) -> Ints:
    """How many records lie below each threshold of 0..2^bits, exactly."""
    upto = np.concatenate([[0], np.cumsum(points.counts)])
    inside = np.array([min(threshold, (1 << points.bits) - 1) for threshold in thresholds], dtype=points.values.dtype)
    found: Ints = upto[np.searchsorted(points.values, inside)]
    found[[threshold >> points.bits > 0 for threshold in thresholds]] = upto[-1]
    return found


@dataclass(frozen=True)
class Steps:
    """A step function of the thresholds: from `starts[i]` on `shares[i]`, in 0..1; `starts` ascending from 0, of the same length."""

    bits: int
    starts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, bits: int, steps: Iterable[tuple[int, float]]) -> Self:
        """From thresholds of 0..2^bits, in any order, and the share from each on, the last one said for it; below the first, 0. At 2^bits it is 1."""
        held = {0: 0.0, **dict(steps), 1 << bits: 1.0}
        starts = sorted(held)
        return cls(bits, tuple(starts), tuple(min(1.0, max(0.0, held[start])) for start in starts))

    def share(self, threshold: int) -> float:
        """The estimated share of the records below the threshold."""
        return self.shares[bisect_right(self.starts, threshold) - 1]

    def quantile(self, share: float) -> int:
        """The least threshold with at least this share below it: a quantile is the point before it."""
        return next(start for start, held in zip(self.starts, self.shares, strict=True) if held >= share)

    def error(self, points: Multiset) -> float:
        """The largest error over all thresholds 0..2^bits, exactly: the truth ascends, so it is farthest at the ends of a step. For analysis: not private."""
        lasts = [*(start - 1 for start in self.starts[1:]), 1 << self.bits]
        estimates: Floats = np.array(self.shares)
        size = max(1, points.size)
        return max(float(np.abs(ranks(points, ends) / size - estimates).max()) for ends in (self.starts, lasts))
