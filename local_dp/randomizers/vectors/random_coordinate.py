"""One coordinate of a vector, picked by a public coin, in one bit."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.vectors.base import VectorCoin
from local_dp.randomizers.vectors.sampled_signs import of_signs
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class RandomCoordinate(VectorCoin):
    """Of a vector in [-1, 1]^d, tells the coordinate that the coin picks, by the one-bit mean.

    Privacy: the one-bit mean's whatever the coin. Utility: a coordinate has variance (C^2 - x_j^2) / n_j, n_j the number asked for it, about n / d: 2 / pi
    of `duchi-vector`'s for many coordinates, and less than it from d = 2 on. Cost: 1 bit.
    """

    name: ClassVar[str] = "random-coordinate"
    source: ClassVar[str] = "Nguyen et al. 2016 (Harmony); Duchi, Jordan, Wainwright 2013"
    ball = "cube"

    @cached_property
    def inner(self) -> OneBitMean:
        return OneBitMean(self.epsilon, word_bits=self.word_bits, steps=2 * self.steps)

    def _picked(self, coins: Words) -> Ints:
        """The coordinate: its chance is 1 / d up to 2^-32."""
        return ((coins.astype(np.uint64) >> np.uint64(32)) * np.uint64(self.d) >> np.uint64(32)).astype(np.int64)

    def code_of(self, values: Ints, coins: Words) -> Ints:
        return values[np.arange(len(values)), self._picked(coins)] + self.steps

    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """For each coordinate the number of zeros and of ones, shape (d, 2)."""
        return np.bincount(2 * self._picked(coins) + reports, minlength=2 * self.d).reshape(self.d, 2)

    def empty(self) -> Tally:
        return Tally(np.zeros((self.d, 2), dtype=np.int64), 0)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased, shape (d,); 0 with infinite error where nobody was asked for it."""
        return of_signs(tally, self.inner.total / (self.inner.slope * self.inner.steps))
