"""Databases of points: the distinct points of 0..2^bits - 1 in order, and how often each occurs;
and floats as such points.

A record costs nothing beyond its distinct value, and the domain may be of any size: no algorithm
walks through it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Naturals, Words
from local_dp.checks import check_whole
from local_dp.errors import InputError

MAX_BITS = 1 << 16
WORD = 64


def check_bits(bits: int) -> None:
    """Raises InputError unless 1 <= bits <= 65,536."""
    check_whole("bits", bits, 1, MAX_BITS)


def check_same(bits: int, own: int) -> None:
    """Raises InputError unless points of `bits` bits are of the domain 0..2^own - 1."""
    if bits != own:
        raise InputError(
            f"the points are of 0..2^{bits} - 1, the domain here is 0..2^{own} - 1; give one "
            "domain for both"
        )


def naturals(points: Sequence[int] | Ints | Naturals, bits: int) -> Naturals:
    """Points of 0..2^bits - 1 as an array: uint64 up to 64 bits, otherwise Python's whole numbers.
    Raises InputError for anything else."""
    check_bits(bits)
    array = np.asarray(points)
    if not array.size:
        return np.zeros(0, dtype=np.uint64 if bits <= WORD else object)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        # sequences of large and small whole numbers may have become floats
        array = np.array(points, dtype=object)
        if array.ndim != 1 or not all(map(_is_whole, array.tolist())):
            raise InputError(
                "some point is not a whole number; give one whole number for each record"
            )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >> bits:
        raise InputError(
            f"some point is {low if low < 0 else f'of {high.bit_length()} bits'}; the domain is "
            f"0..2^{bits} - 1"
        )
    return array.astype(np.uint64) if bits <= WORD else array.astype(object)


def _is_whole(point: object) -> bool:
    return isinstance(point, int | np.integer) and not isinstance(point, bool)


def upto(counts: Counts) -> Counts:
    """The sums of the first 0, 1, ..., all counts."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])


def bit_lengths(numbers: Naturals) -> Ints:
    if numbers.dtype == object:
        return np.array([number.bit_length() for number in numbers.tolist()], dtype=np.int64)
    powers = np.uint64(1) << np.arange(WORD, dtype=np.uint64)
    return np.searchsorted(powers, numbers, side="right")


def absent(values: Naturals, places: Iterable[int]) -> list[int]:
    """The points at these places, from 0, among the points that are not in the ascending distinct
    `values`. O(log s) each."""
    whole = values.dtype == object
    # the number of absent points below each
    below = values - np.arange(len(values), dtype=object if whole else np.uint64)
    return [
        place + int(np.searchsorted(below, place if whole else np.uint64(place), side="right"))
        for place in places
    ]


@dataclass(frozen=True)
class Multiset:
    """m points: `values` ascending and distinct, and `counts` of 1 or more, both of shape (s,). m
    is public: neighbours differ in a replaced record."""

    bits: int
    values: Naturals
    counts: Counts

    @classmethod
    def of(cls, points: Sequence[int] | Ints | Naturals, bits: int) -> Self:
        """From one point for each record, in any order. O(m log m)."""
        values, counts = np.unique(naturals(points, bits), return_counts=True)
        return cls(bits, values, counts.astype(np.int64))

    @classmethod
    def of_parts(cls, parts: Iterable[Ints | Naturals], bits: int) -> Self:
        """The same from some points at a time: memory grows with the distinct points alone."""
        whole, fresh = cls.of([], bits), list[Self]()
        for part in parts:
            fresh.append(cls.of(part, bits))
            # so that merging costs no more than sorting
            if sum(len(each.values) for each in fresh) >= len(whole.values):
                whole, fresh = cls._merge([whole, *fresh]), []
        return cls._merge([whole, *fresh])

    @classmethod
    def _merge(cls, parts: "Sequence[Self]") -> Self:
        values, places = np.unique(
            np.concatenate([each.values for each in parts]), return_inverse=True
        )
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, places, np.concatenate([each.counts for each in parts]))
        return cls(parts[0].bits, values, counts)

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def ranked(self, ranks: Ints) -> Naturals:
        """The points at these places, from 0, among all m in order."""
        return self.values[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]


@dataclass(frozen=True)
class LabelledMultiset:
    """m labelled points: `values` ascending and distinct, and the numbers of those labelled 0 and
    1, all of shape (s,)."""

    bits: int
    values: Naturals
    zeros: Counts
    ones: Counts

    @classmethod
    def of(
        cls, points: Sequence[int] | Ints | Naturals, labels: Sequence[int] | Ints, bits: int
    ) -> Self:
        """From one point and one label of 0 or 1 for each record, in any order. O(m log m). Raises
        InputError for other labels."""
        array, marks = naturals(points, bits), np.asarray(labels)
        if marks.shape != array.shape or np.any((marks != 0) & (marks != 1)):
            raise InputError(
                f"there are {len(array)} points and {len(marks)} labels; give one label of 0 or 1 "
                "for each point"
            )
        values, where = np.unique(array, return_inverse=True)
        ones = np.bincount(where[marks == 1], minlength=len(values)).astype(np.int64)
        every = np.bincount(where, minlength=len(values)).astype(np.int64)
        return cls(bits, values, every - ones, ones)

    @property
    def size(self) -> int:
        return int(self.zeros.sum()) + int(self.ones.sum())

    def labelled(self, label: int) -> Multiset:
        counts = self.ones if label else self.zeros
        some = counts > 0
        return Multiset(self.bits, self.values[some], counts[some])


BITS = 64
_SIGN = np.uint64(1 << 63)
_INFINITY = (0x7FF << 52) | 1 << 63


def points_of(values: Floats | Sequence[float]) -> Words:
    """Whole numbers below 2^64 in the order of the values: a double's bits, inverted below zero,
    else with the sign set. Raises InputError for NaN."""
    floats = np.asarray(values, dtype=np.float64) + 0.0
    if np.isnan(floats).any():
        raise InputError("some value is not a number; leave out such records")
    bits = floats.view(np.uint64)
    return np.asarray(np.where(bits & _SIGN, ~bits, bits | _SIGN))


def value_of(point: int) -> float:
    """The float of a point or threshold; beyond the infinities, the infinity."""
    inside = min(max(point, (1 << BITS) - 1 - _INFINITY), _INFINITY)
    bits = inside ^ (1 << 63) if inside >> 63 else (1 << 64) - 1 - inside
    value = float(np.array([bits], dtype=np.uint64).view(np.float64)[0])
    assert not math.isnan(value)
    return value
