"""Closed forms of the randomizers of parities: what their estimates are of, and one variance."""

from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.bounds.response import response_gain


def parities(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """E[y (-1)^<s, x>] for each mask s; the last bit of a value is that of y."""
    odd = [[int(value & (2 * mask + 1)).bit_count() % 2 for mask in randomizer.listed.tolist()] for value in values.tolist()]
    return np.asarray(law @ (1 - 2 * np.array(odd)))


def denied(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The same of every w, x = 0 counted as 0."""
    told = [[(1 - 2 * (int(value & (2 * w + 1)).bit_count() % 2)) * (value > 1) for w in range(randomizer.alphabet)] for value in values.tolist()]
    return np.asarray(law @ np.array(told))


def deny(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """(C - m) (K C - C + m): a report stands for C, or for C (1 - K) with probability (1 - m / C) / K."""
    gain, mean = response_gain(randomizer.epsilon), denied(randomizer, values, law)
    return np.asarray((gain - mean) * (randomizer.alphabet * gain - gain + mean))
