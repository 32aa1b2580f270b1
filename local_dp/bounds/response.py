"""Randomized response and Laplace noise: the gain of one report, and how many clients an accuracy
takes."""

import math
from functools import lru_cache

import numpy as np

from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.optimise import crossing, least_clients


def check_positive_epsilon(epsilon: float) -> None:
    if not 1e-9 <= epsilon <= 24:  # the range that a budget allows; false for NaN
        raise InputError(f"epsilon is {epsilon}; it must lie between 1e-9 and 24 nats")


def response_gain(epsilon: float) -> float:
    """C = (e^eps + 1) / (e^eps - 1) = coth(eps / 2), the factor by which randomized response
    shrinks a mean."""
    check_positive_epsilon(epsilon)
    return 1 / math.tanh(epsilon / 2)


def check_tolerance(tau: float) -> None:
    if not 0 < tau <= 2:
        raise InputError(f"the tolerance is {tau}; give a number above 0 and at most 2")


def rr_clients(epsilon: float, tau: float, beta: float) -> int:
    """n for one [-1, 1] query within tau except with probability beta: z_{beta/2}^2 C^2 / tau^2,
    central limit form, minimax (limits 1, Theorem 1)."""
    check_tolerance(tau)
    return math.ceil((normal_quantile(beta / 2) * response_gain(epsilon) / tau) ** 2)


LEVELLED = (
    36  # the least variance n p (1 - p) of a count of reports for its interval to keep its level
)
LEVELLED_TO = 3.0  # up to this epsilon it is asked for


def levelled_clients(epsilon: float) -> int:
    """n from which on the 95 % interval of a share holds it in 94 to 96 % of runs, whatever it is:
    n p (1 - p) >= 36, p = 1 / (1 + e^eps).

    Of randomized response, whose rarer report has chance p at a share of 0: reports are whole, so
    the coverage jumps by the chance of one count. Beyond epsilon 3 as at 3, 797: there p falls as
    e^-eps, and the level holds except for shares near 0 and 1. Found by the exact law
    (`tests/lab/test_coverage.py`).
    """
    check_positive_epsilon(epsilon)
    flip = 1 / (1 + math.exp(min(epsilon, LEVELLED_TO)))
    return math.ceil(LEVELLED / (flip * (1 - flip)))


def rr_clients_hoeffding(epsilon: float, tau: float, beta: float) -> int:
    """The same with a guarantee for every n and every mean: 2 C^2 ln(2/beta) / tau^2 (Hoeffding;
    KLNRS Lemma 4.3 with explicit constants)."""
    check_tolerance(tau)
    check_share("the failure probability", beta)
    return math.ceil(2 * response_gain(epsilon) ** 2 * math.log(2 / beta) / tau**2)


MAX_WALK = 1 << 20


def check_accuracy(epsilon: float, tau: float, beta: float) -> None:
    if not epsilon > 0:
        raise InputError(f"epsilon is {epsilon}; give a positive number of nats")
    check_tolerance(tau)
    check_share("the failure probability", beta)


