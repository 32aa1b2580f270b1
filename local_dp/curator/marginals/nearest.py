"""Or as a polynomial of few variables at a time: Chebyshev's, by its Newton coefficients, exactly."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from local_dp.arrays import Bools, Floats
from local_dp.checks import check_whole
from local_dp.cube import walsh_hadamard
from local_dp.curator.marginals.base import DENSE
from local_dp.curator.marginals.fourier import NoisyCharacters
from local_dp.errors import InputError

MAX_WIDTH = 64


def chebyshev(degree: int, z: Fraction) -> Fraction:
    """T_degree(z), by its recurrence."""
    before, here = Fraction(1), z
    for _ in range(degree - 1):
        before, here = here, 2 * z * here - before
    return here if degree else before


def smooth_or(degree: int, width: int, ones: int) -> Fraction:
    """g(ones), g(z) = 1 - T_k(l(z)) / T_k(l(0)), l(z) = (2 z - t - 1) / (t - 1): 0 at 0, and within `bias` of 1 at 1..t, which no other of degree k beats."""
    if width == 1:
        return Fraction(ones)
    return 1 - chebyshev(degree, Fraction(2 * ones - width - 1, width - 1)) / chebyshev(degree, Fraction(-width - 1, width - 1))


def bias(degree: int, width: int) -> Fraction:
    """What an or of up to `width` variables by `degree` of them at a time may be off by: 1 / T_k((t + 1) / (t - 1)); 0 from degree t on, where it is exact."""
    return Fraction(0) if degree >= width else 1 / chebyshev(degree, Fraction(width + 1, width - 1))


@lru_cache(maxsize=256)
def coefficients(degree: int, width: int) -> tuple[Fraction, ...]:
    """c_1..c_k with g(|y|) = sum_r c_r C(|y|, r): the coefficient of every product of r variables. c_r = (-1)^(r + 1), the exact or, if k >= t.

    Newton's forward differences of g at 0. Raises InputError unless 1 <= degree <= width <= 64. Source: lecture notes 8.1; Chandrasekaran et al. 2014.
    """
    check_whole("the width of a conjunction", width, 1, MAX_WIDTH)
    check_whole("the degree", degree, 1, width)
    if degree == width:
        return tuple(Fraction((-1) ** (r + 1)) for r in range(1, width + 1))
    values = [smooth_or(degree, width, z) for z in range(degree + 1)]
    return tuple(sum(((-1) ** (r - j) * math.comb(r, j) * values[j] for j in range(r + 1)), Fraction(0)) for r in range(1, degree + 1))


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
