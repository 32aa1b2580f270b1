"""Baselines: every cell of every marginal with its own noise, one noisy histogram, columns treated as independent."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_vector
from local_dp.cube import places_of
from local_dp.curator.intervals.level import Level, LevelCounts
from local_dp.curator.marginals.base import BinaryTable, Marginals, check_columns
from local_dp.curator.marginals.fourier import NoisyCharacters
from local_dp.curator.marginals.tree import TreeTable
from local_dp.curator.mechanism import Law, Mechanism, WithinDelta
from local_dp.curator.multisets import Multiset
from local_dp.curator.rounded_normal import least_variance, rounded_normals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import Pure, nano_epsilon, split_epsilon


@dataclass(frozen=True)
class OneMarginal(Mechanism[BinaryTable, LevelCounts, Pure]):
    """One marginal, its cells with discrete Laplace noise of eps / 2 each; with a mask of all columns the noisy histogram, up to 22 of them.

    Privacy: epsilon, pure: a replaced record moves two cells by 1. Utility: variance about 8 / eps^2 a cell.
    """

    d: int
    mask: int
    epsilon: float

    def __post_init__(self) -> None:
        check_vector("a set of columns", self.mask, self.d)
        self.level  # noqa: B018 - refuses a wrong epsilon, none or too many columns

    @property
    def level(self) -> Level:
        return Level(self.mask.bit_count(), 1, self.epsilon)

    @property
    def loss(self) -> Pure:
        return self.level.loss

    def release(self, database: BinaryTable, draws: Draws) -> LevelCounts:
        return self.level.release(self._values(database), draws)

    def law(self, database: BinaryTable) -> Law[LevelCounts]:
        return self.level.law(self._values(database))

    def _values(self, database: BinaryTable) -> Multiset:
        check_columns(database, self.d)
        places, packed = places_of(self.mask), database.rows
        if len(places) < self.d:
            packed = np.zeros(database.size, dtype=np.uint64)
            for place, column in enumerate(places):
                packed |= (database.rows >> np.uint64(column) & np.uint64(1)) << np.uint64(place)
        counts = np.bincount(packed.view(np.int64), minlength=1 << len(places))
        used = np.flatnonzero(counts)
        return Multiset(len(places), used.astype(np.uint64), counts[used])


@dataclass(frozen=True)
class PlainLaplace(Mechanism[BinaryTable, Floats, Pure]):
    """Every cell of every marginal with its own Laplace noise: the cells, shape (cells,).

    Privacy: epsilon, pure, in equal parts. Utility: a mean error of 2 k / eps for k marginals, however many columns they share.
    """

    workload: Marginals
    epsilon: float

    def __post_init__(self) -> None:
        if nano_epsilon(self.epsilon) < len(self.workload.masks):
            raise InputError(f"epsilon is {self.epsilon} for {len(self.workload.masks)} marginals; give a larger epsilon or fewer of them")

    @property
    def parts(self) -> tuple[OneMarginal, ...]:
        """The mechanisms, one a marginal."""
        each = split_epsilon(self.epsilon, len(self.workload.masks))
        return tuple(OneMarginal(self.workload.d, mask, each) for mask in self.workload.masks)

    @property
    def loss(self) -> Pure:
        return sum((part.loss for part in self.parts), Pure(0))

    def algorithm(self) -> Nonadaptive[OneMarginal, LevelCounts, Floats]:
        """As a curator's algorithm: all marginals are asked at once, so it is CNI."""
        return Nonadaptive(self.parts, _joined)

    def release(self, database: BinaryTable, draws: Draws) -> Floats:
        return _joined(tuple(part.release(database, draws) for part in self.parts))


def _joined(answers: tuple[LevelCounts, ...]) -> Floats:
    return np.concatenate([answer.counts for answer in answers]).astype(np.float64)


@dataclass(frozen=True)
class PlainGaussian(WithinDelta[BinaryTable, Floats]):
    """Every cell of every marginal with its own rounded normal noise: the cells, shape (cells,).

    Privacy: (eps, delta), as one Gaussian mechanism: a record that changes in all columns moves two cells of each of k marginals, 2 k squared.
    """

    workload: Marginals
    epsilon: float
    delta: float

    def release(self, database: BinaryTable, draws: Draws) -> Floats:
        variance = least_variance(2 * len(self.workload.masks), self.loss)
        return self.workload.answers(database) + rounded_normals(draws, variance, self.workload.cells)


def of_total(weights: Floats | Counts, size: float) -> Floats:
    """The same weights with the public total `size`: the total noise, taken off evenly."""
    return np.asarray(weights + (size - float(weights.sum())) / len(weights))


def on_simplex(weights: Floats, size: float) -> Floats:
    """The nearest weights of 0 or more that sum to `size` > 0: each less by one number, none below 0. Source: Held, Wolfe, Crowder 1974."""
    falling = np.sort(weights)[::-1]
    less = (np.cumsum(falling) - size) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(weights - less[np.flatnonzero(falling > less)[-1]], 0))


def independent(columns: NoisyCharacters) -> TreeTable:
    """The table of independent columns with these noisy means, of a workload of all 1-way marginals."""
    means = np.clip(columns.sums[1:] / max(columns.size, 1), -1, 1)
    edges = tuple((column, column + 1) for column in range(len(means) - 1))
    return TreeTable(columns.size, means, edges, means[:-1] * means[1:])
