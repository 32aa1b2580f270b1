"""Means of numbers and of vectors: the variance of one report."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.numbers.noise import best_stair, folded_variance
from local_dp.randomizers.numbers.window import best_mix, best_window, window_variance
from local_dp.randomizers.table import COARSE
from local_dp.randomizers.vectors.coordinates import (
    MAX_DIRECTIONS,
    MAX_SIGNS,
    largest_normal,
    nearest_variance,
    signs_moment,
)
from local_dp.randomizers.vectors.privunit import (
    best_cap,
    least_projection,
    projunit_moment,
    projunit_on_axis,
)

TARGETS = ("records", "population")  # whose average it is


@lru_cache(maxsize=1024)
def mean_variances(epsilon: float, of: str = "population") -> dict[str, float]:
    """n times the worst variance of the estimated mean in [0, 1], of these records or of their
    population, by each randomizer that may be best, simplest first.

    On the lattice of `table.COARSE` steps. Of records it is the noise's at the worst number; of a
    population that of two extreme numbers, which adds 1/4, but to one bit's nothing.
    """
    check_positive_epsilon(epsilon)
    growth, nano = float(exp_epsilon(nano_epsilon(epsilon))), nano_epsilon(epsilon)
    sample = 0.25 if of == "population" else 0.0
    return {
        "one-bit-mean": response_gain(epsilon) ** 2 / 4,
        "piecewise": window_variance(growth, COARSE, best_window(nano, COARSE), 1.0) + sample,
        "hybrid": best_mix(nano, COARSE).worst + sample,
        "staircase": float(
            folded_variance(growth, COARSE, best_stair(nano, COARSE)).max() + sample
        ),
    }


def best_mean(epsilon: float, of: str = "population") -> str:
    """The simplest randomizer whose worst variance is within 1 % of the least."""
    variances = mean_variances(epsilon, of)
    least = min(variances.values())
    return next(name for name, variance in variances.items() if variance <= 1.01 * least)


def random_coordinate_variance(epsilon: float, d: int) -> float:
    """Of a coordinate that is 0, the worst, per client in all: d C^2."""
    return d * response_gain(epsilon) ** 2


def signs_variance(epsilon: float, d: int, count: int) -> float:
    """Of a coordinate that is 0, the worst, per client in all: d / (b m^2), m = (E - 1) / (E + 2^b
    - 1), with b = `count` reported signs; d C^2 for one."""
    check_positive_epsilon(epsilon)
    return (
        random_coordinate_variance(epsilon, d)
        if count == 1
        else d * signs_moment(math.exp(epsilon), count)
    )


Body: TypeAlias = Literal["cube", "ball"]


@dataclass(frozen=True)
class VectorChoice:
    """A randomizer for vectors of a body, with what is set beside epsilon and d; the ball's
    randomizer for a cube [-1, 1]^d shrunk by d^-1/2, which lies in it.

    `moment` is the largest E||estimate||^2 of one report over all vectors x of the body, of which
    the squared error falls short by ||x||^2; `coordinate` the largest of one coordinate's.
    `proven`: whether clients take it without a policy of their own.
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
    one = random_coordinate_variance(epsilon, d)
    choices = [VectorChoice("random-coordinate", d * one, one)]
    number = min(
        range(1, min(MAX_SIGNS, d) + 1), key=lambda count: signs_variance(epsilon, d, count)
    )
    signs = signs_variance(epsilon, d, number)
    choices.append(VectorChoice("sampled-signs", d * signs, signs, settings=(("signs", number),)))
    growth = math.exp(epsilon)
    count = min(range(2, MAX_DIRECTIONS + 1), key=lambda count: nearest_variance(growth, count, d))
    times = 1 / shrunk**2
    directions = (("directions", count),)
    nearest = (
        times * (nearest_variance(growth, count, d) + 1),
        times * nearest_on_axis(growth, count),
    )
    choices.append(
        VectorChoice("nearest-direction", nearest[0], nearest[1], shrunk, settings=directions)
    )
    if d > 1:
        cap = best_cap(epsilon, d)
        moment = times / cap.mean(epsilon) ** 2
        choices.append(
            VectorChoice("privunit", moment, moment * cap.square(epsilon, d), shrunk, proven=False)
        )
        k = least_projection(nano_epsilon(epsilon), d)
        moments = times * projunit_moment(epsilon, d, k), times * projunit_on_axis(epsilon, d, k)
        choices.append(
            VectorChoice(
                "projunit", moments[0], moments[1], shrunk, proven=False, settings=(("k", k),)
            )
        )
    return sorted(choices, key=lambda choice: choice.moment)


def best_vector(epsilon: float, body: Body, d: int) -> VectorChoice:
    """That of least error, by closed form, among those that clients take without a policy of their
    own."""
    return next(choice for choice in vector_choices(epsilon, body, d) if choice.proven)


def nearest_on_axis(growth: float, count: int) -> float:
    """The largest mean square of a coordinate of what one report of `nearest-direction` stands for:
    that along a vector which points there."""
    mean, square = largest_normal(count)
    follows = (growth - 1) / (growth + count - 1)
    return (1 - 1 / count + follows * (square - 1)) / (follows * mean) ** 2
