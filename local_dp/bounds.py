"""Sample sizes and error bounds, one function per theorem. n counts clients; epsilon is in nats; tau is on the [-1, 1] scale unless a line says otherwise."""

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist

from local_dp.errors import InputError

_NORMAL = NormalDist()
_FREQUENT = 64  # more than so many frequent symbols are each as good as rare


def normal_quantile(tail: float) -> float:
    """z with Pr[N(0, 1) > z] = tail."""
    if not 0 < tail < 1:
        raise InputError(f"a tail probability is {tail}; give a number strictly between 0 and 1")
    return -_NORMAL.inv_cdf(tail)


def normal_tail(z: float) -> float:
    """Pr[N(0, 1) > z]."""
    return _NORMAL.cdf(-z)


def _check_epsilon(epsilon: float) -> None:
    if not 1e-9 <= epsilon <= 24:  # the range that a budget allows; false for NaN
        raise InputError(f"epsilon is {epsilon}; it must lie between 1e-9 and 24 nats")


def gain(epsilon: float) -> float:
    """C = (e^eps + 1) / (e^eps - 1) = coth(eps / 2), the factor by which randomized response shrinks a mean."""
    _check_epsilon(epsilon)
    return 1 / math.tanh(epsilon / 2)


def _check_tolerance(tau: float) -> None:
    if not 0 < tau <= 2:
        raise InputError(f"the tolerance is {tau}; give a number above 0 and at most 2")


def rr_clients(epsilon: float, tau: float, beta: float) -> int:
    """n for which randomized response answers one [-1, 1] query within tau, except with probability beta: z_{beta/2}^2 C^2 / tau^2.

    Central limit form, for the least favourable mean 0; minimax in its constant (limits 1, Theorem 1).
    """
    _check_tolerance(tau)
    return math.ceil((normal_quantile(beta / 2) * gain(epsilon) / tau) ** 2)


def rr_clients_hoeffding(epsilon: float, tau: float, beta: float) -> int:
    """The same with a guarantee for every n and every mean: 2 C^2 ln(2/beta) / tau^2 (Hoeffding; KLNRS Lemma 4.3 with explicit constants)."""
    _check_tolerance(tau)
    if not 0 < beta < 1:
        raise InputError(f"the failure probability is {beta}; give a number strictly between 0 and 1")
    return math.ceil(2 * gain(epsilon) ** 2 * math.log(2 / beta) / tau**2)


def prefers_grr(epsilon: float, k: int) -> bool:
    """Whether k-ary randomized response has the smaller variance for a rare symbol than one-bit Hadamard: k < e^(2 eps) + e^eps + 3.

    From (E + k - 2) / (E - 1)^2 < C^2 = (E + 1)^2 / (E - 1)^2, E = e^eps. The often quoted k < 3 E + 2 compares with unary encoding (OUE) instead.
    """
    _check_epsilon(epsilon)
    growth = math.exp(epsilon)
    return k < growth**2 + growth + 3


def frequency_variance(epsilon: float, k: int, share: float) -> float:
    """n times the variance of the estimate of a symbol held by `share` of the clients, under the oracle that `prefers_grr` picks (limits 2)."""
    _check_epsilon(epsilon)
    growth = math.exp(epsilon)
    if not prefers_grr(epsilon, k):
        return gain(epsilon) ** 2 - share**2
    p, q = growth / (growth + k - 1), 1 / (growth + k - 1)
    seen = q + share * (p - q)
    return seen * (1 - seen) / (p - q) ** 2


def frequency_clients(epsilon: float, k: int, tau: float, beta: float) -> int:
    """n for which all k frequencies are within tau (in frequency units) except with probability beta: a union of normal tails.

    For the least favourable law among those that are uniform on some of the symbols: few frequent symbols have the larger variance, rare ones are many.
    """
    _check_tolerance(tau)
    laws = [*range(1, min(k, _FREQUENT) + 1), k]

    def failure(n: int) -> float:
        def tail(share: float) -> float:
            return 2 * normal_tail(tau * math.sqrt(n / frequency_variance(epsilon, k, share)))

        chances: list[float] = [held * tail(1 / held) + (k - held) * tail(0.0) for held in laws]
        return max(chances)

    if not 0 < beta < 1:
        raise InputError(f"the failure probability is {beta}; give a number strictly between 0 and 1")
    return least_clients(lambda n: failure(n) <= beta)


