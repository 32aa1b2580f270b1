"""Or as a polynomial of few variables at a time: Chebyshev's, by its Newton coefficients, exactly."""

import math
from fractions import Fraction
from functools import lru_cache

from local_dp.checks import check_whole

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
