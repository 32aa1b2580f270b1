"""One parity named out of all: more often one that the labelled example rules out. The best one-round randomizer for a hidden parity."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.cube import parity
from local_dp.domains import Domain
from local_dp.randomizers.one_bit import OneThreshold
from local_dp.randomizers.signs.characters import examples
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class Deny(OneThreshold):
    """Names a uniform parity w with y (-1)^<w, x> = -1 with probability E / (E + 1), else a uniform one with +1; any of the 2^d where x = 0.

    A uniform name of the wrong kind becomes one of the right kind by flipping one bit of w, the lowest that is set in x: no table, no rejection. It estimates
    the mean of y (-1)^<w, x> 1(x != 0) for each w. Privacy: T / F <= E, F = ceil(2^(b - d) / (E + 1)), T = 2^(b - d) - F, words of b bits. Utility: variance
    about C^2 2^d / n each. One round finds a parity from 1.2 d C^2 2^d clients, for epsilon up to ln 3 the fewest of all randomizers as d grows (limits
    12.2). Cost: d bits, one word. 1 <= d <= 12.
    """

    name: ClassVar[str] = "deny"
    source: ClassVar[str] = "limits 12.2"
    estimates: ClassVar[str] = "parities"
    d: int = 1

    @property
    def spare(self) -> int:
        """d: the last bits of a word are the uniform name. Raises InputError unless 1 <= d <= 12."""
        examples(self.d)
        return self.d

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    @property
    def alphabet(self) -> int:
        return 1 << self.d

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        word, short = words.dtype.type, np.uint16
        labelled = values.astype(short)
        named = words.astype(short) & short(self.alphabet - 1)
        agree = (words < word(self.flip << self.d)).view(np.uint8)
        wrong = _ruled_out(labelled, named) == agree  # ruled out where it should agree, or the reverse
        x = labelled >> short(1)
        named ^= (x & (~x + short(1))) * wrong  # the lowest set bit of x: none where x = 0
        return named.astype(self.report_dtype, copy=False)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        labelled, named = np.asarray(values).astype(np.uint16), np.asarray(reports).astype(np.uint16)
        kinds = np.where(_ruled_out(labelled, named), np.uint64(2 * (self.whole - self.flip)), np.uint64(2 * self.flip))
        return np.where(labelled >> np.uint16(1), kinds, np.uint64(self.whole))

    def law(self, r: int) -> Floats:
        """Pr[report w] over uniform examples of the parity r, shape (2^d,): 2^-d (1 + 2^-d / C), and 2^-d / C less at w = r."""
        law = np.full(self.alphabet, (1 + 1 / (self.alphabet * self.gain)) / self.alphabet)
        law[r] -= 1 / (self.alphabet * self.gain)
        return law

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of y (-1)^<w, x> 1(x != 0) for each w, unbiased, shape (2^d,)."""
        n = tally.answered
        share = tally.counts[0] / n
        factor = self.gain * self.alphabet
        return Estimate(self.gain - factor * share, factor * np.sqrt(share * (1 - share) / n), n)


def _ruled_out(held: Words, named: Words) -> Words:
    """1 where y (-1)^<w, x> = -1: the last bit of an example is the label's."""
    return parity(held & (named << np.uint16(1) | np.uint16(1)))
