"""How often points are learned and counted within alpha: exact sums over the worst database or distribution, and the least records for a success.

For a learner that is just over alpha on the target, labelled 1, and 0 elsewhere: then one hypothesis alone is right. For counts, the worst of all databases.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.bounds.binomials import CountLaw
from local_dp.checks import check_share
from local_dp.curator.sanitizers.cells import CellNoise
from local_dp.curator.selection.acceptance import UNIT, best_acceptance
from local_dp.loss import NANO, Approximate, nano_epsilon
from local_dp.optimise import least_clients


def stable_success(loss: Approximate, m: int, alpha: float) -> float:
    """Pr[the point learner names the target]: its lead is its count, Bin(m, alpha); the domain does not matter."""
    law, accepted = CountLaw.binomial(m, alpha), best_acceptance(loss)
    answered = np.array([accepted[min(gap, len(accepted) - 1)] / UNIT for gap in law.sizes.tolist()])
    return law.mean(answered * (law.sizes > 0))


def uniform_success(bits: int, loss: Approximate, m: int, alpha: float, beta: float) -> float:
    """Pr[the point learner that tells a uniform point for no answer is within alpha], at least; `beta` is what a uniform point may spoil.

    Of a target lighter than alpha by s = 1 / (beta 2^bits) at most beta 2^bits points are heavier than s: a uniform one is one of them with probability beta
    at most. A heavier target must be named. So nothing need be halved (erratum E3) where 2^bits is well above 1 / (alpha beta), the condition as printed.
    """
    check_share("beta", beta)
    spare = alpha - math.exp(-bits * math.log(2)) / beta
    return min(1 - beta - loss.delta, stable_success(loss, m, spare)) if spare > 0 else 0.0


def pure_success(bits: int, epsilon: float, m: int, alpha: float) -> float:
    """Pr[the exponential mechanism over all points names the target]: e^(eps K / 2) against 2^bits - 1, K ~ Bin(m, alpha)."""
    law = CountLaw.binomial(m, alpha)
    against = math.log((1 << bits) - 1) - epsilon * law.sizes / 2
    return law.mean(np.exp(-np.logaddexp(0.0, against)))


def plain_success(m: int, alpha: float) -> float:
    """Pr[the target is seen]: without privacy."""
    return -math.expm1(m * math.log1p(-alpha))


def least_records(success: Callable[[int], float], target: float = 0.9) -> int:
    """The least m with this success, which grows with m."""
    check_share("target", target)
    return least_clients(lambda m: success(m) >= target)


def least_multiple(success: Callable[[int], float], alpha: float, k: int = 1, target: float = 0.9) -> int:
    """The least m with this success of counts: between the m at which floor(alpha m / k) grows, it falls."""
    check_share("target", target)
    sizes = (math.ceil(error * k / Fraction(repr(alpha))) for error in range(1, 1 << 20))
    return next(m for m in sizes if success(m) >= target)


def cell_failures(noise: CellNoise, m: int, error: int) -> Floats:
    """For counts c = 0 .. m the chance that what is told of a cell is off by more than `error`, an untold one counting 0; shape (m + 1,)."""
    counts, top = np.arange(m + 1), max(m, noise.least)
    over = np.where(counts + error < top, _tail(noise, np.maximum(noise.least - counts, error + 1)), 0.0)
    under = np.where(counts > error, 1 - _tail(noise, np.maximum(noise.least - counts, -error)), 0.0)
    failures: Floats = np.minimum(over + under, 1 - 1e-15)
    return failures


def histogram_success(noise: CellNoise, m: int, alpha: float, k: int = 1) -> float:
    """Pr[every count is within alpha m / k], in the worst of all databases of m records: then all sums of k counts are within alpha m.

    340 and 200 records for 90 % at (1, 1e-6) and (1, 1e-3) and alpha .1, in a domain of any size; for k = 1, 2, 4, 8 340, 720, 1,480, 3,120.
    """
    error = _error(alpha, m, k)
    return math.exp(-_worst_database(-np.log1p(-cell_failures(noise, m, error)), error))


def told_cells_success(bits: int, noise: CellNoise, m: int, alpha: float) -> float:
    """The same of `PerCellHistogram`, where each of the 2^bits points has noise: that of those without records that are told too much, besides."""
    error = _error(alpha, m)
    costs = -np.log1p(-cell_failures(noise, m, error))
    return math.exp(-_worst_database(np.maximum(0.0, costs - costs[0]), error) - _of_all_cells(bits, noise, max(noise.least, error + 1)))


def per_cell_success(bits: int, epsilon: float, m: int, alpha: float) -> float:
    """(1 - 2 e^(-eps (k + 1) / 2) / (1 + e^(-eps / 2)))^(2^bits), k = floor(alpha m): of noise on all cells, every one told.

    270, 490, 930, 1,820, 3,590 records for 90 % at 16, 32, 64, 128, 256 bits, eps 1 and alpha .1.
    """
    return math.exp(-_of_all_cells(bits, CellNoise(Fraction(nano_epsilon(epsilon), 2), 1), _error(alpha, m) + 1, sides=2))


def _of_all_cells(bits: int, noise: CellNoise, least: int, sides: int = 1) -> float:
    """-ln Pr[no noise of 2^bits cells is `least` or more], on one side or on both."""
    step = float(noise.nano) / NANO
    log_chance = math.log(sides) - step * least - math.log1p(math.exp(-step))
    if log_chance > -30:
        return -(2.0**bits) * math.log1p(-min(math.exp(log_chance), 1 - 1e-16)) if bits < 1000 else math.inf
    exponent = bits * math.log(2) + log_chance  # -ln(1 - x) is x to fifteen digits, and 2^bits may be beyond a float
    return math.exp(min(exponent, 700.0))


def _worst_database(costs: Floats, error: int) -> float:
    """The largest sum of the costs of the counts of a database: `costs[c]` for each point of count c, the counts adding up to m, by dynamic programming."""
    m = len(costs) - 1
    heavy = (m // (error + 1)) * float(costs[min(error + 1, m)])  # as many as are just too heavy to be left out
    if heavy > 0.7:
        return heavy  # a success of less than a half, whatever else there is
    worst = np.zeros(m + 1)
    for held in range(1, m + 1):
        worst[held] = (worst[held - 1 :: -1] + costs[1 : held + 1]).max()
    return float(worst[m])


def _tail(noise: CellNoise, y: Ints) -> Floats:
    """Pr[Y >= y]."""
    step = float(noise.nano) / NANO
    far = np.exp(-step * np.where(y > 0, y, 1 - y)) / (1 + math.exp(-step))
    return np.where(y > 0, far, 1 - far)


def _error(alpha: float, m: int, k: int = 1) -> int:
    """floor(alpha m / k)."""
    check_share("alpha", alpha)
    return math.floor(Fraction(repr(alpha)) * m / k)
