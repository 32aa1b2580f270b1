"""Summation with histogram encoding: discrete Laplace noise on each of k counts of 0 or 1; the server adds up."""

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.randomizers.frequencies.base import FrequencyOracle, OfSymbols, joint_of_places
from local_dp.randomizers.places import PlaceVector
from local_dp.randomizers.table import Law, TableChannel
from local_dp.tallies import Estimate, Joint, Tally

WIDEST = 127  # the widest window of reported sums, to either side
_TAIL = 32.0  # nats: beyond so many a report is rarer than 2^-46


@dataclass(frozen=True, kw_only=True)
class NoisyBit(TableChannel):
    """A bit plus discrete Laplace noise, Pr[y] = (1 - a) / (1 + a) a^|y|, a = e^-epsilon, clamped to -B..B + 1, which are the reports 0..2 B + 1."""

    name: ClassVar[str] = "noisy-bit"
    source: ClassVar[str] = "Ghosh, Roughgarden, Sundararajan 2009"

    def law(self) -> Law:
        a, ends = (-Decimal(self.nano) / NANO).exp(), (-self.reach, self.reach + 1)
        return [[a ** abs(y - bit) / (1 + a) * (1 if y in ends else 1 - a) for y in range(ends[0], ends[1] + 1)] for bit in (0, 1)]

    @property
    def reach(self) -> int:
        """B. Sums beyond it are reported as its ends, which loses nothing, because the geometric law has no memory."""
        return max(1, min(WIDEST - 1, int(_TAIL / 2 * NANO / self.nano)))

    @property
    def domain(self) -> Domain:
        return symbols(2)

    @cached_property
    def decoded(self) -> Floats:
        """The value of each report: the noisy count, the ends a / (1 - a) further out, scaled to means of exactly 0 and 1."""
        beyond = 1 / math.expm1(self.nano / NANO)
        count = np.arange(-self.reach, self.reach + 2, dtype=np.float64)
        count[[0, -1]] += -beyond, beyond
        none, one = self.weights.astype(np.float64) @ count / self.total
        stands: Floats = (count - none) / (one - none)
        return stands

    def estimate(self, tally: Tally) -> Estimate:
        """The share of ones."""
        n, counts = tally.answered, tally.counts[0]
        mean = counts @ self.decoded / n
        return Estimate(np.asarray(mean), np.sqrt(np.asarray(max(0.0, counts @ self.decoded**2 / n - mean**2) / n)), n)


@dataclass(frozen=True, kw_only=True)
class SHE(PlaceVector, FrequencyOracle, OfSymbols):
    """Reports for each symbol its count, 1 at the client's and 0 elsewhere, plus discrete Laplace noise of scale 2 / eps; the tally adds up.

    Privacy: the two counts that change lose eps / 2 each, enumerated over the window that noise is clamped to. Utility: each frequency has variance (2 a / (1
    - a)^2 + f (1 - f)) / n, a = e^(-eps / 2), about 8 / eps^2 (`bounds.frequencies.summed_variance`), a little less for eps below .2: always more than
    optimised unary encoding, so it is here for comparison. Cost: k bytes.
    """

    name: ClassVar[str] = "she"
    source: ClassVar[str] = "Wang, Blocki, Li, Jha 2017; on a lattice Ghosh, Roughgarden, Sundararajan 2009"

    def check(self) -> None:
        if self.nano < 2000:
            raise InputError(f"epsilon is {self.epsilon!r}; {self.name} needs at least 2e-6 nats")
        super().check()

    @cached_property
    def inner(self) -> NoisyBit:
        return NoisyBit(self.nano // 2 / NANO, word_bits=self.word_bits)

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.k, dtype=np.uint8)

    def _moments(self, tally: Tally) -> tuple[Floats, Floats]:
        """The mean and the mean square of the reported values of each symbol."""
        law = tally.counts / tally.answered
        return law @ self.inner.decoded, law @ self.inner.decoded**2

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,)."""
        mean, square = self._moments(tally)
        return Estimate(mean, np.sqrt(np.maximum(square - mean**2, 0.0) / tally.n), tally.n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        return joint_of_places(tally.answered, weights, *self._moments(tally))
