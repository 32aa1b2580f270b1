"""All pairs of many columns: the mean of every product of two signs, from one Gaussian release.

The noisy pairs move to the nearest possible ones: post-processing, which costs no privacy and
removes most of a large noise.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.inversion import least_variance, rounded_normals
from local_dp.curator.marginals.base import products
from local_dp.curator.mechanism import WithinDelta
from local_dp.draws import Draws
from local_dp.errors import InputError

MAX_COLUMNS = 1 << 12
_BLOCK = 1 << 24  # signs at a time


@dataclass(frozen=True, eq=False)
class SignTable:
    """n records of d signs -1 or 1: shape (n, d). n is public, records are replaced. A column of
    ones makes means of single signs pairs too."""

    signs: Ints

    def __post_init__(self) -> None:
        matrix = self.signs.ndim == 2 and 1 < self.signs.shape[1] <= MAX_COLUMNS
        if not matrix or not np.all(np.abs(self.signs) == 1):
            raise InputError(
                f"a table of signs has 2 to {MAX_COLUMNS} columns of -1 and 1; this has shape "
                f"{self.signs.shape}, or other values"
            )

    @classmethod
    def of(cls, columns: Ints | Bools) -> Self:
        """From 0 and 1: 0 is the sign 1, as in characters."""
        return cls(1 - 2 * np.asarray(columns).astype(np.int8))

    @property
    def size(self) -> int:
        return len(self.signs)

    @property
    def d(self) -> int:
        return int(self.signs.shape[1])

    @cached_property
    def sums(self) -> Counts:
        """The sums of v_i v_j over all records, shape (d, d), n on the diagonal."""
        step = max(1, _BLOCK // self.d)
        blocks = (self.signs[start : start + step] for start in range(0, self.size, step))
        return products(self.d, (block.astype(np.float64) for block in blocks))


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """Noisy means of v_i v_j, shape (d, d): symmetric, 1 on the diagonal; and the standard
    deviation of the other entries' noise."""

    means: Floats
    deviation: float


