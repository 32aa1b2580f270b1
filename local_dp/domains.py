"""The values that queries take and randomizers accept."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.errors import InputError

Parameter: TypeAlias = int | float | str | tuple[str, ...] | tuple[float, ...]
MAX_SYMBOLS = 4096


@dataclass(frozen=True)
class Domain:
    """The values a query may take and a randomizer accepts: every whole number from `low` to `high`; `kind` says what they mean."""

    kind: str
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def values(self) -> Counts:
        """Every value, ascending."""
        return np.arange(self.low, self.high + 1, dtype=np.int64)

    def clip(self, values: Ints) -> Ints:
        """The values moved to the nearest member: a client's last defence against a record outside the declared domain."""
        clipped: Ints = values.clip(self.low, self.high)
        return clipped


def symbols(k: int) -> Domain:
    """One of k symbols, 0..k-1; k = 2 is a yes/no answer with 1 for yes. 2 <= k <= 4096."""
    _check_symbols(k, 2)
    return Domain("symbols", 0, k - 1)


def signed_symbols(k: int) -> Domain:
    """Plus or minus one of k symbols, or nothing: +(j+1) and -(j+1) are symbol j with its sign, 0 is null. 1 <= k <= 4096."""
    _check_symbols(k, 1)
    return Domain("signed symbols", -k, k)


def levels(steps: int) -> Domain:
    """A number in [0, 1] on the lattice of multiples of 1/steps: value v stands for v/steps."""
    if type(steps) is not int or not 1 <= steps <= 1 << 20:
        raise InputError(f"the lattice has {steps!r} steps; give a whole number from 1 to 2^20")
    return Domain("levels", 0, steps)


def grouped_levels(steps: int, groups: int) -> Domain:
    """A number in [0, 1] as by `levels` in one of several groups, or none: value g (steps + 1) + v is v/steps in group g, and the last value is none."""
    if type(groups) is not int or groups < 1:
        raise InputError(f"there are {groups!r} groups; give a whole number of 1 or more")
    return Domain("grouped levels", 0, groups * levels(steps).size)


def _check_symbols(k: int, least: int) -> None:
    if type(k) is not int or not least <= k <= MAX_SYMBOLS:
        raise InputError(f"k is {k!r}; give a whole number of symbols from {least} to {MAX_SYMBOLS}")
