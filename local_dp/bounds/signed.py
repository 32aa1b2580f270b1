"""Variances of the means of signed symbols, where a client may hold nothing (limits 3.2); epsilon in nats."""

import math
from functools import lru_cache

from local_dp.bounds.response import check_positive_epsilon, response_gain


def one_bit_variance(epsilon: float, null: float) -> float:
    """n times the variance of a mean near 0 by one hashed bit: C^2 - null^2, where the share `null` that holds nothing sends a coin that the server knows.

    At null = 1/2 it is 1 / I_det = (3 E + 1)(E + 3) / (4 (E - 1)^2) (limits 3.2).
    """
    return response_gain(epsilon) ** 2 - null**2


def blocks_variance(epsilon: float, k: int, size: int, share: float) -> float:
    """n times the variance of a mean near 0 by blocks of `size` of k symbols, each held by `share` of the clients.

    (2 q + (p - q) size share) / (p - q)^2, p = E q = E / (E + 2 ceil(k / size)): noise of both signs of the own block, and what the others in it send.
    """
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    q = 1 / (growth + 2 * math.ceil(k / size))
    gap = (growth - 1) * q
    return (2 * q + gap * min(size, k) * share) / gap**2


@lru_cache(maxsize=4096)
def best_size(epsilon: float, k: int, share: float, null: float) -> tuple[int, float]:
    """The symbols of a block whose variance is least, or 0 where one hashed bit has less; and that variance."""
    sizes = [1 << power for power in range((2 * k - 1).bit_length())]
    blocks = [(blocks_variance(epsilon, k, size, share), size) for size in sizes]
    variance, size = min([(one_bit_variance(epsilon, null), 0), *blocks])
    return size, variance
