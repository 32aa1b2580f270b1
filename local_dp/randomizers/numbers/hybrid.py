"""The hybrid mechanism: the piecewise one with some probability, and one bit otherwise."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.base import NumberTable
from local_dp.randomizers.numbers.window import window_decoded, window_law, window_variance
from local_dp.randomizers.table import Law, as_decimal


@dataclass(frozen=True)
class Mix:
    """The window's width, the share of clients who use it, and the worst variance of their estimates; a share of 0 is one bit from everybody."""

    window: int
    share: float
    worst: float


@dataclass(frozen=True, kw_only=True)
class Hybrid(NumberTable):
    """Reports by `piecewise` with probability b, and one bit as `one-bit-mean` otherwise; which of the two is seen.

    b makes the variance the same at every x: 1 - e^(-eps/2) on fine lattices; up to epsilon .61 one bit alone is better, and b is 0.
    Privacy: a mixture, by a coin that does not look at the value, of two channels that lose eps each. Utility: on the [-1, 1] scale (r + 3) / (3 r (r - 1)) +
    C^2 / r, r = e^(eps/2) (`bounds.means.hybrid_variance`): less than one bit's C^2 and piecewise's worst case, at every epsilon above .61.
    Cost: log2(steps + window + 2) bits.
    """

    name: ClassVar[str] = "hybrid"
    source: ClassVar[str] = "Wang et al. 2019, Section III-C, on a lattice"

    @property
    def mix(self) -> Mix:
        """What it chooses of windows and shares."""
        return best_mix(self.nano, self.steps)

    def law(self) -> Law:
        mix, growth = self.mix, self.growth
        follows, slope = Decimal(mix.share), as_decimal((growth - 1) / (growth + 1)) / (2 * self.steps)
        rows = []
        for value, row in enumerate(window_law(as_decimal(growth), self.steps, mix.window)):
            one = (1 - follows) * (Decimal("0.5") + (2 * value - self.steps) * slope)
            rows.append([*(follows * each for each in row if mix.share), 1 - follows - one, one])
        return rows

    @cached_property
    def decoded(self) -> Floats:
        mix, growth = self.mix, self.growth
        gain = float((growth + 1) / (growth - 1))
        cells = window_decoded(float(growth), self.steps, mix.window) if mix.share else np.zeros(0)
        return np.concatenate([cells, [(1 - gain) / 2, (1 + gain) / 2]])


@lru_cache(maxsize=1024)
def best_mix(nano: int, steps: int) -> Mix:
    """The width and the share of least worst variance. Both variances are linear in (2x - 1)^2, one rising and one falling, so the best share levels them."""
    growth = float(exp_epsilon(nano))
    gain, least = (growth + 1) / (growth - 1), (steps % 2 / steps) ** 2  # the least (2x - 1)^2 on the lattice
    choices = [Mix(1, 0.0, (gain**2 - least) / 4)]
    for window in range(1, steps + 1):
        middle, end = (window_variance(growth, steps, window, x) for x in (0.5, 1.0))
        share = 1 / (1 + 4 * (end - middle))
        at = middle + least * (end - middle)
        choices.append(Mix(window, share, share * at + (1 - share) * (gain**2 - least) / 4))
    return min(choices, key=lambda mix: mix.worst)
