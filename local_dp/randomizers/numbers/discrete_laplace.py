"""Discrete Laplace noise on a lattice, clamped to the lattice's own range."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import ClassVar

import numpy as np

from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.numbers.base import Held, NumberTable

_ROUNDING = Decimal("1e-7")  # nats kept back so that rounded tables never exceed epsilon


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(NumberTable):
    """Adds two-sided geometric noise of ratio a = e^(-eps/steps) to a lattice value and clamps the sum to the lattice.

    Pr[w | v] = a^|w - v| (1 - a) / (1 + a) inside and a^|w - v| / (1 + a) at either end: a ratio of exactly a^(+-steps) at most, so eps-local.
    Decoding adds a / (1 - a) beyond the ends, which (the geometric law has no memory) makes the estimate unbiased at every lattice point and of
    smaller variance than the unclamped noise: worst in the middle (`bounds.numbers.discrete_laplace_variances`). The table is whole numbers over 2^64
    built for epsilon - 1e-7: that slack covers their rounding. Cost: log2(steps + 1) bits.
    """

    name: ClassVar[str] = "discrete-laplace"
    source: ClassVar[str] = "KLNRS 2008, Claim 4.1, on a lattice; Ghosh, Roughgarden, Sundararajan 2009"

    def tables(self) -> Held:
        if self.word_bits != 64:
            raise InputError(f"word_bits is {self.word_bits}; discrete Laplace needs 64")
        return _table(self.nano, self.steps)


@lru_cache(maxsize=64)
def _table(nano: int, steps: int) -> Held:
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
