"""One bit for all prefix sums: a factorization mechanism with sign patterns matched to the workload."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.randomizers.frequencies.base import OfSymbols
from local_dp.randomizers.one_bit import OneBit
from local_dp.tallies import Estimate, Tally

PATTERNS = 16  # more would gain 1 % and cost memory in proportion
MAX_K = 2048
SHAPE = 0.6  # the power of the workload's spectrum that a pattern is drawn with: taking signs flattens it to about the ideal 1/2
_FIXED_POINT = 1 << 20


def _twist(size: int) -> np.ndarray:
    """The factors with which a Fourier transform diagonalises the skew-circulant matrices m[x, y] = v[x - y], v[-j] = -v[size - j]."""
    return np.asarray(np.exp(-1j * np.pi * np.arange(size) / size))


def spectrum(rows: Floats) -> np.ndarray:
    """The eigenvalues of the skew-circulant matrices with these first columns, along the last axis."""
    return np.fft.fft(rows * _twist(rows.shape[-1]), axis=-1)


def from_spectrum(values: np.ndarray) -> Floats:
    """The inverse of `spectrum`, real part."""
    return np.real(np.fft.ifft(values, axis=-1) * _twist(values.shape[-1]).conj())


def _half_prefix(size: int) -> Floats:
    """The first column of the workload: a prefix sum less 1/2 is half of (the sum up to t less the sum above t)."""
    return np.full(size, 0.5)


@cache
def filter_weights(size: int) -> Floats:
    """The whole numbers a pattern's noise is convolved with: the workload's singular values to the power SHAPE, in fixed point. Shape (size,)."""
    return np.rint(from_spectrum(np.abs(spectrum(_half_prefix(size))) ** SHAPE) * _FIXED_POINT)


@cache
def patterns(size: int) -> np.ndarray:
    """The public sign patterns, int8 +1/-1, shape (PATTERNS, size): signs of filtered noise, in whole numbers, so that every machine has the same."""
    words = philox_words(stream_key("prefix-signs", size), 0, PATTERNS * size)
    noise = np.bitwise_count(words).astype(np.float64).reshape(PATTERNS, size) - 32  # binomial, as good as normal
    weights = np.concatenate([-filter_weights(size), filter_weights(size)])
    lag = np.arange(size)[:, None] - np.arange(size)[None, :]
    return np.where(noise @ weights[size + lag].T >= 0, 1, -1).astype(np.int8)  # every sum is below 2^53, therefore exact


@cache
def excess(size: int) -> float:
    """v, where C^2 v / n bounds the variance of a prefix sum: the mean over the spectrum of |workload|^2 / pattern power. At least gamma_2^2."""
    return float(np.mean(np.abs(spectrum(_half_prefix(size))) ** 2 / _power(size)))


@cache
def correlation(size: int) -> Floats:
    """Entry d is C^-2 n times the covariance that privacy noise gives two prefix sums d places apart; entry 0 is `excess`. Shape (size,)."""
    return from_spectrum(np.abs(spectrum(_half_prefix(size))) ** 2 / _power(size))


@cache
def _power(size: int) -> Floats:
    return np.asarray((np.abs(spectrum(patterns(size).astype(np.float64))) ** 2).mean(axis=0) / size)


@dataclass(frozen=True, kw_only=True)
class PrefixSigns(OneBit, OfSymbols):
    """Reports one randomized sign of the client's place v in a public pattern, shifted by a public coin; estimates all k prefix sums Pr[value <= t].

    The patterns' spectrum follows the singular values of the prefix sums, so least squares comes near the factorization bound. Privacy: binary randomized
    response for every cell. Utility: each prefix sum has variance (C^2 v - (F - 1/2)^2) / n, v = `excess`: 1.05 to 1.13 times gamma_2^2 of the sums less 1/2
    (`bounds.prefixes.prefix_gamma`), where one random query a client has C^2 k / 4n. Cost: 1 bit; decoding O(k log k).
    """

    name: ClassVar[str] = "prefix-signs"
    source: ClassVar[str] = "factorization mechanism: Edmonds, Nikolov, Ullman 2020 (limits 8.5), with a spectral design"
    estimates: ClassVar[str] = "prefix sums"

    def check(self) -> None:
        super().check()
        if self.k > MAX_K:
            raise InputError(f"k is {self.k}; prefix sums go up to {MAX_K} values, so merge neighbouring ones")

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
        """As in every finite channel, in time O(n + k cells) at most: cells are dealt out first, and bits flipped in the sum."""
        bits_by_cell, uniform = np.zeros((2, self.cells), dtype=np.int64), np.full(self.cells, 1 / self.cells)
        for value, count in value_counts.items():
            ones = self.encode(np.array(value), np.arange(self.cells)).view(np.bool_)
            few = count < self.cells
            dealt = np.bincount(generator.integers(self.cells, size=count), minlength=self.cells) if few else generator.multinomial(count, uniform)
            bits_by_cell += np.stack([np.where(ones, 0, dealt), np.where(ones, dealt, 0)])
        flipped = generator.binomial(bits_by_cell, self.flip / self.total)
        return Tally((bits_by_cell - flipped + flipped[::-1]).T)

    def estimate(self, tally: Tally) -> Estimate:
        """The k prefix sums, unbiased and neither clipped nor made monotone, shape (k,); the last is 1 and certain."""
        n = tally.answered
        signs = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64).reshape(PATTERNS, self.size)
        together = (spectrum(signs) * spectrum(patterns(self.size).astype(np.float64))).mean(axis=0)
        centred = from_spectrum(spectrum(_half_prefix(self.size)) * together * PATTERNS / _power(self.size))[: self.k] * self.gain / n
        reach = self.gain * math.sqrt(excess(self.size))
        certain = np.arange(self.k) == self.k - 1
        ends = np.where(certain, 1.0, 0.5 - reach), np.where(certain, 1.0, 0.5 + reach)
        return Estimate.between(ends, np.where(certain, 1.0, centred + 0.5), n)
