"""Randomizers made of inner channels: several places, each reported independently, or one code of
the value under a public coin."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.randomizers.finite import FiniteChannel, in_blocks, report_law
from local_dp.randomizers.randomizer import NO_COIN, Evidence, Randomizer
from local_dp.tallies import Tally


@dataclass(frozen=True)
class Places(Randomizer):
    """A report of several places, each with a word of its own. A value is a symbol at each place,
    `code[v, j]` at place j."""

    evidence: ClassVar[Evidence] = "product"

    @cached_property
    @abstractmethod
    def code(self) -> Ints:
        """The symbol of each value at each place, shape (domain size, places)."""

    has_tally_law = True

    @property
    def places(self) -> int:
        return int(self.code.shape[1])

    @property
    def words(self) -> int:
        return self.places

    def _holders(self, value_counts: Mapping[int, int]) -> Counts:
        """How many clients hold each value, shape (domain size,)."""
        holders = np.zeros(self.domain.size, dtype=np.int64)
        holders[np.fromiter(value_counts, dtype=np.int64) - self.domain.low] = list(
            value_counts.values()
        )
        return holders


_CHUNK = 1 << 18  # clients behind a coin whose reports are drawn at a time
_ENTRIES = 1 << 16  # places at a time: their words stay in cache


@dataclass(frozen=True)
class PlaceVector(Places):
    """Reports at every place j, independently, the report of `inner` for the symbol code[v, j].

    A subclass gives `code`, symbols of shape (domain size, places), and `inner`, a channel of these
    symbols without a coin. It estimates from the counts of each report at each place. Privacy: the
    largest product over places of the channel's ratios, between any two values, computed exactly
    (`evidence.exact_ratio`). Cost: a word and a byte a place.
    """

    @cached_property
    @abstractmethod
    def inner(self) -> FiniteChannel:
        """The channel of one place, with at most 256 reports and words of the same width."""

    def check(self) -> None:
        check_built(self.domain, self.inner)

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return np.dtype((np.uint8, (self.places,)))

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        words = words.reshape(len(values), self.places)
        reports = np.empty((len(values), self.places), dtype=np.uint8)
        step = max(1, _ENTRIES // self.places)
        for first in range(0, len(values), step):
            some = slice(first, first + step)
            symbols = self.code[values[some].astype(np.int64) - self.domain.low]
            reports[some] = self.inner.respond(
                symbols.ravel(), words[some].ravel(), NO_COIN
            ).reshape(symbols.shape)
        return reports

    def possible(self, reports: Words) -> Bools:
        inside: Bools = reports < self.inner.alphabet
        return np.asarray(inside.all(axis=1))

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The count of each report at each place, shape (places, alphabet)."""
        counts = np.zeros((self.places, self.inner.alphabet), dtype=np.int64)
        size = self.places * self.inner.alphabet
        starts = np.arange(self.places) * self.inner.alphabet
        step = max(1, _ENTRIES // self.places)
        for first in range(0, len(reports), step):
            counts += np.bincount(
                (reports[first : first + step] + starts).ravel(), minlength=size
            ).reshape(counts.shape)
        return Tally(counts, len(reports))

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """Places are independent given the value, so the reports of one symbol at one place are
        multinomial."""
        holders = self._holders(value_counts)
        counts = self.empty().counts
        for symbol in range(self.inner.domain.size):
            counts += generator.multinomial(
                holders @ (self.code == symbol), report_law(self.inner, symbol)
            )
        return Tally(counts, int(holders.sum()))


_BATCH = 1 << 20  # bytes counted at a time
_FEW = 127  # rows that are unpacked and added in bytes, beside those that threes leave over


@dataclass(frozen=True)
class BitVector(Places):
    """Reports one bit for each place, independently: at place j, value v reports 1 with probability
    ones[code[v, j]] / 2^word_bits.

    A subclass gives `code`, small symbols of shape (domain size, places), and `ones`, the weight of
    a reported 1 for each symbol. It estimates from the number of ones at each place. Privacy: the
    largest product over places of the ratios of the two bits' weights, between any two values,
    computed exactly (`evidence.exact_ratio`). Cost: a word and a bit a place; places / 8 bytes a
    report.
    """

    @cached_property
    @abstractmethod
    def ones(self) -> tuple[int, ...]:
        """The weight of a reported 1 for each symbol, out of 2^word_bits."""

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return np.dtype((np.uint8, (-(-self.places // 8),)))

    @property
    def bits(self) -> int:
        return self.places

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        thresholds = np.array(self.ones, dtype=words.dtype)[
            self.code[values.astype(np.int64) - self.domain.low]
        ]
        # of a single place, words are a plain array
        return np.packbits(words.reshape(thresholds.shape) < thresholds, axis=1, bitorder="little")

    def ones_of(self, values: Ints) -> Words:
        """The weight of a 1 at each place, shape (values, places)."""
        symbols = self.code[values - self.domain.low]
        return np.asarray(np.array(self.ones, dtype=np.uint64)[symbols])

    def shares_of(self, values: Ints) -> Floats:
        """The probability of a 1 at each place, shape (values, places)."""
        return self.ones_of(values) / 2.0**self.word_bits

    def possible(self, reports: Words) -> Bools:
        """The bits that fill the last byte are zero."""
        bits = np.unpackbits(reports, axis=1, count=self.places, bitorder="little")
        return np.asarray((np.packbits(bits, axis=1, bitorder="little") == reports).all(axis=1))

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How many reported 1 at each place, shape (places,)."""
        sums = np.zeros(8 * reports.shape[1], dtype=np.int64)
        step = max(1, _BATCH // reports.shape[1])
        for first in range(0, len(reports), step):
            sums += ones_at(reports[first : first + step])
        return Tally(sums[: self.places], len(reports))

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """Bits are independent given the value, so the ones of one symbol at one place are
        binomial."""
        holders = self._holders(value_counts)
        sums = np.zeros(self.places, dtype=np.int64)
        for symbol, ones in enumerate(self.ones):
            sums += generator.binomial(holders @ (self.code == symbol), ones / self.total)
        return Tally(sums, int(holders.sum()))


def ones_at(rows: Words) -> Counts:
    """The number of packed rows with a 1 at each place, shape (n, bytes) to (8 * bytes,), by
    carry-save adders on columns of rows: seven times as fast.

    Three rows of one weight become one of that weight and one of twice the weight, until few are
    left. Source: Warren, Hacker's Delight, 5-1.
    """
    sums, weight = np.zeros(8 * rows.shape[1], dtype=np.int64), 1
    while len(rows):
        carries, over = [rows[:0]], []
        while len(rows) > _FEW:
            third = len(rows) // 3
            a = rows[:third]
            b = rows[third : 2 * third]
            c = rows[2 * third : 3 * third]
            odd, both = a ^ b, a & b
            both |= odd & c
            odd ^= c
            carries.append(both)
            over.append(rows[3 * third :])
            rows = odd
        few = np.concatenate([rows, *over])
        sums += weight * np.unpackbits(few, axis=1, bitorder="little").sum(
            axis=0, dtype=np.uint8
        ).astype(np.int64)
        rows, weight = np.concatenate(carries), 2 * weight
    return sums


@dataclass(frozen=True)
class Coined(Randomizer):
    """Reports a report of `inner` about a function of the value and of the client's 64-bit public
    coin."""

    @cached_property
    @abstractmethod
    def inner(self) -> Randomizer:
        """The randomizer that makes the report; it uses no coin."""

    def _fits(self, bits: int) -> bool:
        return self.inner.word_bits <= bits  # built without a width, it picks its own

    def check(self) -> None:
        check_built(self.domain, self.inner)

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return self.inner.report_dtype

    @property
    def bits(self) -> int:
        return self.inner.bits

    @property
    def words(self) -> int:
        return self.inner.words

    @property
    def uses_coins(self) -> bool:
        return True


@dataclass(frozen=True)
class PerCoin(Coined):
    """Encodes the value by the client's 64-bit public coin, for example as a hash under that seed,
    and randomizes the code by `inner`.

    A subclass gives `inner`, `encode`, the tally and the estimate. Privacy: for every coin the
    report is one of `inner`'s, whose loss is enumerated. Codes are clipped to the domain of
    `inner`, so no coin can do more.
    """

    evidence: ClassVar[Evidence] = "per coin"

    @cached_property
    @abstractmethod
    def inner(self) -> FiniteChannel | BitVector | PlaceVector:
        """The channel of the codes, or a vector of bits; it uses no coin."""

    @abstractmethod
    def encode(self, values: Ints, coins: Words) -> Ints:
        """The code of each value under each coin, elementwise under broadcasting."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return in_blocks(self._respond, values, words, cells)

    def _respond(self, values: Ints, words: Words, cells: Words) -> Words:
        codes = self.inner.domain.clip(self.encode(values, cells))
        return self.inner.respond(codes, words, NO_COIN)

    def possible(self, reports: Words) -> Bools:
        return self.inner.possible(reports)


@dataclass(frozen=True)
class WholeCoin(PerCoin):
    """One whose tally has a form of its own."""

    has_tally_law = True

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """Report by report, with random coins and words, a chunk at a time: O(n)."""
        ends, tally = np.cumsum([*value_counts.values()]), self.empty()
        values = np.fromiter(value_counts, dtype=np.int64)
        for first in range(0, n := int(ends[-1]), _CHUNK):
            places = np.searchsorted(ends, np.arange(first, min(first + _CHUNK, n)), side="right")
            coins, words = generator.integers(0, 1 << 64, (2, len(places)), dtype=np.uint64)
            words = (words >> np.uint64(64 - self.word_bits)).astype(f"u{self.width // 8}")
            tally += self.tally(self.respond(values[places], words, coins), coins)
        return tally
