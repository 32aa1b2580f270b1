"""Tracking a change: in which interval of time it falls, told bit by bit as the intervals end, at the loss of one answer."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.domains import MAX_SYMBOLS, Domain, symbols
from local_dp.loss import nano_epsilon
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.finite import too_narrow
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.one_bit import flip_weight, loses_little
from local_dp.randomizers.randomizer import Work
from local_dp.tallies import Estimate, Joint, Tally


@dataclass(frozen=True, kw_only=True)
class ChangeTracking(BitVector, FrequencyOracle):
    """A bit for each of so many intervals of time, 1 with probability p where the one change of which it tells falls into it, else with q; or it never comes.

    Bit j follows from the value up to the end of interval j alone, so a report may be sent a bit at a time; all bits together are one report of one loss,
    whatever the life. Privacy: two lives differ at two places, by p / q and (1 - q) / (1 - p): at p = 1/2, q = 1 / (e^eps + 1), as of optimised unary
    encoding; a single interval is a plain bit, 1 - p = q. Utility: the share of changes in m intervals, S of all, has variance
    (m q (1 - q) + S (p (1 - p) - q (1 - q))) / (n (p - q)^2) + S (1 - S) / n (`bounds.tracking.events_variance`). Cost: a bit an interval. Values: the
    interval, or `intervals` for never.
    """

    name: ClassVar[str] = "change-tracking"
    source: ClassVar[str] = "Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta 2019 (one sampled order and change); unary in place of signs"
    work: ClassVar[Work] = "repeated surveys"
    intervals: int = 2

    def check(self) -> None:
        check_whole("intervals", self.intervals, 1, MAX_SYMBOLS - 1)

    def prepare(self) -> None:
        if self.ones[1] <= self.ones[0]:
            raise too_narrow(self)

    def _fits(self, bits: int) -> bool:
        (flip, _), total = self._weights(bits), 1 << bits
        return loses_little(total - flip, flip, nano_epsilon(self.epsilon))

    def _weights(self, bits: int) -> tuple[int, int]:
        """The weights of a 1 where the change is not, and where it is."""
        flip = flip_weight(nano_epsilon(self.epsilon), bits)
        return flip, 2**bits - flip if self.intervals == 1 else 2**bits // 2

    @cached_property
    def ones(self) -> tuple[int, int]:
        return self._weights(self.word_bits)

    @cached_property
    def code(self) -> Ints:
        return np.eye(self.intervals + 1, self.intervals, dtype=np.uint8)

    @property
    def domain(self) -> Domain:
        return symbols(self.intervals + 1)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Linear functions of the shares of each interval and of never; (b - q) / (p - q) at two places multiply to 0 on average, as in unary encoding."""
        each, square = self._moments(tally)
        against = weights[:, :-1] - weights[:, -1:]  # never is 1 less the intervals
        mean = against @ each
        return Joint(mean + weights[:, -1], ((against * square) @ against.T - np.outer(mean, mean)) / tally.n, tally.n)

    def _moments(self, tally: Tally) -> tuple[Floats, Floats]:
        """The mean and the mean square of what a report stands for at each interval, (b - q) / (p - q)."""
        n, p, q = tally.answered, self.ones[1] / self.total, self.ones[0] / self.total
        seen = tally.counts / n
        return (seen - q) / (p - q), (seen * (1 - q) ** 2 + (1 - seen) * q**2) / (p - q) ** 2

    def estimate(self, tally: Tally) -> Estimate:
        """The share of each interval and of never, unbiased, shape (intervals + 1,)."""
        each, square = self._moments(tally)
        mean, squares = np.append(each, -each.sum()), np.append(square, square.sum())
        value = np.append(each, 1 - each.sum())
        return Estimate(value, np.sqrt(np.maximum(squares - mean**2, 0.0) / tally.n), tally.n)
