"""Queries about masked-parity examples (KLNRS Section 5): positions, parities, lists of parities;
and statistical queries with a public sign."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Words
from local_dp.bounds.masked_parity import MOST_NAMED
from local_dp.checks import check_dimension, check_vector, check_whole
from local_dp.cube import (
    bent_coset,
    bent_coset_coefficient,
    bent_halves,
    character,
    parity,
    places_of,
    sign,
)
from local_dp.domains import Domain, levels, signed_symbols, symbols
from local_dp.errors import InputError
from local_dp.queries.examples import _odd, check_coset
from local_dp.queries.query import Query
from local_dp.records import Records

LATTICE = (
    64  # steps of [-1, 1] on which the 0/1 queries of the paper are released with Laplace noise
)


@dataclass(frozen=True)
class _Position(Query):
    """A query about position j of d."""

    d: int
    j: int

    def check(self) -> None:
        check_dimension(self.d)
        check_whole("j", self.j, 0, self.d - 1)

    def asks(self, records: Records) -> Bools:
        """True where the record is about position j."""
        return np.asarray((records.whole("b") == 1) & (records.whole("i") == self.j))


@dataclass(frozen=True)
class _Parity(Query):
    """A query about the parity of x with r."""

    d: int
    r: int

    def check(self) -> None:
        check_dimension(self.d)
        check_vector("r", self.r, self.d)

    def differs(self, records: Records) -> Words:
        """1 where y is not (-1)^<r, x>."""
        return parity(records.words("x") & np.uint64(self.r)) ^ _odd(records)


@dataclass(frozen=True)
class MaskedIndicator(_Position):
    """g_j of KLNRS Section 5.1: 1 if i = j, b = 1 and y = -1, else 0, on the lattice of [-1, 1].
    Expectation r_j / (2 d)."""

    name = "masked-indicator"
    summary = "Gives bit j of the hidden vector, as printed in the paper"
    domain: ClassVar[Domain] = levels(LATTICE)

    def __call__(self, records: Records) -> Ints:
        yes = self.asks(records) & (records.whole("y") < 0)
        return np.asarray(LATTICE // 2 * (1 + yes.astype(np.int64)))


@dataclass(frozen=True)
class MaskedDisagreement(_Parity):
    """g_d of KLNRS Section 5.1: 1 if b = 0 and y differs from (-1)^<r, x>, else 0, on the lattice
    of [-1, 1]. Expectation a / 2 for the right r."""

    name = "masked-disagreement"
    summary = "Asks whether the parity errs, as printed in the paper"
    domain: ClassVar[Domain] = levels(LATTICE)

    def __call__(self, records: Records) -> Ints:
        yes = (records.whole("b") == 0) & (self.differs(records) == 1)
        return np.asarray(LATTICE // 2 * (1 + yes.astype(np.int64)))


@dataclass(frozen=True)
class MaskedList(_Parity):
    """The part of an example that matters to the parities r + s, s within the t set bits of `free`,
    and to the set bits of `asked` (limits 3.2, P4).

    Where b = 0: y (-1)^<r, x> with symbol x restricted to `free`; where b = 1: y with symbol 2^t +
    (place of i in `asked`), null if i is not asked for.
    """

    name = "masked-list"
    summary = "Gives the part of an example that listed parities read"
    free: int = 0
    asked: int = 0

    def check(self) -> None:
        super().check()
        check_vector("free", self.free, self.d)
        check_vector("asked", self.asked, self.d)

    @property
    def positions(self) -> int:
        return self.asked.bit_count()

    @property
    def listed(self) -> int:
        """The number of parities on the list, 2^t."""
        return 1 << self.free.bit_count()

    def vectors(self) -> list[int]:
        """The vectors r + s: number j holds the bits of j, added to those of r, at the places of
        `free`, in order."""
        places = places_of(self.free)
        return [
            self.r ^ sum(1 << place for bit, place in enumerate(places) if j >> bit & 1)
            for j in range(self.listed)
        ]

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.listed + self.positions)

    def __call__(self, records: Records) -> Ints:
        x = records.words("x")
        symbol = np.zeros(len(records), dtype=np.uint64)
        for bit, place in enumerate(places_of(self.free)):
            symbol |= (x >> np.uint64(place) & np.uint64(1)) << np.uint64(bit)
        symbol_of = np.full(self.d, -1, dtype=np.int64)
        symbol_of[list(places_of(self.asked))] = self.listed + np.arange(self.positions)
        return _signed(records, symbol, self.differs(records), symbol_of)


@dataclass(frozen=True)
class MaskedBent(Query):
    """One bent function in place of every parity: y (-1)^<u, v> where b = 0, u and v the two halves
    of the first d - `told` bits of x; y where b = 1.

    The symbol is the last `told` bits of x where b = 0, and i after all of these where b = 1. With
    m = d - `told`, an even number, the function's correlation with (-1)^<r, x> given the symbol is
    +-2^(-m / 2) for every r at once, so one query serves them all (limits 3.1, E4, and 3.3).
    """

    name = "masked-bent"
    summary = "Gives the label times one bent function for all parities"
    d: int
    told: int

    def check(self) -> None:
        check_dimension(self.d)
        if type(self.told) is not int or not 0 <= self.told <= self.d or (self.d - self.told) % 2:
            raise InputError(
                f"`told` is {self.told!r}; give a number of bits of x, at most d = {self.d}, that "
                "is even if and only if d is"
            )

    @property
    def positions(self) -> int:
        return self.d

    @property
    def listed(self) -> int:
        """The number of parities of the last `told` bits."""
        return 1 << self.told

    def vectors(self) -> list[int]:
        """The parities of the last `told` bits, as vectors over all d bits."""
        return [s << (self.d - self.told) for s in range(self.listed)]

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.listed + self.d)

    def __call__(self, records: Records) -> Ints:
        bent = self.d - self.told
        half, low = bent_halves(bent)
        x = records.words("x")
        odd = parity(x & np.uint64(low) & (x >> np.uint64(half)))
        symbol = x >> np.uint64(bent) if self.told else np.zeros(len(records), dtype=np.uint64)
        return _signed(records, symbol, odd ^ _odd(records), self.listed + np.arange(self.d))


def _signed(records: Records, symbol: Words, differs: Words, symbol_of: Counts) -> Ints:
    """Symbol `symbol` with sign - where `differs`, for b = 0; symbol `symbol_of[i]` with the
    label's sign, for b = 1, or null where that is -1."""
    masked = records.whole("b") == 0
    places = records.whole("i").clip(0, len(symbol_of) - 1)
    magnitude = np.where(masked, symbol.astype(np.int64), symbol_of[places.astype(np.int64)]) + 1
    return np.where(np.where(masked, differs, _odd(records)) == 1, -magnitude, magnitude)


