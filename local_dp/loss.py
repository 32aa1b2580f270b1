"""Privacy loss in whole nano-nats, and e^epsilon as a fraction on the private side of it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from local_dp.errors import InputError

NANO = 1_000_000_000
MAX_EPSILON = 24.0  # beyond it a report is the value itself for every practical purpose


def nano_epsilon(epsilon: float) -> int:
    """epsilon (nats) as whole nano-nats, rounded down (towards privacy). Raises InputError unless 1e-9 <= epsilon <= 24."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputError(f"epsilon is {epsilon!r}; give a number of nats in (0, {MAX_EPSILON:g}]")
    if not 1 / NANO <= epsilon <= MAX_EPSILON:  # also false for NaN
        raise InputError(f"epsilon is {epsilon!r}; it must lie between 1e-9 and {MAX_EPSILON:g} nats")
    return math.floor(epsilon * NANO + 1e-3)  # 1e-12 nats: absorbs the float error of products such as 0.7 * 1e9


def split_epsilon(epsilon: float, parts: int) -> float:
    """The largest epsilon that can be charged `parts` times within `epsilon`."""
    if parts < 1:
        raise InputError(f"cannot split a budget into {parts} parts; give 1 or more")
    return nano_epsilon(epsilon) // parts / NANO


_PRIVATE_SIDE = 1 - Fraction(1, 10**50)


@lru_cache(maxsize=1024)
def exp_epsilon(nano: int) -> Fraction:
    """A rational just below e^epsilon (relative gap 1e-50), so that thresholds computed from it never exceed epsilon."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(nano) / NANO).exp()) * _PRIVATE_SIDE
