"""Disjunctions, and so conjunctions, of many columns from the counts of few columns at a time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from local_dp.arrays import Counts, Words
from local_dp.checks import check_whole
from local_dp.curator.marginals.base import BinaryTable
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.rounded_normal import mu_squared, rounded_normals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate

MAX_WIDTH = 64


def chebyshev(degree: int, z: Fraction) -> Fraction:
    """T_degree(z), by its recurrence."""
    before, here = Fraction(1), z
    for _ in range(degree - 1):
        before, here = here, 2 * z * here - before
    return here if degree else before


def smooth_or(degree: int, width: int, ones: int) -> Fraction:
    """g(ones), g(z) = 1 - T_k(l(z)) / T_k(l(0)), l(z) = (2 z - t - 1) / (t - 1): 0 at 0, and within `bias` of 1 at 1..t, which no other of degree k beats."""
    if width == 1:
        return Fraction(ones)
    return 1 - chebyshev(degree, Fraction(2 * ones - width - 1, width - 1)) / chebyshev(degree, Fraction(-width - 1, width - 1))


def bias(degree: int, width: int) -> Fraction:
    """What an or of up to `width` variables by `degree` of them at a time may be off by: 1 / T_k((t + 1) / (t - 1)); 0 from degree t on, where it is exact."""
    return Fraction(0) if degree >= width else 1 / chebyshev(degree, Fraction(width + 1, width - 1))


@lru_cache(maxsize=256)
def coefficients(degree: int, width: int) -> tuple[Fraction, ...]:
    """c_1..c_k with g(|y|) = sum_r c_r C(|y|, r): the coefficient of every product of r variables. c_r = (-1)^(r + 1), the exact or, if k >= t.

    Newton's forward differences of g at 0. Raises InputError unless 1 <= degree <= width <= 64. Source: lecture notes 8.1; Chandrasekaran et al. 2014.
    """
    check_whole("the width of a conjunction", width, 1, MAX_WIDTH)
    check_whole("the degree", degree, 1, width)
    if degree == width:
        return tuple(Fraction((-1) ** (r + 1)) for r in range(1, width + 1))
    values = [smooth_or(degree, width, z) for z in range(degree + 1)]
    return tuple(sum(((-1) ** (r - j) * math.comb(r, j) * values[j] for j in range(r + 1)), Fraction(0)) for r in range(1, degree + 1))


MOST_MONOMIALS = 1 << 22


@dataclass(frozen=True)
class Disjunctions:
    """All questions "is any of these at most `width` of `d` columns 1", answered to degree `degree`: products of so many columns and fewer."""

    d: int
    width: int
    degree: int

    def __post_init__(self) -> None:
        check_whole("d", self.d, 1, 64)
        check_whole("the width of a conjunction", self.width, 1, self.d)
        check_whole("the degree", self.degree, 1, self.width)
        if sum(self.sizes) > MOST_MONOMIALS:
            raise InputError(f"there are {sum(self.sizes):,} products of {self.degree} of {self.d} columns; give a smaller degree")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many products there are of 1, 2, ... columns."""
        return tuple(math.comb(self.d, r) for r in range(1, self.degree + 1))

    @property
    def bias(self) -> float:
        """What an answer may be off by beside the noise, as a share of the records."""
        return float(bias(self.degree, self.width))


@dataclass(frozen=True, eq=False)
class NoisyMonomials:
    """Noisy counts of the records that are 1 in all columns of a set: for r = 1, 2, ... an array of those of r columns, in colexicographic order."""

    asked: Disjunctions
    size: int
    counts: tuple[Counts, ...]

    def any_of(self, columns: Sequence[int]) -> float:
        """The estimated number of records that are 1 in any of these columns. Raises InputError for more columns than the width, or others."""
        y = sorted(set(columns))
        if len(y) > self.asked.width or (y and not 0 <= y[0] <= y[-1] < self.asked.d):
            raise InputError(f"the columns are {y}; give at most {self.asked.width} of 0..{self.asked.d - 1}")
        found = 0.0
        for r, c in enumerate(coefficients(self.asked.degree, self.asked.width)[: len(y)], 1):
            ranks = sum(_binomials(self.asked.d, place + 1)[np.array(y)[_subsets(len(y), r)[:, place]]] for place in range(r))
            found += float(c) * float(self.counts[r - 1][ranks].sum())
        return found

    def all_of(self, columns: Sequence[int]) -> float:
        """The estimated number of records that are 1 in all of these columns, for a table whose columns were negated: n less those with any 1 in them."""
        return self.size - self.any_of(columns)


