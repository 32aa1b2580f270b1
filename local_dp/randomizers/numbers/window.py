"""Numbers reported within a window of the true one: the piecewise mechanism, the square wave, and
the hybrid with one bit."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.table import MAX_STEPS, Law, NumberTable, as_decimal


@dataclass(frozen=True, kw_only=True)
class Window(NumberTable):
    """Reports one of S + W cells: for value v of 0..S each of the W cells v..v+W-1 is e^eps times
    as likely as each of the S others.

    All values have W likely cells, so Pr[likely cell] = E / (S + W E), E = e^eps, without a
    normaliser that leaks. The mean of a report is linear in v, so a linear decoding is unbiased;
    its variance is `window_variance`. Cost: log2(S + W) bits.
    """

    @property
    @abstractmethod
    def window(self) -> int:
        """W, 1 or more."""

    def law(self) -> Law:
        return window_law(as_decimal(self.growth), self.steps, self.window)

    @cached_property
    def decoded(self) -> Floats:
        return window_decoded(float(self.growth), self.steps, self.window)


def window_law(growth: Decimal, steps: int, window: int) -> list[list[Decimal]]:
    """Pr[cell | value], shape (steps + 1, steps + window)."""
    other = 1 / (steps + window * growth)
    return [
        [
            other * growth if value <= cell < value + window else other
            for cell in range(steps + window)
        ]
        for value in range(steps + 1)
    ]


def window_share(growth: float, steps: int, window: int) -> float:
    """The probability that a report follows the value at all, and is not uniform on all cells: W (E
    - 1) / (S + W E)."""
    return window * (growth - 1) / (steps + window * growth)


def window_decoded(growth: float, steps: int, window: int) -> Floats:
    """The value of each cell, in units of [0, 1]: cells are so far apart that their mean is the
    number."""
    away = np.arange(steps + window, dtype=np.float64) - (steps + window - 1) / 2
    return 0.5 + away / (steps * window_share(growth, steps, window))


def window_variance(growth: float, steps: int, window: int, x: float) -> float:
    """The variance of the value of one report of the number x, in units of [0, 1]; worst at x = 0
    or 1.

    A report is uniform on W cells with probability p, else on M = S + W: (p (W^2 - 1) / 12 + (1 -
    p) (M^2 - 1) / 12 + p (1 - p) S^2 (x - 1/2)^2) / (p S)^2.
    """
    cells, follows = steps + window, window_share(growth, steps, window)
    within = follows * (window**2 - 1) / 12 + (1 - follows) * (cells**2 - 1) / 12
    return (within + follows * (1 - follows) * (steps * (x - 0.5)) ** 2) / (follows * steps) ** 2


@dataclass(frozen=True, kw_only=True)
class Piecewise(Window):
    """Reports a number near the true one with a probability e^eps times as high as any number
    elsewhere, on a lattice.

    The window has `likely` cells; 0, the default, takes the number of least worst variance. The
    paper's steps / r, r = e^(eps/2), is best at small epsilon and has 1.5 times the best variance
    at epsilon 4. Privacy: two weights, of ratio at most e^eps. Utility: `window_variance`, worst at
    either end; with the paper's window on a fine lattice, on the [-1, 1] scale, t^2 / (r - 1) + (r
    + 3) / (3 (r - 1)^2). Better than one bit from epsilon 1.2
    on. Cost: log2(steps + likely) bits.
    """

    name = "piecewise"
    summary = "Reports a number from a window around the true one"
    source = "Wang et al. 2019, Algorithm 2, on a lattice"

    likely: int = 0

    def check(self) -> None:
        if type(self.likely) is not int or not 0 <= self.likely <= MAX_STEPS:
            raise InputError(
                f"the window has {self.likely!r} cells; give a whole number from 1 to "
                f"{MAX_STEPS}, or 0 for the best"
            )
        super().check()

    @property
    def window(self) -> int:
        return self.likely or best_window(self.nano, self.steps)


@lru_cache(maxsize=1024)
def best_window(nano: int, steps: int) -> int:
    """The width of least worst-case variance."""
    growth = float(exp_epsilon(nano))
    return min(range(1, steps + 1), key=lambda window: window_variance(growth, steps, window, 1.0))


@dataclass(frozen=True, kw_only=True)
class SquareWave(Window):
    """Reports a number within b of the true one with a probability e^eps times as high as any other
    from -b to 1 + b, on a lattice.

    b = (eps E - E + 1) / (2 E (E - 1 - eps)), E = e^eps, maximises a bound on mutual information;
    the window has round(2 b steps) cells, 1 at least. Privacy: two weights, of ratio at most e^eps.
    Utility: the mean is unbiased, of variance `window_variance`; its purpose is the distribution of
    the numbers, by `postprocessing.steps`, a step that never runs by itself. Cost: log2(steps +
    window) bits.
    """

    name = "square-wave"
    summary = "Reports a number from a square window around the true one"
    source = "Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020, Section 5, on a lattice"

    @property
    def window(self) -> int:
        return max(1, math.floor(2 * wave_width(self.nano) * self.steps + Fraction(1, 2)))


@lru_cache(maxsize=1024)
def wave_width(nano: int) -> Fraction:
    """b, to 1e-30: half the window, in units of [0, 1]. From 1/2 at epsilon 0 to 0."""
    with localcontext(prec=80):
        growth, epsilon = as_decimal(exp_epsilon(nano)), Decimal(nano) / 10**9
        return Fraction(
            (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
        ).limit_denominator(10**30)


@dataclass(frozen=True)
class Mix:
    """The window's width, the share of clients that use it, and the worst variance of their
    estimates. At share 0 all clients report one bit."""

    window: int
    share: float
    worst: float


@dataclass(frozen=True, kw_only=True)
class Hybrid(NumberTable):
    """Reports by `piecewise` with probability b, and one bit as `one-bit-mean` otherwise; the
    report shows which.

    b makes the variance the same at every x: 1 - e^(-eps/2) on fine lattices; up to epsilon .61 one
    bit alone is better, and b is 0. Privacy: a mixture, by a coin that ignores the value, of two
    channels that lose eps each. Utility: on the [-1, 1] scale (r + 3) / (3 r (r - 1)) + C^2 / r, r
    = e^(eps/2): less than both, at every epsilon above .61. Cost:
    log2(steps + window + 2) bits.
    """

    name = "hybrid"
    summary = "Reports by piecewise or by one bit, at random"
    source = "Wang et al. 2019, Section III-C, on a lattice"

    @property
    def mix(self) -> Mix:
        return best_mix(self.nano, self.steps)

    def law(self) -> Law:
        mix, growth = self.mix, self.growth
        follows = Decimal(mix.share)
        slope = as_decimal((growth - 1) / (growth + 1)) / (2 * self.steps)
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
    """The width and the share of least worst variance. Both variances are linear in (2x - 1)^2, one
    rising and one falling, so the best share levels them."""
    growth = float(exp_epsilon(nano))
    # the least (2x - 1)^2 on the lattice
    gain, least = (
        (growth + 1) / (growth - 1),
        (steps % 2 / steps) ** 2,
    )
    choices = [Mix(1, 0.0, (gain**2 - least) / 4)]
    for window in range(1, steps + 1):
        middle, end = (window_variance(growth, steps, window, x) for x in (0.5, 1.0))
        share = 1 / (1 + 4 * (end - middle))
        at = middle + least * (end - middle)
        choices.append(Mix(window, share, share * at + (1 - share) * (gain**2 - least) / 4))
    return min(choices, key=lambda mix: mix.worst)
