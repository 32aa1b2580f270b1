"""Longitudinal local hashing: a hash for life, a lasting answer to each of its g codes, and a fresh response to that answer for every report."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from local_dp.arrays import Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import split_epsilon
from local_dp.noise import Draw, Noise
from local_dp.randomizers.frequencies.linear_hash import MAX_CELLS, LinearHash
from local_dp.randomizers.frequencies.local_hashing import LocalHashing, length_of
from local_dp.randomizers.randomizer import Work
from local_dp.randomizers.repeated.memoised import MemoisedGRR

MAX_CODES = 4  # which share the lasting half of a word


@dataclass(frozen=True, kw_only=True)
class OneCode(MemoisedGRR):
    """The two steps of one code. Each code has its own k-th part of the lasting half of a word, so lasting answers are independent."""

    name: ClassVar[str] = "loloha-code"

    @property
    def own_bits(self) -> int:
        """The bits that each code has for its lasting answer."""
        return self.word_bits // 2 // self.k

    @property
    def kinds(self) -> int:
        return 1 << self.own_bits

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Moves the part of the own code to the front."""
        word, half = words.dtype.type, self.word_bits // 2
        codes = values.astype(words.dtype)
        below = word(half) - word(self.own_bits) * (codes + word(1))
        own = ((words >> word(half)) >> below) & word(self.kinds - 1)
        lasting = own << word(half - self.own_bits)
        return super().respond(values, (lasting << word(half)) | (words & word(self.part - 1)), cells)


@dataclass(frozen=True, kw_only=True)
class LOLOHA(LocalHashing):
    """Hashes the symbol to one of `g` codes by a public row that a label keeps. Two steps of k-ary response report the code.

    Every code has an independent lasting answer, of epsilon / g; the second step is fresh for each report. Privacy: under one label `epsilon` for life, over
    all reports of values that go through all codes, against lives that change at the same times; epsilon / g for a value that stays, and `first` times that
    for one report. It does not hide when values change: between other lives, T reports lose `bounds.longitudinal.changing_loss`, which exceeds epsilon for
    large T. Utility: that of `OLH` with g codes at `first` epsilon / g: variance l (1 - l) / (n (p - q)^2). Cost: log2 g bits, one word. 2 <= g <= 4, and g
    <= k.
    """

    name: ClassVar[str] = "loloha"
    source: ClassVar[str] = "Arcolezi, Pinzon, Palamidessi, Gambs 2023; second step and hashes exact"
    work: ClassVar[Work] = "repeated surveys"
    g: int = 2
    first: float = 0.5

    def _fits(self, bits: int) -> bool:
        return False  # each step has half of a word

    @cached_property
    def hash(self) -> LinearHash:
        k = symbols(self.k).size
        check_whole("g", self.g, 2, MAX_CODES)
        if self.g == k:
            return LinearHash(k, k, 1)
        if self.g > k:
            raise InputError(f"g is {self.g}; give at most k = {k} codes")
        chosen = LinearHash(k, self.g, length_of(k, self.g))
        if chosen.rows * self.g > MAX_CELLS:
            raise InputError(f"{k} symbols are too many for hashes to {self.g}")
        return chosen

    @cached_property
    def inner(self) -> OneCode:
        return OneCode(split_epsilon(self.epsilon, self.hash.g), word_bits=self.word_bits, k=self.hash.g, first=self.first)

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        """Under a label the leading half of a word is the label's, and the rest is drawn for this ask of this round."""
        return self.inner.draw(noise, which, start, stop)
