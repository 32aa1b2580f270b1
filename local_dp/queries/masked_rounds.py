"""The two rounds of masked parity as a client is asked them (KLNRS Section 5.1)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.errors import InputError
from local_dp.queries.base import Query, check_dimension
from local_dp.randomizers.base import Domain, signed_symbols
from local_dp.randomizers.one_bit import parity
from local_dp.records import Records


@dataclass(frozen=True)
class MaskedIndex(Query):
    """Round one of masked parity: y at position i where b = 1 (the label is (-1)^(r_i)), null where b = 0. KLNRS Section 5.1."""

    name: ClassVar[str] = "masked-index"
    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d)

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.d)

    def __call__(self, records: Records) -> Ints:
        signed = (records.whole("i").astype(np.int64) + 1) * records.whole("y").astype(np.int64, copy=False)
        values: Ints = np.where(records.whole("b") == 1, signed, 0)
        return values


@dataclass(frozen=True)
class MaskedParity(Query):
    """Round two of masked parity: y * (-1)^<r, x> where b = 0 (equal to (-1)^a when r is right), null where b = 1. KLNRS Section 5.1."""

    name: ClassVar[str] = "masked-parity"
    d: int
    r: int

    def __post_init__(self) -> None:
        check_dimension(self.d)
        if type(self.r) is not int or not 0 <= self.r < 1 << self.d:
            raise InputError(f"r is {self.r!r}; give a whole number from 0 to 2^{self.d} - 1")

    @property
    def domain(self) -> Domain:
        return signed_symbols(1)

    def __call__(self, records: Records) -> Ints:
        odd = parity(records.words("x") & np.uint64(self.r)).astype(np.int8)  # signed, or 1 - 2 * odd would wrap
        values: Ints = np.where(records.whole("b") == 0, (1 - 2 * odd) * records.whole("y").astype(np.int64, copy=False), 0)
        return values


ROUND_QUERIES: tuple[type[Query], ...] = (MaskedIndex, MaskedParity)
