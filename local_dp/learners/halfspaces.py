"""Halfspaces with a margin: the perceptron on statistical queries."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_dimension
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.learners.learner import Learner, features, share, signs, weighted
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.queries.margins import Descent, Mistake
from local_dp.queries.numbers import check_weights, matrix, weighted_sum, written
from local_dp.records import Records


@dataclass(frozen=True)
class Halfspace:
    """+1 where <weights, x> > 0, else -1."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def __str__(self) -> str:
        return f"{weighted(self.weights, features(len(self.weights)))} > 0"

    def predict(self, records: Records) -> Ints:
        """The side of each record, +1 or -1, shape (n,)."""
        score = weighted_sum(np.array(self.weights), matrix(records, features(len(self.weights))))
        return signs(score > 0)


def check_margin(d: int, gamma: float, bound: float | None) -> float:
    """The bound on abs(x_j): 1 / sqrt d (features +-1 / sqrt d) unless given. Raises InputError unless the parameters fit records of norm at most 1."""
    check_dimension(d, 4096)
    if not 0 < gamma <= 1:
        raise InputError(f"gamma is {gamma}; give a margin in (0, 1]")
    least = 1 / math.sqrt(d)
    given = least if bound is None else bound
    if not least * (1 - 1e-12) <= given <= 1:
        raise InputError(f"bound is {given}; records of norm 1 in dimension {d} need one from {least:.4g} to 1")
    return given


def within(weights: Floats, radius: float) -> Floats:
    """The nearest vector of norm at most `radius`."""
    return weights * min(1.0, radius / max(float(np.linalg.norm(weights)), 1e-300))


@dataclass(frozen=True, kw_only=True)
class Descending(Learner[Halfspace]):
    """A learner of a halfspace, from records of norm at most 1 with abs(x_j) <= bound, that asks for gradients one coordinate a query."""

    d: int = 4
    bound: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_margin(self.d, 1.0, self.bound)

    @property
    def scale(self) -> float:
        """The bound on abs(x_j)."""
        return check_margin(self.d, 1.0, self.bound)

    def descents(self, loss: str, weights: Floats) -> tuple[StatisticalQuery, ...]:
        """Asks for every coordinate of minus the gradient of the loss at the weights, in units of `scale`."""
        columns, texts = features(self.d), written(weights)
        return tuple(self.ask(Descent(loss, columns, "y", texts, place, self.scale)) for place in range(self.d))


@dataclass(frozen=True, kw_only=True)
class Perceptron(Descending):
    """Learns a halfspace with margin gamma, y <w*, x> >= gamma for norm(w*) = 1 and norm(x) <= 1, under every such distribution: error at most alpha.

    A round asks for the share p of mistakes of the present w and for the d coordinates of v = E[y x 1(mistake)], then moves w by v / p; it stops when p is
    at most 3 alpha / 4. If v is off by at most gamma alpha / 8 in norm, a round adds .75 gamma to <w, w*> while norm(w) stays below
    1.25 sqrt t + gamma t / 6, so at most 4.6 / gamma^2 moves are made. Coordinates lie in [-bound, bound] and have tolerance
    gamma alpha / (8 sqrt d bound) on that scale.
    Source: Novikoff 1962; Kearns 1998; limits 9.
    """

    name: ClassVar[str] = "perceptron"
    source: ClassVar[str] = "Novikoff 1962; Kearns 1998"
    gamma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_margin(self.d, self.gamma, self.bound)

    @property
    def proven(self) -> float:
        return self.gamma * self.alpha / (8 * math.sqrt(self.d) * self.scale)

    @property
    def queries(self) -> int:
        return self.rounds * (self.d + 1)

    @property
    def rounds(self) -> int:
        return math.floor(4.6 / self.gamma**2) + 1

    def algorithm(self) -> StatisticalRounds[Halfspace]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[Halfspace]:
        weights, best = np.zeros(self.d), (math.inf, np.zeros(self.d))
        for _ in range(self.rounds):
            answers = yield (self.ask(Mistake(features(self.d), "y", written(weights))), *self.descents("perceptron", weights))
            mistakes = share(answers[0])
            best = min(best, (mistakes, weights), key=lambda pair: pair[0])
            if mistakes <= 0.75 * self.alpha:
                break
            weights = weights + self.scale * np.array(answers[1:]) / mistakes
        return Halfspace(tuple(best[1].tolist()))
