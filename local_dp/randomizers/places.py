"""Randomizers that report at several places, independently: what their kinds have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from local_dp.arrays import Ints
from local_dp.randomizers.randomizer import Evidence, Randomizer


@dataclass(frozen=True)
class Places(Randomizer):
    """A report is of several places, each with a word of its own: a value is a symbol at each of them, `code[v, j]` at place j."""

    evidence: ClassVar[Evidence] = "product"

    @cached_property
    @abstractmethod
    def code(self) -> Ints:
        """The symbol of each value at each place, shape (domain size, places)."""

    @property
    def places(self) -> int:
        """How many there are."""
        return int(self.code.shape[1])

    @property
    def words(self) -> int:
        return self.places
