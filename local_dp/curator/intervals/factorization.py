"""All interval counts by the square-root factorization of prefix sums, with exact products of whole polynomials."""

from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal, Inexact
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.curator.intervals.tree import IntervalCounts, cell_counts, check_domain
from local_dp.curator.inversion import least_variance, rounded_normals
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError


def exact_product(a: Counts, b: Counts) -> Counts:
    """The first len(a) coefficients of a times b, both of len(a) whole numbers, 0 or more: by one exact product of two long numbers.

    Each coefficient gets enough decimal digits for the largest of the result (Kronecker 1882); `decimal` multiplies in O(D log D).
    """
    digits = len(str(int(a.sum()) * int(b.max(initial=1))))
    product = Context(prec=MAX_PREC, Emax=MAX_EMAX, traps=[Inexact]).multiply(_written(a, digits), _written(b, digits))
    text = format(product, "f").zfill(2 * len(a) * digits).encode()
    places = np.frombuffer(text, dtype=np.uint8).reshape(-1, digits)[len(a) :][::-1] - ord("0")
    coefficients = np.zeros(len(a), dtype=np.int64)
    for place in range(digits):
        coefficients = 10 * coefficients + places[:, place]
    return coefficients


def _written(coefficients: Counts, digits: int) -> Decimal:
    """The value of the polynomial at 10^digits."""
    places = np.empty((len(coefficients), digits), dtype=np.uint8)
    left = coefficients[::-1].copy()
    for place in reversed(range(digits)):
        left, places[:, place] = np.divmod(left, 10)
    return Decimal((places + ord("0")).tobytes().decode())


def series_product(a: Floats, b: Floats) -> Floats:
    """The first len(a) coefficients of a times b, of the same length, by FFT."""
    size = 1 << (2 * len(a) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: len(a)])


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
    """All interval counts of the domain 0..2^bits - 1 from W x + z: W lower-triangular Toeplitz, z whole Gaussian noise, x the counts of the points.

    The matrix of prefix sums is M^2, M of coefficients binom(2k, k) / 4^k. W is M times a scale of 2^(bits / 2 + 1), its coefficients rounded to whole numbers
    so that their sums stay within 1/2 of M's; that costs 1 % of the error. The answer is (prefix sums) W^-1 (W x + z): unbiased for any W.
    Privacy: (eps, delta). W x is whole and exact. A replaced record moves it by at most `square` = max |W (e_a - e_b)|^2, a whole number computed exactly.
    With z = round(N(0, V)) each, W x + z is the rounded answer of a Gaussian mechanism. All later steps, in floats, see nothing else.
    Utility: standard error sqrt(V) |row| / scale, about ln(D) / pi times a constant. Cost: O(D log D): 2^16 points in a second, most of it a table for V.
    Source: Fichtenberger, Henzinger, Upadhyay 2023; Henzinger, Upadhyay, Upadhyay 2023.
    """

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
        """max |W (e_a - e_b)|^2 over all a, b: the squared L2 sensitivity against a replaced record."""
        return square_sensitivity(self.coefficients)

    @cached_property
    def variance(self) -> int:
        """V: the variance of each coordinate's noise before rounding."""
        return least_variance(self.square, self.loss)

    def measured(self, database: Multiset, draws: Draws) -> Counts:
        """W x + z, shape (2^bits,): the whole release."""
        cells = 1 << self.bits
        counts = cell_counts(database, self.bits, 1, cells)
        if database.size > MAX_SIZE:
            raise InputError(f"there are {database.size:,} records; give at most 2^32")
        return exact_product(counts, self.coefficients) + rounded_normals(draws, self.variance, cells)

    def release(self, database: Multiset, draws: Draws) -> IntervalCounts:
        return IntervalCounts(np.append(0.0, series_product(self.decoding, self.measured(database, draws).astype(np.float64))))

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
    """max over d of sum_i (w_i - w_(i - d))^2, w_i = 0 for i < 0; d = D stands for columns that do not meet.

    Columns a and a + d differ by this sum over the first D - a rows, most for a = 0, so it is the maximum over all pairs of columns.
    """
    squares = np.cumsum(coefficients**2)
    alike = exact_product(coefficients, coefficients[::-1])[::-1]  # sum_i w_i w_(i + d), d = 0, 1, ...
    return int((squares[-1] + squares[::-1] - 2 * alike)[1:].max())
