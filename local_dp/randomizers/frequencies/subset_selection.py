"""Subset selection: a report is a set of w symbols, more often one that contains the client's
symbol; a public coin helps to draw it."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import loses_little
from local_dp.randomizers.frequencies.base import (
    CodedOracle,
    Design,
    EvenDesign,
    OfSymbols,
    TwoWeights,
)
from local_dp.tallies import Estimate, Tally

MAX_SYMBOLS = 1024  # a tally has a count for each multiplier and set, about k^2


def _binary(order: int) -> bool:
    return order.bit_count() == 1


def away(first: Ints, second: Ints, order: int) -> Ints:
    """first - second in the group of this order, elementwise: its own inverse in the second
    argument."""
    return first ^ second if _binary(order) else (first - second) % order


@dataclass(frozen=True, kw_only=True)
class Translates(TwoWeights, OfSymbols):
    """Reports one of the k translates of the block {0, .., w - 1} in a group of order k: its own
    are those that contain the code.

    The group is addition modulo k, or of bits where k is a power of two. Privacy: T / s <= e^eps
    (`TwoWeights`). Cost: log2 k bits. It estimates nothing by itself; `SubsetSelection` estimates
    under its coin.
    """

    name = "translates"
    source = "Park, Nam, Lee 2023 (block designs)"
    w: int = 1

    def _fits(self, bits: int) -> bool:
        self.check()
        own, other = self._steps(bits)
        return own > other and loses_little(own, other, self.nano)

    def check(self) -> None:
        super().check()
        check_whole("w", self.w, 1, self.k - 1)

    @property
    def alphabet(self) -> int:
        return self.k

    def report(self, values: Ints, ranks: Ints) -> Ints:
        """The rank is the code's place in the translate."""
        return away(values, ranks, self.k)

    def rank(self, values: Ints, reports: Ints) -> Ints:
        return away(values, reports, self.k)

    def estimate(self, tally: Tally) -> Estimate:
        raise InputError(
            "translates of one block do not tell the codes' shares; ask with subset-selection"
        )


@dataclass(frozen=True, kw_only=True)
class PermutedSets(CodedOracle, Design):
    """Reports a set of codes by `inner`; the coin gives the code of each symbol. Utility: `Design`,
    where two symbols share equally many sets."""

    @cached_property
    @abstractmethod
    def codes(self) -> Counts:
        """The code of each symbol under each coin, shape (cells, k)."""

    @cached_property
    @abstractmethod
    def holds(self) -> Floats:
        """Which set, shape (alphabet, codes), holds which code."""

    @property
    def alphabet(self) -> int:
        return self.inner.alphabet

    @property
    def cells(self) -> int:
        """How many codes a symbol may have."""
        return len(self.codes)

    def encode(self, values: Ints, coins: Ints) -> Ints:
        return self.codes[coins.astype(np.int64), values.astype(np.int64)]

    def support(self, counts: Counts) -> Counts:
        codes = counts.astype(np.float64) @ self.holds  # whole numbers below 2^53: exact
        counts_of = np.take_along_axis(
            codes, np.broadcast_to(self.codes, (*codes.shape[:-1], self.k)), axis=-1
        )
        return np.asarray(counts_of.sum(axis=-2).astype(np.int64))

    def gathered(self, weights: Floats) -> Floats:
        of_codes = np.zeros((len(weights), self.cells, self.holds.shape[1]))
        of_codes[:, np.arange(self.cells)[:, None], self.codes] = weights[:, None, :]
        return of_codes @ self.holds.T


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PermutedSets, EvenDesign):
    """Reports a set of w of k symbols: each set that contains the client's symbol e^eps times as
    likely as each other one.

    The coin permutes the symbols: it multiplies in a finite field, or for w = 2 picks a cycle. The
    report names a translate of {0, .., w - 1}. Over the coins every two symbols lie in equally many
    sets, as for uniformly random sets. The order K is k for sets of one or two, else the least
    prime or power of two from k on; for w = 1 there is no coin, and it is k-ary response. Privacy:
    T / s <= e^eps for every coin. Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l
    = q + f (p - q), p = w T / 2^m, q = (w - p) / (K - 1) (`bounds.frequencies.subset_variance`). At
    the uniform law their sum is the least of all unbiased estimates where w <= 2 or k is a prime or
    a power of two (limits 2). Elsewhere it is at most 7.9 % more at k = 6, 6.1 % at k = 9, 4 % at
    other k. Cost: log2 K bits, one word; decoding O(n + K^3). 2 <= k <= 1024.
    """

    name = "subset-selection"
    summary = "Reports a random set of symbols, likely with the client's"
    source = "Wang et al. 2016; Ye, Barg 2018; the sets by a block design: Park, Nam, Lee 2023"

    @cached_property
    def inner(self) -> Translates:
        if symbols(self.k).size > MAX_SYMBOLS:
            raise InputError(f"k is {self.k}; subset selection takes at most {MAX_SYMBOLS} symbols")
        order, w = best_blocks(self.nano, self.k)
        return Translates(self.epsilon, word_bits=self.word_bits, k=order, w=w)

    @cached_property
    def codes(self) -> Counts:
        if self.inner.w == 1:
            return np.arange(self.k, dtype=np.int64)[None, :]
        order = self.inner.k
        return products(order)[:, : self.k] if is_field(order) else cycles(order)

    @property
    def own_chance(self) -> float:
        return self.inner.own_chance

    @property
    def sets(self) -> tuple[int, int]:
        return self.inner.k, self.inner.w

    @property
    def blind(self) -> float:
        return self.inner.blind

    def own(self, values: Ints) -> Counts:
        codes = self.codes[:, values.astype(np.int64)].T  # value, multiplier
        sets = self.inner.own(codes.ravel()).reshape(len(values), self.cells, self.inner.w)
        return (sets + self.alphabet * np.arange(self.cells)[:, None]).reshape(len(values), -1)

    @cached_property
    def holds(self) -> Floats:
        every = np.arange(self.inner.k)
        return (away(every[None, :], every[:, None], self.inner.k) < self.inner.w).astype(
            np.float64
        )


