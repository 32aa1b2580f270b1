"""The choosing mechanism as printed: private only above a number of records, below which it refuses."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np

from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import Law, Mechanism, R
from local_dp.curator.selection.exponential import ExponentialChoice, decay_of, reach_of
from local_dp.curator.selection.groups import Groups, powers
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, approximate


class Sized(Protocol):
    """A database whose number of records is public."""

    @property
    def size(self) -> int: ...


D = TypeVar("D", bound=Sized)


@dataclass(frozen=True)
class Goals:
    """The goal: an error of at most `alpha`, as a share of the records, except with probability `beta`."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha is {self.alpha}; give a share above 0 and at most 1")
        check_share("beta", self.beta)


@dataclass(frozen=True)
class PrintedChoice:
    """None if the best score plus Lap(4 / eps) is below alpha m / 2, otherwise a candidate of score q >= 1 with weight e^(eps q / 4).

    The candidates have score 1 or more. A replaced record makes at most `growth` of them new, removes at most `growth`, and moves a score by at most 1.
    Privacy: (eps, delta) ONLY from m = (16 / (alpha eps)) ln(16 growth / (alpha beta eps delta)) records on (`least`); m is public, and with fewer it
    refuses. Sampled in whole numbers: the Laplace distribution function in multiples of e^(-eps / 8), rounded up as in `ExponentialChoice`.
    Utility: within alpha m of the best except with probability beta; None is right where no score reaches alpha m. Cost: O(groups).
    Source: Beimel, Nissim, Stemmer 2013, Figure 8, Lemmas 4.4 and 4.5, with erratum E14: no candidate is None. `SparseChoice` works for any number of records.
    """

    epsilon: float
    delta: float
    goals: Goals
    growth: int = 1

    def __post_init__(self) -> None:
        check_whole("growth", self.growth, 1, 1 << 32)
        if self.loss.nano < 2:
            raise InputError(f"epsilon is {self.epsilon}; half of it must be at least 1e-9 nats")

    @property
    def loss(self) -> Approximate:
        """The cost of one choice."""
        return approximate(self.epsilon, self.delta)

    @property
    def least(self) -> int:
        """The least number of records with which it is private."""
        alpha, beta = self.goals.alpha, self.goals.beta
        return math.ceil(16 / (alpha * self.epsilon) * math.log(16 * self.growth / (alpha * beta * self.epsilon * self.delta)))

    def check(self, size: int) -> None:
        """Raises InputError if there are too few records for privacy."""
        if size < self.least:
            raise InputError(f"there are {size} records, and the printed choosing mechanism is private only from {self.least} on; give more records")

    def choose(self, groups: Groups[R], size: int, draws: Draws) -> R | None:
        """A candidate of these groups, from a database of `size` records, or None."""
        above, below = self._test(groups, size)
        return self._choice.choose(groups, draws) if draws.below(above + below) < above else None

    def law(self, groups: Groups[R], size: int) -> Law[R | None]:
        """The law of `choose`."""
        above, below = self._test(groups, size)
        law = self._choice.law(groups) if above else {}
        whole = sum(law.values()) or 1
        return {None: below * whole, **{candidate: above * weight for candidate, weight in law.items()}}

    @property
    def _choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.loss.nano // 2 / NANO)

    def _test(self, groups: Groups[R], size: int) -> tuple[int, int]:
        """Whole weights of an answer and of None: the Laplace distribution function at twice the best score's lead over alpha m / 2."""
        self.check(size)
        if not len(groups.scores):
            return 0, 1
        lead = 2 * int(groups.scores.max()) - math.ceil(Fraction(repr(self.goals.alpha)) * size)
        decay = decay_of(self.loss.nano, 4)  # e^(-eps / 8), for half a record
        reach = reach_of(decay, math.log(1 / self.delta))
        whole, tail = powers(decay, np.array([0, min(abs(lead), reach)]), reach)
        return (2 * whole - tail, tail) if lead >= 0 else (tail, 2 * whole - tail)


@dataclass(frozen=True)
class PrintedChoosing(Mechanism[D, R | None, Approximate]):
    """The choosing mechanism of any score, among the `candidates` of score 1 or more.

    Privacy: (eps, delta) of its choice, from `choice.least` records on.
    """

    candidates: Callable[[D], Groups[R]]
    choice: PrintedChoice

    @property
    def loss(self) -> Approximate:
        return self.choice.loss

    def release(self, database: D, draws: Draws) -> R | None:
        return self.choice.choose(self.candidates(database), database.size, draws)

    def law(self, database: D) -> Law[R | None]:
        return self.choice.law(self.candidates(database), database.size)
