"""Queries that place a record in a cell: an interval of a number, a combination of categories, a
number within its group."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_built, check_number, check_range, check_whole
from local_dp.cube import parity
from local_dp.domains import MAX_SYMBOLS, Domain, grouped_levels, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.query import STEPS, Query, read_numbers
from local_dp.queries.tables import Bounded, Category, Question, asked_in, check_spare
from local_dp.records import Records, absent

SEPARATOR = "\x1f"  # between the labels of one part: no label may hold it


def equal_edges(low: float, high: float, bins: int) -> Floats:
    """The ends of equal intervals, shape (bins + 1,), each rounded once: an end that is a whole
    number or a short decimal is exactly that number."""
    first = Fraction(repr(float(low)))
    last = Fraction(repr(float(high)))
    unit = first.denominator * last.denominator
    start = int(first * unit)
    end = int(last * unit)
    return np.array(
        [(start * (bins - place) + end * place) / (unit * bins) for place in range(bins + 1)]
    )


@dataclass(frozen=True)
class Binned(Query):
    """The interval of a number: 0 below `low`, 1..bins for equal intervals of the public [low,
    high], bins + 1 above `high`.

    Intervals hold their lower end, the last one both. A missing number is one symbol more with
    `spare` ("missing",), else it counts as below.
    """

    name = "binned"
    summary = "Gives the interval of a number"
    column: str
    low: float
    high: float
    bins: int
    spare: tuple[str, ...] = ()

    def check(self) -> None:
        check_spare(self.spare, ("missing",))
        check_whole("bins", self.bins, 1, MAX_SYMBOLS - 3)
        check_range("", self.low, self.high)
        if np.any(np.diff(self.edges) <= 0):
            raise InputError(
                f"{self.bins} intervals of [{self.low}, {self.high}] are narrower than numbers "
                "are apart; give fewer bins or wider bounds"
            )

    @cached_property
    def edges(self) -> Floats:
        """The ends of the intervals, shape (bins + 1,)."""
        return equal_edges(self.low, self.high, self.bins)

    @property
    def domain(self) -> Domain:
        return symbols(self.bins + 2 + len(self.spare))

    def __call__(self, records: Records) -> Ints:
        numbers = records.numbers(self.column)
        place = np.searchsorted(self.edges, numbers, side="right") - (numbers == self.edges[-1])
        return np.where(np.isnan(numbers), self.bins + 2 if self.spare else 0, place).astype(
            np.int64
        )


@dataclass(frozen=True)
class Below(Query):
    """Whether a number lies below `end`: the level 2^16 where it does, 0 where not, and `missing`
    where there is none, on a lattice of 2^16 steps.

    With `missing` = q 2^16 the mean level is q exactly where a share q of the numbers that there
    are lie below `end`: the step of the pinball loss.
    """

    name = "below"
    summary = "Asks whether a number lies below a cut"
    domain = levels(STEPS)
    column: str
    end: float
    missing: int

    def check(self) -> None:
        check_number("the end", self.end)
        check_whole("the level of a missing number", self.missing, 0, STEPS)

    def __call__(self, records: Records) -> Ints:
        numbers = records.numbers(self.column)
        return np.where(np.isnan(numbers), self.missing, STEPS * (numbers < self.end)).astype(
            np.int64
        )


@dataclass(frozen=True)
class Crossed(Query):
    """The combination of several categories, the last one running fastest: columns with public
    labels, or yes/no questions (no first, then yes).

    `labels` holds each part's labels between U+001F, none for a question. `spare` is `Category`'s,
    and "none" a last symbol for incomplete records.
    """

    name = "crossed"
    summary = "Gives the combination of several columns"
    parts: tuple[str, ...]
    labels: tuple[str, ...]
    spare: tuple[str, ...] = ()

    def check(self) -> None:
        check_spare(self.spare, ("other", "missing", "none"))
        if len(self.labels) != len(self.parts) or not self.parts:
            raise InputError(
                f"there are {len(self.parts)} parts and {len(self.labels)} lists of labels; give "
                "one for each part"
            )
        symbols(self._size)

    @cached_property
    def categories(self) -> tuple[Category | Question, ...]:
        extra = tuple(name for name in self.spare if name != "none")
        lists = [tuple(text.split(SEPARATOR)) if text else () for text in self.labels]
        return tuple(
            asked_in(part, labels, extra) for part, labels in zip(self.parts, lists, strict=True)
        )

    @cached_property
    def breadth(self) -> int:
        return sum(part.breadth for part in self.categories)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many symbols each part has in the table."""
        return tuple(part.value_count for part in self.categories)

    @property
    def _size(self) -> int:
        return math.prod(self.shape) + ("none" in self.spare)

    @property
    def domain(self) -> Domain:
        return symbols(self._size)

    def __call__(self, records: Records) -> Ints:
        cell = np.zeros(len(records), dtype=np.int64)
        nowhere = np.zeros(len(records), dtype=np.bool_)
        for part, size in zip(self.categories, self.shape, strict=True):
            place = part.found(records).astype(np.int64)
            nowhere |= place < 0
            cell = cell * size + np.maximum(place, 0)
        return np.where(nowhere, self._size - 1, cell) if "none" in self.spare else cell


