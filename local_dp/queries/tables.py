"""Queries to tables: yes/no questions, categories and bounded numbers."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.domains import MAX_SYMBOLS, Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.queries.numbers import STEPS
from local_dp.queries.questions import Expression, evaluate, parse
from local_dp.records import Records


@dataclass(frozen=True)
class Question(Query):
    """1 where the record answers yes to a question of the question language, else 0."""

    name: ClassVar[str] = "question"
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputError(f"a question is text, not {self.text!r}")
        self.expression  # noqa: B018  # parsed now, so that a wrong question fails where it is written

    @cached_property
    def expression(self) -> Expression:
        return parse(self.text)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        return evaluate(self.expression, records).view(np.uint8)


@dataclass(frozen=True)
class Category(Query):
    """The position of a column's value in a public list of labels; a value that is not in the list counts as the first label."""

    name: ClassVar[str] = "category"
    column: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels):
            raise InputError(f"the labels of {self.column!r} are not distinct")
        if not 2 <= len(self.labels) <= MAX_SYMBOLS:
            raise InputError(f"column {self.column!r} has k = {len(self.labels)} labels; from 2 to {MAX_SYMBOLS} can be counted")

    @property
    def domain(self) -> Domain:
        return symbols(len(self.labels))

    @cached_property
    def _sorted(self) -> tuple[Ints, np.ndarray]:
        order = np.argsort(np.array(self.labels))
        return order.astype(np.int64), np.array(self.labels)[order]

    def __call__(self, records: Records) -> Ints:
        column = records[self.column]
        if column.dtype.kind in "iub" and self.labels == tuple(map(str, range(len(self.labels)))):
            return np.where((column >= 0) & (column < len(self.labels)), column, 0).astype(np.int64)
        values = labels_of(records, self.column)
        order, ordered = self._sorted
        nearest = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
        return np.where(ordered[nearest] == values, order[nearest], 0)


def labels_of(records: Records, column: str) -> np.ndarray:
    """A column's values as text labels; whole numbers print without a decimal point."""
    values = records[column]
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind == "f":
        return np.array([f"{value:.17g}" if not value.is_integer() else str(int(value)) for value in values.tolist()])
    return values.astype(np.str_)


@dataclass(frozen=True)
class Bounded(Query):
    """A numeric column clipped to the public bounds [low, high] and rounded to a lattice of 2^16 steps; a missing number counts as the midpoint."""

    name: ClassVar[str] = "bounded"
    column: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high - self.low) and self.low < self.high):
            raise InputError(f"the bounds are [{self.low}, {self.high}]; give finite numbers with low < high")

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        share = (records.numbers(self.column) - self.low) / (self.high - self.low)
        share = np.clip(np.nan_to_num(share, nan=0.5, posinf=1.0, neginf=0.0), 0.0, 1.0)
        return np.rint(share * STEPS).astype(np.int64)

    def in_units(self, share: Floats) -> Floats:
        """A mean of shares of the range, in the column's own units."""
        return self.low + (self.high - self.low) * share
