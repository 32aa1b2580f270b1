"""Statistical-query oracles: exact, noisy, from a sample, and legal but hostile ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Oracle, Play, R, Watched
from local_dp.populations.finite import Population
from local_dp.queries.query import Query
from local_dp.records import Records


@dataclass(frozen=True)
class StatisticalQuery:
    """Asks for the expectation, within `tolerance`, of a query on [-1, 1]: yes and no are +1 and -1
    (Definition 4.1), levels x are 2 x - 1."""

    query: Query
    tolerance: float

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(
                f"the tolerance is {self.tolerance}; a statistical query needs one strictly "
                "between 0 and 1"
            )
        self.check()

    def check(self) -> None:
        """Raises InputError for a query of other values."""
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}; a statistical "
                "query has two, or levels"
            )

    @property
    def scale(self) -> Floats:
        """What each value of the query's domain counts as, in [-1, 1], shape (domain size,)."""
        return np.linspace(-1.0, 1.0, self.query.domain.size)

    def expectation(self, law: Floats) -> float:
        """The expectation on the [-1, 1] scale under a law over the query's domain, shape (domain
        size,)."""
        return float(law @ self.scale)

    @property
    def span(self) -> int:
        """The whole number that `numerators` is divided by."""
        return self.query.domain.size - 1

    def numerators(self, records: Records) -> Counts:
        """span times the value of each record on the [-1, 1] scale, rounded to whole numbers, so
        that sums over records are exact. Shape (n,)."""
        values = np.rint(self.query.values(records)).astype(np.int64)
        return 2 * values - (self.query.domain.low + self.query.domain.high)


Statistical: TypeAlias = Nonadaptive[StatisticalQuery, float, R]
StatisticalRounds: TypeAlias = Adaptive[StatisticalQuery, float, R]
StatisticalAlgorithm: TypeAlias = Statistical[R] | StatisticalRounds[R]
StatisticalPlay: TypeAlias = Play[StatisticalQuery, float, R]


class SQOracle(ABC):
    """Answers statistical queries, and counts queries and rounds."""

    queries = 0
    rounds = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """One answer for each query, on the [-1, 1] scale."""
        self.rounds += 1
        self.queries += len(queries)
        return tuple(self.answer_one(query) for query in queries)

    @abstractmethod
    def answer_one(self, query: StatisticalQuery) -> float:
        """The answer to one query."""


@dataclass
class ExactOracle(SQOracle):
    """Answers with the exact expectation under the population's distribution."""

    population: Population

    def answer_one(self, query: StatisticalQuery) -> float:
        return query.expectation(self.population.law(query.query))


ROUNDING = 1e-14  # what floating point may add to an answer at the edge of its tolerance


def legal(
    oracle: Oracle[StatisticalQuery, float], population: Population
) -> Watched[StatisticalQuery, float]:
    """The oracle, watched: RefusedError("illegal-answer") unless each of its answers is within its
    tolerance of the population's expectation."""
    exact = ExactOracle(population)

    def check(queries: tuple[StatisticalQuery, ...], answers: tuple[float, ...]) -> None:
        for query, answer, expectation in zip(queries, answers, exact.answer(queries), strict=True):
            if not abs(answer - expectation) <= query.tolerance + ROUNDING:
                raise RefusedError(
                    "illegal-answer",
                    (
                        f"{query.query.name}: {answer} is further than {query.tolerance} from the "
                        f"expectation {expectation}"
                    ),
                )

    return Watched(oracle, after=check)


@dataclass
class NoisyOracle(ExactOracle):
    """Expectations plus normal noise `sd` in [-1, 1], beyond tolerances: what an attack is up
    against, and not private (that is `TrustedOracle`)."""

    sd: float
    generator: np.random.Generator

    def answer_one(self, query: StatisticalQuery) -> float:
        return super().answer_one(query) + self.sd * float(self.generator.normal())


SPAN = 1 << 30


@dataclass(frozen=True)
class RealQuery(StatisticalQuery):
    """Asks for the mean of a real function of `query`: `values` holds one number in [-1, 1] for
    each value of the query's domain, ascending."""

    values: tuple[float, ...]

    def check(self) -> None:
        if len(self.values) != self.query.domain.size or max(map(abs, self.values)) > 1:
            raise InputError(
                f"a real function on {self.query.domain} needs {self.query.domain.size} values in "
                "[-1, 1]"
            )

    @property
    def scale(self) -> Floats:
        return np.asarray(self.values)

    @property
    def span(self) -> int:
        return SPAN

    def numerators(self, records: Records) -> Counts:
        """span times the function of each record, rounded to whole numbers, so that sums over
        records are exact. Shape (n,)."""
        numerators = np.rint(self.scale * SPAN).astype(np.int64)
        places = np.rint(self.query.values(records)).astype(np.int64) - self.query.domain.low
        return np.asarray(numerators[places])


class RoundedOracle(ExactOracle):
    """Answers with the nearest multiple of 2 tau: the simplest legal adversary (limits 5.1)."""

    def answer_one(self, query: StatisticalQuery) -> float:
        step = 2 * query.tolerance
        return round(super().answer_one(query) / step) * step


Bias: TypeAlias = Callable[[float], float]


def upward(expectation: float) -> float:
    """Every answer tau too high."""
    return 1.0


def downward(expectation: float) -> float:
    """Every answer tau too low."""
    return -1.0


def against(expectation: float) -> float:
    """Every answer tau closer to the wrong sign: for algorithms that decide by the sign of an
    answer."""
    return -1.0 if expectation > 0 else 1.0


@dataclass
class BiasedOracle(ExactOracle):
    """Answers with the expectation plus tau times `bias(expectation)`, clipped to +-tau: legal, and
    wrong in a chosen direction every time."""

    bias: Bias

    def answer_one(self, query: StatisticalQuery) -> float:
        expectation = super().answer_one(query)
        return expectation + query.tolerance * min(1.0, max(-1.0, self.bias(expectation)))


@dataclass
class NullOracle(ExactOracle):
    """Answers as near the expectation under a `null` population as the tolerance allows: the
    proofs' own adversary (limits 5.1, item 4)."""

    null: Population

    def answer_one(self, query: StatisticalQuery) -> float:
        expectation = super().answer_one(query)
        target = query.expectation(self.null.law(query.query))
        return min(expectation + query.tolerance, max(expectation - query.tolerance, target))
