"""Binary tables, workloads of marginals, exact answers by characters, and errors of estimates."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Ints, Words
from local_dp.checks import check_whole
from local_dp.cube import parity, places_of, walsh_hadamard
from local_dp.errors import InputError

DENSE = 22  # columns up to which a table is counted as a histogram of all 2^d rows
_WORD = 64
_MOST_WAYS = 16  # columns of one marginal
_MOST_CELLS = 1 << 24
_BLOCK = 1 << 20  # rows at a time


@dataclass(frozen=True, eq=False)
class BinaryTable:
    """n records of d <= 64 columns of 0 and 1: `rows`, shape (n,), words whose bit c is column c. n
    is public, records are replaced."""

    d: int
    rows: Words

    def __post_init__(self) -> None:
        check_whole("d", self.d, 1, _WORD)
        words = self.rows.ndim == 1 and self.rows.dtype == np.uint64
        if not words or np.any(self.rows >> np.uint64(self.d)):
            raise InputError(
                f"some row is no word of {self.d} bits; give one number from 0 to 2^{self.d} - 1 "
                "for each record"
            )

    @classmethod
    def of(cls, columns: Ints | Bools) -> Self:
        """From a matrix of 0 and 1, shape (n, d). Raises InputError for anything else."""
        bits = np.asarray(columns)
        matrix = bits.ndim == 2 and 1 <= bits.shape[1] <= _WORD
        if not matrix or not np.all((bits == 0) | (bits == 1)):
            raise InputError(
                f"a binary table has 1 to {_WORD} columns of 0 and 1; this has shape "
                f"{bits.shape}, or other values"
            )
        rows = np.zeros(len(bits), dtype=np.uint64)
        for column in range(bits.shape[1]):
            rows |= bits[:, column].astype(np.uint64) << np.uint64(column)
        return cls(bits.shape[1], rows)

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def bits(self) -> Ints:
        """Shape (n, d), of 0 and 1."""
        return (self.rows[:, None] >> np.arange(self.d, dtype=np.uint64) & 1).astype(np.int8)

    @cached_property
    def histogram(self) -> Counts:
        """How many records equal each row, shape (2^d,). Raises InputError beyond 22 columns."""
        if self.d > DENSE:
            raise InputError(
                f"there are {self.d} columns; a histogram of all 2^d rows takes up to {DENSE}"
            )
        return np.bincount(self.rows.view(np.int64), minlength=1 << self.d)

    @cached_property
    def pair_sums(self) -> Counts:
        """The sums over all records of the characters of two columns, shape (d, d); n on the
        diagonal."""
        starts = range(0, self.size, _BLOCK)
        blocks = (BinaryTable(self.d, self.rows[start : start + _BLOCK]) for start in starts)
        return products(self.d, (1.0 - 2.0 * block.bits for block in blocks))

    def characters(self, masks: Words) -> Counts:
        """The sums over all records of (-1)^<A, x>, one for each mask A, exactly: from a histogram
        by one transform where that is cheaper."""
        if self.d <= DENSE and self.d << self.d < len(masks) * max(1, self.size):
            transform = walsh_hadamard(self.histogram.astype(np.float64))
            return transform[masks.astype(np.int64)].astype(np.int64)
        odd = np.zeros(len(masks), dtype=np.int64)
        for start in range(0, self.size, _BLOCK):
            block = self.rows[start : start + _BLOCK]
            odd += [int(np.count_nonzero(parity(block & mask))) for mask in masks]
        return self.size - 2 * odd


@dataclass(frozen=True)
class Marginals:
    """A workload: for each mask S of `masks` (bit c set: column c belongs to it) how many records
    have each value of the columns of S.

    Answers are one array of all `cells`, marginal after marginal, each in the order of its values;
    the lowest column is the lowest bit.
    """

    d: int
    masks: tuple[int, ...]

    def __post_init__(self) -> None:
        check_whole("d", self.d, 1, _WORD)
        for mask in self.masks:
            check_whole("a set of columns", mask, 0, (1 << self.d) - 1)
        if (
            not self.masks
            or max(map(int.bit_count, self.masks)) > _MOST_WAYS
            or self.cells > _MOST_CELLS
        ):
            raise InputError(
                f"the workload has {len(self.masks)} marginals; give 1 or more, of at most "
                f"{_MOST_WAYS} columns each and 2^24 cells in all"
            )

    @classmethod
    def ways(cls, d: int, t: int) -> Self:
        """All C(d, t) marginals of t columns, in lexicographic order of their columns."""
        check_whole("t", t, 1, min(d, _MOST_WAYS))
        return cls.of(d, combinations(range(d), t))

    @classmethod
    def of(cls, d: int, sets: Iterable[Iterable[int]]) -> Self:
        """The marginals of these sets of columns, numbered from 0."""
        return cls(d, tuple(int(mask) for mask in character_masks(sets)))

    @property
    def cells(self) -> int:
        return sum(1 << mask.bit_count() for mask in self.masks)

    @cached_property
    def starts(self) -> Counts:
        """Where each marginal's cells begin, and where the last one's end: shape (marginals +
        1,)."""
        return np.cumsum([0, *(1 << mask.bit_count() for mask in self.masks)])

    @cached_property
    def characters(self) -> Words:
        """The masks of all characters in the answers: the subsets of the sets, ascending, the empty
        one first."""
        return np.array(
            sorted({subset for mask in set(self.masks) for subset in _subsets(mask)}),
            dtype=np.uint64,
        )

    @cached_property
    def _groups(self) -> tuple[tuple[int, Counts, Counts], ...]:
        """For each number t of columns: 2^t, and the places of the cells and characters of its k
        marginals, shape (k, 2^t) both."""
        groups = []
        sizes = np.array([mask.bit_count() for mask in self.masks])
        for t in sorted(set(sizes.tolist())):
            members = np.flatnonzero(sizes == t)
            subsets = np.array([list(_subsets(self.masks[k])) for k in members], dtype=np.uint64)
            places = np.searchsorted(self.characters, subsets)
            groups.append((1 << t, self.starts[members][:, None] + np.arange(1 << t), places))
        return tuple(groups)

    def of_characters(self, sums: Floats | Counts) -> Floats:
        """The cells from the sums of the `characters`: a small transform for each marginal."""
        answers = np.empty(self.cells)
        for width, cells, places in self._groups:
            answers[cells] = walsh_hadamard(sums[places].astype(np.float64).T).T / width
        return answers

    def of_histogram(self, weights: Floats | Counts) -> Floats:
        """The cells of a table given by the count of each row, shape (2^d,), d <= 22: O(d 2^d +
        cells)."""
        return self.of_characters(
            walsh_hadamard(np.asarray(weights, dtype=np.float64))[self.characters.astype(np.int64)]
        )

    def answers(self, table: BinaryTable) -> Floats:
        """The true counts of all cells. Raises InputError for a table of other columns."""
        check_columns(table, self.d)
        return self.of_characters(table.characters(self.characters))

    def counts(self, table: BinaryTable) -> Counts:
        """The same as whole numbers."""
        return np.rint(self.answers(table)).astype(np.int64)

    def check_counts(self, expected: Counts) -> None:
        """Raises InputError unless there is a whole number for each cell."""
        if expected.shape != (self.cells,) or expected.dtype.kind != "i":
            raise InputError(
                f"the expected counts have shape {expected.shape}; give a whole number for each "
                f"of {self.cells} cells"
            )

    def cells_of(self, number: int) -> Counts:
        """The cell of marginal `number` for each row 0..2^d - 1: shape (2^d,), d <= 22."""
        rows = np.arange(1 << self.d)
        cells = np.zeros(1 << self.d, dtype=np.int64)
        for place, column in enumerate(places_of(self.masks[number])):
            cells |= (rows >> column & 1) << place
        return cells


@dataclass(frozen=True)
class Errors:
    """The errors of an estimate of all cells, as shares of the records: the largest and the mean
    absolute error of a cell."""

    largest: float
    mean: float

    @classmethod
    def of(cls, estimate: Floats, truth: Floats, size: int) -> Self:
        """Of counts, shape (cells,), of a table of `size` records."""
        off = np.abs(estimate - truth) / size
        return cls(float(off.max()), float(off.mean()))


def character_masks(sets: Iterable[Iterable[int]]) -> Words:
    """A word for each set of columns, bit c set where column c belongs to it."""
    return np.array(
        [sum(1 << column for column in set(columns)) for columns in sets], dtype=np.uint64
    )


def check_columns(table: BinaryTable, d: int) -> None:
    """Raises InputError for a table of other columns."""
    if table.d != d:
        raise InputError(
            f"the table has {table.d} columns, and {d} are expected; give one number for both"
        )


def products(d: int, blocks: Iterable[np.ndarray]) -> Counts:
    """The sums of v_i v_j over all rows of the blocks, shape (d, d): exact, since products of signs
    are summed as floats."""
    return sum(
        ((block.T @ block).astype(np.int64) for block in blocks), np.zeros((d, d), dtype=np.int64)
    )


def _subsets(mask: int) -> Iterator[int]:
    """All subsets of a mask, ascending."""
    subset = 0
    while True:
        yield subset
        if subset == mask:
            return
        subset = (subset - mask) & mask


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic table of d binary columns: `weights`, shape (2^d,), the count of each row, as
    fractions of a record; their sum is n."""

    d: int
    weights: Floats

    def answers(self, workload: Marginals) -> Floats:
        return workload.of_histogram(self.weights)

    def rows(self, count: int, generator: np.random.Generator) -> Counts:
        """A random sample of `count` rows, as whole numbers of d bits."""
        return generator.choice(len(self.weights), count, p=self.weights / self.weights.sum())


class Weights:
    """Positive weights of sum 1 of all 2^d rows, uniform at first."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.flat = np.full(1 << d, 0.5**d)

    def marginal(self, mask: int) -> Floats:
        """The share of each cell: adds the two halves that differ in a column, the highest column
        first, so that all passes together read the table twice."""
        rest = self.flat
        for column in reversed(range(self.d)):
            if not mask >> column & 1:
                pairs = rest.reshape(-1, 2, 1 << column)
                rest = pairs[:, 0] + pairs[:, 1]
        return rest.reshape(-1)

    def move(self, mask: int, shares: Floats) -> None:
        """Multiplicative weights: each row's weight times e^(the share that its cell should have,
        less the share that it has)."""
        table = self.flat.reshape((2,) * self.d)
        table *= spread(self.d, mask, np.exp(shares - self.marginal(mask)))

    def normalise(self) -> None:
        """To a sum of 1."""
        self.flat /= self.flat.sum()


def spread(d: int, mask: int, cells: Floats) -> Floats:
    """A number for each cell of a marginal, shaped to be broadcast over a table of shape (2,) *
    d."""
    return cells.reshape([1 + (mask >> column & 1) for column in reversed(range(d))])
