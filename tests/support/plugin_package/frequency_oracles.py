"""Frequency oracles that are no small tables, from outside: optimised unary encoding as packed
bits, and a local hash under a public seed."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, symbols
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import ceil_fraction
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.places import BitVector, PerCoin
from local_dp.tallies import Estimate, Tally


def estimated(tally: Tally, p: float, q: float) -> Estimate:
    """The share of each symbol, where its own reports support it with probability p and all others
    with q."""
    shares = tally.counts / tally.n
    return Estimate(
        (shares - q) / (p - q), np.sqrt(shares * (1 - shares) / tally.n) / (p - q), tally.n
    )


@dataclass(frozen=True, kw_only=True)
class OptimisedUnary(BitVector):
    """One bit for each of k symbols: the own one is 1 with probability 1/2, each other one with
    probability 1 / (e^eps + 1), rounded up."""

    name: ClassVar[str] = "optimised-unary"
    source: ClassVar[str] = "Wang, Blocki, Li, Jha 2017"
    k: int = 2

    def _fits(self, bits: int) -> bool:
        return True

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.k, dtype=np.int64)

    @cached_property
    def ones(self) -> tuple[int, ...]:
        total = 1 << self.word_bits
        return ceil_fraction(total / (exp_epsilon(self.nano) + 1)), total // 2

    def estimate(self, tally: Tally) -> Estimate:
        total = 1 << self.word_bits
        return estimated(tally, self.ones[1] / total, self.ones[0] / total)


@dataclass(frozen=True, kw_only=True)
class GreedyUnary(OptimisedUnary):
    """Forgets that two bits change with the value, and spends more than it says: every client must
    find out and refuse."""

    name: ClassVar[str] = "greedy-unary"

    @cached_property
    def ones(self) -> tuple[int, ...]:
        total = 1 << self.word_bits
        less = ceil_fraction(total / (exp_epsilon(self.nano) + 1))
        return less, total - less


MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, kw_only=True)
class LocalHash(PerCoin):
    """Hashes the symbol to one of g under a public 64-bit seed, and reports the hash by g-ary
    randomized response."""

    name: ClassVar[str] = "local-hash"
    source: ClassVar[str] = "Wang, Blocki, Li, Jha 2017, with a public seed"
    k: int = 2
    g: int = 4

    def check(self) -> None:
        super().check()
        symbols(self.g)

    def _fits(self, bits: int) -> bool:
        return GRR(self.epsilon, k=self.g).word_bits == bits

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=self.g)

    def encode(self, values: Ints, coins: Words) -> Ints:
        mixed = (coins ^ (values.astype(np.uint64) * np.uint64(MULTIPLIER))) * np.uint64(
            0xBF58476D1CE4E5B9
        )
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
        return ((mixed >> np.uint64(32)) * np.uint64(self.g) >> np.uint64(32)).astype(np.int64)

    def empty(self) -> Tally:
        return Tally(np.zeros(self.k, dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How many reports each symbol would explain, shape (k,)."""
        support = [
            int((self.encode(np.array([symbol]), cells) == reports).sum())
            for symbol in range(self.k)
        ]
        return Tally(np.array(support, dtype=np.int64), len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        return estimated(tally, self.inner.truth / self.inner.total, 1 / self.g)
