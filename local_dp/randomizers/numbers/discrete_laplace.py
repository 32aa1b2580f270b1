"""Discrete Laplace noise on a lattice, clamped to the lattice's own range."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.loss import NANO
from local_dp.randomizers.numbers.base import NumberTable
from local_dp.randomizers.table import Law, precise

_ROUNDING = Decimal("1e-7")  # nats kept back so that rounded tables never exceed epsilon


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(NumberTable):
    """Adds two-sided geometric noise of ratio a = e^(-eps/steps) to a lattice value and clamps the sum to the lattice.

    Pr[w | v] = a^|w - v| (1 - a) / (1 + a) inside and a^|w - v| / (1 + a) at either end: a ratio of exactly a^(+-steps) at most, so eps-local.
    Decoding adds a / (1 - a) beyond the ends, which (the geometric law has no memory) makes the estimate unbiased at every lattice point and of
    smaller variance than the unclamped noise: worst in the middle (`bounds.means.discrete_laplace_variances`). The table is whole numbers over 2^64
    built for epsilon - 1e-7: that slack covers their rounding; in narrow words it decodes with the bias of their rounding. Cost: log2(steps + 1) bits.
    """

    name: ClassVar[str] = "discrete-laplace"
    source: ClassVar[str] = "KLNRS 2008, Claim 4.1, on a lattice; Ghosh, Roughgarden, Sundararajan 2009"

    @property
    def _ratio(self) -> Decimal:
        """a."""
        epsilon = Decimal(self.nano) / NANO
        return (-(epsilon - min(_ROUNDING, epsilon / 10)) / self.steps).exp()

    def law(self) -> Law:
        a, points = self._ratio, range(self.steps + 1)
        return [[a ** abs(w - value) / (1 + a) * (1 if w in (0, self.steps) else 1 - a) for w in points] for value in points]

    def rounded(self, law: Law) -> Words:
        """Whole weights; of 2^64 what rounding down left over goes to the likeliest report."""
        if self.word_bits < 64:
            return super().rounded(law)
        rows = [[int(p * 2**64) for p in row] for row in law]
        for value, row in enumerate(rows):
            row[value] += 2**64 - sum(row)
        return np.array(rows, dtype=np.uint64)

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            a = self._ratio
            beyond = float(a / (1 - a)) / self.steps
        decoded = np.arange(self.steps + 1) / self.steps
        decoded[0] -= beyond
        decoded[-1] += beyond
        return decoded
