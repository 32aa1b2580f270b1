"""PI-RAPPOR: unary encoding with pairwise independent bits, all named by one short report."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.domains import Domain, symbols
from local_dp.loss import nano_epsilon
from local_dp.randomizers.frequencies.designs import Design, TwoWeights
from local_dp.randomizers.frequencies.linear_hash import LinearHash
from local_dp.randomizers.frequencies.local_hashing import best_hash

MAX_REPORTS = 1 << 16  # so many that a client can enumerate the channel


@dataclass(frozen=True, kw_only=True)
class PIRappor(TwoWeights, Design):
    """Reports a row of a `LinearHash` and one of its g hashes: e^eps times as likely one that the own symbol has as any other.

    The report stands for a bit of each symbol, 1 where the symbol has that hash: any two bits of others are independent up to the row that hashes all
    symbols to 0, which is left out. It is local hashing (`OLH`) with a private coin, so with its variance: `bounds.frequencies.hashing_variance`, which is
    that of optimised unary encoding for g = e^eps + 1 and large k. Privacy: T / s <= e^eps. Cost: log2 k + log2 (g^2 / (g - 1)) bits at most, one word, no
    public coin; decoding O(n + R k), R = (K - 1) / (g - 1). 2 <= k <= 4096; reports are at most 2^16.
    """

    name: ClassVar[str] = "pi-rappor"
    source: ClassVar[str] = "Feldman, Talwar 2021"
    k: int = 2

    @cached_property
    def hash(self) -> LinearHash:
        """The family of hashes."""
        return best_hash(nano_epsilon(self.epsilon), symbols(self.k).size, MAX_REPORTS)

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @property
    def alphabet(self) -> int:
        return self.hash.rows * self.hash.g

    @property
    def w(self) -> int:
        return self.hash.rows

    def report(self, values: Ints, ranks: Ints) -> Ints:
        rows, g = self.w, self.hash.g
        row, step = np.divmod(ranks - rows, max(1, g - 1))
        own = ranks < rows
        row, step = np.where(own, ranks, row), np.where(own, 0, step + 1)
        return row * g + (self.hash(row, values) + step) % g

    def rank(self, values: Ints, reports: Ints) -> Ints:
        row, said = np.divmod(reports, self.hash.g)
        step = (said - self.hash(row, values).astype(np.int64)) % self.hash.g
        ranks: Ints = np.where(step == 0, row, self.w + row * (self.hash.g - 1) + step - 1)
        return ranks

    @property
    def odds(self) -> tuple[float, float]:
        p = self.w * self.held / self.total
        return p, (self.hash.points / self.hash.g - p) / (self.hash.points - 1)

    @property
    def sets(self) -> tuple[int, int]:
        return self.hash.points, self.hash.points // self.hash.g

    def support(self, counts: Counts) -> Counts:
        return self.hash.support(counts.reshape(*counts.shape[:-2], self.w, self.hash.g))

    def gathered(self, weights: Floats) -> Floats:
        return self.hash.gathered(weights).reshape(len(weights), 1, self.alphabet)
