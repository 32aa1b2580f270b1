"""No counts: what any answer has to beat."""

from dataclasses import dataclass

import numpy as np

from local_dp.curator.counts.base import ColumnCounts, NoisyCounts
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.draws import Draws
from local_dp.loss import Pure


@dataclass(frozen=True)
class NoCounts(Mechanism[ColumnCounts, NoisyCounts, Pure]):
    """Half of the records, for each of the k counts: the data are not looked at.

    Privacy: 0. Utility: off by at most n / 2, rounded up; by as much where some property is of nobody or of everybody.
    """

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: ColumnCounts, draws: Draws) -> NoisyCounts:
        return NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64))

    def law(self, database: ColumnCounts) -> Law[NoisyCounts]:
        return {NoisyCounts(np.full(len(database.counts), database.size // 2, dtype=np.int64)): 1}
