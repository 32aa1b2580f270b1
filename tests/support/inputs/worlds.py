"""Small populations with known laws, and an oracle that errs by the whole tolerance."""

import math
from collections.abc import Sequence

import numpy as np

from local_dp.learners.examples import cube
from local_dp.learners.learner import signs
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Category, Question
from local_dp.records import Records

X, Y = Question("x == 1"), Question("y == 1")
WORLD = Finite(
    Records({"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1])}),
    [0.4, 0.1, 0.1, 0.4],
    10**6,
    seed=3,
)
COLOURS = Finite(
    Records({"c": np.array(["a", "b", "c", "d", "e"])}), [0.1, 0.2, 0.05, 0.4, 0.25], 10**6, seed=4
)
COLOUR = Category("c", ("a", "b", "c", "d", "e"))
NUMBERS = Finite(
    Records({"v": np.array([0.0, 0.2, 0.5, 1.0])}), [0.1, 0.3, 0.4, 0.2], 10**6, seed=5
)


class Biased:
    """Legal answers that are off by the whole tolerance, with the given signs in turn."""

    def __init__(self, population: Finite, signs: tuple[int, ...]) -> None:
        self.oracle = ExactOracle(population)
        self.signs = signs
        self.query_count = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        exact = self.oracle.answer(queries)
        signs = [
            self.signs[(self.query_count + place) % len(self.signs)]
            for place in range(len(queries))
        ]
        self.query_count += len(queries)
        return tuple(
            value + sign * query.tolerance
            for value, sign, query in zip(exact, signs, queries, strict=True)
        )


def signed_cube(d: int) -> Records:
    """The points of {+-1 / sqrt d}^d, of norm 1: row r of `cube`, a bit 1 as minus."""
    return Records(
        {
            name: (1 - 2 * values.astype(np.float64)) / math.sqrt(d)
            for name, values in cube(d).columns.items()
        }
    )


def halfspace_examples(
    weights: Sequence[float], gamma: float, size: int = 1, seed: int = 0
) -> Finite:
    """Uniform over the points of `signed_cube` with abs(<w, x>) >= gamma norm(w), labelled +1/-1 by
    the sign."""
    records, w = signed_cube(len(weights)), np.array(weights)
    score = sum(
        weight * values
        for weight, values in zip(w / np.linalg.norm(w), records.columns.values(), strict=True)
    )
    rows = np.flatnonzero(np.abs(score) >= gamma - 1e-12)
    y = signs(score > 0)
    return Finite(
        Records({**records.columns, "y": y}).take(rows), [1 / len(rows)] * len(rows), size, seed
    )
