"""Client counts of Laplace noise: Lemmas 4.2 and 4.3 with explicit constants (limits 1)."""

import math

from local_dp.bounds.normal import normal_quantile
from local_dp.bounds.response import check_accuracy
from local_dp.errors import InputError


def laplace_clients(epsilon: float, tau: float, beta: float, variance: float = 1.0) -> int:
    """n for the mean of g + Lap(2/eps), central limit form: z_{beta/2}^2 (8/eps^2 + Var g) / tau^2 (KLNRS Claim 4.1; limits 1)."""
    check_accuracy(epsilon, tau, beta)
    return math.ceil(normal_quantile(beta / 2) ** 2 * (8 / epsilon**2 + variance) / tau**2)


def laplace_clients_chernoff(epsilon: float, tau: float, beta: float) -> int:
    """n for the same with a guarantee: ln(2/beta) / max over t of (t tau - t^2/2 + ln(1 - (2t/eps)^2)), sampling and noise together (limits 1)."""
    check_accuracy(epsilon, tau, beta)
    low, high = 0.0, epsilon / 2
    for _ in range(200):  # the derivative of the exponent falls from tau to minus infinity
        t = (low + high) / 2
        slope = tau - t - (8 * t / epsilon**2) / (1 - (2 * t / epsilon) ** 2)
        low, high = (t, high) if slope > 0 else (low, t)
    exponent = low * tau - low**2 / 2 + math.log1p(-((2 * low / epsilon) ** 2))
    return math.ceil(math.log(2 / beta) / exponent)


def laplace_clients_closed(epsilon: float, tau: float, beta: float, b: float = 1.0) -> int:
    """n >= 2.069 (8 + eps^2) b^2 ln(2/beta) / (eps tau)^2: KLNRS Lemma 4.3 with its constant. Needs eps tau <= b, which the paper does not say (limits 1)."""
    if epsilon * tau > b:
        raise InputError(f"the closed form needs epsilon * tau <= b, not {epsilon:g} * {tau:g} > {b:g}; use laplace_clients_chernoff")
    return math.ceil(2.069 * (8 + epsilon**2) * b**2 * math.log(2 / beta) / (epsilon * tau) ** 2)


def laplace_tail_exponent(tau: float, t: float | None = None) -> float:
    """c with Pr[|mean of n Lap(1)| >= tau] <= 2 exp(-c n tau^2): c = (t tau + ln(1 - t^2)) / tau^2, at the best t = (sqrt(1 + tau^2) - 1) / tau.

    At least 0.2259 for tau <= 1, and 0.2123 at the simpler t = tau/2; KLNRS Lemma 4.2 prints t = tau, where c < 0 and nothing is claimed (limits 1).
    """
    best = (math.sqrt(1 + tau**2) - 1) / tau if t is None else t
    return (best * tau + math.log1p(-(best**2))) / tau**2


def clipped_laplace_shrinkage(epsilon: float) -> float:
    """m = 1 - (1 - e^-eps) / eps: what clipping g + Lap(2/eps) to [-1, 1] leaves of the mean of g in {-1, 1} (limits 1)."""
    return 1 + math.expm1(-epsilon) / epsilon


def clipped_laplace_variance(epsilon: float) -> float:
    """The variance of one clipped and rescaled Laplace report at mean 0: (1/2 + e^-eps/2 + 1/2 int_0^eps (1 - 2s/eps)^2 e^-s ds) / m^2 (limits 1)."""
    rest, width = math.exp(-epsilon), 2 / epsilon
    moments = (1 - rest, 1 - (1 + epsilon) * rest, 2 - (epsilon**2 + 2 * epsilon + 2) * rest)
    square = (1 + rest + moments[0] - 2 * width * moments[1] + width**2 * moments[2]) / 2
    return square / clipped_laplace_shrinkage(epsilon) ** 2
