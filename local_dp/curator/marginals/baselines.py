"""Baselines: every cell of every marginal with its own noise, one noisy histogram, columns treated
as independent."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from local_dp.accounting.losses import rho_within
from local_dp.arrays import Counts, Floats
from local_dp.checks import check_built, check_vector, check_whole
from local_dp.cube import places_of
from local_dp.curator.account import ConcentratedAccount, TrustedOracle
from local_dp.curator.counts import NoisyCounts
from local_dp.curator.intervals import Level
from local_dp.curator.inversion import least_variance, rounded_normals
from local_dp.curator.marginals.base import BinaryTable, Marginals, character_masks, check_columns
from local_dp.curator.marginals.fourier import NoisyCharacters
from local_dp.curator.mechanism import Law, Mechanism, WithinDelta
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.exponential import (
    BoundedRange,
    ByScore,
    ExponentialChoice,
    numbered,
)
from local_dp.curator.selection.groups import Listed
from local_dp.draws import Draws
from local_dp.interaction import Adaptive, Play, run
from local_dp.loss import ATTO, NANO, Concentrated, Pure


@dataclass(frozen=True, eq=False)
class NoisySums:
    """n, and the noisy sums of the k characters."""

    size: int
    sums: Counts


@dataclass(frozen=True)
class CharacterSums(Mechanism[BinaryTable, NoisySums, Concentrated]):
    """The sums over all records of the characters of k sets of columns, each plus round(N(0, V)), V
    = ceil(2 k / rho).

    Privacy: rho-zCDP: a replaced record moves each by at most 2, and 4 k / (2 V) <= rho (Bun,
    Steinke 2016, Proposition 1.6); tight where one change meets all sets oddly, as for the pairs of
    a tree. Cost: O(n k).
    """

    summary = "Releases sums of characters of columns with normal noise"
    sets: tuple[tuple[int, ...], ...]
    atto_rho: int

    def __post_init__(self) -> None:
        check_whole("rho in units of 1e-18", self.atto_rho, 1, 100 * ATTO)
        check_whole("the number of sets", len(self.sets), 1, 1 << 22)

    @property
    def loss(self) -> Concentrated:
        return Concentrated(self.atto_rho)

    @property
    def variance(self) -> int:
        return math.ceil(Fraction(2 * len(self.sets) * ATTO, self.atto_rho))

    def release(self, database: BinaryTable, draws: Draws) -> NoisySums:
        sums = database.characters(character_masks(self.sets))
        return NoisySums(database.size, sums + rounded_normals(draws, self.variance, len(sums)))


Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class DependentPair(ByScore[BinaryTable, int]):
    """The number of one of the `pairs` of columns that is far from independent: the score is |sum
    of their character - `expected`|.

    Privacy: epsilon, pure: a replaced record moves a score by at most 2. `BoundedRange` gives it in
    rho.
    """

    summary = "Chooses a pair of columns that are far from independent"
    pairs: tuple[Pair, ...]
    expected: tuple[int, ...]
    epsilon: float

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, 2)

    def candidates(self, database: BinaryTable) -> Listed:
        sums = database.pair_sums[tuple(np.array(self.pairs).T)]
        return numbered(np.abs(sums - np.array(self.expected)))


@dataclass(frozen=True, eq=False)
class TreeTable:
    """A law on rows of d columns in which a column depends on the others only through its
    neighbours in a tree; for n records.

    `means`, shape (d,), of (-1)^column, in [-1, 1]; `edges`, d - 1 pairs that form a tree, with the
    means `joint` of (-1)^(sum of both), shape (d - 1,).
    """

    size: int
    means: Floats
    edges: tuple[Pair, ...]
    joint: Floats

    def cells(self, workload: Marginals) -> Floats:
        """The expected counts of all cells: eliminates the other columns from the leaves on. O(d
        2^t) a marginal."""
        return self.size * np.concatenate([self._marginal(mask) for mask in workload.masks])

    @cached_property
    def _steps(self) -> tuple[tuple[int, int, Floats], ...]:
        """Each column but the first, the farthest first, with its parent and Pr[column | parent],
        shape (2, 2), rows by the parent's value."""
        near: dict[int, list[tuple[int, float]]] = {column: [] for column in range(len(self.means))}
        for (i, j), joint in zip(self.edges, self.joint.tolist(), strict=True):
            near[i].append((j, joint))
            near[j].append((i, joint))
        steps, tree, queue = [], {0}, [0]
        for parent in queue:
            for column, joint in near[parent]:
                if column not in tree:
                    tree.add(column)
                    queue.append(column)
                    law = _conditional(self.means[parent], self.means[column], joint)
                    steps.append((column, parent, law))
        return tuple(reversed(steps))

    def _marginal(self, mask: int) -> Floats:
        """The probabilities of one marginal's cells. `laws[v]`, shape (2, 2, ..., 2), is that of
        its columns below v, given v's value."""
        columns = set(places_of(mask))
        order: dict[int, list[int]] = {column: [column] for column in columns}
        laws: dict[int, Floats] = {column: np.eye(2) for column in columns}
        for column, parent, conditional in self._steps:
            if column in laws:
                order[parent] = order.get(parent, []) + order.pop(column)
                below = np.tensordot(conditional, laws.pop(column), axes=1)
                laws[parent] = _product_of(laws[parent], below) if parent in laws else below
        if 0 not in laws:
            return np.ones(1)
        first = np.array([1 + self.means[0], 1 - self.means[0]]) / 2
        joint = np.tensordot(first, laws[0], axes=1)
        # the lowest column runs fastest
        return np.asarray(joint.transpose(np.argsort(order[0])[::-1]).ravel())


