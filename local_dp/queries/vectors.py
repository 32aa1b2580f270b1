"""Queries to several numeric columns as one vector: coordinates, descent directions of a loss,
nearest centres."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_number, check_whole, check_width
from local_dp.domains import Vectors, levels, symbols, vectors
from local_dp.errors import InputError
from local_dp.queries.query import (
    STEPS,
    Query,
    check_bound,
    check_columns,
    matrix,
    on_lattice,
    read_numbers,
    weighted_sum,
)
from local_dp.records import Records


def on_rows(columns: Iterable[Floats], steps: int) -> Floats:
    """Coordinates in [-1, 1], each of shape (n,), as places on a lattice of `steps` to either side,
    shape (n, d): beyond it the end, missing the middle."""
    inside = (
        np.clip(np.nan_to_num(column, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
        for column in columns
    )
    return np.stack([column * steps for column in inside], axis=-1)


def check_body(kind: str) -> None:
    if kind not in ("cube", "ball"):
        raise InputError(f"there is no body {kind!r}; give cube or ball")


@dataclass(frozen=True)
class Coordinates(Query):
    """The columns, each less its centre and over its reach, as a vector of the cube [-1, 1]^d or of
    the Euclidean unit ball, shape (n, d).

    On a lattice of `steps` to either side. A number beyond centre +- reach counts as the nearer
    end, a missing one as the centre. Then the vector is multiplied by `shrunk`; one outside the
    ball is scaled to norm 1, and all of a ball a little inwards, so that rounding stays inside.
    `protocols.surveys.policies` decides on such records first.
    """

    name = "coordinates"
    summary = "Gives the columns as a vector of a cube or a ball"
    columns: tuple[str, ...]
    centres: tuple[float, ...]
    reaches: tuple[float, ...]
    kind: Literal["cube", "ball"] = "ball"
    steps: int = 1 << 10
    shrunk: float = 1.0

    def check(self) -> None:
        check_width("the shrinkage", self.shrunk)
        check_columns(self.columns)
        if not len(self.centres) == len(self.reaches) == len(self.columns):
            raise InputError(
                f"{len(self.columns)} columns need as many centres and reaches; given are "
                f"{self.centres!r:.80} and {self.reaches!r:.80}"
            )
        for centre, reach in zip(self.centres, self.reaches, strict=True):
            check_number("a centre", centre)
            check_width("a reach", reach)
        check_body(self.kind)

    @property
    def domain(self) -> Vectors:
        return vectors(self.kind, len(self.columns), self.steps)

    def __call__(self, records: Records) -> Floats:
        columns = zip(self.columns, self.centres, self.reaches, strict=True)
        parts = ((records.numbers(name) - centre) / reach for name, centre, reach in columns)
        rows = self.domain.clip(on_rows(parts, self.steps) * self.shrunk)
        return np.asarray(rows * (self.scale / self.shrunk))

    @property
    def scale(self) -> float:
        """What a reach counts as, in [0, 1]."""
        margin = min(len(self.columns) ** 0.5 / self.steps, 0.5) if self.kind == "ball" else 0.0
        return self.shrunk * (1 - margin)


# Minus the derivative of each loss at the margin m = y <w, x>.
LOSSES: dict[str, Callable[[Floats], Floats]] = {
    # max(0, -m), a tie counted as a mistake
    "perceptron": lambda margin: (margin <= 0).astype(np.float64),
    "hinge": lambda margin: (margin < 1).astype(np.float64),  # max(0, 1 - m)
    "logistic": lambda margin: np.exp(-np.logaddexp(0.0, margin)),  # ln(1 + e^-m)
}


class _OfMargin(Query):
    """A query about the margin of a halfspace. Subclasses are dataclasses with these fields."""

    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]

    def check(self) -> None:
        check_columns(self.columns)
        if len(self.numbers) != len(self.columns):
            raise InputError(
                f"{len(self.columns)} columns and {len(self.numbers)} weights do not fit together"
            )

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.weights)

    def margin(self, records: Records) -> Floats:
        """y <w, x> of each record, shape (n,)."""
        sums = weighted_sum(self.numbers, matrix(records, self.columns))
        return np.sign(records.numbers(self.label)) * sums


@dataclass(frozen=True)
class Mistake(_OfMargin):
    """1 where the halfspace of the weights w misclassifies the +1/-1 label, y <w, x> <= 0, else
    0."""

    name = "mistake"
    summary = "Asks whether a halfspace errs on the label"
    domain = symbols(2)
    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]

    def __call__(self, records: Records) -> Ints:
        return (self.margin(records) <= 0).view(np.uint8)


@dataclass(frozen=True)
class _Descending(_OfMargin):
    """A query about minus the gradient of a loss at the weights w, -loss'(y <w, x>) y x. The label
    y is +1 or -1; any other label counts as its sign."""

    loss: str
    columns: tuple[str, ...]
    label: str
    weights: tuple[float, ...]

    def check(self) -> None:
        super().check()
        if self.loss not in LOSSES:
            raise InputError(f"no loss {self.loss!r}; there are {', '.join(LOSSES)}")

    def pull(self, records: Records) -> Floats:
        """-loss'(y <w, x>) y of each record, shape (n,)."""
        slopes = LOSSES[self.loss](self.margin(records))
        return np.asarray(slopes * np.sign(records.numbers(self.label)))


