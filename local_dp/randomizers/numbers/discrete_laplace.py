"""Discrete Laplace noise on a lattice, clamped to the lattice's own range."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Domain, levels
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.finite import FiniteChannel
from local_dp.tallies import Estimate, Tally

MAX_STEPS = 255
_ROUNDING = Decimal("1e-7")  # nats kept back so that rounded tables never exceed epsilon


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(FiniteChannel):
    """Adds two-sided geometric noise of ratio a = e^(-eps/steps) to a lattice value and clamps the sum to the lattice.

    Pr[w | v] = a^|w - v| (1 - a) / (1 + a) inside and a^|w - v| / (1 + a) at either end: a ratio of exactly a^(+-steps) at most, so eps-local.
    Decoding adds a / (1 - a) beyond the ends, which (the geometric law has no memory) makes the estimate unbiased at every lattice point and of
    smaller variance than the unclamped noise. The table is whole numbers over 2^64 built for epsilon - 1e-7: that slack covers their rounding.
    Cost: log2(steps + 1) bits; a binary search a report.
    """

    name: ClassVar[str] = "discrete-laplace"
    source: ClassVar[str] = "KLNRS 2008, Claim 4.1, on a lattice; Ghosh, Roughgarden, Sundararajan 2009"
    steps: int = 63

    def prepare(self) -> None:
        if type(self.steps) is not int or not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"the lattice has {self.steps!r} steps; give a whole number from 1 to {MAX_STEPS}")
        if self.nano < 1000:
            raise InputError(f"epsilon is {self.epsilon!r}; discrete Laplace needs at least 1e-6 nats")
        if self.word_bits != 64:
            raise InputError(f"word_bits is {self.word_bits}; discrete Laplace needs 64")
        weights, decoded = _table(self.nano, self.steps)
        object.__setattr__(self, "_weights", weights)
        object.__setattr__(self, "_ends", np.cumsum(weights, axis=1, dtype=np.uint64)[:, :-1])
        object.__setattr__(self, "_decoded", decoded)

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    @property
    def alphabet(self) -> int:
        return self.steps + 1

    @property
    def decoded(self) -> Floats:
        """What each report stands for, in units of the [0, 1] range, shape (steps + 1,)."""
        table: Floats = self.__dict__["_decoded"]
        return table

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """The number of cumulative thresholds at or below the word: a branchless binary search in the value's row."""
        ends: Words = self.__dict__["_ends"]
        row = values.astype(np.int64) * self.steps
        flat, found = ends.ravel(), np.zeros(len(words), dtype=np.int64)
        step = 1 << (self.steps.bit_length() - 1)
        while step:
            probe = found + step
            inside = probe <= self.steps
            found = np.where(inside & (flat[row + np.minimum(probe, self.steps) - 1] <= words), probe, found)
            step >>= 1
        return found.astype(self.report_dtype)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        table: Words = self.__dict__["_weights"]
        weights: Words = table[np.asarray(values, dtype=np.int64), np.asarray(reports, dtype=np.int64)]
        return weights

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of x in [0, 1], unbiased up to 1e-7."""
        n, counts = tally.answered, tally.counts[0]
        mean = float(counts @ self.decoded) / n
        variance = float(counts @ (self.decoded - mean) ** 2) / n
        return Estimate(np.asarray(mean), np.asarray(math.sqrt(variance / n)), n)


def _table(nano: int, steps: int) -> tuple[Words, Floats]:
    """The integer channel, rows summing to 2^64, and what each report decodes to."""
    with localcontext() as context:
        context.prec = 60
        inner = Decimal(nano) / NANO - min(_ROUNDING, Decimal(nano) / NANO / 10)
        a = (-inner / steps).exp()
        rows = []
        for value in range(steps + 1):
            law = [a ** abs(w - value) / (1 + a) * (1 if w in (0, steps) else 1 - a) for w in range(steps + 1)]
            row = [int(p * 2**64) for p in law]
            row[value] += 2**64 - sum(row)  # what rounding down left over goes to the likeliest report
            rows.append(row)
        beyond = float(a / (1 - a)) / steps
    decoded = np.arange(steps + 1) / steps
    decoded[0] -= beyond
    decoded[-1] += beyond
    return np.array(rows, dtype=np.uint64), decoded
