"""How much replies must tell to decide between two hypotheses, by checked tables
(docs/theory/posterior.md)."""

import json
from decimal import Decimal, localcontext
from functools import lru_cache
from pathlib import Path

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_success

DIGITS = 300  # of decimal numbers, whose exp, ln and roots are correctly rounded
# of a bound: more than the rounding of its operations where differences of numbers of 80 digits are
# squared
ROUNDING = Decimal("1e-40")


def decimal(number: float) -> Decimal:
    """The number as it is written: 0.9 is 9/10."""
    return Decimal(str(float(number)))


def distance_needed(advantage: Decimal) -> Decimal:
    """1 - sqrt(1 - a^2): the squared Hellinger distance that two laws at total variation a have at
    least."""
    return advantage**2 / (1 + (1 - advantage**2).sqrt())


CURVES = Path(__file__).with_name("posterior.json")


@lru_cache
def posterior_curves() -> tuple[tuple[float, float, Floats, Floats], ...]:
    """(reach, cost, budgets, successes) of each table: the corners of a concave curve."""
    return tuple(
        (each["reach"], each["cost"], *map(np.array, zip(*each["corners"], strict=True)))
        for each in json.loads(CURVES.read_text(encoding="utf-8"))
    )


def posterior_budget(reach: float, cost: float, success: float) -> float:
    """Proven: B, so that with a mean sum of squares below B nobody names one of two equally likely
    hypotheses with probability `success`.

    A reply w has likelihoods (1 + u) mu and (1 - u) mu under them, |u| <= reach; its square is the
    sum of mu u^2, at most `cost`, and squares of all replies add up. The budget may differ from
    case to case, by a public coin. The best of the tables for a reach and cost as large (1.430
    at .3005, .0695 and .9); in any case 1 - sqrt(1 - (2p - 1)^2), by Hellinger's distance. Raises
    InputError unless 1/2 < success < 1.
    """
    return float(exact_budget(Decimal(reach), Decimal(cost), success))


@lru_cache(maxsize=1024)
def exact_budget(reach: Decimal, cost: Decimal, success: float) -> Decimal:
    """`posterior_budget` in 300 digits, for the probability as it is written."""
    check_success(success, 0.5)
    with localcontext(prec=DIGITS):
        p = decimal(success)
        bounds = [distance_needed(2 * p - 1)]
        for widest, dearest, budgets, successes in posterior_curves():
            at = int(np.searchsorted(successes, success))
            if at and reach <= widest and cost <= dearest:
                low, high = (
                    (decimal(budgets[place]), decimal(successes[place])) for place in (at - 1, at)
                )
                slope = (high[0] - low[0]) / (high[1] - low[1])
                bounds.append(low[0] + slope * (p - low[1]))
        return max(bounds)
