"""How many secret bits noisy subset sums give away."""

import math

from local_dp.bounds.normal import normal_tail
from local_dp.errors import InputError


def wrong_bits(n: int, k: int, sd: float) -> float:
    """Pr[a bit is wrong] by least squares on k random subset sums of n rows with noise of standard deviation `sd`: Phi(-sqrt(k - n + 1) / (4 sd)), to O(1/n).

    The estimate of x_i is off by a normal error of variance sd^2 / s_i, s_i the squared part of column i that the other n - 1 do not explain, and it is wrong
    beyond 1/2. Entries are 1/2 +- 1/2: a vector of fair signs keeps its k - n + 1 free dimensions, so s_i is about (k - n + 1) / 4. In units of sqrt(n) it
    depends on k / n alone. Raises InputError below k = n.
    """
    if not (1 <= n <= k and sd > 0):
        raise InputError(f"n = {n}, k = {k}, sd = {sd}; give k >= n >= 1 and a positive standard deviation")
    return normal_tail(math.sqrt(k - n + 1) / (4 * sd))
