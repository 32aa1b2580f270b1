"""What MWEM asks: which marginal is answered worst, and that marginal whole, with pure or with concentrated noise."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from local_dp.arrays import Counts
from local_dp.checks import check_whole
from local_dp.curator.base import Law, Mechanism
from local_dp.curator.choosing.exponential import ByScore, ExponentialChoice
from local_dp.curator.choosing.groups import Listed
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.rounded_normal import rounded_normals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Concentrated, Pure, nano_epsilon

_LISTED = 1 << 12  # outcomes


@dataclass(frozen=True, eq=False)
class WorstMarginal(ByScore[BinaryTable, int]):
    """The number of a marginal that `expected`, whole counts of all cells, answers badly: the score is the sum of its cells' errors.

    Privacy: epsilon, pure: a replaced record moves two cells of a marginal by 1, so its score by at most 2. `BoundedRange` tells it in rho.
    Utility: within 4 ln(k / beta) / eps of the worst of k, but for a chance of beta. Cost: one transform of the table.
    """

    workload: Marginals
    expected: Counts
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expected.shape != (self.workload.cells,) or self.expected.dtype.kind != "i":
            raise InputError(f"what is expected has shape {self.expected.shape}; give a whole number for each of {self.workload.cells} cells")

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, 2)

    def candidates(self, database: BinaryTable) -> Listed:
        errors = np.abs(np.rint(self.workload.answers(database)).astype(np.int64) - self.expected)
        scores = np.add.reduceat(errors, self.workload.starts[:-1])
        return Listed(scores, np.arange(len(scores)))


@dataclass(frozen=True)
class NoisyMarginal(Mechanism[BinaryTable, tuple[int, ...], Pure]):
    """All cells of one marginal, the columns of `mask`, each with discrete Laplace noise of eps / 2, clipped to -n .. 2 n.

    Privacy: epsilon, pure: a replaced record moves two cells by 1. Utility: a variance of about 8 / eps^2 a cell. No answer of use lies where it is clipped.
    """

    d: int
    mask: int
    epsilon: float

    def __post_init__(self) -> None:
        Marginals(self.d, (self.mask,))
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    def release(self, database: BinaryTable, draws: Draws) -> tuple[int, ...]:
        cells, n = _cells(self.d, self.mask, database), database.size
        noisy = cells + discrete_laplaces(draws, Fraction(self.loss.nano, 2 * NANO), len(cells))
        return tuple(np.clip(noisy, -n, 2 * n).tolist())

    def law(self, database: BinaryTable) -> Law[tuple[int, ...]]:
        """Raises InputError above 2^12 outcomes."""
        cells, n = _cells(self.d, self.mask, database), database.size
        if (3 * n + 1) ** len(cells) > _LISTED:
            raise InputError(f"there are {len(cells)} cells of {n} records; a law is listed up to {_LISTED} outcomes")
        laws = [ClippedLaplace(self.loss.nano, 2, 3 * n).law(n + count) for count in cells.tolist()]
        return {tuple(y - n for y, _ in told): prod(weight for _, weight in told) for told in product(*(law.items() for law in laws))}


@dataclass(frozen=True)
class GaussianMarginal(Mechanism[BinaryTable, tuple[int, ...], Concentrated]):
    """All cells of one marginal, the columns of `mask`, each with rounded normal noise of this whole variance.

    Privacy: rho = 1 / variance: a replaced record moves two cells by 1, so the vector by sqrt(2), and the answer is a function of the Gaussian mechanism's.
    """

    d: int
    mask: int
    variance: int

    def __post_init__(self) -> None:
        Marginals(self.d, (self.mask,))
        check_whole("the variance", self.variance, 1, 1 << 36)

    @property
    def loss(self) -> Concentrated:
        return Concentrated(-(-ATTO // self.variance))

    def release(self, database: BinaryTable, draws: Draws) -> tuple[int, ...]:
        cells = _cells(self.d, self.mask, database)
        return tuple((cells + rounded_normals(draws, self.variance, len(cells))).tolist())


def _cells(d: int, mask: int, database: BinaryTable) -> Counts:
    """The true counts of one marginal."""
    return np.rint(Marginals(d, (mask,)).answers(database)).astype(np.int64)
