"""How likely a stable choice is to answer, by the gap between the best candidate and the second best: the printed test, the repaired one, the best one.

A replacement of one record moves the gap by up to 2 (the best loses one, the second gains one), not by 1 as printed (Beimel, Nissim, Stemmer, Proposition
2.26; erratum E1).
"""

import math
from fractions import Fraction
from functools import lru_cache

from local_dp.errors import InputError
from local_dp.loss import Approximate, exp_epsilon

UNIT = 1 << 64
"""Probabilities of answering are whole numbers of 2^-64."""
_MOST = 1 << 20  # gaps


@lru_cache(maxsize=64)
def best_acceptance(loss: Approximate) -> tuple[int, ...]:
    """Pr[answer | gap g] in units of 2^-64, g = 0, 1, ...; it is 1 at the last gap listed and beyond.

    Privacy: (eps, delta). a[0] = a[1] = a[2] = delta, a[g + 2] = min(e^eps a[g] + delta, 1 - e^-eps (1 - a[g] - delta)), rounded down: no test of the gap
    that is (eps, delta)-private answers more often at any gap. Source: Desfontaines, Voss, Gipson, Mandayam 2022, in steps of 2.
    Raises InputError where the gap that is always answered is beyond 2^20: epsilon and delta are too small.
    """
    growth, spare = exp_epsilon(loss.nano), Fraction(loss.atto * UNIT, 10**18)
    numerator, denominator = growth.numerator, growth.denominator
    held, found = math.floor(spare), [0]
    while held < UNIT:
        if len(found) > _MOST:
            raise InputError(f"{loss} would answer for certain only at gaps beyond {_MOST}; give a larger epsilon or delta")
        found += [held, held]
        likelier = math.floor(Fraction(held * numerator, denominator) + spare)
        held = min(UNIT, likelier, UNIT - math.ceil(max(Fraction(0), (UNIT - held - spare) * denominator / numerator)))
    return (found[1], *found[1:], UNIT) if len(found) > 1 else (UNIT,)


def laplace_acceptance(gap: int, loss: Approximate) -> float:
    """The repaired test: gap + Lap(2 / eps) >= 2 + (2 / eps) ln(1 / (2 delta)). Privacy: (eps, delta), exactly."""
    return _tail(2 + 2 / loss.epsilon * math.log(1 / (2 * loss.delta)) - gap, 2 / loss.epsilon)


def printed_acceptance(gap: int, loss: Approximate) -> float:
    """The test as printed: gap + Lap(1 / eps) >= (1 / eps) ln(1 / delta). NOT (eps, delta)-private: it is (2 eps, delta e^(2 eps) / 2), exactly."""
    return _tail(1 / loss.epsilon * math.log(1 / loss.delta) - gap, 1 / loss.epsilon)


def _tail(threshold: float, scale: float) -> float:
    """Pr[Lap(scale) >= threshold]."""
    beyond = math.exp(-abs(threshold) / scale) / 2
    return beyond if threshold >= 0 else 1 - beyond


def enough_gap(loss: Approximate, success: float) -> int:
    """The least gap at which the best test answers with this probability."""
    return next(gap for gap, share in enumerate(best_acceptance(loss)) if share >= success * UNIT)