def least_clients(enough: Callable[[int], bool], least: int = 1) -> int:
    """The least n >= `least` with enough(n), for a condition that stays true once it is."""
    low, high = least - 1, least
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def best_split(success: Callable[[int, int], float], n: int) -> int:
    """How many of n clients to ask in round one, so that success(first, n - first), of concave logarithm, is largest."""
    if n < 2:
        raise InputError(f"the protocol has two rounds; {n} client is too few")
    low, high = 1, n - 1
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if success(left, n - left) < success(right, n - right):
            low = left
        else:
            high = right
    return max(range(low, high + 1), key=lambda first: success(first, n - first))


def masked_parity_information(epsilon: float) -> float:
    """I = 4 (E - 1)^2 / ((3 E + 1)(E + 3)), E = e^eps: what one public-coin report tells of one bit (limits 3.2, I_det)."""
    _check_epsilon(epsilon)
    growth = math.exp(epsilon)
    return 4 * (growth - 1) ** 2 / ((3 * growth + 1) * (growth + 3))


def masked_parity_success(d: int, epsilon: float, first: int, second: int) -> float:
    """Pr[(r, a) exact] of one-round hashing with `first` clients, then the parity query with `second`: normal approximation (limits 3.2, P2)."""
    information = masked_parity_information(epsilon)
    bit = normal_tail(math.sqrt(first * information) / (2 * d))
    mask = normal_tail(math.sqrt(second * information) / 2)
    return (1 - bit) ** d * (1 - mask)


def masked_parity_split(d: int, epsilon: float, n: int) -> int:
    """How many of n clients to ask in round one, so that `masked_parity_success` is largest."""
    return best_split(partial(masked_parity_success, d, epsilon), n)


def masked_parity_clients(d: int, epsilon: float, beta: float) -> int:
    """The least n for which the two rounds recover (r, a) with probability at least 1 - beta (limits 3.2, P2)."""

    def enough(n: int) -> bool:
        first = masked_parity_split(d, epsilon, n)
        return masked_parity_success(d, epsilon, first, n - first) >= 1 - beta

    return least_clients(enough, least=2)


def prefix_gamma(k: int) -> float:
    """The factorization norm gamma_2 of the k prefix sums less their known half-total, for k a power of two: (1/k) sum_m 1 / (2 sin((2 m + 1) pi / 2 k)).

    The matrix (+1/2 on and below the diagonal, -1/2 above) is skew-circulant, so gamma_2 is the mean of its singular values. For one-bit reports with
    public coins, every unbiased linear estimate has a prefix sum of variance at least C^2 gamma_2^2 / n less 1/4n (Cauchy-Schwarz on the trace norm).
    """
    if k < 1 or k & (k - 1):
        raise InputError(f"k is {k}; give a power of two")
    return sum(1 / (2 * math.sin((2 * m + 1) * math.pi / (2 * k))) for m in range(k)) / k


def one_query_clients(epsilon: float, queries: int, tau: float, beta: float) -> int:
    """n for which one random yes/no query a client answers all of `queries` shares within tau, except with probability beta: Q z_{beta/2Q}^2 C^2 / 4 tau^2."""
    _check_tolerance(tau)
    return math.ceil(queries * (normal_quantile(beta / (2 * queries)) * gain(epsilon) / (2 * tau)) ** 2)


def prefix_clients(epsilon: float, k: int, tau: float, beta: float, factor: float = 1.0) -> int:
    """n for which all k prefix sums are within tau, except with probability beta, at `factor` times the least variance C^2 gamma_2^2 (limits 8.5)."""
    _check_tolerance(tau)
    variance = factor * (gain(epsilon) * prefix_gamma(1 << max(0, k - 1).bit_length())) ** 2
    return math.ceil(variance * (normal_quantile(beta / (2 * k)) / tau) ** 2)


def toeplitz_gamma(k: int) -> float:
    """The factorization norm of the square-root Toeplitz factors of the k plain prefix sums: sum over j < k of (binom(2 j, j) / 4^j)^2 (limits 8.5)."""
    total, coefficient = 0.0, 1.0
    for place in range(1, k + 1):
        total += coefficient**2
        coefficient *= (2 * place - 1) / (2 * place)
    return total
