"""Queries about examples of a parity: the whole labelled example, and the signs that statistical queries average."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.checks import check_dimension, check_vector
from local_dp.cube import bent_coset, bent_coset_coefficient, character
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.randomizers.signs.characters import examples
from local_dp.records import Records


def _odd(records: Records) -> Words:
    """The label as a bit: 1 for y = -1."""
    return (records.whole("y") < 0).view(np.uint8)


@dataclass(frozen=True)
class ParityExample(Query):
    """A whole labelled example of parity, 2 x + 1(y = -1); a public mask s then asks for y (-1)^<s, x>. 1 <= d <= 12."""

    name: ClassVar[str] = "parity-example"
    d: int

    def check(self) -> None:
        examples(self.d)

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    def __call__(self, records: Records) -> Ints:
        values: Ints = 2 * records.whole("x").astype(np.int64) + _odd(records)
        return values


@dataclass(frozen=True)
class ParityCoset(Query):
    """A +1/-1 query (1 stands for +1): y times the bent coset function (`cube.bent_coset`) of k and s, shifted by the parity t of the first k variables.

    Under the parity r its expectation is +-2^(-k/2) if r ends in s, and 0 otherwise. k = 0 asks how y correlates with the parity s.
    """

    name: ClassVar[str] = "parity-coset"
    d: int
    k: int
    s: int = 0
    t: int = 0

    def check(self) -> None:
        check_dimension(self.d)
        if type(self.k) is not int or not 0 <= self.k <= self.d or self.k % 2:
            raise InputError(f"k is {self.k!r}; a bent function takes an even number of variables, from 0 to d = {self.d}")
        check_vector("s", self.s, self.d - self.k)
        check_vector("t", self.t, self.k)

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def mean(self, r: int) -> float:
        """The expectation under the parity r."""
        return bent_coset_coefficient(r ^ self.t, self.k, self.s)

    def __call__(self, records: Records) -> Ints:
        x = records.words("x")
        values: Bools = bent_coset(x, self.k, self.s) * character(self.t, x) * records.whole("y") > 0
        return values.view(np.uint8)
