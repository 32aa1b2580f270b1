"""Numbers by the cell they fall into."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.domains import MAX_SYMBOLS, Domain, symbols
from local_dp.errors import InputError
from local_dp.queries.base import Query
from local_dp.queries.numbers import read_numbers
from local_dp.records import Records


@dataclass(frozen=True)
class Cell(Query):
    """How many of the public, ascending `edges` a number reaches, 0..m; a missing number has a symbol of its own, the last one, m + 1."""

    name: ClassVar[str] = "cell"
    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (1 <= len(self.numbers) <= MAX_SYMBOLS - 2 and all(first < second for first, second in pairwise(self.edges))):
            raise InputError(f"the edges of {self.column!r} are {self.edges!r:.80}; give from 1 to {MAX_SYMBOLS - 2} numbers in ascending order")

    @cached_property
    def numbers(self) -> Floats:
        return read_numbers(self.edges)

    @property
    def domain(self) -> Domain:
        return symbols(len(self.edges) + 2)

    def __call__(self, records: Records) -> Ints:
        numbers = records.numbers(self.column)
        places: Ints = np.where(np.isnan(numbers), len(self.edges) + 1, np.searchsorted(self.numbers, numbers, side="right"))
        return places

    def ends(self, cell: int) -> tuple[float, float]:
        """The edges on both sides of a cell of numbers, infinite beyond the outermost ones."""
        return (self.edges[cell - 1] if cell else -math.inf), (self.edges[cell] if cell < len(self.edges) else math.inf)
