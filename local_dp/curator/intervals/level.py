"""What a release of all intervals says: how many records lie below each point, from which any interval is a difference."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon

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


_LISTED = 1 << 12  # outcomes


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Noisy counts of neighbouring intervals of one width, from 0 on: shape (cells,)."""

    counts: Counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LevelCounts) and self.counts.tobytes() == other.counts.tobytes()

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())


@dataclass(frozen=True)
class Level(Mechanism[Multiset, LevelCounts, Pure]):
    """The counts of the intervals [0, width), [width, 2 width), ... of the domain 0..2^bits - 1, each with discrete Laplace noise of eps / 2.

    Privacy: epsilon, pure: a replaced record moves two counts by 1, eps / 2 each; against a record that is added or removed, eps / 2.
    Utility: each count is unbiased, of variance 1 / (cosh(eps / 2) - 1), about 8 / eps^2. Cost: 40 ns a cell.
    """

    bits: int
    width: int
    epsilon: float

    def __post_init__(self) -> None:
        check_domain(self.bits)
        check_whole("width", self.width, 1, 1 << self.bits)
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @property
    def cells(self) -> int:
        """How many intervals there are; the last one may reach beyond the domain."""
        return -(-(1 << self.bits) // self.width)

    @property
    def noise(self) -> Fraction:
        """What a step of one in a count may cost, in nano-nats."""
        return Fraction(self.loss.nano, 2)

    def release(self, database: Multiset, draws: Draws) -> LevelCounts:
        return LevelCounts(self._counts(database) + discrete_laplaces(draws, self.noise / NANO, self.cells))

    def law(self, database: Multiset) -> Law[LevelCounts]:
        return self.cut_law(database, database.size)

    def cut_law(self, database: Multiset, most: int) -> Law[LevelCounts]:
        """Of the counts cut to 0..most, m or more: beyond, neighbours' laws are in the ratio of the end, so cutting hides no loss.

        e^(eps / 2), which is no fraction, is replaced by one just below it. Raises InputError above 2^12 outcomes.
        """
        if (most + 1) ** self.cells > _LISTED:
            raise InputError(f"there are {self.cells} cells of up to {most} records; a law is listed up to {_LISTED} outcomes")
        laws = [self._cell(count, most) for count in self._counts(database).tolist()]
        return {
            LevelCounts(np.array([count for count, _ in told], dtype=np.int64)): prod(weight for _, weight in told)
            for told in product(*(law.items() for law in laws))
        }

    def _counts(self, database: Multiset) -> Counts:
        return cell_counts(database, self.bits, self.width, self.cells)

    def _cell(self, count: int, most: int) -> Law[int]:
        """Of one noisy count."""
        growth = exp_epsilon(self.noise)
        less, more = growth.denominator, growth.numerator
        inside = {y: less ** abs(y - count) * more ** (most - abs(y - count)) * (more - less) for y in range(1, most)}
        return {y: less ** abs(y - count) * more ** (most + 1 - abs(y - count)) for y in (0, most)} | inside
