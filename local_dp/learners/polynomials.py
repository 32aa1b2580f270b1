"""Polynomial regression in one round: the natural non-adaptive competitor of adaptive learners."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.interaction import Nonadaptive
from local_dp.learners.fourier import LowDegree, Polynomial
from local_dp.learners.learner import features
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.queries.examples import Correlation

Set: TypeAlias = tuple[int, ...]


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
        """The monomials."""
        return LowDegree(d=self.d, degree=self.degree).sets

    @cached_property
    def moments(self) -> tuple[Set, ...]:
        """The products of two monomials, the constant left out."""
        sizes = range(1, min(self.d, 2 * self.degree) + 1)
        return tuple(chain.from_iterable(combinations(range(self.d), size) for size in sizes))

    @property
    def queries(self) -> int:
        """How many statistical queries it asks."""
        return len(self.moments) + len(self.sets)

    def algorithm(self) -> Statistical[Polynomial]:
        """The learner, for any oracle."""
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
