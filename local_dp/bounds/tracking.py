"""Changes tracked over time by a tree of intervals, each client telling of one change at one level: cohorts, and the variance of every wave."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import check_positive_epsilon
from local_dp.checks import check_whole

MAX_BRANCHES = 16
MAX_WAVES = 1024


def event_odds(epsilon: float, intervals: int) -> tuple[float, float]:
    """p and q of `change-tracking`: optimised unary encoding, or a plain bit for a single interval."""
    check_positive_epsilon(epsilon)
    q = 1 / (math.exp(epsilon) + 1)
    return (1 - q if intervals == 1 else 0.5), q


def events_variance(odds: tuple[float, float], intervals: int, share: float) -> float:
    """n times the variance of the estimated share of changes in so many intervals, together `share` of all clients, from whole reports of `change-tracking`.

    (m q (1 - q) + S (p (1 - p) - q (1 - q))) / (p - q)^2 + S (1 - S): given a life the bits are independent, and one of them at most is of the change.
    """
    p, q = odds
    return (intervals * q * (1 - q) + share * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2 + share * (1 - share)


@dataclass(frozen=True)
class Tree:
    """Levels of intervals of 1, b, b^2, ... waves over T waves; the waves 1..t are a few intervals of each level."""

    waves: int
    branches: int

    def __post_init__(self) -> None:
        check_whole("waves", self.waves, 2, MAX_WAVES)
        check_whole("branches", self.branches, 2, max(2, self.waves))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The waves of an interval at each level: powers of b below T."""
        return tuple(self.branches**level for level in range(math.ceil(math.log(self.waves, self.branches) - 1e-9)))

    def parts(self, wave: int) -> tuple[range, ...]:
        """The numbers of the intervals at each level that together are the waves before `wave`, 0 <= wave <= T: largest first, and disjoint."""
        found, start = [], 0
        for width in reversed(self.widths):
            stop = start + (wave - start) // width * width
            found.append(range(start // width, stop // width))
            start = stop
        return tuple(reversed(found))

    def spreads(self, epsilon: float) -> Floats:
        """`events_variance` at each level and wave, shape (levels, T), where the change of every client falls on each wave as likely."""
        told = np.zeros((len(self.widths), self.waves))
        for wave in range(1, self.waves + 1):
            for level, (width, part) in enumerate(zip(self.widths, self.parts(wave), strict=True)):
                odds = event_odds(epsilon, -(-self.waves // width))
                told[level, wave - 1] = events_variance(odds, len(part), len(part) * width / self.waves) if part else 0.0
        return told

    def cohorts(self, epsilon: float) -> Floats:
        """The share of the clients of each level with the least mean variance, in proportion to the roots of what each adds: shape (levels,)."""
        roots = np.sqrt(self.spreads(epsilon).mean(axis=1))
        shares: Floats = roots / roots.sum()
        return shares

    def variances(self, epsilon: float, changes: int) -> Floats:
        """n times the variance of the share of yes after each wave, shape (T,): C^2 times the sum over levels of `spreads` by the level's share.

        Of C changes each has a C-th of the clients, and all are added. It is for clients who all change C times, at times as likely; fewer changes are less.
        """
        check_whole("changes", changes, 1, self.waves)
        variances: Floats = changes**2 * (self.spreads(epsilon) / self.cohorts(epsilon)[:, None]).sum(axis=0)
        return variances


def best_tree(epsilon: float, waves: int) -> Tree:
    """The tree of least mean variance over the waves."""
    trees = [Tree(waves, branches) for branches in range(2, min(MAX_BRANCHES, waves) + 1)]
    return min(trees, key=lambda tree: float(tree.variances(epsilon, 1).mean()))
