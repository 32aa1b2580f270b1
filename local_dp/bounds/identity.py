"""Client counts of identity testing: one-bit signs along public random rows, or along rows that each client draws alone."""

import math

from local_dp.bounds.normal import normal_quantile
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.optimise import least_clients

ROWS = 16  # random rows all clients share: near the 12 that are best, and a power of two


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Pr[chi-square with so many degrees of freedom > statistic], by the finite sum for whole and half whole numbers."""
    x, half = statistic / 2, degrees / 2
    if x <= 0:
        return 1.0
    first = 1.0 if degrees % 2 == 0 else 0.5
    tail = math.exp(-x) if degrees % 2 == 0 else math.erfc(math.sqrt(x))
    steps = round(half - first)
    return min(1.0, tail + math.fsum(math.exp((first + j) * math.log(x) - x - math.lgamma(first + j + 1)) for j in range(steps)))


def chi_square_quantile(tail: float, degrees: int) -> float:
    """The statistic with that tail probability, by bisection."""
    if not 0 < tail < 1:
        raise InputError(f"a tail probability is {tail}; give a number strictly between 0 and 1")
    low, high = 0.0, float(degrees)
    while chi_square_tail(high, degrees) > tail:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_square_tail(middle, degrees) > tail else (low, middle)
    return high


def check_distance(alpha: float) -> None:
    """Raises InputError unless this is a total variation distance that a Paninski law has."""
    if not 0 < alpha <= 0.5:
        raise InputError(f"the distance is {alpha}; give a number above 0 and at most 1/2")


def public_coin_clients(epsilon: float, k: int, alpha: float, beta: float) -> int:
    """n with which 16 public random rows of signs tell k shares from any law alpha away, but for beta either way: Theta(k C^2 / alpha^2).

    A random row moves by <s, p - q>, of mean square |p - q|_2^2 >= 4 alpha^2 / k and nearly normal, so the statistic is a chi-square of 16 degrees,
    stretched by 1 + 4 alpha^2 n / (16 k C^2). Source: Acharya, Canonne, Freitag, Tyagi 2019.
    """
    check_distance(alpha)
    stretch = chi_square_quantile(beta, ROWS) / chi_square_quantile(1 - beta, ROWS)
    return math.ceil((stretch - 1) * ROWS * k * response_gain(epsilon) ** 2 / (4 * alpha**2))


def private_coin_clients(epsilon: float, k: int, alpha: float, beta: float) -> int:
    """The same where each client draws a row of Sylvester's matrix alone: Theta(k^(3/2) C^2 / alpha^2), the best without public coins.

    A chi-square of one degree less than there are rows, moved by 4 alpha^2 n / (k C^2); its power by the normal law.
    """
    check_distance(alpha)
    degrees = (1 << (k - 1).bit_length()) - 1
    threshold, z = chi_square_quantile(beta, degrees), normal_quantile(beta)

    def enough(n: int) -> bool:
        moved = 4 * alpha**2 * n / (k * response_gain(epsilon) ** 2)
        return degrees + moved - z * math.sqrt(2 * (degrees + 2 * moved)) >= threshold

    return least_clients(enough)
