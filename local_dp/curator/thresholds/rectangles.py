"""Axis-aligned rectangles, properly and privately: each side is a private rank query on the positive examples."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Ints, Naturals
from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset, check_bits, naturals
from local_dp.curator.thresholds.ranks import RankQuery
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate

Rectangle: TypeAlias = tuple[tuple[int, int], ...]
"""low..high on each axis, both ends included; empty where there is no axis."""

_SHARE = 0.6
"""Of the points that a side may lose, how many it is set to lose: found by trial; where less, there is no answer, where more, it loses too many."""


@dataclass(frozen=True)
class LabelledPoints:
    """m examples: `points`, shape (m, n), whole numbers of 0..2^bits - 1, and `labels` of 0 or 1, shape (m,)."""

    bits: int
    points: Naturals
    labels: Ints

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.labels.shape != self.points.shape[:1] or np.any((self.labels != 0) & (self.labels != 1)):
            raise InputError(f"the points have shape {self.points.shape}, the labels {self.labels.shape}; give one label of 0 or 1 for each point")
        naturals(self.points.ravel(), self.bits)

    def positives(self, axis: int) -> Multiset:
        """The coordinates of the examples labelled 1."""
        return Multiset.of(self.points[self.labels == 1, axis], self.bits)


@dataclass(frozen=True)
class RankRectangles(Mechanism[LabelledPoints, Rectangle, Approximate]):
    """The rectangle whose sides lie at rank .6 alpha m / (2 n) of the positive examples from each end of each axis; empty where some query has no answer.

    Privacy: 2 n rank queries of eps / (2 n) and delta / (2 n): a replaced example changes the positive ones by at most one left and one new.
    Utility: every side loses about .6 alpha / (2 n) of the points, on every distribution, and takes nothing from outside: of rank 1 or more it lies within the
    target's. Records grow as n^2 log(bits) / (alpha eps). Cost: O(n m log m). Source: instead of Beimel, Nissim, Stemmer 2013, Theorem 3.22.
    """

    bits: int
    axes: int
    alpha: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_whole("axes", self.axes, 1, 1 << 10)
        check_share("alpha", self.alpha)
        self.loss  # noqa: B018 - refuses what the queries refuse

    @property
    def loss(self) -> Approximate:
        side = self.side(1).loss
        return Approximate(2 * self.axes * side.nano, 2 * self.axes * side.atto)

    def side(self, rank: int) -> RankQuery:
        """The query that finds one side."""
        return RankQuery(self.bits, rank, self.epsilon / (2 * self.axes), self.delta / (2 * self.axes))

    def release(self, database: LabelledPoints, draws: Draws) -> Rectangle:
        if database.points.shape[1] != self.axes:
            raise InputError(f"the points have {database.points.shape[1]} coordinates; the rectangle {self.axes}")
        query, top = self.side(max(1, math.floor(_SHARE * self.alpha * len(database.labels) / (2 * self.axes)))), (1 << self.bits) - 1
        sides = []
        for axis in range(self.axes):
            positives = database.positives(axis)
            sides.append((query.release(positives, draws), query.release(_mirrored(positives), draws)))
        found = [(low, top - high) for low, high in sides if low is not None and high is not None]
        return tuple(found) if len(found) == self.axes and all(low <= high for low, high in found) else ()


def _mirrored(points: Multiset) -> Multiset:
    """Each point x as 2^bits - 1 - x."""
    top = np.array((1 << points.bits) - 1, dtype=points.values.dtype)
    return Multiset(points.bits, (top - points.values)[::-1], points.counts[::-1])


def inside(rectangle: Rectangle, points: Naturals) -> Bools:
    """Which points, shape (m, n), lie in the rectangle."""
    held = np.full(len(points), bool(rectangle))
    for axis, (low, high) in enumerate(rectangle):
        column = points[:, axis]
        held &= (column >= low) & (column <= high)
    return held
