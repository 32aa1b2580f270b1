"""The release of a sanitizer of thresholds: for each threshold t of 0..2^bits the share of the records below t."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.curator.multisets import Multiset


def ranks(points: Multiset, thresholds: Sequence[int]) -> Ints:
    """The number of records below each threshold of 0..2^bits, exactly."""
    upto = np.concatenate([[0], np.cumsum(points.counts)])
    inside = np.array([min(threshold, (1 << points.bits) - 1) for threshold in thresholds], dtype=points.values.dtype)
    below: Ints = upto[np.searchsorted(points.values, inside)]
    below[[threshold >> points.bits > 0 for threshold in thresholds]] = upto[-1]
    return below


@dataclass(frozen=True)
class Steps:
    """A step function of the thresholds: `shares[i]`, in 0..1, from `starts[i]` on; `starts` ascend from 0."""

    bits: int
    starts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, bits: int, steps: Iterable[tuple[int, float]]) -> Self:
        """From thresholds of 0..2^bits, in any order, with the share from each on; the last share of a threshold counts. 0 below the first, 1 at 2^bits."""
        share_from = {0: 0.0, **dict(steps), 1 << bits: 1.0}
        starts = sorted(share_from)
        return cls(bits, tuple(starts), tuple(min(1.0, max(0.0, share_from[start])) for start in starts))

    def share(self, threshold: int) -> float:
        """The estimated share of the records below the threshold."""
        return self.shares[bisect_right(self.starts, threshold) - 1]

    def quantile(self, share: float) -> int:
        """The least threshold with at least this share below it: a quantile is the point before it."""
        return next(start for start, below in zip(self.starts, self.shares, strict=True) if below >= share)

    def error(self, points: Multiset) -> float:
        """The largest error over all thresholds 0..2^bits, exactly: the truth ascends, so it is at an end of a step. For analysis: not private."""
        lasts = [*(start - 1 for start in self.starts[1:]), 1 << self.bits]
        estimates: Floats = np.array(self.shares)
        size = max(1, points.size)
        return max(float(np.abs(ranks(points, ends) / size - estimates).max()) for ends in (self.starts, lasts))
