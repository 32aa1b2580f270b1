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


def half_stretch(epsilon: float, k: int, alpha: float, clients: int, groups: int) -> float:
    """1 + 4 alpha^2 m / (C^2 (k - 1)): by what a law alpha away stretches the square of a group's standardised sum: m clients are asked about a random half."""
    check_distance(alpha)
    return 1 + 4 * alpha**2 * clients / (groups * (k - 1) * response_gain(epsilon) ** 2)


def half_threshold(stretch: float, groups: int) -> float:
    """Half of what a law alpha away adds to the sum of `groups` squares: the threshold that needs no table. Its errors are those of `half_errors`."""
    return groups * (1 + (stretch - 1) / 2)


def likely_threshold(stretch: float, groups: int) -> float:
    """Where the two laws of the sum of squares are equally likely, which makes the mean of both errors least: g ln(stretch) / (1 - 1 / stretch)."""
    return groups * math.log(stretch) / (1 - 1 / stretch)


def half_errors(stretch: float, groups: int, threshold: float) -> tuple[float, float]:
    """Pr[the uniform law is rejected] and Pr[one alpha away is not], the sums of squares being chi-squares of `groups` degrees."""
    return chi_square_tail(threshold, groups), 1 - chi_square_tail(threshold / stretch, groups)


def shared_half_clients(epsilon: float, k: int, alpha: float, beta: float, groups: int) -> int:
    """n with which each of `groups` groups, asked about one public random half of the symbols, errs beta on average over both laws, at the best threshold.

    5.6 k C^2 / alpha^2 with 10 groups and 7.8 with 40, for beta = .1. Source: Acharya, Canonne, Freitag, Tyagi 2019 (limits 12.5).
    """

    def enough(n: int) -> bool:
        stretch = half_stretch(epsilon, k, alpha, n, groups)
        return sum(half_errors(stretch, groups, likely_threshold(stretch, groups))) <= 2 * beta

    return least_clients(enough, least=groups)
