"""The piecewise mechanism: a window as wide as makes the worst variance of a mean least."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.window import Window, window_variance


@dataclass(frozen=True, kw_only=True)
class Piecewise(Window):
    """Reports a number near the own one with a probability e^eps times as high as any number elsewhere, on a lattice.

    Privacy: two weights, of ratio at most e^eps. Utility: on the [-1, 1] scale variance t^2 / (r - 1) + (r + 3) / (3 (r - 1)^2) for fine lattices, r =
    e^(eps/2), worst at t = +-1: 4 r / (3 (r - 1)^2) (`bounds.numbers.piecewise_variance`); on this lattice `window_variance`, at the best whole window, about
    steps / r wide. Better than one bit from epsilon 1.29 on, for the mean of these very numbers. Cost: log2(steps + window) bits.
    """

    name: ClassVar[str] = "piecewise"
    source: ClassVar[str] = "Wang et al. 2019, Algorithm 2, on a lattice"

    @property
    def window(self) -> int:
        return best_window(self.nano, self.steps)


@lru_cache(maxsize=1024)
def best_window(nano: int, steps: int) -> int:
    """The width of least worst-case variance: about steps e^(-eps/2)."""
    growth = float(exp_epsilon(nano))
    return min(range(1, steps + 1), key=lambda window: window_variance(growth, steps, window, 1.0))
