"""Sets of k points from released counts: each answer is a sum of k of them, added up when it is asked for."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from local_dp.arrays import Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import Multiset, naturals
from local_dp.curator.sanitizers.cells import NoisyCounts
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Loss

L_co = TypeVar("L_co", bound=Loss, covariant=True)


@dataclass(frozen=True)
class KPointAnswers:
    """Answers to the C(2^bits, k) queries of k-POINT, from noisy counts."""

    k: int
    told: NoisyCounts

    def share(self, points: Naturals) -> float:
        """The share of the records in a set of k distinct points, 0 to 1 included or beyond by the noise. O(k log s). Raises InputError for other sets."""
        asked = np.unique(naturals(points, self.told.bits))
        if len(asked) != self.k or len(points) != self.k:
            raise InputError(f"{len(points)} points are given, {len(asked)} of them distinct; give {self.k} distinct points")
        return float(self.told.at(asked).sum()) / max(1, self.told.size)

    def worst_error(self, points: Multiset) -> float:
        """The largest error of a share, over all sets of k points."""
        return self.told.worst_error(points, self.k) / max(1, self.told.size)


@dataclass(frozen=True)
class KPointSanitizer(Mechanism[Multiset, KPointAnswers, L_co]):
    """All sets of k points, from one release of point counts that is k times as accurate.

    Privacy: that of the release. Utility: within alpha where each count is within alpha m / k: 340, 720, 1,480, 3,120 records for k = 1, 2, 4, 8 by the
    thresholded histogram at alpha .1 and (1, 1e-6). Source: Beimel, Nissim, Stemmer 2013, Figure 10 and Theorem 4.7.
    """

    k: int
    counts: Mechanism[Multiset, NoisyCounts, L_co]

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1, 1 << 20)

    @property
    def loss(self) -> L_co:
        return self.counts.loss

    def release(self, database: Multiset, draws: Draws) -> KPointAnswers:
        return KPointAnswers(self.k, self.counts.release(database, draws))

    def law(self, database: Multiset) -> Law[KPointAnswers]:
        return {KPointAnswers(self.k, told): weight for told, weight in self.counts.law(database).items()}
