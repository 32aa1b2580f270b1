"""Queries about halfspaces: mistakes, and descent directions of a loss of the margin."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.queries.numbers import STEPS, check_bound, check_columns, matrix, on_lattice, read_numbers, weighted_sum
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

    def __post_init__(self) -> None:
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
class Descent(Query):
    """Minus one coordinate of the gradient of a loss at the weights w, divided by `bound` >= abs(x_j): -loss'(y <w, x>) y x_j / bound, in [-1, 1].

    The label y is +1 or -1; any other label counts as its sign. On a lattice of 2^16 steps.
    """

    name: ClassVar[str] = "descent"
    loss: str
    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]
    coordinate: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        _check_weights(self.numbers, self.columns)
        check_bound(self.bound)
        if self.loss not in LOSSES:
            raise InputError(f"no loss {self.loss!r}; there are {', '.join(LOSSES)}")
        if not 0 <= self.coordinate < len(self.columns):
            raise InputError(f"there is no coordinate {self.coordinate} among {len(self.columns)} columns")

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.weights)

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        margin = _margin(records, self.columns, self.label, self.numbers)
        direction: Floats = LOSSES[self.loss](margin) * np.sign(records.numbers(self.label)) * records.numbers(self.columns[self.coordinate])
        return on_lattice(direction, self.bound)
