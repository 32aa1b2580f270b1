"""Zero-concentrated privacy in epsilons and deltas, and a budget of these in rho."""

import math

from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Concentrated

_UP = 1 + 1e-12  # more than the rounding of a few floats


def conversion(rho: float, delta: float) -> float:
    """The least epsilon that rho-zCDP gives beside delta: a rho + ln(1 / (a delta)) / (a - 1) + ln(1 - 1 / a) at its best order a > 1; any order is safe.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """

    def at(log_more: float) -> float:
        order = 1 + math.exp(log_more)
        return order * rho - math.log(order * delta) / (order - 1) + math.log1p(-1 / order)

    best = min(range(-40, 60), key=lambda quarter: at(quarter / 4)) / 4
    low, high, golden = best - 0.25, best + 0.25, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        near, far = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, far) if at(near) < at(far) else (near, high)
    return at((low + high) / 2) * _UP


def rho_within(budget: Approximate) -> Concentrated:
    """The most rho, in whole units of 1e-18, that comes to no more than the budget. Raises InputError where there is none or no delta."""
    low, high = 0, 1 << 70
    while budget.atto and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if conversion(middle / ATTO, budget.delta) <= budget.epsilon else (low, middle)
    if not low:
        raise InputError(f"{budget} is worth no rho; give a delta above 0 and a larger epsilon")
    return Concentrated(low)
