"""The pure baseline of point counts: noise on the count of every point of the domain, drawn for the few that are told."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.inversion import binomial, exp_minus
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import Multiset, absent, check_bits, naturals
from local_dp.curator.sanitizers.cells import CellNoise, NoisyCounts, look_up
from local_dp.curator.sanitizers.histogram import law_of_cells
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, nano_epsilon


@dataclass(frozen=True)
class PerCellHistogram(Mechanism[Multiset, NoisyCounts, Pure]):
    """For each of the 2^bits points its count plus discrete Laplace noise (eps / 2), told from `least` on, at most as m.

    `least` is the least count that a point without records is told to have with probability `strangers` / 2^bits at most: about so many are told.
    Privacy: eps, at every number of records: a replacement moves two counts by one each, eps / 2 twice.
    Utility: `bounds.packing.per_cell_success`: alpha m must pass the largest noise of 2^bits cells, (2 / eps) ln(2^bits / beta) and a little more.
    Cost: that of the points that occur. How many of the others are told is binomial; which ones, uniform; how much beyond `least`, geometric: exactly.
    Source: the Laplace mechanism on a histogram (Beimel, Nissim, Stemmer 2013, Theorem 2.24 and Section 4.2).
    """

    bits: int
    epsilon: float
    strangers: int = 64

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_whole("strangers", self.strangers, 1, 1 << 12)
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @cached_property
    def noise(self) -> CellNoise:
        """On the count of one cell."""
        nano = Fraction(self.loss.nano, 2)
        return CellNoise(nano, CellNoise.least_beyond(nano, Fraction(self.strangers, 1 << self.bits)))

    def release(self, database: Multiset, draws: Draws) -> NoisyCounts:
        self._check(database)
        noisy = self.noise.drawn(database.counts, database.size, draws)
        told = noisy > 0
        strangers = self._strangers(database, draws)
        values = naturals([*database.values[told].tolist(), *strangers], self.bits)
        counts = np.append(noisy[told], [self._beyond(database, draws) for _ in strangers]).astype(np.int64)
        order = np.argsort(values, kind="stable")
        return NoisyCounts(self.bits, values[order], counts[order], database.size)

    def law(self, database: Multiset) -> Law[NoisyCounts]:
        self._check(database)
        if self.bits > 4:
            raise InputError(f"there are 2^{self.bits} cells; a law is listed up to 2^4")
        cells = np.arange(1 << self.bits, dtype=np.uint64)
        return law_of_cells(database, self.noise, cells, look_up(database.values, database.counts, cells).tolist())

    def _check(self, database: Multiset) -> None:
        if database.bits != self.bits:
            raise InputError(f"the points are of 0..2^{database.bits} - 1, the mechanism is for 0..2^{self.bits} - 1; give one domain for both")

    def _strangers(self, database: Multiset, draws: Draws) -> list[int]:
        """The points without records that are told: a uniform set of a binomial number of them."""
        others = (1 << self.bits) - len(database.values)
        step = self.noise.nano / NANO

        def share() -> Decimal:
            decay = exp_minus(step)
            return decay**self.noise.least / (1 + decay)

        number, places = binomial(draws, others, share), set[int]()
        while len(places) < number:
            places.add(draws.below(others))
        return absent(database.values, sorted(places))

    def _beyond(self, database: Multiset, draws: Draws) -> int:
        """A noisy count given that it is `least` or more: no larger the more it is, so the noise beyond `least` is that beyond 0."""
        while (more := draws.discrete_laplace(self.noise.nano / NANO)) < 0:
            continue
        return min(self.noise.least + more, max(database.size, self.noise.least))
