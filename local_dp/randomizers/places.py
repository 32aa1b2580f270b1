"""Randomizers that report at several places, independently: what their kinds have in common."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.checks import check_built
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.randomizer import NO_COIN, Evidence, Randomizer
from local_dp.tallies import Tally


@dataclass(frozen=True)
class Places(Randomizer):
    """A report is of several places, each with a word of its own: a value is a symbol at each of them, `code[v, j]` at place j."""

    evidence: ClassVar[Evidence] = "product"

    @cached_property
    @abstractmethod
    def code(self) -> Ints:
        """The symbol of each value at each place, shape (domain size, places)."""

    @property
    def places(self) -> int:
        """How many there are."""
        return int(self.code.shape[1])

    @property
    def words(self) -> int:
        return self.places


_ENTRIES = 1 << 16  # places at a time: their words stay in cache


@dataclass(frozen=True)
class PlaceVector(Places):
    """Reports at every place, independently, what `inner` reports of the symbol that the value has there: code[v, j] at place j.

    A subclass gives `code`, symbols of shape (domain size, places), and `inner`, a channel of these symbols without a coin, and estimates from the tally: for
    each place the count of each report. Privacy: the loss is the largest product over places of the channel's ratios, between any two values; it is computed
    exactly from `code` and the channel (`evidence.exact_ratio`). Cost: a word and a byte a place.
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
        words, reports = words.reshape(len(values), self.places), np.empty((len(values), self.places), dtype=np.uint8)
        step = max(1, _ENTRIES // self.places)
        for first in range(0, len(values), step):
            some = slice(first, first + step)
            symbols = self.code[values[some].astype(np.int64) - self.domain.low]
            reports[some] = self.inner.respond(symbols.ravel(), words[some].ravel(), NO_COIN).reshape(symbols.shape)
        return reports

    def possible(self, reports: Words) -> Bools:
        inside: Bools = reports < self.inner.alphabet
        return np.asarray(inside.all(axis=1))

    def empty(self) -> Tally:
        return Tally(np.zeros((self.places, self.inner.alphabet), dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The count of each report at each place, shape (places, alphabet)."""
        counts, size = self.empty().counts, self.places * self.inner.alphabet
        starts, step = np.arange(self.places) * self.inner.alphabet, max(1, _ENTRIES // self.places)
        for first in range(0, len(reports), step):
            counts += np.bincount((reports[first : first + step] + starts).ravel(), minlength=size).reshape(counts.shape)
        return Tally(counts, len(reports))

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """A tally with the law of respond-then-tally for a cohort holding `value_counts[v]` clients of value v; cost independent of n.

        Given the values all places are independent, so the reports that the holders of one symbol make at one place are multinomial.
        """
        holders = np.zeros(self.domain.size, dtype=np.int64)
        holders[np.fromiter(value_counts, dtype=np.int64) - self.domain.low] = list(value_counts.values())
        counts = self.empty().counts
        for symbol in range(self.inner.domain.size):
            counts += generator.multinomial(holders @ (self.code == symbol), report_law(self.inner, symbol))
        return Tally(counts, int(holders.sum()))
