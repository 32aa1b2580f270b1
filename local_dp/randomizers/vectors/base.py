"""What randomizers of a vector behind a public coin have in common: the lattice, and sums of what reports stand for."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Vectors, vectors
from local_dp.randomizers.per_coin import PerCoin
from local_dp.tallies import Tally

BLOCK = 1 << 10  # clients at a time: what their coins are made into stays in cache


@dataclass(frozen=True, kw_only=True)
class VectorCoin(PerCoin):
    """A vector on the lattice of 2 `steps` steps a coordinate, whose code under a client's public coin goes through a small channel.

    A subclass says in `ball` which vectors, gives `inner`, the code of some clients, `code_of`, and whole numbers to be added up for their reports, `added_of`.
    """

    ball: ClassVar[Literal["cube", "ball"]]
    d: int = 4
    steps: int = 1 << 10

    @cached_property
    def domain(self) -> Vectors:
        return vectors(self.ball, self.d, self.steps)

    @abstractmethod
    def code_of(self, values: Ints, coins: Words) -> Ints:
        """The codes of rows of shape (n, d) under n coins, shape (n,)."""

    @abstractmethod
    def added_of(self, reports: Ints, coins: Words) -> Ints:
        """What n reports add up to, in whole numbers, of the shape of the tally."""

    def encode(self, values: Ints, coins: Words) -> Ints:
        rows = values.astype(np.int64, copy=False)
        codes = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), BLOCK):
            some = slice(first, first + BLOCK)
            codes[some] = self.code_of(rows[some], coins[some])
        return codes

    def tally(self, reports: Words, cells: Words) -> Tally:
        sums = self.empty().counts
        for first in range(0, len(reports), BLOCK):
            some = slice(first, first + BLOCK)
            sums = sums + self.added_of(reports[some].astype(np.int64), cells[some])
        return Tally(sums, len(reports))
