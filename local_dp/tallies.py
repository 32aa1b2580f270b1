"""What a server adds up, and what it makes of it."""

from dataclasses import dataclass

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError


@dataclass(frozen=True)
class Tally:
    """How many reports fell in each (coin cell, report), shape (cells, alphabet). Addition makes it a commutative monoid."""

    counts: Counts

    @property
    def n(self) -> int:
        """The number of reports."""
        return int(self.counts.sum())

    def __add__(self, other: "Tally") -> "Tally":
        if self.counts.shape != other.counts.shape:
            raise InputError(f"tallies of shapes {self.counts.shape} and {other.counts.shape} come from different randomizers; add like to like")
        return Tally(self.counts + other.counts)


@dataclass(frozen=True)
class Estimate:
    """A value (scalar or vector), its standard error and the number of reports behind it.

    The standard error is that of the mean of the distribution the clients were drawn from: sampling and privacy noise together.
    """

    value: Floats
    standard_error: Floats
    n: int

    def interval(self, z: float = 1.959963984540054) -> tuple[Floats, Floats]:
        """The normal confidence interval, 95 % by default."""
        return self.value - z * self.standard_error, self.value + z * self.standard_error
