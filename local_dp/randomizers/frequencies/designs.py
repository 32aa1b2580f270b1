"""Oracles by block designs: a report names a set of symbols; sets have one size, and every two symbols lie together in equally many."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.finite import FiniteChannel, ceil_fraction, too_narrow
from local_dp.randomizers.frequencies.base import DirectOracle, FiniteOracle, OfSymbols
from local_dp.randomizers.places import PerCoin
from local_dp.tallies import Tally

_BLOCK = 1 << 22  # places looked up at a time


@dataclass(frozen=True)
class Design(DirectOracle, OfSymbols):
    """Estimates from the number of reported sets that contain each symbol: the client's lies in its set with probability p, each other one with q."""

    @property
    @abstractmethod
    def sets(self) -> tuple[int, int]:
        """K and w: a set has w of K points, k of which are the symbols."""

    @property
    @abstractmethod
    def own_chance(self) -> float:
        """p."""

    @property
    def chances(self) -> tuple[float, float]:
        (points, size), p = self.sets, self.own_chance
        return p, (size - p) / (points - 1)

    @abstractmethod
    def own(self, values: Ints) -> Counts:
        """The places, in a flattened tally, of the reports whose set contains each value, shape (n,) to (n, the same number for every value)."""

    @property
    @abstractmethod
    def blind(self) -> float:
        """The probability of a report that is uniform on all; else it is uniform on the value's own."""

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """As `FiniteChannel.draw_tally`: the blind reports of all clients together, and the others among each value's own reports."""
        values = np.array([value for value, count in value_counts.items() if count], dtype=np.int64)
        n = np.array([count for count in value_counts.values() if count], dtype=np.int64)
        seeing = generator.binomial(n, 1 - self.blind)
        size = self.cells * self.alphabet
        counts = generator.multinomial(int((n - seeing).sum()), np.full(size, 1 / size))
        for first in range(0, len(values), step := max(1, _BLOCK // size)):
            places = self.own(values[first : first + step])
            drawn = generator.multinomial(seeing[first : first + step], np.full(places.shape[1], 1 / places.shape[1]))
            counts += np.bincount(places.ravel(), weights=drawn.ravel(), minlength=size).astype(np.int64)  # whole numbers below 2^53: exact
        return Tally(counts.reshape(self.cells, self.alphabet))


@dataclass(frozen=True)
class CodedOracle(PerCoin, FiniteOracle, OfSymbols):
    """Reports the code of the symbol in a public row, one of `cells`, by the channel `inner`. The tally is a table of rows and codes.

    A 64-bit coin picks each row with probability 1 / cells up to 2^-52.
    """

    @cached_property
    @abstractmethod
    def inner(self) -> FiniteChannel:
        """The channel of the codes."""

    @abstractmethod
    def encode(self, values: Ints, coins: Ints) -> Ints:
        """The code of each value in each row, elementwise under broadcasting."""

    @property
    def report_dtype(self) -> "np.dtype[np.unsignedinteger]":
        return self.inner.report_dtype

    @property
    def uses_coins(self) -> bool:
        return self.cells > 1

    def cells_of(self, coins: Words) -> Words:
        """The row of each coin: its remainder, of which the low bits are enough."""
        quotient = (coins // np.uint64(self.cells)).astype(np.uint16)
        return coins.astype(np.uint16) - quotient * np.uint16(self.cells)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return self.inner.weight(reports, self.encode(values, cells), cells)


@dataclass(frozen=True)
class TwoWeights(FiniteChannel):
    """Reports one of A: each of the w that are the value's own with weight T, each other one with weight s.

    One of the others takes the remainder, fewer than w words of 64 bits, which no estimate shows. Privacy: T / s <= e^eps, s the least that allows it.
    """

    @property
    @abstractmethod
    def w(self) -> int:
        """How many reports are a value's own."""

    @abstractmethod
    def report(self, values: Ints, ranks: Ints) -> Ints:
        """The own reports of a value for the ranks 0..w - 1, the others for w..A - 1, elementwise under broadcasting."""

    @abstractmethod
    def rank(self, values: Ints, reports: Ints) -> Ints:
        """The inverse of `report` in its second argument."""

    def _steps(self, bits: int) -> tuple[int, int]:
        """T and s: s is the least whole number for which T = (2^bits - (A - w) s) / w, rounded down, is at most e^eps s."""
        other = ceil_fraction(2**bits / (self.w * exp_epsilon(nano_epsilon(self.epsilon)) + self.alphabet - self.w))
        return (2**bits - (self.alphabet - self.w) * other) // self.w, other

    def prepare(self) -> None:
        if self.held <= self.other + self._rest:
            raise too_narrow(self)

    def own(self, values: Ints) -> Counts:
        """The own reports of each value, shape (n, w)."""
        return self.report(values[:, None], np.arange(self.w)).astype(np.int64)

    @property
    def own_chance(self) -> float:
        """The probability of a report that is the value's own."""
        return self.w * self.held / self.total

    @property
    def blind(self) -> float:
        """The probability of a report that is as likely any as any other, up to the remainder."""
        return self.alphabet * self.other / self.total

    @cached_property
    def _weights(self) -> tuple[int, int]:
        return self._steps(self.word_bits)

    @property
    def held(self) -> int:
        """The weight T of each own report."""
        return self._weights[0]

    @property
    def other(self) -> int:
        """The weight s of each other one."""
        return self._weights[1]

    @property
    def _rest(self) -> int:
        return self.total - self.w * self.held - (self.alphabet - self.w) * self.other

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Splits the word's range into w steps of T and A - w of s, the last one longer by the remainder; the step is the report's rank."""
        word = words.dtype.type
        inside = words // word(self.held)
        beyond = np.minimum(words - np.minimum(words, word(self.w * self.held)), word(self.total - 1 - self.w * self.held)) // word(self.other)
        step = np.where(inside < self.w, inside, self.w + np.minimum(beyond, word(self.alphabet - self.w - 1))).astype(np.int64)
        return self.report(values.astype(np.int64), step).astype(self.report_dtype)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        rank = self.rank(np.asarray(values, dtype=np.int64), np.asarray(reports, dtype=np.int64))
        outside = np.where(rank == self.alphabet - 1, np.uint64(self.other + self._rest), np.uint64(self.other))
        return np.where(rank < self.w, np.uint64(self.held), outside)
