"""Randomizers of a number that are one table: the lattice, the value of each report, and the mean."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats
from local_dp.domains import Domain, levels
from local_dp.errors import InputError
from local_dp.randomizers.table import TableChannel
from local_dp.tallies import Estimate, Tally

MAX_STEPS = 255


@dataclass(frozen=True, kw_only=True)
class NumberTable(TableChannel):
    """A randomizer of a number x in [0, 1] on the lattice of multiples of 1 / steps, as a table of whole weights.

    A subclass gives the law, and values of the reports whose mean is x, whatever x. The estimate is their average. 1 <= steps <= 255.
    """

    steps: int = 63

    def check(self) -> None:
        if type(self.steps) is not int or not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"the lattice has {self.steps!r} steps; give a whole number from 1 to {MAX_STEPS}")
        if self.nano < 1000:
            raise InputError(f"epsilon is {self.epsilon!r}; {self.name} needs at least 1e-6 nats")

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    @cached_property
    @abstractmethod
    def decoded(self) -> Floats:
        """The value of each report, in units of the [0, 1] range, shape (alphabet,)."""

    def variances(self) -> Floats:
        """The variance of one report's value at every lattice point, from the whole table; shape (steps + 1,)."""
        law = self.weights.astype(np.float64) / self.total
        means = law @ self.decoded
        return np.asarray((law * (self.decoded - means[:, None]) ** 2).sum(axis=1))

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of x in [0, 1], unbiased up to 1e-7."""
        n, counts = tally.answered, tally.counts[0]
        mean = float(counts @ self.decoded) / n
        variance = float(counts @ (self.decoded - mean) ** 2) / n
        return Estimate(np.asarray(mean), np.asarray(math.sqrt(variance / n)), n)