def total_variance(growth: Fraction, order: int, w: int, k: int) -> Fraction:
    """n E||f^ - f||^2 of k symbols at the uniform law, exactly, with sets of w of `order`
    symbols."""
    p = w * growth / (w * growth + order - w)
    q = (w - p) / (order - 1)
    chance = q + (p - q) / k
    return k * chance * (1 - chance) / (p - q) ** 2


@lru_cache(maxsize=1024)
def best_blocks(nano: int, k: int) -> tuple[int, int]:
    """The order K and the set size w of least total variance at the uniform law: K = k and w <= 2,
    or a field and w next to K / (e^eps + 1)."""
    growth, order = Fraction(float(exp_epsilon(nano))), field_order(k)
    middle = int(order / (growth + 1))
    sizes = [
        (k, 1),
        *([(k, 2)] if order > k else []),
        *((order, w) for w in (middle, middle + 1) if 2 <= w < order),
    ]
    return min(sizes, key=lambda size: total_variance(growth, size[0], size[1], k))


def is_field(order: int) -> bool:
    """True if it is a prime or a power of two."""
    return _binary(order) or all(order % part for part in range(2, int(order**0.5) + 1))


def field_order(k: int) -> int:
    """The least number >= k that is a prime or a power of two."""
    return next(order for order in count(k) if is_field(order))


@lru_cache(maxsize=8)
def products(order: int) -> Counts:
    """Row a is g^a times each element, g a generator of the field's nonzero elements, shape (order
    - 1, order)."""
    powers = _powers(order)
    exponents = np.argsort(powers)  # of the elements 1, 2, ..
    rows = np.zeros((order - 1, order), dtype=np.int64)
    rows[:, 1:] = powers[(np.arange(order - 1)[:, None] + exponents) % (order - 1)]
    return rows


@lru_cache(maxsize=8)
def cycles(k: int) -> Counts:
    """The places of the k symbols on k - 1 cycles through all of them, shape (k - 1, k): every two
    symbols are next to each other on exactly two cycles.

    The cycle r visits k - 1, then r, r + 1, r - 1, r + 2, r - 2, .. modulo k - 1.
    """
    steps = np.arange(k - 1)
    zigzag = np.where(steps % 2 == 1, (steps + 1) // 2, -(steps // 2))
    places = np.zeros((k - 1, k), dtype=np.int64)
    np.put_along_axis(places, (steps[:, None] + zigzag) % (k - 1), steps[None, :] + 1, axis=1)
    return places


def _powers(order: int) -> Counts:
    """The powers of a generator, 1 first: of x modulo a primitive polynomial where the order is a
    power of two."""
    for candidate in range(order + 1, 2 * order, 2) if _binary(order) else range(2, order):
        powers, last = [1], 1
        while True:
            last = (
                min(2 * last, 2 * last ^ candidate) if _binary(order) else last * candidate % order
            )
            if last == 1:
                break
            powers.append(last)
        if len(powers) == order - 1:
            return np.array(powers, dtype=np.int64)
    raise AssertionError("every finite field has a generator")
