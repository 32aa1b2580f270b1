"""SanPoints: the counts of the most frequent points, found one by one; as printed, and rebuilt. It
does not reveal whether a rare point occurs."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from local_dp.accounting.rules import optimal_part, printed_part
from local_dp.curator.mechanism import R, R_co, WithinDelta
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.groups import Groups, Listed
from local_dp.curator.selection.sparse import Goals, PrintedChoice, SparseChoice
from local_dp.draws import Draws
from local_dp.loss import ATTO, NANO, Approximate, Pure


@dataclass(frozen=True)
class PointShares:
    """A share of the records in 0..1 for each named point, and 0 for every other."""

    shares: Mapping[int, float]

    def share(self, point: int) -> float:
        return self.shares.get(point, 0.0)

    def error(self, points: Multiset) -> float:
        """The largest error over all points of the domain, exactly. For analysis: not private."""
        size = max(1, points.size)
        truth = dict(zip(points.values.tolist(), points.counts.tolist(), strict=True))
        errors = (
            abs(truth.get(point, 0) / size - self.share(point)) for point in {*truth, *self.shares}
        )
        return max(errors, default=0.0)


@dataclass(frozen=True)
class InParts(WithinDelta[Multiset, R_co]):
    """A sanitizer within (eps, delta) that repeats the same steps: pure parts of equal loss, and a
    choice with a delta of its own.

    1 / `delta_shares` of delta is for the composition of the parts, the rest for the choices.
    """

    epsilon: float
    delta: float
    goals: Goals
    steps: ClassVar[int]  # pure parts of one repetition
    delta_shares: ClassVar[int]
    growth: ClassVar[int] = 1  # the most candidates that a record is in

    @staticmethod
    @abstractmethod
    def compose(budget: Approximate, parts: int) -> Pure:
        """The loss that each of so many equal parts may have within the budget."""

    @property
    @abstractmethod
    def repetitions(self) -> int:
        """The largest number of repetitions."""

    @abstractmethod
    def choice(self, growth: int) -> PrintedChoice | SparseChoice:
        """The choice of one repetition, where a record is in `growth` candidates."""

    def choose(self, groups: Groups[R], growth: int, size: int, draws: Draws) -> R | None:
        """The candidate chosen, from a database of `size` records, or None: no answer."""
        choice = self.choice(growth)
        if isinstance(choice, PrintedChoice):
            return choice.choose(groups, size, draws)
        return choice.choose(groups, draws)

    @property
    def loss(self) -> Approximate:
        choices = self.repetitions * self.choice(self.growth).loss.atto
        return Approximate(super().loss.nano, self.composed + choices)

    @property
    def composed(self) -> int:
        """The delta of the composition, in units of 1e-18."""
        return super().loss.atto // self.delta_shares

    @property
    def part(self) -> Pure:
        budget = Approximate(super().loss.nano, self.composed)
        return self.compose(budget, self.steps * self.repetitions)


class Printed(InParts[R_co]):
    """As printed: the text's split of Theorem 2.5, and the printed choosing mechanism. Private ONLY
    from `least` records on; with fewer, it refuses."""

    delta_shares: ClassVar[int] = 5
    compose = staticmethod(printed_part)

    @property
    def least(self) -> int:
        """The least number of records with which it is private."""
        return self.choice(self.growth).least

    @abstractmethod
    def choice(self, growth: int) -> PrintedChoice: ...


class Rebuilt(InParts[R_co]):
    """Optimal composition and the sparse exponential mechanism: private at every number of records,
    half of delta for the parts, half for the choices."""

    delta_shares: ClassVar[int] = 2
    compose = staticmethod(optimal_part)

    def choice(self, growth: int) -> SparseChoice:
        return SparseChoice(self.part.epsilon, self.composed // self.repetitions / ATTO, growth)


@dataclass(frozen=True)
class PointByPoint(InParts[PointShares]):
    """`repetitions` times a frequent point is chosen among the remaining ones, and its records are
    counted with discrete Laplace noise; no answer ends it.

    Two parts of loss `part` in each round. Utility: rare points have the answer 0. Cost: O(rounds
    s), s distinct values. Source: Beimel, Nissim, Stemmer 2013, Figure 9, Theorem 4.6; erratum E8:
    2 / alpha is rounded up.
    """

    steps: ClassVar[int] = 2

    @property
    def repetitions(self) -> int:
        return math.ceil(2 / self.goals.alpha)

    def release(self, database: Multiset, draws: Draws) -> PointShares:
        shares: dict[int, float] = {}
        left, noise = np.ones(len(database.values), dtype=bool), Fraction(self.part.nano, NANO)
        for _ in range(self.repetitions):
            candidates = Listed(database.counts[left], database.values[left])
            point = self.choose(candidates, self.growth, database.size, draws)
            if point is None:
                break
            at = int(np.searchsorted(database.values, database.values.dtype.type(point)))
            left[at] = False
            count = int(database.counts[at]) + draws.discrete_laplace(noise)
            shares[point] = min(1.0, max(0.0, count / database.size))
        return PointShares(shares)


@dataclass(frozen=True)
class PrintedSanPoints(Printed[PointShares], PointByPoint):
    """As printed: the text's split of Theorem 2.5, the printed choosing mechanism at alpha / 2 and
    alpha beta / 4.

    Privacy: (eps, delta) ONLY from `least` records on; with fewer, `release` refuses. Utility:
    within alpha except with probability beta, in any domain.
    """

    summary = "Sanitizes point counts as printed"

    def choice(self, growth: int) -> PrintedChoice:
        alpha = 2 / self.repetitions
        goals = Goals(alpha / 2, alpha * self.goals.beta / 4)
        return PrintedChoice(self.part.epsilon, alpha * self.delta / 5, goals, growth)


@dataclass(frozen=True)
class SanPoints(Rebuilt[PointShares], PointByPoint):
    """Rebuilt: the sparse exponential mechanism and optimal composition. Private at every number of
    records; the thresholded histogram needs fewer.

    Privacy: (eps, delta), half of delta for the composition of 2 `repetitions` equal parts, half
    for the choices.
    """

    summary = "Sanitizes point counts, rebuilt from the text"
