"""Local hashing of very many symbols: a public coin picks a few random parities of the symbol's
bits; randomized response reports them."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import Domain, bit_strings
from local_dp.randomizers.frequencies.base import Supporting
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.local_hashing import primitive_taps
from local_dp.randomizers.places import WholeCoin
from local_dp.tallies import Estimate, Tally

COIN_BITS = 64
MAX_PARITIES = 10  # a report's support takes 2^10 steps of the server
_BLOCK = 1 << 15  # reports added at a time


def best_parities(epsilon: float, length: int) -> int:
    """The b of least variance for a rare symbol of `length` bits, (E + g - 1)^2 / (g - 1) at g =
    2^b; at most 10."""
    growth = math.exp(epsilon)
    return min(
        range(1, min(length, MAX_PARITIES) + 1),
        key=lambda b: (growth + (1 << b) - 1) ** 2 / ((1 << b) - 1),
    )


@dataclass(frozen=True, kw_only=True)
class WideHashing(WholeCoin, Supporting):
    """Reports b parities <row_i, v> of one of 2^length symbols v, for b rows of the public coin, by
    2^b-ary randomized response.

    The first 64 // length rows are independent; each later one is an earlier row times a primitive
    element of the field of 2^length. So every nonzero sum of rows is uniform over the coins, and
    two symbols have equal parities with probability 2^-b, exactly. A tally is one table: entry w
    adds (-1)^<c, report> for every nonzero choice c of rows with sum w. One Walsh-Hadamard
    transform of it counts each symbol's true reports. Privacy: 2^b-ary response whatever the coin.
    Utility: each frequency has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q), p = E / (E +
    2^b - 1), q = 2^-b, about 4 E / (E - 1)^2 / n for 2^b near E + 1
    (`bounds.frequencies.parities_variance`). b is the best number up to 10. Cost: b bits, one word;
    decoding O(2^b n + length 2^length). 1 <= length <= 22.
    """

    name = "wide-hashing"
    summary = "Reports a few parities of a very long symbol"
    source = (
        "Wang, Blocki, Li, Jha 2017 (local hashing); Bassily, Nissim, Stemmer, Thakurta 2017 (its "
        "transform)"
    )
    length: int = 1

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"length": (size - 1).bit_length()}

    @property
    def chances(self) -> tuple[float, float]:
        return self.inner.chances[0], 1 / self.inner.k

    @cached_property
    def inner(self) -> GRR:
        bit_strings(self.length)
        return GRR(
            self.epsilon, word_bits=self.word_bits, k=1 << best_parities(self.epsilon, self.length)
        )

    @property
    def parities(self) -> int:
        """b, the number of parities in a report."""
        return self.inner.k.bit_length() - 1

    @property
    def domain(self) -> Domain:
        return bit_strings(self.length)

    @cached_property
    def _taps(self) -> np.uint64:
        """The feedback of a shift register of `length` bits: a step multiplies in the field."""
        return np.uint64(sum(tap << i for i, tap in enumerate(primitive_taps(2, self.length))))

    def _rows(self, coins: Words) -> list[Words]:
        """The rows of each coin: its first bits, the next ones, and so on; then their successors in
        the shift register."""
        bits, one, mask = self.length, np.uint64(1), np.uint64((1 << self.length) - 1)
        first = range(min(self.parities, COIN_BITS // bits))
        rows: list[Words] = [coins >> np.uint64(place * bits) & mask for place in first]
        for place in range(self.parities - len(rows)):
            row = rows[place]
            rows.append(row >> one | (parity(row & self._taps) * one) << np.uint64(bits - 1))
        return rows

    def encode(self, values: Ints, coins: Words) -> Ints:
        symbols = values.astype(np.uint64)
        code = np.zeros(np.broadcast(values, coins).shape, dtype=np.uint16)
        for place, row in enumerate(self._rows(coins)):
            code |= parity(row & symbols).astype(np.uint16) << np.uint16(place)
        return code

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The table of signs, shape (2^length,). O(2^b n + 2^length)."""
        table = np.zeros(1 << self.length, dtype=np.int64)
        for first in range(0, len(reports), _BLOCK):
            codes = reports[first : first + _BLOCK].astype(np.int64)
            rows = self._rows(cells[first : first + _BLOCK])
            steps = [(row.view(np.int64), 1 - 2 * (codes >> i & 1)) for i, row in enumerate(rows)]
            where, signs = np.zeros_like(codes), np.ones_like(codes)
            for choice in range(1, self.inner.k):  # in Gray's order: one row comes or goes
                row, odd = steps[(choice & -choice).bit_length() - 1]
                where ^= row
                signs *= odd
                np.add.at(table, where, signs)
        return Tally(table, len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        n, (p, q) = tally.answered, self.chances
        shares = walsh_hadamard(tally.counts)
        shares += n
        shares /= n * self.inner.k
        shares -= q
        shares /= p - q
        return Estimate.between(self.ends, shares, n)
