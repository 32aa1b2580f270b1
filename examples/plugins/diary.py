"""A randomizer with memory: a bit is randomized for good, and what is kept of it for each report.

local-dp audit examples/plugins/diary.py
local-dp run longitudinal --randomizer 'examples/plugins/diary.py(first=0.3)' --seed 1
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import symbols
from local_dp.randomizers.finite import FiniteChannel, flip_weight
from local_dp.randomizers.repeated.memoised import TwoSteps
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class Diary(TwoSteps, FiniteChannel):
    """All reports of a client together lose epsilon at most, and one alone `first` times that."""

    name = "diary"
    source = "Erlingsson, Pihur, Korolova 2014"
    summary = "Randomizes a bit for good, and each report again"
    domain, alphabet = symbols(2), 2

    @cached_property
    def flips(self) -> tuple[int, int]:
        """Of `part` halves of a word, how many flip the bit in the first and in the second step."""
        first = flip_weight(self.nano, self.word_bits // 2)
        growth, part = self.first_growth(), self.part
        rest = part * ((part - first) - part * growth / (1 + growth)) / (part - 2 * first)
        return first, ceil(rest)

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        high = words >> words.dtype.type(self.word_bits // 2)
        return values.astype(np.uint8) ^ (high < self.flips[0])

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        low = words & words.dtype.type(self.part - 1)
        return outcomes ^ (low < self.flips[1])

    @property
    def truth(self) -> int:
        """Of 2^word_bits words, how many report the bit as it is."""
        first, second = self.flips
        return (self.part - first) * (self.part - second) + first * second

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        lie = np.uint64(self.total - self.truth)
        return np.where(reports == values, np.uint64(self.truth), lie)

    def estimate(self, tally: Tally) -> Estimate:
        truth = self.truth / self.total
        gain = 1 / (2 * truth - 1)
        share = (tally.counts[0, 1] / tally.answered - (1 - truth)) * gain
        return Estimate.between((-(1 - truth) * gain, truth * gain), share, tally.answered)