@dataclass(frozen=True)
class MaskedExample(Query):
    """The whole example as the number 4 z + 2 b + 1(y = -1): z = x where b = 0, 2^i where b = 1. 1
    <= d <= 20."""

    name = "masked-example"
    summary = "Gives the example of masked parity, with its label"
    d: int

    def check(self) -> None:
        check_dimension(self.d, MOST_NAMED)

    @property
    def domain(self) -> Domain:
        return Domain("masked examples", 0, (4 << self.d) - 1)

    def __call__(self, records: Records) -> Ints:
        b, places = records.whole("b") == 1, records.whole("i").clip(0, self.d - 1)
        vector = np.where(b, 1 << places.astype(np.int64), records.words("x").astype(np.int64))
        return np.asarray(4 * vector + 2 * b + _odd(records))


@dataclass(frozen=True)
class MaskedIndex(Query):
    """Round one of masked parity: y at position i where b = 1 (the label is (-1)^(r_i)), null where
    b = 0. KLNRS Section 5.1."""

    name = "masked-index"
    summary = "Gives the label at its position, in round one"
    d: int

    def check(self) -> None:
        check_dimension(self.d)

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.d)

    def __call__(self, records: Records) -> Ints:
        signed = (records.whole("i").astype(np.int64) + 1) * records.whole("y").astype(
            np.int64, copy=False
        )
        return np.asarray(np.where(records.whole("b") == 1, signed, 0))


@dataclass(frozen=True)
class MaskedParity(_Parity):
    """Round two of masked parity: y * (-1)^<r, x> where b = 0 (equal to (-1)^a when r is right),
    null where b = 1. KLNRS Section 5.1."""

    name = "masked-parity"
    summary = "Gives the label times the parity, in round two"
    domain: ClassVar[Domain] = signed_symbols(1)

    def __call__(self, records: Records) -> Ints:
        # signed, or 1 - 2 * odd would wrap
        odd = parity(records.words("x") & np.uint64(self.r)).astype(np.int8)
        labels = records.whole("y").astype(np.int64, copy=False)
        return np.asarray(np.where(records.whole("b") == 0, (1 - 2 * odd) * labels, 0))


