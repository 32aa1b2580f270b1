"""Client counts for heavy hitters among 2^bits strings, prefix by prefix (normal approximations)."""

import math

from local_dp.bounds.frequencies import parities_variance
from local_dp.bounds.normal import normal_quantile
from local_dp.randomizers.frequencies.wide_hashing import best_parities

FIRST, STEP = 20, 12  # bits of the first prefix, and of each further level
KEPT = 512  # prefixes that are followed from one level to the next
NOISE = 0.01  # the chance that noise anywhere is taken for a string
FREQUENT = 10  # so many strings are to be found at once


def level_lengths(bits: int) -> tuple[int, ...]:
    """The bits of the prefix at each level: 20, 32, 44, and so on, the last one `bits`."""
    return (*range(min(FIRST, bits), bits, STEP), bits)


def noise_height(bits: int) -> float:
    """So many standard errors are passed by none of 2^bits strings that nobody holds, except with probability 1 %: a union of normal tails."""
    return normal_quantile(NOISE / 2**bits)


def heavy_hitters_clients(epsilon: float, bits: int, share: float, beta: float) -> int:
    """n for which ten strings that `share` of the clients hold each are all found, and no other, except with probability beta above 1 %.

    V / share^2 times the larger of (h + z)^2, with h the noise's height, and L (z_{512 / 2^20} + z)^2: each is among the 512 best of 2^20 prefixes by the
    1/L-th part of the clients. V is one report's variance, and z is exceeded by 1/20 of what noise leaves of beta: by one of the ten, in either way to lose it.
    """
    lengths = level_lengths(bits)
    variance = parities_variance(epsilon, best_parities(epsilon, lengths[0]), 0.0)
    miss = normal_quantile((beta - NOISE) / (2 * FREQUENT))
    kept = normal_quantile(min(0.5, KEPT / 2 ** lengths[0]))
    reach = max(noise_height(bits) + miss, math.sqrt(len(lengths)) * (kept + miss))
    return math.ceil(variance * (reach / share) ** 2)
