"""Randomizers whose report is a vector of independent bits, packed: the product of small enumerated channels."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Words
from local_dp.randomizers.places import Places
from local_dp.tallies import Tally

_BATCH = 1 << 20  # bytes counted at a time
_FEW = 127  # rows that are unpacked and added in bytes, beside those that threes leave over


@dataclass(frozen=True)
class BitVector(Places):
    """Reports one bit for each place, independently: at place j, value v reports 1 with probability ones[code[v, j]] / 2^word_bits.

    A subclass gives `code`, small symbols of shape (domain size, places), and `ones`, the weight of a reported 1 for each symbol, and estimates from the
    tally: for each place the number of ones. Privacy: the loss is the largest product over places of the ratios of the two bits' weights, between any two
    values; it is computed exactly from `code` and `ones` (`evidence.exact_ratio`). Cost: a word and a bit a place; places / 8 bytes a report.
    """

    @cached_property
    @abstractmethod
    def ones(self) -> tuple[int, ...]:
        """The weight of a reported 1 for each symbol, out of 2^word_bits."""

    @property
    def total(self) -> int:
        """2^word_bits, the weight of certainty."""
        return 1 << self.word_bits

    @property
    def report_dtype(self) -> "np.dtype[np.generic]":
        return np.dtype((np.uint8, (-(-self.places // 8),)))

    @property
    def bits(self) -> int:
        return self.places

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        thresholds = np.array(self.ones, dtype=words.dtype)[self.code[values.astype(np.int64) - self.domain.low]]
        return np.packbits(words.reshape(thresholds.shape) < thresholds, axis=1, bitorder="little")  # of a single place, words are a plain array

    def _unpacked(self, reports: Words) -> Words:
        return np.unpackbits(reports, axis=1, count=self.places, bitorder="little")

    def possible(self, reports: Words) -> Bools:
        """The bits that fill the last byte are zero."""
        possible: Bools = (np.packbits(self._unpacked(reports), axis=1, bitorder="little") == reports).all(axis=1)
        return possible

    def empty(self) -> Tally:
        return Tally(np.zeros(self.places, dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """How many reported 1 at each place, shape (places,)."""
        sums, step = np.zeros(8 * reports.shape[1], dtype=np.int64), max(1, _BATCH // reports.shape[1])
        for first in range(0, len(reports), step):
            sums += ones_at(reports[first : first + step])
        return Tally(sums[: self.places], len(reports))

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """A tally with the law of respond-then-tally for a cohort holding `value_counts[v]` clients of value v; cost independent of n.

        Given the values all bits are independent, so the ones that the holders of one symbol report at one place are binomial.
        """
        holders = np.zeros(self.domain.size, dtype=np.int64)
        holders[np.fromiter(value_counts, dtype=np.int64) - self.domain.low] = list(value_counts.values())
        sums = np.zeros(self.places, dtype=np.int64)
        for symbol, ones in enumerate(self.ones):
            sums += generator.binomial(holders @ (self.code == symbol), ones / self.total)
        return Tally(sums, int(holders.sum()))


def ones_at(rows: Words) -> Counts:
    """How many of the packed rows have a 1 at each place, shape (n, bytes) to (8 * bytes,): carry-save adders on whole columns of rows at once.

    Three rows of one weight become one of that weight and one of twice the weight, until few are left; about n of these steps in all.
    Source: Harley's and Seal's population count (Warren, Hacker's Delight, 5-1).
    """
    sums, weight = np.zeros(8 * rows.shape[1], dtype=np.int64), 1
    while len(rows):
        carried, over = [rows[:0]], []
        while len(rows) > _FEW:
            third = len(rows) // 3
            a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            odd, both = a ^ b, a & b
            both |= odd & c
            odd ^= c
            carried.append(both)
            over.append(rows[3 * third :])
            rows = odd
        few = np.concatenate([rows, *over])
        sums += weight * np.unpackbits(few, axis=1, bitorder="little").sum(axis=0, dtype=np.uint8).astype(np.int64)
        rows, weight = np.concatenate(carried), 2 * weight
    return sums