class _OfCoordinate(Query):
    """A query about one of its columns. Subclasses are dataclasses with these fields."""

    domain = levels(STEPS)
    columns: tuple[str, ...]
    coordinate: int
    bound: float

    def check(self) -> None:
        super().check()
        check_bound(self.bound)
        check_whole("coordinate", self.coordinate, 0, len(self.columns) - 1)


@dataclass(frozen=True)
class Descent(_OfCoordinate, _Descending):
    """One coordinate of minus the gradient over `bound` >= abs(x_j), -loss'(y <w, x>) y x_j / bound
    in [-1, 1], on a lattice of 2^16 steps."""

    name = "descent"
    summary = "Gives one coordinate of a descent direction"
    coordinate: int
    bound: float = 1.0

    def __call__(self, records: Records) -> Floats:
        return on_lattice(
            self.pull(records) * records.numbers(self.columns[self.coordinate]), self.bound
        )


@dataclass(frozen=True)
class DescentVector(_Descending):
    """All coordinates of minus the gradient over `bound`, as a vector of the cube or the ball,
    shape (n, d), on the lattice of `Coordinates`."""

    name = "descent-vector"
    summary = "Gives all coordinates of a descent direction"
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

    def __call__(self, records: Records) -> Floats:
        pull = self.pull(records)
        return on_rows(
            (pull * records.numbers(column) / self.bound for column in self.columns), self.steps
        )


def nearest(points: Floats, centres: Floats) -> Ints:
    """Which centre, shape (k, d), is nearest to each point, shape (d, n); the first of equals."""
    distances = np.stack(
        [(centre**2).sum() - 2 * weighted_sum(centre, points) for centre in centres]
    )
    return np.asarray(distances.argmin(axis=0))


@dataclass(frozen=True)
class _ByCentre(Query):
    """What the queries about nearest centres share: k centres, row after row, and which one is
    meant."""

    columns: tuple[str, ...]
    centres: tuple[float, ...]
    centre: int

    def check(self) -> None:
        check_columns(self.columns)
        k, rest = divmod(len(self.numbers), len(self.columns))
        if rest or type(self.centre) is not int or not 0 <= self.centre < k:
            raise InputError(
                f"{len(self.centres)} numbers are not centres in {len(self.columns)} columns, or "
                f"there is no centre {self.centre}"
            )

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.centres)

    def belongs(self, points: Floats) -> Floats:
        """1 where the point is nearest to the centre that is meant, else 0."""
        centres = self.numbers.reshape(-1, len(self.columns))
        return np.asarray((nearest(points, centres) == self.centre).astype(np.float64))


@dataclass(frozen=True)
class NearestCentre(_ByCentre):
    """1 where the record is nearest to the given centre, else 0."""

    name = "nearest-centre"
    summary = "Asks whether a centre is the nearest one"
    domain = symbols(2)

    def __call__(self, records: Records) -> Ints:
        return self.belongs(matrix(records, self.columns)).astype(np.uint8)


@dataclass(frozen=True)
class CentreSum(_OfCoordinate, _ByCentre):
    """One coordinate of the record where it is nearest to the given centre, else 0; divided by
    `bound`, on a lattice of 2^16 steps."""

    name = "centre-sum"
    summary = "Gives a coordinate where a centre is the nearest one"
    coordinate: int = 0
    bound: float = 1.0

    def __call__(self, records: Records) -> Floats:
        points = matrix(records, self.columns)
        return on_lattice(self.belongs(points) * points[self.coordinate], self.bound)
