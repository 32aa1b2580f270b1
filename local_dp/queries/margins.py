"""Queries about halfspaces: mistakes, and descent directions of a loss of the margin."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.domains import Domain, Vectors, levels, symbols, vectors
from local_dp.errors import InputError
from local_dp.queries.numbers import STEPS, check_bound, check_columns, matrix, on_lattice, read_numbers, weighted_sum
from local_dp.queries.query import Query
from local_dp.queries.vectors import check_body, on_rows
from local_dp.records import Records


def _logistic(margin: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, margin))


# Minus the derivative of each loss at the margin m = y <w, x>.
LOSSES: dict[str, Callable[[Floats], Floats]] = {
    "perceptron": lambda margin: (margin <= 0).astype(np.float64),  # max(0, -m), a tie counted as a mistake
    "hinge": lambda margin: (margin < 1).astype(np.float64),  # max(0, 1 - m)
    "logistic": _logistic,  # ln(1 + e^-m)
}


def _check_weights(weights: Floats, columns: tuple[str, ...]) -> None:
    check_columns(columns)
    if len(weights) != len(columns):
        raise InputError(f"{len(columns)} columns and {len(weights)} weights do not fit together")


def _margin(records: Records, columns: tuple[str, ...], label: str, weights: Floats) -> Floats:
    return np.sign(records.numbers(label)) * weighted_sum(weights, matrix(records, columns))


@dataclass(frozen=True)
class Mistake(Query):
    """1 where the halfspace of the weights w misclassifies the +1/-1 label, y <w, x> <= 0, else 0."""

    name: ClassVar[str] = "mistake"
    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]

    def check(self) -> None:
        _check_weights(self.numbers, self.columns)

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.weights)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        return (_margin(records, self.columns, self.label, self.numbers) <= 0).view(np.uint8)


@dataclass(frozen=True)
class _Descending(Query):
    """What tells of minus the gradient of a loss at the weights w, -loss'(y <w, x>) y x. The label y is +1 or -1; any other label counts as its sign."""

    loss: str
    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]

    def check(self) -> None:
        _check_weights(self.numbers, self.columns)
        if self.loss not in LOSSES:
            raise InputError(f"no loss {self.loss!r}; there are {', '.join(LOSSES)}")

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.weights)

    def pull(self, records: Records) -> Floats:
        """-loss'(y <w, x>) y of each record, shape (n,)."""
        pull: Floats = LOSSES[self.loss](_margin(records, self.columns, self.label, self.numbers)) * np.sign(records.numbers(self.label))
        return pull


@dataclass(frozen=True)
class Descent(_Descending):
    """Minus one coordinate of the gradient of a loss at the weights w, divided by `bound` >= abs(x_j): -loss'(y <w, x>) y x_j / bound, in [-1, 1].

    On a lattice of 2^16 steps.
    """

    name: ClassVar[str] = "descent"
    coordinate: int
    bound: float = 1.0

    def check(self) -> None:
        super().check()
        check_bound(self.bound)
        check_whole("coordinate", self.coordinate, 0, len(self.columns) - 1)

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        return on_lattice(self.pull(records) * records.numbers(self.columns[self.coordinate]), self.bound)


@dataclass(frozen=True)
class DescentVector(_Descending):
    """All coordinates of minus the gradient together, each over `bound`, as a vector of the cube [-1, 1]^d or of the Euclidean unit ball, shape (n, d).

    On a lattice of `steps` to either side; what is beyond is moved inside as by `Coordinates`.
    """

    name: ClassVar[str] = "descent-vector"
    bound: float = 1.0
    kind: Literal["cube", "ball"] = "ball"
    steps: int = 1 << 14

    def check(self) -> None:
        super().check()
        check_bound(self.bound)
        check_body(self.kind)

    @property
    def domain(self) -> Vectors:
        return vectors(self.kind, len(self.columns), self.steps)

    def __call__(self, records: Records) -> Ints:
        pull = self.pull(records)
        return on_rows((pull * records.numbers(column) / self.bound for column in self.columns), self.steps)
