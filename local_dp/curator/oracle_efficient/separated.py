"""Classes of queries with a separator set: points on which any two queries differ (Goldman, Kearns,
Schapire 1993; Neel, Roth, Wu 2019, Definition 2).

Oracles of optimisation find the least weighted total of a class (Definitions 5 to 8). Their types
are their promises:

    Perfect      always answers, with a proof;                   RSPM takes no other.
    Certifying   answers with a proof, or reports a failure;     PRSMA makes its failures private.
    Plain        claims;                                         nothing private follows.

Of two queries of equal total the one of the lower number is the answer: one tie-break, the same for
all data, on which privacy rests.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from local_dp.arrays import Bools, Counts, Ints
from local_dp.checks import check_dimension, check_whole
from local_dp.errors import InputError

MAX_DIMENSION = 62
LISTED = 24  # dimensions in which all queries are gone through


@dataclass(frozen=True, eq=False)
class Weighted:
    """n weighted points: `points` in the class's own encoding and whole `weights` of either sign,
    both of shape (n,)."""

    points: Ints
    weights: Ints

    def __post_init__(self) -> None:
        if (
            self.points.shape != self.weights.shape
            or self.points.ndim != 1
            or self.weights.dtype.kind != "i"
        ):
            raise InputError(
                f"there are points of shape {self.points.shape} and weights of shape "
                f"{self.weights.shape}; give a whole weight for each point"
            )

    def with_points(self, points: Ints, weights: Ints) -> "Weighted":
        return Weighted(
            np.concatenate([self.points, points]), np.concatenate([self.weights, weights])
        )


class Separated(ABC):
    """Finitely many queries from points to {0, 1}, numbered, and m points U such that any two
    queries differ on one of them; so there are at most 2^m.

    `shift` is the sum of noise moves on U that keeps a least query the least when an example is
    replaced. For each query q and each replaced example there are whole s_i on U with |s|_1 <=
    shift. With them no L(q') - L(q) falls by more than the sum of s_i (q'(u_i) - q(u_i)). 2 m is
    always enough, as is twice the teaching dimension in U.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of queries."""

    @property
    @abstractmethod
    def separators(self) -> Ints:
        """U, shape (m,)."""

    @property
    @abstractmethod
    def shift(self) -> int:
        """An upper bound on the noise's move."""

    @abstractmethod
    def totals(self, data: Weighted) -> Counts:
        """The sum of weight times value over the points, for each query: shape (size,), exact in 64
        bits."""

    @property
    def full(self) -> bool:
        """True if every pattern of values on U is some query's."""
        return self.size == 1 << len(self.separators)

    def errors(self, x: Ints, y: Ints) -> Counts:
        """The number of the n examples that each query, as a hypothesis, gets wrong: shape (size,);
        x points and y of 0/1, both of shape (n,)."""
        return self.totals(labelled(x, y)) + np.int64(np.sum(y))

    def values(self, points: Ints) -> Bools:
        """Of each query on each point, shape (size, n)."""
        one = np.ones(1, dtype=np.int64)
        each = [self.totals(Weighted(points[i : i + 1], one)) for i in range(len(points))]
        return np.asarray(np.stack(each, axis=1) == 1)


def labelled(x: Ints, y: Ints) -> Weighted:
    """Labelled examples as weighted points: a hypothesis errs [y = 1] + (1 - 2 y) h(x) times on
    each, so its errors are a total and a constant."""
    return Weighted(x, 1 - 2 * y.astype(np.int64))


@dataclass(frozen=True)
class Closed(Separated):
    """A class and the complements of its queries, numbered after them: separated by its separators
    and the point `common` on which all its queries agree."""

    queries: Separated
    common: int

    def __post_init__(self) -> None:
        if len(np.unique(self.queries.values(np.array([self.common])))) != 1:
            raise InputError(
                f"the queries do not agree on {self.common}: give a point where all are 1, as "
                "1...1 for conjunctions, or all 0, as 0 for parities"
            )

    @property
    def size(self) -> int:
        return 2 * self.queries.size

    @cached_property
    def separators(self) -> Ints:
        return np.append(self.queries.separators, self.common)

    @property
    def shift(self) -> int:
        """2 (m + 1): enough for any class."""
        return 2 * len(self.separators)

    def totals(self, data: Weighted) -> Counts:
        totals = self.queries.totals(data)
        return np.concatenate([totals, data.weights.sum() - totals])


def _spread(queries: "_Cube", data: Weighted, keys: Ints) -> Counts:
    """The weight of each key, shape (2^d,)."""
    if queries.d > LISTED:
        raise InputError(
            f"d is {queries.d}; all queries are gone through up to {LISTED}, use `BranchAndBound` "
            "above"
        )
    if len(keys) and (int(keys.min()) < 0 or int(keys.max()) >> queries.d):
        raise InputError(
            f"a point lies outside the cube of {queries.d} dimensions; give whole numbers from 0 "
            f"to {(1 << queries.d) - 1}"
        )
    weights = np.zeros(1 << queries.d, dtype=np.int64)
    np.add.at(weights, keys.astype(np.int64), data.weights)
    return weights


