"""Halfspaces with a margin: the perceptron, logistic regression, and descent with long steps."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import response_gain
from local_dp.checks import check_dimension, check_positive, check_whole
from local_dp.errors import InputError
from local_dp.learners.learner import AdaptiveLearner, Promise, Scorer, Weights, features, share
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.queries.query import matrix, written
from local_dp.queries.vectors import LOSSES, Descent, Mistake
from local_dp.records import Records


@dataclass(frozen=True)
class Halfspace(Weights, Scorer):
    """+1 where <weights, x> > 0, else -1."""

    def __str__(self) -> str:
        return f"{super().__str__()} > 0"

    def score(self, records: Records) -> Floats:
        return self.product(records)


def check_margin(d: int, gamma: float, bound: float | None) -> float:
    """The bound on abs(x_j): 1 / sqrt d (features +-1 / sqrt d) unless given. Raises InputError
    unless the parameters fit records of norm at most 1."""
    check_dimension(d, 4096)
    if not 0 < gamma <= 1:
        raise InputError(f"gamma is {gamma}; give a margin in (0, 1]")
    least = 1 / math.sqrt(d)
    limit = least if bound is None else bound
    if not least * (1 - 1e-12) <= limit <= 1:
        raise InputError(
            f"bound is {limit}; records of norm 1 in dimension {d} need one from {least:.4g} to 1"
        )
    return limit


def within(weights: Floats, radius: float) -> Floats:
    """The nearest vector of norm at most `radius`."""
    return weights * min(1.0, radius / max(float(np.linalg.norm(weights)), 1e-300))


@dataclass(frozen=True, kw_only=True)
class Descending(AdaptiveLearner[Halfspace]):
    """A learner of a halfspace, from records of norm at most 1 with abs(x_j) <= bound, that asks
    for gradients one coordinate a query."""

    d: int = 4
    bound: float | None = None

    def check(self) -> None:
        check_margin(self.d, 1.0, self.bound)

    @property
    def scale(self) -> float:
        return check_margin(self.d, 1.0, self.bound)

    def descents(self, loss: str, weights: Floats) -> tuple[StatisticalQuery, ...]:
        """Asks for every coordinate of minus the gradient of the loss at the weights, in units of
        `scale`."""
        columns, texts = features(self.d), written(weights)
        return tuple(
            self.ask(Descent(loss, columns, "y", texts, place, self.scale))
            for place in range(self.d)
        )

    def _descend(
        self, loss: str, rounds: int, length: float, radius: float, skip: int = 0
    ) -> StatisticalPlay[Halfspace]:
        """Projected descent: the mean of the weights after all rounds but the first `skip`."""
        weights = np.zeros(self.d)
        total = np.zeros(self.d)
        for step in range(rounds):
            answers = yield self.descents(loss, weights)
            weights = within(weights + length * self.scale * np.array(answers), radius)
            if step >= skip:
                total += weights
        return Halfspace(tuple((total / (rounds - skip)).tolist()))


@dataclass(frozen=True, kw_only=True)
class Perceptron(Descending):
    """Learns a halfspace with margin gamma, y <w*, x> >= gamma for norm(w*) = 1 and norm(x) <= 1,
    under every such distribution: error at most alpha.

    A round asks for the share p of mistakes of the present w and for the d coordinates of v = E[y x
    1(mistake)], then moves w by v / p; it stops when p is at most 3 alpha / 4. Let v be off by at
    most gamma alpha / 8 in norm, a tolerance of gamma alpha / (8 sqrt d bound) in [-bound, bound].
    Then a round adds .75 gamma to <w, w*>, and there are at most 4.6 / gamma^2 moves. Source:
    Novikoff 1962; Kearns 1998; limits 9.
    """

    name = "perceptron"
    source = "Novikoff 1962; Kearns 1998"
    gamma: float = 0.5

    def check(self) -> None:
        super().check()
        check_margin(self.d, self.gamma, self.bound)

    @property
    def promise(self) -> Promise:
        rounds = math.floor(4.6 / self.gamma**2) + 1
        tolerance = self.gamma * self.alpha / (8 * math.sqrt(self.d) * self.scale)
        return Promise(tolerance, rounds * (self.d + 1), rounds)

    def _play(self) -> StatisticalPlay[Halfspace]:
        weights = np.zeros(self.d)
        best = (math.inf, np.zeros(self.d))
        for _ in range(self.rounds):
            answers = yield (
                self.ask(Mistake(features(self.d), "y", written(weights))),
                *self.descents("perceptron", weights),
            )
            mistakes = share(answers[0])
            best = min(best, (mistakes, weights), key=lambda pair: pair[0])
            if mistakes <= 0.75 * self.alpha:
                break
            weights = weights + self.scale * np.array(answers[1:]) / mistakes
        return Halfspace(tuple(best[1].tolist()))


SMOOTHNESS = 0.25  # of the logistic loss, for records of norm at most 1


def logistic_loss(halfspace: Halfspace, population: Finite) -> float:
    """E[ln(1 + e^(-y <w, x>))]."""
    records = population.kinds
    margin = records["y"] * (
        np.array(halfspace.weights) @ matrix(records, features(len(halfspace.weights)))
    )
    return float(population.shares @ np.logaddexp(0.0, -margin))


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(Descending):
    """Minimises the logistic loss over norm(w) <= radius, for records of norm at most 1 and labels
    +1/-1: loss at most the least plus alpha.

    Projected gradient descent with step 1 / L = 4, averaged; d queries a round for ceil(L R^2 /
    alpha) rounds. An error of delta in the norm of each gradient costs at most 2 R delta: with
    abs(x_j) <= bound, alpha / 2 of it allows the tolerance alpha / (4 R sqrt d bound). Source:
    d'Aspremont 2008; limits 9.
    """

    name = "logistic-regression"
    source = "inexact gradient descent (d'Aspremont 2008)"
    radius: float = 2.0

    def check(self) -> None:
        super().check()
        check_positive("radius", self.radius)

    @property
    def promise(self) -> Promise:
        rounds = math.ceil(SMOOTHNESS * self.radius**2 / self.alpha)
        tolerance = self.alpha / (4 * self.radius * math.sqrt(self.d) * self.scale)
        return Promise(tolerance, self.d * rounds, rounds)

    def _play(self) -> StatisticalPlay[Halfspace]:
        return self._descend("logistic", self.rounds, 1 / SMOOTHNESS, self.radius)


@dataclass(frozen=True, kw_only=True)
class MarginDescent(Descending):
    """Projected descent on E[loss(y <w, x>)] over norm(w) <= radius, for records of norm at most 1:
    `steps` rounds of length `length`, d queries each.

    With answers within alpha / (steps length sqrt d bound) the weights are within alpha, in norm,
    of those on exact expectations: a logistic step of at most 8 moves two points no further apart.
    With n fresh clients a coordinate has a mean variance of at most d (steps length C bound)^2 / n,
    which `clients` makes `spread`^2: for the hinge loss a rule of thumb. Source: Duchi, Jordan,
    Wainwright 2013; Polyak, Juditsky 1992.
    """

    name = "margin-descent"
    source = "Duchi, Jordan, Wainwright 2013; Polyak, Juditsky 1992"
    loss: str = "logistic"
    steps: int = 60
    length: float = 8.0
    radius: float = 20.0
    spread: float = 1.5

    def check(self) -> None:
        super().check()
        check_whole("steps", self.steps, 1, 100_000)
        check_positive("radius", self.radius)
        check_positive("spread", self.spread)
        if not 0 < self.length <= 8:
            raise InputError(f"length is {self.length}; give a step above 0 and at most 8")
        if self.loss not in LOSSES:
            raise InputError(f"no loss {self.loss!r}; there are {', '.join(LOSSES)}")

    @property
    def promise(self) -> Promise:
        tolerance = self.alpha / (self.steps * self.length * math.sqrt(self.d) * self.scale)
        return Promise(tolerance, self.d * self.steps, self.steps)

    def clients(self, epsilon: float, beta: float) -> int:
        """Clients with which a weight has the standard deviation `spread`, on average over the
        coordinates."""
        gain = response_gain(epsilon)
        return math.ceil(self.d * (self.steps * self.length * self.scale * gain / self.spread) ** 2)

    def affordable(self, epsilon: float, clients: int) -> Self:
        """With fewer clients, so many steps that the weights keep their `spread`, one at least."""
        if clients < self.d:
            raise InputError(
                f"{self.name} asks {self.d} queries a step, each of its own clients; {clients} "
                "are too few"
            )
        fewer = self.steps * math.sqrt(clients / self.clients(epsilon, 0.5))
        return replace(self, steps=max(1, min(self.steps, clients // self.d, math.floor(fewer))))

    def _play(self) -> StatisticalPlay[Halfspace]:
        return self._descend(self.loss, self.steps, self.length, self.radius, self.steps // 2)
