"""The sparse exponential mechanism: a choice among the candidates that occur in the data, at a price that does not depend on how many there could be."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import TypeVar

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.selection.exponential import LISTED, decay_of, gaps_below, ranked, reach_of
from local_dp.curator.selection.groups import Groups, powers, sum_by
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, approximate, exp_epsilon

D = TypeVar("D")
R = TypeVar("R")
_CANDIDATES = 64 * math.log(2)  # nats: more candidates than that occur in no database


@dataclass(frozen=True)
class SparseChoice:
    """A candidate of whole score q with weight e^(eps q / 2), or None, no answer, with weight (growth / delta) e^(eps / 2).

    The candidates are those that occur in the database: no replaced record moves a score by more than 1, and of the candidates of a database at most `growth`
    do not occur in its neighbour, each of these of score 1 or less. None need occur; some may always be there.
    Privacy: (eps, delta) if delta <= e^(eps / 2) - 1, at every number of records. A candidate that both have: its weight and the sum of all weights move by
    e^(eps / 2) at most each, since what is new weighs at most delta of the weight of None. Those that only one has weigh at most delta of it together.
    Sampled in whole numbers: weights as in `ExponentialChoice`; scores more than `reach` below the best count as `reach` below it, and None's with them.
    Utility: the best is missed by t with probability at most (others + (growth / delta) e^((1 - best + t) eps / 2)) e^(-eps t / 2).
    Cost: O(groups). Source: repairs the choosing mechanism of Beimel, Nissim, Stemmer 2013, Lemma 4.4, which asks for twice the records and more.
    """

    epsilon: float
    delta: float
    growth: int = 1

    def __post_init__(self) -> None:
        loss = approximate(self.epsilon, self.delta)
        check_whole("growth", self.growth, 1, 1 << 32)
        if (1 + Fraction(loss.atto, ATTO)) ** 2 > exp_epsilon(loss.nano):
            raise InputError(f"delta is {self.delta:g}; give at most e^(epsilon / 2) - 1, which is {math.expm1(self.epsilon / 2):.4g}")

    @property
    def loss(self) -> Approximate:
        """What one choice costs."""
        return approximate(self.epsilon, self.delta)

    def choose(self, groups: Groups[R], draws: Draws) -> R | None:
        """The candidate chosen among these, or None."""
        ranks, weights, none = self._weighed(groups)
        shares = [size * weight for size, weight in zip(sum_by(groups.sizes, ranks, len(weights)), weights, strict=True)]
        drawn = draws.among([none, *shares])
        return groups.pick(ranks == drawn - 1, draws) if drawn else None

    def share(self, groups: Groups[R], counts: Naturals) -> tuple[Fraction, Fraction]:
        """The probability that the candidate chosen is one of `counts[g]` of each group g; and that of no answer."""
        ranks, weights, none = self._weighed(groups)
        chosen, every = (sum(map(mul, sum_by(sizes, ranks, len(weights)), weights)) for sizes in (counts, groups.sizes))
        return Fraction(chosen, every + none), Fraction(none, every + none)

    def law(self, groups: Groups[R]) -> Law[R | None]:
        """The law of `choose`; a candidate may be in several groups. Raises InputError above 65,536 candidates."""
        if groups.total > LISTED:
            raise InputError(f"there are {groups.total} candidates; a law is listed up to {LISTED}")
        ranks, weights, none = self._weighed(groups)
        found: dict[R | None, int] = {None: none}
        for group, candidate in groups.members():
            found[candidate] = found.get(candidate, 0) + weights[ranks[group]]
        return found

    @cached_property
    def decay(self) -> Fraction:
        """a: how much less likely one point of score less makes a candidate, just above e^(-eps / 2)."""
        return decay_of(self.loss.nano)

    @cached_property
    def reach(self) -> int:
        """How far below the best a score may lie before it counts no lower."""
        return reach_of(self.decay, _CANDIDATES + math.log(self._odds))

    @cached_property
    def _odds(self) -> Fraction:
        """growth / delta: what None weighs, in candidates of score 1."""
        return Fraction(self.growth * ATTO, self.loss.atto)

    def _weighed(self, groups: Groups[R]) -> tuple[Ints, list[int], int]:
        """The rank of each group among the scores that occur, the best first; the weight of each rank; the weight of None."""
        scores = np.append(groups.scores.astype(np.int64, copy=False), 1)  # the last stands for None: in multiples of a candidate of score 1
        gaps, ranks = ranked(gaps_below(int(scores.max()), scores, self.reach), self.reach)
        weights = powers(self.decay, gaps, self.reach)
        return ranks[:-1], weights, math.ceil(weights[ranks[-1]] * self._odds)


@dataclass(frozen=True)
class SparseExponential(Mechanism[D, R | None, Approximate]):
    """The sparse exponential mechanism of any score: its choice among the `candidates` that occur in the database.

    Privacy: that of its choice, (eps, delta), where a replaced record moves scores and candidates by no more than the choice says.
    """

    candidates: Callable[[D], Groups[R]]
    choice: SparseChoice

    @property
    def loss(self) -> Approximate:
        return self.choice.loss

    def release(self, database: D, draws: Draws) -> R | None:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: D) -> Law[R | None]:
        return self.choice.law(self.candidates(database))
