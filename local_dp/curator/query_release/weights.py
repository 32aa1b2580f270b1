"""Weights of all 2^d rows of a binary table, moved by what is known of their marginals: post-processing, and therefore floats."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_whole
from local_dp.cube import places_of
from local_dp.curator.marginals.base import DENSE, Marginals


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic table of d binary columns: `weights`, shape (2^d,), how many records equal each row, as fractions of a record; their sum is n."""

    d: int
    weights: Floats

    def answers(self, workload: Marginals) -> Floats:
        """The cells of all marginals, shape (cells,)."""
        return workload.of_histogram(self.weights)

    def rows(self, count: int, generator: np.random.Generator) -> Counts:
        """A sample of `count` rows, as whole numbers of d bits: post-processing, in floats."""
        return generator.choice(len(self.weights), count, p=self.weights / self.weights.sum())


@dataclass(frozen=True)
class Columns:
    """Some columns of d, and which cell of their marginal each row falls into: by the row's high bits and its low bits, as a matrix of weights has them."""

    d: int
    mask: int

    @property
    def low(self) -> int:
        """How many of the columns index the matrix's columns."""
        return self.d // 2

    @cached_property
    def high_cells(self) -> Counts:
        """Of each row of the matrix."""
        return _cells(self.mask >> self.low, self.d - self.low)

    @cached_property
    def low_cells(self) -> Counts:
        """Of each column of the matrix."""
        return _cells(self.mask & ((1 << self.low) - 1), self.low)

    def spread(self, cells: Floats) -> Floats:
        """A number for each cell as one for each row, shaped as the matrix."""
        return np.asarray(cells.reshape(-1, 1 << (self.mask & ((1 << self.low) - 1)).bit_count())[:, self.low_cells][self.high_cells])


def _cells(mask: int, bits: int) -> Counts:
    rows = np.arange(1 << bits)
    cells = np.zeros(1 << bits, dtype=np.int64)
    for place, column in enumerate(places_of(mask)):
        cells |= (rows >> column & 1) << place
    return cells


class Weights:
    """Positive weights of sum 1 of all 2^d rows, uniform at first. Moving them by one marginal costs two passes: a third of a millisecond at d = 17."""

    def __init__(self, d: int) -> None:
        check_whole("d", d, 1, DENSE)
        self.d = d
        self._matrix = np.full((1 << (d - d // 2), 1 << (d // 2)), 0.5**d)

    @property
    def flat(self) -> Floats:
        """By row, shape (2^d,)."""
        return self._matrix.ravel()

    def marginal(self, columns: Columns) -> Floats:
        """The share of each cell: the two halves that differ in a column are added, the highest first, so that all passes together read the table twice."""
        left = self.flat
        for column in reversed(range(self.d)):
            if not columns.mask >> column & 1:
                pairs = left.reshape(-1, 2, 1 << column)
                left = pairs[:, 0] + pairs[:, 1]
        return left.reshape(-1)

    def move(self, columns: Columns, shares: Floats) -> None:
        """Multiplicative weights: each row's weight times e^(what its cell's share should be, less what it is)."""
        self._matrix *= columns.spread(np.exp(shares - self.marginal(columns)))

    def normalise(self) -> None:
        """To a sum of 1."""
        self._matrix /= self._matrix.sum()
