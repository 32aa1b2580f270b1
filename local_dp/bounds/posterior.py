"""How much replies must tell to decide between two hypotheses, by checked tables
(docs/theory/posterior.md)."""

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_success
from local_dp.errors import InputError


def distance_needed(advantage: float) -> float:
    """1 - sqrt(1 - a^2): the squared Hellinger distance that two laws at total variation a have at
    least."""
    if not 0 <= advantage <= 1:
        raise InputError(f"a total variation distance is {advantage}; give a number from 0 to 1")
    return advantage**2 / (1 + math.sqrt(1 - advantage**2))


CURVES = Path(__file__).with_name("posterior.json")


@lru_cache
def posterior_curves() -> tuple[tuple[float, float, Floats, Floats], ...]:
    """(reach, cost, budgets, successes) of each table: the corners of a concave curve."""
    return tuple(
        (each["reach"], each["cost"], *map(np.array, zip(*each["corners"], strict=True)))
        for each in json.loads(CURVES.read_text(encoding="utf-8"))
    )


@lru_cache(maxsize=1024)
def posterior_budget(reach: float, cost: float, success: float) -> float:
    """Proven: B, so that with a mean sum of squares below B nobody names one of two equally likely
    hypotheses with probability `success`.

    A reply w has likelihoods (1 + u) mu and (1 - u) mu under them, |u| <= reach; its square is the
    sum of mu u^2, at most `cost`, and squares of all replies add up. The budget may differ from
    case to case, by a public coin. The best of the tables for a reach and cost as large (1.430
    at .3005, .0695 and .9); in any case 1 - sqrt(1 - (2p - 1)^2), by Hellinger's distance. Raises
    InputError unless 1/2 < success < 1.
    """
    check_success(success, 0.5)
    bounds = [
        float(np.interp(success, successes, budgets))
        for widest, dearest, budgets, successes in posterior_curves()
        if reach <= widest and cost <= dearest
    ]
    return max([distance_needed(2 * success - 1), *bounds])
