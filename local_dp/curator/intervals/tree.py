"""Trees of counts: a pure release of all intervals, level by level."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.intervals.least_squares import Shape, branchings, consistent, largest_variance, nested
from local_dp.curator.intervals.level import IntervalCounts, Level, LevelCounts, check_domain
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import Pure, nano_epsilon, split_epsilon


@dataclass(frozen=True)
class CountTree(Mechanism[Multiset, IntervalCounts, Pure]):
    """All interval counts of the domain 0..2^bits - 1 from a tree of noisy counts with `branching` children a node; 2^bits of them put noise on every cell.

    Privacy: epsilon, pure, in equal parts on h = ceil(bits / log2 b) levels; the root is n, which is public.
    Utility: `deviation`; the largest error over all intervals is about four times that. `by_least_squares` makes the counts consistent, which never loses;
    without it, they are added up as they are. Cost: O(D): 2^20 points in a fifth of a second.
    Source: Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013 on the branching.
    """

    bits: int
    epsilon: float
    branching: int = 16
    by_least_squares: bool = True

    def __post_init__(self) -> None:
        check_domain(self.bits)
        check_whole("branching", self.branching, 2, 1 << self.bits)
        if nano_epsilon(self.epsilon) < self.shape.height:
            raise InputError(f"epsilon is {self.epsilon} for {self.shape.height} levels; give a larger epsilon or branching")

    @property
    def shape(self) -> Shape:
        """The shape of the tree."""
        return Shape(1 << self.bits, self.branching)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The mechanisms, from the largest intervals to the points."""
        each = split_epsilon(self.epsilon, self.shape.height)
        return tuple(Level(self.bits, width, each) for width in self.shape.widths)

    @property
    def loss(self) -> Pure:
        return sum((level.loss for level in self.levels), Pure(0))

    @property
    def deviation(self) -> float:
        """The largest standard deviation of a consistent interval count, at most, in records."""
        one = 1 / (2 * math.sinh(self.levels[0].epsilon / 4) ** 2)  # cosh(x) - 1 = 2 sinh(x / 2)^2
        return math.sqrt(one * largest_variance(1 << self.bits, self.branching))

    def algorithm(self, size: int) -> Nonadaptive[Level, LevelCounts, IntervalCounts]:
        """The tree as a curator's algorithm for `size` records: it asks all levels at once, so it is CNI."""
        return Nonadaptive(self.levels, lambda answers: self._decode(answers, size))

    def release(self, database: Multiset, draws: Draws) -> IntervalCounts:
        return self._decode(tuple(level.release(database, draws) for level in self.levels), database.size)

    def _decode(self, answers: tuple[LevelCounts, ...], size: int) -> IntervalCounts:
        counts = [answer.counts for answer in answers]
        if not self.by_least_squares:
            return IntervalCounts(nested(counts, self.shape, size))
        return IntervalCounts(np.append(0.0, np.cumsum(consistent(counts, self.shape, size))))


def best_branching(bits: int, epsilon: float) -> int:
    """The branching with the least `CountTree.deviation`: 2^bits, a flat histogram, on small domains; about 16 on large ones."""
    check_domain(bits)
    return min(branchings(1 << bits), key=lambda branching: CountTree(bits, epsilon, branching).deviation)
