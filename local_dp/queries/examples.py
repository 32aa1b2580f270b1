"""Queries about labelled examples: correlations, signed labels, products."""

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.checks import check_built
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.numbers import STEPS, check_bound, matrix, on_lattice
from local_dp.queries.query import Query
from local_dp.queries.questions import Expression, evaluate, parse
from local_dp.records import Records

MAX_FACTORS = 64


@dataclass(frozen=True)
class Correlation(Query):
    """1 where the +1/-1 label equals (-1)^(sum of the 0/1 columns), else 0: its expectation on the [-1, 1] scale is a Fourier coefficient of the label.

    Without a label, of the constant 1: a moment of the columns.
    """

    name: ClassVar[str] = "correlation"
    domain: ClassVar[Domain] = symbols(2)
    columns: tuple[str, ...]
    label: str = ""

    def check(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise InputError(f"the columns are {self.columns!r}; give each once")

    def __call__(self, records: Records) -> Ints:
        agrees: Bools = records[self.label] == 1 if self.label else np.ones(len(records), dtype=np.bool_)
        for name in self.columns:
            agrees = agrees ^ (records[name] == 1)
        return agrees.view(np.uint8)


@dataclass(frozen=True)
class SignedLabel(Query):
    """The +1/-1 label where the condition holds (a label other than 1 counts as -1), 0 elsewhere; as the levels 2, 0 and 1 of two steps."""

    name: ClassVar[str] = "signed-label"
    domain: ClassVar[Domain] = levels(2)
    condition: str
    label: str

    def check(self) -> None:
        check_built(self.expression)  # parsed now, so that a wrong condition fails where it is written

    @cached_property
    def expression(self) -> Expression:
        return parse(self.condition)

    def __call__(self, records: Records) -> Ints:
        sign = np.where(records[self.label] == 1, 1, -1)
        return np.asarray(np.where(evaluate(self.expression, records), 1 + sign, 1))


@dataclass(frozen=True)
class Product(Query):
    """The product of the factors (columns; one may come twice, as a square), clipped to [-bound, bound] and divided by `bound`, on a lattice of 2^16 steps."""

    name: ClassVar[str] = "product"
    domain: ClassVar[Domain] = levels(STEPS)
    factors: tuple[str, ...]
    bound: float = 1.0

    def check(self) -> None:
        if not 1 <= len(self.factors) <= MAX_FACTORS:
            raise InputError(f"a product of {len(self.factors)} factors; give from 1 to {MAX_FACTORS}")
        check_bound(self.bound)

    def __call__(self, records: Records) -> Ints:
        return on_lattice(reduce(np.multiply, matrix(records, self.factors)), self.bound)
