"""Variances of one report of a vector: in the cube [-1, 1]^d a coordinate, in the Euclidean unit ball altogether."""

import math
from functools import lru_cache

from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.randomizers.vectors.duchi_vector import mean_sign
from local_dp.randomizers.vectors.nearest_direction import MAX_DIRECTIONS, nearest_variance


def duchi_vector_variance(epsilon: float, d: int) -> float:
    """Of a coordinate that is 0, the worst: B^2 = (C / `mean_sign`(d))^2, about (pi / 2) d C^2."""
    return (response_gain(epsilon) / mean_sign(d)) ** 2


def random_coordinate_variance(epsilon: float, d: int) -> float:
    """Of a coordinate that is 0, the worst, per client in all: d C^2."""
    return d * response_gain(epsilon) ** 2


def best_nearest_variance(epsilon: float, d: int) -> float:
    """E||estimate - x||^2 of a unit vector by `nearest-direction` with the best number of directions."""
    check_positive_epsilon(epsilon)
    return min(nearest_variance(math.exp(epsilon), count, d) for count in range(2, MAX_DIRECTIONS + 1))


def privunit_variance(epsilon: float, d: int, cap: float) -> float:
    """E||estimate - x||^2 of PrivUnit on the unit sphere with the cap {v: <v, x> >= `cap`}, 0 <= cap < 1: 1 / m^2 - 1.

    With q the share of the sphere that the cap has, m = A (E - 1) / (E q + 1 - q), A the integral of <v, x> over the cap: all of epsilon goes to the choice
    between cap and rest. Source: Bhowmick et al. 2018, Lemma 4; Asi, Feldman, Talwar 2022.
    """
    from scipy.special import betainc

    check_positive_epsilon(epsilon)
    rest = 1 - cap**2
    share = float(betainc((d - 1) / 2, 0.5, rest)) / 2
    inside = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2) + (d - 1) / 2 * math.log(rest)) / (math.sqrt(math.pi) * (d - 1))
    mean = inside * math.expm1(epsilon) / (share * math.expm1(epsilon) + 1)
    return 1 / mean**2 - 1


@lru_cache(maxsize=1024)
def best_privunit(epsilon: float, d: int) -> tuple[float, float]:
    """The cap of least variance, by thirds, and that variance. d is 2 or more."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if privunit_variance(epsilon, d, left) < privunit_variance(epsilon, d, right) else (left, high)
    return low, privunit_variance(epsilon, d, low)
