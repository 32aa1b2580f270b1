"""Queries of learners: correlations, signed labels, products, descent directions and nearest centres. Lists of numbers travel as text, exactly."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Floats, Ints
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.questions import Expression, evaluate, parse
from local_dp.randomizers.base import Domain, levels, symbols
from local_dp.records import Records

STEPS = 1 << 16  # of the lattice of a number in [-bound, bound]


def written(numbers: Iterable[float]) -> tuple[str, ...]:
    """Numbers as text that reads back to the same numbers."""
    return tuple(repr(float(number)) for number in numbers)


def read_numbers(texts: tuple[str, ...]) -> Floats:
    """The numbers of `written`. Raises InputError on a text that is not a finite number."""
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        raise InputError(f"{texts!r} is not a list of numbers; write them as text, such as '0.25'") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{texts!r} holds a number that is not finite")
    return numbers


def on_lattice(values: Floats, bound: float) -> Ints:
    """Numbers clipped to [-bound, bound], as levels of a lattice of 2^16 steps; a missing number counts as 0."""
    share = np.clip(np.nan_to_num(values / bound, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    return np.rint((share + 1) / 2 * STEPS).astype(np.int64)


def matrix(records: Records, columns: tuple[str, ...]) -> Floats:
    """The columns as numbers, shape (columns, n)."""
    return np.stack([records.numbers(name) for name in columns])


def weighted_sum(weights: Floats, columns: Floats) -> Floats:
    """The sum of weight times column, shape (n,), added in order: a record's sum does not depend on how many records are summed beside it.

    A matrix product rounds differently for one record and for many, and the tiers would differ in the last bit.
    """
    total: Floats = weights[0] * columns[0]
    for weight, column in zip(weights[1:], columns[1:], strict=True):
        total = total + weight * column
    return total


def _check_columns(columns: tuple[str, ...]) -> None:
    if not columns or len(set(columns)) != len(columns):
        raise InputError(f"the columns are {columns!r}; give at least one, each once")


def _check_bound(bound: float) -> None:
    if not (math.isfinite(bound) and bound > 0):
        raise InputError(f"the bound is {bound!r}; give a positive number")


@dataclass(frozen=True)
class Correlation(Query):
    """1 where the +1/-1 label equals (-1)^(sum of the 0/1 columns), else 0: its expectation on the [-1, 1] scale is a Fourier coefficient of the label.

    Without a label, of the constant 1: a moment of the columns.
    """

    name: ClassVar[str] = "correlation"
    columns: tuple[str, ...]
    label: str = ""

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise InputError(f"the columns are {self.columns!r}; give each once")

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        agrees: Bools = records[self.label] == 1 if self.label else np.ones(len(records), dtype=np.bool_)
        for name in self.columns:
            agrees = agrees ^ (records[name] == 1)
        return agrees.view(np.uint8)


@dataclass(frozen=True)
class SignedLabel(Query):
    """The +1/-1 label where the condition holds (a label other than 1 counts as -1), 0 elsewhere; as the levels 2, 0 and 1 of two steps."""

    name: ClassVar[str] = "signed-label"
    condition: str
    label: str

    def __post_init__(self) -> None:
        self.expression  # noqa: B018  # parsed now, so that a wrong condition fails where it is written

    @cached_property
    def expression(self) -> Expression:
        return parse(self.condition)

    @property
    def domain(self) -> Domain:
        return levels(2)

    def __call__(self, records: Records) -> Ints:
        sign = np.where(records[self.label] == 1, 1, -1)
        values: Ints = np.where(evaluate(self.expression, records), 1 + sign, 1)
        return values


@dataclass(frozen=True)
class Product(Query):
    """The product of the factors (columns; one may come twice, as a square), clipped to [-bound, bound] and divided by `bound`, on a lattice of 2^16 steps."""

    name: ClassVar[str] = "product"
    factors: tuple[str, ...]
    bound: float = 1.0

    def __post_init__(self) -> None:
        if not self.factors:
            raise InputError("a product needs at least one factor")
        _check_bound(self.bound)

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        return on_lattice(reduce(np.multiply, matrix(records, self.factors)), self.bound)


def _logistic(margin: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, margin))


# Minus the derivative of each loss at the margin m = y <w, x>.
LOSSES: dict[str, Callable[[Floats], Floats]] = {
    "perceptron": lambda margin: (margin <= 0).astype(np.float64),  # max(0, -m), a tie counted as a mistake
    "hinge": lambda margin: (margin < 1).astype(np.float64),  # max(0, 1 - m)
    "logistic": _logistic,  # ln(1 + e^-m)
}


def _check_weights(weights: Floats, columns: tuple[str, ...]) -> None:
    _check_columns(columns)
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
    weights: tuple[str, ...]

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
    weights: tuple[str, ...]
    coordinate: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        _check_weights(self.numbers, self.columns)
        _check_bound(self.bound)
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


def nearest(points: Floats, centres: Floats) -> Ints:
    """Which centre, shape (k, d), is nearest to each point, shape (d, n); the first of equals."""
    distances = np.stack([(centre**2).sum() - 2 * weighted_sum(centre, points) for centre in centres])
    closest: Ints = distances.argmin(axis=0)
    return closest


@dataclass(frozen=True)
class _ByCentre(Query):
    """What the queries about nearest centres share: k centres, row after row, and which one is meant."""

    columns: tuple[str, ...]
    centres: tuple[str, ...]
    centre: int

    def __post_init__(self) -> None:
        _check_columns(self.columns)
        k, rest = divmod(len(self.numbers), len(self.columns))
        if rest or not 0 <= self.centre < k:
            raise InputError(f"{len(self.centres)} numbers are not centres in {len(self.columns)} columns, or there is no centre {self.centre}")

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.centres)

    def belongs(self, points: Floats) -> Floats:
        """1 where the point is nearest to the centre that is meant, else 0."""
        belongs: Floats = (nearest(points, self.numbers.reshape(-1, len(self.columns))) == self.centre).astype(np.float64)
        return belongs


@dataclass(frozen=True)
class NearestCentre(_ByCentre):
    """1 where the record is nearest to the given centre, else 0."""

    name: ClassVar[str] = "nearest-centre"

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        return self.belongs(matrix(records, self.columns)).astype(np.uint8)


@dataclass(frozen=True)
class CentreSum(_ByCentre):
    """One coordinate of the record where it is nearest to the given centre, else 0; divided by `bound`, on a lattice of 2^16 steps."""

    name: ClassVar[str] = "centre-sum"
    coordinate: int = 0
    bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_bound(self.bound)
        if not 0 <= self.coordinate < len(self.columns):
            raise InputError(f"there is no coordinate {self.coordinate} among {len(self.columns)} columns")

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        points = matrix(records, self.columns)
        return on_lattice(self.belongs(points) * points[self.coordinate], self.bound)


LEARNER_QUERIES: tuple[type[Query], ...] = (Correlation, SignedLabel, Product, Mistake, Descent, NearestCentre, CentreSum)
