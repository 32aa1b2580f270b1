"""The best report of one round of masked parity: one of two complementary masks, with a sign."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import Domain
from local_dp.masked.queries import masked_examples
from local_dp.randomizers.places import PerCoin
from local_dp.randomizers.signs.characters import Deny
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class MaskPairs(PerCoin):
    """Names the public random mask s or its complement, with a sign: two of these four reports are
    E times as likely as the others.

    With b = 0 they are either mask with the sign of y (-1)^<mask, x>; with b = 1 the mask whose bit
    i the label contradicts, with either sign. So clients with b = 1 seldom name the hidden vector,
    where they would only blur the mask. It is `deny` over the two bits of a report, and estimates
    the d means of y 1(b = 1, i = j). Privacy: that of `deny` for every coin. Utility: each mean has
    variance (C^2 - m^2) / n; a report carries 2^-d I_up about a mask up to epsilon 1.34, the most
    that is possible (limits 3.3). Cost: two bits; a table of 2^(d + 1). 1 <= d <= 20.
    """

    name = "mask-pairs"
    summary = "Names one of two complementary masks, with a sign"
    source = "limits 3.3"
    estimates = "signed positions"
    has_tally_law: ClassVar[bool] = True
    d: int = 1

    @classmethod
    def example(cls, epsilon: float = 1.0, size: int = 5) -> Self:
        return cls(epsilon, d=(size - 1).bit_length())

    @cached_property
    def inner(self) -> Deny:
        return Deny(self.epsilon, word_bits=self.word_bits, d=2)

    @property
    def domain(self) -> Domain:
        return masked_examples(self.d)

    @property
    def _mask(self) -> int:
        return (1 << self.d) - 1

    def encode(self, values: Ints, coins: Words) -> Ints:
        """The line of two of the four reports, as the example of `deny` that rules it out."""
        examples = values.astype(np.uint64)
        vector = examples >> np.uint64(1) & np.uint64(self._mask)
        masked = 1 - (examples >> np.uint64(self.d + 1)).astype(np.uint8)
        odd = parity(coins & vector) ^ (examples & np.uint64(1)).astype(np.uint8)
        return (4 * masked + 2 * parity(vector) + (odd ^ masked)).astype(np.int64)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How often each mask is named with + and -, shape (2^d, 2)."""
        named = cells.astype(np.int64) ^ -(reports & 1).astype(np.int64)
        places = 2 * (named & self._mask) + (reports >> 1)
        return Tally(np.bincount(places, minlength=2 << self.d).reshape(-1, 2))

    def law(self, r: int, a: int) -> Floats:
        """Pr[mask, sign] of uniform examples of (r, a): by a mask's distance from r, and its sign
        at r alone."""
        masks = np.arange(1 << self.d, dtype=np.uint64)
        apart = np.bitwise_count(masks ^ np.uint64(r)) / self.d
        law = np.repeat(1 + (apart - 1 / 2) / self.inner.gain, 2).reshape(-1, 2)
        law[r, [a, 1 - a]] = 1, 1 - 1 / self.inner.gain
        return law / (2 << self.d)

    def truths(self, values: Ints) -> Floats:
        positions = (2 << self.d) + (2 << np.arange(self.d))
        sign = 1.0 - 2 * (values & 1)[:, None]
        return np.asarray(sign * ((values & ~1)[:, None] == positions))

    def estimate(self, tally: Tally) -> Estimate:
        n, gain = tally.answered, self.inner.gain
        named = walsh_hadamard(tally.counts.sum(axis=1))[1 << np.arange(self.d)]
        mean = -gain * named / n
        return Estimate(mean, np.sqrt((gain**2 - mean**2) / n), n)
