"""One bit by the factorization mechanism: for all prefix sums, with sign patterns matched to the
workload; and for any workload, by public rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.cube import parity
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.randomizers.finite import OneBit
from local_dp.randomizers.frequencies.base import OfSymbols
from local_dp.tallies import Estimate, Tally

PATTERNS = 16  # more would gain 1 % and cost memory in proportion
MAX_K = 2048
# the power of the workload's spectrum that a pattern is drawn with: taking signs flattens it to
# about the ideal 1/2
SHAPE = 0.6
_FIXED_POINT = 1 << 20


def _twist(size: int) -> np.ndarray:
    """The factors with which a Fourier transform diagonalises the skew-circulant matrices m[x, y] =
    v[x - y], v[-j] = -v[size - j]."""
    return np.asarray(np.exp(-1j * np.pi * np.arange(size) / size))


def spectrum(rows: Floats) -> np.ndarray:
    """The eigenvalues of the skew-circulant matrices with these first columns, along the last
    axis."""
    return np.fft.fft(rows * _twist(rows.shape[-1]), axis=-1)


def from_spectrum(values: np.ndarray) -> Floats:
    """The inverse of `spectrum`, real part."""
    return np.real(np.fft.ifft(values, axis=-1) * _twist(values.shape[-1]).conj())


def _half_prefix(size: int) -> Floats:
    """The first column of the workload: a prefix sum less 1/2 is half of (the sum up to t less the
    sum above t)."""
    return np.full(size, 0.5)


@cache
def filter_weights(size: int) -> Floats:
    """The whole numbers a pattern's noise is convolved with: the workload's singular values to the
    power SHAPE, in fixed point. Shape (size,)."""
    return np.rint(from_spectrum(np.abs(spectrum(_half_prefix(size))) ** SHAPE) * _FIXED_POINT)


@cache
def patterns(size: int) -> np.ndarray:
    """The public sign patterns, int8 +1/-1, shape (PATTERNS, size): signs of filtered noise, in
    whole numbers, so that every machine has the same."""
    words = philox_words(stream_key("prefix-signs", size), 0, PATTERNS * size)
    # binomial, as good as normal
    noise = np.bitwise_count(words).astype(np.float64).reshape(PATTERNS, size) - 32
    weights = np.concatenate([-filter_weights(size), filter_weights(size)])
    lag = np.arange(size)[:, None] - np.arange(size)[None, :]
    # every sum is below 2^53, therefore exact
    return np.where(noise @ weights[size + lag].T >= 0, 1, -1).astype(np.int8)


@cache
def excess(size: int) -> float:
    """v, where C^2 v / n bounds the variance of a prefix sum: the mean over the spectrum of
    |workload|^2 / pattern power. At least gamma_2^2."""
    return float(np.mean(np.abs(spectrum(_half_prefix(size))) ** 2 / _power(size)))


@cache
def correlation(size: int) -> Floats:
    """Entry d is C^-2 n times the covariance that privacy noise gives two prefix sums d places
    apart; entry 0 is `excess`. Shape (size,)."""
    return from_spectrum(np.abs(spectrum(_half_prefix(size))) ** 2 / _power(size))


@cache
def _power(size: int) -> Floats:
    return np.asarray(
        (np.abs(spectrum(patterns(size).astype(np.float64))) ** 2).mean(axis=0) / size
    )


@dataclass(frozen=True, kw_only=True)
class PrefixSigns(OneBit, OfSymbols):
    """Reports one randomized sign of the client's place v in a public pattern, shifted by a public
    coin; estimates all k prefix sums Pr[value <= t].

    The patterns' spectrum follows the singular values of the prefix sums, so least squares comes
    near the factorization bound. Privacy: binary randomized response for every cell. Utility: each
    prefix sum has variance (C^2 v - (F - 1/2)^2) / n, v = `excess`: 1.05 to 1.13 times gamma_2^2 of
    the sums less 1/2 (`bounds.quantiles.prefix_gamma`), where one random query a client has C^2 k /
    4n. Cost: 1 bit; decoding O(k log k).
    """

    name = "prefix-signs"
    summary = "Reports one randomized sign about all prefix sums"
    source = (
        "factorization mechanism: Edmonds, Nikolov, Ullman 2020 (limits 8.5), with a spectral "
        "design"
    )
    estimates = "prefix sums"

    def check(self) -> None:
        super().check()
        if self.k > MAX_K:
            raise InputError(
                f"k is {self.k}; prefix sums go up to {MAX_K} values, so merge neighbouring ones"
            )

    @property
    def size(self) -> int:
        """The least power of two that is at least k."""
        return 1 << (self.k - 1).bit_length()

    @property
    def cells(self) -> int:
        return PATTERNS * self.size  # cell = size * pattern + shift

    def encode(self, values: Ints, cells: Ints) -> Words:
        pattern, shift = np.divmod(cells.astype(np.int64), self.size)
        negative = patterns(self.size) < 0
        return (negative[pattern, (values - shift) % self.size] ^ (values < shift)).view(np.uint8)

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """As in every finite channel, in time O(n + k cells) at most: cells are dealt out first,
        and bits flipped in the sum."""
        bits_by_cell = np.zeros((2, self.cells), dtype=np.int64)
        uniform = np.full(self.cells, 1 / self.cells)
        for value, count in value_counts.items():
            ones = self.encode(np.array(value), np.arange(self.cells)).view(np.bool_)
            few = count < self.cells
            clients = (
                np.bincount(generator.integers(self.cells, size=count), minlength=self.cells)
                if few
                else generator.multinomial(count, uniform)
            )
            bits_by_cell += np.stack([np.where(ones, 0, clients), np.where(ones, clients, 0)])
        flips = generator.binomial(bits_by_cell, self.flip / self.total)
        return Tally((bits_by_cell - flips + flips[::-1]).T)

    def truths(self, values: Ints) -> Floats:
        return np.cumsum(super().truths(values), axis=1)

    def variance(self, values: Ints, law: Floats) -> Floats:
        # the last one is certain
        noise = np.where(np.arange(self.k) == self.k - 1, 0.25, self.gain**2 * excess(self.size))
        return np.asarray(noise - (law @ self.truths(values) - 0.5) ** 2)

    def estimate(self, tally: Tally) -> Estimate:
        """The k prefix sums, unbiased and neither clipped nor made monotone, shape (k,); the last
        is 1 and certain."""
        n = tally.answered
        signs = (
            (tally.counts[:, 0] - tally.counts[:, 1])
            .astype(np.float64)
            .reshape(PATTERNS, self.size)
        )
        together = (spectrum(signs) * spectrum(patterns(self.size).astype(np.float64))).mean(axis=0)
        centred = (
            from_spectrum(
                spectrum(_half_prefix(self.size)) * together * PATTERNS / _power(self.size)
            )[: self.k]
            * self.gain
            / n
        )
        reach = self.gain * math.sqrt(excess(self.size))
        certain = np.arange(self.k) == self.k - 1
        ends = np.where(certain, 1.0, 0.5 - reach), np.where(certain, 1.0, 0.5 + reach)
        return Estimate.between(ends, np.where(certain, 1.0, centred + 0.5), n)


MAX_ENTRIES = 1 << 22  # of the rows


def rows_text(rows: np.ndarray) -> tuple[str, ...]:
    """Rows of signs, shape (rows, k), as a randomizer's parameter: each the hexadecimal form of its
    bits, 1 for a minus."""
    return tuple(row.tobytes().hex() for row in np.packbits(rows < 0, axis=1, bitorder="little"))


def sylvester(k: int) -> np.ndarray:
    """The first k columns of Sylvester's Hadamard matrix, int8 +1/-1, shape (the least power of two
    that is at least k, k)."""
    order = 1 << (k - 1).bit_length()
    places = np.arange(order, dtype=np.uint32)
    return 1 - 2 * parity(places[:, None] & places[None, :k]).astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class SignRows(OneBit, OfSymbols):
    """Reports the sign of the client's symbol in a public row that a public coin picks, randomized.

    `signs` is `rows_text` of a power of two of rows; empty, it is Sylvester's matrix. With S these
    rows, G = S^T S / rows and f the shares of the k symbols it estimates G f; `answers` estimates
    any W f in the span of the rows. Privacy: binary randomized response for every row. Utility:
    entry x of G f has variance (C^2 - (G f)_x^2) / n; a query w has (C^2 (w - c) G^+ (w - c)^T - (w
    f - c)^2) / n for the best constant c. Cost: 1 bit.
    """

    name = "sign-rows"
    summary = "Reports the sign of a symbol in a public row"
    source = (
        "factorization mechanism: Edmonds, Nikolov, Ullman 2020 (limits 8.5), on vertices of the "
        "cube"
    )
    work = "workloads"
    signs: tuple[str, ...] = ()

    def check(self) -> None:
        check_built(self.domain, self.table)
        if self.signs:
            object.__setattr__(self, "estimates", "what the rows show of the shares")

    @cached_property
    def table(self) -> np.ndarray:
        """The rows, int8 +1/-1, shape (cells, k)."""
        if not self.signs:
            return sylvester(self.k)
        width = -(-self.k // 8)
        if len(self.signs).bit_count() != 1 or len(self.signs) * self.k > MAX_ENTRIES:
            raise InputError(
                f"there are {len(self.signs)} rows of {self.k} signs; give a power of two of "
                f"them, {MAX_ENTRIES} signs at most"
            )
        try:
            rows = [bytes.fromhex(row) for row in self.signs]
        except (TypeError, ValueError):
            raise InputError("a row of signs is not made of hexadecimal digits") from None
        if any(len(row) != width for row in rows):
            raise InputError(f"a row of {self.k} signs has {2 * width} hexadecimal digits")
        bits = np.unpackbits(
            np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width),
            axis=1,
            count=self.k,
            bitorder="little",
        )
        return 1 - 2 * bits.astype(np.int8)

    @property
    def cells(self) -> int:
        return len(self.table)

    def encode(self, values: Ints, cells: Ints) -> Words:
        return (self.table[cells.astype(np.int64), values] < 0).view(np.uint8)

    def truths(self, values: Ints) -> Floats:
        signs = self.table.astype(np.float64)
        return np.asarray(signs[:, values].T @ signs / self.cells)

    def _mean(self, tally: Tally) -> Floats:
        """C S^T y / n, y the sum of the signs reported in each row: without bias G f, shape
        (k,)."""
        signed = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64)
        return np.asarray(self.gain * (signed @ self.table) / tally.answered)

    def estimate(self, tally: Tally) -> Estimate:
        """G f, unbiased, shape (k,)."""
        value = self._mean(tally)
        return Estimate.between((-self.gain, self.gain), value, tally.answered, least=-1.0)

    def answers(self, tally: Tally, queries: Floats, weights: Floats) -> Estimate:
        """W f for queries W (m, k) and `weights` R (m, k) with W = R G + c 1^T for some constants c
        (m,); unbiased, shape (m,)."""
        n, signs = tally.answered, self.table.astype(np.float64)
        products = weights @ signs.T
        totals = (queries - products @ signs / self.cells).mean(axis=1)
        reach = self.gain * np.sqrt((products**2).mean(axis=1))
        value = weights @ self._mean(tally) + totals
        # a value beyond is noise and must not make the error look small
        place = np.clip(value, queries.min(axis=1), queries.max(axis=1))
        error = np.sqrt(np.maximum(reach**2 - (place - totals) ** 2, 0.0) / n)
        return Estimate(value, error, n, (totals - reach, totals + reach))