@dataclass(frozen=True)
class Odd(Crossed):
    """1 where an odd number of the parts have their second symbol, else 0: a character of columns
    with two symbols each."""

    name = "odd"
    summary = "Asks whether an odd number of parts has its second symbol"
    domain = symbols(2)

    def check(self) -> None:
        super().check()
        if set(self.shape) != {2} or "none" in self.spare:
            raise InputError(
                f"the parts have {self.shape} symbols; a parity is of parts with two each"
            )

    def __call__(self, records: Records) -> Ints:
        return parity(super().__call__(records).astype(np.uint64))


@dataclass(frozen=True)
class Grouped(Query):
    """A bounded number within its group: group * (steps + 1) + level, and one value more at the end
    for a record without a number or a listed group.

    Without `by` there is one group, of everybody. Numbers are clipped to the public [low, high], on
    a lattice of `steps` steps.
    """

    name = "grouped"
    summary = "Gives a bounded number within its group"
    column: str
    low: float
    high: float
    by: str = ""
    labels: tuple[str, ...] = ()
    steps: int = STEPS

    def check(self) -> None:
        check_built(self.bounded)
        if self.by:
            check_built(self._category)
        check_whole("the number of groups", self.groups, 1, 64)

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.column, self.low, self.high)

    @property
    def _category(self) -> Category:
        return Category(self.by, self.labels)

    @property
    def groups(self) -> int:
        return len(self.labels) if self.by else 1

    @property
    def domain(self) -> Domain:
        return grouped_levels(self.steps, self.groups)

    def __call__(self, records: Records) -> Floats:
        group = (
            self._category.places(records) if self.by else np.zeros(len(records), dtype=np.int64)
        )
        nowhere = (group < 0) | absent(records[self.column])
        levels = self.steps + 1
        place = group * levels + self.bounded.share(records) * self.steps
        return np.where(nowhere, self.groups * levels, place)


@dataclass(frozen=True)
class Cell(Query):
    """How many of the public, ascending `edges` a number reaches, 0..m; a missing number has a
    symbol of its own, the last one, m + 1."""

    name = "cell"
    summary = "Counts the public edges that a number reaches"
    looked_up = "edges"
    column: str
    edges: tuple[float, ...]

    def check(self) -> None:
        if not (
            1 <= len(self.numbers) <= MAX_SYMBOLS - 2
            and all(first < second for first, second in pairwise(self.edges))
        ):
            raise InputError(
                f"the edges of {self.column!r} are {self.edges!r:.80}; give from 1 to "
                f"{MAX_SYMBOLS - 2} numbers in ascending order"
            )

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.edges)

    @property
    def domain(self) -> Domain:
        return symbols(len(self.edges) + 2)

    def __call__(self, records: Records) -> Ints:
        numbers = records.numbers(self.column)
        cells = np.searchsorted(self.numbers, numbers, side="right")
        return np.asarray(np.where(np.isnan(numbers), len(self.edges) + 1, cells))
