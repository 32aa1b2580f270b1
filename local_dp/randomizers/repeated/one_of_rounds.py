"""Randomized response in one round of many, and a fair coin in all others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import bit_or_silence
from local_dp.randomizers.one_bit import OneThreshold
from local_dp.randomizers.randomizer import Work
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class OneOfRounds(OneThreshold):
    """Reports a bit by randomized response, and tosses a fair coin for the value 2, silence.

    Under a label (`LocalQuery.session`) a client may be asked in any number of rounds, and speaks in one at most. Privacy: all its reports together are
    epsilon-locally private, exactly, for a server that chooses each question by all earlier reports (limits 12.1): the chance of any reports is 2^(1 -
    rounds) times E / (E + 1) or 1 / (E + 1), or 2^-rounds, which lies between. Utility: the share of ones less that of zeros, of variance at most C^2 / n.
    Cost: one bit a round.
    """

    name: ClassVar[str] = "one-of-rounds"
    source: ClassVar[str] = "Joseph, Mao, Neel, Roth 2019 (fully interactive protocols whose transcripts are private); limits 12.1"
    estimates: ClassVar[str] = "the share of ones less the share of zeros"
    work: ClassVar[Work] = "repeated surveys"
    silence: ClassVar[int | None] = 2
    domain, alphabet = bit_or_silence(), 2

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        word = words.dtype.type
        flips = words < np.where(values == self.silence, word(self.total // 2), word(self.flip))
        return (values & 1).astype(np.uint8) ^ flips.view(np.uint8)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        kept, half = np.uint64(self.total - self.flip), np.uint64(self.total // 2)
        weights: Words = np.where(values == self.silence, half, np.where(reports == values, kept, np.uint64(self.flip)))
        return weights + np.zeros(np.shape(cells), dtype=np.uint64)

    def estimate(self, tally: Tally) -> Estimate:
        """The share of ones less that of zeros, unbiased, in [-1, 1]."""
        n = tally.answered
        reported = 2 * float(tally.counts[0, 1]) / n - 1
        return Estimate.between((-self.gain, self.gain), self.gain * reported, n, -1.0)
