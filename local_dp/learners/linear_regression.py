"""Linear regression from its moments."""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_dimension, check_positive
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import Learner, features, weighted
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.queries.examples import Product
from local_dp.queries.numbers import check_weights, matrix, weighted_sum
from local_dp.records import Records


@dataclass(frozen=True)
class LinearModel:
    """Predicts <weights, x>."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def __str__(self) -> str:
        return f"y = {weighted(self.weights, features(len(self.weights)))}"

    def predict(self, records: Records) -> Floats:
        """The prediction for each record, shape (n,)."""
        return weighted_sum(np.array(self.weights), matrix(records, features(len(self.weights))))


@dataclass(frozen=True, kw_only=True)
class LinearRegression(Learner[LinearModel]):
    """Least squares of y on x0, ..., x{d-1}, all in [-1, 1]: mean square error at most the least plus alpha.

    Asks for the d (d + 3) / 2 moments E[x_i x_j] and E[x_j y] at once and solves the normal equations. Let l be at most the least eigenvalue of E[x x^T], and B
    at least the sum of the best weights' absolute values. The estimated matrix is off by d tau in norm, and the best weights fail its equations by
    sqrt d tau (1 + B) at most, so the excess is at most d tau^2 (1 + B)^2 / (l (1 - d tau / l)^2): that is alpha for the tolerance
    tau = s / (1 + s d / l), s = sqrt(alpha l / d) / (1 + B). Estimated eigenvalues below l - d tau, which the promise rules out, are raised to it.
    Source: limits 9, with the constants derived.
    """

    name: ClassVar[str] = "linear-regression"
    source: ClassVar[str] = "least squares on statistical queries"
    d: int = 3
    least_eigenvalue: float = 0.2
    radius: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d)
        check_positive("radius", self.radius)
        if not 0 < self.least_eigenvalue <= 1:
            raise InputError(f"least_eigenvalue is {self.least_eigenvalue}; give a number above 0 and at most 1")

    @property
    def proven(self) -> float:
        plain = math.sqrt(self.alpha * self.least_eigenvalue / self.d) / (1 + self.radius)
        return plain / (1 + plain * self.d / self.least_eigenvalue)

    @property
    def queries(self) -> int:
        return self.d * (self.d + 3) // 2

    @property
    def rounds(self) -> int:
        return 1

    def algorithm(self) -> Statistical[LinearModel]:
        columns = features(self.d)
        pairs = tuple(combinations_with_replacement(range(self.d), 2))
        queries = [Product((columns[i], columns[j])) for i, j in pairs] + [Product((column, "y")) for column in columns]

        def decode(answers: tuple[float, ...]) -> LinearModel:
            second = np.zeros((self.d, self.d))
            for (i, j), answer in zip(pairs, answers, strict=False):
                second[i, j] = second[j, i] = answer
            eigenvalues, vectors = np.linalg.eigh(second)
            raised = np.maximum(eigenvalues, self.least_eigenvalue - self.d * self.tolerance)
            weights: Floats = vectors @ ((vectors.T @ np.array(answers[len(pairs) :])) / raised)
            return LinearModel(tuple(weights.tolist()))

        return Nonadaptive(tuple(map(self.ask, queries)), decode)