@dataclass(frozen=True)
class PairGaussian(WithinDelta[SignTable, NoisyPairs]):
    """The sums of v_i v_j over all records for i < j, each plus round(N(0, V)).

    Privacy: (eps, delta), as one Gaussian mechanism of squared L2 sensitivity 4 floor(d^2 / 4): a
    record that flips a of its d signs moves by 2 the a (d - a) pairs of a flipped and a constant
    one. Utility: standard deviation sqrt(V) / n. Cost: O(n d^2).
    """

    summary = "Releases the sums of all pairs of columns"
    d: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("d", self.d, 2, MAX_COLUMNS)
        super().__post_init__()

    @property
    def square(self) -> int:
        return 4 * (self.d**2 // 4)

    @cached_property
    def variance(self) -> int:
        return least_variance(self.square, self.loss)

    def release(self, database: SignTable, draws: Draws) -> NoisyPairs:
        if database.d != self.d or not database.size:
            raise InputError(
                f"the table has {database.size} rows of {database.d} columns and the mechanism "
                f"{self.d}; give as many, and a row at least"
            )
        above = np.triu_indices(self.d, 1)
        sums = database.sums[above] + rounded_normals(draws, self.variance, len(above[0]))
        return pairs_of(sums, database.size, self.variance + 1 / 12)


def pairs_of(sums: Counts | Floats, size: int, variance: float) -> NoisyPairs:
    """From the sums above the diagonal, row by row, of `size` records, with noise of this variance
    each."""
    d = (1 + int(np.sqrt(1 + 8 * len(sums)))) // 2
    means = np.zeros((d, d))
    means[np.triu_indices(d, 1)] = sums / size
    return NoisyPairs(means + means.T + np.eye(d), float(np.sqrt(variance)) / size)


def rms_error(estimate: Floats, truth: Floats) -> float:
    """The root mean square error over all pairs i < j, both shape (d, d)."""
    above = np.triu_indices(len(truth), 1)
    return float(np.sqrt(np.mean((estimate[above] - truth[above]) ** 2)))


MOST_ENUMERATED = 12
_ITERATIONS = 100
_EXACT = 1e-5  # of the diagonal's distance from 1
_ROUNDS = 1000
_GAP = 1e-7  # of a slope, for each pair: below it a vertex leads nowhere


def onto_elliptope(means: Floats) -> Floats:
    """The nearest matrix (Frobenius) to a symmetric one among {Z positive semidefinite, diagonal
    1}, which contains every table's means of v_i v_j.

    By the dual: minimise |(Y + Diag u)_+|^2 / 2 - sum u, convex and smooth in d numbers, of
    gradient diag (Y + Diag u)_+ - 1; L-BFGS needs 10 to 20 eigendecompositions. Cost: O(d^3) each:
    d = 200 in .2 s. Utility: |Z - y|^2 <= 2 max over the body of <z, noise>: an error of d^(1/4)
    where the noise alone has d^(1/2), up to a power of the noise's own size. Source: Dwork,
    Nikolov, Talwar 2015 (lecture notes 7); the dual is Malick's 2004. Raises InputError unless it
    is a symmetric matrix of finite numbers.
    """
    from scipy.optimize import minimize

    symmetric = _symmetric(means)

    def price(dual: Floats) -> tuple[float, Floats]:
        values, vectors = np.linalg.eigh(symmetric + np.diag(dual))
        positive = np.maximum(values, 0)
        diagonal = ((vectors * positive) * vectors).sum(axis=1)
        return float(positive @ positive) / 2 - float(dual.sum()), diagonal - 1

    solution = minimize(
        price,
        np.zeros(len(symmetric)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "gtol": _EXACT, "ftol": 0.0},
    )
    values, vectors = np.linalg.eigh(symmetric + np.diag(solution.x))
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    root = np.sqrt(np.diag(nearest))
    return np.asarray(nearest / np.outer(root, root))


def onto_hull(means: Floats) -> Floats:
    """The nearest matrix to a symmetric one among the means over all tables: the convex hull of all
    v v^T, for at most 12 columns.

    Fully corrective Frank-Wolfe: adds the vertex of steepest descent, by enumerating 2^(d - 1) sign
    vectors. Then it takes the best weights of all vertices so far (non-negative least squares). It
    ends where no vertex leads nearer. Cost: d = 10 in .2 s.
    """
    from scipy.optimize import nnls

    symmetric = _symmetric(means)
    check_whole("the number of columns", len(symmetric), 2, MOST_ENUMERATED)
    signs = np.array(list(product((1.0,), *[(1.0, -1.0)] * (len(symmetric) - 1))))
    above = np.triu_indices(len(symmetric), 1)
    target, vertices = symmetric[above], np.array([signs[0]])
    for _ in range(_ROUNDS):
        columns = (vertices[:, :, None] * vertices[:, None, :])[:, *above].T
        system = np.vstack([columns, np.full(len(vertices), 1e4)])
        weights = nnls(system, np.append(target, 1e4))[0]
        weights /= weights.sum()
        off = np.zeros_like(symmetric)
        off[above] = target - columns @ weights
        slopes = ((signs @ off) * signs).sum(axis=1)  # <residual, v v^T> over i < j
        best = int(slopes.argmax())
        own = float(weights @ ((vertices @ off) * vertices).sum(axis=1))
        if slopes[best] - own < _GAP * len(target):
            break
        vertices = np.vstack([vertices[weights > 0], signs[best]])
        weights = np.append(weights[weights > 0], 0.0)
    return np.asarray((vertices.T * weights) @ vertices)


def _symmetric(means: Floats) -> Floats:
    square = means.ndim == 2 and means.shape[0] == means.shape[1]
    if not square or not np.all(np.isfinite(means)) or not np.allclose(means, means.T):
        raise InputError(
            f"the means have shape {means.shape}; give a symmetric matrix of finite numbers"
        )
    return means - np.diag(np.diag(means)) + np.eye(len(means))
