"""The exact margin complexity of a class of blocks: a linear program with 2^t variables, not a
semidefinite one, and its certificates (limits 12.4)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.interaction import margin_clients
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.adversary import FORMAT
from local_dp.populations.concepts import BlockClass

UNIT = 1 << 40  # the weights of a certificate sum to about this


@dataclass(frozen=True)
class Margin:
    """Both sides of the program for one class: `law` on {0,1}^t bounds MC from below, the
    polynomial p with `coefficients` c_S and f p >= 1 from above."""

    concepts: BlockClass
    law: Floats
    coefficients: Floats

    @cached_property
    def correlations(self) -> Floats:
        """E_mu f chi_S of every set S of blocks."""
        return np.asarray(walsh_hadamard(self.law * self.concepts.signs()) / self.law.sum())

    @property
    def at_least(self) -> float:
        """1 / max_S b^(-|S|/2) |E_mu f chi_S|: no embedding of the class has a larger margin than
        its inverse, whatever mu."""
        return float(1 / np.abs(self.correlations / _costs(self.concepts)).max())

    @property
    def at_most(self) -> float:
        """sum_S |c_S| b^(|S|/2) over the least value of f p: the inverse margin of the embedding
        that p is."""
        least = (walsh_hadamard(self.coefficients) * self.concepts.signs()).min()
        return float(np.abs(self.coefficients * _costs(self.concepts)).sum() / least)

    def certificate(self, epsilon: float, success: float = 0.9) -> dict[str, Any]:
        """That no one-round eps-local protocol with fewer clients learns this class barely, as JSON
        data for `certificates.verify_certificate`."""
        weights = np.rint(self.law / self.law.sum() * UNIT).astype(np.int64)
        # below 2^53: exact
        transform = walsh_hadamard((weights * self.concepts.signs()).astype(np.float64))
        sums = np.rint(transform).astype(np.int64).tolist()
        total = int(weights.sum())
        squares = (
            Fraction(value**2, total**2 * self.concepts.b ** S.bit_count())
            for S, value in enumerate(sums)
        )
        margin = max(squares)
        clients = margin_clients(1 / margin, epsilon, success)
        return {
            "format": FORMAT,
            "kind": "margin",
            "function": self.concepts.function,
            "t": self.concepts.t,
            "b": self.concepts.b,
            "variables": self.concepts.variables,
            "weights": weights.tolist(),
            "total": total,
            "squared_margin_at_most": str(margin),
            "epsilon": epsilon,
            "success": success,
            "clients_at_least": clients,
        }


def margin(concepts: BlockClass) -> Margin:
    """The optimal mu and p of min sum |c_S| b^(|S|/2), f p >= 1, by HiGHS; `at_least` and `at_most`
    check it. Cost: 2^t rows, 0.1 s at t = 8."""
    law, solution = _solve(concepts, 1 / _costs(concepts), np.ones(1 << concepts.t))
    return Margin(concepts, law, solution / _costs(concepts))


def on_the_matrix(program: Margin) -> tuple[float, float]:
    """The same two bounds on MC without symmetry: from the entries of the sign matrix itself. Small
    classes only.

    Below: sqrt(rows columns) times the law's matrix's spectral norm over its sum of sizes. Above:
    unit vectors and the least margin of a pair.
    """
    concepts, labels = program.concepts, program.concepts.told()
    spread = (program.law * concepts.signs())[labels]
    norm = np.linalg.norm(spread, 2)
    rules, points = vectors(program)
    lengths = np.linalg.norm(rules, axis=1).max() * np.linalg.norm(points, axis=1).max()
    lower = np.abs(spread).sum()
    margins = (rules @ points.T) * concepts.signs()[labels]
    return float(lower / (norm * math.sqrt(spread.size))), float(lengths / margins.min())


def vectors(program: Margin) -> tuple[Floats, Floats]:
    """A vector of every concept and of every point, a row each: a coordinate for each set S of
    blocks and each choice of a variable in them."""
    concepts = program.concepts
    flips = np.arange(1 << concepts.t)
    x = np.arange(1 << concepts.variables)
    rules, points = [], []
    for S, (c, cost) in enumerate(
        zip(program.coefficients.tolist(), _costs(concepts).tolist(), strict=True)
    ):
        masks, place = np.unique(concepts.masks(S), return_inverse=True)
        indicators = (place[:, None] == np.arange(len(masks))).astype(np.float64)
        size = math.copysign(math.sqrt(abs(c) * cost), c)
        characters = _characters(np.array([S]), flips)
        rules.append(np.kron(indicators, characters) * size)
        points.append(_characters(masks, x) * math.sqrt(abs(c) / cost))
    return np.hstack(rules), np.hstack(points)


def _characters(sets: Counts, x: Counts) -> Floats:
    """(-1)^|s & x|, a row for each x."""
    return np.asarray(1.0 - 2.0 * (np.bitwise_count(x[:, None] & sets) & 1))


def margin_limit(concepts: BlockClass) -> float:
    """The limit of MC / sqrt(b) for large b: min sum |c_i| over the halfspaces c_0 + sum c_i chi_i
    that are at least 1 where f is. The class's b is not read.

    A larger set costs b^(1/2) times more for its coefficient and must vanish; the empty one costs
    nothing in the limit. Raises InputError for no halfspace.
    """
    sizes = _sizes(concepts)
    _, solution = _solve(concepts, (sizes <= 1).astype(np.float64), (sizes == 1).astype(np.float64))
    return float(np.abs(solution[sizes == 1]).sum())


def _solve(concepts: BlockClass, scales: Floats, prices: Floats) -> tuple[Floats, Floats]:
    """The least sum of prices |z_S| with f sum z_S scales_S chi_S >= 1: the weights of the
    constraints, and z."""
    from scipy.optimize import linprog

    values = walsh_hadamard(np.diag(scales)) * concepts.signs()[:, None]
    bounds_above = np.hstack([-values, values])
    solution = linprog(
        np.tile(prices, 2),
        A_ub=bounds_above,
        b_ub=-np.ones(len(values)),
        bounds=(0, None),
        method="highs",
    )
    if solution.status != 0:
        raise InputError(
            f"no polynomial of these characters has the sign of {concepts.function}: "
            f"{solution.message}"
        )
    plus, minus = np.split(solution.x, 2)
    return np.maximum(-solution.ineqlin.marginals, 0), plus - minus


def _sizes(concepts: BlockClass) -> Floats:
    return np.bitwise_count(np.arange(1 << concepts.t)).astype(np.float64)


def _costs(concepts: BlockClass) -> Floats:
    """b^(|S|/2) of every S."""
    return float(concepts.b) ** (_sizes(concepts) / 2)
