"""Several numeric columns as one vector."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from local_dp.arrays import Ints
from local_dp.domains import Vectors, vectors
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.queries.numbers import check_bound, check_columns, matrix
from local_dp.records import Records


@dataclass(frozen=True)
class Coordinates(Query):
    """The columns, each over `bound`, as a vector of the cube [-1, 1]^d or of the Euclidean unit ball, on a lattice of `steps` to either side; shape (n, d).

    A number beyond the bound counts as the bound, a missing one as 0, and a vector outside the ball as the nearest on its way to 0.
    """

    name: ClassVar[str] = "coordinates"
    columns: tuple[str, ...]
    bound: float
    kind: Literal["cube", "ball"] = "ball"
    steps: int = 1 << 10

    def __post_init__(self) -> None:
        check_columns(self.columns)
        check_bound(self.bound)
        if self.kind not in ("cube", "ball"):
            raise InputError(f"there is no body {self.kind!r}; give cube or ball")
        self.domain  # noqa: B018  # checks the lattice

    @property
    def domain(self) -> Vectors:
        return vectors(self.kind, len(self.columns), self.steps)

    def __call__(self, records: Records) -> Ints:
        shares = np.clip(np.nan_to_num(matrix(records, self.columns).T / self.bound, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
        return np.rint(shares * self.steps).astype(np.int64)
