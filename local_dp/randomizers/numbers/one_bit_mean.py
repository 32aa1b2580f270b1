"""The one-bit mean: the first-order minimax randomizer of a bounded number."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, levels
from local_dp.randomizers.finite import FiniteChannel, too_narrow
from local_dp.randomizers.one_bit import flip_weight
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class OneBitMean(FiniteChannel):
    """Reports 1 with a probability linear in the value x in [0, 1]: Pr[1] = 1/2 + (2x - 1) / (2C).

    Values lie on a lattice of `steps` steps; the two extreme thresholds differ by a multiple of `steps`, so every mean on the lattice is estimated
    without any bias. Privacy: thresholds lie between those of binary randomized response.
    Utility: variance (C^2 - (2x - 1)^2) / 4n, first-order minimax (limits 1, Theorem 1). Cost: 1 bit.
    """

    name: ClassVar[str] = "one-bit-mean"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013"
    alphabet = 2
    steps: int = 1 << 16

    def prepare(self) -> None:
        if self.slope < 1:
            raise too_narrow(self)

    @cached_property
    def slope(self) -> int:
        """How much one lattice step adds to the weight of a reported 1."""
        return (self.total - 2 * flip_weight(self.nano, self.word_bits)) // self.steps

    @property
    def base(self) -> int:
        """The weight of a reported 1 at x = 0."""
        return (self.total - self.slope * self.steps) // 2

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    def _ones(self, values: Ints) -> Words:
        return np.uint64(self.base) + values.astype(np.uint64) * np.uint64(self.slope)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return (words < self._ones(values)).view(np.uint8)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        ones = self._ones(values)
        # 2^64 does not fit a word, but 2^64 - ones does: unsigned arithmetic wraps to it
        zeros = np.uint64(self.total % 2**64) - ones
        return np.where(reports == 1, ones, zeros)

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        gain = self.total / (self.slope * self.steps)
        return Estimate.between(((1 - gain) / 2, (1 + gain) / 2), 0.5 + gain * (float(tally.counts[0, 1]) / n - 0.5), n)
