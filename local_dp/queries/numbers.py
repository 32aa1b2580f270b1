"""Numbers in queries: lists of them travel as text, exactly; values lie on a lattice."""

import math
from collections.abc import Iterable

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.errors import InputError
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


def check_columns(columns: tuple[str, ...]) -> None:
    if not columns or len(set(columns)) != len(columns):
        raise InputError(f"the columns are {columns!r}; give at least one, each once")


def check_bound(bound: float) -> None:
    if not (math.isfinite(bound) and bound > 0):
        raise InputError(f"the bound is {bound!r}; give a positive number")
