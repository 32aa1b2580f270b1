"""The release of a sanitizer of thresholds: for each threshold t of 0..2^bits the share of the records below t."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, nano_epsilon


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


MAX_CELLS = 1 << 20


@dataclass(frozen=True)
class DyadicTree(Mechanism[Multiset, Steps, Pure]):
    """Noisy counts of the dyadic intervals of `levels` lengths 2^(bits - 1), 2^(bits - 2), ..., only below intervals of share `worth` or more.

    Privacy: epsilon, pure: at each length a replaced record moves two counts by 1, each with discrete Laplace noise of eps / (2 levels). An interval's two
    halves share it in proportion to their noisy counts. An interval that is not divided is answered half-way.
    Utility: needs all `bits` levels where records lie close together, with an error of about (2 bits / eps) sqrt(bits).
    Source: hierarchical counts of Hay, Rastogi, Miklau, Suciu 2010, pruned as in Cormode et al. 2012.
    """

    epsilon: float
    levels: int
    worth: float = 0.02

    def __post_init__(self) -> None:
        check_whole("levels", self.levels, 1, 1 << 16)
        if nano_epsilon(self.epsilon) < 2 * self.levels:
            raise InputError(f"epsilon is {self.epsilon} for {self.levels} levels; give a larger epsilon or fewer levels")

    @property
    def loss(self) -> Pure:
        return Pure(self._count * 2 * self.levels)

    def release(self, database: Multiset, draws: Draws) -> Steps:
        return Steps.of(database.bits, self._steps(database, draws))

    @property
    def _count(self) -> int:
        """The cost of one count, in nano-nats."""
        return nano_epsilon(self.epsilon) // (2 * self.levels)

    def _steps(self, points: Multiset, draws: Draws) -> Iterator[tuple[int, float]]:
        """The share at the start of each undivided interval, and half of its own share more just after, in order."""
        bits, noise, left = points.bits, Fraction(self._count, NANO), [(0, points.bits, 1.0)]
        below = 0.0
        while left:
            low, height, share = left.pop()
            if share < self.worth or not height or bits - height == self.levels:
                yield low, below
                yield low + 1, below + share / (2 if height else 1)
                below += share
                continue
            middle = low + (1 << height >> 1)
            ends = ranks(points, [low, middle, low + (1 << height)])
            zeros, ones = (max(0, int(count) + draws.discrete_laplace(noise)) for count in np.diff(ends))
            part = share * zeros / (zeros + ones) if zeros + ones else share / 2
            left += [(middle, height - 1, share - part), (low, height - 1, part)]


@dataclass(frozen=True)
class NoisyHistogram(Mechanism[Multiset, Steps, Pure]):
    """Noisy counts of 2^`cells` equal parts of the domain; within a part, half of it.

    Privacy: epsilon, pure: a replaced record moves two counts by 1, each with discrete Laplace noise of eps / 2.
    Utility: useless if the records lie in few of the parts, as they do in a domain without declared bounds.
    """

    epsilon: float
    cells: int

    def __post_init__(self) -> None:
        check_whole("cells", self.cells, 1, int(math.log2(MAX_CELLS)))
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(2 * (nano_epsilon(self.epsilon) // 2))

    def release(self, database: Multiset, draws: Draws) -> Steps:
        height = max(0, database.bits - self.cells)
        starts = [cell << height for cell in range(1 << (database.bits - height))]
        noise = Fraction(nano_epsilon(self.epsilon) // 2, NANO)
        counts = [max(0, int(count) + draws.discrete_laplace(noise)) for count in np.diff(ranks(database, [*starts, 1 << database.bits]))]
        upto, total = np.cumsum([0, *counts]), max(1, sum(counts))
        whole = {start: below / total for start, below in zip(starts, upto[:-1].tolist(), strict=True)}
        halves = {start + 1: (below + count / 2) / total for start, below, count in zip(starts, upto.tolist(), counts, strict=False)} if height else {}
        return Steps.of(database.bits, {**whole, **halves}.items())
