"""Axis-aligned rectangles: each side is a private rank query on the positive examples; and the plan
of Beimel, Nissim, Stemmer 2013, Section 3.5.

A rank query finds a point of a given rank among few candidates: the middles of dyadic intervals,
and the points that occur.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Ints, Naturals
from local_dp.checks import check_built, check_share, check_whole
from local_dp.curator.mechanism import L_co, Law, Mechanism, OfRelease
from local_dp.curator.multisets import Multiset, check_bits, check_same, naturals, upto
from local_dp.curator.sanitizers.medians import Steps
from local_dp.curator.selection.groups import Groups, Joined, Listed
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.dyadic import middles, spare, surely_within
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Loss, Pure, nano_epsilon

_FAILURE = 0.1


@dataclass(frozen=True)
class RankQuery(Mechanism[Multiset, int | None, Approximate]):
    """A number with about `rank` points below it, with weight e^(eps min(s, H - off) / 2); None, no
    answer, where there are too few points.

    Candidates: 0 and 2^bits; the middle t of each dyadic interval with s >= 1 points, off = |points
    below t - rank|; and each point x that occurs s times. For these off is the distance of `rank`
    from [points below x, points up to x], so that a frequent point is found. H = r + `spare`, where
    r is the smaller of `rank` and `surely_within`. Privacy: (eps, delta), also if the number of
    points changes by 1: a point is in `bits` + 1 candidates and moves a score by 1 at most.
    Utility: off by r at most nine times of ten, if `rank` is no less than `surely_within`. Cost:
    O(m log m).
    """

    summary = "Releases a number of about a given rank"
    bits: int
    rank: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_whole("rank", self.rank, 1, 1 << 53)
        check_built(self.choice.loss)  # refuses what the choice refuses

    @property
    def choice(self) -> SparseChoice:
        return SparseChoice(self.epsilon, self.delta, self.bits + 1)

    @property
    def loss(self) -> Approximate:
        return self.choice.loss

    @property
    def height(self) -> int:
        """H."""
        within = min(self.rank, surely_within(self.bits + 1, self.epsilon, self.delta, _FAILURE))
        return math.floor(within + spare(self.epsilon, self.delta))

    def candidates(self, points: Multiset) -> Groups[int]:
        """With their scores; a number may be a candidate twice."""
        check_same(points.bits, self.bits)
        far, height = upto(points.counts) - self.rank, self.height
        off = np.maximum(0, np.maximum(far[:-1], -far[1:]))
        own = Listed(np.minimum(points.counts, height - off), points.values)
        return Joined(middles(points, height - np.abs(far)), own)

    def release(self, database: Multiset, draws: Draws) -> int | None:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: Multiset) -> Law[int | None]:
        return self.choice.law(self.candidates(database))


# low..high on each axis, both ends included; empty where there is no axis
Rectangle: TypeAlias = tuple[tuple[int, int], ...]

_SHARE = 0.6
"""The share of its allowed loss that a side is set to: by trial; with less there is no answer, with
more it loses too many points."""


@dataclass(frozen=True)
class LabelledPoints:
    """m examples: `points`, shape (m, n), whole numbers of 0..2^bits - 1, and `labels` of 0 or 1,
    shape (m,)."""

    bits: int
    points: Naturals
    labels: Ints

    def __post_init__(self) -> None:
        fits = self.points.ndim == 2 and self.labels.shape == self.points.shape[:1]
        if not fits or np.any((self.labels != 0) & (self.labels != 1)):
            raise InputError(
                f"the points have shape {self.points.shape}, the labels {self.labels.shape}; give "
                "one label of 0 or 1 for each point"
            )
        naturals(self.points.ravel(), self.bits)

    def positives(self, axis: int) -> Multiset:
        return Multiset.of(self.points[self.labels == 1, axis], self.bits)


@dataclass(frozen=True)
class RankRectangles(Mechanism[LabelledPoints, Rectangle, Approximate]):
    """The rectangle whose sides lie at rank .6 alpha m / (2 n) of the positive examples from each
    end of each axis; empty where some query has no answer.

    Privacy: 2 n rank queries of eps / (2 n) and delta / (2 n): a replaced example changes the
    positive ones by at most one left and one new. Utility: every side loses about .6 alpha / (2 n)
    of the points, on every distribution, and takes nothing from outside: of rank 1 or more it lies
    within the target's. Records grow as n^2 log(bits) / (alpha eps). Cost: O(n m log m). Source:
    instead of Beimel, Nissim, Stemmer 2013, Theorem 3.22.
    """

    summary = "Learns a rectangle from private ranks"
    bits: int
    axes: int
    alpha: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("axes", self.axes, 1, 1 << 10)
        check_share("alpha", self.alpha)
        check_built(self.loss)  # refuses what the queries refuse

    @property
    def loss(self) -> Approximate:
        side = self.side(1).loss
        return Approximate(2 * self.axes * side.nano, 2 * self.axes * side.atto)

    def side(self, rank: int) -> RankQuery:
        return RankQuery(
            self.bits, rank, self.epsilon / (2 * self.axes), self.delta / (2 * self.axes)
        )

    def rank(self, size: int) -> int:
        """The rank of a side among the positive ones of so many examples."""
        return max(1, math.floor(_SHARE * self.alpha * size / (2 * self.axes)))

    def lost(self, size: int, misses: float = 0.05) -> int | None:
        """X: a rectangle of `size` examples is released that leaves out more than X positive ones
        with probability `misses` at most; None for no X below size.

        Of each side: as in `DyadicThresholds.excess`, a candidate of score c = (H + 1) / 2 or more
        exists unless there are fewer than c positive ones. A released number is off by more than x
        with probability (candidates) e^(eps (H - x - 1 - c) / 2) at most; otherwise rank + x are
        lost, or all, below c.
        """
        side = self.side(self.rank(size))
        rate, height = -math.log1p(float(side.choice.decay - 1)), side.height
        least = (height + 1) // 2
        candidates = ((self.bits + 1) * size + 2) * 2 * self.axes
        off = height - 1 - least + math.ceil(math.log(candidates / misses) / rate)
        loss = 2 * self.axes * max(least, side.rank + off)
        return loss if loss < size else None

    def release(self, database: LabelledPoints, draws: Draws) -> Rectangle:
        if database.points.shape[1] != self.axes:
            raise InputError(
                f"the points have {database.points.shape[1]} coordinates; the rectangle {self.axes}"
            )
        query, top = self.side(self.rank(len(database.labels))), (1 << self.bits) - 1
        sides = []
        for axis in range(self.axes):
            positives = database.positives(axis)
            values = (top - positives.values)[::-1]
            mirror = Multiset(self.bits, values, positives.counts[::-1])
            low, high = query.release(positives, draws), query.release(mirror, draws)
            if low is not None and high is not None and low <= top - high:
                sides.append((low, top - high))
        return tuple(sides) if len(sides) == self.axes else ()


def inside(rectangle: Rectangle, points: Naturals) -> Bools:
    """Which points, shape (m, n), lie in the rectangle."""
    within = np.full(len(points), bool(rectangle))
    for axis, (low, high) in enumerate(rectangle):
        column = points[:, axis]
        within &= (column >= low) & (column <= high)
    return within


_PARTS = 12


@dataclass(frozen=True)
class QuantilePartition(OfRelease[Multiset, tuple[int, ...], L_co]):
    """The cuts of a sanitizer of thresholds at the shares 1 / `parts`, 2 / `parts`, ..., as in the
    text. Privacy: the sanitizer's."""

    summary = "Cuts an axis at private quantiles"
    mechanism: Mechanism[Multiset, Steps, L_co]
    parts: int

    def __post_init__(self) -> None:
        check_whole("parts", self.parts, 2, 1 << 16)

    def after(self, release: Steps) -> tuple[int, ...]:
        cuts = {release.quantile(part / self.parts) for part in range(1, self.parts)}
        return tuple(sorted(cut for cut in cuts if 0 < cut < 1 << release.bits))


