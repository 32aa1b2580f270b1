"""The values that queries take and randomizers accept, and the parameters that name both."""

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from local_dp.arrays import Column, Counts, Floats, Ints
from local_dp.checks import check_dimension, check_whole
from local_dp.errors import InputError

Parameter: TypeAlias = int | float | str | tuple[str, ...] | tuple[float, ...]
MAX_SYMBOLS = 4096
MAX_LENGTH = 22


def parameters(component: Any) -> dict[str, Parameter]:
    """The fields of a query or a randomizer, which name it on the wire."""
    return {each.name: getattr(component, each.name) for each in fields(component)}


@dataclass(frozen=True)
class Domain:
    """The values a query may take and a randomizer accepts: every whole number from `low` to
    `high`; `kind` says what they mean."""

    kind: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"the {self.kind} {self.low} to {self.high}"

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def values(self) -> Counts:
        """Every value, ascending."""
        return np.arange(self.low, self.high + 1, dtype=np.int64)

    def some(self, most: int) -> Counts:
        """All values of a small domain; of a large one at most `most`, from end to end."""
        if self.size <= most:
            return self.values()
        steps = max(1, most - 1)
        return self.low + np.arange(most, dtype=np.int64) * (self.size - 1) // steps

    def takes(self, values: "Domain") -> bool:
        """True if a randomizer of this domain takes those values: the same, or symbols as levels of
        the same order."""
        of_symbols = values.kind == "symbols" and self.kind == "levels"
        return self == values or (of_symbols and (self.low, self.high) == (values.low, values.high))

    @property
    def has_places(self) -> bool:
        """True if the values are steps of numbers, between which a number may lie."""
        return self.kind in ("levels", "grouped levels", "cube", "ball", "key values")

    def discretize(self, places: Column, random: Floats) -> Ints:
        """Moves places to one of their two neighbours, the mean kept; `random` has a uniform number
        in [0, 1) for each client. Privacy: that of the neighbours, whose laws it mixes. Variance:
        at most 1/4 of a step squared."""
        if places.dtype.kind != "f" or not self.has_places:
            return places
        shift = random.reshape(-1, *[1] * (places.ndim - 1))
        with np.errstate(all="ignore"):  # no record may warn
            return self.clip(np.floor(places + shift).astype(np.int32))

    def shape(self, n: int) -> tuple[int, ...]:
        return (n,)

    def first(self, n: int) -> Counts:
        """The least member, n times: a value that depends on no record."""
        return np.full(n, self.low, dtype=np.int64)

    def truths(self, values: Ints) -> Floats:
        """What each value adds to the averages of all: a number in [0, 1], or 1 or a sign at its
        symbol; shape (n, averages)."""
        if self.kind == "levels":
            return np.asarray(values[:, None] / self.high)
        if self.kind == "signed symbols":
            symbols_of = np.arange(1, self.high + 1)
            return np.asarray(
                np.sign(values)[:, None] * (np.abs(values)[:, None] == symbols_of), dtype=np.float64
            )
        return np.asarray(values[:, None] == np.arange(self.low, self.high + 1), dtype=np.float64)

    def clip(self, values: Column) -> Column:
        """The values moved to the nearest member: a client's last defence against a record outside
        the declared domain."""
        return np.asarray(values.clip(self.low, self.high))


