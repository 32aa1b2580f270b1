"""What MWEM asks: which marginal is answered worst, and that marginal whole, with concentrated noise; with pure noise it is a `OneMarginal`."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts
from local_dp.checks import check_whole
from local_dp.curator.intervals.level import LevelCounts
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.rounded_normal import rounded_normals
from local_dp.curator.selection.exponential import ByScore, ExponentialChoice
from local_dp.curator.selection.groups import Listed
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, Concentrated


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
class GaussianMarginal(Mechanism[BinaryTable, LevelCounts, Concentrated]):
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

    def release(self, database: BinaryTable, draws: Draws) -> LevelCounts:
        cells = np.rint(Marginals(self.d, (self.mask,)).answers(database)).astype(np.int64)
        return LevelCounts(cells + rounded_normals(draws, self.variance, len(cells)))
