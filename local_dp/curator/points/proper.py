"""The pure proper point learner: the exponential mechanism over all points of the domain, in two kinds of groups."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.curator.multisets import LabelledMultiset, Multiset, absent
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Groups


class AllPoints(Groups[int]):
    """The points that occur, each of its count, and all others of the domain together, of score 0."""

    def __init__(self, points: Multiset) -> None:
        others = (1 << points.bits) - len(points.values)
        fits = points.values.dtype != object and others >> 64 == 0
        self.scores: Ints = np.append(points.counts, 0)
        self.sizes: Naturals = np.array([1] * len(points.values) + [others], dtype=np.uint64 if fits else object)
        self._values = points.values

    def member(self, group: int, place: int) -> int:
        return int(self._values[group]) if group < len(self._values) else absent(self._values, [place])[0]


@dataclass(frozen=True)
class ProperPointLearner(ByScore[LabelledMultiset, int]):
    """A point x with probability proportional to e^(eps q(x) / 2), q(x) how many examples are (x, 1).

    Privacy: eps. Utility: within alpha of the target with 302 examples at 2^16 points, alpha .1, 90 % and eps 1, 1,018 at 2^64 (`bounds.points.pure_success`);
    no pure proper learner does with fewer than 155 and 520 (`bounds.packing.point_records`).
    Cost: that of the points that occur, and one power of 2 bits / eps factors. Source: KLNRS 2008, Theorem 3.7; Beimel, Nissim, Stemmer 2013, Section 3.1.
    """

    epsilon: float

    def candidates(self, database: LabelledMultiset) -> AllPoints:
        """A replaced example moves a multiplicity by at most 1."""
        return AllPoints(database.labelled(1))
