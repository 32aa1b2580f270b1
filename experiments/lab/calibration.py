"""Whether the 95 % intervals that experiments print are what they say, worked out by other means
than they are: nothing here is drawn."""

import math
from statistics import NormalDist

import numpy as np

from local_dp.experiments.lab.intervals import LEVEL, wilson
from local_dp.experiments.lab.minimal_clients import MinimalClients, minimal_clients
from local_dp.experiments.lab.shapes import Check

RUNS = 300  # of a success rate
# of a known curve: success Phi(u + SLOPE x)^DECISIONS with x = 2 (sqrt(n / CLIENTS) - 1), 90 % at
# CLIENTS
CLIENTS, DECISIONS, SLOPE = 1000, 8, 1.1
TARGET, TRIALS = 0.9, 4000
_NORMAL = NormalDist()


def intervals_check() -> Check:
    """Whether Wilson's interval contains the truth at its stated rate, and a search on a known
    curve is as exact as Fisher's information allows."""
    coverage = _wilson_coverage()
    # where every sample has the expected successes
    count = minimal_clients(
        lambda n, runs: round(runs * _share(n)), CLIENTS, target=TARGET, trials=TRIALS
    )
    expected = 2 * _NORMAL.inv_cdf((1 + LEVEL) / 2) * _standard_error(count)
    width = (count.high - count.low) / expected
    exact = abs(count.n / CLIENTS - 1) <= 0.01 and abs(width - 1) <= 0.1
    return Check(
        "The 95 % intervals are what they say, of a success rate and of a least number of clients",
        exact and abs(coverage - LEVEL) <= 0.005,
        f"the interval of {RUNS} runs holds the true rate in {coverage:.2%} of cases, over all "
        f"rates; on a curve that is known to reach {TARGET:.0%} at {CLIENTS}, a search finds "
        f"{count.n}, its interval {width:.2f} times as wide as Fisher's information says",
    )


def _wilson_coverage() -> float:
    """Pr[the rate lies in the interval of its RUNS runs], exact, the mean over the rates 0.005,
    0.015, ..., 0.995."""
    rates, counts = (np.arange(100) + 0.5) / 100, np.arange(RUNS + 1)
    factorials = np.array([math.lgamma(k + 1) for k in counts])
    ways = (factorials[-1] - factorials - factorials[::-1])[:, None]
    successes = counts[:, None]
    law = np.exp(ways + successes * np.log(rates) + (RUNS - successes) * np.log1p(-rates))
    low, high = np.array([wilson(int(k), RUNS) for k in counts]).T[..., None]
    return float((law * ((low <= rates) & (rates <= high))).sum() / len(rates))


def _share(n: int) -> float:
    """The success of the known curve with n clients."""
    aim = _NORMAL.inv_cdf(TARGET ** (1 / DECISIONS))
    return float(_NORMAL.cdf(aim + SLOPE * 2 * (math.sqrt(n / CLIENTS) - 1)) ** DECISIONS)


def _standard_error(count: MinimalClients) -> float:
    """That of n, from the information that the three decisive samples hold of the curve's level and
    slope."""
    information = np.zeros((2, 2))
    for point in count.points[-3:]:
        place, share = 2 * (math.sqrt(point.n / CLIENTS) - 1), _share(point.n)
        level = _NORMAL.inv_cdf(share ** (1 / DECISIONS))
        above, below = (_NORMAL.cdf(level + step) ** DECISIONS for step in (1e-4, -1e-4))
        weight = point.trials * ((above - below) / 2e-4) ** 2 / (share * (1 - share))
        information += weight * np.outer((1, place), (1, place))
    return CLIENTS / SLOPE * math.sqrt(np.linalg.inv(information)[0, 0])
