"""Axis-aligned rectangles by the plan of Section 3.5 of Beimel, Nissim, Stemmer 2013: cut each axis, count the positives between cuts, keep the outer ones."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.thresholds.rectangles import LabelledPoints, Rectangle
from local_dp.draws import Draws
from local_dp.loss import NANO, Approximate, Loss, Pure, nano_epsilon

_PARTS = 12
L_co = TypeVar("L_co", bound=Loss, covariant=True)


@dataclass(frozen=True)
class QuantilePartition(Mechanism[Multiset, tuple[int, ...], L_co]):
    """The cuts that a sanitizer of thresholds puts at the shares 1 / `parts`, 2 / `parts`, ...: what the text plugs in. Privacy: the sanitizer's."""

    sanitizer: Mechanism[Multiset, Steps, L_co]
    parts: int

    def __post_init__(self) -> None:
        check_whole("parts", self.parts, 2, 1 << 16)

    @property
    def loss(self) -> L_co:
        return self.sanitizer.loss

    def release(self, database: Multiset, draws: Draws) -> tuple[int, ...]:
        steps = self.sanitizer.release(database, draws)
        cuts = {steps.quantile(part / self.parts) for part in range(1, self.parts)}
        return tuple(sorted(cut for cut in cuts if 0 < cut < 1 << database.bits))


@dataclass(frozen=True)
class PartitionRectangles(Mechanism[LabelledPoints, Rectangle, Approximate]):
    """On each axis from the first to the last interval whose noisy count of positive examples is alpha m / (12 n W) or more, W intervals; empty if none is.

    `partition` gives the ascending cuts of one axis, private for its projection; `epsilon` is for the counts of one axis.
    Privacy: for each of the n axes the partition's loss and epsilon, added up: a replaced example moves two counts by 1, each with discrete Laplace(eps / 2).
    Utility: where each interval holds few points, or one: what an interval overshoots by, and W counts below the bar. Cost: that of the partitions.
    Source: Section 3.5, completed; for the printed sizes `partition` is a sanitizer of thresholds.
    """

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
        projected = Multiset.of(database.points[:, axis], database.bits)
        cuts = self.partition.release(projected, draws)
        noise = Fraction(nano_epsilon(self.epsilon / 2), NANO)
        bar = self.alpha * len(database.labels) / (_PARTS * self.axes * (len(cuts) + 1))
        counts = _counts(database.positives(axis), cuts)
        flagged = [number for number, count in enumerate(counts.tolist()) if count + draws.discrete_laplace(noise) >= bar]
        ends = [0, *cuts, 1 << database.bits]
        return (ends[flagged[0]], ends[flagged[-1] + 1] - 1) if flagged else None


def _counts(points: Multiset, cuts: tuple[int, ...]) -> Ints:
    """How many points lie before the first cut, from each cut to the next, and from the last one on."""
    below = np.concatenate([[0], np.cumsum(points.counts)])
    upto = below[np.searchsorted(points.values, np.array(cuts, dtype=points.values.dtype))]
    counts: Ints = np.diff(np.concatenate([[0], upto, below[-1:]]))
    return counts
