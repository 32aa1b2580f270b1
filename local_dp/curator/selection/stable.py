"""Stable choice: the best candidate if it is far enough ahead of the second best, at a price that does not depend on how many there are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from local_dp.curator.mechanism import Law, WithinDelta
from local_dp.curator.selection.acceptance import UNIT, best_acceptance
from local_dp.draws import Draws
from local_dp.errors import InputError

D = TypeVar("D")
R = TypeVar("R")


@dataclass(frozen=True)
class Lead(Generic[R]):
    """The best candidate and how far its score lies above the best of all others: a tie, broken by a fixed order, is 0; None where there is no other."""

    best: R
    gap: int | None

    def __post_init__(self) -> None:
        if self.gap is not None and (type(self.gap) is not int or self.gap < 0):
            raise InputError(f"the gap is {self.gap!r}; scores are whole numbers, and the best is no lower than another")


@dataclass(frozen=True)
class StableChoice(WithinDelta[D, R | None]):
    """The best candidate with the probability `best_acceptance` of its lead, otherwise None: no answer. Nothing of the second best is told.

    `lead` finds the best by scores that no replaced record moves by more than 1.
    Privacy: (eps, delta), tight. Same best on both neighbours: the gap moves by at most 2, and the law of an answer is (eps, delta)-private in steps of 2.
    Another best: both gaps are at most 2, so either is told with probability at most delta. Utility: certain from a gap of about 2 + (2 / eps) ln(1 / delta)
    twice over; `enough_gap`. Cost: one look at the leader.
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
        told = self.answered(lead.gap)
        return {lead.best: told, None: UNIT - told}

    def answered(self, gap: int | None) -> int:
        """The probability of an answer, in units of 2^-64."""
        accepted = best_acceptance(self.loss)
        return UNIT if gap is None else accepted[min(gap, len(accepted) - 1)]
