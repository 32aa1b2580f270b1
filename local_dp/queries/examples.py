"""Queries about labelled examples: correlations, signed labels, products, examples of a parity,
steps of a ladder."""

import re
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.checks import check_built, check_dimension, check_vector
from local_dp.cube import bent_coset, bent_coset_coefficient, character
from local_dp.domains import Domain, bit_or_silence, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.grammar import Expression, parse
from local_dp.queries.query import STEPS, Query, check_bound, matrix, on_lattice
from local_dp.queries.questions import evaluate
from local_dp.randomizers.signs.characters import examples
from local_dp.records import Records

MAX_FACTORS = 64


@dataclass(frozen=True)
class Correlation(Query):
    """1 where the +1/-1 label equals (-1)^(sum of the 0/1 columns), else 0: a Fourier coefficient
    of the label, or without one a moment."""

    name = "correlation"
    summary = "Asks whether the label equals a parity of the columns"
    domain = symbols(2)
    columns: tuple[str, ...]
    label: str = ""

    def check(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise InputError(f"the columns are {self.columns!r}; give each once")

    def __call__(self, records: Records) -> Ints:
        agrees: Bools = (
            records[self.label] == 1 if self.label else np.ones(len(records), dtype=np.bool_)
        )
        for name in self.columns:
            agrees = agrees ^ (records[name] == 1)
        return agrees.view(np.uint8)


@dataclass(frozen=True)
class SignedLabel(Query):
    """The +1/-1 label where the condition holds (a label other than 1 counts as -1), 0 elsewhere;
    as the levels 2, 0 and 1 of two steps."""

    name = "signed-label"
    summary = "Gives the signed label where a condition holds"
    domain = levels(2)
    condition: str
    label: str

    def check(self) -> None:
        # parsed now, so that a wrong condition fails where it is written
        check_built(self.expression)

    @cached_property
    def expression(self) -> Expression:
        return parse(self.condition)

    def __call__(self, records: Records) -> Ints:
        sign = np.where(records[self.label] == 1, 1, -1)
        return np.asarray(np.where(evaluate(self.expression, records), 1 + sign, 1))


@dataclass(frozen=True)
class Product(Query):
    """The product of the factors (columns; one may come twice, as a square), clipped to [-bound,
    bound] and divided by `bound`, on a lattice of 2^16 steps."""

    name = "product"
    summary = "Multiplies columns, and clips the product"
    domain = levels(STEPS)
    factors: tuple[str, ...]
    bound: float = 1.0

    def check(self) -> None:
        if not 1 <= len(self.factors) <= MAX_FACTORS:
            raise InputError(
                f"a product of {len(self.factors)} factors; give from 1 to {MAX_FACTORS}"
            )
        check_bound(self.bound)

    def __call__(self, records: Records) -> Floats:
        return on_lattice(reduce(np.multiply, matrix(records, self.factors)), self.bound)


def _odd(records: Records) -> Words:
    """The label as a bit: 1 for y = -1."""
    return (records.whole("y") < 0).view(np.uint8)


@dataclass(frozen=True)
class ParityExample(Query):
    """A whole labelled example of parity, 2 x + 1(y = -1); a public mask s then asks for y (-1)^<s,
    x>. 1 <= d <= 12."""

    name = "parity-example"
    summary = "Gives a whole labelled example of a parity"
    d: int

    def check(self) -> None:
        examples(self.d)

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    def __call__(self, records: Records) -> Ints:
        return np.asarray(2 * records.whole("x").astype(np.int64) + _odd(records))


def check_coset(d: int, k: int, s: int) -> None:
    """Raises InputError unless `cube.bent_coset` takes k and s in d dimensions."""
    check_dimension(d)
    if type(k) is not int or not 0 <= k <= d or k % 2:
        raise InputError(
            f"k is {k!r}; a bent function takes an even number of variables, from 0 to d = {d}"
        )
    check_vector("s", s, d - k)


@dataclass(frozen=True)
class ParityCoset(Query):
    """A +1/-1 query (1 stands for +1): y times the bent coset function (`cube.bent_coset`) of k and
    s, shifted by the parity t of the first k variables.

    Under the parity r its expectation is +-2^(-k/2) if r ends in s, and 0 otherwise. k = 0 asks how
    y correlates with the parity s.
    """

    name = "parity-coset"
    summary = "Gives the label times a bent function and a parity"
    domain = symbols(2)
    d: int
    k: int
    s: int = 0
    t: int = 0

    def check(self) -> None:
        check_coset(self.d, self.k, self.s)
        check_vector("t", self.t, self.k)

    def mean(self, r: int) -> float:
        return bent_coset_coefficient(r ^ self.t, self.k, self.s)

    def __call__(self, records: Records) -> Ints:
        x = records.words("x")
        values: Bools = (
            bent_coset(x, self.k, self.s) * character(self.t, x) * records.whole("y") > 0
        )
        return values.view(np.uint8)


MOST_LEVELS = 16
_WORD = 64  # bits to a column


@dataclass(frozen=True)
class PathStep(Query):
    """1 if the client's table, at the node that `path` has reached at the client's own level, holds
    the path's next step; 0 if the other one.

    2 (silence) where its level is below `first` or not below the path's length. A path is a text of
    the steps 0 and 1 from the root. The table of level i has 2^i bits, bit v for the node whose
    steps read v in binary; bit v is bit v modulo 64 of column table(v // 64). 1 to 16 steps.
    """

    name = "path-step"
    summary = "Gives the next step of a path in the client's table"
    domain = bit_or_silence()
    path: str
    first: int = 0

    def check(self) -> None:
        if not re.fullmatch(f"[01]{{1,{MOST_LEVELS}}}", self.path):
            raise InputError(f"path is {self.path!r}; give 1 to {MOST_LEVELS} steps, each 0 or 1")
        if type(self.first) is not int or not 0 <= self.first < len(self.path):
            raise InputError(
                f"first is {self.first!r}; give a level from 0 to {len(self.path) - 1}"
            )

    @property
    def nodes(self) -> dict[int, int]:
        """The node of each level that is asked."""
        return {
            level: int("0" + self.path[:level], 2) for level in range(self.first, len(self.path))
        }

    def __call__(self, records: Records) -> Ints:
        level = records.whole("level")
        values = np.full(len(records), 2, dtype=np.uint8)
        for own, node in self.nodes.items():
            bits = records.words(column(node)) >> np.uint64(node % _WORD) & np.uint64(1)
            values = np.where(level == own, (bits == int(self.path[own])).view(np.uint8), values)
        return values


def column(node: int) -> str:
    return f"table{node // _WORD}"


def columns(k: int) -> int:
    """How many columns the tables of k levels take."""
    return max(1, (1 << (k - 1)) // _WORD)


def bit_of(words: Words, node: int) -> int:
    """A node's bit in the columns of its level, shape (columns,)."""
    return int(words[node // _WORD]) >> (node % _WORD) & 1
