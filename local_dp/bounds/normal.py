"""Quantiles and tails of the normal distribution."""

import math
from statistics import NormalDist

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError

_NORMAL = NormalDist()


def normal_quantile(tail: float) -> float:
    """z with Pr[N(0, 1) > z] = tail."""
    if not 0 < tail < 1:
        raise InputError(f"a tail probability is {tail}; give a number strictly between 0 and 1")
    return -_NORMAL.inv_cdf(tail)


def normal_tail(z: float) -> float:
    """Pr[N(0, 1) > z], to full relative precision far out."""
    return math.erfc(z / math.sqrt(2)) / 2


def add_normal(mass: Floats, grid: Floats, mean: float, variance: float) -> Floats:
    """The law of the sum of a draw from `mass` on the grid and a normal variable."""
    reach = grid[-1] - grid[0]
    away = np.linspace(-reach, reach, 2 * len(grid) - 1)
    kernel = np.exp(-((away - mean) ** 2) / (2 * variance))
    length = 4 * len(grid)
    summed = np.fft.irfft(np.fft.rfft(mass, length) * np.fft.rfft(kernel / kernel.sum(), length), length)
    spread: Floats = np.maximum(summed[len(grid) - 1 : 2 * len(grid) - 1], 0.0)
    return spread
