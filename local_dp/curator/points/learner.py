"""The pure proper point learner: the exponential mechanism over all points of the domain, in two kinds of groups."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.curator.mechanism import Law, WithinDelta
from local_dp.curator.multisets import LabelledMultiset, Multiset, absent
from local_dp.curator.selection.exponential import LISTED, ByScore
from local_dp.curator.selection.groups import Groups
from local_dp.curator.selection.stable import Lead, StableChoice, best_acceptance
from local_dp.draws import Draws
from local_dp.errors import InputError


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

    Privacy: eps. Utility: within alpha of the target with 302 examples at 2^16 points, alpha .1, 90 % and eps 1, 1,018 at 2^64 (`bounds.packing.pure_success`);
    no pure proper learner does with fewer than 155 and 520 (`bounds.packing.point_records`).
    Cost: that of the points that occur, and one power of 2 bits / eps factors. Source: KLNRS 2008, Theorem 3.7; Beimel, Nissim, Stemmer 2013, Section 3.1.
    """

    epsilon: float

    def candidates(self, database: LabelledMultiset) -> AllPoints:
        """A replaced example moves a multiplicity by at most 1."""
        return AllPoints(database.labelled(1))


def leading_point(examples: LabelledMultiset) -> Lead[int]:
    """The point most often labelled 1, the lowest of those that tie, and its lead; 0 with no lead where no label is 1."""
    second, first = np.partition(np.append(examples.ones, (0, 0)), -2)[-2:].tolist()
    return Lead(int(examples.values[np.argmax(examples.ones)]), first - second) if first else Lead(0, 0)


@dataclass(frozen=True)
class PointLearner(WithinDelta[LabelledMultiset, int | None]):
    """The point x whose examples (x, 1) lead by enough, by stable choice; without an answer None, the all-zero hypothesis, or a uniform point.

    The hypothesis x is 1 at x alone. `otherwise` "zero" is proper in the points with the all-zero function added, "uniform" in the points alone.
    Privacy: (eps, delta): a replaced example moves the multiplicity of (x, 1) by at most 1.
    Utility: within alpha of the target with 345 examples at alpha .1, 90 % and (1, 1e-6), 192 at delta 1e-3, whatever the domain
    (`bounds.packing.stable_success`). A uniform point errs where it is and at the target, by 2 alpha in the worst case (erratum E3); in a domain of many more
    than 1 / (alpha beta) points, where it hardly ever is a heavy one, the same examples do (`uniform_success`).
    Cost: one pass. Source: Beimel, Nissim, Stemmer 2013, Lemma 3.2 and Remark 3.3, on stable choice repaired (E1).
    """

    epsilon: float
    delta: float
    otherwise: Literal["zero", "uniform"] = "zero"

    def __post_init__(self) -> None:
        best_acceptance(self.loss)
        if self.otherwise not in ("zero", "uniform"):
            raise InputError(f"otherwise is {self.otherwise!r}; give 'zero' or 'uniform'")

    @property
    def choice(self) -> StableChoice[LabelledMultiset, int]:
        """The stable choice that it is."""
        return StableChoice(leading_point, self.epsilon, self.delta)

    def release(self, database: LabelledMultiset, draws: Draws) -> int | None:
        told = self.choice.release(database, draws)
        return draws.below(1 << database.bits) if told is None and self.otherwise == "uniform" else told

    def law(self, database: LabelledMultiset) -> Law[int | None]:
        told = self.choice.law(database)
        if self.otherwise == "zero":
            return told
        domain = 1 << database.bits
        if domain > LISTED:
            raise InputError(f"there are 2^{database.bits} points; a law is listed up to {LISTED}")
        silent = told.get(None, 0)
        return {point: told.get(point, 0) * domain + silent for point in range(domain)}
