"""Best channels, chi-squared and capacity of a report, and the bounds for every protocol, however
it asks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.posterior import posterior_budget
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_share, check_success, check_whole
from local_dp.errors import InputError

LN3 = math.log(3)
MAX_SYMBOLS = 16  # 2^16 columns: seconds


def report_squares(epsilon: float) -> float:
    """Proven: G, the most that sum_w E_x B_w(x)^2 / A_w can be over the reports w of an
    epsilon-local channel: 1 / C^2 up to ln 3, (E - 1) / 8 above.

    A_w is the mean over the examples of Pr[w | x, y], and B_w(x) half the difference of the two
    labels' probabilities (limits 12.2).
    """
    check_positive_epsilon(epsilon)
    return response_gain(epsilon) ** -2 if epsilon <= LN3 else math.expm1(epsilon) / 8


def report_capacity(epsilon: float) -> float:
    """Proven: the most nats that an epsilon-local report reveals about its record: A - 1 - ln A, A
    = eps E / (E - 1), for every channel and law.

    Limits 12.1: r = Pr[w | v] / Pr[w] has mean 1 and values within a factor E, so the mean of r ln
    r is greatest at two values, 1 / A and E / A.
    """
    check_positive_epsilon(epsilon)
    rate = epsilon * math.exp(epsilon) / math.expm1(epsilon)
    return rate - 1 - math.log(rate)


@dataclass(frozen=True)
class BestChannel:
    """The largest `value` of a linear program over channels, and one that has it: `columns` of
    shape (reports, symbols), each column Pr[report | symbol]."""

    value: float
    columns: Floats


def staircase_columns(epsilon: float, symbols: int) -> Floats:
    """All vectors of 1 and E, shape (2^symbols, symbols): every epsilon-local channel is a garbling
    of one whose columns are multiples of these."""
    check_positive_epsilon(epsilon)
    check_whole("the number of symbols", symbols, 1, MAX_SYMBOLS)
    high = (np.arange(1 << symbols)[:, None] >> np.arange(symbols)) & 1
    return np.where(high == 1, math.exp(epsilon), 1.0)


def best_channel(epsilon: float, symbols: int, score: Callable[[Floats], Floats]) -> BestChannel:
    """The channel with the largest sum of `score` over its reports; exact up to the solver's 1e-9.
    Cost: a linear program of 2^symbols variables.

    `score` maps rows, shape (reports, symbols), to numbers; convex and homogeneous, it is largest
    at these corners (Kairouz, Oh, Viswanath 2014).
    """
    from scipy.optimize import linprog

    columns = staircase_columns(epsilon, symbols)
    scores = score(columns)
    most = float(np.abs(scores).max()) or 1.0  # the solver's tolerance is absolute
    solution = linprog(
        -scores / most, A_eq=columns.T, b_eq=np.ones(symbols), bounds=(0, None), method="highs"
    )
    support = solution.x > 1e-12
    return BestChannel(-float(solution.fun) * most, columns[support] * solution.x[support, None])


def divergence_curvature(epsilon: float) -> float:
    """Proven: c, the most that (t - ln(1 + t)) / t^2 can be for |t| <= 1 / C: that at -1 / C."""
    shrink = 1 / response_gain(epsilon)
    return (-math.log1p(-shrink) - shrink) / shrink**2


def divergence_needed(guess: float, success: float) -> float:
    """kl(rho || p) in nats, 0 where p <= rho: the divergence of the law of a guess from one with
    which the output is right with probability p."""
    if not (0 <= guess <= 1 and 0 < success <= 1):
        raise InputError(f"success {success} and guess {guess}; give probabilities")
    if success <= guess:
        return 0.0
    hit = guess * math.log(guess / success) if guess else 0.0
    if success < 1:
        return hit + (1 - guess) * (math.log1p(-guess) - math.log1p(-success))
    return math.inf


def interactive_bound(dimension: float, epsilon: float, success: float, guess: float) -> float:
    """Proven for EVERY protocol, fully interactive ones among them, every pure randomizer, at every
    epsilon: the least number of clients.

    kl(rho || p) SDA / (c G), for spectral dimension SDA, success p, and `guess` = rho, the prior's
    share that one output is good for (limits 12.3). Transcripts are countable, clients have
    independent private coins and share no secret, and the transcript is epsilon-local.
    """
    if dimension <= 0:
        raise InputError(f"the dimension is {dimension}; give a positive one")
    reveals = divergence_curvature(epsilon) * report_squares(epsilon)
    return divergence_needed(guess, success) * dimension / reveals


def parity_interactive_bound(d: int, epsilon: float, success: float) -> float:
    """`interactive_bound` for a uniform parity of d bits: 3.112 C^2 2^d clients at p = .9 and
    epsilon 1, for EVERY protocol (limits 12.3)."""
    check_success(success, 2.0**-d)
    return interactive_bound(2.0**d, epsilon, success, 2.0**-d)


@lru_cache
def best_two_laws(epsilon: float, variation: float) -> BestChannel:
    """The report that puts most between two laws at this total variation distance, in the mean
    square of (P - Q) / (P + Q): a linear program of 8 columns.

    The easiest pair of laws has three symbols: two that either law alone has, with the chance t
    each, and one that both share (limits 12.3).
    """

    def square(columns: Floats) -> Floats:
        first, second = (columns @ law for law in easiest_laws(variation))
        return np.asarray((first - second) ** 2 / (2 * (first + second)))

    return best_channel(epsilon, 3, square)


@lru_cache
def two_laws_divergence(epsilon: float, variation: float) -> float:
    """The most by which one report's law diverges, in nats, between two laws at this total
    variation: the same program."""

    def divergence(columns: Floats) -> Floats:
        first, second = (columns @ law for law in easiest_laws(variation))
        change = (first - second) / second  # their sum is 0: without it no digits are lost
        return np.asarray(second * ((1 + change) * np.log1p(change) - change))

    return best_channel(epsilon, 3, divergence).value


def easiest_laws(variation: float) -> tuple[Floats, Floats]:
    """Two laws of three symbols, of which any two laws at this total variation distance are made by
    relabelling at random."""
    check_share("the total variation distance", variation)
    return np.array([variation, 0.0, 1 - variation]), np.array([0.0, variation, 1 - variation])


def two_laws_in_turn_bound(epsilon: float, variation: float, success: float) -> float:
    """Proven for every SEQUENTIALLY INTERACTIVE protocol that distinguishes two laws: 1.176 C^2 /
    t^2 at p = .9, epsilon 1 and t = .1, by `posterior_budget`."""
    check_success(success, 0.5)
    cost = best_two_laws(epsilon, variation).value
    part = variation * math.expm1(epsilon)
    return posterior_budget(part / (part + 2), cost, success) / cost


def two_laws_asked_again_bound(epsilon: float, variation: float, success: float) -> float:
    """Proven for EVERY protocol that distinguishes any two laws at this total variation: about
    0.650 C^2 / t^2 at p = .9, epsilon 1 and t = .1."""
    check_success(success, 0.5)
    return divergence_needed(1 - success, success) / two_laws_divergence(epsilon, variation)


def two_laws_clients(epsilon: float, variation: float, beta: float) -> int:
    """n with which randomized response, on whether the symbol is likelier under the first law,
    distinguishes any two laws: z_beta^2 C^2 / t^2, in one round."""
    easiest_laws(variation)
    return math.ceil((normal_quantile(beta) * response_gain(epsilon) / variation) ** 2)
