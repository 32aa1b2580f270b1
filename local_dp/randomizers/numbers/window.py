"""A window of likely reports that slides with the number: what the piecewise mechanism and the square wave have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.base import Held, NumberTable
from local_dp.randomizers.table import as_decimal, whole_weights


@dataclass(frozen=True, kw_only=True)
class Window(NumberTable):
    """Reports one of S + W cells: value v of 0..S finds each of the W cells v..v+W-1 e^eps times as likely as each of the S others.

    All values have W likely cells, so the weights need no normaliser that could leak: Pr[likely cell] = E / (S + W E), E = e^eps, and the loss is eps.
    The mean of a report is linear in v, so a linear decoding is unbiased; its variance is `window_variance`. Cost: log2(S + W) bits.
    """

    @property
    @abstractmethod
    def window(self) -> int:
        """W, 1 or more."""

    def tables(self) -> Held:
        return window_table(self.nano, self.steps, self.window, self.word_bits)


@lru_cache(maxsize=64)
def window_table(nano: int, steps: int, window: int, bits: int) -> Held:
    """The weights of a window of this width, and what each cell stands for."""
    growth = exp_epsilon(nano)
    with localcontext() as context:
        context.prec = 60
        rows = window_law(as_decimal(growth), steps, window)
    return whole_weights(rows, growth, bits), window_decoded(float(growth), steps, window)


def window_law(growth: Decimal, steps: int, window: int) -> list[list[Decimal]]:
    """Pr[cell | value], shape (steps + 1, steps + window)."""
    other = 1 / (steps + window * growth)
    return [[other * growth if value <= cell < value + window else other for cell in range(steps + window)] for value in range(steps + 1)]


def window_share(growth: float, steps: int, window: int) -> float:
    """The probability that a report follows the value at all, and is not uniform on all cells: W (E - 1) / (S + W E)."""
    return window * (growth - 1) / (steps + window * growth)


def window_decoded(growth: float, steps: int, window: int) -> Floats:
    """What each cell stands for, in units of [0, 1]: cells are as far apart as makes their mean the value."""
    away = np.arange(steps + window, dtype=np.float64) - (steps + window - 1) / 2
    decoded: Floats = 0.5 + away / (steps * window_share(growth, steps, window))
    return decoded


def window_variance(growth: float, steps: int, window: int, x: float) -> float:
    """The variance of what one report of the number x stands for, in units of [0, 1]; the worst case is x = 0 or 1.

    A report is uniform on W cells with probability p and uniform on M = S + W with 1 - p:
    (p (W^2 - 1) / 12 + (1 - p) (M^2 - 1) / 12 + p (1 - p) S^2 (x - 1/2)^2) / (p S)^2.
    """
    cells, follows = steps + window, window_share(growth, steps, window)
    within = follows * (window**2 - 1) / 12 + (1 - follows) * (cells**2 - 1) / 12
    return (within + follows * (1 - follows) * (steps * (x - 0.5)) ** 2) / (follows * steps) ** 2
