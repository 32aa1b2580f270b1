"""From noisy characters to a table: the histogram whose characters are near them, and otherwise as even as can be."""

import math

import numpy as np

from local_dp.arrays import Bools, Floats
from local_dp.cube import walsh_hadamard
from local_dp.curator.marginals.base import DENSE
from local_dp.curator.marginals.fourier import NoisyCharacters
from local_dp.errors import InputError

_ITERATIONS = 200
_KEPT = 20  # steps that L-BFGS remembers


def nearest_table(noisy: NoisyCharacters, possible: Bools | None = None) -> Floats:
    """Weights w >= 0 of all 2^d rows, of sum n, shape (2^d,): the minimiser of sum_S (sum of chi_S over w - noisy sum)^2 / (2 V_S) + tau KL(w / n, even).

    Post-processing of a release, on the convex hull of all tables: cells are consistent and none is below 0. tau is the larger of two public numbers:
    k / (2 d ln 2), k characters, where KL, at most d ln 2, weighs as much as the k / 2 that noise alone adds to the squares; and 2 n / s, s^2 the mean of the
    V_S, where a log-linear coefficient of 1/2 moves no character by more than its noise. Less would follow the noise, and take many more steps.
    Rows that no record can be are left out of it: `possible` are the others, shape (2^d,), all by default.
    By the dual, smooth in k numbers: L-BFGS, two transforms a step. Cost: O(d 2^d) a step: 2^17 rows in 4 s. Where the noise of a cell is below a thousandth
    of the average cell it ends too early to be nearer than the release: leave it out there. Raises InputError beyond 22 columns.
    Source: lecture notes 7 for projecting on the hull; the regularised dual is that of Nesterov 2005; tau is the project's own.
    """
    from scipy.optimize import minimize

    d = noisy.workload.d
    if d > DENSE:
        raise InputError(f"there are {d} columns; a table of all 2^d rows takes up to {DENSE}")
    size = max(noisy.size, 1)
    places, told = noisy.workload.characters[1:].astype(np.int64), noisy.sums[1:] / size
    scale, spread = size / np.sqrt(noisy.variances[1:]), float(np.sqrt(noisy.variances[1:].mean()))
    tau = max(len(told) / (2 * d * math.log(2)), 2 * size / spread)

    def softened(dual: Floats) -> tuple[Floats, float]:
        """The weights, of sum 1, that these duals make, and tau ln of their sum before."""
        exponents = np.zeros(1 << d)
        exponents[places] = dual * scale / tau
        exponents = walsh_hadamard(exponents)
        if possible is not None:
            exponents[~possible] = -np.inf
        most = float(exponents.max())
        weights = np.exp(exponents - most)
        total = float(weights.sum())
        return weights / total, tau * (most + math.log(total))

    def price(dual: Floats) -> tuple[float, Floats]:
        weights, level = softened(dual)
        off = scale * (walsh_hadamard(weights)[places] - told)
        return level - float(dual @ (scale * told)) + float(dual @ dual) / 2, off + dual

    found = minimize(price, np.zeros(len(told)), jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS, "maxcor": _KEPT})
    return np.asarray(noisy.size * softened(found.x)[0])
