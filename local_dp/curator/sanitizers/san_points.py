"""SanPoints: the counts of the most frequent points, found one by one; as printed, and rebuilt. Whether a point occurs is never told of rare ones."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.accounting.shares import optimal_part, printed_part
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.groups import Groups, Listed
from local_dp.curator.selection.printed import Goals, PrintedChoice
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.draws import Draws
from local_dp.loss import ATTO, NANO, Approximate, Pure, approximate


@dataclass(frozen=True)
class PointShares:
    """A share of the records for each point named, in 0..1, and 0 for every other."""

    shares: Mapping[int, float]

    def share(self, point: int) -> float:
        """The estimated share of the records at this point."""
        return self.shares.get(point, 0.0)

    def error(self, points: Multiset) -> float:
        """The largest error over all points of the domain, exactly. For analysis: not private."""
        size = max(1, points.size)
        truth = dict(zip(points.values.tolist(), points.counts.tolist(), strict=True))
        return max((abs(truth.get(point, 0) / size - self.share(point)) for point in {*truth, *self.shares}), default=0.0)


@dataclass(frozen=True)
class PointByPoint(Mechanism[Multiset, PointShares, Approximate]):
    """`rounds` times a frequent point is chosen among those that were not, and its records are counted with discrete Laplace noise; no answer ends it.

    Two parts of loss `part` in each round. Utility: rare points have the answer 0. Cost: O(rounds s), s distinct values.
    Source: Beimel, Nissim, Stemmer 2013, Figure 9, Theorem 4.6; erratum E8: 2 / alpha is rounded up.
    """

    epsilon: float
    delta: float
    goals: Goals

    def __post_init__(self) -> None:
        approximate(self.epsilon, self.delta)

    @property
    def rounds(self) -> int:
        """How many points are told, at most."""
        return math.ceil(2 / self.goals.alpha)

    @property
    @abstractmethod
    def part(self) -> Pure:
        """What each of the 2 `rounds` parts may cost, but for the deltas of the choices."""

    @abstractmethod
    def choose(self, groups: Groups[int], size: int, draws: Draws) -> int | None:
        """A frequent point, or None."""

    def release(self, database: Multiset, draws: Draws) -> PointShares:
        found: dict[int, float] = {}
        left, size, noise = np.ones(len(database.values), dtype=bool), max(1, database.size), Fraction(self.part.nano, NANO)
        for _ in range(self.rounds):
            point = self.choose(Listed(database.counts[left], database.values[left]), database.size, draws)
            if point is None:
                break
            at = int(np.searchsorted(database.values, database.values.dtype.type(point)))
            left[at] = False
            found[point] = min(1.0, max(0.0, (int(database.counts[at]) + draws.discrete_laplace(noise)) / size))
        return PointShares(found)


@dataclass(frozen=True)
class PrintedSanPoints(PointByPoint):
    """As printed: the text's split of Theorem 2.5, the printed choosing mechanism at alpha / 2 and alpha beta / 4.

    Privacy: (eps, delta) ONLY from `least` records on; below, `release` refuses. Utility: within alpha except with probability beta, in a domain of any size.
    """

    @property
    def loss(self) -> Approximate:
        return Approximate(approximate(self.epsilon, self.delta).nano, self.rounds * self._choice.loss.atto + self._spare)

    @property
    def part(self) -> Pure:
        return printed_part(Approximate(approximate(self.epsilon, self.delta).nano, self._spare), 2 * self.rounds)

    @property
    def least(self) -> int:
        """The number of records from which it is private."""
        return self._choice.least

    def choose(self, groups: Groups[int], size: int, draws: Draws) -> int | None:
        return self._choice.choose(groups, size, draws)

    @property
    def _spare(self) -> int:
        """The delta of the composition: a fifth, in units of 1e-18."""
        return approximate(self.epsilon, self.delta).atto // 5

    @property
    def _choice(self) -> PrintedChoice:
        alpha = 2 / self.rounds
        return PrintedChoice(self.part.epsilon, alpha * self.delta / 5, Goals(alpha / 2, alpha * self.goals.beta / 4))


@dataclass(frozen=True)
class SanPoints(PointByPoint):
    """Rebuilt: the sparse exponential mechanism, optimal composition. Private at every number of records; the thresholded histogram needs fewer.

    Privacy: (eps, delta), half of delta for the composition of 2 `rounds` equal parts, half for the choices.
    """

    @property
    def loss(self) -> Approximate:
        return Approximate(approximate(self.epsilon, self.delta).nano, self._spare + self.rounds * self._choice.loss.atto)

    @property
    def part(self) -> Pure:
        return optimal_part(Approximate(approximate(self.epsilon, self.delta).nano, self._spare), 2 * self.rounds)

    def choose(self, groups: Groups[int], size: int, draws: Draws) -> int | None:
        return self._choice.choose(groups, draws)

    @property
    def _spare(self) -> int:
        """The delta of the composition, in units of 1e-18."""
        return approximate(self.epsilon, self.delta).atto // 2

    @property
    def _choice(self) -> SparseChoice:
        return SparseChoice(self.part.epsilon, self._spare // self.rounds / ATTO)
