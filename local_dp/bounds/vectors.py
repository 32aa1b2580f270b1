"""Variances of one report of a vector: in the cube [-1, 1]^d a coordinate, in the Euclidean unit ball altogether."""

import math

from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.randomizers.vectors.duchi_vector import mean_sign
from local_dp.randomizers.vectors.nearest_direction import MAX_DIRECTIONS, nearest_variance
from local_dp.randomizers.vectors.privunit import Cap, best_cap


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
    check_positive_epsilon(epsilon)
    return 1 / Cap.of(d, cap).mean(epsilon) ** 2 - 1


def best_privunit(epsilon: float, d: int) -> tuple[float, float]:
    """The cap of least variance and that variance. d is 2 or more."""
    height = best_cap(epsilon, d).height
    return height, privunit_variance(epsilon, d, height)
