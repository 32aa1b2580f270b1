"""Queries to tables: yes/no questions, categories, bounded numbers, and changes over several
waves."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_built, check_range, check_whole
from local_dp.domains import MAX_LENGTH, MAX_SYMBOLS, Domain, levels, many_symbols, symbols
from local_dp.errors import InputError
from local_dp.queries.dates import date_texts
from local_dp.queries.grammar import Expression, parse
from local_dp.queries.labels import Listed, as_label
from local_dp.queries.query import STEPS, Query
from local_dp.queries.questions import answers_of
from local_dp.records import Records, absent, is_truth

SPARE = ("other", "missing")
MAX_LABEL = 1000  # characters: an array of labels has room for the longest in each place


def check_spare(spare: tuple[str, ...], names: tuple[str, ...] = SPARE) -> None:
    """Raises InputError unless these are extra symbols that there are, in their order."""
    if spare != tuple(name for name in names if name in spare):
        raise InputError(f"the extra symbols are {spare!r}; give some of {names!r}, in this order")


def _names(labels: tuple[str, ...], spare: tuple[str, ...]) -> list[str]:
    return [*labels, *(f"({name})" for name in spare)]


@dataclass(frozen=True)
class Question(Query):
    """1 where the record answers yes to a question of the question language, else 0; with `spare`
    ("missing",), 2 where a missing value leaves it open."""

    name = "question"
    summary = "Answers a yes/no question about the columns"
    text: str
    spare: tuple[str, ...] = ()

    def check(self) -> None:
        if not isinstance(self.text, str):
            raise InputError(
                f"a question is text, not {type(self.text).__name__}; write it such as 'affairs > "
                "0 and age >= 30'"
            )
        check_spare(self.spare, ("missing",))
        _ = self.expression  # parsed now, so that a wrong question fails where it is written

    @cached_property
    def expression(self) -> Expression:
        return parse(self.text)

    @property
    def symbols(self) -> list[str]:
        """The names of the symbols."""
        return _names(("no", "yes"), self.spare)

    @cached_property
    def domain(self) -> Domain:
        return symbols(2 + len(self.spare))

    def found(self, records: Records) -> Ints:
        """The symbol of each record, -1 for one that has none."""
        answers = answers_of(self.expression, records)
        return np.where(answers.unknown, 2 if self.spare else -1, answers.yes).astype(np.int8)

    def __call__(self, records: Records) -> Ints:
        return (
            np.maximum(self.found(records), 0)
            if self.spare
            else answers_of(self.expression, records).yes.astype(np.int8)
        )


@dataclass(frozen=True)
class Category(Query):
    """The position of a value in public labels, then the `spare` symbols "other" (unlisted) and
    "missing"; without these such a value is the first."""

    name = "category"
    summary = "Gives the place of a value among public labels"
    column: str
    labels: tuple[str, ...]
    spare: tuple[str, ...] = ()

    def check(self) -> None:
        check_spare(self.spare)
        if len(set(self.labels)) != len(self.labels):
            raise InputError(f"the labels of {self.column!r} are not distinct")
        if max(map(len, self.labels), default=0) > MAX_LABEL:
            raise InputError(
                f"a label of {self.column!r} has {max(map(len, self.labels))} characters; "
                f"{MAX_LABEL} is the most"
            )
        if not 2 <= self.value_count <= 1 << MAX_LENGTH or not self.labels:
            if self.value_count == 1 and "," in self.labels[0]:
                apart = ";".join(part.strip() for part in self.labels[0].split(","))
                raise InputError(
                    f"column {self.column!r} has the one label {self.labels[0]!r}; separate "
                    f"labels by ';': labels='{apart}'"
                )
            raise InputError(
                f"column {self.column!r} has {self.value_count} label"
                f"{'s' * (self.value_count != 1)}; give 2 to {1 << MAX_LENGTH}"
            )

    @property
    def value_count(self) -> int:
        return len(self.labels) + len(self.spare)

    @property
    def domain(self) -> Domain:
        return many_symbols(self.value_count)

    @cached_property
    def breadth(self) -> int:
        return max(map(len, self.labels)) + 1

    @property
    def symbols(self) -> list[str]:
        """The names of the symbols."""
        return _names(self.labels, self.spare)

    def _symbol(self, spare: str) -> int:
        """The extra symbol of this name, -1 where there is none."""
        return len(self.labels) + self.spare.index(spare) if spare in self.spare else -1

    def places(self, records: Records) -> Ints:
        """The position of each value in the list, -1 where it is not listed."""
        column = records[self.column]
        if column.dtype.kind in "iub" and self._are_numbers:
            return np.where(
                (column >= 0) & (column < len(self.labels)), column.astype(np.int64), -1
            )
        if column.dtype not in self._labels_by_type:
            self._labels_by_type[column.dtype] = Listed(self.labels, column.dtype)
        return self._labels_by_type[column.dtype].places(column)

    @cached_property
    def _are_numbers(self) -> bool:
        """True if the labels are 0, 1, 2 and so on."""
        return self.labels == tuple(map(str, range(len(self.labels))))

    @cached_property
    def _labels_by_type(self) -> dict["np.dtype[np.generic]", Listed]:
        """The labels, by the types of columns that were asked."""
        return {}

    def found(self, records: Records) -> Ints:
        places = self.places(records)
        spare = np.where(
            absent(records[self.column]), self._symbol("missing"), self._symbol("other")
        )
        return np.where(places < 0, spare, places)

    def __call__(self, records: Records) -> Ints:
        return np.maximum(self.found(records), 0)


def labels_of(records: Records, column: str) -> np.ndarray:
    """A column's values as text labels; whole numbers print without a decimal point."""
    values = records[column]
    if values.dtype.kind == "U":
        return values
    if is_truth(values.dtype):
        values = values.astype(np.bool_)
    if values.dtype.kind == "f":
        return np.array([as_label(value) for value in values])
    if values.dtype.kind == "M":
        return date_texts(values)
    return values.astype(np.str_)


