"""What clients are asked about masked-parity examples: single positions, single parities, whole lists of parities under a public coin (KLNRS Section 5)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.checks import check_dimension, check_vector
from local_dp.cube import bent_halves, parity, places_of
from local_dp.domains import Domain, levels, signed_symbols
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.queries.parity import _odd
from local_dp.records import Records

LATTICE = 64  # steps of [-1, 1] on which the 0/1 queries of the paper are released with Laplace noise


@dataclass(frozen=True)
class _Position(Query):
    """A query about position j of d."""

    d: int
    j: int

    def __post_init__(self) -> None:
        check_dimension(self.d)
        if type(self.j) is not int or not 0 <= self.j < self.d:
            raise InputError(f"j is {self.j!r}; give a whole number from 0 to {self.d - 1}")

    def asks(self, records: Records) -> Bools:
        """Whether the record is about position j."""
        asks: Bools = (records.whole("b") == 1) & (records.whole("i") == self.j)
        return asks


@dataclass(frozen=True)
class _Parity(Query):
    """A query about the parity of x with r."""

    d: int
    r: int

    def __post_init__(self) -> None:
        check_dimension(self.d)
        check_vector("r", self.r, self.d)

    def differs(self, records: Records) -> Words:
        """1 where y is not (-1)^<r, x>."""
        return parity(records.words("x") & np.uint64(self.r)) ^ _odd(records)


@dataclass(frozen=True)
class MaskedIndicator(_Position):
    """g_j of KLNRS Section 5.1: 1 if i = j, b = 1 and y = -1, else 0, on the lattice of [-1, 1]. Expectation r_j / (2 d)."""

    name: ClassVar[str] = "masked-indicator"

    @property
    def domain(self) -> Domain:
        return levels(LATTICE)

    def __call__(self, records: Records) -> Ints:
        values: Ints = LATTICE // 2 * (1 + (self.asks(records) & (records.whole("y") < 0)).astype(np.int64))
        return values


@dataclass(frozen=True)
class MaskedDisagreement(_Parity):
    """g_d of KLNRS Section 5.1: 1 if b = 0 and y differs from (-1)^<r, x>, else 0, on the lattice of [-1, 1]. Expectation a / 2 for the right r."""

    name: ClassVar[str] = "masked-disagreement"

    @property
    def domain(self) -> Domain:
        return levels(LATTICE)

    def __call__(self, records: Records) -> Ints:
        values: Ints = LATTICE // 2 * (1 + ((records.whole("b") == 0) & (self.differs(records) == 1)).astype(np.int64))
        return values


@dataclass(frozen=True)
class MaskedList(_Parity):
    """All of the masked example that matters to the parities r + s, s within the t set bits of `free`.

    Where b = 0: y (-1)^<r, x> with symbol x restricted to `free`; where b = 1: y with symbol 2^t + i. A public Hadamard row then asks for one
    of the 2^t parities and for one hashed bit of r at once (limits 3.2, P4; with r = 0 and every bit free, limits 3.3).
    """

    name: ClassVar[str] = "masked-list"
    free: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_vector("free", self.free, self.d)
        self.domain  # noqa: B018  # checks that the list is not too long

    @property
    def listed(self) -> int:
        """How many parities are on the list, 2^t."""
        return 1 << self.free.bit_count()

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.listed + self.d)

    def __call__(self, records: Records) -> Ints:
        x = records.words("x")
        symbol = np.zeros(len(records), dtype=np.uint64)
        for bit, place in enumerate(places_of(self.free)):
            symbol |= (x >> np.uint64(place) & np.uint64(1)) << np.uint64(bit)
        return _signed(records, symbol, self.differs(records), self.listed)


@dataclass(frozen=True)
class MaskedBent(Query):
    """One bent function in place of every parity: y (-1)^<u, v> where b = 0, u and v the two halves of x; y with symbol 2^t + i where b = 1.

    Its correlation with (-1)^<r, x> is +-2^(-d/2) for every r at once, so one query serves them all (limits 3.1, E4, and 3.3). Odd d leaves the last
    bit of x as the symbol (t = 1), even d leaves none (t = 0).
    """

    name: ClassVar[str] = "masked-bent"
    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d)

    @property
    def listed(self) -> int:
        """How many parities are asked of the bit that is left over, 2^t."""
        return 1 << self.d % 2

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.listed + self.d)

    def __call__(self, records: Records) -> Ints:
        half, low = bent_halves(self.d)
        x = records.words("x")
        bent = parity(x & np.uint64(low) & (x >> np.uint64(half)))
        symbol = x >> np.uint64(self.d - 1) if self.d % 2 else np.zeros(len(records), dtype=np.uint64)
        return _signed(records, symbol, bent ^ _odd(records), self.listed)


def _signed(records: Records, symbol: Words, differs: Words, listed: int) -> Ints:
    """Symbol `symbol` with sign - where `differs`, for b = 0; symbol `listed` + i with the label's sign, for b = 1."""
    masked = records.whole("b") == 0
    chosen = np.where(masked, symbol.astype(np.int64), listed + records.whole("i").astype(np.int64)) + 1
    values: Ints = np.where(np.where(masked, differs, _odd(records)) == 1, -chosen, chosen)
    return values


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
