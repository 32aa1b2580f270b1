"""Stable choice: the best candidate if it leads the second best by enough, at a price that does not depend on the number of candidates.

A replaced record moves the gap by up to 2, since the best loses one and the second best gains one. The printed test assumes 1 (Beimel, Nissim, Stemmer,
Proposition 2.26; erratum E1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic

from local_dp.curator.laws import D
from local_dp.curator.mechanism import Law, R, WithinDelta
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, exp_epsilon

UNIT = 1 << 64
"""Probabilities of an answer are multiples of 2^-64."""
_MOST = 1 << 20  # gaps


@lru_cache(maxsize=64)
def best_acceptance(loss: Approximate) -> tuple[int, ...]:
    """Pr[answer | gap g] in units of 2^-64, for g = 0, 1, ...; it is 1 from the last listed gap on.

    Privacy: (eps, delta). a[0] = a[1] = a[2] = delta, a[g + 2] = min(e^eps a[g] + delta, 1 - e^-eps (1 - a[g] - delta)), rounded down. No (eps, delta)-private
    test of the gap answers more often at any gap. Source: Desfontaines, Voss, Gipson, Mandayam 2022, in steps of 2.
    Raises InputError where even a gap of 2^20 is not always answered.
    """
    growth, spare = exp_epsilon(loss.nano), Fraction(loss.atto * UNIT, 10**18)
    numerator, denominator = growth.numerator, growth.denominator
    likely, accepted = math.floor(spare), [0]
    while likely < UNIT:
        if len(accepted) > _MOST:
            raise InputError(f"{loss} would answer for certain only at gaps beyond {_MOST}; give a larger epsilon or delta")
        accepted += [likely, likely]
        likelier = math.floor(Fraction(likely * numerator, denominator) + spare)
        likely = min(UNIT, likelier, UNIT - math.ceil(max(Fraction(0), (UNIT - likely - spare) * denominator / numerator)))
    return (accepted[1], *accepted[1:], UNIT) if len(accepted) > 1 else (UNIT,)


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


@dataclass(frozen=True)
class Lead(Generic[R]):
    """The best candidate and the gap between its score and the second best: 0 for a tie, which a fixed order breaks; None where there is no other."""

    best: R
    gap: int | None

    def __post_init__(self) -> None:
        if self.gap is not None and (type(self.gap) is not int or self.gap < 0):
            raise InputError(f"the gap is {self.gap!r}; scores are whole numbers, so give 0 or more")


@dataclass(frozen=True)
class StableChoice(WithinDelta[D, R | None]):
    """The best candidate with probability `best_acceptance` of its lead, otherwise None: no answer. The second best is not revealed.

    `lead` finds the best by scores that no replaced record moves by more than 1.
    Privacy: (eps, delta), tight. With the same best on both neighbours the gap moves by at most 2, and the acceptance is private in steps of 2. With another
    best both gaps are at most 2, so either is released with probability at most delta.
    Utility: certain from a gap of about 2 + (4 / eps) ln(1 / delta) on; `enough_gap`. Cost: one look at the leader.
    Source: A_dist of Beimel, Nissim, Stemmer 2013, Proposition 2.26, repaired (erratum E1) and sharpened (Desfontaines et al. 2022).
    """

    lead: Callable[[D], Lead[R]]
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        best_acceptance(self.loss)

    def release(self, database: D, draws: Draws) -> R | None:
        lead = self.lead(database)
        return lead.best if draws.below(UNIT) < self.answered(lead.gap) else None

    def law(self, database: D) -> Law[R | None]:
        lead = self.lead(database)
        answered = self.answered(lead.gap)
        return {lead.best: answered, None: UNIT - answered}

    def answered(self, gap: int | None) -> int:
        """The probability of an answer, in units of 2^-64."""
        accepted = best_acceptance(self.loss)
        return UNIT if gap is None else accepted[min(gap, len(accepted) - 1)]