@dataclass(frozen=True)
class Bounded(Query):
    """A number clipped to the public [low, high], on a lattice of 2^16 steps; policies rule out
    missing ones, which would be the midpoint."""

    name = "bounded"
    summary = "Clips a number to public bounds"
    column: str
    low: float
    high: float
    steps: ClassVar[int] = STEPS

    def check(self) -> None:
        check_range("", self.low, self.high)

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    def share(self, records: Records) -> Floats:
        """Where in the range each number lies, from 0 to 1, shape (n,)."""
        share = (records.numbers(self.column) - self.low) / (self.high - self.low)
        return np.clip(np.nan_to_num(share, nan=0.5, posinf=1.0, neginf=0.0), 0.0, 1.0)

    def __call__(self, records: Records) -> Floats:
        return self.share(records) * self.steps

    def in_units(self, share: Floats) -> Floats:
        """A mean of shares of the range, in the column's own units."""
        return self.low + (self.high - self.low) * share


@dataclass(frozen=True)
class Stepped(Bounded):
    """A number clipped to the public [low, high], on a lattice of `steps` steps."""

    name = "stepped"
    summary = "Clips a number to public bounds, on steps of one's own"
    steps: int  # type: ignore[misc]


def asked_in(
    wave: str, labels: tuple[str, ...], spare: tuple[str, ...] = ()
) -> Category | Question:
    """What is asked in one wave: a column with public labels, or where there are none a yes/no
    question."""
    return (
        Category(wave, labels, spare)
        if labels
        else Question(wave, tuple(name for name in spare if name == "missing"))
    )


@dataclass(frozen=True)
class ChangeInterval(Query):
    """In which interval of `width` waves a yes/no answer changes for the `change`-th time, counted
    from 0 on; the number of intervals if it does not.

    Before the first wave the answer is no (the first label), so odd changes are to yes and even
    ones to no. After wave t the answer is yes if the number of changes is odd. A report about an
    interval depends on the answers until its end only.
    """

    name = "change-interval"
    summary = "Gives the interval in which an answer changes"
    waves: tuple[str, ...]
    labels: tuple[str, ...]
    change: int
    width: int

    def check(self) -> None:
        check_whole("the number of waves", len(self.waves), 2, MAX_SYMBOLS - 1)
        check_whole("change", self.change, 1, len(self.waves))
        if len(self.labels) not in (0, 2):
            raise InputError(f"there are {len(self.labels)} labels; changes are of two, no and yes")
        check_whole("width", self.width, 1, len(self.waves))
        check_built(self.parts)

    @cached_property
    def parts(self) -> tuple[Category | Question, ...]:
        return tuple(asked_in(wave, self.labels) for wave in self.waves)

    @property
    def intervals(self) -> int:
        """How many intervals there are; the last one may be shorter."""
        return -(-len(self.waves) // self.width)

    @property
    def domain(self) -> Domain:
        return symbols(self.intervals + 1)

    def __call__(self, records: Records) -> Ints:
        before = np.zeros(len(records), dtype=np.int64)
        changes = np.zeros(len(records), dtype=np.int64)
        interval = np.full(len(records), self.intervals, dtype=np.int64)
        for wave, part in enumerate(self.parts):
            now = part.values(records).astype(np.int64)
            changes += now != before
            interval = np.where(
                (now != before) & (changes == self.change), wave // self.width, interval
            )
            before = now
        return interval
