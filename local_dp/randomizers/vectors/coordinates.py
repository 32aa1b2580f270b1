"""Vectors behind a public coin: one coordinate, the signs of a few, or the nearest of a few random
directions."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.vectors.base import (
    COIN,
    UNIT,
    VectorCoin,
    normals_of,
    of_moment,
    of_moments,
    pieces_of,
    turns,
    words_of,
)
from local_dp.tallies import Estimate, Steadied, Tally, steadied


@dataclass(frozen=True, kw_only=True)
class CoordinateSigns(VectorCoin):
    """Reports the signs of a few coordinates of a vector in [-1, 1]^d: successive ones from a
    random one on, around the end."""

    ball = "cube"

    @property
    @abstractmethod
    def count(self) -> int:
        """b, how many."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """The size of a reported sign's value."""

    def _coordinates(self, coins: Words) -> Ints:
        """The coordinates, shape (n, b): the chance of each to be first is 1 / d up to 2^-32."""
        words, half = coins.astype(np.uint64), np.uint64(32)
        first = ((words >> half) * np.uint64(self.d) >> half).astype(np.int64)[:, None]
        return first if self.count == 1 else (first + np.arange(self.count)) % self.d

    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """For each coordinate the number of minus and of plus signs, shape (d, 2)."""
        bits = reports[:, None]
        if self.count > 1:
            bits = bits >> np.arange(self.count) & 1
        places = 2 * self._coordinates(coins) + bits
        return np.bincount(places.ravel(), minlength=2 * self.d).reshape(self.d, 2)

    def variance(self, values: Ints, law: Floats) -> Floats:
        """d / b times the sum of gain^2 - x_j^2 over the coordinates: d / b clients share one
        report of each."""
        norms = ((law @ self.truths(values)) ** 2).sum(axis=-1, keepdims=True)
        return np.asarray(self.d / self.count * (self.d * self.gain**2 - norms))

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased, shape (d,); 0 with infinite error
        where nobody was asked for it."""
        n, sizes = tally.answered, tally.counts.sum(axis=1)
        clients = np.maximum(sizes, 1)
        mean = self.gain * (tally.counts[:, 1] - tally.counts[:, 0]) / clients
        error = np.sqrt((self.gain**2 - np.minimum(mean**2, 1.0)) / clients)
        steady = steadied(mean, np.full(self.d, self.gain**2), (-self.gain, self.gain), clients)
        return Steadied(mean, np.where(sizes > 0, error, np.inf), n, steady=steady)


@dataclass(frozen=True, kw_only=True)
class RandomCoordinate(CoordinateSigns):
    """Reports the coordinate that the coin picks of a vector in [-1, 1]^d, by the one-bit mean.

    Privacy: the one-bit mean's whatever the coin. Utility: a coordinate has variance (C^2 - x_j^2)
    / n_j, n_j its clients, about n / d. Cost: 1 bit.
    """

    name = "random-coordinate"
    summary = "Reports one bit of a random coordinate of a vector"
    source = "Nguyen et al. 2016 (Harmony); Duchi, Jordan, Wainwright 2013"
    count = 1

    @cached_property
    def inner(self) -> OneBitMean:
        return OneBitMean(self.epsilon, word_bits=self.word_bits, steps=2 * self.steps)

    @property
    def gain(self) -> float:
        return self.inner.total / (self.inner.slope * self.inner.steps)

    def code_of(self, values: Ints, coins: Words) -> Ints:
        return values[np.arange(len(values)), self._coordinates(coins)[:, 0]] + self.steps


MAX_SIGNS = 12


@dataclass(frozen=True, kw_only=True)
class SampledSigns(CoordinateSigns):
    """Rounds b coordinates of a vector in [-1, 1]^d to random signs, by the coin, and reports all
    of them by 2^b-ary response.

    They are b successive ones from a random one on, around the end: each is among them with chance
    b / d. Privacy: k-ary response, k = 2^b, whatever the coin. Utility: unbiased; a coordinate has
    variance (1 / m^2 - x_j^2) / n_j, m = (E - 1) / (E + 2^b - 1), n_j its clients, about n b / d.
    With b = 1 that is `random-coordinate`; from epsilon 1.4 on the best b has less, 2.6 times less
    at 4, where b = 4. `signs` is b, at most d and 12; 0 picks the best. Cost: b bits; b / 4 words
    made of the coin.
    """

    name = "sampled-signs"
    summary = "Reports random signs of a few coordinates of a vector"
    source = (
        "sampled coordinates of Nguyen et al. 2016, k-ary response of Kairouz, Bonawitz, Ramage "
        "2016"
    )
    signs: int = 0

    @property
    def count(self) -> int:
        """b. Raises InputError."""
        check_whole("signs", self.signs, 0, min(MAX_SIGNS, self.domain.d))
        return self.signs or best_signs(self.nano, self.domain.d)

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=1 << self.count)

    def code_of(self, values: Ints, coins: Words) -> Ints:
        words = words_of(coins, -(-self.count // 4))
        shift = 17 - (2 * self.steps).bit_length()
        uniform = pieces_of(words, self.count) >> np.uint16(shift)
        coordinates = np.take_along_axis(values, self._coordinates(coins), axis=1)
        # uniform on 2 steps whole numbers: 1 with probability (1 + x) / 2
        codes: Ints = (uniform < coordinates + self.steps) @ (1 << np.arange(self.count))
        return codes

    @property
    def gain(self) -> float:
        """1 / m."""
        return self.inner.total / (self.inner.total - (1 << self.count) * self.inner.other)

    def average(self, tally: Tally) -> Floats:
        """The average value of all reports, each d / b times its signs: unbiased even if few
        clients report a coordinate; shape (d,)."""
        signs = tally.counts[:, 1] - tally.counts[:, 0]
        return self.gain * self.d / self.count * signs / tally.answered


def signs_moment(growth: float, count: int) -> float:
    """1 / (b m^2): by d, n times the variance of a coordinate that is 0; e^epsilon = `growth`, b =
    `count`."""
    gain: float = (growth + (1 << count) - 1) / (growth - 1)
    return gain**2 / count


@lru_cache(maxsize=1024)
def best_signs(nano: int, d: int) -> int:
    """The b of least variance, at most d."""
    growth = float(exp_epsilon(nano))
    return min(range(1, min(MAX_SIGNS, d) + 1), key=lambda count: signs_moment(growth, count))


MAX_DIRECTIONS = 32


@dataclass(frozen=True, kw_only=True)
class NearestDirection(VectorCoin):
    """Reports which of M public directions is nearest to the vector, by k-ary response, k = M. They
    are corners of a randomly turned simplex.

    A vector of norm r < 1 takes the opposite direction with probability (1 - r) / 2, by the coin.
    Directions are centred normal vectors with sum 0. The mean of the nearest one is a multiple of
    the vector's direction: unbiased up to 1e-5, since the coin's normals come from a table.
    Privacy: k-ary randomized response of the code, whatever the coin: exact, where PrivUnit's cap
    is a claim about real numbers. Utility: E||estimate - x||^2 of one report is `nearest_variance`,
    about d (1 - 1/M) ((E + M - 1) / ((E - 1) e_M))^2, e_M the mean largest of M normals. M = 2, the
    best up to epsilon .8, has (pi / 2) C^2 d; the best cap of PrivUnit has 10 % less at epsilon 1,
    16 % at 4. `directions` is M, 2 to 32; 0 picks the best. Cost: log2 M bits; M d / 4 words made
    of the coin.
    """

    name = "nearest-direction"
    summary = "Reports the public direction nearest to a vector"
    source = (
        "Isik, Chen, Ozgur, Weissman, No 2023 (randomly rotated simplex); Bhowmick et al. 2018 "
        "(PrivUnit)"
    )
    ball = "ball"
    directions: int = 0

    def check(self) -> None:
        if type(self.directions) is not int or not (
            self.directions == 0 or 2 <= self.directions <= MAX_DIRECTIONS
        ):
            raise InputError(
                f"there are {self.directions!r} directions; give a whole number from 2 to "
                f"{MAX_DIRECTIONS}, or 0 for the best"
            )
        super().check()

    @property
    def count(self) -> int:
        """M."""
        return self.directions or best_directions(self.nano)

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=max(2, self.count))

    def _directions(self, coins: Words) -> tuple[Ints, Words]:
        """The directions before they are centred, shape (n, M, d), and the word that decides
        signs."""
        count = self.count * self.d
        words = words_of(coins, -(-count // 4) + 1)
        return normals_of(words, count).reshape(-1, self.count, self.d), words[:, -1]

    def code_of(self, values: Ints, coins: Words) -> Ints:
        normals, word = self._directions(coins)
        rows = values.astype(np.float64)
        norms = np.sqrt((rows**2).sum(axis=1))
        rows *= turns(word >> np.uint64(64 - COIN), norms, self.steps)[:, None]
        # whole numbers below 2^53: exact in any order
        nearness = np.matmul(normals.astype(np.float64), rows[:, :, None])[:, :, 0]
        return np.asarray(nearness.argmax(axis=1))

    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """The sum of the reported directions, centred and times M, and of its squares' leading
        parts, shape (2, d)."""
        normals, _ = self._directions(coins)
        directions = normals[np.arange(len(normals)), reports].astype(np.int64) * self.count
        directions -= normals.sum(axis=1, dtype=np.int64)
        return np.stack([directions.sum(axis=0), (directions**2).sum(axis=0)])

    def variance(self, values: Ints, law: Floats) -> Floats:
        """By `nearest_variance` of a unit vector; for 0, of which no direction is nearest, the
        first one is taken."""
        growth, count, d = math.exp(self.epsilon), self.count, self.d
        nothing = _many_variance(growth, count, d)
        moments = np.where(values.any(axis=1), nearest_variance(growth, count, d) + 1, nothing)
        return of_moment(self, values, law, moments)

    @property
    def scale(self) -> float:
        """The factor from a reported direction, in the units of the tally, to its value."""
        follows = (self.inner.total - self.count * self.inner.other) / self.inner.total
        return 1 / (follows * largest_normal(self.count)[0] * self.count * UNIT)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased up to 1e-5, shape (d,)."""
        return of_moments(tally, self.scale)


