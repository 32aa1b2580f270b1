"""Queries: named, parametrised maps from a record to a value of a declared domain; every one by
name; and numbers in their parameters and values."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import extract_tb
from typing import ClassVar

import numpy as np

from local_dp.arrays import Column, Floats, Ints
from local_dp.checks import check_number, check_width
from local_dp.domains import Domain, Parameter, parameters
from local_dp.errors import InputError, LocalDPError
from local_dp.queries import BUILT_IN
from local_dp.records import Records
from local_dp.registry import Registry


@dataclass(frozen=True)
class Query(ABC):
    """A question to one record."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    looked_up: ClassVar[str] = (
        ""  # the parameter in which a record finds one entry, where it does not meet all
    )

    def __post_init__(self) -> None:
        self.check()
        _ = self.domain  # which refuses parameters that make none

    def check(self) -> None:
        """Checks the parameters; that they make a domain is checked afterwards. Raises
        InputError."""
        return

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The values it may take."""

    @property
    def value_count(self) -> int:
        """How many of the domain's values a record can have: the first ones."""
        return self.domain.size

    @abstractmethod
    def __call__(self, records: Records) -> Column:
        """The value of each record, shape (n,); of a number its place, which may lie between two
        steps."""

    def discretize(self, places: Column, random: Floats) -> Ints:
        """The values of the domain that randomizers take, by `Domain.discretize`."""
        return self.domain.discretize(places, random)

    def values(self, records: Records) -> Column:
        """What each record has inside the domain, before it is rounded; shape (n,): total, silent,
        and without a branch on what a record holds.

        A number that overflows or is missing must not show: numpy would warn for some records only,
        and the warning takes time that others can measure. Raises InputError, with the query's
        name, where the query itself fails; a client that answers in private hides this.
        """
        try:
            with np.errstate(all="ignore"):
                return self.domain.clip(self(records))
        except LocalDPError:
            raise
        # the code is somebody else's, and may raise anything
        except Exception as error:  # noqa: BLE001
            where = extract_tb(error.__traceback__)[:2][-1]  # its own text may show cells
            raise InputError(
                f"query {self.name!r} fails with {type(error).__name__} in line {where.lineno} of "
                f"{Path(where.filename).name}"
            ) from None

    def params(self) -> dict[str, Parameter]:
        return parameters(self)

    @cached_property
    def breadth(self) -> int:
        """How many letters and numbers one record meets at most: the measure of its work, which no
        record changes."""
        return sum(
            len(value)
            for name, value in self.params().items()
            if name != self.looked_up and isinstance(value, str | tuple)
        )


MOST = 128  # records whose values are computed one by one


def fault_of(query: Query, records: Records) -> str:
    """What is wrong with a query, by its values on some records: they are whole numbers of its
    domain, one for each record, of this record alone, and the same when asked again. Empty if
    nothing is wrong; without a number of a record. Raises InputError where the query fails."""
    return next(_faults(query, records), "")


def _faults(query: Query, records: Records) -> Iterator[str]:
    values, n = query.values(records), len(records)
    if not np.array_equal(query.values(records), values):
        yield "asked again, it answers otherwise"
    with np.errstate(all="ignore"):
        raw = np.asarray(query(records))  # before it is clipped
    if not has_form(query, raw, n):
        yield f"{n} records gave {raw.dtype} values of shape {raw.shape}; give whole numbers"
    if np.any(values != raw):
        yield f"some of its values are not in {query.domain}"
    alone = (query.values(records.take(slice(row, row + 1))) for row in range(min(n, MOST)))
    if any(not np.array_equal(one[0], value) for one, value in zip(alone, values, strict=False)):
        yield "the value of a record depends on others"
    if len(query.values(records.take(slice(0, 0)))):
        yield "it cannot answer for no records"


def has_form(query: Query, values: Column, n: int) -> bool:
    """True if these can be the values of n records."""
    if len(values) != n:
        return False
    whole = query.discretize(values, np.zeros(n))
    return whole.dtype.kind in "biu" and whole.shape == query.domain.shape(n)


QUERIES = Registry("query", "local_dp.queries", Query, BUILT_IN)


STEPS = 1 << 16  # of the lattice of a number in [-bound, bound]


def written(numbers: Iterable[float]) -> tuple[float, ...]:
    """Numbers as a parameter of a query: plain floats, which travel exactly."""
    return tuple(map(float, numbers))


def read_numbers(numbers: tuple[float, ...]) -> Floats:
    """The numbers of a parameter as an array. Raises InputError on anything that is not a number
    that can be computed with."""
    for number in numbers:
        check_number("a number of the list", number)
    return np.array(numbers, dtype=np.float64)


def on_lattice(values: Floats, bound: float) -> Floats:
    """Numbers clipped to [-bound, bound], as places on a lattice of 2^16 steps; a missing number
    counts as 0."""
    share = np.clip(np.nan_to_num(values / bound, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    return np.asarray((share + 1) / 2 * STEPS)


def matrix(records: Records, columns: tuple[str, ...]) -> Floats:
    """The columns as numbers, shape (columns, n)."""
    return np.stack([records.numbers(name) for name in columns])


def weighted_sum(weights: Floats, columns: Floats) -> Floats:
    """The sum of weight times column, shape (n,), in order: a matrix product rounds differently for
    one record and many, and tiers would differ."""
    total: Floats = weights[0] * columns[0]
    for weight, column in zip(weights[1:], columns[1:], strict=True):
        total = total + weight * column
    return total


def check_columns(columns: tuple[str, ...]) -> None:
    if not columns or len(set(columns)) != len(columns):
        raise InputError(f"the columns are {columns!r}; give at least one, each once")


def check_weights(weights: tuple[float, ...], count: int = 0) -> None:
    """Raises InputError unless there are `count` numbers that can be computed with, or any from 1
    on."""
    if not weights or (count and len(weights) != count):
        raise InputError(f"{weights!r:.80} are not {count or 'one or more'} finite numbers")
    read_numbers(weights)


def check_bound(bound: float) -> None:
    check_width("the bound", bound)
