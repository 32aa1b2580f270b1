"""What a release of all intervals says: how many records lie below each point, from which any interval is a difference."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.multisets import Multiset
from local_dp.errors import InputError

MAX_BITS = 22


def check_domain(bits: int) -> None:
    """Raises InputError unless 1 <= bits <= 22: a release tells of every point of the domain 0..2^bits - 1."""
    check_whole("bits", bits, 1, MAX_BITS)


def cell_counts(database: Multiset, bits: int, width: int, cells: int) -> Counts:
    """How many records lie in each of `cells` intervals of `width` points, from 0 on: shape (cells,). Raises InputError for points of another domain."""
    if database.bits != bits:
        raise InputError(f"the points are of 0..2^{database.bits} - 1, the mechanism is for 0..2^{bits} - 1; give one domain for both")
    counts = np.zeros(cells, dtype=np.int64)
    np.add.at(counts, database.values.astype(np.int64) // width, database.counts)
    return counts


@dataclass(frozen=True, eq=False)
class IntervalCounts:
    """Estimated counts of all intervals: `below`, shape (2^bits + 1,), how many records lie below each point, and below 2^bits; nothing lies below 0."""

    below: Floats

    def count(self, low: Ints | int, high: Ints | int) -> Floats:
        """Of the intervals low <= x < high, shape of the ends: O(1) each. Raises InputError unless 0 <= low <= high <= 2^bits."""
        lows, highs = np.asarray(low), np.asarray(high)
        if np.any(lows < 0) or np.any(lows > highs) or np.any(highs >= len(self.below)):
            raise InputError(f"an interval low <= x < high has 0 <= low <= high <= {len(self.below) - 1}")
        return np.asarray(self.below[highs] - self.below[lows])

    def errors(self, database: Multiset) -> Floats:
        """Estimate minus count of the records below each point, shape (2^bits + 1,): of the thresholds. O(D)."""
        return np.asarray(self.below - np.append(0, np.cumsum(cell_counts(database, database.bits, 1, len(self.below) - 1))))

    def worst_error(self, database: Multiset) -> float:
        """The largest |estimate - count| over all intervals: the widest span of the thresholds' errors, up to twice the largest of them."""
        return float(np.ptp(self.errors(database)))
