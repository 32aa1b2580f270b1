"""Hadamard randomizers: an entry of a Hadamard matrix in a public row, one bit; or a block of
symbols and a row, private or public."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import OneBit
from local_dp.randomizers.frequencies.base import (
    FiniteOracle,
    OfSymbols,
    SignOracle,
    TwoWeights,
    joint_of_reports,
)
from local_dp.randomizers.frequencies.local_hashing import EncodedGRR
from local_dp.randomizers.frequencies.signed import SignedOracle
from local_dp.tallies import Estimate, Joint, Steadied, Tally, steadied


def _rows(k: int) -> int:
    """The number of rows: the least power of two that is at least k."""
    return 1 << max(0, k - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Hadamard(OneBit, SignOracle, OfSymbols):
    """Reports one randomized entry H[l, v] of the client's symbol v in the public row l.

    Privacy: binary randomized response for every row. Utility: each frequency has variance (C^2 -
    f^2) / n, whatever k (limits 2). Cost: 1 bit; decoding O(n
    + K log K), K the least power of two from k on.
    """

    name = "hadamard"
    summary = "Reports one randomized bit of a symbol in a Hadamard row"
    source = "Bassily, Smith 2015; Acharya, Sun, Zhang 2019 (one bit, public coin)"

    @property
    def cells(self) -> int:
        return _rows(self.k)

    def encode(self, values: Ints, cells: Ints) -> Words:
        return parity(cells.astype(np.uint16, copy=False) & values.astype(np.uint16))


@dataclass(frozen=True, kw_only=True)
class SignedHadamard(OneBit, SignedOracle):
    """One-bit Hadamard for a signed symbol or nothing: the client randomizes sign * H[l, j], or a
    public coin u if it has no symbol.

    Estimates the k means E[sign 1(symbol = j)]. Privacy: binary randomized response for every (l,
    u). Utility: variance (C^2 - nu^2 - m^2) / n for the control weight nu = Pr[null] (limits 3.2,
    P2, the public-coin variant). Cost: 1 bit.
    """

    name = "signed-hadamard"
    summary = "Reports one bit of a signed symbol, or of none"
    source = "one-round hashing of KLNRS 2008, Section 5.1 (masked parity)"

    @property
    def cells(self) -> int:
        return 2 * _rows(self.k)  # cell = 2 * row + coin

    def encode(self, values: Ints, cells: Ints) -> Words:
        symbol = (np.abs(values.astype(np.int64)) - 1).astype(np.uint32)
        cell = cells.astype(np.uint32)
        entry = parity((cell >> np.uint32(1)) & symbol) ^ (values < 0).astype(np.uint8)
        return np.where(values == 0, (cell & np.uint32(1)).astype(np.uint8), entry)

    def estimate(self, tally: Tally, null_share: float = 0.0) -> Estimate:
        """The k signed means, unbiased for every fixed `null_share`, and of least variance at the
        true share of clients without a symbol."""
        n = tally.answered
        cells = tally.counts.reshape(-1, 2, 2)  # row, coin, report
        signs = cells[:, :, 0] - cells[:, :, 1]
        coins = cells[:, 0, :].sum(axis=1) - cells[:, 1, :].sum(axis=1)
        rows = self.gain * signs.sum(axis=1) - null_share * coins
        mean = walsh_hadamard(rows)[: self.k] / n
        reach = math.sqrt(self.gain**2 - null_share**2)
        return Estimate.between((-reach, reach), mean, n, least=-1.0)

    def mixture(self, present: Floats, lean: Floats) -> Floats:
        means = np.zeros((_rows(self.k), *lean.shape[1:]))
        means[: self.k] = lean
        hashed, null = walsh_hadamard(means), 1 - present.sum(axis=0)
        leans = (
            np.stack([hashed + null, hashed - null], axis=1).reshape(self.cells, *lean.shape[1:])
            / self.gain
        )
        return np.stack([1 + leans, 1 - leans], axis=1) / 2


@dataclass(frozen=True)
class Blocks:
    """Where each of k symbols is: in one of B blocks, at a column of a Hadamard matrix with `rows`
    rows, columns counted from `first`."""

    k: int
    blocks: int
    first: int

    @cached_property
    def rows(self) -> int:
        """The least power of two that gives every symbol a column."""
        columns = -(-self.k // self.blocks) + self.first
        return 1 << (columns - 1).bit_length()

    def place(self, values: Ints) -> tuple[Ints, Ints]:
        """Block and column of each value."""
        block, column = np.divmod(values, self.rows - self.first)
        return block, column + self.first


@dataclass(frozen=True)
class BlockedHadamard(FiniteOracle, OfSymbols):
    """Estimates each frequency by a gain times the sign, at the symbol's column, of the reported
    row, for reports of the symbol's block; by 0 for others.

    Utility: n times the variance of a frequency f is gain^2 times the share of reports of its
    block, less f^2.
    """

    @cached_property
    @abstractmethod
    def layout(self) -> Blocks:
        """The blocks; checks the parameters."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """The inverse of the mean sign in the client's column."""

    @abstractmethod
    def _by_row(self, counts: Counts) -> tuple[Counts, Counts]:
        """Sums of signs and numbers of reports, by row and block: shape (..., cells, alphabet) to
        (..., rows, B) each."""

    @abstractmethod
    def _per_report(self, sums: Floats) -> Floats:
        """The value of each report in sums by row and block: shape (m, rows, B) to (m, cells,
        alphabet)."""

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        block, column = self.layout.place(np.arange(self.k))
        return column, block

    def values(self, counts: Counts) -> Floats:
        signs, numbers = self._by_row(counts)
        sums = np.moveaxis(walsh_hadamard(np.moveaxis(signs, -2, 0).astype(np.float64)), 0, -2)
        return np.asarray(
            self.gain * sums[..., *self._places] / numbers.sum(axis=(-2, -1))[..., None]
        )

    def estimate(self, tally: Tally) -> Estimate:
        n, (_, numbers) = tally.answered, self._by_row(tally.counts)
        reach = self.gain * np.sqrt(numbers.sum(axis=0) / n)[self._places[1]]
        shares = Estimate.between((-reach, reach), self.values(tally.counts), n)
        return Steadied(
            shares.value,
            shares.standard_error,
            n,
            shares.ends,
            steady=steadied(shares.value, reach**2, (-self.gain, self.gain), n),
        )

    def variance(self, values: Ints, law: Floats) -> Floats:
        """By the share f of a symbol and F of its block: gain ((gain - 1) / B + F) - f^2."""
        share, block = law @ self.truths(values), self._places[1]
        mass = share @ (block[:, None] == block)
        return np.asarray(self.gain * ((self.gain - 1) / self.layout.blocks + mass) - share**2)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        spread = np.zeros((self.layout.rows, self.layout.blocks, len(weights)))
        spread[self._places] = weights.T
        return joint_of_reports(
            tally, self._per_report(self.gain * np.moveaxis(walsh_hadamard(spread), -1, 0))
        )


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(TwoWeights, BlockedHadamard):
    """Reports a block and a row: e^eps times as likely one of the client's block with Hadamard
    entry +1 at its column as any other.

    Privacy: T / s <= e^eps. Utility: n times the variance is (E + 2 B - 1) (2 + F (E - 1)) / (E -
    1)^2 - f^2, E = e^eps, for a symbol of share f in a block of share F, at most (E + 2 B - 1) (E +
    1) / (E - 1)^2. B is the power of two of least total variance at the uniform law. Cost: log2 k +
    1 bits or a little more, one word; decoding O(n + K log K). 2 <= k <= 4096.
    """

    name = "hadamard-response"
    summary = "Reports a block and a Hadamard row of a symbol"
    source = "Acharya, Sun, Zhang 2019"

    @cached_property
    def layout(self) -> Blocks:
        return Blocks(symbols(self.k).size, best_blocks(self.nano, self.k), 1)

    @property
    def alphabet(self) -> int:
        return self.layout.blocks * self.layout.rows

    @property
    def w(self) -> int:
        return self.layout.rows // 2

    @property
    def gain(self) -> float:
        return self.total / (self.w * (self.held - self.other))

    def report(self, values: Ints, ranks: Ints) -> Ints:
        own, column = self.layout.place(values)
        # the lowest set bit makes the parity what it should be
        pivot = np.bitwise_count(~column & (column - 1)).astype(np.int64)
        free, rows = ranks % self.w, self.layout.rows
        row = (free >> pivot << (pivot + 1)) | (free & ((1 << pivot) - 1))
        row |= (odd(row & column) ^ (ranks >= self.w)) << pivot
        block, far = np.divmod(np.maximum(ranks - rows, 0), rows)
        ours = ranks < rows
        return np.where(ours, own, block + (block >= own)) * rows + np.where(ours, row, far)

    def rank(self, values: Ints, reports: Ints) -> Ints:
        own, column = self.layout.place(values)
        block, row = np.divmod(reports, self.layout.rows)
        pivot = np.bitwise_count(~column & (column - 1)).astype(np.int64)
        free = (row >> (pivot + 1) << pivot) | (row & ((1 << pivot) - 1))
        inside = free + self.w * odd(row & column)
        return np.where(block == own, inside, self.layout.rows * (1 + block - (block > own)) + row)

    def _by_row(self, counts: Counts) -> tuple[Counts, Counts]:
        numbers = np.moveaxis(
            counts.reshape(*counts.shape[:-2], self.layout.blocks, self.layout.rows), -1, -2
        )
        return numbers, numbers

    def _per_report(self, sums: Floats) -> Floats:
        return np.moveaxis(sums, -1, -2).reshape(len(sums), 1, self.alphabet)


