"""Discrete Laplace noise on a lattice, clamped to the lattice's own range."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Words
from local_dp.loss import NANO, exp_epsilon
from local_dp.randomizers.numbers.base import Held, NumberTable
from local_dp.randomizers.table import whole_weights

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

    def tables(self) -> Held:
        return _table(self.nano, self.steps, self.word_bits)


@lru_cache(maxsize=64)
def _table(nano: int, steps: int, bits: int) -> Held:
    """The integer channel, rows summing to 2^bits, and what each report decodes to."""
    with localcontext() as context:
        context.prec = 60
        inner = Decimal(nano) / NANO - min(_ROUNDING, Decimal(nano) / NANO / 10)
        a = (-inner / steps).exp()
        laws = [[a ** abs(w - value) / (1 + a) * (1 if w in (0, steps) else 1 - a) for w in range(steps + 1)] for value in range(steps + 1)]
        beyond = float(a / (1 - a)) / steps
    decoded = np.arange(steps + 1) / steps
    decoded[0] -= beyond
    decoded[-1] += beyond
    return _rounded(laws) if bits == 64 else whole_weights(laws, exp_epsilon(nano), bits), decoded


def _rounded(laws: list[list[Decimal]]) -> Words:
    """Whole weights of 2^64: what rounding down left over goes to the likeliest report."""
    rows = [[int(p * 2**64) for p in law] for law in laws]
    for value, row in enumerate(rows):
        row[value] += 2**64 - sum(row)
    return np.array(rows, dtype=np.uint64)
