"""Finite channels with many values, all of whose rows are mixtures of a few: so a few rows show the loss."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.randomizers.finite import FiniteChannel


@dataclass(frozen=True)
class Mixed(FiniteChannel):
    """A finite channel whose rows lie on lines between the rows of some values, the corners, at whole numbers of `equal` equal steps.

    A subclass gives `equal`, `corners`, `between` and `corner_weight`; `weight` is inherited. Privacy: for every report and cell, each value's weight lies
    between those of two corners, so the loss is the corners' (`evidence.exact_ratio` checks that `between` names corners and steps within range).
    """

    @property
    @abstractmethod
    def equal(self) -> int:
        """The number of steps between two corners."""

    @property
    @abstractmethod
    def corners(self) -> Ints:
        """The values that all others lie between, ascending."""

    @abstractmethod
    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        """Of each value the two corners that it lies between, and how many steps from the first, 0 to `equal`."""

    @abstractmethod
    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        """2^word_bits Pr[report | corner, cell], elementwise under broadcasting; between two corners that values lie between, a multiple of `equal` apart."""

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        first, second, level = self.between(np.asarray(values))
        low, high = self.corner_weight(reports, first, cells), self.corner_weight(reports, second, cells)
        steps, equal = level.astype(np.uint64), np.uint64(self.equal)
        weights: Words = np.where(low <= high, low + (high - low) // equal * steps, low - (low - high) // equal * steps)
        return weights
