"""The median of points of 0..2^bits - 1: its local sensitivity at every distance, and four private medians. Of an even number of records, the lower one."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Runs
from local_dp.curator.sensitivity.mechanisms import GlobalNoise, LocalSensitivity, Proposed, SmoothNoise
from local_dp.errors import InputError

MAX_BITS = 62


class Median(LocalSensitivity):
    """The median x_m of n sorted points, and A_k, the largest of x_(m + t) - x_(m + t - k - 1), t = 0..k + 1, with 0 before the first and `last` after.

    Of k + 2 neighbouring points around place m, k replaced records can make any two adjacent. Cost: O(k) a look.
    Source: Nissim, Raskhodnikova, Smith 2007, Proposition 3.4; of an even number of points too. Raises InputError for no points, or beyond 62 bits.
    """

    def __init__(self, points: Multiset) -> None:
        check_whole("the number of bits", points.bits, 1, MAX_BITS)
        self.last = self.most = (1 << points.bits) - 1
        self.reach = _records(points)
        self._middle = (self.reach + 1) // 2
        self._upto: Counts = np.cumsum(points.counts)
        self._values = np.append(points.values.astype(np.int64), self.last)
        self._near = self._at(np.array([self._middle]))
        self.value = int(self._near[0])

    def within(self, distance: int) -> int:
        k, radius = min(distance, self.reach), len(self._near) // 2
        if k >= radius:
            radius = k + 1
            self._near = self._at(np.arange(self._middle - radius, self._middle + radius + 1))
        return int((self._near[radius : radius + k + 2] - self._near[radius - k - 1 : radius + 1]).max())

    def _at(self, places: Ints) -> Counts:
        """The points at these places, 1..n, and beyond."""
        return np.asarray(np.where(places < 1, 0, self._values[np.searchsorted(self._upto, places)]))


def _records(points: Multiset) -> int:
    if not points.size:
        raise InputError("there are no records; give one or more")
    return points.size


class OfMedian:
    """A mechanism whose answer is the median. Domains of up to 2^62."""

    def local(self, database: Multiset) -> LocalSensitivity:
        return Median(database)


@dataclass(frozen=True)
class SmoothMedian(OfMedian, SmoothNoise[Multiset]):
    """The median with Cauchy noise of its smooth sensitivity, clipped to the domain: pure. Domains of up to 2^62."""


@dataclass(frozen=True)
class ProposedMedian(OfMedian, Proposed[Multiset]):
    """The median with Laplace noise for a proposed sensitivity, or None: approximate. Domains of up to 2^62."""


@dataclass(frozen=True)
class GlobalMedian(OfMedian, GlobalNoise[Multiset]):
    """The median with noise for the whole domain: pure, and no better than a guess. The baseline."""


@dataclass(frozen=True)
class ExponentialMedian(ByScore[Multiset, int]):
    """A point y with weight e^(-eps d / 2), d the number of records to replace until the median is y: the competitor of noise. Domains of any size.

    Privacy: epsilon, pure: a replaced record moves d by at most 1. Utility: a rank error of about (2 / eps) ln(2^bits), less where the points lie close.
    Source: Smith 2011; as inverse sensitivity, Asi, Duchi 2020.
    """

    epsilon: float

    def candidates(self, database: Multiset) -> Runs:
        middle, last = (_records(database) + 1) // 2, (1 << database.bits) - 1
        upto = np.cumsum(database.counts)
        before = np.concatenate([[0], upto[:-1]])
        ends = np.repeat(database.values, 2)
        ends[::2] -= ends.dtype.type(1) if ends.dtype != object else 1
        between, at = middle - np.append(0, upto), middle - upto
        scores = np.empty(2 * len(upto) + 1, dtype=np.int64)
        scores[::2] = -np.maximum(between, 1 - between)
        scores[1::2] = -np.maximum(0, np.maximum(at, before + 1 - middle))
        if database.values[0] == 0:  # no candidate lies before the first point, or after the last
            ends, scores = ends[1:], scores[1:]
        if int(database.values[-1]) == last:
            ends, scores = ends[:-1], scores[:-1]
        return Runs(ends, scores, last)
