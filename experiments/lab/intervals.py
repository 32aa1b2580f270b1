"""Confidence intervals that experiments state, 95 % by default: of success rates, errors, ratios,
slopes and quantiles."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.tallies import Z95, score_interval

LEVEL = 0.95
WITHIN = 0.01  # how far from its level an interval between order statistics may be


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval for a success rate: (low, high)."""
    low, high = score_interval(successes / trials, (0.0, 1.0), trials, z)
    return max(0.0, float(low)), min(1.0, float(high))


def relative_error(values: Sequence[float] | Floats) -> float:
    """The standard error of the mean of independent values, as a share of that mean."""
    return float(np.std(values, ddof=1) / (math.sqrt(len(values)) * np.mean(values)))


def about(value: float, error: float) -> tuple[float, float]:
    """The normal interval of a value with this standard error: (low, high)."""
    return value - Z95 * error, value + Z95 * error


def about_log(value: float, error: float) -> tuple[float, float]:
    """The normal interval of a positive value whose logarithm has this standard error: (low,
    high)."""
    return value * math.exp(-Z95 * error), value * math.exp(Z95 * error)


def slope(x: Floats, y: Floats, errors: Floats) -> tuple[float, float]:
    """The weighted least-squares slope of y, with these standard errors, on x; and its standard
    error."""
    weights = 1 / errors**2
    centred = x - float(weights @ x) / weights.sum()
    scale = float(weights @ centred**2)
    return float((weights * centred) @ y) / scale, 1 / math.sqrt(scale)


def quantile(values: Sequence[float], share: float) -> tuple[float, float, float]:
    """The quantile of a continuous law below which this share of it lies, from a sample: (quantile,
    low, high), each one of the values."""
    low, high = quantile_ranks(len(values), share)
    ordered = sorted(values)
    middle = math.ceil(share * len(values))
    return ordered[middle - 1], ordered[low - 1], ordered[high - 1]


@cache
def quantile_ranks(n: int, share: float) -> tuple[int, int]:
    """Ranks r < s, from 1: of n values of a continuous law, the r-th and the s-th smallest enclose
    its quantile with probability nearest to 95 %.

    The probability is Pr[r <= Binomial(n, share) < s], whatever the law. r has a tail next to 2.5
    %, and s makes up for what it misses. Raises InputError if n is too small to come within 1 % of
    95 %.
    """
    fewer = _fewer(n, share)
    middle = int(np.searchsorted(fewer, (1 - LEVEL) / 2))
    ranks = range(max(1, middle - 1), middle + 1)
    pairs = [(r, int(np.argmin(np.abs(fewer - fewer[r] - LEVEL)))) for r in ranks]
    best = min(pairs, key=lambda ranks: abs(quantile_coverage(n, share, ranks) - LEVEL))
    if abs(quantile_coverage(n, share, best) - LEVEL) > WITHIN:
        raise InputError(
            f"{n} values are too few for a 95 % interval of their quantile at {share:g}; give more"
        )
    return best


def quantile_coverage(n: int, share: float, ranks: tuple[int, int]) -> float:
    """Pr[r <= Binomial(n, share) < s]: how often the r-th and the s-th smallest of n values of a
    continuous law enclose its quantile."""
    fewer = _fewer(n, share)
    return float(fewer[ranks[1]] - fewer[ranks[0]])


@cache
def _fewer(n: int, share: float) -> Floats:
    """Pr[Binomial(n, share) < r] for r = 0..n."""
    count = np.arange(n)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    ways = logs[n] - logs[count] - logs[n - count]
    mass = np.exp(ways + count * math.log(share) + (n - count) * math.log1p(-share))
    return np.concatenate([[0.0], np.cumsum(mass)])