@dataclass(frozen=True)
class WeightedMonomials(WithinDelta[BinaryTable, NoisyMonomials]):
    """The counts of all products of up to k columns, with noise by their size: V_r proportional to sqrt(C(d, r) / (c_r^2 C(t, r))), least at width t.

    Privacy: (eps, delta), as one Gaussian mechanism: a replaced record moves each count by at most 1, all of them if it was all ones and becomes all zeros,
    and the sum of C(d, r) / V_r is at most mu^2. Utility: an answer errs by the bias of what is asked at most and has the standard error `deviation`.
    Cost: O(n / 64) a product. Source: lecture notes 8.1; the weights are the project's own. It gains in the worst case only: where columns are nearly
    independent, the product of their shares is nearer.
    """

    asked: Disjunctions
    epsilon: float
    delta: float

    @cached_property
    def variances(self) -> tuple[int, ...]:
        """V_r before rounding, for r = 1..k: each rounded up, so that the sum of C(d, r) / V_r is at most mu^2."""
        shares = [max(1, math.ceil(share)) for share in _precisions(self.asked)]
        total = sum(size * share for size, share in zip(self.asked.sizes, shares, strict=True))
        whole = total / mu_squared(self.loss)
        return tuple(math.ceil(whole / share) for share in shares)

    @property
    def deviation(self) -> float:
        """The standard error of an answer of full width, in records."""
        told = zip(coefficients(self.asked.degree, self.asked.width), self.variances, strict=True)
        return math.sqrt(sum(float(c) ** 2 * math.comb(self.asked.width, r) * (variance + 1 / 12) for r, (c, variance) in enumerate(told, 1)))

    def release(self, database: BinaryTable, draws: Draws) -> NoisyMonomials:
        if database.d != self.asked.d:
            raise InputError(f"the table has {database.d} columns and the mechanism {self.asked.d}; give one number for both")
        counts = monomial_counts(database, self.asked.degree)
        noisy = (each + rounded_normals(draws, variance, len(each)) for each, variance in zip(counts, self.variances, strict=True))
        return NoisyMonomials(self.asked, database.size, tuple(noisy))


def best_degree(d: int, width: int, size: int, loss: Approximate) -> int:
    """The degree of the least bias and three standard errors together: by closed form, from public numbers."""

    def error(degree: int) -> float:
        asked = Disjunctions(d, width, degree)
        return asked.bias + 3 * WeightedMonomials(asked, loss.epsilon, loss.delta).deviation / size

    possible = [k for k in range(1, width + 1) if sum(math.comb(d, r) for r in range(1, k + 1)) <= MOST_MONOMIALS]
    return min(possible, key=error)


def monomial_counts(table: BinaryTable, degree: int) -> tuple[Counts, ...]:
    """How many records are 1 in all columns of each set of r columns, r = 1..degree: arrays in colexicographic order, by and-ing packed columns."""
    packed = np.packbits(table.bits.T.astype(np.bool_), axis=1)
    columns = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)
    counts = tuple(np.zeros(math.comb(table.d, r), dtype=np.int64) for r in range(1, degree + 1))
    for held, below, place in _prefixes(columns, degree):
        r, rank = place
        counts[r - 1][rank : rank + below] = np.bitwise_count(columns[:below] & held).sum(axis=1)
    return counts


def _prefixes(columns: Words, degree: int) -> Iterator[tuple[Words, int, tuple[int, int]]]:
    """Each set of up to degree - 1 columns: the and of its columns, how many columns lie below its lowest, the size of a set with one of these and its rank.

    In colexicographic order the rank of a_1 < ... < a_r is the sum of C(a_i, i): that of the lowest is its own number, so those below stand in a row.
    A set is built from its highest column down, and the rank depends on how many will be below: every size it may grow to is told apart.
    """
    stack: list[tuple[tuple[int, ...], Words]] = [((), np.full(columns.shape[1], np.uint64(0xFFFFFFFFFFFFFFFF)))]
    while stack:
        chosen, held = stack.pop()
        below, r = (chosen[-1] if chosen else len(columns)), len(chosen) + 1
        if below:
            yield held, below, (r, sum(math.comb(column, r - place) for place, column in enumerate(chosen)))
        if r < degree:
            stack += [((*chosen, column), held & columns[column]) for column in range(below)]


@lru_cache(maxsize=256)
def _subsets(size: int, r: int) -> Counts:
    """All sets of r places of `size`, a row each, ascending: shape (C(size, r), r)."""
    return np.array(list(combinations(range(size), r)), dtype=np.int64).reshape(-1, r)


@lru_cache(maxsize=256)
def _binomials(d: int, r: int) -> Counts:
    """C(column, r) for the columns 0..d - 1."""
    return np.array([math.comb(column, r) for column in range(d)], dtype=np.int64)


def _precisions(asked: Disjunctions) -> list[float]:
    """1 / V_r up to a factor: sqrt(c_r^2 C(t, r) / C(d, r)), on a scale where the smallest is 2^16 unless it is 0."""
    told = enumerate(coefficients(asked.degree, asked.width), 1)
    shares = [abs(float(c)) * math.sqrt(math.comb(asked.width, r) / size) for (r, c), size in zip(told, asked.sizes, strict=True)]
    scale = (1 << 16) / min(share for share in shares if share > 0)
    return [share * scale for share in shares]
