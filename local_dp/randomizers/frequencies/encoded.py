"""What oracles share whose public coin encodes the symbol to one of a few codes, for k-ary randomized response."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain, symbols
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.in_blocks import in_blocks
from local_dp.randomizers.per_coin import PerCoin


@dataclass(frozen=True)
class EncodedGRR(PerCoin, FiniteOracle):
    """Reports by randomized response the code of the own symbol in a public row: one of `alphabet` codes, in one of `cells` rows, of any number.

    A 64-bit coin picks each row with probability 1 / cells up to 2^-52. The tally is a table of rows and codes, decoded once for all reports.
    """

    k: int = 2

    @abstractmethod
    def encode(self, values: Ints, coins: Ints) -> Ints:
        """The code of each value in each row, elementwise under broadcasting."""

    def _fits(self, bits: int) -> bool:
        return GRR(self.epsilon, k=self.alphabet).word_bits == bits

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=self.alphabet)

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @property
    def report_dtype(self) -> "np.dtype[np.unsignedinteger]":
        return self.inner.report_dtype

    @property
    def uses_coins(self) -> bool:
        return self.cells > 1

    def cells_of(self, coins: Words) -> Words:
        """The row of each coin: its remainder."""
        return in_blocks(self._rows, coins)

    def _rows(self, coins: Words) -> Words:
        quotient = (coins // np.uint64(self.cells)).astype(np.uint16)  # a division is faster than a remainder, and the low bits tell the difference
        return coins.astype(np.uint16) - quotient * np.uint16(self.cells)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return self.inner.weight(reports, self.encode(values, cells), cells)
