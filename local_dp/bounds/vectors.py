"""Variances of one report of a vector: in the cube [-1, 1]^d a coordinate, in the Euclidean unit ball altogether."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.loss import nano_epsilon
from local_dp.randomizers.vectors.duchi_vector import mean_sign
from local_dp.randomizers.vectors.nearest_direction import MAX_DIRECTIONS, largest_normal, nearest_variance
from local_dp.randomizers.vectors.privunit import Cap, best_cap
from local_dp.randomizers.vectors.projunit import least_projection, projunit_moment, projunit_on_axis
from local_dp.randomizers.vectors.sampled_signs import MAX_SIGNS, signs_moment


def duchi_vector_variance(epsilon: float, d: int) -> float:
    """Of a coordinate that is 0, the worst: B^2 = (C / `mean_sign`(d))^2, about (pi / 2) d C^2."""
    return (response_gain(epsilon) / mean_sign(d)) ** 2


def random_coordinate_variance(epsilon: float, d: int) -> float:
    """Of a coordinate that is 0, the worst, per client in all: d C^2."""
    return d * response_gain(epsilon) ** 2


def signs_variance(epsilon: float, d: int, count: int) -> float:
    """Of a coordinate that is 0, the worst, per client in all: d / (b m^2), m = (E - 1) / (E + 2^b - 1), with b = `count` signs told; d C^2 for one."""
    check_positive_epsilon(epsilon)
    return random_coordinate_variance(epsilon, d) if count == 1 else d * signs_moment(math.exp(epsilon), count)


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


Body: TypeAlias = Literal["cube", "ball"]


@dataclass(frozen=True)
class VectorChoice:
    """A randomizer for vectors of a body, with what is set beside epsilon and d; the ball's tells of a cube [-1, 1]^d shrunk by d^-1/2, which lies in it.

    `moment` is the largest E||estimate||^2 of one report over all vectors x of the body, of which the squared error falls short by ||x||^2; `coordinate` the
    largest of one coordinate's. `proven`: whether clients take it without a policy of their own.
    """

    name: str
    moment: float
    coordinate: float
    shrunk: float = 1.0
    proven: bool = True
    settings: tuple[tuple[str, int], ...] = ()


def vector_choices(epsilon: float, body: Body, d: int) -> list[VectorChoice]:
    """Every randomizer of vectors that is shipped, the least error first."""
    check_positive_epsilon(epsilon)
    shrunk = 1.0 if body == "ball" else d**-0.5
    each = {"random-coordinate": random_coordinate_variance(epsilon, d), "duchi-vector": duchi_vector_variance(epsilon, d)}
    found = [VectorChoice(name, d * variance, variance) for name, variance in each.items()]
    told = min(range(1, min(MAX_SIGNS, d) + 1), key=lambda count: signs_variance(epsilon, d, count))
    signs = signs_variance(epsilon, d, told)
    found.append(VectorChoice("sampled-signs", d * signs, signs, settings=(("signs", told),)))
    growth = math.exp(epsilon)
    count = min(range(2, MAX_DIRECTIONS + 1), key=lambda count: nearest_variance(growth, count, d))
    times, directions = 1 / shrunk**2, (("directions", count),)
    nearest = times * (nearest_variance(growth, count, d) + 1), times * nearest_on_axis(growth, count)
    found.append(VectorChoice("nearest-direction", nearest[0], nearest[1], shrunk, settings=directions))
    if d > 1:
        cap = best_cap(epsilon, d)
        moment = times / cap.mean(epsilon) ** 2
        found.append(VectorChoice("privunit", moment, moment * cap.square(epsilon, d), shrunk, proven=False))
        k = least_projection(nano_epsilon(epsilon), d)
        projected = times * projunit_moment(epsilon, d, k), times * projunit_on_axis(epsilon, d, k)
        found.append(VectorChoice("projunit", projected[0], projected[1], shrunk, proven=False, settings=(("k", k),)))
    return sorted(found, key=lambda choice: choice.moment)


def best_vector(epsilon: float, body: Body, d: int) -> VectorChoice:
    """That of least error, by closed form, among those that clients take without a policy of their own."""
    return next(choice for choice in vector_choices(epsilon, body, d) if choice.proven)


def nearest_on_axis(growth: float, count: int) -> float:
    """The largest mean square of a coordinate of what one report of `nearest-direction` stands for: that along a vector which points there."""
    mean, square = largest_normal(count)
    follows = (growth - 1) / (growth + count - 1)
    return (1 - 1 / count + follows * (square - 1)) / (follows * mean) ** 2
