"""dBitFlip: d of k buckets, picked by a public coin, and a lasting bit for each."""

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain, symbols
from local_dp.randomizers.in_blocks import in_blocks
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.randomizer import Work
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class BitFlip(PerCoin):
    """Tells of d of k buckets, picked by a public coin, whether the own one is there: bit by bit by unary encoding, and the same bits for ever under a label.

    The buckets are a, a + s, ..., a + (d - 1) s modulo k, for a random a and a random s that shares no factor with k: each is picked with chance d / k.
    Privacy: whatever the coin, `epsilon` for all reports under a label, paid once, as long as the value stays: bits that change show that it does, and with no
    second step for sure, so a value that changes is another question. Utility: a bucket's share has variance l (1 - l) / (n' (p - q)^2), l = q + f (p - q),
    n' the clients asked of it, n d / k on average (`bounds.longitudinal.bit_flip_variance`); p = 1/2 and q = 1 / (e^eps + 1), which beats the published bits
    of eps / 2 each, or a plain bit for d = 1. Cost: d bits. 2 <= k <= 4096.
    """

    name: ClassVar[str] = "d-bit-flip"
    source: ClassVar[str] = "Ding, Kulkarni, Yekhanin 2017 (dBitFlipPM); bits of optimised unary encoding: Wang, Blocki, Li, Jha 2017"
    work: ClassVar[Work] = "repeated surveys"
    k: int = 2
    d: int = 1

    def _fits(self, bits: int) -> bool:
        return ChangeTracking(self.epsilon, intervals=self.d).word_bits == bits

    def check(self) -> None:
        check_whole("d", self.d, 1, symbols(self.k).size)
        super().check()

    @cached_property
    def inner(self) -> ChangeTracking:
        return ChangeTracking(self.epsilon, word_bits=self.word_bits, intervals=self.d)

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @cached_property
    def _strides(self) -> tuple[Counts, Counts]:
        """The steps that share no factor with k, and their inverses modulo k."""
        steps = [step for step in range(1, self.k) if gcd(step, self.k) == 1]
        return np.array(steps), np.array([pow(step, -1, self.k) for step in steps])

    def _picked(self, coins: Words) -> tuple[Ints, Ints]:
        """The first bucket and the number of the step, each with its chance up to 2^-20."""
        word, many = coins.astype(np.uint64), len(self._strides[0])
        first = (word >> np.uint64(32)) * np.uint64(self.k) >> np.uint64(32)
        step = (word & np.uint64(2**32 - 1)) * np.uint64(many) >> np.uint64(32)
        return first.astype(np.int64), step.astype(np.int64)

    def encode(self, values: Ints, coins: Words) -> Ints:
        """The place of the own bucket among those picked, or d."""
        first, step = self._picked(coins)
        places = (values.astype(np.int64) - first) * self._strides[1][step] % self.k
        codes: Ints = np.minimum(places, self.d)
        return codes

    def empty(self) -> Tally:
        return Tally(np.zeros((self.k, 2), dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """For each bucket the number of zeros and of ones, shape (k, 2)."""
        found = in_blocks(self._told, reports, cells)
        return Tally(np.bincount(found.ravel(), minlength=2 * self.k).reshape(self.k, 2), len(reports))

    def _told(self, reports: Words, coins: Words) -> Ints:
        """Twice the bucket plus the bit, of each bit of each report, shape (n, d)."""
        bits = np.unpackbits(reports, axis=1, count=self.d, bitorder="little")
        first, step = self._picked(coins)
        buckets = (first[:, None] + np.arange(self.d) * self._strides[0][step][:, None]) % self.k
        told: Ints = 2 * buckets + bits
        return told

    @property
    def odds(self) -> tuple[float, float]:
        """p and q: the chances of a 1 at the own bucket, and at another one."""
        q, p = (weight / self.inner.total for weight in self.inner.ones)
        return p, q

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,); 0 with infinite error where nobody was asked."""
        n, asked, (p, q) = tally.answered, tally.counts.sum(axis=1), self.odds
        seen = tally.counts[:, 1] / np.maximum(asked, 1)
        share: Floats = np.where(asked > 0, (seen - q) / (p - q), 0.0)
        held = q + np.clip(share, 0.0, 1.0) * (p - q)  # a share beyond is noise and must not make the error look small
        error = np.sqrt(held * (1 - held) / np.maximum(asked, 1)) / (p - q)
        return Estimate(share, np.where(asked > 0, error, np.inf), n)
