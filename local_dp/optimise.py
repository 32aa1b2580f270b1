"""Searches in one variable: the least number that is enough, a crossing of the reals, the least of
a valley, and the best split."""

from collections.abc import Callable

from local_dp.errors import InputError


def least_clients(enough: Callable[[int], bool], least: int = 1) -> int:
    """The least n >= `least` with enough(n), for a condition that stays true once it is."""
    low, high = least - 1, least
    while not enough(high):
        low, high = high, 2 * high
    return least_whole(low, high, enough)


def least_whole(low: int, high: int, enough: Callable[[int], bool]) -> int:
    """The least whole number above `low` that is enough, for a condition that stays true once it
    is; `high` if none below it is enough."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def crossing(
    low: float, high: float, is_below: Callable[[float], bool], halvings: int
) -> tuple[float, float]:
    """The ends of the interval around the number up to which `is_below` holds, after so many
    halvings."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


def lowest(low: float, high: float, value: Callable[[float], float], thirds: int) -> float:
    """Where a function that falls and then rises is least, after so many steps, each of which
    leaves two thirds of the interval."""
    for _ in range(thirds):
        left = low + (high - low) / 3
        right = high - (high - low) / 3
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return low


def best_split(success: Callable[[int, int], float], n: int) -> int:
    """How many of n clients to ask in round one, so that success(first, n - first), of concave
    logarithm, is largest."""
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
