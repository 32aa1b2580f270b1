"""The best report of one round of masked parity: one of two complementary masks, with a sign."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import Domain
from local_dp.masked.queries import MaskedExample
from local_dp.randomizers.places import WholeCoin
from local_dp.randomizers.signs.characters import Deny, OfExamples
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class MaskPairs(WholeCoin, OfExamples):
    """Names the public random mask s or its complement, with a sign: two of these four reports are
    E times as likely as the others.

    With b = 0 they are either mask, with the sign of y (-1)^<mask, x>. With b = 1 they are the mask
    whose bit i the label contradicts, with either sign. So clients with b = 1, who know nothing of
    the mask a, seldom name the hidden vector. It estimates the d means of y 1(b = 1, i = j).
    Privacy: that of `deny` over the two bits of a report, for every coin. Utility: each mean has
    variance (C^2 - m^2) / n; up to epsilon 1.34 no report reveals more of a (limits 3.3). Cost: two
    bits; a table of 2^(d + 1) counts. 1 <= d <= 20.
    """

    name = "mask-pairs"
    summary = "Names one of two complementary masks, with a sign"
    source = "limits 3.3"

    @cached_property
    def inner(self) -> Deny:
        return Deny(self.epsilon, word_bits=self.word_bits, d=2)

    @property
    def domain(self) -> Domain:
        return MaskedExample(self.d).domain

    def encode(self, values: Ints, coins: Words) -> Ints:
        """The example that rules out the two likely reports of the four."""
        examples = values.astype(np.uint64)
        vector = examples >> np.uint64(2)
        masked = 1 - (examples >> 1) % 2  # where b = 0
        odd = (parity(coins & vector) + examples + masked) % 2
        return np.asarray(4 * masked + 2 * parity(vector) + odd, dtype=np.int64)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How often each mask is named with + and -, shape (2^d, 2)."""
        masks = (cells.astype(np.int64) ^ -(reports & 1).astype(np.int64)) % (1 << self.d)
        places = 2 * masks + (reports >> 1)
        return Tally(np.bincount(places, minlength=2 << self.d).reshape(-1, 2))

    def law(self, r: int, a: int) -> Floats:
        """Pr[mask, sign] over uniform examples of (r, a), shape (2^d, 2): by the mask's distance
        from r, and at r by the sign."""
        apart = np.bitwise_count(np.arange(1 << self.d) ^ r) / self.d
        law = np.repeat(1 + (apart - 1 / 2) / self.inner.gain, 2).reshape(-1, 2)
        law[r, [a, 1 - a]] = 1, 1 - 1 / self.inner.gain
        return law / (2 << self.d)

    def truths(self, values: Ints) -> Floats:
        examples = values.astype(np.int64)[:, None]
        place = 4 * (1 << np.arange(self.d)) + 2  # b = 1 and i
        return np.where(examples // 2 * 2 == place, 1.0 - 2 * (examples % 2), 0.0)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return np.asarray(self.inner.gain**2 - (law @ self.truths(values)) ** 2)

    def estimate(self, tally: Tally) -> Estimate:
        n, gain = tally.answered, self.inner.gain
        names = walsh_hadamard(tally.counts.sum(axis=1))[1 << np.arange(self.d)]
        mean = -gain * names / n
        return Estimate(mean, np.sqrt((gain**2 - mean**2) / n), n)
