"""The sparse exponential mechanism: a choice among the candidates that occur in the data, at a
price that does not depend on the size of the domain."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import D, Law, Mechanism, R, check_listed
from local_dp.curator.selection.exponential import (
    LISTED,
    ExponentialChoice,
    decay_of,
    gaps_below,
    ranked,
    reach_of,
)
from local_dp.curator.selection.groups import Groups, powers, sum_by
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, approximate, exp_epsilon

_CANDIDATES = 64 * math.log(2)  # nats: no database has more candidates


@dataclass(frozen=True)
class SparseChoice:
    """Chooses a candidate of whole score q with weight e^(eps q / 2), or None, no answer, with
    weight (growth / delta) e^(eps / 2).

    The candidates are those that occur in the database. No replaced record moves a score by more
    than 1. At most `growth` candidates of a database do not occur in its neighbour, each of score 1
    or less. Privacy: (eps, delta) if delta <= e^(eps / 2) - 1, at every number of records. The
    weight of a candidate of both databases, and the sum of all weights, move by a factor of at most
    e^(eps / 2) each: new candidates weigh at most delta of None's weight. Candidates of one
    database alone weigh no more. Sampled as `ExponentialChoice`. Utility: the best is missed by t
    with probability at most (others + (growth / delta) e^((1 - best + t) eps / 2)) e^(-eps t / 2).
    Cost: O(groups). Source: repairs the choosing mechanism of Beimel, Nissim, Stemmer 2013, Lemma
    4.4, which needs more than twice the records.
    """

    epsilon: float
    delta: float
    growth: int = 1

    def __post_init__(self) -> None:
        loss = approximate(self.epsilon, self.delta)
        check_whole("growth", self.growth, 1, 1 << 32)
        if (1 + Fraction(loss.atto, ATTO)) ** 2 > exp_epsilon(loss.nano):
            raise InputError(
                f"delta is {self.delta:g}; give at most e^(epsilon / 2) - 1, which is "
                f"{math.expm1(self.epsilon / 2):.4g}"
            )

    @property
    def loss(self) -> Approximate:
        return approximate(self.epsilon, self.delta)

    def choose(self, groups: Groups[R], draws: Draws) -> R | None:
        ranks, weights, none = self._weigh(groups)
        shares = map(mul, sum_by(groups.sizes, ranks, len(weights)), weights)
        rank = draws.among([none, *shares])
        return groups.pick(ranks == rank - 1, draws) if rank else None

    def share(self, groups: Groups[R], counts: Naturals) -> tuple[Fraction, Fraction]:
        """The probability of choosing one of `counts[g]` candidates of each group g, and that of no
        answer."""
        ranks, weights, none = self._weigh(groups)
        inside, every = (
            sum(map(mul, sum_by(sizes, ranks, len(weights)), weights))
            for sizes in (counts, groups.sizes)
        )
        return Fraction(inside, every + none), Fraction(none, every + none)

    def law(self, groups: Groups[R]) -> Law[R | None]:
        """The law of `choose`; a candidate may be in several groups. Raises InputError above 65,536
        candidates."""
        check_listed(f"{groups.total} candidates", groups.total, LISTED)
        ranks, weights, none = self._weigh(groups)
        law: dict[R | None, int] = {None: none}
        for group, candidate in groups.members():
            law[candidate] = law.get(candidate, 0) + weights[ranks[group]]
        return law

    @cached_property
    def decay(self) -> Fraction:
        """a: the factor on a candidate's probability for one point of score less, just above
        e^(-eps / 2)."""
        return decay_of(self.loss.nano)

    @cached_property
    def reach(self) -> int:
        return reach_of(self.decay, _CANDIDATES + math.log(self._odds))

    @cached_property
    def _odds(self) -> Fraction:
        """growth / delta: the weight of None, in candidates of score 1."""
        return Fraction(self.growth * ATTO, self.loss.atto)

    def _weigh(self, groups: Groups[R]) -> tuple[Ints, list[int], int]:
        """The rank of each group among the scores that occur, the best first; the weight of each
        rank; the weight of None."""
        # the last is the score of None
        scores = np.append(groups.scores.astype(np.int64, copy=False), 1)
        gaps, ranks = ranked(gaps_below(int(scores.max()), scores, self.reach), self.reach)
        weights = powers(self.decay, gaps, self.reach)
        return ranks[:-1], weights, math.ceil(weights[ranks[-1]] * self._odds)


@dataclass(frozen=True)
class SparseExponential(Mechanism[D, R | None, Approximate]):
    """The sparse exponential mechanism of any score, among the `candidates` that occur in the
    database.

    Privacy: (eps, delta) of its choice, if a replaced record moves scores and candidates by no more
    than `SparseChoice` allows.
    """

    summary = "Chooses a candidate that occurs in the database"
    candidates: Callable[[D], Groups[R]]
    choice: SparseChoice

    @property
    def loss(self) -> Approximate:
        return self.choice.loss

    def release(self, database: D, draws: Draws) -> R | None:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: D) -> Law[R | None]:
        return self.choice.law(self.candidates(database))


@dataclass(frozen=True)
class Goals:
    """The goal: an error of at most `alpha`, as a share of the records, except with probability
    `beta`."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha is {self.alpha}; give a share above 0 and at most 1")
        check_share("beta", self.beta)


