"""One-bit Hadamard randomizers: a public coin picks a row of a Hadamard matrix, and the client reports its randomized entry."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import Domain, signed_symbols
from local_dp.randomizers.frequencies.base import OfSymbols, SignOracle
from local_dp.randomizers.frequencies.signed import SignedOracle
from local_dp.randomizers.one_bit import OneBit
from local_dp.tallies import Estimate, Tally


def _rows(k: int) -> int:
    """The number of rows: the least power of two that is at least k."""
    return 1 << max(0, k - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Hadamard(OneBit, SignOracle, OfSymbols):
    """Reports one randomized entry H[l, v] of the client's symbol v in the public row l.

    Privacy: binary randomized response for every row. Utility: each frequency has variance (C^2 - f^2) / n, whatever k (limits 2). Cost: 1 bit; decoding O(n
    + K log K), K the least power of two from k on.
    """

    name: ClassVar[str] = "hadamard"
    source: ClassVar[str] = "Bassily, Smith 2015; Acharya, Sun, Zhang 2019 (one bit, public coin)"

    @property
    def cells(self) -> int:
        return _rows(self.k)

    def encode(self, values: Ints, cells: Ints) -> Words:
        return parity(cells.astype(np.uint16, copy=False) & values.astype(np.uint16))


@dataclass(frozen=True, kw_only=True)
class SignedHadamard(OneBit, SignedOracle):
    """One-bit Hadamard for a signed symbol or nothing: the client randomizes sign * H[l, j], or a public coin u if it has no symbol.

    Estimates the k means E[sign 1(symbol = j)]. Privacy: binary randomized response for every (l, u). Utility: variance (C^2 - nu^2 - m^2) / n for the
    control weight nu = Pr[null] (limits 3.2, P2, the public-coin variant). Cost: 1 bit.
    """

    name: ClassVar[str] = "signed-hadamard"
    source: ClassVar[str] = "one-round hashing of KLNRS 2008, Section 5.1 (masked parity)"
    k: int = 1

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.k)

    @property
    def cells(self) -> int:
        return 2 * _rows(self.k)  # cell = 2 * row + coin

    def encode(self, values: Ints, cells: Ints) -> Words:
        symbol = (np.abs(values.astype(np.int64)) - 1).astype(np.uint32)
        cell = cells.astype(np.uint32)
        entry = parity((cell >> np.uint32(1)) & symbol) ^ (values < 0).astype(np.uint8)
        return np.where(values == 0, (cell & np.uint32(1)).astype(np.uint8), entry)

    def estimate(self, tally: Tally, null_share: float = 0.0) -> Estimate:
        """The k signed means, unbiased for every fixed `null_share`, and of least variance at the true share of clients without a symbol."""
        n = tally.answered
        cells = tally.counts.reshape(-1, 2, 2)  # row, coin, report
        reported = cells[:, :, 0] - cells[:, :, 1]
        coins = cells[:, 0, :].sum(axis=1) - cells[:, 1, :].sum(axis=1)
        rows = self.gain * reported.sum(axis=1) - null_share * coins
        mean = walsh_hadamard(rows)[: self.k] / n
        reach = math.sqrt(self.gain**2 - null_share**2)
        return Estimate.between((-reach, reach), mean, n, least=-1.0)

    def mixture(self, present: Floats, lean: Floats) -> Floats:
        filled = np.zeros((_rows(self.k), *lean.shape[1:]))
        filled[: self.k] = lean
        hashed, null = walsh_hadamard(filled), 1 - present.sum(axis=0)
        leans = np.stack([hashed + null, hashed - null], axis=1).reshape(self.cells, *lean.shape[1:]) / self.gain
        return np.stack([1 + leans, 1 - leans], axis=1) / 2
