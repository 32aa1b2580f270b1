"""Disjunctions, and so conjunctions, of many columns from the counts of few columns at a time, by
Chebyshev's polynomial."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from operator import mul

import numpy as np

from local_dp.arrays import Counts, Words
from local_dp.checks import check_whole
from local_dp.curator.inversion import mu_squared, rounded_normals
from local_dp.curator.marginals.base import BinaryTable, check_columns
from local_dp.curator.mechanism import WithinDelta
from local_dp.draws import Draws
from local_dp.errors import InputError

MAX_WIDTH = 64


def chebyshev(degree: int, z: Fraction) -> Fraction:
    """T_degree(z), by its recurrence."""
    before, here = Fraction(1), z
    for _ in range(degree - 1):
        before, here = here, 2 * z * here - before
    return here if degree else before


def smooth_or(degree: int, width: int, ones: int) -> Fraction:
    """g(ones), g(z) = 1 - T_k(l(z)) / T_k(l(0)), l(z) = (2 z - t - 1) / (t - 1): 0 at 0, and within
    `bias` of 1 at 1..t, the best of degree k."""
    if width == 1:
        return Fraction(ones)
    here, there = (chebyshev(degree, Fraction(2 * z - width - 1, width - 1)) for z in (ones, 0))
    return 1 - here / there


def bias(degree: int, width: int) -> Fraction:
    """The error of an or of up to `width` variables by `degree` of them at a time: 1 / T_k((t + 1)
    / (t - 1)); 0 from degree t on, where it is exact."""
    return Fraction(0) if degree >= width else 1 / chebyshev(degree, Fraction(width + 1, width - 1))


@lru_cache(maxsize=256)
def coefficients(degree: int, width: int) -> tuple[Fraction, ...]:
    """c_1..c_k with g(|y|) = sum_r c_r C(|y|, r): the coefficient of every product of r variables.
    c_r = (-1)^(r + 1), the exact or, if k >= t.

    Newton's forward differences of g at 0. Raises InputError unless 1 <= degree <= width <= 64.
    Source: lecture notes 8.1; Chandrasekaran et al. 2014.
    """
    check_whole("the width of a conjunction", width, 1, MAX_WIDTH)
    check_whole("the degree", degree, 1, width)
    if degree == width:
        return tuple(Fraction((-1) ** (r + 1)) for r in range(1, width + 1))
    values = [smooth_or(degree, width, z) for z in range(degree + 1)]
    differences = []
    for _ in range(degree):
        values = [after - before for before, after in pairwise(values)]
        differences.append(values[0])
    return tuple(differences)


MOST_MONOMIALS = 1 << 22


@dataclass(frozen=True)
class Disjunctions:
    """All questions "is any of these at most `width` of `d` columns 1", answered from products of
    at most `degree` columns."""

    d: int
    width: int
    degree: int

    def __post_init__(self) -> None:
        check_whole("d", self.d, 1, 64)
        check_whole("the width of a conjunction", self.width, 1, self.d)
        check_whole("the degree", self.degree, 1, self.width)
        if sum(self.sizes) > MOST_MONOMIALS:
            raise InputError(
                f"there are {sum(self.sizes):,} products of {self.degree} of {self.d} columns; "
                "give a smaller degree"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of products of 1, 2, ... columns."""
        return tuple(math.comb(self.d, r) for r in range(1, self.degree + 1))

    @property
    def bias(self) -> float:
        """The error of an answer beside the noise, as a share of the records."""
        return float(bias(self.degree, self.width))


@dataclass(frozen=True, eq=False)
class NoisyMonomials:
    """Noisy counts of the records that are 1 in all columns of a set: for r = 1, 2, ... an array
    over the sets of r columns, in colexicographic order."""

    queries: Disjunctions
    size: int
    counts: tuple[Counts, ...]

    def any_of(self, columns: Sequence[int]) -> float:
        """The estimated number of records that are 1 in any of these columns. Raises InputError for
        unknown columns and more than the width."""
        y = sorted(set(columns))
        inside = not y or 0 <= y[0] <= y[-1] < self.queries.d
        if len(y) > self.queries.width or not inside:
            raise InputError(
                f"the columns are {y}; give at most {self.queries.width} of 0..{self.queries.d - 1}"
            )
        total = 0.0
        for r, c in enumerate(coefficients(self.queries.degree, self.queries.width)[: len(y)], 1):
            ranks = [
                sum(math.comb(column, place) for place, column in enumerate(subset, 1))
                for subset in combinations(y, r)
            ]
            total += float(c) * float(self.counts[r - 1][ranks].sum())
        return total

    def all_of(self, columns: Sequence[int]) -> float:
        """The estimated number of records that are 1 in all of these columns, for a table whose
        columns were negated."""
        return self.size - self.any_of(columns)


