"""Noise on the counts of cells: each cell's count plus discrete Laplace noise, told from a least value on, up to a public top."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Naturals
from local_dp.curator.inversion import discrete_laplaces, exp_minus
from local_dp.curator.multisets import Multiset, naturals
from local_dp.draws import Draws
from local_dp.loss import NANO, exp_epsilon


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What a sanitizer says of `size` records: `values` ascending, shape (s,), with noisy `counts`, shape (s,); every other point counts 0."""

    bits: int
    values: Naturals
    counts: Counts
    size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisyCounts) and self._whole == other._whole

    def __hash__(self) -> int:
        return hash(self._whole)

    @cached_property
    def _whole(self) -> tuple[object, ...]:
        return self.bits, self.size, tuple(self.values.tolist()), tuple(self.counts.tolist())

    def at(self, points: Naturals) -> Counts:
        """The noisy count of each point. Raises InputError for points outside the domain."""
        return look_up(self.values, self.counts, naturals(points, self.bits))

    def worst_error(self, points: Multiset, together: int = 1) -> int:
        """The largest |noisy - true| count over all sets of exactly `together` points of the domain: the largest errors of one sign."""
        told = np.unique(np.concatenate([self.values, points.values]))
        errors = look_up(self.values, self.counts, told) - look_up(points.values, points.counts, told)
        others = min(together, (1 << self.bits) - len(told))  # points without records of which nothing is told: no error
        ordered = np.sort(np.concatenate([errors, np.zeros(others, dtype=np.int64)]))
        return max(abs(int(ordered[:together].sum())), abs(int(ordered[::-1][:together].sum())))


def look_up(values: Naturals, counts: Counts, points: Naturals) -> Counts:
    """The count of each point, 0 where it is none of the ascending `values`."""
    found = np.zeros(len(points), dtype=np.int64)
    if len(values):
        places = np.minimum(np.searchsorted(values, points), len(values) - 1)
        held = np.asarray(values[places] == points, dtype=bool)
        found[held] = counts[places[held]]
    return found


@dataclass(frozen=True)
class CellNoise:
    """count + Y with Pr[Y = y] proportional to e^(-e |y|), e = `nano` / 1e9 nats; told from `least` on and at most as `top`.

    Privacy: a count that moves by one moves the law by e^e. Enumerated with e^e, which is no fraction, replaced by one just below it (gap 1e-50).
    """

    nano: Fraction
    least: int

    def drawn(self, counts: Counts, top: int, draws: Draws) -> Counts:
        """The noisy counts, those below `least` as 0, shape of `counts`."""
        noisy = counts + discrete_laplaces(draws, self.nano / NANO, len(counts))
        return np.where(noisy >= self.least, np.minimum(noisy, max(top, self.least)), 0)

    def law(self, count: int, top: int) -> Mapping[int, Fraction]:
        """Pr[each outcome] of a cell; 0 stands for not told."""
        top = max(top, self.least)
        reached = {told: self.beyond(told - count) for told in range(self.least, top + 1)}
        inside = {told: reached[told] - reached[told + 1] for told in range(self.least, top)}
        return {0: 1 - reached[self.least], **inside, top: reached[top]}

    def beyond(self, y: int) -> Fraction:
        """Pr[Y >= y]."""
        growth = exp_epsilon(self.nano)
        return 1 / (growth ** (y - 1) * (growth + 1)) if y > 0 else 1 - 1 / (growth**-y * (growth + 1))

    @staticmethod
    def least_beyond(nano: Fraction, share: Fraction) -> int:
        """The least y >= 1 with Pr[Y >= y] = e^(-e y) / (1 + e^-e) <= share: in decimals, rounded against the claim."""
        with localcontext() as context:
            context.prec = 60
            decay = exp_minus(nano / NANO)
            most = Decimal(share.numerator) / share.denominator
            return max(1, math.ceil((most * (1 + decay)).ln() / decay.ln() + Decimal(10) ** -40))
