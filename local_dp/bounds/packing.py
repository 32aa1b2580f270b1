"""How few records a purely private algorithm cannot do with: packing, once, for learners and for sanitizers.

It is about pure privacy alone: with a delta, answers that are delta-likely everywhere cost nothing.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from local_dp.bounds.binomials import CountLaw, log_sum
from local_dp.checks import check_positive, check_share, check_whole
from local_dp.curator.multisets import MAX_BITS
from local_dp.errors import InputError
from local_dp.optimise import least_clients


def is_excluded(log_others: float, moved: CountLaw, epsilon: float, beta: float) -> bool:
    """Whether no eps-private algorithm is right with probability 1 - beta on each of N kinds of databases whose right answers exclude each other.

    `log_others` = ln(N - 1): N may be 2^65536. A database of one kind becomes one of another by replacing K records, `moved` the law of K. Excluded if
    (N - 1) E[e^(-eps K); K above its beta-quantile] > beta. Proof: let f_j(k) be Pr[right] on kind j given K = k, so E f_j(K) >= 1 - beta. On kind i an
    answer right for j has probability at least e^(-eps K) f_j(K) given K; over all j != i, on the average over i, these add up to at most beta. As
    e^(-eps k) falls, E[e^(-eps K) f(K)] is least where f is 0 on the lowest beta of K, on a share of the quantile itself, and 1 above.
    Source: sharpens Beimel, Nissim, Stemmer 2013, Lemmas 4.15 and 5.7.
    """
    kept = np.minimum(moved.shares, np.maximum(0.0, np.cumsum(moved.shares) - beta))
    above = kept > 0
    return log_others + log_sum(np.log(kept[above]) - epsilon * moved.sizes[above]) > math.log(beta)


def least_not_excluded(log_others: float, moved: Callable[[int], CountLaw], epsilon: float, beta: float) -> int:
    """The least m that is not excluded, `moved` the law of K for m records: every algorithm needs at least as many."""
    check_positive("epsilon", epsilon)
    check_share("beta", beta)
    return least_clients(lambda m: not is_excluded(log_others, moved(m), epsilon, beta))


def point_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of points: 155, 278, 520, 993, 1,924 at 16, 32, 64, 128, 256 bits (alpha = beta = .1, eps 1).

    The kinds: just over alpha on (x, 1), the rest on (0, 0), for the 2^bits - 1 points x > 0; only x itself is within alpha. K ~ Bin(m, alpha).
    """
    return least_not_excluded(_log_below(bits, 2), lambda m: CountLaw.binomial(m, _share(alpha)), epsilon, beta)


def threshold_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of thresholds: 73, 134, 254, 490, 954 at 16, 32, 64, 128, 256 bits (alpha = beta = .1, eps 1).

    The kinds: just over alpha on (t - 1, 0) and on (t, 1), the rest on (0, 0) and (2^bits - 1, 1), for the 2^(bits - 1) odd t; only 1 iff x >= t is within
    alpha. K ~ Bin(m, 2 alpha). All t > 0 would do, and add as much as one more bit.
    """
    return least_not_excluded(_log_below(bits - 1, 1), lambda m: CountLaw.binomial(m, 2 * _share(alpha, 2)), epsilon, beta)


def k_point_records(bits: int, k: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure proper learner of sets of k points, k even: 92, 174, 332, 641 for k = 2, 4, 8, 16 at 64 bits (alpha = beta = .1, eps 1).

    The kinds: just over 5 alpha / k on each point of A, the rest on 0, so K ~ Bin(m, 5 alpha), for a family of sets A that meet in fewer than k / 2 points,
    of size ((2^bits - 1) / (4 e^2 k))^(k / 2) at least (Beimel, Nissim, Stemmer 2013, Lemma 5.7; erratum E11): a set within alpha has 4 k / 5 points of A.
    """
    check_whole("k", k, 2, 1 << 20)
    if k % 2:
        raise InputError(f"k is {k}; give an even number: the family is of sets that meet in half of their points")
    log_family = k / 2 * (_log_below(bits, 1) - math.log(4 * math.e**2 * k))
    if log_family <= math.log(2):
        raise InputError(f"there are too few sets of {k} points among 2^{bits}; give more bits")
    return least_not_excluded(log_family + math.log1p(-math.exp(-log_family)), lambda m: CountLaw.binomial(m, 5 * _share(alpha, 5)), epsilon, beta)


def sanitizer_records(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """For a pure sanitizer of any class that separates all points (points, thresholds): 65, 120, 230, 450, 895 at 16, 32, 64, 128, 256 bits.

    The kinds: more than 2 alpha m copies of x_i, the rest of x_1; the answers of one are within alpha of no other. K is the least such number, always.
    """
    share = 2 * Fraction(repr(_share(alpha, 2)))
    return least_not_excluded(_log_below(bits, 1), lambda m: CountLaw.always(math.floor(share * m) + 1), epsilon, beta)


def sanitizer_size(bits: int, epsilon: float, alpha: float, beta: float, times: int = 2) -> float:
    """(1 / (times alpha eps)) ln((2^bits - 1)(1 - beta) / beta): as if records could be split; Lemma 4.15 with `times` 2, as printed with 3.

    By up to 1 / (2 alpha) more than is proven: 67, 122, 233, 455, 899 rounded up.
    """
    return (_log_below(bits, 1) + math.log((1 - beta) / beta)) / (times * _share(alpha, times) * epsilon)


def point_records_printed(bits: int, epsilon: float, alpha: float) -> int:
    """(1 / (8 alpha eps)) ln((2^bits - 2) / 3) for beta 1/2: Lemma 5.7 for one point, 55 at 64 bits where `point_records` gives 520."""
    return math.ceil((_log_below(bits, 2) - math.log(3)) / (8 * _share(alpha) * epsilon))


def _log_below(bits: int, less: int) -> float:
    """ln(2^bits - less)."""
    check_whole("bits", bits, 2, MAX_BITS)
    return math.log((1 << bits) - less)


def _share(alpha: float, times: int = 1) -> float:
    """alpha, if so many times alpha is still a share."""
    check_share(f"{times} alpha" if times > 1 else "alpha", times * alpha)
    return alpha
