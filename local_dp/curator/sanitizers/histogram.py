"""The thresholded histogram: the counts of the points that occur, with noise, told where that is safe; nobody need know the domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from local_dp.arrays import Naturals
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, WithinDelta
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.cells import CellNoise, NoisyCounts
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO

_LISTED = 1 << 16  # outcomes


@dataclass(frozen=True)
class ThresholdedHistogram(WithinDelta[Multiset, NoisyCounts]):
    """For each point that occurs its count plus discrete Laplace noise (eps / 2), told from the threshold on, at most m; all others count 0.

    Privacy: (eps, delta). A replacement moves two counts by one each: eps / 2 twice. A count of 1 that comes or goes is told with probability
    e^(-eps (threshold - 1) / 2) / (1 + e^(-eps / 2)) <= delta, which is what the worst pair of databases has.
    Utility: `bounds.packing.histogram_success`: all counts of all points within alpha m, from 340 records on for alpha .1, 90 % and (1, 1e-6).
    Cost: 0.3 us for each distinct point; the domain does not matter.
    Source: in place of SanPoints of Beimel, Nissim, Stemmer 2013, Theorem 4.6, which asks for 7.6e5 records; Korolova et al. 2009, in whole numbers.
    """

    epsilon: float
    delta: float

    @property
    def threshold(self) -> int:
        """1 + ceil((2 / eps) ln(1 / (delta (1 + e^(-eps / 2)))))."""
        return 1 + CellNoise.least_beyond(self._nano, Fraction(self.loss.atto, ATTO))

    @cached_property
    def noise(self) -> CellNoise:
        """On the count of one cell."""
        return CellNoise(self._nano, self.threshold)

    def release(self, database: Multiset, draws: Draws) -> NoisyCounts:
        noisy = self.noise.drawn(database.counts, database.size, draws)
        told = noisy > 0
        return NoisyCounts(database.bits, database.values[told], noisy[told], database.size)

    def law(self, database: Multiset) -> Law[NoisyCounts]:
        return law_of_cells(database, self.noise, database.values, database.counts.tolist())

    @property
    def _nano(self) -> Fraction:
        return Fraction(self.loss.nano, 2)


def law_of_cells(database: Multiset, noise: CellNoise, cells: Naturals, counts: Sequence[int]) -> Law[NoisyCounts]:
    """Of independent cells with these counts. Raises InputError where there are more than 2^16 outcomes."""
    laws = [noise.law(count, database.size) for count in counts]
    if (max(0, database.size - noise.least) + 2) ** len(laws) > _LISTED:
        raise InputError(f"there are {len(laws)} cells of up to {database.size} records; a law is listed up to {_LISTED} outcomes")

    def outcomes() -> Iterator[tuple[NoisyCounts, Fraction]]:
        for told in product(*(law.items() for law in laws)):
            chance = Fraction(1)
            for _, share in told:
                chance *= share
            kept = np.array([count > 0 for count, _ in told], dtype=bool)
            noisy = np.array([count for count, _ in told], dtype=np.int64)
            yield NoisyCounts(database.bits, cells[kept], noisy[kept], database.size), chance

    return whole_weights(dict(outcomes()))
