"""Baselines for a release of all thresholds: noisy counts in a tree of dyadic intervals, and in a histogram."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.steps import Steps, ranks
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, nano_epsilon

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