@dataclass(frozen=True, kw_only=True)
class RecursiveHadamard(EncodedGRR, BlockedHadamard):
    """Reports in b bits the client's block of 2^(b - 1) and the entry of a public Hadamard row at
    its column, by 2^b-ary randomized response.

    b = 0 picks the b of least total variance at the uniform law; b = 1 is one-bit Hadamard.
    Privacy: 2^b-ary response in every row. Utility: the variance of `HadamardResponse` with 2 B =
    2^b. Cost: b bits, one word; decoding O(n + k log k). 2 <= k <= 4096; 2^(b - 1) <= k.
    """

    name = "recursive-hadamard"
    summary = "Reports a symbol's block and its Hadamard entry in few bits"
    source = "Chen, Kairouz, Ozgur 2020"
    b: int = 0

    @cached_property
    def layout(self) -> Blocks:
        k = symbols(self.k).size
        if type(self.b) is not int or not 0 <= self.b <= k.bit_length():
            raise InputError(
                f"b is {self.b!r}; give 1 to {k.bit_length()} bits for {k} symbols, or 0 for the "
                "best number"
            )
        return Blocks(k, 1 << (self.b - 1) if self.b else best_blocks(self.nano, k), 0)

    @property
    def alphabet(self) -> int:
        return 2 * self.layout.blocks

    @property
    def cells(self) -> int:
        return self.layout.rows

    @property
    def gain(self) -> float:
        return self.inner.total / (self.inner.truth - self.inner.other)

    def encode(self, values: Ints, coins: Ints) -> Ints:
        block, column = self.layout.place(values.astype(np.uint16))
        return np.uint16(2) * block + odd(coins.astype(np.uint16) & column)

    def _by_row(self, counts: Counts) -> tuple[Counts, Counts]:
        pairs = counts.reshape(*counts.shape[:-1], self.layout.blocks, 2)
        return pairs[..., 0] - pairs[..., 1], pairs.sum(axis=-1)

    def _per_report(self, sums: Floats) -> Floats:
        return np.stack([sums, -sums], axis=-1).reshape(len(sums), self.cells, self.alphabet)


def odd(numbers: Ints) -> Ints:
    """The parity of the set bits of whole numbers from 0 on."""
    return np.bitwise_count(numbers).astype(np.int64) & 1


@lru_cache(maxsize=1024)
def best_blocks(nano: int, k: int) -> int:
    """The power of two B <= k of least total variance at the uniform law: k (E + 2 B - 1) (2 + (E -
    1) / B) / (E - 1)^2 - 1 / k."""
    less = Fraction(float(exp_epsilon(nano))) - 1
    return min(
        (1 << power for power in range(k.bit_length())),
        key=lambda blocks: (less + 2 * blocks) * (2 + less / blocks),
    )
