"""Discrete Laplace noise on a lattice: clamped to its range, or cut off there and renormalised."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.loss import NANO
from local_dp.randomizers.numbers.base import NumberTable
from local_dp.randomizers.table import Law, as_decimal, precise

_ROUNDING = Decimal("1e-7")  # nats kept back so that rounded tables never exceed epsilon


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(NumberTable):
    """Adds two-sided geometric noise of ratio a = e^(-eps/steps) to a lattice value and clamps the sum to the lattice.

    Pr[w | v] = a^|w - v| (1 - a) / (1 + a) inside and a^|w - v| / (1 + a) at either end: a ratio of at most a^(-steps), so eps-local. Decoding adds a / (1 -
    a) beyond the ends. Because the geometric law has no memory, the estimate is unbiased at every point, with less variance than unclamped noise
    (`bounds.means.discrete_laplace_variances`). The table is built for epsilon - 1e-7, which covers the rounding to whole numbers over 2^64; narrow words
    round with a bias. Cost: log2(steps + 1) bits.
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


@dataclass(frozen=True, kw_only=True)
class BoundedLaplace(NumberTable):
    """Reports lattice point w with probability a^|w - v| / Z(v), a^S = e^-eps for S = steps, Z(v) the sum over the lattice.

    Privacy: at w = 0 the ratio against value d is a^-d Z(d) / Z(0). It rises with d up to a^-S at d = S, where Z is the same again: eps. Only values that
    differ by less than the range would need a larger scale than unbounded noise. Utility: the channel's inverse, three diagonals, decodes without bias, at a
    price (`bounds.means.bounded_laplace_variances`): clamped noise, `discrete-laplace`, is better for a mean. Cost: log2(steps + 1) bits.
    """

    name: ClassVar[str] = "bounded-laplace"
    source: ClassVar[str] = "Holohan, Antonatos, Braghin, Mac Aonghusa 2020, on a lattice"

    @property
    def _decay(self) -> Decimal:
        """a."""
        return (-as_decimal(self.growth).ln() / self.steps).exp()

    def law(self) -> Law:
        decay, points = self._decay, range(self.steps + 1)
        sums, powers = _sums(decay, self.steps), [decay**away for away in points]
        return [[powers[abs(report - value)] / sums[value] for report in points] for value in points]

    @cached_property
    def decoded(self) -> Floats:
        with precise():
            decay = self._decay
            sums = _sums(decay, self.steps)
            return _inverse([sums[value] * value / self.steps for value in range(self.steps + 1)], decay)


def _sums(decay: Decimal, steps: int) -> list[Decimal]:
    """Z(v) for every v."""
    powers = [Decimal(1)]
    for _ in range(steps):
        powers.append(powers[-1] * decay)
    upward = [Decimal(0)]
    for power in powers:
        upward.append(upward[-1] + power)
    return [upward[value + 1] + upward[steps - value + 1] - 1 for value in range(steps + 1)]


def _inverse(wanted: list[Decimal], decay: Decimal) -> Floats:
    """g with sum over w of a^|w - v| g(w) = wanted(v): the inverse of that matrix has three diagonals, over 1 - a^2."""
    last, square = len(wanted) - 1, decay * decay
    found = []
    for place, here in enumerate(wanted):
        beside = sum(wanted[other] for other in (place - 1, place + 1) if 0 <= other <= last)
        found.append(float((here * (1 if place in (0, last) else 1 + square) - decay * beside) / (1 - square)))
    return np.array(found)