MAX_ENUMERATED = 20  # a random function has no closed form: its mean is a sum over 2^d points


@dataclass(frozen=True)
class MaskedSign(Query):
    """A +1/-1 query (1 stands for +1, 0 for -1): y times a public sign on some examples, and
    (-1)^(x_0), independent of the concept, on all others."""

    domain: ClassVar[Domain] = symbols(2)
    d: int

    def check(self) -> None:
        check_dimension(self.d)

    @abstractmethod
    def signal(self, records: Records) -> tuple[Bools, Ints]:
        """The examples where y counts, and its sign there; both shape (n,)."""

    @abstractmethod
    def mean(self, r: int, a: int) -> float:
        """The exact expectation of the +1/-1 query under the concept (r, a)."""

    def __call__(self, records: Records) -> Ints:
        informative, signs = self.signal(records)
        values: Bools = (
            np.where(informative, signs * records.whole("y"), character(1, records.words("x"))) > 0
        )
        return values.view(np.uint8)


@dataclass(frozen=True)
class MaskedBit(_Position, MaskedSign):
    """y where i = j and b = 1: expectation (-1)^(r_j) / (2d), twice as far apart as the 0/1 query
    of KLNRS Section 5.1 as it stands."""

    name = "masked-bit"
    summary = "Gives one bit of the hidden vector with a sign"

    def signal(self, records: Records) -> tuple[Bools, Ints]:
        return self.asks(records), np.ones(1, dtype=np.int8)

    def mean(self, r: int, a: int) -> float:
        return (1 - 2 * (r >> self.j & 1)) / (2 * self.d)


@dataclass(frozen=True)
class MaskedFunction(MaskedSign):
    """y f(x) where b = 0, for a Boolean function f: expectation (-1)^a f^(r) / 2 with f^(r) =
    E[f(x) (-1)^<r, x>]."""

    @abstractmethod
    def function(self, x: Words) -> Ints:
        """f(x) as +1 or -1, elementwise."""

    @abstractmethod
    def coefficient(self, r: int) -> float:
        """The Walsh coefficient f^(r)."""

    def signal(self, records: Records) -> tuple[Bools, Ints]:
        return records.whole("b") == 0, self.function(records.words("x"))

    def mean(self, r: int, a: int) -> float:
        return (1 - 2 * a) * self.coefficient(r) / 2


@dataclass(frozen=True)
class MaskedCoset(MaskedFunction):
    """f is the inner-product bent function of x_0..x_{k-1} times the parity s of the other d - k
    variables (limits 3.1, E5).

    |f^(r)| = 2^(-k/2) for the 2^k strings r that end in s, and 0 for all others. k = d asks one
    bent function, k = 0 the parity s.
    """

    name = "masked-coset"
    summary = "Gives the label times a bent function on a coset"
    k: int
    s: int = 0

    def check(self) -> None:
        check_coset(self.d, self.k, self.s)

    def function(self, x: Words) -> Ints:
        return bent_coset(x, self.k, self.s)

    def coefficient(self, r: int) -> float:
        return bent_coset_coefficient(r, self.k, self.s)


@dataclass(frozen=True)
class MaskedRandom(MaskedFunction):
    """f is a random Boolean function: a 64-bit mix of x and `seed`."""

    name = "masked-random"
    summary = "Gives the label times a random function"
    seed: int

    def check(self) -> None:
        super().check()
        check_vector("the seed", self.seed, 63)

    def function(self, x: Words) -> Ints:
        mixed = _mix(x.astype(np.uint64) + _mix(np.full(1, self.seed, dtype=np.uint64)))
        return sign((mixed >> np.uint64(63)).astype(np.uint8))

    def coefficient(self, r: int) -> float:
        if self.d > MAX_ENUMERATED:
            raise InputError(
                f"d is {self.d}; the mean of a random function is summed over 2^d points, so d is "
                f"at most {MAX_ENUMERATED}"
            )
        x = np.arange(1 << self.d, dtype=np.uint64)
        return float((self.function(x) * character(r, x)).sum(dtype=np.int64)) / 2.0**self.d


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64, a bijection of 64-bit words (Steele, Lea, Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
