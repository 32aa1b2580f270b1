"""Columns as attributes of a few public values, coded in bits: the binary table of marginals and synthetic records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.errors import InputError
from local_dp.experiments.api.curating.columns import labels_in, numbers_of
from local_dp.queries.encoded import question_in
from local_dp.queries.tables import labels_of
from local_dp.records import Records

OTHER = "(other)"
_MOST_VALUES = 1 << 10


@dataclass(frozen=True)
class Attribute:
    """A question or a column of 0 and 1; or a column of numbers with `cuts`; or a column of `labels`, with one value for all others.

    Its values are public: none is read from the table.
    """

    column: str
    cuts: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels) or any(low >= high for low, high in pairwise(self.cuts)):
            raise InputError(f"the cuts or labels of {self.column!r} are not distinct, or not in order; give each once, cuts from small to large")
        if len(self.values) > _MOST_VALUES:
            raise InputError(f"{self.column!r} has {len(self.values)} values; give at most {_MOST_VALUES}")

    @classmethod
    def cut_at(cls, column: str, cuts: Sequence[Any]) -> "Attribute":
        """A column of numbers with cuts, which may be texts. Raises InputError."""
        try:
            return cls(column, cuts=tuple(map(float, cuts)))
        except ValueError:
            raise InputError(f"the cuts of {column!r} are no numbers: {', '.join(map(str, cuts))}; write them like age=27;32") from None

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names of the values, by their numbers."""
        if self.labels:
            return (*self.labels, OTHER)
        ends = [f"{cut:g}" for cut in self.cuts]
        if not ends:
            return ("no", "yes") if question_in(self.column) else ("0", "1")
        return (f"< {ends[0]}", *(f"{low} to < {high}" for low, high in pairwise(ends)), f">= {ends[-1]}")

    @property
    def bits(self) -> int:
        return (len(self.values) - 1).bit_length()

    def numbers(self, records: Records) -> Ints:
        """The number of each record's value. Raises InputError for a missing number or answer, and for values other than 0 and 1 of a plain column."""
        if self.labels:
            texts = labels_of(records, self.column)
            return np.select([texts == label for label in self.labels], list(range(len(self.labels))), len(self.labels)).astype(np.int64)
        if self.cuts:
            return np.searchsorted(np.array(self.cuts), numbers_of(records, self.column), side="right").astype(np.int64)
        return labels_in(records, self.column)


@dataclass(frozen=True)
class Attributes:
    """Several attributes, each with bits of its own; those of the first are the lowest."""

    every: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [each.column for each in self.every]
        if not names or len(set(names)) < len(names):
            raise InputError(f"the columns are {', '.join(names) or 'none'}; give at least one, each once")
        if self.d > 64:
            raise InputError(f"the columns take {self.d} bits; 64 is the most: give fewer columns, cuts or labels")

    @property
    def d(self) -> int:
        """Bits of a record."""
        return sum(each.bits for each in self.every)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(int(start) for start in np.cumsum([0, *(each.bits for each in self.every[:-1])]))

    def table(self, records: Records) -> BinaryTable:
        rows = np.zeros(len(records), dtype=np.uint64)
        for each, start in zip(self.every, self.starts, strict=True):
            rows |= each.numbers(records).astype(np.uint64) << np.uint64(start)
        return BinaryTable(self.d, rows)

    def workload(self, ways: int) -> Marginals:
        return Marginals.of(self.d, ([bit for number in group for bit in self.bits_of(number)] for group in self.groups(ways)))

    def groups(self, ways: int) -> list[tuple[int, ...]]:
        return list(combinations(range(len(self.every)), ways))

    def bits_of(self, number: int) -> range:
        return range(self.starts[number], self.starts[number] + self.every[number].bits)

    def cells(self, ways: int) -> list[tuple[int, list[str]]]:
        """The possible cells of the marginals of every `ways` attributes: place, and a value or an empty text for each attribute."""
        cells, start = list[tuple[int, list[str]]](), 0
        for group in self.groups(ways):
            size = 1 << sum(self.every[number].bits for number in group)
            for cell in range(size):
                values = self._values(group, cell)
                if values is not None:
                    named = dict(zip(group, values, strict=True))
                    cells.append((start + cell, [named.get(number, "") for number in range(len(self.every))]))
            start += size
        return cells

    def _values(self, group: Sequence[int], cell: int) -> list[str] | None:
        """The names of the values of a cell; None if some code in it has no value."""
        names = []
        for number in group:
            each = self.every[number]
            code, cell = cell & (1 << each.bits) - 1, cell >> each.bits
            if code >= len(each.values):
                return None
            names.append(each.values[code])
        return names

    def possible(self) -> Bools:
        """Which words of up to 22 bits are possible records, shape (2^d,): every code has a value."""
        words = np.arange(1 << self.d, dtype=np.uint64)
        possible: Bools = np.logical_and.reduce([codes < len(each.values) for each, codes in self._codes(words)])
        return possible

    def names(self, words: Words) -> list[list[str]]:
        columns = [np.array(each.values)[codes] for each, codes in self._codes(words)]
        named: list[list[str]] = np.stack(columns, axis=1).tolist()
        return named

    def _codes(self, words: Words) -> Iterator[tuple[Attribute, Ints]]:
        """Each attribute with its number in every word."""
        for each, start in zip(self.every, self.starts, strict=True):
            yield each, (words >> np.uint64(start)).astype(np.int64) & (1 << each.bits) - 1


def read_listed(text: str) -> tuple[str, list[str]]:
    """A column and its cuts or labels, from a text such as age=27;32. Raises InputError."""
    column, sign, listed = text.partition("=")
    values = [each.strip() for each in listed.split(";")]
    if not (column.strip() and sign and all(values)):
        raise InputError(f"{text!r} names no column with its values; write it like age=27;32")
    return column.strip(), values
