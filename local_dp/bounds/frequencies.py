"""Client counts for frequencies of k symbols (limits 2)."""

import math

from local_dp.bounds.normal import normal_quantile, normal_tail
from local_dp.bounds.response import check_positive_epsilon, check_tolerance, response_gain
from local_dp.errors import InputError
from local_dp.optimise import least_clients

_FREQUENT = 64  # more than so many frequent symbols are each as good as rare


def prefers_grr(epsilon: float, k: int) -> bool:
    """Whether k-ary randomized response has the smaller variance for a rare symbol than one-bit Hadamard: k < e^(2 eps) + e^eps + 3.

    From (E + k - 2) / (E - 1)^2 < C^2 = (E + 1)^2 / (E - 1)^2, E = e^eps. The often quoted k < 3 E + 2 compares with unary encoding (OUE) instead.
    """
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    return k < growth**2 + growth + 3


def frequency_variance(epsilon: float, k: int, share: float) -> float:
    """n times the variance of the estimate of a symbol held by `share` of the clients, under the oracle that `prefers_grr` picks (limits 2)."""
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    if not prefers_grr(epsilon, k):
        return response_gain(epsilon) ** 2 - share**2
    p, q = growth / (growth + k - 1), 1 / (growth + k - 1)
    seen = q + share * (p - q)
    return seen * (1 - seen) / (p - q) ** 2


def frequency_clients(epsilon: float, k: int, tau: float, beta: float) -> int:
    """n for which all k frequencies are within tau (in frequency units) except with probability beta: a union of normal tails.

    For the least favourable law among those that are uniform on some of the symbols: few frequent symbols have the larger variance, rare ones are many.
    """
    check_tolerance(tau)
    laws = [*range(1, min(k, _FREQUENT) + 1), k]

    def failure(n: int) -> float:
        def tail(share: float) -> float:
            return 2 * normal_tail(tau * math.sqrt(n / frequency_variance(epsilon, k, share)))

        chances: list[float] = [held * tail(1 / held) + (k - held) * tail(0.0) for held in laws]
        return max(chances)

    if not 0 < beta < 1:
        raise InputError(f"the failure probability is {beta}; give a number strictly between 0 and 1")
    return least_clients(lambda n: failure(n) <= beta)


def grouped_clients(epsilon: float, groups: int, tau: float, beta: float) -> int:
    """n for which a share within each of `groups` equal groups is within tau, all except with probability beta: a union of normal tails.

    The share's error is that of a cell less the share times its group, G times over, where the group is the 1/G-th part of all: at most the variance of one
    of 2 G + 1 symbols (G = 1: of those present, all but few).
    """
    check_tolerance(tau)
    k = 2 * groups + 1
    variance = max(frequency_variance(epsilon, k, share) for share in (0.0, 1 / (2 * groups), 1 / groups))
    return math.ceil(variance * (groups * normal_quantile(beta / (2 * groups)) / tau) ** 2)
