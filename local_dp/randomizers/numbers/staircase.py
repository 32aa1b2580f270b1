"""Staircase noise on a lattice, its endless tails folded into as many reports as the lattice has steps."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.loss import exp_epsilon
from local_dp.randomizers.numbers.base import NumberTable
from local_dp.randomizers.table import Law, as_decimal, precise


@dataclass(frozen=True, kw_only=True)
class Staircase(NumberTable):
    """Adds whole noise i of weight 1 for |i| < r, b = e^-eps for r <= |i| < S and b times less at each further S = steps, and folds the tails.

    Beyond the lattice the sums y and y + S differ by the factor b whatever the value, so the number of steps S reveals nothing. The report is the place
    modulo S, one of 3 S, and stands for the mean of the sums folded there. So the estimate is unbiased, with P[tail] S^2 b / (1 - b)^2 less variance than the
    noise, which is optimal among additive noise. Privacy: weights of two values have a ratio of at most e^eps. Utility: `folded_variance` at the best r; the
    noise alone, on the [-1, 1] scale, `bounds.means.staircase_variance`. Cost: log2(3 steps) bits.
    """

    name: ClassVar[str] = "staircase"
    source: ClassVar[str] = "Geng, Viswanath 2014 (Geng, Kairouz, Oh, Viswanath 2015), on a lattice"

    @property
    def stair(self) -> int:
        """r, the length of the first stair."""
        return best_stair(self.nano, self.steps)

    def law(self) -> Law:
        """Reports 0..S-1 are sums -S..-1 with what is below them, S..2S-1 are 0..S-1, 2S..3S-1 are S..2S-1 with what is above."""
        steps, stair, decay = self.steps, self.stair, 1 / as_decimal(self.growth)
        stairs = [Decimal(1) if place < stair else decay for place in range(steps)]
        weight = [each * decay**times for times in range(2) for each in stairs] + [decay**2]
        first = (1 - decay) / (2 * sum(stairs) - (1 - decay))
        folded = 1 / (1 - decay)
        rows = []
        for value in range(steps + 1):
            below = [first * folded * weight[value - place] for place in range(-steps, 0)]
            inside = [first * weight[abs(place - value)] for place in range(steps)]
            above = [first * folded * weight[place - value] for place in range(steps, 2 * steps)]
            rows.append([*below, *inside, *above])
        return rows

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            decay = 1 / as_decimal(self.growth)
            beyond = self.steps * float(decay * (1 / (1 - decay)))
        places = np.arange(-self.steps, 2 * self.steps, dtype=np.float64)
        places[: self.steps] -= beyond
        places[-self.steps :] += beyond
        return places / self.steps


def _first(growth: float, steps: int, stair: int) -> float:
    """The probability of noise 0: (1 - b) / (2 (r + b (S - r)) - (1 - b))."""
    decay = 1 / growth
    return (1 - decay) / (2 * (stair + decay * (steps - stair)) - (1 - decay))


def added_variance(growth: float, steps: int, stair: int) -> float:
    """The variance of the unfolded noise, in units of [0, 1]: 2 Pr[0] times the sum over k and s < S of b^k f(s) (k S + s)^2, f the two stairs."""
    decay = 1 / growth
    places = np.arange(steps)
    stairs = np.where(places < stair, 1.0, decay)
    moments = [float(stairs @ places**power) for power in range(3)]
    far = steps**2 * moments[0] * decay * (1 + decay) / (1 - decay) ** 3 + 2 * steps * moments[1] * decay / (1 - decay) ** 2 + moments[2] / (1 - decay)
    return 2 * _first(growth, steps, stair) * far / steps**2


def folded_variance(growth: float, steps: int, stair: int) -> Floats:
    """The variance of one report's value, in units of [0, 1], at every lattice point: the noise's less that of the folding; shape (steps + 1,)."""
    decay = 1 / growth
    stairs = np.where(np.arange(steps) < stair, 1.0, decay)
    further = float(stairs.sum()) * decay / (1 - decay)
    reached = np.append(further + np.append(np.cumsum(stairs[::-1])[::-1], 0.0), further - decay)  # Pr[noise >= u] / Pr[0], u = 0..S+1
    tails = _first(growth, steps, stair) * (reached[steps::-1] + reached[1:])
    folded: Floats = added_variance(growth, steps, stair) - tails * decay / (1 - decay) ** 2
    return folded


@lru_cache(maxsize=1024)
def best_stair(nano: int, steps: int) -> int:
    """The first stair of least worst-case variance."""
    growth = float(exp_epsilon(nano))
    return min(range(1, steps + 1), key=lambda stair: float(folded_variance(growth, steps, stair).max()))
