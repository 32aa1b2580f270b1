"""Client counts and factorization bounds for prefix sums (limits 8.5)."""

import math

from local_dp.bounds.normal import normal_quantile
from local_dp.bounds.response import check_tolerance, response_gain
from local_dp.errors import InputError


def prefix_gamma(k: int) -> float:
    """The factorization norm gamma_2 of the k prefix sums less their known half-total, for k a power of two: (1/k) sum_m 1 / (2 sin((2 m + 1) pi / 2 k)).

    The matrix (+1/2 on and below the diagonal, -1/2 above) is skew-circulant, so gamma_2 is the mean of its singular values. For one-bit reports with public
    coins, every unbiased linear estimate from signs alone, with nothing but the constant 1/2 added, has a prefix sum of variance at least C^2 gamma_2^2 / n
    less 1/4n (Cauchy-Schwarz on the trace norm). Other constants than 1/2 do better, by 1.25 times at k = 64 and 1.20 at 256: `factorization.factorize`.
    """
    if k < 1 or k & (k - 1):
        raise InputError(f"k is {k}; give a power of two")
    return sum(1 / (2 * math.sin((2 * m + 1) * math.pi / (2 * k))) for m in range(k)) / k


def one_query_clients(epsilon: float, queries: int, tau: float, beta: float) -> int:
    """n for which one random yes/no query a client answers all of `queries` shares within tau, except with probability beta: Q z_{beta/2Q}^2 C^2 / 4 tau^2."""
    check_tolerance(tau)
    return math.ceil(queries * (normal_quantile(beta / (2 * queries)) * response_gain(epsilon) / (2 * tau)) ** 2)


def prefix_clients(epsilon: float, k: int, tau: float, beta: float, factor: float = 1.0) -> int:
    """n for which all k prefix sums are within tau, except with probability beta, at `factor` times the least variance C^2 gamma_2^2 (limits 8.5)."""
    check_tolerance(tau)
    variance = factor * (response_gain(epsilon) * prefix_gamma(1 << max(0, k - 1).bit_length())) ** 2
    return math.ceil(variance * (normal_quantile(beta / (2 * k)) / tau) ** 2)


def toeplitz_gamma(k: int) -> float:
    """The factorization norm of the square-root Toeplitz factors of the k plain prefix sums: sum over j < k of (binom(2 j, j) / 4^j)^2 (limits 8.5)."""
    total, coefficient = 0.0, 1.0
    for place in range(1, k + 1):
        total += coefficient**2
        coefficient *= (2 * place - 1) / (2 * place)
    return total