@dataclass(frozen=True)
class WeightedMonomials(WithinDelta[BinaryTable, NoisyMonomials]):
    """The counts of all products of up to k columns, with noise by their size: V_r proportional to
    sqrt(C(d, r) / (c_r^2 C(t, r))), least at width t.

    Privacy: (eps, delta), as one Gaussian mechanism: a replaced record moves each count by at most
    1. The sum of C(d, r) / V_r is at most mu^2. Utility: an answer errs by at most the bias of
    `queries` and has the standard error `deviation`. Cost: O(n / 64) a product. Source: lecture
    notes 8.1; the weights are the project's own.
    """

    summary = "Counts products of columns, with noise by their size"
    queries: Disjunctions
    epsilon: float
    delta: float

    @cached_property
    def variances(self) -> tuple[int, ...]:
        """V_r before rounding, for r = 1..k, from 1 / V_r proportional to sqrt(c_r^2 C(t, r) / C(d,
        r)): the sum of C(d, r) / V_r is at most mu^2."""
        precisions = []
        for r, c in enumerate(coefficients(self.queries.degree, self.queries.width), 1):
            times = math.comb(self.queries.width, r) / math.comb(self.queries.d, r)
            precisions.append(abs(float(c)) * math.sqrt(times))
        scale = (1 << 16) / min(precision for precision in precisions if precision > 0)
        shares = [max(1, math.ceil(precision * scale)) for precision in precisions]
        whole = sum(map(mul, self.queries.sizes, shares)) / mu_squared(self.loss)
        return tuple(math.ceil(whole / share) for share in shares)

    @property
    def deviation(self) -> float:
        """The standard error of an answer of full width, in records."""
        terms = zip(
            coefficients(self.queries.degree, self.queries.width), self.variances, strict=True
        )
        squares = (
            float(c) ** 2 * math.comb(self.queries.width, r) * (variance + 1 / 12)
            for r, (c, variance) in enumerate(terms, 1)
        )
        return math.sqrt(sum(squares))

    def release(self, database: BinaryTable, draws: Draws) -> NoisyMonomials:
        check_columns(database, self.queries.d)
        counts = monomial_counts(database, self.queries.degree)
        noisy = (
            each + rounded_normals(draws, variance, len(each))
            for each, variance in zip(counts, self.variances, strict=True)
        )
        return NoisyMonomials(self.queries, database.size, tuple(noisy))


def monomial_counts(table: BinaryTable, degree: int) -> tuple[Counts, ...]:
    """The records that are 1 in all columns of each set of r columns, r = 1..degree: arrays in
    colexicographic order, by and-ing packed columns."""
    octets = np.packbits(table.bits.T.astype(np.bool_), axis=1)
    whole = np.pad(octets, ((0, 0), (0, -octets.shape[1] % 8)))
    columns = np.ascontiguousarray(whole).view(np.uint64)
    counts = tuple(np.zeros(math.comb(table.d, r), dtype=np.int64) for r in range(1, degree + 1))
    for conjunction, below, place in _prefixes(columns, degree):
        r, rank = place
        both = np.bitwise_count(columns[:below] & conjunction)
        counts[r - 1][rank : rank + below] = both.sum(axis=1)
    return counts


def _prefixes(columns: Words, degree: int) -> Iterator[tuple[Words, int, tuple[int, int]]]:
    """Each set of up to degree - 1 columns: the and of its columns, the number of columns below its
    lowest, and the size and rank of a set with one of these.

    In colexicographic order the rank of a_1 < ... < a_r is the sum of C(a_i, i), so the sets with
    one lower column stand in a row. A set is built from its highest column down; its rank depends
    on its final size.
    """
    every = ~np.zeros(columns.shape[1], dtype=np.uint64)
    stack: list[tuple[tuple[int, ...], Words]] = [((), every)]
    while stack:
        columns_of_set, conjunction = stack.pop()
        below, r = (columns_of_set[-1] if columns_of_set else len(columns)), len(columns_of_set) + 1
        if below:
            rank = sum(math.comb(column, r - place) for place, column in enumerate(columns_of_set))
            yield conjunction, below, (r, rank)
        if r < degree:
            stack += [
                ((*columns_of_set, column), conjunction & columns[column])
                for column in range(below)
            ]
