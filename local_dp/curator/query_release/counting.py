"""Many counting queries on a small universe: a matrix of 0 and 1, exact counts, noise on each
count, and BLR.

BLR is the exponential mechanism over all small databases, which answers all queries at once and is
pure.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Self

import numpy as np

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools, Counts, Floats, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.inversion import discrete_laplaces, least_variance, rounded_normals
from local_dp.curator.mechanism import Law, WithinDelta, check_listed, whole_weights
from local_dp.curator.selection.exponential import ByScore, ExponentialChoice
from local_dp.curator.selection.groups import Groups
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure

# below it every count is exact in a float, and matrices are multiplied as floats
MAX_RECORDS = 1 << 52
_MAX_CELLS = 1 << 28
_FIRST, _BLOCK = 1 << 6, 1 << 12  # queries at a time


@dataclass(frozen=True, eq=False)
class CountingQueries:
    """k yes/no questions on the points 0..N - 1: `values`, shape (k, N), marks the points that each
    one counts.

    A database is the count of each point, shape (N,). n, their sum, is public; a replaced record
    moves no count by more than 1.
    """

    values: Bools

    def __post_init__(self) -> None:
        if (
            self.values.ndim != 2
            or self.values.dtype != np.bool_
            or not 1 <= self.values.size <= _MAX_CELLS
        ):
            raise InputError(
                f"the queries have shape {self.values.shape} and type {self.values.dtype}; give "
                "truth values of shape (k, N), at most 2^28"
            )

    @classmethod
    def random(cls, k: int, points: int, generator: np.random.Generator) -> Self:
        """k queries that count each point with probability 1/2."""
        check_whole("k", k, 1, _MAX_CELLS)
        check_whole("points", points, 1, _MAX_CELLS // k)
        return cls(generator.integers(0, 2, (k, points), dtype=np.int8).astype(bool))

    @classmethod
    def conjunctions(cls, d: int) -> Self:
        """All 3^d conjunctions of literals of d <= 8 bits: each bit is required to be 1, to be 0,
        or free."""
        check_whole("d", d, 1, 8)
        bits = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(bool)
        literal_kinds = np.indices((3,) * d).reshape(d, -1).T
        literals = (literal_kinds[:, None, :] == 2) | (
            literal_kinds[:, None, :] == bits[None, :, :]
        )
        return cls(literals.all(axis=2))

    @property
    def k(self) -> int:
        return len(self.values)

    @property
    def points(self) -> int:
        return int(self.values.shape[1])

    def part(self, start: int, stop: int) -> "CountingQueries":
        return CountingQueries(self.values[start:stop])

    def size_of(self, database: Counts) -> int:
        """n. Raises InputError for counts of other points, negative ones, none, or more than 2^52
        records."""
        if (
            database.shape != (self.points,)
            or database.dtype.kind not in "iu"
            or np.any(database < 0)
        ):
            raise InputError(
                f"the database has shape {database.shape}; give how often each of {self.points} "
                "points occurs"
            )
        size = int(database.sum())
        check_whole("the number of records", size, 1, MAX_RECORDS)
        return size

    def counts(self, database: Counts) -> Counts:
        """The exact number of records that each query counts: shape (k,)."""
        self.size_of(database)
        return self.shares(database.astype(np.float64)).astype(np.int64)

    def shares(self, weights: Floats) -> Floats:
        """The weight of the points that each query counts: shape (k,)."""
        return self.sums(weights[:, None])[:, 0]

    def sums(self, weights: Floats) -> Floats:
        """The same for several weights, shape (N, m): shape (k, m)."""
        totals = np.empty((self.k, weights.shape[1]))
        for start in range(0, self.k, _BLOCK):
            totals[start : start + _BLOCK] = (
                self.values[start : start + _BLOCK].astype(np.float64) @ weights
            )
        return totals

    def blocks(self, start: int) -> Iterator[tuple[int, "CountingQueries"]]:
        """The queries from `start` on in blocks of 64, 128, ... up to 4,096, each with the number
        of its first, for callers that may stop early."""
        size = _FIRST
        while start < self.k:
            yield start, self.part(start, start + size)
            start, size = start + size, min(_BLOCK, 2 * size)


def table(points: Ints, universe: int) -> Counts:
    """How often each point of 0..universe - 1 occurs: a database."""
    counts: Counts = np.bincount(np.asarray(points, dtype=np.int64), minlength=universe)
    if len(counts) != universe:
        raise InputError(f"some point is {len(counts) - 1}; the points are 0..{universe - 1}")
    return counts


@dataclass(frozen=True, eq=False)
class LaplaceAnswers(WithinDelta[Counts, Counts]):
    """All k counts, each with discrete Laplace noise of its part of the budget.

    Privacy: (eps, delta): a replaced record moves at most `moved` of the counts, by 1 each; that
    many parts are composed exactly. Utility: a largest error of about ln(k) / part, which grows as
    sqrt(k).
    """

    summary = "Answers counting queries with discrete Laplace noise"
    queries: CountingQueries
    epsilon: float
    delta: float

    @cached_property
    def part(self) -> Pure:
        return optimal_part(self.loss, max(1, moved(self.queries)))

    def release(self, database: Counts, draws: Draws) -> Counts:
        return self.queries.counts(database) + discrete_laplaces(
            draws, Fraction(self.part.nano, NANO), self.queries.k
        )


@dataclass(frozen=True, eq=False)
class GaussianAnswers(WithinDelta[Counts, Counts]):
    """All k counts, each with rounded normal noise. Privacy: (eps, delta), by the exact price of a
    vector that a record moves by sqrt(`moved`)."""

    summary = "Answers counting queries with normal noise"
    queries: CountingQueries
    epsilon: float
    delta: float

    @cached_property
    def variance(self) -> int:
        return least_variance(max(1, moved(self.queries)), self.loss)

    def release(self, database: Counts, draws: Draws) -> Counts:
        return self.queries.counts(database) + rounded_normals(draws, self.variance, self.queries.k)


def moved(queries: CountingQueries) -> int:
    """The most counts that a replaced record can change: the most queries that differ on two
    points."""
    both = np.zeros((queries.points, queries.points))
    for _, block in queries.blocks(0):
        values = block.values.astype(np.float64)
        both += values.T @ values
    alone = both.diagonal()
    return int((alone[:, None] + alone - 2 * both).max())


MAX_DATABASES = 1 << 20


@dataclass(frozen=True, eq=False)
class Multisets(Groups[tuple[int, ...]]):
    """All multisets of m rows, shape (M, N) as counts of the points; the size of each is its number
    of orders, m! / prod c_i!."""

    counts: Counts
    scores: Counts
    sizes: Naturals

    def member(self, group: int, place: int) -> tuple[int, ...]:
        return tuple(self.counts[group].tolist())


@dataclass(frozen=True, eq=False)
class SmallDatabase(ByScore[Counts, tuple[int, ...]]):
    """A database of m rows y that answers k queries as one of n rows does: each sequence of rows
    has weight e^(-eps n max_q |q(y) - q(x)| / 2).

    The result is the count of each of the N points. Sequences, not multisets, have equal weights:
    multisets with many orders look like a sample. Privacy: epsilon, pure. The score -max |n q(y) -
    m q(x)|, of counts, is whole; a replaced record moves it by at most m, half of the notes'
    figure. Utility: 2 alpha for m = ln(2 k) / (2 alpha^2) once alpha eps n > 4 m ln N: some m rows
    of x are within alpha of it. Cost: all C(m + N - 1, m) multisets. Source: Blum, Ligett, Roth
    2008; lecture notes 3.1.1 with errata.
    """

    summary = "Releases a small database that answers the queries"
    queries: CountingQueries
    rows: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("rows", self.rows, 1, 64)
        if (
            math.comb(self.rows + self.queries.points - 1, self.rows) > MAX_DATABASES
            or self.queries.points**self.rows >= 1 << 63
        ):
            raise InputError(
                f"there are too many databases of {self.rows} rows of {self.queries.points} "
                "points; give fewer rows, for at most 2^20 of them"
            )
        super().__post_init__()

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, self.rows)

    def candidates(self, database: Counts) -> Multisets:
        size, true = self.queries.size_of(database), self.queries.counts(database)
        counts, sizes, answers = self._multisets
        worst = np.zeros(len(counts), dtype=np.int64)
        # a query at a time: no matrix of all their errors
        for query, count in enumerate(true.tolist()):
            np.maximum(worst, np.abs(size * answers[query] - self.rows * count), out=worst)
        return Multisets(counts, -worst, sizes)

    def law(self, database: Counts) -> Law[tuple[int, ...]]:
        """Of the multisets. Raises InputError above 2^10 of them."""
        groups = self.candidates(database)
        check_listed(f"{len(groups.counts)} databases", len(groups.counts), 1 << 10)
        shares = dict[tuple[int, ...], Fraction]()
        for group, alone in enumerate(np.eye(len(groups.counts), dtype=np.uint64)):
            shares[groups.member(group, 0)] = self.choice.share(groups, groups.sizes * alone)
        return whole_weights(shares)

    @cached_property
    def _multisets(self) -> tuple[Counts, Naturals, Counts]:
        """All multisets as counts, their numbers of orders, and the rows that each query counts in
        each, shape (k, M)."""
        counts = np.array(list(_compositions(self.rows, self.queries.points)), dtype=np.int64)
        factorials = np.array([math.factorial(row) for row in range(self.rows + 1)], dtype=object)
        orders = factorials[self.rows] // np.multiply.reduce(factorials[counts], axis=1)
        answers = self.queries.values.astype(np.float64) @ counts.T.astype(np.float64)
        return counts, orders.astype(np.uint64), answers.astype(np.int64)


def _compositions(total: int, parts: int) -> Iterator[list[int]]:
    """All ways to write `total` as an ordered sum of `parts` numbers from 0 on: by the places of
    bars among stars."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        ends = [-1, *bars, total + parts - 1]
        yield [after - before - 1 for before, after in pairwise(ends)]
