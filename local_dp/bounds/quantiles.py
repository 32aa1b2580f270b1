"""Rank errors and client counts of quantiles: one round of prefix sums, or a search over several rounds."""

import math

from local_dp.bounds.normal import normal_quantile
from local_dp.bounds.response import check_tolerance, response_gain
from local_dp.errors import InputError

ONE_ROUND = 0.9  # rank errors in units of the standard error of the prefix sums, the largest measured (docs/quantiles.md)
# The law of the place that a search ends at, fitted, for its steps depend on one another (docs/quantiles.md): `python -m tests.support.search_law` measures it.
POOLED = 3.18  # within how many standard errors 95 % of the places lie where cells are so heavy that the same few thresholds are asked again and again
APART = 1.0  # how many more where cells are so fine that no threshold is asked twice
MERGED = 2.0  # how fast the one becomes the other, with the mass of a cell in standard errors
TAIL = 0.23  # the reach grows with beta^-TAIL: heavier than normal, for early rounds mislead
GROWTH = 1.4  # how much larger each round of a search is than the one before
SPARE_ROUNDS = 3  # rounds beyond those that would halve the symbols to one


def one_round_error(epsilon: float, v: float, quantiles: int, clients: int, beta: float) -> float:
    """The rank error that all quantiles keep, except with probability beta: z_{beta/2Q} C sqrt(v / n), v = n/C^2 times the variance of a prefix sum."""
    return ONE_ROUND * _z(quantiles, beta) * response_gain(epsilon) * math.sqrt(v / clients)


def search_reach(beta: float, coarseness: float = 0.0) -> float:
    """Within how many standard errors of one threshold question the place found by a search lies, except with probability beta: A(c) (0.05 / beta)^TAIL.

    A(c) = POOLED + APART / (1 + MERGED c), c the coarseness: the mass of the quantile's cell in these standard errors. Largest at 0, on the finest grids.
    """
    return (POOLED + APART / (1 + MERGED * coarseness)) * math.pow(0.05 / beta, TAIL)


def search_failure(reach: float, coarseness: float = 0.0) -> float:
    """The probability that the place lies further than that: the inverse of `search_reach`."""
    return min(1.0, 0.05 * math.pow(search_reach(0.05, coarseness) / reach, 1 / TAIL))


def search_error(epsilon: float, quantiles: int, clients: int, beta: float) -> float:
    """The rank error that all quantiles keep in a search, each with n / Q clients, on any grid: `search_reach` times C sqrt(Q / 4n).

    The quantiles have clients of their own, so their errors are independent. No sequentially interactive protocol has less than a normal error of
    C sqrt(Q / 4n), which asks everybody at the quantile itself (Duchi, Jordan, Wainwright 2013).
    """
    _check(quantiles)
    each = -math.expm1(math.log1p(-beta) / quantiles)
    return search_reach(each) * response_gain(epsilon) * math.sqrt(quantiles / (4 * clients))


def prefers_search(v: float, quantiles: int, beta: float) -> bool:
    """Whether the search has the smaller rank error; so it has then, whatever epsilon and the number of clients."""
    return search_error(1.0, quantiles, 1, beta) < one_round_error(1.0, v, quantiles, 1, beta)


def quantile_clients(epsilon: float, v: float, quantiles: int, tolerance: float, beta: float) -> int:
    """n for which every rank error is at most `tolerance`, except with probability beta, in one round where `v` is finite."""
    check_tolerance(tolerance)
    error = search_error(epsilon, quantiles, 1, beta) if math.isinf(v) else one_round_error(epsilon, v, quantiles, 1, beta)
    return math.ceil((error / tolerance) ** 2)


def search_rounds(symbols: int, clients: float, least: int) -> int:
    """How many rounds a search over `symbols` symbols takes, its first asking at least `least` of the `clients` of one quantile; 0 if there are too few.

    Round j asks a share proportional to GROWTH^j, so that the last two of many ask about half.
    """
    for rounds in range(max(1, symbols - 1).bit_length() + SPARE_ROUNDS, 0, -1):
        if clients * (GROWTH - 1) / (GROWTH**rounds - 1) >= least:
            return rounds
    return 0


def _z(quantiles: int, beta: float) -> float:
    _check(quantiles)
    return normal_quantile(beta / (2 * quantiles))


def _check(quantiles: int) -> None:
    if quantiles < 1:
        raise InputError("there is no quantile to estimate; give at least one")
