"""The queries of the parity learners: single positions, single parities, and whole lists of parities under a public coin (KLNRS Section 5)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.errors import InputError
from local_dp.queries.base import Query, check_dimension
from local_dp.randomizers.base import Domain, levels, signed_symbols
from local_dp.randomizers.characters import examples
from local_dp.randomizers.one_bit import parity
from local_dp.records import Records

LATTICE = 64  # steps of [-1, 1] on which the 0/1 queries of the paper are released with Laplace noise


def check_vector(name: str, value: int, d: int) -> None:
    """Raises InputError unless `value` is d bits."""
    if type(value) is not int or not 0 <= value < 1 << d:
        raise InputError(f"{name} is {value!r}; give a whole number from 0 to 2^{d} - 1")


def places_of(bits: int) -> tuple[int, ...]:
    """The positions of the set bits, ascending."""
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)


def bent_halves(d: int) -> tuple[int, int]:
    """The half width m and the low-half mask 2^m - 1 of the bent function's variables: the first 2 m = 2 floor(d / 2) of d."""
    half = d // 2
    return half, (1 << half) - 1


def _odd(records: Records) -> Words:
    """The label as a bit: 1 for y = -1."""
    return (records.whole("y") < 0).view(np.uint8)


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
        for at, place in enumerate(places_of(self.free)):
            symbol |= (x >> np.uint64(place) & np.uint64(1)) << np.uint64(at)
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
class ParityExample(Query):
    """A whole labelled example of parity, 2 x + 1(y = -1); a public mask s then asks for y (-1)^<s, x>. 1 <= d <= 12."""

    name: ClassVar[str] = "parity-example"
    d: int

    def __post_init__(self) -> None:
        examples(self.d)

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    def __call__(self, records: Records) -> Ints:
        values: Ints = 2 * records.whole("x").astype(np.int64) + _odd(records)
        return values


PARITY_QUERIES: tuple[type[Query], ...] = (MaskedIndicator, MaskedDisagreement, MaskedList, MaskedBent, ParityExample)
