"""Queries about nearest centres."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.numbers import STEPS, check_bound, check_columns, matrix, on_lattice, read_numbers, weighted_sum
from local_dp.queries.query import Query
from local_dp.records import Records


def nearest(points: Floats, centres: Floats) -> Ints:
    """Which centre, shape (k, d), is nearest to each point, shape (d, n); the first of equals."""
    distances = np.stack([(centre**2).sum() - 2 * weighted_sum(centre, points) for centre in centres])
    closest: Ints = distances.argmin(axis=0)
    return closest


@dataclass(frozen=True)
class _ByCentre(Query):
    """What the queries about nearest centres share: k centres, row after row, and which one is meant."""

    columns: tuple[str, ...]
    centres: tuple[float, ...]
    centre: int

    def check(self) -> None:
        check_columns(self.columns)
        k, rest = divmod(len(self.numbers), len(self.columns))
        if rest or type(self.centre) is not int or not 0 <= self.centre < k:
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

    def check(self) -> None:
        super().check()
        check_bound(self.bound)
        check_whole("coordinate", self.coordinate, 0, len(self.columns) - 1)

    @property
    def domain(self) -> Domain:
        return levels(STEPS)

    def __call__(self, records: Records) -> Ints:
        points = matrix(records, self.columns)
        return on_lattice(self.belongs(points) * points[self.coordinate], self.bound)
