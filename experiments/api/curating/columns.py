"""Columns of a table as mechanisms take them: ordered points, bits, texts by their place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.curator.multisets import points_of, value_of
from local_dp.errors import InputError
from local_dp.queries.questions import answers_of, parse
from local_dp.records import Records

MISSING = "(missing)"


def numbers_of(records: Records, column: str) -> Floats:
    """A column without missing values. Raises InputError."""
    numbers = records.numbers(column)
    missing = int(np.isnan(numbers).sum())
    if missing:
        raise InputError(f"column {column!r} has {missing} missing numbers; remove those rows from the table; their number is then public")
    return numbers


def labels_in(records: Records, label: str) -> Ints:
    """A column of 0 and 1, or the answers to a question. Raises InputError for anything else."""
    if label not in records.columns:
        answers = answers_of(parse(label), records)
        if np.any(answers.unknown):
            raise InputError(f"{label!r} has no answer for {int(answers.unknown.sum())} records with missing values; remove those rows from the table")
        return answers.yes.astype(np.int64)
    numbers = records.numbers(label)
    if not np.all((numbers == 0) | (numbers == 1)):
        raise InputError(f"column {label!r} has values other than 0 and 1; give a question about it, such as '{label} > 0'")
    return numbers.astype(np.int64)


@dataclass(frozen=True)
class Coded:
    """A column as points of 2^64: numbers in order, texts by their place among the texts in the table."""

    points: Words
    value: Callable[[int], Any]


def plain(point: int) -> float | int:
    """The number of a point; an int if it is whole."""
    value = value_of(point)
    return int(value) if value.is_integer() else value


def coded(records: Records, column: str) -> Coded:
    values = records[column]
    if values.dtype.kind != "U":
        return Coded(points_of(numbers_of(records, column)), plain)
    texts, places = np.unique(values, return_inverse=True)
    return Coded(places.astype(np.uint64), lambda place: str(texts[place]) or MISSING)