def _butterfly(
    values: Counts, combine: Callable[[Counts, Counts], tuple[Counts, Counts]]
) -> Counts:
    """One pass for each bit over pairs of entries that differ in it."""
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half)
        result = np.empty_like(pairs)
        result[:, 0], result[:, 1] = combine(pairs[:, 0], pairs[:, 1])
        values = result.reshape(-1)
        half *= 2
    return values


@dataclass(frozen=True)
class _Cube(Separated):
    """2^d masks, each of them one query on {0,1}^d; bit i of a point is its coordinate i."""

    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_DIMENSION)

    @property
    def size(self) -> int:
        return 1 << self.d

    @property
    def shift(self) -> int:
        """2 d: each bit of the mask has its own separator."""
        return 2 * self.d


@dataclass(frozen=True)
class Conjunctions(_Cube):
    """The 2^d monotone conjunctions q_S(x) = AND of x_i over i in S, S a mask; separated by the d
    points with one zero. All totals in O(n + d 2^d)."""

    @cached_property
    def separators(self) -> Ints:
        return (self.size - 1) ^ Parities(self.d).separators

    def totals(self, data: Weighted) -> Counts:
        zeros = _spread(self, data, np.int64(self.size - 1) ^ data.points.astype(np.int64))
        # q_S(x) = 1 where the zeros of x avoid S
        return _butterfly(zeros, lambda without, having: (without, without + having))[::-1]


@dataclass(frozen=True)
class Parities(_Cube):
    """The 2^d parities q_r(x) = <r, x> mod 2; separated by the d unit vectors. All totals by one
    Walsh-Hadamard transform, O(n + d 2^d)."""

    @cached_property
    def separators(self) -> Ints:
        return np.left_shift(1, np.arange(self.d, dtype=np.int64))

    def totals(self, data: Weighted) -> Counts:
        transform = _butterfly(
            _spread(self, data, data.points), lambda low, high: (low + high, low - high)
        )
        return np.asarray((transform[0] - transform) // 2)


@dataclass(frozen=True)
class Thresholds(Separated):
    """q_t(x) = 1 if x >= t, for t = 0 .. points, on 0 .. points - 1; separated by all points. All
    totals in O(n + points)."""

    points: int

    def __post_init__(self) -> None:
        check_whole("points", self.points, 1, 1 << LISTED)

    @property
    def size(self) -> int:
        return self.points + 1

    @cached_property
    def separators(self) -> Ints:
        return np.arange(self.points, dtype=np.int64)

    @property
    def shift(self) -> int:
        """2, however many points: each end of a replacement helps thresholds on one side of t
        alone, and moves the noise there by 1."""
        return 2

    def totals(self, data: Weighted) -> Counts:
        weights, points = np.zeros(self.size, dtype=np.int64), data.points
        if len(points) and not 0 <= int(points.min()) <= int(points.max()) < self.points:
            raise InputError(
                f"a point lies outside 0 .. {self.points - 1}; give the number of points that "
                "there are"
            )
        np.add.at(weights, points.astype(np.int64), data.weights)
        return np.cumsum(weights[::-1])[::-1]


@dataclass(frozen=True)
class Certified:
    """Query number `choice` has total `value`, no query has less, and none of a lower number has as
    little."""

    choice: int
    value: int


@dataclass(frozen=True)
class Fail:
    """The oracle gave up, or its proof failed."""


FAIL = Fail()


@dataclass(frozen=True)
class Claimed:
    """An answer without proof."""

    choice: int


class Perfect(Protocol):
    """Always proves its answer, the least query; it is a `Certifying` oracle that never fails."""

    def minimise(self, data: Weighted) -> Certified: ...


class Certifying(Protocol):
    """Proves its answer, the least query, or fails."""

    def minimise(self, data: Weighted) -> Certified | Fail: ...


class Plain(Protocol):
    """Claims a query."""

    def minimise(self, data: Weighted) -> Claimed: ...


@dataclass(frozen=True)
class Exhaustive:
    """All totals, in whole numbers; the proof is that it lists them all."""

    queries: Separated

    def minimise(self, data: Weighted) -> Certified:
        totals = self.queries.totals(data)
        choice = int(np.argmin(totals))  # the first of those that tie
        return Certified(choice, int(totals[choice]))


@dataclass(frozen=True)
class Verified:
    """A plain oracle whose claims are checked against all totals: a lying solver can only fail. For
    tests and small classes."""

    plain: Plain
    exact: Perfect

    def minimise(self, data: Weighted) -> Certified | Fail:
        truth = self.exact.minimise(data)
        return truth if self.plain.minimise(data).choice == truth.choice else FAIL
