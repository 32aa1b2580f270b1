"""Rank errors and client counts of quantiles: one round of prefix sums, or a search over several rounds."""

import math

from local_dp.bounds.normal import normal_quantile
from local_dp.bounds.response import check_tolerance, response_gain
from local_dp.errors import InputError

ONE_ROUND = 0.8  # rank errors in units of the standard error of the prefix sums, measured (docs/quantiles.md)
SEARCH = 1.9  # rank errors in units of one threshold question's standard error, measured where it is largest, on a flat law (docs/quantiles.md)
SEARCH_BELL = 1.8  # the same on the bell curve that a run without a table makes up
GROWTH = 1.4  # how much larger each round of a search is than the one before
SPARE_ROUNDS = 3  # rounds beyond those that would halve the symbols to one


def one_round_error(epsilon: float, v: float, quantiles: int, clients: int, beta: float) -> float:
    """The rank error that all quantiles keep, except with probability beta: z_{beta/2Q} C sqrt(v / n), v = n/C^2 times the variance of a prefix sum."""
    return ONE_ROUND * _z(quantiles, beta) * response_gain(epsilon) * math.sqrt(v / clients)


def search_error(epsilon: float, quantiles: int, clients: int, beta: float, factor: float = SEARCH) -> float:
    """The rank error that all quantiles keep in a search, each with n / Q clients: `factor` z_{beta/2Q} C sqrt(Q / 4n).

    No sequentially interactive protocol does better than factor 1, which asks everybody at the quantile itself (Duchi, Jordan, Wainwright 2013).
    """
    return factor * _z(quantiles, beta) * response_gain(epsilon) * math.sqrt(quantiles / (4 * clients))


def prefers_search(v: float, quantiles: int) -> bool:
    """Whether the search has the smaller rank error: SEARCH^2 Q / 4 < ONE_ROUND^2 v, whatever epsilon and the number of clients."""
    return SEARCH**2 * quantiles / 4 < ONE_ROUND**2 * v


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
    if quantiles < 1:
        raise InputError("there is no quantile to estimate; give at least one")
    return normal_quantile(beta / (2 * quantiles))