@dataclass(frozen=True)
class Vectors(Domain):
    """Vectors of `d` coordinates: a value is a row of whole numbers from -steps to steps, shape
    (d,), and stands for row / steps in [-1, 1]^d.

    `kind` is "cube" for all rows, or "ball" for those of Euclidean norm at most 1; of "key values"
    the whole numbers begin with 0. n values have shape (n, d).
    """

    d: int

    @property
    def size(self) -> int:
        """The number of rows of the cube, members or not."""
        return int((self.high - self.low + 1) ** self.d)

    def values(self) -> Counts:
        """Every member, for a small d: shape (members, d)."""
        axis = np.arange(self.low, self.high + 1)
        rows = np.stack(np.meshgrid(*[axis] * self.d, indexing="ij"), axis=-1).reshape(-1, self.d)
        return rows[(rows**2).sum(axis=1) <= self.high**2] if self.kind == "ball" else rows

    def some(self, most: int) -> Counts:
        """All of few; else plus and minus the first unit vector, the diagonal, nothing, and
        pseudorandom members."""
        if self.size <= most:
            return self.values()
        axis = np.eye(1, self.d, dtype=np.int64) * self.high
        count = max(4, most)
        sample = np.random.default_rng(1).integers(
            self.low, self.high, (count - 4, self.d), endpoint=True
        )
        diagonal = np.full((1, self.d), self.high)
        return self.clip(np.concatenate([axis, -axis, diagonal, 0 * axis, sample])).astype(np.int64)

    def shape(self, n: int) -> tuple[int, ...]:
        return n, self.d

    def first(self, n: int) -> Counts:
        return np.zeros((n, self.d), dtype=np.int64)

    def truths(self, values: Ints) -> Floats:
        return np.asarray(values / self.high)

    def clip(self, values: Column) -> Column:
        """Into the cube; for the ball, then towards 0 until the norm is at most 1. Whole numbers
        stay whole, alike on every machine."""
        rows: Column = values.clip(self.low, self.high)
        if self.kind != "ball":
            return rows
        # of whole numbers below 2^53: their sum is exact
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        scale = self.high / np.maximum(norms * (1 + 1e-12), self.high)
        shrunk = (rows * scale[:, None]).astype(rows.dtype)  # of whole numbers without the rest
        return np.where((norms <= self.high)[:, None], rows, shrunk)


def symbols(k: int) -> Domain:
    """One of k symbols, 0..k-1; k = 2 is a yes/no answer with 1 for yes. 2 <= k <= 4096."""
    check_whole("k", k, 2, MAX_SYMBOLS)
    return Domain("symbols", 0, k - 1)


def many_symbols(k: int) -> Domain:
    """One of k symbols; of more than 4096 a string of as many bits as k needs. 2 <= k <= 2^22."""
    check_whole("k", k, 2, 1 << MAX_LENGTH)
    return symbols(k) if k <= MAX_SYMBOLS else bit_strings((k - 1).bit_length())


def bit_or_silence() -> Domain:
    """A bit, 0 or 1, or 2 for silence."""
    return Domain("bit or silence", 0, 2)


def bit_strings(length: int) -> Domain:
    """One of 2^length symbols, each a string of bits read as a number. 1 <= length <= 22."""
    check_whole("length", length, 1, MAX_LENGTH)
    return Domain("symbols", 0, (1 << length) - 1)


def signed_symbols(k: int) -> Domain:
    """Plus or minus one of k symbols, or nothing: +(j+1) and -(j+1) are symbol j with its sign, 0
    is null. 1 <= k <= 4096."""
    check_whole("k", k, 1, MAX_SYMBOLS)
    return Domain("signed symbols", -k, k)


def levels(steps: int) -> Domain:
    """A number in [0, 1] on the lattice of multiples of 1/steps: value v stands for v/steps."""
    if type(steps) is not int or not 1 <= steps <= 1 << 20:
        raise InputError(f"the lattice has {steps!r} steps; give a whole number from 1 to 2^20")
    return Domain("levels", 0, steps)


MAX_DIMENSION = 1024


def vectors(kind: Literal["cube", "ball"], d: int, steps: int) -> Vectors:
    """Vectors in the cube [-1, 1]^d or in the Euclidean unit ball, on a lattice of `steps`, a power
    of two, to either side. 1 <= d <= 1024, steps <= 2^14."""
    check_dimension(d, MAX_DIMENSION)
    if type(steps) is not int or not 1 <= steps <= 1 << 14 or steps & (steps - 1):
        raise InputError(
            f"the lattice has {steps!r} steps to either side; give a power of two up to 2^14"
        )
    return Vectors(kind, -steps, steps, d)


def grouped_levels(steps: int, groups: int) -> Domain:
    """A number in [0, 1] in one of several groups, or none: value g (steps + 1) + v is v/steps in
    group g, and the last value is none."""
    if type(groups) is not int or groups < 1:
        raise InputError(f"there are {groups!r} groups; give a whole number of 1 or more")
    return Domain("grouped levels", 0, groups * levels(steps).size)