@lru_cache(maxsize=MAX_DIRECTIONS)
def largest_normal(count: int) -> tuple[float, float]:
    """Mean and mean square of the largest of so many independent standard normals."""
    from scipy.special import ndtr

    # equal steps: the error of a sum over a smooth density is far below 1e-12
    x = np.linspace(-10.0, 10.0, 4001)
    density = ndtr(x) ** (count - 1) * np.exp(-(x**2) / 2)
    density /= density.sum()
    return float(density @ x), float(density @ x**2)


def nearest_variance(growth: float, count: int, d: int) -> float:
    """E||estimate - x||^2 of one report of a unit vector, with `count` directions; larger by 1 -
    ||x||^2 for a shorter vector, but not for 0.

    With probability p = (E - 1) / (E + M - 1) the direction follows the vector. Along it, it then
    has the mean e and the mean square s - 1/M of the largest of M centred normals; 1 - 1/M across
    it, and everywhere if it does not follow: (d (1 - 1/M) + p (s - 1)) / (p e)^2 - 1.
    """
    mean, square = largest_normal(count)
    follows = (growth - 1) / (growth + count - 1)
    return (d * (1 - 1 / count) + follows * (square - 1)) / (follows * mean) ** 2 - 1


def _many_variance(growth: float, count: int, d: int = 1) -> float:
    """That of d coordinates of very many, where no direction is nearest."""
    factor = (growth + count - 1) / ((growth - 1) * largest_normal(count)[0])
    return d * (1 - 1 / count) * factor**2


@lru_cache(maxsize=1024)
def best_directions(nano: int) -> int:
    """The M of least variance for many coordinates."""
    growth = float(exp_epsilon(nano))
    return min(range(2, MAX_DIRECTIONS + 1), key=lambda count: _many_variance(growth, count))
