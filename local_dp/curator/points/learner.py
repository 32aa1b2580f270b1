"""The point learner: approximate privacy at a price that does not depend on how many points there are."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from local_dp.curator.mechanism import Law, WithinDelta
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.selection.acceptance import best_acceptance
from local_dp.curator.selection.exponential import LISTED
from local_dp.curator.selection.stable import Lead, StableChoice
from local_dp.draws import Draws
from local_dp.errors import InputError


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
    (`bounds.points.stable_success`). A uniform point errs where it is and at the target, by 2 alpha in the worst case (erratum E3); in a domain of many more
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
