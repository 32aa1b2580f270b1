"""Statistical queries to masked-parity examples: y times a public sign, made label-free and balanced wherever it is not wanted (limits 3.1, E2 and E4)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.checks import check_dimension, check_vector, check_whole
from local_dp.cube import bent_coset, bent_coset_coefficient, character, sign
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records

MAX_ENUMERATED = 20  # a random function has no closed form: its mean is a sum over 2^d points


@dataclass(frozen=True)
class MaskedSign(Query):
    """A +1/-1 query (1 stands for +1, 0 for -1): y times a public sign on some examples, and the balanced sign (-1)^(x_0) on all others.

    Only the first part tells anything of the concept: x_0 is a uniform bit that the label does not enter.
    """

    d: int

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def check(self) -> None:
        check_dimension(self.d)

    @abstractmethod
    def signal(self, records: Records) -> tuple[Bools, Ints]:
        """Where y counts, and the sign it is multiplied by there; both shape (n,)."""

    @abstractmethod
    def mean(self, r: int, a: int) -> float:
        """The exact expectation of the +1/-1 query under the concept (r, a)."""

    def __call__(self, records: Records) -> Ints:
        informative, signs = self.signal(records)
        values: Bools = np.where(informative, signs * records.whole("y"), character(1, records.words("x"))) > 0
        return values.view(np.uint8)


@dataclass(frozen=True)
class MaskedBit(MaskedSign):
    """y where i = j and b = 1: expectation (-1)^(r_j) / (2d), twice as far apart as the 0/1 query of KLNRS Section 5.1 as it stands."""

    name: ClassVar[str] = "masked-bit"
    j: int

    def check(self) -> None:
        super().check()
        check_whole("j", self.j, 0, self.d - 1)

    def signal(self, records: Records) -> tuple[Bools, Ints]:
        return (records.whole("b") == 1) & (records.whole("i") == self.j), np.ones(1, dtype=np.int8)

    def mean(self, r: int, a: int) -> float:
        return (1 - 2 * (r >> self.j & 1)) / (2 * self.d)


@dataclass(frozen=True)
class MaskedFunction(MaskedSign):
    """y f(x) where b = 0, for a Boolean function f: expectation (-1)^a f^(r) / 2 with f^(r) = E[f(x) (-1)^<r, x>]."""

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
    """f is the inner-product bent function of x_0..x_{k-1} times the parity s of the other d - k variables (limits 3.1, E5).

    |f^(r)| = 2^(-k/2) for the 2^k strings r that end in s, and 0 for all others. k = d asks one bent function, k = 0 the parity s.
    """

    name: ClassVar[str] = "masked-coset"
    k: int
    s: int = 0

    def check(self) -> None:
        super().check()
        if type(self.k) is not int or not 0 <= self.k <= self.d or self.k % 2:
            raise InputError(f"k is {self.k!r}; a bent function takes an even number of variables, from 0 to d = {self.d}")
        check_vector("s", self.s, self.d - self.k)

    def function(self, x: Words) -> Ints:
        return bent_coset(x, self.k, self.s)

    def coefficient(self, r: int) -> float:
        return bent_coset_coefficient(r, self.k, self.s)


@dataclass(frozen=True)
class MaskedRandom(MaskedFunction):
    """f is a random Boolean function: a 64-bit mix of x and `seed`."""

    name: ClassVar[str] = "masked-random"
    seed: int

    def check(self) -> None:
        super().check()
        check_vector("the seed", self.seed, 63)

    def function(self, x: Words) -> Ints:
        mixed = _mix(x.astype(np.uint64) + _mix(np.full(1, self.seed, dtype=np.uint64)))
        return sign((mixed >> np.uint64(63)).astype(np.uint8))

    def coefficient(self, r: int) -> float:
        if self.d > MAX_ENUMERATED:
            raise InputError(f"d is {self.d}; the mean of a random function is summed over 2^d points, so d is at most {MAX_ENUMERATED}")
        x = np.arange(1 << self.d, dtype=np.uint64)
        return float((self.function(x) * character(r, x)).sum(dtype=np.int64)) / 2.0**self.d


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64, a bijection of 64-bit words (Steele, Lea, Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
