"""What one epsilon-local report can carry at most: closed forms, and the best channel found by a linear program. Epsilon in nats."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.errors import InputError

LN3 = math.log(3)
MAX_SYMBOLS = 16  # 2^16 columns: seconds


def report_squares(epsilon: float) -> float:
    """Proven: G, the most that sum_w E_x B_w(x)^2 / A_w can be over the reports w of an epsilon-local channel: 1 / C^2 up to ln 3, (E - 1) / 8 above.

    A_w is the mean over the examples of Pr[w | x, y], and B_w(x) half the difference of the two labels' probabilities (limits 12.2).
    """
    check_positive_epsilon(epsilon)
    return response_gain(epsilon) ** -2 if epsilon <= LN3 else math.expm1(epsilon) / 8


def report_capacity(epsilon: float) -> float:
    """Proven: the most nats that an epsilon-local report tells of its record, for every channel and every law of the record: A - 1 - ln A, A = eps E / (E - 1).

    Limits 12.1: r = Pr[w | v] / Pr[w] has mean 1 and values within a factor E, so the mean of r ln r is greatest where r is c or E c, the larger with
    probability p, c = 1 / (1 + p (E - 1)); the best p has 1 / c = A.
    """
    check_positive_epsilon(epsilon)
    rate = epsilon * math.exp(epsilon) / math.expm1(epsilon)
    return rate - 1 - math.log(rate)


@dataclass(frozen=True)
class BestChannel:
    """The largest `value` of a linear program over channels, and one that has it: `columns` of shape (reports, symbols), each column Pr[report | symbol]."""

    value: float
    columns: Floats


def staircase_columns(epsilon: float, symbols: int) -> Floats:
    """All vectors of 1 and E, shape (2^symbols, symbols): every epsilon-local channel is a garbling of one whose columns are multiples of these."""
    check_positive_epsilon(epsilon)
    if not 1 <= symbols <= MAX_SYMBOLS:
        raise InputError(f"a channel has {symbols} symbols; give a number from 1 to {MAX_SYMBOLS}")
    high = (np.arange(1 << symbols)[:, None] >> np.arange(symbols)) & 1
    columns: Floats = np.where(high == 1, math.exp(epsilon), 1.0)
    return columns


def best_channel(epsilon: float, symbols: int, score: Callable[[Floats], Floats]) -> BestChannel:
    """The channel with the largest sum of `score` over its reports; exact up to the solver's 1e-9.

    `score` maps rows of shape (reports, symbols) to one number each; it must be convex and grow in proportion to its row, as information, squared distances
    and f-divergences do. A column with values in [1, E] is then a mixture of these corners, and the sum no larger (Kairouz, Oh, Viswanath 2014). Cost: a
    linear program of 2^symbols variables.
    """
    from scipy.optimize import linprog

    columns = staircase_columns(epsilon, symbols)
    solved = linprog(-score(columns), A_eq=columns.T, b_eq=np.ones(symbols), bounds=(0, None), method="highs")
    used = solved.x > 1e-12
    return BestChannel(-float(solved.fun), columns[used] * solved.x[used, None])
