"""Rows of many bits, 64 to a word, and the query for one of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.checks import check_whole
from local_dp.domains import Domain, symbols
from local_dp.queries.query import Query
from local_dp.records import Records

WORD = 64
MOST = 1 << 24  # bits to a row


def packed(bits: Bools) -> Records:
    """The table of rows of d bits, shape (n, d), as columns w0, w1, ...: bit j is bit j mod 64 of word j // 64."""
    n, d = bits.shape
    filled = np.zeros((n, -(-d // WORD) * WORD), dtype=np.bool_)
    filled[:, :d] = bits
    words = np.packbits(filled, axis=1, bitorder="little").view("<u8")
    return Records({f"w{number}": words[:, number].copy() for number in range(words.shape[1])})


@dataclass(frozen=True)
class Bit(Query):
    """Bit `number` of a packed row."""

    name: ClassVar[str] = "bit"
    number: int

    def __post_init__(self) -> None:
        check_whole("the bit's number", self.number, 0, MOST - 1)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> Ints:
        word, place = divmod(self.number, WORD)
        bits: Ints = (records.words(f"w{word}") >> np.uint64(place) & np.uint64(1)).astype(np.uint8)
        return bits
