"""What a server adds up, and what it makes of it."""

from dataclasses import dataclass

from local_dp.arrays import Counts, Floats
from local_dp.errors import InputError


@dataclass(frozen=True)
class Tally:
    """What is kept of `n` reports: whole-number sums, sufficient for the randomizer's estimate. Addition makes it a commutative monoid.

    Reports may arrive in any order and on several hosts: tallies of parts add up to the tally of the whole. `n` may be left out where every report adds 1
    to one count, as in a finite channel's counts of shape (cells, alphabet).
    """

    counts: Counts
    n: int = -1

    def __post_init__(self) -> None:
        if self.n < 0:
            object.__setattr__(self, "n", int(self.counts.sum()))

    def __add__(self, other: "Tally") -> "Tally":
        if self.counts.shape != other.counts.shape:
            raise InputError(f"tallies of shapes {self.counts.shape} and {other.counts.shape} come from different randomizers; add like to like")
        return Tally(self.counts + other.counts, self.n + other.n)


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
