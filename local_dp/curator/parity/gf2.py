"""Linear algebra over GF(2), bit-packed: 64 unknowns to a word."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.errors import InputError


def width(d: int) -> int:
    """The 64-bit words of a row of d bits."""
    return -(-d // 64)


def pack(bits: Ints) -> Words:
    """Rows of 0/1 entries, shape (..., d), as words, shape (..., width(d)): bit j of a row is bit j
    % 64 of word j // 64."""
    d = bits.shape[-1]
    octets = np.packbits(np.asarray(bits, dtype=np.uint8), axis=-1, bitorder="little")
    words = np.zeros((*bits.shape[:-1], 8 * width(d)), dtype=np.uint8)
    words[..., : octets.shape[-1]] = octets
    return words.view("<u8")


def unpack(rows: Words, d: int) -> Ints:
    """The inverse of `pack`, uint8."""
    octets = np.ascontiguousarray(rows, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=d, bitorder="little")


def mask(row: Words) -> int:
    """One packed row, shape (width,), as a whole number: bit j is its entry j."""
    return int.from_bytes(row.astype("<u8").tobytes(), "little")


def products(rows: Words, vector: Words) -> Words:
    """<row, vector> mod 2 for each row, uint8, shape (m,)."""
    return np.asarray(np.bitwise_count(np.bitwise_xor.reduce(rows & vector, axis=-1)) & np.uint8(1))


@dataclass(frozen=True)
class Solutions:
    """The 2^(d - rank) solutions of a consistent system in d unknowns: reduced rows, their
    right-hand sides and their pivot columns."""

    d: int
    rows: Words  # (rank, width)
    sides: Words  # (rank,)
    pivots: Ints  # (rank,)

    @property
    def dimension(self) -> int:
        return self.d - len(self.pivots)

    def pick(self, coins: Words) -> Words:
        """One solution, shape (width,): the coins, shape (width,), fill the free unknowns, so
        uniform coins give a uniform solution."""
        bits = unpack(coins, self.d)
        bits[self.pivots] = 0
        bits[self.pivots] = products(self.rows, pack(bits)) ^ self.sides
        return pack(bits)


def solve(rows: Words, sides: Ints, d: int) -> Solutions | None:
    """All r with <row, r> = side for every row; None if there is none.

    rows: (m, width(d)), bits beyond d zero; sides: (m,) of 0/1. Gauss-Jordan elimination: O(m d^2 /
    128) word operations. Raises InputError where the shapes disagree.
    """
    shape = (len(sides), width(d))
    if d < 1 or rows.shape != shape:
        raise InputError(
            f"{len(sides)} equations in {d} unknowns need rows of shape {shape}, not {rows.shape}"
        )
    system = np.column_stack([rows, np.asarray(sides, dtype=np.uint64)])
    unused = np.ones(len(system), dtype=np.bool_)
    order, columns = list[int](), list[int]()
    for column in range(d):
        word, bit = divmod(column, 64)
        ones = system[:, word] & np.uint64(1 << bit) > 0
        candidates = np.flatnonzero(ones & unused)
        if len(candidates):
            pivot = int(candidates[0])
            ones[pivot] = unused[pivot] = False
            system[ones] ^= system[pivot]
            order.append(pivot)
            columns.append(column)
    if np.any(system[unused, -1]):
        return None
    pivots = np.array(columns, dtype=np.int64)
    return Solutions(d, system[order, :-1], system[order, -1].astype(np.uint8), pivots)
