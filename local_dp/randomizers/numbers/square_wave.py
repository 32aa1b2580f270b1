"""The square wave: a window as wide as tells most about the whole distribution."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.window import Window
from local_dp.randomizers.table import as_decimal


@dataclass(frozen=True, kw_only=True)
class SquareWave(Window):
    """Reports a number within b of the own one with a probability e^eps times as high as any other from -b to 1 + b, on a lattice.

    b = (eps E - E + 1) / (2 E (E - 1 - eps)), E = e^eps, makes the mutual information's upper bound largest; the window has round(2 b steps) cells, 1 at least.
    Privacy: two weights, of ratio at most e^eps. Utility: the mean is unbiased, of variance `window_variance`; the distribution of the numbers is what it is
    for, by `postprocessing.likelihood`, a step that never runs by itself. Cost: log2(steps + window) bits.
    """

    name: ClassVar[str] = "square-wave"
    source: ClassVar[str] = "Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020, Section 5, on a lattice"

    @property
    def window(self) -> int:
        return max(1, math.floor(2 * wave_width(self.nano) * self.steps + Fraction(1, 2)))


@lru_cache(maxsize=1024)
def wave_width(nano: int) -> Fraction:
    """b, to 1e-30: half the window, in units of [0, 1]. From 1/2 at epsilon 0 to 0."""
    with localcontext() as context:
        context.prec = 80
        growth, epsilon = as_decimal(exp_epsilon(nano)), Decimal(nano) / 10**9
        return Fraction((epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))).limit_denominator(10**30)
