"""The piecewise mechanism: reports near the own number are likelier, in a window of the best width for a mean."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.base import MAX_STEPS
from local_dp.randomizers.numbers.window import Window, window_variance


@dataclass(frozen=True, kw_only=True)
class Piecewise(Window):
    """Reports a number near the own one with a probability e^eps times as high as any number elsewhere, on a lattice.

    The window has `likely` cells; 0, the default, is as many as make the worst variance least. The paper's has steps / r, r = e^(eps/2): best at small epsilon,
    1.5 times the variance of the best at epsilon 4.
    Privacy: two weights, of ratio at most e^eps. Utility: variance `window_variance`, worst at either end; with the paper's window on a fine lattice, on the
    [-1, 1] scale, t^2 / (r - 1) + (r + 3) / (3 (r - 1)^2) (`bounds.numbers.piecewise_variance`). Better than one bit from epsilon 1.2 on, for the mean of these
    very numbers. Cost: log2(steps + likely) bits.
    """

    name: ClassVar[str] = "piecewise"
    source: ClassVar[str] = "Wang et al. 2019, Algorithm 2, on a lattice"

    likely: int = 0

    def prepare(self) -> None:
        if type(self.likely) is not int or not 0 <= self.likely <= MAX_STEPS:
            raise InputError(f"the window has {self.likely!r} cells; give a whole number from 1 to {MAX_STEPS}, or 0 for the best")
        super().prepare()

    @property
    def window(self) -> int:
        return self.likely or best_window(self.nano, self.steps)


@lru_cache(maxsize=1024)
def best_window(nano: int, steps: int) -> int:
    """The width of least worst-case variance."""
    growth = float(exp_epsilon(nano))
    return min(range(1, steps + 1), key=lambda window: window_variance(growth, steps, window, 1.0))
