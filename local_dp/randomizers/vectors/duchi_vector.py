"""The mechanism of Duchi, Jordan and Wainwright for vectors in the cube, one bit a client."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.vectors.base import VectorCoin
from local_dp.randomizers.vectors.directions import pieces_of, signs_of, words_of
from local_dp.tallies import Estimate, Tally


def mean_sign(d: int) -> float:
    """E[|sum of d fair signs|] / d: ceil(d/2) C(d, ceil(d/2)) / (d 2^(d - 1)), about sqrt(2 / (pi d))."""
    half = (d + 1) // 2
    return math.exp(math.log(half / d) + math.lgamma(d + 1) - math.lgamma(half + 1) - math.lgamma(d - half + 1) - (d - 1) * math.log(2))


@dataclass(frozen=True, kw_only=True)
class DuchiVector(VectorCoin):
    """Of a vector in [-1, 1]^d, rounded at random to a corner, tells whether a public random corner z or -z is on its side, by randomized response.

    The coin gives z and rounds the coordinates; where both are equally near it decides. Reported -z or z has the law of the published mechanism, which draws it
    from a half of all corners. Privacy: binary randomized response whatever the coin. Utility: unbiased; B z for the reported z, so every coordinate has
    variance B^2 - x_j^2 in one report, B = C / `mean_sign`(d): about (pi / 2) d C^2. Cost: 1 bit; d / 64 + d / 4 words made of the coin.
    """

    name: ClassVar[str] = "duchi-vector"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2018, Section 4.2.3 (l-infinity), with public coins"
    ball = "cube"

    def _fits(self, bits: int) -> bool:
        return BinaryRR(self.epsilon).word_bits <= bits

    @cached_property
    def inner(self) -> BinaryRR:
        return BinaryRR(self.epsilon, word_bits=self.word_bits)

    @property
    def reach(self) -> float:
        """B, the size of each coordinate of what one report stands for."""
        return self.inner.gain / mean_sign(self.d)

    @property
    def _sign_words(self) -> int:
        return self.d // 64 + 1  # a bit more than signs: the one that decides

    def code_of(self, values: Ints, coins: Words) -> Ints:
        words = words_of(coins, self._sign_words + -(-self.d // 4))
        bits = signs_of(words[:, : self._sign_words], self.d + 1)
        uniform = pieces_of(words[:, self._sign_words :], self.d) >> np.uint16(16 - (2 * self.steps).bit_length() + 1)
        corner = np.where(uniform < values + self.steps, np.int8(1), np.int8(-1))  # uniform on 2 steps whole numbers: 1 with probability (1 + x) / 2
        side = 2 * (corner * bits[:, : self.d]).sum(axis=1, dtype=np.int64) + bits[:, self.d]
        codes: Ints = (side < 0).astype(np.int64)
        return codes

    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """The sum of the reported corners."""
        signs = signs_of(words_of(coins, self._sign_words), self.d)
        added: Ints = (signs * (1 - 2 * reports.astype(np.int8))[:, None]).sum(axis=0, dtype=np.int64)
        return added

    def empty(self) -> Tally:
        return Tally(np.zeros(self.d, dtype=np.int64), 0)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean vector, in [-1, 1] a coordinate, unbiased, shape (d,)."""
        n = tally.answered
        return Estimate.between((-self.reach, self.reach), self.reach * tally.counts / n, n, least=-1.0)
