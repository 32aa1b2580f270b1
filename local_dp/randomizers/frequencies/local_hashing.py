"""Local hashing: a public coin picks a hash of k symbols to g, and the client answers with its symbol's hash by g-ary randomized response."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.domains import symbols
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.frequencies.designs import Design
from local_dp.randomizers.frequencies.encoded import EncodedGRR
from local_dp.randomizers.frequencies.linear_hash import MAX_CELLS, LinearHash, prime_power
from local_dp.randomizers.frequencies.subset_selection import total_variance


@dataclass(frozen=True)
class LocalHashing(EncodedGRR, Design):
    """Reports the hash of the own symbol, one of g, in a public row of a `LinearHash`, by randomized response.

    A report names the symbols that have the reported hash: sets of K / g of K = g^m >= k points, where every two points lie together equally often, so
    this is subset selection with hyperplanes for sets. Privacy: g-ary randomized response in every row. Utility: each frequency has variance
    l (1 - l) / (n (p - q)^2), l = q + f (p - q), p of randomized response, q = (K / g - p) / (K - 1) (`bounds.frequencies.hashing_variance`).
    Cost: log2 g bits, one word, one look-up; decoding O(n + R k) for R = (K - 1) / (g - 1) rows.
    """

    @cached_property
    @abstractmethod
    def hash(self) -> LinearHash:
        """The family of hashes; checks k."""

    @property
    def alphabet(self) -> int:
        return self.hash.g

    @property
    def cells(self) -> int:
        return self.hash.rows

    def encode(self, values: Ints, coins: Ints) -> Ints:
        return self.hash(coins, values)

    @property
    def odds(self) -> tuple[float, float]:
        p = self.inner.truth / self.inner.total
        return p, (self.hash.points / self.hash.g - p) / (self.hash.points - 1)

    @property
    def sets(self) -> tuple[int, int]:
        return self.hash.points, self.hash.points // self.hash.g

    def support(self, counts: Counts) -> Counts:
        return self.hash.support(counts)

    def own(self, values: Ints) -> Counts:
        rows = np.arange(self.hash.rows)
        return rows * self.hash.g + self.hash(rows, values[:, None]).astype(np.int64)

    @property
    def blind(self) -> float:
        return self.hash.g * self.inner.other / self.inner.total

    def gathered(self, weights: Floats) -> Floats:
        return self.hash.gathered(weights)


@dataclass(frozen=True, kw_only=True)
class OLH(LocalHashing):
    """Local hashing to g next to e^eps + 1 hashes, the prime power of least total variance at the uniform law; k-ary randomized response where that is better.

    Utility: the variance of `LocalHashing`, for a rare symbol 4 e^eps / (e^eps - 1)^2 / n at g = e^eps + 1 and large k, less at small k: that of the best
    sets of all, if k = g^m. 2 <= k <= 4096; tables have at most 2^20 cells.
    """

    name: ClassVar[str] = "olh"
    source: ClassVar[str] = "Wang, Blocki, Li, Jha 2017; hashes and tally by an affine geometry (Bose 1942; Park, Nam, Lee 2023)"

    @cached_property
    def hash(self) -> LinearHash:
        return best_hash(nano_epsilon(self.epsilon), symbols(self.k).size)


@dataclass(frozen=True, kw_only=True)
class BLH(LocalHashing):
    """Local hashing to one bit: one-bit Hadamard, whose rows are the linear hashes over the field of 2, without the row that hashes all symbols to 0.

    Utility: the variance of `LocalHashing`, below (C^2 - f^2) / n. Cost: 1 bit.
    """

    name: ClassVar[str] = "blh"
    source: ClassVar[str] = "Bassily, Smith 2015; Wang, Blocki, Li, Jha 2017"

    @cached_property
    def hash(self) -> LinearHash:
        return LinearHash(self.k, 2, length_of(symbols(self.k).size, 2))


def length_of(k: int, g: int) -> int:
    """The least m with g^m >= k."""
    m = 1
    while g**m < k:
        m += 1
    return m


@lru_cache(maxsize=1024)
def best_hash(nano: int, k: int, most: int = MAX_CELLS) -> LinearHash:
    """The hash of least total variance at the uniform law: one row of k, or a prime power g with a table of `most` cells."""
    growth = Fraction(float(exp_epsilon(nano)))
    chosen = [LinearHash(k, g, length_of(k, g)) for g in range(2, min(k, int(2 * growth) + 6)) if prime_power(g)]
    kept = [LinearHash(k, k, 1), *(each for each in chosen if each.m > 1 and each.rows * each.g <= most)]
    return min(kept, key=lambda each: total_variance(growth, each.points, each.points // each.g, k))
