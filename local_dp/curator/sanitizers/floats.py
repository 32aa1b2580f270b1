"""A column of floats as points of a domain of 2^64, in order: no bounds need be declared, and none are taken from the data."""

import math
from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.errors import InputError

BITS = 64
_SIGN = np.uint64(1 << 63)
_INFINITY = (0x7FF << 52) | 1 << 63


def points_of(values: Floats | Sequence[float]) -> Words:
    """One whole number below 2^64 for each value, ascending with it: a double's bits, all inverted below zero, the sign's otherwise; -0.0 is 0.0.

    Raises InputError for NaN, which has no place in the order.
    """
    floats = np.asarray(values, dtype=np.float64) + 0.0
    if np.isnan(floats).any():
        raise InputError("some value is not a number; leave such records out")
    bits = floats.view(np.uint64)
    ordered: Words = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return ordered


def value_of(point: int) -> float:
    """The float of a point or threshold; beyond the infinities, the infinity."""
    held = min(max(point, (1 << BITS) - 1 - _INFINITY), _INFINITY)
    bits = held ^ (1 << 63) if held >> 63 else (1 << 64) - 1 - held
    value = float(np.array([bits], dtype=np.uint64).view(np.float64)[0])
    assert not math.isnan(value)
    return value
