"""The count-mean sketch: a public coin hashes the symbol to one of m buckets, and the client tells its bucket by unary encoding."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.randomizers.bit_vector import ones_at
from local_dp.randomizers.frequencies.linear_hash import LinearHash, collisions, prime_power
from local_dp.randomizers.frequencies.local_hashing import length_of
from local_dp.randomizers.frequencies.unary import SUE
from local_dp.randomizers.per_coin import PerCoin
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class CountMeanSketch(PerCoin):
    """Reports by symmetric unary encoding the bucket of the own symbol, one of m, in a public row of a `LinearHash`.

    The tally is a sketch: for each row and bucket the ones that were reported. Any two symbols share a bucket in exactly the same number of rows, so that what
    others add to a symbol's buckets has one mean and is taken off exactly. Privacy: that of `SUE`, in every row. Utility: each frequency has variance
    l (1 - l) / (n (p - q)^2), l = q + f (p - q), with p of SUE, and for q a mixture of SUE's two by the chance c = (K / m - 1) / (K - 1) of a shared bucket,
    K = m^t >= k (`bounds.frequencies.sketch_variance`). Cost: m bits and words a report; a sketch of R m numbers, R = (K - 1) / (m - 1), decoded in O(R k).
    `m` is a prime power; where k <= m it is `SUE` of k symbols. 2 <= k <= 4096.
    """

    name: ClassVar[str] = "count-mean-sketch"
    source: ClassVar[str] = "Apple's Differential Privacy Team 2017 (CMS)"
    k: int = 2
    m: int = 64

    @cached_property
    def hash(self) -> LinearHash:
        """The family of hashes to buckets."""
        k = symbols(self.k).size
        if type(self.m) is not int or not 2 <= self.m <= 1024 or not prime_power(self.m):
            raise InputError(f"m is {self.m!r}; give a prime or a power of a prime from 2 to 1024")
        return LinearHash(k, k, 1) if k <= self.m else LinearHash(k, self.m, length_of(k, self.m))

    def _fits(self, bits: int) -> bool:
        return SUE(self.epsilon, k=self.hash.g).word_bits == bits

    @cached_property
    def inner(self) -> SUE:
        return SUE(self.epsilon, word_bits=self.word_bits, k=self.hash.g)

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    def _rows(self, coins: Words) -> Ints:
        return (coins.astype(np.uint64) % np.uint64(self.hash.rows)).astype(np.int64)

    def encode(self, values: Ints, coins: Words) -> Ints:
        return self.hash(self._rows(coins), values)

    def empty(self) -> Tally:
        return Tally(np.zeros((self.hash.rows, self.hash.g), dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The ones of each row and bucket, shape (R, m)."""
        rows = self._rows(cells)
        sorted_by_row = reports[np.argsort(rows, kind="stable")]
        ends = np.cumsum(np.bincount(rows, minlength=self.hash.rows))
        sums = [ones_at(part)[: self.hash.g] for part in np.split(sorted_by_row, ends[:-1])]
        return Tally(np.stack(sums), len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,)."""
        n, inner, family = tally.answered, self.inner, self.hash
        shared = collisions(family.g, family.m) / family.rows
        own, other = (weight / inner.total for weight in reversed(inner.ones))
        others = shared * own + (1 - shared) * other
        ends = -others / (own - others), (1 - others) / (own - others)
        return Estimate.between(ends, (family.support(tally.counts) / n - others) / (own - others), n)
