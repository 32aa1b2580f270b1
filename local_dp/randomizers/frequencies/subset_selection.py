"""Subset selection: a report is a set of w symbols that holds the true one more often than any other one, drawn with the help of a public coin."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.frequencies.designs import TwoWeights
from local_dp.randomizers.one_bit import loses_little
from local_dp.randomizers.per_coin import PerCoin
from local_dp.tallies import Estimate, Tally

MAX_SYMBOLS = 1024  # a tally has a count for each multiplier and set, about k^2


def _binary(order: int) -> bool:
    return order.bit_count() == 1


@dataclass(frozen=True, kw_only=True)
class Translates(TwoWeights):
    """Reports one of the k translates of the block {0, .., w - 1} in a group of order k: own are those that hold the code.

    The group is addition modulo k, or of bits where k is a power of two. Privacy: T / s <= e^eps (`TwoWeights`). Cost: log2 k bits. The codes' shares need
    no inverse to exist; `SubsetSelection` estimates under its coin.
    """

    name: ClassVar[str] = "translates"
    source: ClassVar[str] = "Park, Nam, Lee 2023 (block designs)"
    k: int = 2
    w: int = 1

    def _fits(self, bits: int) -> bool:
        self._check()
        held, other = self._steps(bits)
        return held > other and loses_little(held, other, nano_epsilon(self.epsilon))

    def _check(self) -> None:
        symbols(self.k)
        if type(self.w) is not int or not 1 <= self.w < self.k:
            raise InputError(f"w is {self.w!r}; give a whole number from 1 to {self.k - 1}")

    def prepare(self) -> None:
        self._check()
        super().prepare()

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @property
    def alphabet(self) -> int:
        return self.k

    def away(self, first: Ints, second: Ints) -> Ints:
        """first - second in the group, elementwise: its own inverse in the second argument."""
        return first ^ second if _binary(self.k) else (first - second) % self.k

    def report(self, values: Ints, ranks: Ints) -> Ints:
        """The rank is the code's place in the translate."""
        return self.away(values, ranks)

    def rank(self, values: Ints, reports: Ints) -> Ints:
        return self.away(values, reports)

    def estimate(self, tally: Tally) -> Estimate:
        raise InputError("translates of one block do not tell the codes' shares; ask with subset-selection")


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PerCoin):
    """Reports a set of w of k symbols: each set that holds the own symbol e^eps times as likely as each other one.

    The public coin multiplies the symbol in a finite field, the report names a translate of {0, .., w - 1}: over the coins every two symbols lie in equally
    many sets, which is all that the estimate of uniformly random sets needs. The field has the least order K >= k that is a prime or a power of two; where
    w = 1 is best there is neither coin nor field, and it is k-ary randomized response.
    Privacy: T / s <= e^eps for every coin. Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q), p = w T / 2^m,
    q = (w - p) / (K - 1) (`bounds.frequencies.subset_variance`), at K = k the least of all randomizers for the sum of squares at the uniform law
    (limits 2); at other k it is at most 5 % above that, 6.3 % at k = 6. Cost: log2 K bits, one word; decoding O(n + K^3). 2 <= k <= 1024.
    """

    name: ClassVar[str] = "subset-selection"
    source: ClassVar[str] = "Wang et al. 2016; Ye, Barg 2018; the sets by a block design: Park, Nam, Lee 2023"
    k: int = 2

    def prepare(self) -> None:
        self.inner  # noqa: B018  # checks k and the width of words

    def _fits(self, bits: int) -> bool:
        order, w = self._chosen
        return Translates(self.epsilon, k=order, w=w).word_bits == bits

    @property
    def _chosen(self) -> tuple[int, int]:
        if symbols(self.k).size > MAX_SYMBOLS:
            raise InputError(f"k is {self.k}; subset selection takes at most {MAX_SYMBOLS} symbols")
        return best_blocks(nano_epsilon(self.epsilon), self.k)

    @cached_property
    def inner(self) -> Translates:
        order, w = self._chosen
        return Translates(self.epsilon, word_bits=self.word_bits, k=order, w=w)

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @cached_property
    def _codes(self) -> Counts:
        """The code of each symbol under each multiplier, shape (multipliers, k)."""
        if self.inner.w == 1:
            return np.arange(self.k, dtype=np.int64)[None, :]
        return products(self.inner.k)[:, : self.k]

    def _multipliers(self, coins: Words) -> Counts:
        return (coins.astype(np.uint64) % np.uint64(len(self._codes))).astype(np.int64)

    def encode(self, values: Ints, coins: Words) -> Ints:
        return self._codes[self._multipliers(coins), values.astype(np.int64)]

    def empty(self) -> Tally:
        return Tally(np.zeros((len(self._codes), self.inner.k), dtype=np.int64))

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How many reported each translate under each multiplier, shape (multipliers, K). O(n + K^2)."""
        index = self._multipliers(cells) * self.inner.k + reports.astype(np.int64)
        return Tally(np.bincount(index, minlength=len(self._codes) * self.inner.k).reshape(len(self._codes), self.inner.k))

    def _support(self, tally: Tally) -> Floats:
        """How many of the reported sets hold each symbol, shape (k,)."""
        every = np.arange(self.inner.k)
        holds = self.inner.away(every[None, :], every[:, None]) < self.inner.w  # of each translate, the codes in it
        codes = tally.counts.astype(np.float64) @ holds.astype(np.float64)  # whole numbers below 2^53: exact
        support: Floats = np.take_along_axis(codes, self._codes, axis=1).sum(axis=0)
        return support

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,)."""
        n, blocks = tally.answered, self.inner
        p = blocks.w * blocks.held / blocks.total
        q = (blocks.w - p) / (blocks.k - 1)
        return Estimate.between((-q / (p - q), (1 - q) / (p - q)), (self._support(tally) / n - q) / (p - q), n)


