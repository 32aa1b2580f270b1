"""Parity in one round, whatever is asked: the bound for every randomizer, and what `Deny` comes to (limits 12.2). n in clients, epsilon in nats."""

import math
from functools import lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.channels import report_squares
from local_dp.bounds.parity import entropy
from local_dp.bounds.response import response_gain
from local_dp.checks import check_success
from local_dp.optimise import least_clients

_FINE = 100  # steps of a count's deviation that are told apart


def report_curvature(epsilon: float) -> float:
    """Proven: kappa, the largest ((1 + t) ln(1 + t) - t) / t^2 over the relative changes |t| <= 1 / C that a report's probability can have: that at -1 / C."""
    least = -1 / response_gain(epsilon)
    return ((1 + least) * math.log1p(least) - least) / least**2


def parity_report_bound(d: int, epsilon: float) -> float:
    """Proven: no epsilon-local report of an example tells more than kappa G 2^-d nats of a uniform parity of d bits (limits 12.2)."""
    return report_curvature(epsilon) * report_squares(epsilon) / 2.0**d


def parity_one_round_bound(d: int, epsilon: float, success: float) -> float:
    """Proven for every NON-INTERACTIVE protocol, every pure randomizer, public coins too, at every epsilon.

    ((1 - beta) d ln 2 - h(beta)) 2^d / (kappa G), beta = 1 - success (Fano, limits 12.2).
    """
    check_success(success, 0.0)
    needed = success * d * math.log(2) - entropy(1 - success)
    return max(0.0, needed) / parity_report_bound(d, epsilon)


def deny_information(d: int, epsilon: float) -> float:
    """What one report of `Deny` tells of a uniform parity, in nats: exact. As a share of `parity_report_bound` it tends to 1 as d grows, up to ln 3."""
    return _named_information(d, 1 / response_gain(epsilon))


def support_information(d: int, epsilon: float) -> float:
    """The same of the randomizer that more often names a parity that agrees with the example: less."""
    return _named_information(d, -1 / response_gain(epsilon))


def _named_information(d: int, shrink: float) -> float:
    right, other = _named(d, shrink)
    return right * math.log(right * 2.0**d) + (2.0**d - 1) * other * math.log(other * 2.0**d)


def _named(d: int, shrink: float) -> tuple[float, float]:
    """Pr[a report names the hidden parity] and Pr[it names this other one]."""
    other = (1 + shrink / 2.0**d) / 2.0**d
    return other - shrink / 2.0**d, other


def named_score(d: int, epsilon: float) -> float:
    """What one more report that names a parity adds to its log likelihood of being the hidden one: less than 0."""
    right, other = _named(d, 1 / response_gain(epsilon))
    return math.log(right / other)


def named_counts(d: int, epsilon: float, n: int) -> tuple[Counts, Floats, Floats]:
    """How often `Deny` names a parity, in n reports: counts in equal steps, and their law for one that is not hidden and for the hidden one (Poisson)."""
    from scipy.special import pdtr

    means = [n * chance for chance in _named(d, 1 / response_gain(epsilon))]
    reach, step = 10 * math.sqrt(means[1]) + 30, 1 + int(math.sqrt(means[1]) / _FINE)
    counts = np.arange(max(0, int(means[0] - reach)), int(means[1] + reach), step)
    edges = np.append(counts - 1, counts[-1] + step - 1).astype(np.float64)
    below = [np.where(edges < 0, 0.0, pdtr(np.maximum(edges, 0), mean)) for mean in means]
    return counts, np.diff(below[1]), np.diff(below[0])


def parity_deny_success(d: int, epsilon: float, n: int) -> float:
    """Pr[the hidden parity is named least, ties broken at random], the counts taken for independent Poisson variables."""
    _, other, right = named_counts(d, epsilon, n)
    above = np.clip(1 - np.cumsum(other), 0.0, 1.0)
    total = 2.0**d
    tied = np.where(other > 1e-9, ((above + other) ** total - above**total) / (total * np.maximum(other, 1e-9)), above ** (total - 1))
    return float((right * tied).sum())


@lru_cache
def parity_deny_clients(d: int, epsilon: float, beta: float) -> int:
    """n for which `Deny` finds the parity with probability 1 - beta: 1.65 times `parity_one_round_bound` at d = 12, and ever less beyond (limits 12.2)."""
    return least_clients(lambda n: parity_deny_success(d, epsilon, n) >= 1 - beta, least=2)
