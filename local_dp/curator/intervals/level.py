"""Estimated counts of all intervals: the number of records below each point, of which any interval is a difference."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.counts.laplace import LISTED, NoisyCounts
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.laws import independent
from local_dp.curator.mechanism import Law, WithinEpsilon
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO

MAX_BITS = 22


def check_domain(bits: int) -> None:
    """Raises InputError unless 1 <= bits <= 22: a release has a number for every point of the domain 0..2^bits - 1."""
    check_whole("bits", bits, 1, MAX_BITS)


def cell_counts(database: Multiset, bits: int, width: int, cells: int) -> Counts:
    """The number of records in each of `cells` intervals of `width` points, from 0 on: shape (cells,). Raises InputError for another domain."""
    if database.bits != bits:
        raise InputError(f"the points are of 0..2^{database.bits} - 1, the mechanism is for 0..2^{bits} - 1; give one domain for both")
    counts = np.zeros(cells, dtype=np.int64)
    np.add.at(counts, database.values.astype(np.int64) // width, database.counts)
    return counts


@dataclass(frozen=True, eq=False)
class IntervalCounts:
    """Estimated counts of all intervals. `below`, shape (2^bits + 1,): the number of records below each point, and below 2^bits."""

    below: Floats

    def count(self, low: Ints | int, high: Ints | int) -> Floats:
        """The counts of the intervals low <= x < high, shape of the ends: O(1) each. Raises InputError unless 0 <= low <= high <= 2^bits."""
        lows, highs = np.asarray(low), np.asarray(high)
        if np.any(lows < 0) or np.any(lows > highs) or np.any(highs >= len(self.below)):
            raise InputError(f"some interval is not within the domain; give low <= x < high with 0 <= low and high <= {len(self.below) - 1}")
        return np.asarray(self.below[highs] - self.below[lows])

    def errors(self, database: Multiset) -> Floats:
        """Estimate minus true count of the records below each point, shape (2^bits + 1,). O(D)."""
        return np.asarray(self.below - np.append(0, np.cumsum(cell_counts(database, database.bits, 1, len(self.below) - 1))))

    def worst_error(self, database: Multiset) -> float:
        """The largest |estimate - count| over all intervals: the span of the thresholds' errors, up to twice the largest of them."""
        return float(np.ptp(self.errors(database)))


@dataclass(frozen=True, eq=False)
class LevelCounts(NoisyCounts):
    """Noisy counts of neighbouring intervals of one width, from 0 on: shape (cells,)."""


@dataclass(frozen=True)
class Level(WithinEpsilon[Multiset, LevelCounts]):
    """The counts of the intervals [0, width), [width, 2 width), ... of the domain 0..2^bits - 1, each with discrete Laplace noise of eps / 2.

    Privacy: epsilon, pure: a replaced record moves two counts by 1, eps / 2 each. A record added or removed costs eps / 2.
    Utility: each count is unbiased, of variance 1 / (cosh(eps / 2) - 1), about 8 / eps^2. Cost: 40 ns a cell.
    """

    bits: int
    width: int
    epsilon: float

    def __post_init__(self) -> None:
        check_domain(self.bits)
        check_whole("width", self.width, 1, 1 << self.bits)
        super().__post_init__()

    @property
    def cells(self) -> int:
        """The number of intervals; the last one may reach beyond the domain."""
        return -(-(1 << self.bits) // self.width)

    @property
    def noise(self) -> Fraction:
        """The cost of moving a count by one, in nano-nats."""
        return Fraction(self.loss.nano, 2)

    def release(self, database: Multiset, draws: Draws) -> LevelCounts:
        return LevelCounts(self._counts(database) + discrete_laplaces(draws, self.noise / NANO, self.cells))

    def law(self, database: Multiset) -> Law[LevelCounts]:
        return self.cut_law(database, database.size)

    def cut_law(self, database: Multiset, most: int) -> Law[LevelCounts]:
        """The law of the counts cut to 0..`most`, which is m or more: beyond, neighbours' laws have the ratios of the ends.

        e^(eps / 2) is replaced by a fraction just below it. Raises InputError above 2^12 outcomes.
        """
        if (most + 1) ** self.cells > LISTED:
            raise InputError(f"there are {self.cells} cells of up to {most} records; a law is listed up to {LISTED} outcomes")
        cut = ClippedLaplace(self.noise.numerator, self.noise.denominator, most)
        laws = [cut.law(count) for count in self._counts(database).tolist()]
        return {LevelCounts(np.array(counts, dtype=np.int64)): weight for counts, weight in independent(laws)}

    def _counts(self, database: Multiset) -> Counts:
        return cell_counts(database, self.bits, self.width, self.cells)
