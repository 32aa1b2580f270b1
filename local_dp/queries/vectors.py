"""Several numeric columns as one vector."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_number, check_width
from local_dp.domains import Vectors, vectors
from local_dp.errors import InputError
from local_dp.queries.numbers import check_columns
from local_dp.queries.query import Query
from local_dp.records import Records


def on_rows(columns: Iterable[Floats], steps: int) -> Ints:
    """Coordinates in [-1, 1], each of shape (n,), as rows of a lattice of `steps` to either side, shape (n, d): beyond it the end, missing the middle."""
    inside = (np.clip(np.nan_to_num(column, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0) for column in columns)
    return np.stack([np.rint(column * steps).astype(np.int16) for column in inside], axis=-1)


def check_body(kind: str) -> None:
    if kind not in ("cube", "ball"):
        raise InputError(f"there is no body {kind!r}; give cube or ball")


@dataclass(frozen=True)
class Coordinates(Query):
    """The columns, each less its centre and over its reach, as a vector of the cube [-1, 1]^d or of the Euclidean unit ball, shape (n, d).

    On a lattice of `steps` to either side. A number beyond centre +- reach counts as the nearer end, a missing one as the centre, and a vector outside the
    ball as the nearest on its way to 0. Whoever asks so has decided that, or made sure that there is none (`protocols.policies`).
    """

    name: ClassVar[str] = "coordinates"
    columns: tuple[str, ...]
    centres: tuple[float, ...]
    reaches: tuple[float, ...]
    kind: Literal["cube", "ball"] = "ball"
    steps: int = 1 << 10

    def check(self) -> None:
        check_columns(self.columns)
        if not len(self.centres) == len(self.reaches) == len(self.columns):
            raise InputError(f"{len(self.columns)} columns need as many centres and reaches; given are {self.centres!r:.80} and {self.reaches!r:.80}")
        for centre, reach in zip(self.centres, self.reaches, strict=True):
            check_number("a centre", centre)
            check_width("a reach", reach)
        check_body(self.kind)

    @property
    def domain(self) -> Vectors:
        return vectors(self.kind, len(self.columns), self.steps)

    def __call__(self, records: Records) -> Ints:
        columns = map(records.numbers, self.columns)
        return on_rows(((column - centre) / reach for column, centre, reach in zip(columns, self.centres, self.reaches, strict=True)), self.steps)
