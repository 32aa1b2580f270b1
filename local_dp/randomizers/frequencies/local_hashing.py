"""Local hashing: a public or private coin picks a linear hash of k symbols to a few codes, and the
client reports its code by a small channel."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.frequencies.base import (
    CodedOracle,
    EvenDesign,
    OfSymbols,
    Supporting,
    TwoWeights,
)
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.subset_selection import total_variance
from local_dp.randomizers.frequencies.unary import SUE
from local_dp.randomizers.places import PerCoin, ones_at
from local_dp.tallies import Estimate, Tally

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
    """The rows of a 2-universal family of hashes of k symbols to 0..g-1: linear functionals on the
    K = g^m >= k vectors of m elements of a field of g.

    There are R = (K - 1) / (g - 1) nonzero ones up to a factor. Symbol v is the power a^v of a
    primitive element, row i the functional x -> f(a^i x), so the hash of v in row i is term i + v
    of one sequence; the K-th symbol is the vector 0. Any two symbols collide in (K / g - 1) / (g -
    1) rows: sets of equal hash are the hyperplanes of an affine geometry. With m = 1 there is one
    row, any g = k, and no collision. Source: Carter, Wegman 1979; Singer 1938.
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
        return recurring(self.g, self.m, self.rows - 1 + min(self.k, self.points - 1)).astype(
            self.dtype
        )

    @property
    def dtype(self) -> "np.dtype[np.unsignedinteger]":
        """The narrowest type that holds a hash."""
        return np.dtype(np.uint8 if self.g <= 1 << 8 else np.uint16)

    def __call__(self, rows: Ints, values: Ints) -> Words:
        """The hash of each value in each row, elementwise under broadcasting."""
        places = rows.astype(np.int64) + values
        codes: Words = np.take(self._terms, places, mode="clip")
        has_zero = self.m > 1 and self.k == self.points  # the last symbol is the vector 0
        return np.where(values == self.k - 1, self.dtype.type(0), codes) if has_zero else codes

    def _blocks(self) -> Iterator[tuple[slice, Words]]:
        """Some rows at a time, with the hashes of all symbols in each of them, shape (rows, k)."""
        step, symbols = max(1, _BLOCK // self.k), np.arange(self.k)
        for first in range(0, self.rows, step):
            last = min(first + step, self.rows)
            yield slice(first, last), self(np.arange(first, last)[:, None], symbols)

    def support(self, counts: Counts) -> Counts:
        """The sum over all rows of the counts of each symbol's own hash, shape (..., rows, g) to
        (..., k). O(R k)."""
        sums = np.zeros((*counts.shape[:-2], self.k), dtype=np.int64)
        for some, codes in self._blocks():
            sums += np.take_along_axis(
                counts[..., some, :],
                np.broadcast_to(codes, (*counts.shape[:-2], *codes.shape)).astype(np.int64),
                axis=-1,
            ).sum(axis=-2)
        return sums

    def gathered(self, weights: Floats) -> Floats:
        """The sum of the weights of the symbols with each row and hash, shape (..., k) to (...,
        rows, g): the transpose of `support`."""
        flat = weights.reshape(-1, self.k)
        sums = np.zeros((len(flat), self.rows * self.g))
        for some, codes in self._blocks():
            cells = (
                np.arange(some.start, some.stop)[:, None] * self.g + codes.astype(np.int64)
            ).ravel()
            for total, row in zip(sums, flat, strict=True):
                total += np.bincount(cells, weights=np.tile(row, len(codes)), minlength=len(total))
        return sums.reshape(*weights.shape[:-1], self.rows, self.g)


def collisions(g: int, m: int) -> int:
    """In how many rows any two symbols have the same hash."""
    return int((g ** (m - 1) - 1) // (g - 1))


@lru_cache(maxsize=32)
def recurring(g: int, m: int, length: int) -> Words:
    """f(a^i) for i = 0..length-1: a primitive in the field of g^m elements, f linear over the field
    of g = p^e, its values named 0..g-1.

    The name of f(x) has the digits t(b^j x), j < e. Here b is a primitive element of the smaller
    field and t a functional over the prime field. The terms t(a^i) are a linear recurring sequence
    of period g^m - 1.
    """
    power = prime_power(g)
    if power is None:
        raise AssertionError(f"there is no field of {g} elements")
    p, e = power
    step = (g**m - 1) // (g - 1)  # b = a^step
    taps = primitive_taps(p, e * m)
    terms = [*[0] * (e * m - 1), 1]
    nonzero = [(place, tap) for place, tap in enumerate(taps) if tap]
    for place in range(length + (e - 1) * step - len(terms)):
        terms.append(sum(tap * terms[place + offset] for offset, tap in nonzero) % p)
    digits = np.array(terms, dtype=np.int64)
    return np.asarray(
        sum(p**j * digits[j * step : j * step + length] for j in range(e)).astype(np.uint32)
    )


def primitive_taps(p: int, degree: int) -> tuple[int, ...]:
    """c with x^degree = sum of c_i x^i modulo a primitive polynomial over the integers modulo p:
    the first one in order of c read as a number."""
    order = p**degree - 1
    parts = {
        part
        for low in range(1, math.isqrt(order) + 1)
        if order % low == 0
        for part in (low, order // low)
    } - {order}
    unit = np.eye(degree, dtype=np.int64)
    for number in range(1, p**degree):
        taps = tuple(number // p**place % p for place in range(degree))
        companion = np.roll(unit, 1, axis=0)
        companion[:, -1] = taps
        if (
            taps[0]
            and (_power(companion, order, p) == unit).all()
            and not any((_power(companion, part, p) == unit).all() for part in parts)
        ):
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


@dataclass(frozen=True)
class EncodedGRR(CodedOracle):
    """Reports by randomized response the code of the symbol in a public row: one of `alphabet`
    codes, in one of `cells` rows."""

    @cached_property
    def inner(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=self.alphabet)


@dataclass(frozen=True)
class HashDesign(EvenDesign):
    """Sets of equal hash: K / g of the K = g^m >= k points of a `LinearHash`."""

    @cached_property
    @abstractmethod
    def hash(self) -> LinearHash:
        """The family of hashes; checks k."""

    @property
    def sets(self) -> tuple[int, int]:
        return self.hash.points, self.hash.points // self.hash.g


@dataclass(frozen=True)
class LocalHashing(EncodedGRR, HashDesign):
    """Reports the hash of the symbol, one of g, in a public row of a `LinearHash`, by randomized
    response.

    A report names the symbols with the reported hash: K / g of K = g^m >= k points. So this is
    subset selection with hyperplanes for sets. Privacy: g-ary randomized response in every row.
    Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q), p of
    randomized response, q = (K / g - p) / (K - 1). Cost: log2 g bits, one word; decoding O(n + R
    k), R = (K - 1) / (g - 1) rows.
    """

    @property
    def alphabet(self) -> int:
        return self.hash.g

    @property
    def cells(self) -> int:
        return self.hash.rows

    def encode(self, values: Ints, coins: Ints) -> Ints:
        return self.hash(coins, values)

    @property
    def own_chance(self) -> float:
        return self.inner.chances[0]

    def support(self, counts: Counts) -> Counts:
        return self.hash.support(counts)

    def own(self, values: Ints) -> Counts:
        rows = np.arange(self.hash.rows)
        return rows * self.hash.g + self.hash(rows, values[:, None]).astype(np.int64)

    @property
    def blind(self) -> float:
        return self.hash.g * self.inner.other / self.inner.total

    def gathered(self, weights: Floats) -> Floats:
        return self.hash.gathered(weights)


@dataclass(frozen=True, kw_only=True)
class OLH(LocalHashing):
    """Local hashing to g near e^eps + 1 codes, the prime power of least total variance at the
    uniform law; k-ary response where that is better.

    Utility: the variance of `LocalHashing`, 4 e^eps / (e^eps - 1)^2 / n for a rare symbol at g =
    e^eps + 1 and large k, less at small k; the best possible for k = g^m. 2 <= k <= 4096; tables
    have at most 2^20 cells.
    """

    name = "olh"
    summary = "Reports a hash of a symbol to the best number of codes"
    source = (
        "Wang, Blocki, Li, Jha 2017; hashes and tally by an affine geometry (Bose 1942; Park, "
        "Nam, Lee 2023)"
    )

    @cached_property
    def hash(self) -> LinearHash:
        return best_hash(self.nano, symbols(self.k).size)


@dataclass(frozen=True, kw_only=True)
class BLH(LocalHashing):
    """Local hashing to one bit: one-bit Hadamard without the row that hashes all symbols to 0; the
    variance is below (C^2 - f^2) / n. Cost: 1 bit."""

    name = "blh"
    summary = "Reports a hash of a symbol to one bit"
    source = "Bassily, Smith 2015; Wang, Blocki, Li, Jha 2017"

    @cached_property
    def hash(self) -> LinearHash:
        return LinearHash(self.k, 2, length_of(symbols(self.k).size, 2))


def length_of(k: int, g: int) -> int:
    """The least m with g^m >= k."""
    m = 1
    while g**m < k:
        m += 1
    return m


@lru_cache(maxsize=1024)
def best_hash(nano: int, k: int, most: int = MAX_CELLS) -> LinearHash:
    """The hash of least total variance at the uniform law: one row of k, or a prime power g with a
    table of `most` cells."""
    growth = Fraction(float(exp_epsilon(nano)))
    families = [
        LinearHash(k, g, length_of(k, g))
        for g in range(2, min(k, int(2 * growth) + 6))
        if prime_power(g)
    ]
    candidates = [
        LinearHash(k, k, 1),
        *(each for each in families if each.m > 1 and each.rows * each.g <= most),
    ]
    return min(
        candidates, key=lambda each: total_variance(growth, each.points, each.points // each.g, k)
    )


MAX_REPORTS = 1 << 16  # so many that a client can enumerate the channel


@dataclass(frozen=True, kw_only=True)
class PIRappor(TwoWeights, HashDesign):
    """Reports a row of a `LinearHash` and one of its g hashes: the symbol's own hash e^eps times as
    likely as any other.

    The report stands for a bit of each symbol, 1 where the symbol has that hash. It is `OLH` with a
    private coin. Privacy: T / s <= e^eps. Utility: that of `OLH`, and so that of optimised unary
    encoding for g = e^eps + 1 and large k. Cost: at most log2 k + log2 (g^2 / (g - 1)) bits, one
    word; decoding O(n + R k), R = (K - 1) / (g - 1). 2 <= k <= 4096; at most 2^16 reports.
    """

    name = "pi-rappor"
    summary = "Reports a row and a linear hash of a symbol"
    source = "Feldman, Talwar 2021"

    @cached_property
    def hash(self) -> LinearHash:
        return best_hash(self.nano, symbols(self.k).size, MAX_REPORTS)

    @property
    def alphabet(self) -> int:
        return self.hash.rows * self.hash.g

    @property
    def w(self) -> int:
        return self.hash.rows

    def report(self, values: Ints, ranks: Ints) -> Ints:
        rows, g = self.w, self.hash.g
        row, step = np.divmod(ranks - rows, max(1, g - 1))
        own = ranks < rows
        row, step = np.where(own, ranks, row), np.where(own, 0, step + 1)
        return row * g + (self.hash(row, values) + step) % g

    def rank(self, values: Ints, reports: Ints) -> Ints:
        row, code = np.divmod(reports, self.hash.g)
        step = (code - self.hash(row, values).astype(np.int64)) % self.hash.g
        return np.where(step == 0, row, self.w + row * (self.hash.g - 1) + step - 1)

    def support(self, counts: Counts) -> Counts:
        return self.hash.support(counts.reshape(*counts.shape[:-2], self.w, self.hash.g))

    def gathered(self, weights: Floats) -> Floats:
        return self.hash.gathered(weights).reshape(len(weights), 1, self.alphabet)


@dataclass(frozen=True, kw_only=True)
class CountMeanSketch(PerCoin, Supporting, OfSymbols):
    """Reports the bucket of the symbol, one of m, in a public row of a `LinearHash`, by symmetric
    unary encoding.

    The tally is a sketch: the reported ones of each row and bucket. Any two symbols share a bucket
    in equally many rows, so the mean of the others' ones is known and taken off exactly. Privacy:
    that of `SUE`. Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l = q + f (p -
    q); q mixes SUE's two chances by the chance (K / m - 1) / (K - 1) of a shared bucket, K = m^t >=
    k. Cost: m bits and words; a sketch of R m numbers, R = (K - 1) / (m - 1), decoded in O(R k).
    `m` is a prime power; for k <= m it is `SUE` of k symbols. 2 <= k <= 4096.
    """

    name = "count-mean-sketch"
    summary = "Reports a sketch of a symbol in a public row of hashes"
    source = "Apple's Differential Privacy Team 2017 (CMS)"
    m: int = 64

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": size, "m": 2 if size < 5 else 4}

    @cached_property
    def hash(self) -> LinearHash:
        """The family of hashes to buckets."""
        k = symbols(self.k).size
        if type(self.m) is not int or not 2 <= self.m <= 1024 or not prime_power(self.m):
            raise InputError(f"m is {self.m!r}; give a prime or a power of a prime from 2 to 1024")
        return LinearHash(k, k, 1) if k <= self.m else LinearHash(k, self.m, length_of(k, self.m))

    @cached_property
    def inner(self) -> SUE:
        return SUE(self.epsilon, word_bits=self.word_bits, k=self.hash.g)

    def _rows(self, coins: Words) -> Ints:
        return (coins.astype(np.uint64) % np.uint64(self.hash.rows)).astype(np.int64)

    def encode(self, values: Ints, coins: Words) -> Ints:
        return self.hash(self._rows(coins), values)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The ones of each row and bucket, shape (R, m)."""
        rows = self._rows(cells)
        sorted_by_row = reports[np.argsort(rows, kind="stable")]
        ends = np.cumsum(np.bincount(rows, minlength=self.hash.rows))
        sums = [ones_at(part)[: self.hash.g] for part in np.split(sorted_by_row, ends[:-1])]
        return Tally(np.stack(sums), len(reports))

    @property
    def chances(self) -> tuple[float, float]:
        shared = collisions(self.hash.g, self.hash.m) / self.hash.rows
        own, other = self.inner.chances
        return own, shared * own + (1 - shared) * other

    def estimate(self, tally: Tally) -> Estimate:
        return self.supported(self.hash.support(tally.counts) / tally.answered, tally.n)
