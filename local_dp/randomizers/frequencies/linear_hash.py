"""Linear hashes over finite fields: k symbols to g, such that every two symbols collide equally often, read off one recurring sequence."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words

MAX_CELLS = 1 << 20  # of a table of rows and hashes
_BLOCK = 1 << 20  # hashes looked up at a time


def prime_power(g: int) -> tuple[int, int] | None:
    """(p, e) with g = p^e and p prime, if there are such."""
    p = next((part for part in range(2, int(g**0.5) + 1) if g % part == 0), g)
    e = 0
    while g > 1 and g % p == 0:
        g, e = g // p, e + 1
    return (p, e) if g == 1 and e else None


@dataclass(frozen=True)
class LinearHash:
    """The rows of a 2-universal family of hashes of k symbols to 0..g-1: linear functionals on the K = g^m >= k vectors of length m over the field of order
    g.

    There are R = (K - 1) / (g - 1) nonzero ones up to a factor. Symbol v is the power a^v of a primitive element, row i the functional x -> f(a^i x), so the
    hash of v in row i is term i + v of one sequence; the K-th symbol is the vector 0. Any two symbols collide in (K / g - 1) / (g - 1) rows: sets of equal
    hash are the hyperplanes of an affine geometry. With m = 1 there is one row, any g = k, and no collision. Source: Carter, Wegman 1979 (universal classes);
    Singer 1938 (the sequence).
    """

    k: int
    g: int
    m: int

    @property
    def points(self) -> int:
        """K, the vectors."""
        return int(self.g**self.m)

    @property
    def rows(self) -> int:
        """R."""
        return (self.points - 1) // (self.g - 1)

    @cached_property
    def _terms(self) -> Words:
        """The sequence, as far as row and symbol reach: rows - 1 + min(k, K - 1) terms."""
        if self.m == 1:
            return np.arange(self.k).astype(self.dtype)
        return recurring(self.g, self.m, self.rows - 1 + min(self.k, self.points - 1)).astype(self.dtype)

    @property
    def dtype(self) -> "np.dtype[np.unsignedinteger]":
        """The narrowest type that holds a hash."""
        return np.dtype(np.uint8 if self.g <= 1 << 8 else np.uint16)

    @property
    def _has_zero(self) -> bool:
        """Whether the last symbol is the vector 0."""
        return self.m > 1 and self.k == self.points

    def __call__(self, rows: Ints, values: Ints) -> Words:
        """The hash of each value in each row, elementwise under broadcasting."""
        places = rows.astype(np.int64) + values
        codes: Words = np.take(self._terms, places, mode="clip")
        return np.where(values == self.k - 1, self.dtype.type(0), codes) if self._has_zero else codes

    def _blocks(self) -> Iterator[tuple[slice, Words]]:
        """Some rows at a time, with the hashes of all symbols in each of them, shape (rows, k)."""
        step, symbols = max(1, _BLOCK // self.k), np.arange(self.k)
        for first in range(0, self.rows, step):
            last = min(first + step, self.rows)
            yield slice(first, last), self(np.arange(first, last)[:, None], symbols)

    def support(self, counts: Counts) -> Counts:
        """The sum over all rows of the counts of each symbol's own hash, shape (..., rows, g) to (..., k). O(R k)."""
        sums = np.zeros((*counts.shape[:-2], self.k), dtype=np.int64)
        for some, codes in self._blocks():
            sums += np.take_along_axis(counts[..., some, :], np.broadcast_to(codes, (*counts.shape[:-2], *codes.shape)).astype(np.int64), axis=-1).sum(axis=-2)
        return sums

    def gathered(self, weights: Floats) -> Floats:
        """The sum of the weights of the symbols with each row and hash, shape (..., k) to (..., rows, g): the transpose of `support`."""
        flat = weights.reshape(-1, self.k)
        sums = np.zeros((len(flat), self.rows * self.g))
        for some, codes in self._blocks():
            cells = (np.arange(some.start, some.stop)[:, None] * self.g + codes.astype(np.int64)).ravel()
            for total, row in zip(sums, flat, strict=True):
                total += np.bincount(cells, weights=np.tile(row, len(codes)), minlength=len(total))
        return sums.reshape(*weights.shape[:-1], self.rows, self.g)


def collisions(g: int, m: int) -> int:
    """In how many rows any two symbols have the same hash."""
    return int((g ** (m - 1) - 1) // (g - 1))


@lru_cache(maxsize=32)
def recurring(g: int, m: int, length: int) -> Words:
    """f(a^i) for i = 0..length-1: a primitive in the field of g^m elements, f linear over the field of g = p^e, its values named 0..g-1.

    The name of f(x) has the digits t(b^j x), j < e. Here b is a primitive element of the smaller field and t a functional over the prime field. The terms
    t(a^i) are a linear recurring sequence of period g^m - 1.
    """
    p, e = _split(g)
    step = (g**m - 1) // (g - 1)  # b = a^step
    taps = primitive_taps(p, e * m)
    terms = [*[0] * (e * m - 1), 1]
    used = [(place, tap) for place, tap in enumerate(taps) if tap]
    for place in range(length + (e - 1) * step - len(terms)):
        terms.append(sum(tap * terms[place + offset] for offset, tap in used) % p)
    digits = np.array(terms, dtype=np.int64)
    return np.asarray(sum(p**j * digits[j * step : j * step + length] for j in range(e)).astype(np.uint32))


def _split(g: int) -> tuple[int, int]:
    power = prime_power(g)
    if power is None:
        raise AssertionError(f"there is no field of {g} elements")
    return power


def primitive_taps(p: int, degree: int) -> tuple[int, ...]:
    """c with x^degree = sum of c_i x^i modulo a primitive polynomial over the integers modulo p: the first one in order of c read as a number."""
    order = p**degree - 1
    parts = {part for low in range(1, math.isqrt(order) + 1) if order % low == 0 for part in (low, order // low)} - {order}
    unit = np.eye(degree, dtype=np.int64)
    for number in range(1, p**degree):
        taps = tuple(number // p**place % p for place in range(degree))
        companion = np.roll(unit, 1, axis=0)
        companion[:, -1] = taps
        if taps[0] and (_power(companion, order, p) == unit).all() and not any((_power(companion, part, p) == unit).all() for part in parts):
            return taps
    raise AssertionError("every finite field has a primitive element")


def _power(matrix: Counts, exponent: int, p: int) -> Counts:
    """matrix^exponent modulo p."""
    power = np.eye(len(matrix), dtype=np.int64)
    while exponent:
        if exponent & 1:
            power = power @ matrix % p
        matrix, exponent = matrix @ matrix % p, exponent >> 1
    return power