@dataclass(frozen=True)
class PartitionRectangles(Mechanism[LabelledPoints, Rectangle, Approximate]):
    """On each axis from the first to the last interval whose noisy count of positive examples is
    alpha m / (12 n W) or more, W intervals; else empty.

    `partition` gives the ascending cuts of one axis, private for its projection; `epsilon` is for
    the counts of one axis. Privacy: for each of the n axes the partition's loss and epsilon, added
    up: a replaced example moves two counts by 1, each with discrete Laplace(eps / 2). Utility:
    where each interval has few points, or one: the overshoot of an interval, and W counts below the
    bar. Cost: that of the partitions. Source: Section 3.5, completed; for the printed sizes
    `partition` is a sanitizer of thresholds.
    """

    summary = "Learns a rectangle from noisy counts of intervals"
    partition: Mechanism[Multiset, tuple[int, ...], Loss]
    axes: int
    alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("axes", self.axes, 1, 1 << 10)
        check_share("alpha", self.alpha)
        nano_epsilon(self.epsilon / 2)

    @property
    def loss(self) -> Approximate:
        axis = self.partition.loss + Pure(2 * nano_epsilon(self.epsilon / 2))
        return Approximate(self.axes * axis.nano, self.axes * axis.atto)

    def release(self, database: LabelledPoints, draws: Draws) -> Rectangle:
        sides = [self._side(database, axis, draws) for axis in range(self.axes)]
        return tuple(side for side in sides if side) if all(sides) else ()

    def _side(self, database: LabelledPoints, axis: int, draws: Draws) -> tuple[int, int] | None:
        projection = Multiset.of(database.points[:, axis], database.bits)
        cuts = self.partition.release(projection, draws)
        noise = Fraction(nano_epsilon(self.epsilon / 2), NANO)
        bar = self.alpha * len(database.labels) / (_PARTS * self.axes * (len(cuts) + 1))
        positives = database.positives(axis)
        below = np.append(0, np.cumsum(positives.counts))
        ends_at = np.searchsorted(positives.values, np.array(cuts, dtype=positives.values.dtype))
        counts = np.diff(below[[0, *ends_at, -1]])
        full = [
            number
            for number, count in enumerate(counts.tolist())
            if count + draws.discrete_laplace(noise) >= bar
        ]
        ends = [0, *cuts, 1 << database.bits]
        return (ends[full[0]], ends[full[-1] + 1] - 1) if full else None
