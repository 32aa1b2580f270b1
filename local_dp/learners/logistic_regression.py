"""Logistic regression by gradient descent."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.checks import check_positive
from local_dp.interaction import Adaptive
from local_dp.learners.halfspaces import Descending, Halfspace, within
from local_dp.learners.learner import features
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalRounds
from local_dp.populations.finite import Finite
from local_dp.queries.numbers import matrix

SMOOTHNESS = 0.25  # of the logistic loss, for records of norm at most 1


def logistic_loss(halfspace: Halfspace, population: Finite) -> float:
    """E[ln(1 + e^(-y <w, x>))]."""
    records = population.kinds
    margin = records["y"] * (np.array(halfspace.weights) @ matrix(records, features(len(halfspace.weights))))
    return float(population.shares @ np.logaddexp(0.0, -margin))


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(Descending):
    """Minimises the logistic loss over norm(w) <= radius, for records of norm at most 1 and labels +1/-1: loss at most the least plus alpha.

    Projected gradient descent with step 1 / L = 4, averaged; d queries a round for ceil(L R^2 / alpha) rounds. An error of delta in the norm of each gradient
    costs at most 2 R delta: with abs(x_j) <= bound, alpha / 2 of it allows the tolerance alpha / (4 R sqrt d bound). Source: d'Aspremont 2008; limits 9.
    """

    name: ClassVar[str] = "logistic-regression"
    source: ClassVar[str] = "inexact gradient descent (d'Aspremont 2008)"
    radius: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("radius", self.radius)

    @property
    def proven(self) -> float:
        return self.alpha / (4 * self.radius * math.sqrt(self.d) * self.scale)

    @property
    def queries(self) -> int:
        return self.d * self.rounds

    @property
    def rounds(self) -> int:
        return math.ceil(SMOOTHNESS * self.radius**2 / self.alpha)

    def algorithm(self) -> StatisticalRounds[Halfspace]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[Halfspace]:
        weights, total = np.zeros(self.d), np.zeros(self.d)
        for _ in range(self.rounds):
            answers = yield self.descents("logistic", weights)
            weights = within(weights + self.scale * np.array(answers) / SMOOTHNESS, self.radius)
            total += weights
        return Halfspace(tuple((total / self.rounds).tolist()))
