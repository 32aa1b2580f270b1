"""All interval counts: from trees of noisy counts, pure, and by the square-root factorization of
prefix sums, approximate."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal, Inexact
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_whole
from local_dp.curator.counts import NoisyCounts, cut_law
from local_dp.curator.inversion import discrete_laplaces, least_variance, rounded_normals
from local_dp.curator.mechanism import (
    Law,
    Mechanism,
    WithinDelta,
    WithinEpsilon,
)
from local_dp.curator.multisets import Multiset, check_same
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import NANO, Pure, nano_epsilon, split_epsilon
from local_dp.optimise import least_clients

MAX_BITS = 22


def check_domain(bits: int) -> None:
    """Raises InputError unless 1 <= bits <= 22: a release has a number for every point of the
    domain 0..2^bits - 1."""
    check_whole("bits", bits, 1, MAX_BITS)


def cell_counts(database: Multiset, bits: int, width: int, cells: int) -> Counts:
    """The number of records in each of `cells` intervals of `width` points, from 0 on: shape
    (cells,). Raises InputError for another domain."""
    check_same(database.bits, bits)
    counts = np.zeros(cells, dtype=np.int64)
    np.add.at(counts, database.values.astype(np.int64) // width, database.counts)
    return counts


@dataclass(frozen=True, eq=False)
class IntervalCounts:
    """Estimated counts of all intervals. `below`, shape (2^bits + 1,): the number of records below
    each point, and below 2^bits."""

    below: Floats

    def count(self, low: Ints | int, high: Ints | int) -> Floats:
        """The counts of the intervals low <= x < high, shape of the ends: O(1) each. Raises
        InputError unless 0 <= low <= high <= 2^bits."""
        lows, highs = np.asarray(low), np.asarray(high)
        if np.any(lows < 0) or np.any(lows > highs) or np.any(highs >= len(self.below)):
            raise InputError(
                "some interval is not within the domain; give low <= x < high with 0 <= low and "
                f"high <= {len(self.below) - 1}"
            )
        return np.asarray(self.below[highs] - self.below[lows])

    def errors(self, database: Multiset) -> Floats:
        """Estimate minus true count of the records below each point, shape (2^bits + 1,). O(D)."""
        counts = cell_counts(database, database.bits, 1, len(self.below) - 1)
        return np.asarray(self.below - np.append(0, np.cumsum(counts)))

    def worst_error(self, database: Multiset) -> float:
        """The largest |estimate - count| over all intervals: the span of the thresholds' errors, up
        to twice the largest of them."""
        return float(np.ptp(self.errors(database)))


@dataclass(frozen=True)
class Level(WithinEpsilon[Multiset, NoisyCounts]):
    """The counts of the intervals [0, width), [width, 2 width), ... of the domain 0..2^bits - 1,
    each with discrete Laplace noise of eps / 2.

    Privacy: epsilon, pure: a replaced record moves two counts by 1, eps / 2 each.
    Utility: each count is unbiased, of variance 1 / (cosh(eps / 2) - 1), about 8 / eps^2. Cost: 40
    ns a cell.
    """

    summary = "Counts the intervals of one width with noise"
    bits: int
    width: int
    epsilon: float

    def __post_init__(self) -> None:
        check_domain(self.bits)
        check_whole("width", self.width, 1, 1 << self.bits)
        super().__post_init__()

    @property
    def cells(self) -> int:
        return -(-(1 << self.bits) // self.width)

    @property
    def noise(self) -> Fraction:
        """The cost of moving a count by one, in nano-nats."""
        return Fraction(self.loss.nano, 2)

    def release(self, database: Multiset, draws: Draws) -> NoisyCounts:
        return NoisyCounts(
            self._counts(database) + discrete_laplaces(draws, self.noise / NANO, self.cells)
        )

    def law(self, database: Multiset) -> Law[NoisyCounts]:
        return self.cut_law(database, database.size)

    def cut_law(self, database: Multiset, most: int) -> Law[NoisyCounts]:
        """The law of the counts cut to 0..`most`, which is m or more; e^(eps / 2) is a fraction
        just below it. Raises InputError above 2^12 outcomes."""
        return cut_law(self._counts(database), self.noise, most)

    def _counts(self, database: Multiset) -> Counts:
        return cell_counts(database, self.bits, self.width, self.cells)


@dataclass(frozen=True)
class Shape:
    """A tree over `leaves` leaves with `height` levels below the root. Each node has `branching`
    children; the root and the right edge have fewer."""

    leaves: int
    branching: int

    @property
    def height(self) -> int:
        """The least with branching^height >= leaves."""
        return least_clients(lambda height: self.branching**height >= self.leaves)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of leaves below a node of each level, from the root's children down to the
        leaves."""
        return tuple(self.branching**below for below in reversed(range(self.height)))

    def filled(self, levels: Sequence[Counts | Floats]) -> list[Floats]:
        """The levels with empty nodes behind the right edge, whose counts are exactly 0."""
        whole = -(-self.leaves // self.widths[0]) * self.widths[0]
        return [
            np.append(level.astype(np.float64), np.zeros(whole // width - len(level)))
            for level, width in zip(levels, self.widths, strict=True)
        ]

    def spreads(self) -> list[Floats]:
        """The variance of each node's estimate from itself and all nodes below, in units of the
        variance of one noisy count."""
        own = self.filled([np.ones(-(-self.leaves // width)) for width in self.widths])
        spreads = [own[-1]]
        for here in reversed(own[:-1]):
            below = spreads[0].reshape(len(here), -1).sum(axis=1)
            spreads.insert(0, below * here / np.maximum(below + here, 1e-300))
        return spreads


def consistent(levels: Sequence[Counts], shape: Shape, total: float) -> Floats:
    """The leaves that add up to `total` with the least sum of squared differences to all noisy
    counts: the unbiased estimate of least variance.

    Up: each node averages its own count and its children's sum by their variances. Down: the excess
    of a parent over its children is shared out in proportion to their variances. Source: Hay,
    Rastogi, Miklau, Suciu 2010, Theorem 3.
    """
    noisy, spreads = shape.filled(levels), shape.spreads()
    up = [noisy[-1]]
    for own, spread in zip(reversed(noisy[:-1]), reversed(spreads[1:]), strict=True):
        below = spread.reshape(len(own), -1).sum(axis=1)
        children = up[0].reshape(len(own), -1).sum(axis=1)
        up.insert(0, (own * below + children) / (below + 1))
    above = np.array([total])
    for level, spread in zip(up, spreads, strict=True):
        children = level.reshape(len(above), -1)
        excess = above - children.sum(axis=1)
        above = (children + _shares(spread, len(above)) * excess[:, None]).ravel()
    return above[: shape.leaves]


def nested(levels: Sequence[Counts], shape: Shape, total: float) -> Floats:
    """The number of records below each leaf by the noisy counts as they are, largest intervals
    first: shape (leaves + 1,). The baseline of `consistent`."""
    below = np.array([0.0, total])
    for level in shape.filled(levels):
        children = level.reshape(len(below) - 1, -1)
        inside = below[:-1, None] + np.cumsum(children, axis=1) - children
        below = np.append(inside.ravel(), below[-1])
    return np.append(below[: shape.leaves], total)


def prefix_variances(shape: Shape) -> Floats:
    """The variance of the consistent count below each leaf, shape (leaves + 1,), in units of the
    variance of one noisy count: exact, O(D).

    Let f be the share of the children's variance S to the left of a border. The error there is the
    mean of the errors at the node's two ends by f, plus an independent bridge of variance S f (1 -
    f).
    """
    # at the borders, and of each border with the next
    variances, adjacent = np.zeros(2), np.zeros(1)
    for spread in shape.spreads():
        nodes = len(adjacent)
        sums, shares = spread.reshape(nodes, -1).sum(axis=1)[:, None], _shares(spread, nodes)
        node = variances[:-1, None], variances[1:, None], adjacent[:, None], sums
        end = np.cumsum(shares, axis=1)
        start = end - shares
        own, adjacent = (_covariance(start, g, node).ravel() for g in (start, end))
        variances = np.append(own, variances[-1])
    return variances[: shape.leaves + 1]


def _covariance(f: Floats, g: Floats, node: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """Of the errors at the shares f <= g of a node, from those at its ends and the variance S."""
    left, right, both, total = node
    at_ends = (1 - f) * (1 - g) * left + f * g * right
    across = (f * (1 - g) + g * (1 - f)) * both
    return at_ends + across + total * f * (1 - g)


def _shares(spread: Floats, nodes: int) -> Floats:
    """Each child's share of the variance of the siblings' sum, shape (nodes, children)."""
    children = spread.reshape(nodes, -1)
    return np.asarray(children / np.maximum(children.sum(axis=1), 1e-300)[:, None])


def largest_variance(leaves: int, branching: int) -> float:
    """An upper bound of the variance of consistent interval counts, in units of one noisy count's:
    (b_h s_h + 2 sum of b_j s_j over the lower levels) / 4.

    s_j = 1 / (1 + 1/b + ... + b^-j) is the variance of a node with j levels below it. A bridge over
    b_j children has at most b_j s_j / 4, and an interval has two ends. With noise of eps / 2h on h
    = log_b D levels it is about 4 (b - 1) ln(D)^3 / (eps^2 ln(b)^3), least at b = 16.8.
    """
    widths = Shape(leaves, branching).widths
    spreads = [
        1 / math.fsum(branching**-k for k in range(below + 1))
        for below in reversed(range(len(widths)))
    ]
    top = -(-leaves // widths[0]) * spreads[0]
    return (top + 2 * branching * math.fsum(spreads[1:])) / 4


def branchings(leaves: int) -> Iterator[int]:
    """For each height the smallest branching that reaches it, which is the best one of that
    height."""
    branching = 2
    while branching < leaves:
        yield branching
        height = Shape(leaves, branching).height
        while Shape(leaves, branching).height == height:
            branching += 1
    yield leaves


@dataclass(frozen=True)
class CountTree(Mechanism[Multiset, IntervalCounts, Pure]):
    """All interval counts of the domain 0..2^bits - 1 from a tree of noisy counts with `branching`
    children a node; 2^bits of them put noise on every cell.

    Privacy: epsilon, pure, in equal parts on h = ceil(bits / log2 b) levels; the root is n, which
    is public. Utility: `deviation`; `by_least_squares` makes the counts consistent, which never
    loses. Cost: O(D): 2^20 points in a fifth of a second. Source: Hay, Rastogi, Miklau, Suciu 2010;
    Qardaji, Yang, Li 2013 on the branching.
    """

    summary = "Releases all interval counts from a tree of noisy counts"
    bits: int
    epsilon: float
    branching: int = 16
    by_least_squares: bool = True

    def __post_init__(self) -> None:
        check_domain(self.bits)
        check_whole("branching", self.branching, 2, 1 << self.bits)
        if nano_epsilon(self.epsilon) < self.shape.height:
            raise InputError(
                f"epsilon is {self.epsilon} for {self.shape.height} levels; give a larger epsilon "
                "or branching"
            )

    @property
    def shape(self) -> Shape:
        return Shape(1 << self.bits, self.branching)

    @property
    def levels(self) -> tuple[Level, ...]:
        each = split_epsilon(self.epsilon, self.shape.height)
        return tuple(Level(self.bits, width, each) for width in self.shape.widths)

    @property
    def loss(self) -> Pure:
        return sum((level.loss for level in self.levels), Pure(0))

    @property
    def deviation(self) -> float:
        """The largest standard deviation of a consistent interval count, at most, in records."""
        one = 1 / (2 * math.sinh(self.levels[0].epsilon / 4) ** 2)  # cosh(x) - 1 = 2 sinh(x / 2)^2
        return math.sqrt(one * largest_variance(1 << self.bits, self.branching))

    def algorithm(self, size: int) -> Nonadaptive[Level, NoisyCounts, IntervalCounts]:
        """The tree as a curator's algorithm for `size` records: it asks all levels at once, so it
        is CNI."""
        return Nonadaptive(self.levels, lambda answers: self._decode(answers, size))

    def release(self, database: Multiset, draws: Draws) -> IntervalCounts:
        return self._decode(
            tuple(level.release(database, draws) for level in self.levels), database.size
        )

    def _decode(self, answers: tuple[NoisyCounts, ...], size: int) -> IntervalCounts:
        counts = [answer.counts for answer in answers]
        if not self.by_least_squares:
            return IntervalCounts(nested(counts, self.shape, size))
        return IntervalCounts(np.append(0.0, np.cumsum(consistent(counts, self.shape, size))))


def best_branching(bits: int, epsilon: float) -> int:
    """The branching with the least `CountTree.deviation`: 2^bits, a flat histogram, on small
    domains; about 16 on large ones."""
    check_domain(bits)
    return min(
        branchings(1 << bits), key=lambda branching: CountTree(bits, epsilon, branching).deviation
    )


def exact_product(a: Counts, b: Counts) -> Counts:
    """The first len(a) coefficients of a times b, whole numbers of 0 or more: by one product of two
    long numbers (Kronecker 1882). O(D log D)."""
    digits = len(str(int(a.sum()) * int(b.max(initial=1))))
    product = Context(prec=MAX_PREC, Emax=MAX_EMAX, traps=[Inexact]).multiply(
        _decimal_of(a, digits), _decimal_of(b, digits)
    )
    text = format(product, "f").zfill(2 * len(a) * digits).encode()
    octets = np.frombuffer(text, dtype=np.uint8).reshape(-1, digits)
    places = octets[len(a) :][::-1] - ord("0")
    coefficients = np.zeros(len(a), dtype=np.int64)
    for place in range(digits):
        coefficients = 10 * coefficients + places[:, place]
    return coefficients


def _decimal_of(coefficients: Counts, digits: int) -> Decimal:
    """The value of the polynomial at 10^digits."""
    places = np.empty((len(coefficients), digits), dtype=np.uint8)
    left = coefficients[::-1].copy()
    for place in reversed(range(digits)):
        left, places[:, place] = np.divmod(left, 10)
    return Decimal((places + ord("0")).tobytes().decode())


def series_product(a: Floats, b: Floats) -> Floats:
    """The first len(a) coefficients of a times b, of the same length, by FFT."""
    size = 1 << (2 * len(a) - 1).bit_length()
    spectrum = np.fft.rfft(a, size) * np.fft.rfft(b, size)
    return np.asarray(np.fft.irfft(spectrum, size)[: len(a)])


def series_inverse(a: Floats) -> Floats:
    """The first len(a) coefficients of 1 / a, by Newton's iteration."""
    inverse = np.array([1 / a[0]])
    while len(inverse) < len(a):
        longer = np.append(inverse, np.zeros(min(len(inverse), len(a) - len(inverse))))
        error = -series_product(a[: len(longer)], longer)
        error[0] += 2
        inverse = series_product(longer, error)
    return inverse


MAX_SIZE = 1 << 32  # records: more might need sums of over 64 bits


@dataclass(frozen=True)
class PrefixFactorization(WithinDelta[Multiset, IntervalCounts]):
    """All interval counts of the domain 0..2^bits - 1 from W x + z: W lower-triangular Toeplitz, z
    whole Gaussian noise, x the counts of the points.

    The matrix of prefix sums is M^2, M of coefficients binom(2k, k) / 4^k. W is M times a scale of
    2^(bits / 2 + 1), its coefficients rounded to whole numbers so that their sums stay within 1/2
    of M's. The answer is (prefix sums) W^-1 (W x + z): unbiased for any W. Privacy: (eps, delta). W
    x is whole and exact. A replaced record moves it by at most `square` = max |W (e_a - e_b)|^2, a
    whole number computed exactly. With z = round(N(0, V)) each, W x + z is the rounded answer of a
    Gaussian mechanism. Utility: standard error sqrt(V) |row| / scale, about ln(D) / pi times a
    constant. Cost: O(D log D): 2^16 points in a second, most of it a table for V. Source:
    Fichtenberger, Henzinger, Upadhyay 2023; Henzinger, Upadhyay, Upadhyay 2023.
    """

    summary = "Releases all interval counts by a factorized matrix"
    bits: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_domain(self.bits)
        super().__post_init__()

    @property
    def coefficients(self) -> Counts:
        """The first column of W: shape (2^bits,)."""
        return _rounded_root(1 << self.bits)

    @cached_property
    def square(self) -> int:
        """max |W (e_a - e_b)|^2 over all a, b: the squared L2 sensitivity against a replaced
        record."""
        return square_sensitivity(self.coefficients)

    @cached_property
    def variance(self) -> int:
        return least_variance(self.square, self.loss)

    def measured(self, database: Multiset, draws: Draws) -> Counts:
        """W x + z, shape (2^bits,): the whole release."""
        cells = 1 << self.bits
        counts = cell_counts(database, self.bits, 1, cells)
        if database.size > MAX_SIZE:
            raise InputError(f"there are {database.size:,} records; give at most 2^32")
        return exact_product(counts, self.coefficients) + rounded_normals(
            draws, self.variance, cells
        )

    def release(self, database: Multiset, draws: Draws) -> IntervalCounts:
        noisy = self.measured(database, draws).astype(np.float64)
        return IntervalCounts(np.append(0.0, series_product(self.decoding, noisy)))

    @property
    def decoding(self) -> Floats:
        """The first column of (prefix sums) W^-1."""
        return np.asarray(np.cumsum(series_inverse(self.coefficients.astype(np.float64))))

    def deviations(self) -> Floats:
        """The standard error of the count below each point, shape (2^bits + 1,)."""
        return np.append(0.0, np.sqrt((self.variance + 1 / 12) * np.cumsum(self.decoding**2)))


@lru_cache(maxsize=2)
def _rounded_root(cells: int) -> Counts:
    """The coefficients of M times the scale, rounded so that all their partial sums are rounded."""
    k = np.arange(1, cells)
    root = np.append(1.0, np.cumprod(1 - 1 / (2 * k)))
    sums = np.floor((2 << (cells.bit_length() // 2)) * np.cumsum(root) + 0.5).astype(np.int64)
    return np.diff(sums, prepend=0)


def square_sensitivity(coefficients: Counts) -> int:
    """max over d of sum_i (w_i - w_(i - d))^2, w_i = 0 for i < 0; d = D stands for columns that do
    not meet.

    Columns a and a + d differ by this sum over the first D - a rows, most for a = 0, so it is the
    maximum over all pairs of columns.
    """
    squares = np.cumsum(coefficients**2)
    # sum_i w_i w_(i + d), d = 0, 1, ...
    alike = exact_product(coefficients, coefficients[::-1])[::-1]
    return int((squares[-1] + squares[::-1] - 2 * alike)[1:].max())