def binomial_tail(n: int, k: int, p: float) -> float:
    """Pr[Binomial(n, p) >= k], to about 1e-9 relative: the leading term by the log-gamma function,
    the others by their ratios."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    if k < n * p:
        return 1.0 - binomial_tail(n, n - k + 1, 1 - p)
    log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    log_first = log_ways + k * math.log(p) + (n - k) * math.log1p(-p)
    # beyond 40 deviations: nothing
    reach = int(40 * math.sqrt(n * p * (1 - p)))
    terms = np.arange(min(n - k, reach + 50), dtype=np.float64)
    odds = p / (1 - p)
    ratios = np.cumprod((n - k - terms) / (k + 1 + terms) * odds)
    return math.exp(log_first) * (1.0 + float(ratios.sum()))


def rr_failure(n: int, epsilon: float, tau: float, mean: float = 0.0) -> float:
    """Pr[|estimate - mean| > tau] for n clients under randomized response: exact, by the binomial
    law. A saw-tooth in n, because reports are whole."""
    c = response_gain(epsilon)
    p = (1 + mean / c) / 2
    above = math.floor(n * (1 + (mean + tau) / c) / 2) + 1
    below = math.ceil(n * (1 + (mean - tau) / c) / 2) - 1
    return min(1.0, binomial_tail(n, above, p) + binomial_tail(n, n - below, 1 - p))


def rr_failure_envelope(n: int, epsilon: float, tau: float) -> float:
    """An upper bound on `rr_failure` at mean 0 that falls as n grows: 2 Pr[N(0, 1) > sqrt(2 n KL)],
    KL from a fair coin to one report short of the edge.

    Zubkov and Serov 2013: Pr[Binomial(n, p) > k] <= Pr[N(0, 1) > sqrt(2 n KL(k/n || p))] for k >=
    np.
    """
    bias = min(tau / response_gain(epsilon), 1.0) - 2 / n
    if bias <= 0:
        return 1.0
    # of a coin of that bias from a fair one, without cancellation
    divergence = bias * math.atanh(bias) + math.log1p(-(bias**2)) / 2
    return 2 * normal_tail(math.sqrt(2 * n * divergence))


@lru_cache(maxsize=4096)
def rr_clients_exact(epsilon: float, tau: float, beta: float) -> int:
    """The least n such that n AND all larger numbers of clients keep one [-1, 1] query of mean 0
    within tau, except with probability beta.

    By the exact binomial law (limits 1): below the count of the falling envelope the saw-tooth is
    walked down to the last number that fails; beyond 2^20 it is the answer, at most 0.3 % above.
    Mean 0 is the least favourable up to the phase of the lattice, which the walk has met.
    """
    check_accuracy(epsilon, tau, beta)
    n = least_clients(lambda n: rr_failure_envelope(n, epsilon, tau) <= beta, least=2)
    while 1 < n <= MAX_WALK and rr_failure(n - 1, epsilon, tau) <= beta:
        n -= 1
    return n


def split_budget_cost(epsilon: float, t: int) -> float:
    """C(eps/t)^2 / (t C(eps)^2): what splitting epsilon costs over splitting clients, about t at
    small epsilon; below 1 from 3.06 for t = 2."""
    return response_gain(epsilon / t) ** 2 / (t * response_gain(epsilon) ** 2)


def laplace_clients_chernoff(epsilon: float, tau: float, beta: float) -> int:
    """n for the mean of g + Lap(2/eps): ln(2/beta) / max over t of (t tau - t^2/2 + ln(1 -
    (2t/eps)^2)), sampling and noise together (limits 1)."""
    check_accuracy(epsilon, tau, beta)
    # the derivative of the exponent falls from tau to minus infinity
    t, _ = crossing(
        0.0,
        epsilon / 2,
        lambda t: tau - t - (8 * t / epsilon**2) / (1 - (2 * t / epsilon) ** 2) > 0,
        200,
    )
    rate = 2 * t / epsilon
    exponent = t * tau - t**2 / 2 + math.log1p(-(rate**2))
    return math.ceil(math.log(2 / beta) / exponent)


def laplace_clients_closed(epsilon: float, tau: float, beta: float, b: float = 1.0) -> int:
    """n >= 2.069 (8 + eps^2) b^2 ln(2/beta) / (eps tau)^2: KLNRS Lemma 4.3 with its constant. Needs
    eps tau <= b, which the paper does not say (limits 1)."""
    if epsilon * tau > b:
        raise InputError(
            f"the closed form needs epsilon * tau <= b, not {epsilon:g} * {tau:g} > {b:g}; use "
            "laplace_clients_chernoff"
        )
    noise = 2.069 * (8 + epsilon**2)
    tail = math.log(2 / beta)
    return math.ceil(noise * b**2 * tail / (epsilon * tau) ** 2)


def laplace_tail_exponent(tau: float, t: float | None = None) -> float:
    """c with Pr[|mean of n Lap(1)| >= tau] <= 2 exp(-c n tau^2): c = (t tau + ln(1 - t^2)) / tau^2,
    at the best t = (sqrt(1 + tau^2) - 1) / tau.

    At least 0.2259 for tau <= 1, and 0.2123 at the simpler t = tau/2; KLNRS Lemma 4.2 prints t =
    tau, where c < 0 and nothing is claimed (limits 1).
    """
    best = (math.sqrt(1 + tau**2) - 1) / tau if t is None else t
    return (best * tau + math.log1p(-(best**2))) / tau**2


def clipped_laplace_shrinkage(epsilon: float) -> float:
    """m = 1 - (1 - e^-eps) / eps: what clipping g + Lap(2/eps) to [-1, 1] leaves of the mean of g
    in {-1, 1} (limits 1)."""
    return 1 + math.expm1(-epsilon) / epsilon


def clipped_laplace_variance(epsilon: float) -> float:
    """The variance of one clipped and rescaled Laplace report at mean 0: (1/2 + e^-eps/2 + 1/2
    int_0^eps (1 - 2s/eps)^2 e^-s ds) / m^2 (limits 1)."""
    rest = math.exp(-epsilon)
    width = 2 / epsilon
    second = 2 - (epsilon**2 + 2 * epsilon + 2) * rest
    moments = (1 - rest, 1 - (1 + epsilon) * rest, second)
    noise = 2 * width * moments[1]
    square = (1 + rest + moments[0] - noise + width**2 * moments[2]) / 2
    return square / clipped_laplace_shrinkage(epsilon) ** 2
