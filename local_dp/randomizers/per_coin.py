"""Randomizers that encode the value by a whole public coin, before a small channel randomizes the code: private whatever the coin."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.checks import check_built
from local_dp.randomizers.finite import FiniteChannel, in_blocks
from local_dp.randomizers.places import BitVector, PlaceVector
from local_dp.randomizers.randomizer import NO_COIN, Evidence, Randomizer


@dataclass(frozen=True)
class Coined(Randomizer):
    """Reports a report of `inner` about a function of the value and of the client's 64-bit public coin."""

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
    """Encodes the value by the client's 64-bit public coin, for example as a hash under that seed, and randomizes the code by `inner`.

    A subclass gives `inner`, `encode`, the tally and the estimate. Privacy: for every coin the report is one of `inner`'s, whose loss is enumerated. Codes
    are clipped to the domain of `inner`, so no coin can do more.
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