def _product_of(one: Floats, other: Floats) -> Floats:
    """The product of two laws that are independent given the first axis."""
    products = one.reshape(2, -1, 1) * other.reshape(2, 1, -1)
    return products.reshape(*one.shape, *other.shape[1:])


def _conditional(parent: float, column: float, joint: float) -> Floats:
    """Pr[column | parent] by the means of their signs; one half where the parent's value does not
    occur."""
    signs = np.array([1.0, -1.0])
    alone = 1 + parent * signs[:, None] + column * signs
    both = np.maximum(alone + joint * np.outer(signs, signs), 0)
    totals = both.sum(axis=1, keepdims=True)
    return np.where(totals > 0, both / np.where(totals > 0, totals, 1), 0.5)


Part: TypeAlias = Mechanism[BinaryTable, NoisySums | int, Concentrated]


@dataclass(frozen=True)
class SpanningTree(WithinDelta[BinaryTable, TreeTable]):
    """MST for binary columns: noisy columns, a tree of the most dependent pairs, its noisy pairs,
    and the table that these make.

    Privacy: (eps, delta) through a rho in three equal parts: the columns, the d - 1 choices one
    after the other (Kruskal), the pairs of the tree. Utility: the noise is that of 2 d numbers,
    whatever the workload; dependences outside the tree are lost. Cost: O(n d^2) and O(d^3). Source:
    McKenna, Miklau, Sheldon 2021, Section 3.
    """

    summary = "Releases a table from a tree of dependent columns"
    d: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("d", self.d, 2, 64)
        super().__post_init__()

    def algorithm(self) -> Adaptive[Part, NoisySums | int, TreeTable]:
        """As a curator's algorithm: d + 1 rounds, each pair chosen after those before it."""
        return Adaptive(self._play)

    def release(self, database: BinaryTable, draws: Draws) -> TreeTable:
        return run(self.algorithm(), TrustedOracle(database, ConcentratedAccount(self.loss), draws))

    def _play(self) -> Play[Part, NoisySums | int, TreeTable]:
        third = rho_within(self.loss).atto_rho // 3
        (columns,) = yield (CharacterSums(tuple((column,) for column in range(self.d)), third),)
        assert isinstance(columns, NoisySums)
        size, sums = columns.size, np.clip(columns.sums, -columns.size, columns.size)
        component, edges = list(range(self.d)), list[Pair]()
        each = math.isqrt(8 * third // (self.d - 1)) / NANO
        while len(edges) < self.d - 1:
            every = combinations(range(self.d), 2)
            pairs = tuple((i, j) for i, j in every if component[i] != component[j])
            # if they were independent
            expected = tuple(
                round(int(sums[i]) * int(sums[j]) / size) if size else 0 for i, j in pairs
            )
            (number,) = yield (BoundedRange(DependentPair(pairs, expected, each)),)
            assert isinstance(number, int)
            edges.append(pairs[number])
            one, other = (component[column] for column in pairs[number])
            component = [one if part == other else part for part in component]
        (joint,) = yield (CharacterSums(tuple(edges), third),)
        assert isinstance(joint, NoisySums)
        means = sums / max(size, 1)
        first, last = means[np.array(edges).T]
        # so that no cell is below 0
        least, most = np.abs(first + last) - 1, 1 - np.abs(first - last)
        possible = np.clip(joint.sums / max(size, 1), least, most)
        return TreeTable(size, means, tuple(edges), possible)


@dataclass(frozen=True)
class OneMarginal(Mechanism[BinaryTable, NoisyCounts, Pure]):
    """One marginal, its cells with discrete Laplace noise of eps / 2 each; with a mask of all
    columns the noisy histogram, up to 22 of them.

    Privacy: epsilon, pure: a replaced record moves two cells by 1. Utility: variance about 8 /
    eps^2 a cell.
    """

    summary = "Releases one marginal with discrete Laplace noise"
    d: int
    mask: int
    epsilon: float

    def __post_init__(self) -> None:
        check_vector("a set of columns", self.mask, self.d)
        check_built(self.level)  # refuses a wrong epsilon, none or too many columns

    @property
    def level(self) -> Level:
        return Level(self.mask.bit_count(), 1, self.epsilon)

    @property
    def loss(self) -> Pure:
        return self.level.loss

    def release(self, database: BinaryTable, draws: Draws) -> NoisyCounts:
        return self.level.release(self._values(database), draws)

    def law(self, database: BinaryTable) -> Law[NoisyCounts]:
        return self.level.law(self._values(database))

    def _values(self, database: BinaryTable) -> Multiset:
        check_columns(database, self.d)
        places, words = places_of(self.mask), database.rows
        if len(places) < self.d:
            words = np.zeros(database.size, dtype=np.uint64)
            for place, column in enumerate(places):
                words |= (database.rows >> column & 1) << place
        counts = np.bincount(words.view(np.int64), minlength=1 << len(places))
        values = np.flatnonzero(counts)
        return Multiset(len(places), values.astype(np.uint64), counts[values])


@dataclass(frozen=True)
class PlainGaussian(WithinDelta[BinaryTable, Floats]):
    """Every cell of every marginal with its own rounded normal noise: the cells, shape (cells,).

    Privacy: (eps, delta), as one Gaussian mechanism: a record that changes in all columns moves two
    cells of each of k marginals, 2 k squared.
    """

    summary = "Releases every cell of every marginal with its own noise"
    workload: Marginals
    epsilon: float
    delta: float

    def release(self, database: BinaryTable, draws: Draws) -> Floats:
        variance = least_variance(2 * len(self.workload.masks), self.loss)
        noise = rounded_normals(draws, variance, self.workload.cells)
        return self.workload.answers(database) + noise


def of_total(weights: Floats | Counts, size: float) -> Floats:
    """The same weights with the public total `size`: the total noise, taken off evenly."""
    return np.asarray(weights + (size - float(weights.sum())) / len(weights))


def on_simplex(weights: Floats, size: float) -> Floats:
    """The nearest weights of 0 or more that sum to `size` > 0: each less by one number, none below
    0. Source: Held, Wolfe, Crowder 1974."""
    falling = np.sort(weights)[::-1]
    less = (np.cumsum(falling) - size) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(weights - less[np.flatnonzero(falling > less)[-1]], 0))


def independent(columns: NoisyCharacters) -> TreeTable:
    """The table of independent columns with these noisy means, of a workload of all 1-way
    marginals."""
    means = np.clip(columns.sums[1:] / max(columns.size, 1), -1, 1)
    edges = tuple((column, column + 1) for column in range(len(means) - 1))
    return TreeTable(columns.size, means, edges, means[:-1] * means[1:])
