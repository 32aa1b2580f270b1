"""Descent on a loss of the margin, as it is run in practice: few rounds of long steps, and the second half averaged."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.bounds.response import response_gain
from local_dp.checks import check_positive, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.learners.halfspaces import Descending, Halfspace, within
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalRounds
from local_dp.queries.margins import LOSSES


@dataclass(frozen=True, kw_only=True)
class MarginDescent(Descending):
    """Projected descent on E[loss(y <w, x>)] over norm(w) <= radius, for records of norm at most 1: `steps` rounds of length `length`, d queries each.

    Its promise compares it with itself on exact expectations. For the logistic loss, whose smoothness is 1/4, a step of at most 8 moves two points no further
    apart, so whatever the answers within alpha / (steps length sqrt d bound) the weights are within alpha of the exact ones, in norm. Fresh clients err at
    random: with n of them in all, a coordinate of the weights has on average at most the variance d (steps length C bound)^2 / n. `clients` makes that
    `spread`^2. For the hinge loss, whose steps are not contractions, the count is a rule of thumb; its own guarantee is that of `protocols.sgd`.
    Source: Duchi, Jordan, Wainwright 2013; averaging: Polyak, Juditsky 1992.
    """

    name: ClassVar[str] = "margin-descent"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013; Polyak, Juditsky 1992"
    loss: str = "logistic"
    steps: int = 60
    length: float = 8.0
    radius: float = 20.0
    spread: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("steps", self.steps, 1, 100_000)
        check_positive("radius", self.radius)
        check_positive("spread", self.spread)
        if not 0 < self.length <= 8:
            raise InputError(f"length is {self.length}; give a step above 0 and at most 8")
        if self.loss not in LOSSES:
            raise InputError(f"no loss {self.loss!r}; there are {', '.join(LOSSES)}")

    @property
    def proven(self) -> float:
        return self.alpha / (self.steps * self.length * math.sqrt(self.d) * self.scale)

    @property
    def queries(self) -> int:
        return self.d * self.steps

    @property
    def rounds(self) -> int:
        return self.steps

    def clients(self, epsilon: float, beta: float) -> int:
        """Clients with which a weight has the standard deviation `spread`, on average over the coordinates."""
        return math.ceil(self.d * (self.steps * self.length * self.scale * response_gain(epsilon) / self.spread) ** 2)

    def affordable(self, epsilon: float, clients: int) -> Self:
        """With fewer clients, so many steps that the weights keep their `spread`, one at least."""
        if clients < self.d:
            raise InputError(f"{self.name} asks {self.d} queries a step, each of its own clients; {clients} are too few")
        fewer = self.steps * math.sqrt(clients / self.clients(epsilon, 0.5))
        return replace(self, steps=max(1, min(self.steps, clients // self.d, math.floor(fewer))))

    def algorithm(self) -> StatisticalRounds[Halfspace]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[Halfspace]:
        weights, total = np.zeros(self.d), np.zeros(self.d)
        for step in range(self.steps):
            answers = yield self.descents(self.loss, weights)
            weights = within(weights + self.length * self.scale * np.array(answers), self.radius)
            if step >= self.steps // 2:
                total += weights
        return Halfspace(tuple((total / (self.steps - self.steps // 2)).tolist()))