def total_variance(growth: Fraction, order: int, w: int, k: int) -> Fraction:
    """n E||f^ - f||^2 of k symbols at the uniform law, exactly, with sets of w of `order` symbols."""
    p = w * growth / (w * growth + order - w)
    q = (w - p) / (order - 1)
    seen = q + (p - q) / k
    return k * seen * (1 - seen) / (p - q) ** 2


@lru_cache(maxsize=1024)
def best_blocks(nano: int, k: int) -> tuple[int, int]:
    """The order K and the set size w of least total variance at the uniform law: w = 1 and K = k, or a field and w next to K / (e^eps + 1)."""
    growth, order = Fraction(float(exp_epsilon(nano))), field_order(k)
    middle = int(order / (growth + 1))
    sizes = [(k, 1), *((order, w) for w in (middle, middle + 1) if 2 <= w < order)]
    return min(sizes, key=lambda size: total_variance(growth, size[0], size[1], k))


def field_order(k: int) -> int:
    """The least number >= k that is a prime or a power of two."""
    while not _binary(k) and any(k % part == 0 for part in range(2, int(k**0.5) + 1)):
        k += 1
    return k


@lru_cache(maxsize=8)
def products(order: int) -> Counts:
    """Row a is g^a times each element, for a generator g of the field's multiplicative group, shape (order - 1, order): any two elements' difference
    takes each value but 0 once."""
    powers = _powers(order)
    exponents = np.argsort(powers)  # of the elements 1, 2, ..
    rows = np.zeros((order - 1, order), dtype=np.int64)
    rows[:, 1:] = powers[(np.arange(order - 1)[:, None] + exponents) % (order - 1)]
    return rows


def _powers(order: int) -> Counts:
    """The powers of a generator, 1 first: of x modulo a primitive polynomial where the order is a power of two."""
    for tried in range(order + 1, 2 * order, 2) if _binary(order) else range(2, order):
        powers, last = [1], 1
        while True:
            last = min(2 * last, 2 * last ^ tried) if _binary(order) else last * tried % order
            if last == 1:
                break
            powers.append(last)
        if len(powers) == order - 1:
            return np.array(powers, dtype=np.int64)
    raise AssertionError("every finite field has a generator")
