"""The base of every statistical-query learner: its algorithm, and the tolerance, queries and rounds
of its guarantee."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import (
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    get_origin,
    get_type_hints,
)

import numpy as np

from local_dp.arrays import Bools, Floats, Ints
from local_dp.bounds.response import rr_clients_hoeffding
from local_dp.checks import check_dimension, check_positive, check_share
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.oracles.statistical.oracles import (
    StatisticalAlgorithm,
    StatisticalPlay,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.queries.query import Query, check_weights, matrix, weighted_sum
from local_dp.records import Records

H = TypeVar("H")
MAX_TOLERANCE = 0.999


class Classifier(Protocol):
    """A hypothesis: it predicts the label of each record."""

    def predict(self, records: Records) -> Ints:
        """The predicted labels, +1 or -1, shape (n,)."""
        ...


class Promise(NamedTuple):
    """What a guarantee takes, by formulas: the tolerance of every query on the [-1, 1] scale, and
    the most queries and rounds."""

    tolerance: float
    queries: int
    rounds: int = 1


@dataclass(frozen=True, kw_only=True)
class Learner(ABC, Generic[H]):
    """A learner whose only access to the distribution is statistical queries on the [-1, 1] scale
    (KLNRS Definition 4.5): NASQ or SQ, by `algorithm`.

    Its error is at most `alpha` beyond its docstring's comparison, for all answers within
    `tolerance`. `slack` multiplies that; above 1 it promises nothing.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    alpha: float = 0.1
    slack: float = 1.0

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        check_positive("slack", self.slack)
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Checks the other parameters. Raises InputError."""

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """What the guarantee takes."""

    @property
    def proven(self) -> float:
        """The tolerance that the guarantee needs, on the [-1, 1] scale."""
        return self.promise.tolerance

    @property
    def queries(self) -> int:
        """The most statistical queries it asks."""
        return self.promise.queries

    @property
    def rounds(self) -> int:
        """The most rounds it takes: one if it is not adaptive."""
        return self.promise.rounds

    @abstractmethod
    def algorithm(self) -> StatisticalAlgorithm[H]:
        """The learner, for any oracle."""

    @property
    def tolerance(self) -> float:
        """The tolerance of every query."""
        return min(MAX_TOLERANCE, self.slack * self.proven)

    def ask(self, query: Query) -> StatisticalQuery:
        """The query, within the learner's tolerance."""
        return StatisticalQuery(query, self.tolerance)

    def beta_each(self, beta: float) -> float:
        """The failure probability of each query that leaves `beta` for the whole run."""
        return beta / self.queries

    def clients(self, epsilon: float, beta: float) -> int:
        """Clients with which the learner runs locally: t 2 C^2 ln(2 t / beta) / tau^2, fresh ones
        for each of t queries (KLNRS Lemma 4.3, limits 9)."""
        return self.queries * rr_clients_hoeffding(epsilon, self.tolerance, self.beta_each(beta))

    def affordable(self, epsilon: float, clients: int) -> Self:
        """The learner for this number of clients: itself, unless fewer queries suffice. Raises
        InputError for fewer clients than queries."""
        if self.queries > clients:
            raise InputError(
                f"{self.name} asks up to {self.queries} queries, each of its own clients; "
                f"{clients} are too few"
            )
        return self

    @classmethod
    def model(cls) -> str:
        """NASQ or SQ, read off the type of `algorithm`."""
        kind = get_type_hints(cls.algorithm)["return"]
        return {Nonadaptive: "NASQ", Adaptive: "SQ"}[get_origin(kind)]


@dataclass(frozen=True, kw_only=True)
class AdaptiveLearner(Learner[H]):
    """A learner in rounds: a play of its questions."""

    def algorithm(self) -> StatisticalRounds[H]:
        return Adaptive(self._play)

    @abstractmethod
    def _play(self) -> StatisticalPlay[H]: ...


@dataclass(frozen=True, kw_only=True)
class CubeLearner(Learner[H]):
    """A learner over {0,1}^d."""

    d: int = 6

    def check(self) -> None:
        check_dimension(self.d)


def signs(yes: Bools) -> Ints:
    """+1 for yes and -1 for no."""
    return np.where(yes, 1, -1).astype(np.int8)


def share(answer: float) -> float:
    """The probability of yes behind an answer on the +1/-1 scale."""
    return (1 + answer) / 2


def features(d: int) -> tuple[str, ...]:
    """The feature columns x0, x1, ..., x{d-1}."""
    return tuple(f"x{place}" for place in range(d))


class Scorer(ABC):
    """A hypothesis that predicts +1 where its score is above 0, else -1."""

    @abstractmethod
    def score(self, records: Records) -> Floats:
        """The score of each record, shape (n,)."""

    def predict(self, records: Records) -> Ints:
        return signs(self.score(records) > 0)


@dataclass(frozen=True)
class Weights:
    """Weights of the features."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def __str__(self) -> str:
        return weighted(self.weights, features(len(self.weights)))

    def product(self, records: Records) -> Floats:
        """<weights, x> of each record, shape (n,)."""
        return weighted_sum(np.array(self.weights), matrix(records, features(len(self.weights))))


def weighted(
    weights: Sequence[float],
    names: Sequence[str],
    error: float = 0.0,
    largest: Sequence[float] = (),
) -> str:
    """A weighted sum of named terms as text, such as 0.5 x0 - 0.25 x1. Weights have four digits, or
    more where a term at `largest` would be off by `error`."""
    terms = []
    for weight, name, most in zip_longest(weights, names, largest):
        digits = (
            1 + math.log10(0.5 * abs(weight) * most / error) if error and weight and most else 0
        )
        sign = "-" if weight < 0 else "+"
        precision = max(4, math.ceil(digits))
        terms.append((f"{sign} {abs(weight):.{precision}g} {name}").rstrip())
    return " ".join(terms).removeprefix("+ ")
