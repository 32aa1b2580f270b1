"""Variances of one report of a number t in [-1, 1] (limits 1); in units of [0, 1] they are a quarter."""

import math

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import check_positive_epsilon, response_gain

_BEST_TO = 1e-9  # of the search for a width


def piecewise_variance(epsilon: float, t: float) -> float:
    """Of the piecewise mechanism with the paper's window: t^2 / (r - 1) + (r + 3) / (3 (r - 1)^2), r = e^(eps/2); worst at t = +-1, 4 r / (3 (r - 1)^2)."""
    check_positive_epsilon(epsilon)
    less_one = math.expm1(epsilon / 2)
    return t**2 / less_one + (less_one + 4) / (3 * less_one**2)


def window_limit(epsilon: float, width: float, t: float) -> float:
    """Of a window on a lattice of ever more steps, `width` of them wide: the limit of 4 `window_variance`.

    (p w^2 + (1 - p) (1 + w)^2) / 3 + p (1 - p) t^2, over p^2, p = w (E - 1) / (1 + w E). The paper's width is e^(-eps/2).
    """
    check_positive_epsilon(epsilon)
    follows = width * math.expm1(epsilon) / (1 + width * math.exp(epsilon))
    return ((follows * width**2 + (1 - follows) * (1 + width) ** 2) / 3 + follows * (1 - follows) * t**2) / follows**2


def best_width(epsilon: float) -> float:
    """The width of least worst-case variance, by thirds: .98 at epsilon .1, .32 at 4. The paper's e^(-eps/2) is .135 at 4, of 1.5 times the variance."""
    low, high = 1e-6, 2.0
    while high - low > _BEST_TO:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if window_limit(epsilon, left, 1.0) < window_limit(epsilon, right, 1.0) else (left, high)
    return low


def hybrid_variance(epsilon: float) -> float:
    """Of the paper's hybrid mechanism, whatever t: (r + 3) / (3 r (r - 1)) + C^2 / r, r = e^(eps/2); up to epsilon .61 one bit's worst case, C^2."""
    gain, root = response_gain(epsilon) ** 2, math.exp(epsilon / 2)
    return min(gain, (root + 3) / (3 * root * math.expm1(epsilon / 2)) + gain / root)


def staircase_variance(epsilon: float) -> float:
    """Of the best staircase noise for numbers that differ by 2: 4 ((b (1 + b) / 2)^(2/3) + b) / (1 - b)^2, b = e^-eps; the least of all additive noise.

    Source: Geng, Viswanath 2014; checked against the sum over a fine lattice.
    """
    check_positive_epsilon(epsilon)
    decay = math.exp(-epsilon)
    return float(4 * ((decay * (1 + decay) / 2) ** (2 / 3) + decay) / (1 - decay) ** 2)


def bounded_laplace_variances(epsilon: float, steps: int) -> Floats:
    """Of truncated and renormalised discrete Laplace noise, decoded without bias, at every lattice point, in units of [0, 1]; shape (steps + 1,).

    sum over w of a^|w - v| / Z(v) g(w)^2 - x^2, with g = (a^|w - v|)^-1 (Z x) and x = v / steps. The worst case is found by looking.
    """
    check_positive_epsilon(epsilon)
    decay = math.exp(-epsilon / steps)
    places = np.arange(steps + 1)
    kernel = decay ** np.abs(places[:, None] - places).astype(np.float64)
    sums, x = kernel.sum(axis=1), places / steps
    stands_for = np.linalg.solve(kernel, sums * x)
    variances: Floats = (kernel @ stands_for**2) / sums - x**2
    return variances


def discrete_laplace_variances(epsilon: float, steps: int) -> Floats:
    """Of discrete Laplace noise clamped to the lattice, at every point v of S = `steps`, in units of [0, 1]; shape (steps + 1,).

    (2 a - a (a^v + a^(S - v)) / (1 + a)) / ((1 - a) S)^2, a = e^(-eps / S): the noise's variance 2 a / (1 - a)^2 less what clamping takes off it, a / (1 - a)^2
    at either end, for what is beyond is geometric whatever v. Worst in the middle.
    """
    check_positive_epsilon(epsilon)
    decay = math.exp(-epsilon / steps)
    places = np.arange(steps + 1)
    clamped = (decay**places + decay ** (steps - places)) / (1 + decay)
    variances: Floats = decay * (2 - clamped) / (-math.expm1(-epsilon / steps) * steps) ** 2
    return variances
