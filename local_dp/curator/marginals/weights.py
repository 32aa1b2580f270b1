"""How much noise each character of a workload gets: least in the sum over all cells, by what one replaced record moves, exactly."""

import math
from functools import lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.cube import walsh_hadamard
from local_dp.curator.marginals.base import DENSE, Marginals

_LARGEST = 1 << 16  # of a weight: what rounding the smallest of them costs is small
_STEPS = 2000


def odd_meetings(d: int, size: int, weight: int) -> int:
    """Of all sets of `size` columns, how many meet given `weight` columns in an odd number: the characters that change where a record changes in these."""
    return sum(math.comb(weight, j) * math.comb(d - weight, size - j) for j in range(1, size + 1, 2))


def weights_of(workload: Marginals) -> Counts:
    """One whole weight for each character, 0 for the empty one, which is n: its precision 1 / sigma^2, up to a common factor.

    A character S is in 2^|T| cells of each marginal T that has S in it, divided by 2^|T|: noise costs sigma_S^2 C_S in all, C_S the sum of 2^-|T| over these T.
    For records added or removed the price is the sum of 1 / sigma_S^2, and sigma_S^2 proportional to C_S^(-1/2) is best. A replaced record moves by 2 only
    the characters that meet its change oddly, about half of them: for all t-way marginals `best_shares` is best, for others C_S^(1/2) stands in for it.
    """
    sizes: Counts = np.bitwise_count(workload.characters).astype(np.int64)
    t = int(sizes.max())
    if is_symmetric(workload):
        shares = np.append(0.0, best_shares(workload.d, t))[sizes]
    else:
        held = [(np.uint64(mask), 2.0 ** -mask.bit_count()) for mask in workload.masks]
        costs = np.zeros(len(sizes))
        for mask, share in held:
            costs += share * ((workload.characters & mask) == workload.characters)
        shares = np.sqrt(costs)
    whole: Counts = np.ceil(shares * (_LARGEST / shares[1:].max(initial=1e-300))).astype(np.int64)
    whole[0] = 0
    return whole


def is_symmetric(workload: Marginals) -> bool:
    """Whether it is all t-way marginals, each once: then the best weights depend on the size of a character alone, by convexity."""
    t = workload.masks[0].bit_count()
    return len(set(workload.masks)) == len(workload.masks) == math.comb(workload.d, t) and all(mask.bit_count() == t for mask in workload.masks)


@lru_cache(maxsize=64)
def best_shares(d: int, t: int) -> Floats:
    """The best precisions a_s of the characters of size 1..t, up to a factor, for all t-way marginals against replaced records: shape (t,).

    They minimise (sum_s N_s C_s / a_s) max_w sum_s K_s(w) a_s, N_s = C(d, s), C_s = C(d - s, t - s), K_s(w) = `odd_meetings`. For any l_w >= 0 of sum 1 the
    product is at least (sum_s (N_s C_s k_s)^(1/2))^2, k_s = sum_w l_w K_s(w), by Cauchy and Schwarz; this bound is concave in l and largest where
    a_s = (N_s C_s / k_s)^(1/2) attains it. It is found by Titterington's steps, l_w in proportion to l_w times the slope. Against C_s^(1/2) the variance
    is up to a fifth smaller; no other Gaussian noise of the kind B x + z has less, since averaging over the symmetries of the cube gains by convexity.
    """
    sizes = range(1, t + 1)
    costs = np.array([float(math.comb(d, s) * math.comb(d - s, t - s)) for s in sizes])
    meets = np.array([[float(odd_meetings(d, s, w)) for s in sizes] for w in range(1, d + 1)])
    held = np.full(d, 1.0 / d)
    for _ in range(_STEPS):
        slopes = meets @ np.sqrt(costs / (held @ meets))
        held *= slopes / (held @ slopes)
    return np.asarray(np.sqrt(costs / (held @ meets)))


def largest_move(workload: Marginals, weights: Counts) -> int:
    """max over all changes u of a record of the sum of the weights of the characters that meet u oddly: exactly, up to 22 columns or for all t-way marginals.

    Beyond, the sum of all weights, which no change exceeds. A change moves each of them by 2.
    """
    total = int(weights.sum())
    if is_symmetric(workload):
        sizes = np.bitwise_count(workload.characters)
        by_size = [int(weights[sizes == s][0]) for s in range(1, int(sizes.max()) + 1)]
        return max((sum(a * odd_meetings(workload.d, s, w) for s, a in enumerate(by_size, 1)) for w in range(1, workload.d + 1)), default=0)
    if workload.d > DENSE:
        return total
    spread = np.zeros(1 << workload.d)
    spread[workload.characters.astype(np.int64)] = weights
    return (total - int(walsh_hadamard(spread).min())) // 2  # whole numbers below 2^53: exact
