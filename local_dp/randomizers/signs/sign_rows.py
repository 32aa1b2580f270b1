"""One bit for any workload: the sign of the client's symbol in a public row, the local part of the factorization mechanism."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.cube import parity
from local_dp.errors import InputError
from local_dp.randomizers.frequencies.base import OfSymbols
from local_dp.randomizers.one_bit import OneBit
from local_dp.randomizers.randomizer import Work
from local_dp.tallies import Estimate, Tally

MAX_ENTRIES = 1 << 22  # of the rows


def rows_text(rows: np.ndarray) -> tuple[str, ...]:
    """Rows of signs, shape (rows, k), as a randomizer's parameter: each the hexadecimal form of its bits, 1 for a minus."""
    return tuple(row.tobytes().hex() for row in np.packbits(rows < 0, axis=1, bitorder="little"))


def sylvester(k: int) -> np.ndarray:
    """The first k columns of Sylvester's Hadamard matrix, int8 +1/-1, shape (the least power of two that is at least k, k)."""
    order = 1 << (k - 1).bit_length()
    places = np.arange(order, dtype=np.uint32)
    return 1 - 2 * parity(places[:, None] & places[None, :k]).astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class SignRows(OneBit, OfSymbols):
    """Reports the sign of the client's symbol in a public row that a public coin picks, randomized.

    `signs` is `rows_text` of a power of two of rows; empty, it is Sylvester's matrix. With S these rows, G = S^T S / rows and f the shares of the k symbols
    it estimates G f; `answers` estimates any W f in the span of the rows. Privacy: binary randomized response for every row. Utility: entry x of G f has
    variance (C^2 - (G f)_x^2) / n; a query w has (C^2 (w - c) G^+ (w - c)^T - (w f - c)^2) / n for the best constant c. Cost: 1 bit.
    """

    name: ClassVar[str] = "sign-rows"
    source: ClassVar[str] = "factorization mechanism: Edmonds, Nikolov, Ullman 2020 (limits 8.5), on vertices of the cube"
    work: ClassVar[Work] = "workloads"
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
            raise InputError(f"there are {len(self.signs)} rows of {self.k} signs; give a power of two of them, {MAX_ENTRIES} signs at most")
        try:
            packed = [bytes.fromhex(row) for row in self.signs]
        except (TypeError, ValueError):
            raise InputError("a row of signs is not made of hexadecimal digits") from None
        if any(len(row) != width for row in packed):
            raise InputError(f"a row of {self.k} signs has {2 * width} hexadecimal digits")
        bits = np.unpackbits(np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(-1, width), axis=1, count=self.k, bitorder="little")
        return 1 - 2 * bits.astype(np.int8)

    @property
    def cells(self) -> int:
        return len(self.table)

    def encode(self, values: Ints, cells: Ints) -> Words:
        return (self.table[cells.astype(np.int64), values] < 0).view(np.uint8)

    def _seen(self, tally: Tally) -> Floats:
        """C S^T y / n, y the sum of the signs reported in each row: without bias G f, shape (k,)."""
        signed = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64)
        return np.asarray(self.gain * (signed @ self.table) / tally.answered)

    def estimate(self, tally: Tally) -> Estimate:
        """G f, unbiased, shape (k,)."""
        value = self._seen(tally)
        return Estimate.between((-self.gain, self.gain), value, tally.answered, least=-1.0)

    def answers(self, tally: Tally, queries: Floats, weights: Floats) -> Estimate:
        """W f for queries W (m, k) and `weights` R (m, k) with W = R G + c 1^T for some constants c (m,); unbiased, shape (m,)."""
        n, signs = tally.answered, self.table.astype(np.float64)
        reached = weights @ signs.T
        totals = (queries - reached @ signs / self.cells).mean(axis=1)
        reach = self.gain * np.sqrt((reached**2).mean(axis=1))
        value = weights @ self._seen(tally) + totals
        place = np.clip(value, queries.min(axis=1), queries.max(axis=1))  # a value beyond is noise and must not make the error look small
        error = np.sqrt(np.maximum(reach**2 - (place - totals) ** 2, 0.0) / n)
        return Estimate(value, error, n, (totals - reach, totals + reach))
