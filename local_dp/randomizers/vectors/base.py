"""Randomizers of a vector behind a public coin: the lattice, sums over reports, and the words,
signs and normals made from a coin."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Literal

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Vectors, vectors
from local_dp.randomizers.finite import in_blocks
from local_dp.randomizers.places import PerCoin
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally

UNIT = 1 << 12  # a normal coordinate of 1, in whole numbers
_QUANTILES = 1 << 16
_STEP, _FIRST, _SECOND = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def words_of(coins: Words, count: int) -> Words:
    """`count` words made of each 64-bit coin, shape (n, count): SplitMix64 from the coin on
    (Steele, Lea, Flood 2014)."""
    mixed = coins.astype(np.uint64)[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _STEP
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= factor
    mixed ^= mixed >> np.uint64(31)
    return mixed


def pieces_of(words: Words, count: int) -> Words:
    """The first `count` 16-bit pieces of each row, shape (n, count)."""
    return words.astype("<u8", copy=False).view("<u2")[:, :count]


def signs_of(words: Words, count: int) -> Ints:
    """The first `count` bits of each row as signs, +1 for 0, int8, shape (n, count)."""
    bits = np.unpackbits(
        words.astype("<u8", copy=False).view(np.uint8), axis=1, count=count, bitorder="little"
    )
    return 1 - 2 * bits.view(np.int8)


@cache
def normal_means() -> Floats:
    """The standard normal law in 2^16 equally likely parts: the mean of each, the difference of the
    density at its ends. Of variance 1 within 3e-6."""
    from scipy.special import ndtri

    ends = ndtri(0.5 + np.arange(_QUANTILES // 2) / _QUANTILES)
    density = np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi)
    upper: Floats = (density - np.append(density[1:], 0.0)) * _QUANTILES
    return np.concatenate([-upper[::-1], upper])


@cache
def quantiles() -> Ints:
    """`normal_means` in whole numbers of 1 / UNIT, int16. None lies within 1e-5 of where rounding
    changes, so every machine has the same table."""
    return np.rint(normal_means() * UNIT).astype(np.int16)


def normals_of(words: Words, count: int) -> Ints:
    """The first `count` pieces of each row as normal coordinates in units of 1 / UNIT, int16, shape
    (n, count)."""
    return quantiles().take(pieces_of(words, count))


COIN = 20  # bits that decide the sign of a vector shorter than 1


def turns(numbers: Words, norms: Floats, steps: int) -> Floats:
    """-1 with probability (1 - norm / steps) / 2, else 1, by whole numbers of `COIN` bits."""
    uniform = numbers.astype(np.float64) * 2 + (1 - (1 << COIN))  # odd numbers about 0
    return np.where(uniform * steps > norms * (1 << COIN), -1.0, 1.0)


def of_moments(tally: Tally, scale: float) -> Estimate:
    """The mean of what reports stand for, `scale` times them, from the sums of coordinates and of
    their squares, shape (2, d)."""
    n = tally.answered
    mean, square = tally.counts[0] / n, tally.counts[1] / n
    return Estimate(scale * mean, scale * np.sqrt(np.maximum(square - mean**2, 0.0) / n), n)


def of_moment(randomizer: Randomizer, values: Ints, law: Floats, moments: Floats) -> Floats:
    """n times the variance of all coordinates together, from E||estimate||^2 of one report of each
    value."""
    norms = ((law @ randomizer.truths(values)) ** 2).sum(axis=-1, keepdims=True)
    return np.asarray((law @ moments)[..., None] - norms)


BLOCK = 1 << 10  # clients at a time: what their coins are made into stays in cache


@dataclass(frozen=True, kw_only=True)
class VectorCoin(PerCoin):
    """A vector on a lattice of 2 `steps` steps a coordinate: its code under the client's public
    coin goes through a small channel.

    A subclass gives the body `ball`, the channel `inner`, the codes `code_of` and the whole numbers
    `added_of` that the tally adds up.
    """

    ball: ClassVar[Literal["cube", "ball"]]
    d: int = 4
    steps: int = 1 << 10

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"d": size.bit_length() - 1, "steps": 1}

    @cached_property
    def domain(self) -> Vectors:
        return vectors(self.ball, self.d, self.steps)

    @abstractmethod
    def code_of(self, values: Ints, coins: Words) -> Ints:
        """The codes of rows of shape (n, d) under n coins, shape (n,)."""

    @abstractmethod
    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """The sum over n reports, in whole numbers, of the shape of the tally."""

    def encode(self, values: Ints, coins: Words) -> Ints:
        return in_blocks(self.code_of, values.astype(np.int64, copy=False), coins, block=BLOCK)

    def tally(self, reports: Words, cells: Words) -> Tally:
        blocks = (slice(first, first + BLOCK) for first in range(0, max(len(reports), 1), BLOCK))
        sums = [self.added_of(reports[some].astype(np.int64), cells[some]) for some in blocks]
        return Tally(np.sum(sums, axis=0, dtype=np.int64), len(reports))
