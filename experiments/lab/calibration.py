"""Whether the 95 % intervals that experiments print are what they say, worked out by other means
than they are: nothing here is drawn."""

import math
from statistics import NormalDist

import numpy as np

from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.minimal_clients import MinimalClients, minimal_clients
from local_dp.experiments.lab.shapes import Check

LEVEL = 0.95
RUNS = 300  # of a success rate
CLIENTS, DECISIONS, SLOPE = (
    1000,
    8,
    1.1,
    # of a known curve: success Phi(u + SLOPE x)^DECISIONS with x = 2 (sqrt(n / CLIENTS) - 1), 90 %
    # at CLIENTS
)
TARGET, TRIALS = 0.9, 4000
_NORMAL = NormalDist()


def intervals_check() -> Check:
    """Whether Wilson's interval contains the truth at its stated rate, and a search on a known
    curve is as exact as Fisher's information allows."""
    covered = _wilson_coverage()
    # where every sample has the expected successes
    found = minimal_clients(
        lambda n, runs: round(runs * _share(n)), CLIENTS, target=TARGET, trials=TRIALS
    )
    width, expected = (
        found.high - found.low,
        2 * _NORMAL.inv_cdf((1 + LEVEL) / 2) * _standard_error(found),
    )
    return Check(
        "The 95 % intervals are what they say, of a success rate and of a least number of clients",
        abs(covered - LEVEL) <= 0.005
        and abs(found.n / CLIENTS - 1) <= 0.01
        and abs(width / expected - 1) <= 0.1,
        f"the interval of {RUNS} runs holds the true rate in {covered:.2%} of cases, over all "
        f"rates; on a curve that is known to reach {TARGET:.0%} at {CLIENTS}, a search finds "
        f"{found.n}, its interval {width / expected:.2f} times as wide as Fisher's information "
        "says",
    )


def _wilson_coverage() -> float:
    """Pr[the rate lies in the interval of its RUNS runs], exact, the mean over the rates 0.005,
    0.015, ..., 0.995."""
    rates, counts = (np.arange(100) + 0.5) / 100, np.arange(RUNS + 1)
    ways = np.array(
        [math.lgamma(RUNS + 1) - math.lgamma(k + 1) - math.lgamma(RUNS - k + 1) for k in counts]
    )
    law = np.exp(
        ways[:, None]
        + counts[:, None] * np.log(rates)
        + (RUNS - counts[:, None]) * np.log1p(-rates)
    )
    low, high = np.array([wilson(int(k), RUNS) for k in counts]).T
    return float((law * ((low[:, None] <= rates) & (rates <= high[:, None]))).sum() / len(rates))


def _share(n: int) -> float:
    """The success of the known curve with n clients."""
    aim = _NORMAL.inv_cdf(TARGET ** (1 / DECISIONS))
    return float(_NORMAL.cdf(aim + SLOPE * 2 * (math.sqrt(n / CLIENTS) - 1)) ** DECISIONS)


def _standard_error(found: MinimalClients) -> float:
    """That of n, from the information that the three decisive samples hold of the curve's level and
    slope."""
    information = np.zeros((2, 2))
    for point in found.points[-3:]:
        place, share = 2 * (math.sqrt(point.n / CLIENTS) - 1), _share(point.n)
        level = _NORMAL.inv_cdf(share ** (1 / DECISIONS))
        rise = (
            _NORMAL.cdf(level + 1e-4) ** DECISIONS - _NORMAL.cdf(level - 1e-4) ** DECISIONS
        ) / 2e-4
        information += (
            point.trials * rise**2 / (share * (1 - share)) * np.outer((1, place), (1, place))
        )
    return CLIENTS / SLOPE * math.sqrt(np.linalg.inv(information)[0, 0])
