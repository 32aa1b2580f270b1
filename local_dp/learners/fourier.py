"""Low-degree polynomials: Fourier coefficients under the uniform distribution, and regression in one round under any."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import CubeLearner, Promise, features, signs, weighted
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.queries.examples import Correlation
from local_dp.queries.query import check_weights
from local_dp.records import Records

Set: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Polynomial:
    """The sign of sum_S coefficient_S (-1)^(sum of x_j over S)."""

    sets: tuple[Set, ...]
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.coefficients, len(self.sets))

    def __str__(self) -> str:
        names = [f"(-1)^({' + '.join(f'x{place}' for place in members)})" if members else "" for members in self.sets]
        return f"{weighted(self.coefficients, names)} > 0"

    def predict(self, records: Records) -> Ints:
        total = np.zeros(len(records))
        for members, coefficient in zip(self.sets, self.coefficients, strict=True):
            odd = np.zeros(len(records), dtype=np.bool_)
            for place in members:
                odd ^= records[f"x{place}"] == 1
            total += coefficient * np.where(odd, -1.0, 1.0)
        return signs(total > 0)


def _sets(d: int, sizes: range) -> tuple[Set, ...]:
    return tuple(chain.from_iterable(combinations(range(d), size) for size in sizes))


@dataclass(frozen=True, kw_only=True)
class LowDegree(CubeLearner[Polynomial]):
    """Learns any function over {0,1}^d under the uniform distribution: error at most the Fourier weight above `degree` plus alpha.

    Asks for the N = sum_(i <= degree) C(d, i) low Fourier coefficients at once, each within sqrt(alpha / N), and predicts by the sign of the polynomial: the
    error is at most the mean square distance (Parseval). For the uniform distribution only. Source: Linial, Mansour, Nisan 1993; limits 9.
    """

    name: ClassVar[str] = "low-degree"
    source: ClassVar[str] = "Linial, Mansour, Nisan 1993"
    degree: int = 2

    def check(self) -> None:
        super().check()
        check_whole("degree", self.degree, 0, self.d)
        if self.queries > 100_000:
            raise InputError(f"degree is {self.degree}; give one with at most 100,000 coefficients at d = {self.d}")

    @property
    def sets(self) -> tuple[Set, ...]:
        return _sets(self.d, range(self.degree + 1))

    @property
    def promise(self) -> Promise:
        queries = sum(math.comb(self.d, size) for size in range(self.degree + 1))
        return Promise(math.sqrt(self.alpha / queries), queries)

    def algorithm(self) -> Statistical[Polynomial]:
        sets, columns = self.sets, features(self.d)
        queries = tuple(self.ask(Correlation(tuple(columns[place] for place in members), "y")) for members in sets)
        return Nonadaptive(queries, lambda answers: Polynomial(sets, answers))


@dataclass(frozen=True)
class OneRoundPolynomial:
    """Least squares over the polynomials of a degree on {0,1}^d, under any distribution; the hypothesis is the sign of the fit.

    Asks at once for the moments of the features up to twice the degree and for their correlations with the label. Eigenvalues below tau sqrt N, N the number
    of coefficients, are what errors of size tau can make of 0, and are raised to it. It promises the best square loss in the limit, not the best error:
    low-degree polynomials do not represent decision lists or halfspaces of small margin (Daniely, Feldman 2019; Dagan, Feldman 2020).
    """

    d: int = 6
    degree: int = 1
    tolerance: float = 0.01

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        return LowDegree(d=self.d, degree=self.degree).sets

    @cached_property
    def moments(self) -> tuple[Set, ...]:
        """The products of two monomials, the constant left out."""
        return _sets(self.d, range(1, min(self.d, 2 * self.degree) + 1))

    @property
    def queries(self) -> int:
        return len(self.moments) + len(self.sets)

    def algorithm(self) -> Statistical[Polynomial]:
        columns = features(self.d)

        def ask(members: Set, label: str) -> StatisticalQuery:
            return StatisticalQuery(Correlation(tuple(columns[place] for place in members), label), self.tolerance)

        asked = (*(ask(members, "") for members in self.moments), *(ask(members, "y") for members in self.sets))
        return Nonadaptive(asked, lambda answers: Polynomial(self.sets, self._solve(np.array(answers))))

    def _solve(self, answers: Floats) -> tuple[float, ...]:
        moments = np.concatenate([[1.0], answers[: len(self.moments)]])
        place = {members: index for index, members in enumerate(((), *self.moments))}
        index = np.array([[place[tuple(sorted(set(first) ^ set(second)))] for second in self.sets] for first in self.sets])
        eigenvalues, vectors = np.linalg.eigh(moments[index])
        least = self.tolerance * len(self.sets) ** 0.5
        weights: Floats = vectors @ ((vectors.T @ answers[len(self.moments) :]) / np.maximum(eigenvalues, least))
        return tuple(weights.tolist())
