"""Which of a few public random directions is nearest to a vector of the Euclidean ball, by k-ary randomized response."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.vectors.base import UNIT, VectorCoin, normals_of, of_moments, words_of
from local_dp.tallies import Estimate, Tally

MAX_DIRECTIONS = 32
_COIN = 20  # bits that decide the sign of a vector shorter than 1


@dataclass(frozen=True, kw_only=True)
class NearestDirection(VectorCoin):
    """Reports which of M public directions is nearest to the vector, by k-ary response, k = M. They are corners of a randomly turned simplex.

    A vector of norm r < 1 takes the opposite direction with probability (1 - r) / 2, by the coin. Directions are centred normal vectors with sum 0. The mean
    of the nearest one is a multiple of the vector's direction: unbiased up to 1e-5, since the coin's normals come from a table. Privacy: k-ary randomized
    response of the code, whatever the coin: exact, where PrivUnit's cap is a claim about real numbers. Utility: E||estimate - x||^2 of one report is
    `nearest_variance`, about d (1 - 1/M) ((E + M - 1) / ((E - 1) e_M))^2, e_M the mean largest of M normals. M = 2, the best up to epsilon .8, has (pi / 2)
    C^2 d; the best cap of PrivUnit has 10 % less at epsilon 1, 16 % at 4 (`bounds.means.best_privunit`). `directions` is M, 2 to 32; 0 picks the best. Cost:
    log2 M bits; M d / 4 words made of the coin.
    """

    name: ClassVar[str] = "nearest-direction"
    source: ClassVar[str] = "Isik, Chen, Ozgur, Weissman, No 2023 (randomly rotated simplex); Bhowmick et al. 2018 (PrivUnit)"
    ball = "ball"
    directions: int = 0

    def check(self) -> None:
        if type(self.directions) is not int or not (self.directions == 0 or 2 <= self.directions <= MAX_DIRECTIONS):
            raise InputError(f"there are {self.directions!r} directions; give a whole number from 2 to {MAX_DIRECTIONS}, or 0 for the best")
        super().check()

    @property
    def chosen(self) -> int:
        """M."""
        return self.directions or best_directions(self.nano)

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=max(2, self.chosen))

    def _directions(self, coins: Words) -> tuple[Ints, Words]:
        """The directions before they are centred, shape (n, M, d), and the word that decides signs."""
        count = self.chosen * self.d
        words = words_of(coins, -(-count // 4) + 1)
        return normals_of(words, count).reshape(-1, self.chosen, self.d), words[:, -1]

    def code_of(self, values: Ints, coins: Words) -> Ints:
        drawn, word = self._directions(coins)
        rows = values.astype(np.float64)
        norms = np.sqrt((rows**2).sum(axis=1))
        uniform = (word >> np.uint64(64 - _COIN)).astype(np.float64) * 2 + (1 - (1 << _COIN))  # odd numbers about 0
        turned = np.where(uniform * self.steps > norms * (1 << _COIN), -1.0, 1.0)
        nearness = np.matmul(drawn.astype(np.float64), (rows * turned[:, None])[:, :, None])[:, :, 0]  # whole numbers below 2^53: exact in any order
        return np.asarray(nearness.argmax(axis=1))

    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """The sum of the reported directions, centred and times M, and of its squares' leading parts, shape (2, d)."""
        drawn, _ = self._directions(coins)
        directions = drawn[np.arange(len(drawn)), reports].astype(np.int64) * self.chosen - drawn.sum(axis=1, dtype=np.int64)
        return np.stack([directions.sum(axis=0), (directions**2).sum(axis=0)])

    @property
    def scale(self) -> float:
        """The factor from a reported direction, in the units of the tally, to its value."""
        follows = (self.inner.total - self.chosen * self.inner.other) / self.inner.total
        return 1 / (follows * largest_normal(self.chosen)[0] * self.chosen * UNIT)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased up to 1e-5, shape (d,)."""
        return of_moments(tally, self.scale)


@lru_cache(maxsize=MAX_DIRECTIONS)
def largest_normal(count: int) -> tuple[float, float]:
    """Mean and mean square of the largest of so many independent standard normals."""
    from scipy.special import ndtr

    x = np.linspace(-10.0, 10.0, 4001)  # equal steps: the error of a sum over a smooth density is far below 1e-12
    density = ndtr(x) ** (count - 1) * np.exp(-(x**2) / 2)
    density /= density.sum()
    return float(density @ x), float(density @ x**2)


def nearest_variance(growth: float, count: int, d: int) -> float:
    """E||estimate - x||^2 of one report of a unit vector, with `count` directions; larger by 1 - ||x||^2 for a shorter vector, but not for 0.

    With probability p = (E - 1) / (E + M - 1) the direction follows the vector. Along it, it then has the mean e and the mean square s - 1/M of the largest
    of M centred normals; 1 - 1/M across it, and everywhere if it does not follow: (d (1 - 1/M) + p (s - 1)) / (p e)^2 - 1.
    """
    mean, square = largest_normal(count)
    follows = (growth - 1) / (growth + count - 1)
    return (d * (1 - 1 / count) + follows * (square - 1)) / (follows * mean) ** 2 - 1


@lru_cache(maxsize=1024)
def best_directions(nano: int) -> int:
    """The M of least variance for many coordinates."""
    growth = float(exp_epsilon(nano))
    return min(range(2, MAX_DIRECTIONS + 1), key=lambda count: (1 - 1 / count) * ((growth + count - 1) / ((growth - 1) * largest_normal(count)[0])) ** 2)
