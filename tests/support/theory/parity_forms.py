"""Closed forms of the randomizers of parities: what their estimates are of, and one variance."""

import math
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.bounds.response import response_gain


def parities(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """E[y (-1)^<s, x>] for each mask s; the last bit of a value is that of y."""
    odd = [
        [int(value & (2 * mask + 1)).bit_count() % 2 for mask in randomizer.listed.tolist()]
        for value in values.tolist()
    ]
    return np.asarray(law @ (1 - 2 * np.array(odd)))


def denied(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """The same of every w, x = 0 counted as 0."""
    told = [
        [
            (1 - 2 * (int(value & (2 * w + 1)).bit_count() % 2)) * (value > 1)
            for w in range(randomizer.alphabet)
        ]
        for value in values.tolist()
    ]
    return np.asarray(law @ np.array(told))


def deny(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """(C - m) (K C - C + m): a report stands for C, or for C (1 - K) with probability (1 - m / C) /
    K."""
    gain, mean = response_gain(randomizer.epsilon), denied(randomizer, values, law)
    return np.asarray((gain - mean) * (randomizer.alphabet * gain - gain + mean))


def named(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """m Pr[w] - 1 of each listed w, the half rounded at random: by ratios E and 1 alone."""
    m, growth, half = randomizer.alphabet, math.exp(randomizer.epsilon), randomizer.alphabet // 2
    ruled = np.array(
        [
            [int(value & (2 * w + 1)).bit_count() % 2 for w in randomizer.listed.tolist()]
            for value in values.tolist()
        ]
    )
    count = ruled.sum(axis=1, keepdims=True)
    inside = np.minimum(1.0, half / np.maximum(count, 1))
    outside = np.maximum(0.0, (half - count) / np.maximum(m - count, 1))
    chosen = np.where(ruled == 1, inside, outside)  # the probability that w is in the half
    return np.asarray(m * (law @ (1 + (growth - 1) * chosen)) / (growth * half + m - half) - 1)


def suspects(randomizer: Any, values: Ints, law: Floats) -> Floats:
    """m^2 p (1 - p), p = (1 + mean) / m."""
    mean = named(randomizer, values, law)
    return np.asarray((1 + mean) * (randomizer.alphabet - 1 - mean))
