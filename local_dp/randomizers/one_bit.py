"""Channels of one threshold, and one-bit randomizers: the value and perhaps a coin give a true bit, which randomized response flips."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.loss import NANO, exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, ties
from local_dp.randomizers.finite import SLACK, FiniteChannel, ceil_fraction, too_narrow
from local_dp.tallies import Tally

BYTE = np.dtype(np.uint8)  # given `np.uint8`, numpy would look it up each time


@lru_cache(maxsize=1024)
def flip_weight(nano: int, bits: int) -> int:
    """The least whole F with (2^bits - F) / F <= e^epsilon: a bit is flipped with probability F / 2^bits, never less than privacy needs."""
    return ceil_fraction(2**bits / (1 + exp_epsilon(nano)))


def loses_little(kept: int, changed: int, nano: int) -> bool:
    """Whether ln(kept / changed) is within SLACK of epsilon."""
    return nano / NANO - math.log(kept / changed) <= SLACK


@dataclass(frozen=True)
class OneThreshold(FiniteChannel):
    """A finite channel of one threshold F: a word whose leading bits are below it makes a report of the less likely kind.

    Privacy: (whole - F) / F <= e^epsilon for the least such F, whole = 2^(word_bits - spare); the last `spare` bits of a word pick a report of that kind.
    """

    @property
    def spare(self) -> int:
        """How many bits of a word the threshold is not compared with."""
        return 0

    def _fits(self, bits: int) -> bool:
        nano, bits = nano_epsilon(self.epsilon), bits - self.spare
        flip = flip_weight(nano, bits)
        return loses_little(2**bits - flip, flip, nano)

    def prepare(self) -> None:
        if self.word_bits <= self.spare or 2 * self.flip >= self.whole:
            raise too_narrow(self)

    @property
    def whole(self) -> int:
        """2^(word_bits - spare): the weight of both kinds together."""
        return 1 << self.word_bits - self.spare

    @cached_property
    def flip(self) -> int:
        """F: the less likely kind, such as a flipped bit, has probability F / `whole`."""
        return flip_weight(self.nano, self.word_bits - self.spare)

    @property
    def gain(self) -> float:
        """C = 1 / (1 - 2 F / whole), at least (e^eps + 1) / (e^eps - 1): the factor from a mean of reported signs to its estimate."""
        return float(self.whole / (self.whole - 2 * self.flip))


@dataclass(frozen=True)
class OneBit(OneThreshold):
    """Randomized response on a bit that `encode` reads off (value, cell); a reported 0 counts as +1 and a 1 as -1 where signs are averaged."""

    alphabet = 2

    @cached_property
    def _cut(self) -> Words:
        """The threshold in the form that words are compared with."""
        cut = np.array([self.flip], dtype=f"<u{self.width // 8}")
        cut.setflags(write=False)
        return cut

    @abstractmethod
    def encode(self, values: Ints, cells: Ints) -> Words:
        """The true bit, uint8, elementwise under broadcasting."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        flips: Words = (words < self._cut).view(BYTE)
        return self.encode(values, cells) ^ flips

    def simulated(self, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words) -> Words:
        """By one byte of each word, and the rest of the few words that this byte does not decide."""
        cut = self.flip << (64 - self.word_bits)
        flips = noise.leading(which, start, start + len(values), 8, ties((cut,))).below(cut)
        return self.encode(values, cells) ^ flips.view(BYTE)

    def tally(self, reports: Words, cells: Words) -> Tally:
        if self.cells > 1:
            return super().tally(reports, cells)
        ones = int(np.count_nonzero(reports))
        return Tally(np.array([[len(reports) - ones, ones]], dtype=np.int64))

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        kept = np.uint64(self.total - self.flip)
        return np.where(reports == self.encode(values, cells), kept, np.uint64(self.flip))
