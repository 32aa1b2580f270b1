"""Where a delta, which falls with epsilon, crosses the one that is asked for."""

import math
from collections.abc import Callable

_CLOSE = 1e-9  # of an epsilon
_LEAST = 1e-4  # nats: below, closeness is absolute
_PARTS = 64  # of the interval: the first that is tried
_ROUNDING = 1e-12  # of an epsilon, and nats: more than the rounding of exponentials and of probabilities that are fractions


def bracket(delta_of: Callable[[float], float], delta: float, most: float, close: float = _CLOSE) -> tuple[float, float]:
    """Two epsilons (nats) close together: beside the first `delta_of` is above `delta` or it is 0, and beside the second not or it is `most`."""
    low, at_low, high = 0.0, _over(1.0, delta), most / _PARTS
    while (at_high := _over(delta_of(high), delta)) > 0 and high < most:
        low, at_low, high = high, at_high, min(most, 4 * high)
    if at_high > 0:
        low = high
    elif not low and _over(delta_of(close * _LEAST), delta) <= 0:
        high = close * _LEAST
    turns = 0
    while high - low > close * max(high, _LEAST) and at_high <= 0:
        turns += 1
        step = close * max(high, _LEAST) / 3
        secant = low + (high - low) * (at_low / (at_low - at_high) if turns % 3 else 0.5)
        middle = min(max(secant + math.copysign(step, low + high - 2 * secant), low + step), high - step)
        found = _over(delta_of(middle), delta)
        low, at_low, high, at_high = (middle, found, high, at_high) if found > 0 else (low, at_low, middle, found)
    return max(0.0, low * (1 - _ROUNDING) - _ROUNDING), min(most, high * (1 + _ROUNDING) + _ROUNDING)


def _over(value: float, delta: float) -> float:
    """Above 0 if the value is: nearly linear in epsilon, since delta falls as e^-(c eps^2)."""
    if value <= delta:
        return math.sqrt(-math.log(delta)) - math.sqrt(-math.log(max(value, 1e-300)))
    return max(1e-12, math.sqrt(-math.log(delta)) - math.sqrt(-math.log(min(value, 1.0))))
