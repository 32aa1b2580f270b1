"""The values that checks try, and the truth that estimates are compared with."""

from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.domains import Domain, Vectors

MAX_VALUES = 130  # values of a larger lattice that are checked, both ends among them


def truth(domain: Domain, value: Any, parameters: int) -> Floats:
    """The right estimate from clients that all hold `value`.

    It is a share of ones, the symbols' shares, signed means, the shares of both ends of each group, a number in [0, 1] or a vector in [-1, 1]^d.
    """
    if isinstance(domain, Vectors):
        return np.asarray(value) / domain.high
    if domain.kind == "levels":
        return np.array([value / domain.high])
    if domain.kind == "grouped levels":
        groups = parameters // 2
        steps = domain.high // groups - 1
        group, level = divmod(value, steps + 1)
        ends = np.zeros(parameters)
        ends[2 * group : 2 * group + 2] = (1 - level / steps, level / steps) if group < groups else (1.0,)
        return ends
    if domain.kind == "signed symbols":
        signed: Floats = np.sign(value) * (np.arange(1, domain.high + 1) == abs(value)).astype(np.float64)
        return signed
    if parameters == 1:
        return np.array([float(value)])
    held: Floats = (np.arange(domain.size) == value).astype(np.float64)
    return held
