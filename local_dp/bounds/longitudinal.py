"""Values that change: tracked with one budget, or asked in waves."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import frequency_variance
from local_dp.bounds.response import check_positive_epsilon
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_whole
from local_dp.loss import split_epsilon
from local_dp.randomizers.frequencies.base import support_variance
from local_dp.randomizers.repeated.memoised import (
    PERMANENT,
    MemoisedGRR,
    MemoisedRAPPOR,
    Odds,
    memoised_variance,
)

MAX_BRANCHES = 16
MAX_WAVES = 1024


def events_variance(odds: tuple[float, float], intervals: int, share: float) -> float:
    """n times the variance of the estimated share of changes in so many intervals, together `share`
    of all clients, from whole reports of `change-tracking`.

    (m q (1 - q) + S (p (1 - p) - q (1 - q))) / (p - q)^2 + S (1 - S): given a life the bits are
    independent, and one of them at most is of the change.
    """
    p, q = odds
    noise = q * (1 - q)
    return (intervals * q * (1 - q) + share * (p * (1 - p) - noise)) / (p - q) ** 2 + share * (
        1 - share
    )


@dataclass(frozen=True)
class Tree:
    """Levels of intervals of 1, b, b^2, ... waves over T waves; the waves 1..t are a few intervals
    of each level."""

    waves: int
    branches: int

    def __post_init__(self) -> None:
        check_whole("waves", self.waves, 2, MAX_WAVES)
        check_whole("branches", self.branches, 2, max(2, self.waves))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The waves of an interval at each level: powers of b below T."""
        levels = math.ceil(math.log(self.waves, self.branches) - 1e-9)
        return tuple(self.branches**level for level in range(levels))

    def parts(self, wave: int) -> tuple[range, ...]:
        """The numbers of the intervals at each level that together are the waves before `wave`, 0
        <= wave <= T: largest first, and disjoint."""
        ranges, start = [], 0
        for width in reversed(self.widths):
            stop = start + (wave - start) // width * width
            ranges.append(range(start // width, stop // width))
            start = stop
        return tuple(reversed(ranges))

    def spreads(self, epsilon: float) -> Floats:
        """`events_variance` at each level and wave, shape (levels, T), where the change of every
        client falls on each wave as likely."""
        check_positive_epsilon(epsilon)
        odds = 0.5, 1 / (math.exp(epsilon) + 1)  # of optimised unary encoding
        variances = np.zeros((len(self.widths), self.waves))
        for wave in range(1, self.waves + 1):
            for level, (width, part) in enumerate(zip(self.widths, self.parts(wave), strict=True)):
                share = len(part) * width / self.waves
                variances[level, wave - 1] = events_variance(odds, len(part), share)
        return variances

    def cohorts(self, epsilon: float) -> Floats:
        """The share of the clients of each level with the least mean variance, in proportion to the
        roots of what each adds: shape (levels,)."""
        roots = np.sqrt(self.spreads(epsilon).mean(axis=1))
        return np.asarray(roots / roots.sum())

    def variances(self, epsilon: float, changes: int) -> Floats:
        """n times the variance of the share of yes after each wave, shape (T,): C^2 times the sum
        over levels of `spreads` by the level's share.

        Of C changes each has a C-th of the clients, and all are added. It is for clients who all
        change C times, at times as likely; fewer changes are less.
        """
        check_whole("changes", changes, 1, self.waves)
        terms = self.spreads(epsilon)
        return np.asarray(changes**2 * (terms / self.cohorts(epsilon)[:, None]).sum(axis=0))


def best_tree(epsilon: float, waves: int) -> Tree:
    """The tree of least mean variance over the waves."""
    trees = [Tree(waves, branches) for branches in range(2, min(MAX_BRANCHES, waves) + 1)]
    return min(trees, key=lambda tree: float(tree.variances(epsilon, 1).mean()))


MAX_ROUNDS = 64  # of which the loss is enumerated


def rappor_variance(odds: tuple[Odds, Odds], share: float) -> float:
    """n times the variance of a frequency in one round of memoised RAPPOR, of a symbol that `share`
    of the clients hold.

    l (1 - l) / (p - q)^2, l = q + f (p - q), for the chances p = q2 + p1 (p2 - q2) and q = q2 + q1
    (p2 - q2) of a 1 after both steps. At q1 = q2 = 0 and p1 = p2 = 1 it is the variance f (1 - f)
    of sampling alone. Source: Arcolezi et al. 2021, equation 8, at its exact law.
    """
    (p1, q1), (p2, q2) = odds
    return support_variance(q2 + p1 * (p2 - q2), q2 + q1 * (p2 - q2), share)


def changing_loss(odds: tuple[Odds, Odds], rounds: int) -> float:
    """What `rounds` reports of two codes lose at most, in nats, between any two sequences of codes:
    exact, over all sequences and all reports.

    A lasting answer is right with probability p1, and each report is it with probability p2. A
    sequence that gives i of a zeros and j of b ones to code 0 has probability F(i, j) F'(a - i, b -
    j), F(i, j) = p1 p2^i q2^j + q1 q2^i p2^j, F' with p1 and q1 exchanged. It grows without bound.
    """
    check_whole("rounds", rounds, 1, MAX_ROUNDS)
    (p1, q1), (p2, q2) = odds

    def likelihood(right: float, wrong: float, zeros: int, ones: int) -> float:
        first = right * p2**zeros * q2**ones
        second = wrong * q2**zeros * p2**ones
        return first + second

    worst = 0.0
    for zeros in range(rounds + 1):
        ones = rounds - zeros
        chances = [
            likelihood(p1, q1, i, j) * likelihood(q1, p1, zeros - i, ones - j)
            for i in range(zeros + 1)
            for j in range(ones + 1)
        ]
        worst = max(worst, math.log(max(chances) / min(chances)))
    return worst


@dataclass(frozen=True)
class Way:
    """One way to repeat a survey within a budget for life: n times the variance of one share, at
    equal shares, on average and in the worst wave."""

    name: str
    variance: float
    worst: float


def ways(
    epsilon: float, waves: int, k: int, changes: int | None = None, first: float = 1.0
) -> tuple[Way, ...]:
    """Every way to estimate the shares of k symbols in each of T waves within `epsilon` for life,
    the one of least variance first.

    * fresh: a new report in every wave, of epsilon / T;
    * split: each client answers in one wave alone, of epsilon, so each wave has n / T of them;
    * memoised: one lasting answer, of which one report reveals `first` times epsilon; only where
      values never change (`changes` 0);
    * tracked: each client reports the time of one of its at most `changes` changes falls, in a
      level of the tree of intervals; only of yes and no (k = 2).

    All but memoised lose at most epsilon whatever values do; memoised, because the client is asked
    of its first value.
    """
    check_whole("waves", waves, 2, MAX_WAVES)
    whole = frequency_variance(epsilon, k, 1 / k)
    alike = {
        "split": waves * whole,
        "fresh": frequency_variance(split_epsilon(epsilon, waves), k, 1 / k),
    }
    if changes == 0:
        alike["memoised"] = whole if first == 1.0 else lasting_answer(epsilon, k, first)[0]
    options = [Way(name, variance, variance) for name, variance in alike.items()]
    if changes and k == 2:
        variances = best_tree(epsilon, waves).variances(epsilon, min(changes, waves))
        options.append(Way("tracked", float(variances.mean()), float(variances.max())))
    return tuple(sorted(options, key=lambda way: way.variance))


def lasting_answer(
    epsilon: float, k: int, first: float
) -> tuple[float, MemoisedGRR | MemoisedRAPPOR]:
    """The memoised response of two steps of least variance in one wave at equal shares, for k
    symbols, and n times that variance."""
    direct = MemoisedGRR(epsilon, k=k, first=first)
    variance = memoised_variance(direct.odds, 1 / k)
    options: list[tuple[float, MemoisedGRR | MemoisedRAPPOR]] = [(variance, direct)]
    for permanent in PERMANENT:
        unary = MemoisedRAPPOR(epsilon, k=k, first=first, permanent=permanent)
        options.append((rappor_variance(unary.odds, 1 / k), unary))
    return min(options, key=lambda each: each[0])


def longitudinal_clients(variance: float, waves: int, k: int, tolerance: float, beta: float) -> int:
    """Clients for which the shares of k symbols in each wave are within `tolerance`, all together,
    with probability 1 - beta, by the union bound."""
    count = waves * (1 if k == 2 else k)
    return max(waves, math.ceil(variance * (normal_quantile(beta / (2 * count)) / tolerance) ** 2))