@dataclass(frozen=True)
class PrintedChoice:
    """None if the best score plus Lap(4 / eps) is below alpha m / 2, otherwise a candidate of score
    q >= 1 with weight e^(eps q / 4).

    The candidates have score 1 or more. A replaced record makes at most `growth` of them new,
    removes at most `growth`, and moves a score by at most 1. Privacy: (eps, delta) ONLY from m =
    (16 / (alpha eps)) ln(16 growth / (alpha beta eps delta)) records on (`least`); m is public, and
    with fewer it refuses. Utility: within alpha m of the best except with probability beta; None is
    right where no score reaches alpha m. Cost: O(groups). Source: Beimel, Nissim, Stemmer 2013,
    Figure 8, Lemmas 4.4 and 4.5, with erratum E14: no candidate is None. `SparseChoice` works for
    any number of records.
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
        return approximate(self.epsilon, self.delta)

    @property
    def least(self) -> int:
        """The least number of records with which it is private."""
        alpha, beta = self.goals.alpha, self.goals.beta
        odds = 16 * self.growth / (alpha * beta * self.epsilon * self.delta)
        return math.ceil(16 / (alpha * self.epsilon) * math.log(odds))

    def check(self, size: int) -> None:
        """Raises InputError if there are too few records for privacy."""
        if size < self.least:
            raise InputError(
                f"there are {size} records, and the printed choosing mechanism is private only "
                f"from {self.least} on; give more records"
            )

    def choose(self, groups: Groups[R], size: int, draws: Draws) -> R | None:
        """A candidate of these groups, from a database of `size` records, or None."""
        above, below = self._test(groups, size)
        return self._choice.choose(groups, draws) if draws.below(above + below) < above else None

    def law(self, groups: Groups[R], size: int) -> Law[R | None]:
        above, below = self._test(groups, size)
        law = self._choice.law(groups) if above else {}
        whole = sum(law.values()) or 1
        return {
            None: below * whole,
            **{candidate: above * weight for candidate, weight in law.items()},
        }

    @property
    def _choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.loss.nano // 2 / NANO)

    def _test(self, groups: Groups[R], size: int) -> tuple[int, int]:
        """Whole weights of an answer and of None: the Laplace distribution function at twice the
        best score's lead over alpha m / 2."""
        self.check(size)
        if not len(groups.scores):
            return 0, 1
        lead = 2 * int(groups.scores.max()) - math.ceil(Fraction(repr(self.goals.alpha)) * size)
        decay = decay_of(self.loss.nano, 4)  # e^(-eps / 8), for half a record
        reach = reach_of(decay, math.log(1 / self.delta))
        whole, tail = powers(decay, np.array([0, min(abs(lead), reach)]), reach)
        return (2 * whole - tail, tail) if lead >= 0 else (tail, 2 * whole - tail)
