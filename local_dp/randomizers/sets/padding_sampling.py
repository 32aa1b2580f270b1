"""Padding and sampling: a set is filled up with dummies, and one of its members is reported by randomized response."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Words
from local_dp.checks import check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import ceil_fraction, too_narrow
from local_dp.randomizers.table import TableChannel
from local_dp.tallies import Estimate, Tally

MAX_VALUES = 4096  # sets


@dataclass(frozen=True, kw_only=True)
class Padded(TableChannel):
    """A set of fewer than `limit` = L of k items gets dummies up to L members; one member is drawn, of larger sets too, and randomized.

    Every report has weight s whatever the set; each of L members has g more, each of m > L members g L / m. No member is drawn with a chance above 1 / L, so
    g is L times larger: (s + g) / s = e^epsilon (amplification by sampling). Cost: log2 of the number of reports. The table has at most 4096 rows.
    """

    k: int = 2
    limit: int = 2

    @property
    @abstractmethod
    def held(self) -> Bools:
        """Which items are in each set, shape (values, k)."""

    @property
    def fineness(self) -> int:
        """A divisor that g must have."""
        return 1

    def spread(self, gains: Ints) -> Ints:
        """The gains of the reports of the items, from those of the items, shape (values, k)."""
        return gains

    def check(self) -> None:
        super().check()
        check_whole("limit", self.limit, 1, self.k)

    @property
    def signs(self) -> int:
        """The reports of an item: two where it comes with a sign."""
        return 1

    def table(self) -> Words:
        reports = self.signs * self.k + self.limit
        base, gain = self._split
        held = self.held
        sizes = held.sum(axis=1, keepdims=True)
        all_gains = [divmod(gain * self.limit, max(size, self.limit)) for size in range(self.k + 1)]
        each, over = (np.array(part, dtype=np.uint64)[sizes] for part in zip(*all_gains, strict=True))
        gains = np.where(held, each + (np.cumsum(held, axis=1).astype(np.uint64) <= over), np.uint64(0))
        dummies = np.where(np.arange(self.limit)[None, :] < self.limit - sizes, np.uint64(gain), np.uint64(0))
        table: Words = np.concatenate([self.spread(gains), dummies], axis=1) + np.uint64(base)
        table[:, -1] += np.uint64(self.total - reports * base - self.limit * gain)  # what rounding left over: the same for all
        return table

    @cached_property
    def _split(self) -> tuple[int, int]:
        """The weights s and g. Raises InputError if words are too narrow."""
        reports = self.signs * self.k + self.limit
        base = ceil_fraction(self.total / (reports + self.limit * (exp_epsilon(self.nano) - 1)))
        gain = (self.total - reports * base) // (self.limit * self.fineness) * self.fineness
        if gain < 1:
            raise too_narrow(self)
        return base, gain

    @property
    def odds(self) -> tuple[float, float]:
        """s and g over 2^word_bits: the chance of each report whatever the set, and the extra chance of a member of a set of at most L."""
        base, gain = self._split
        return base / self.total, gain / self.total

    def seen(self, counts: Counts) -> Counts:
        """The counts of the reports that name an item."""
        return counts[0, : self.alphabet - self.limit]


@dataclass(frozen=True, kw_only=True)
class PaddingSampling(Padded):
    """Reports one item of a set of some of k, filled up to `limit` members with dummies, by randomized response over k + limit symbols.

    A value is the set as a number, bit j for item j. It estimates the share of clients with each item; of a set of m > limit items each counts limit / m.
    Privacy: (s + g) / s <= e^eps, with 1 = (k + L) s + L g: as much as response at ln(L (e^eps - 1) + 1) without sampling. Utility: each share has variance l
    (1 - l) / (n g^2), l = s + f g (`padded_variance`). Cost: log2(k + L) bits. 1 <= limit <= k <= 12.
    """

    name: ClassVar[str] = "padding-sampling"
    source: ClassVar[str] = "Wang, Li, Jha 2018"
    estimates: ClassVar[str] = "the shares of clients whose set has each item"
    k: int = 3

    def check(self) -> None:
        check_whole("k", self.k, 1, 12)
        super().check()

    @property
    def domain(self) -> Domain:
        return bit_strings(self.k)

    @property
    def held(self) -> Bools:
        return np.arange(1 << self.k)[:, None] >> np.arange(self.k) & 1 > 0

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares, unbiased where no set has more than `limit` items, shape (k,)."""
        n, (base, gain) = tally.answered, self.odds
        return Estimate.between((-base / gain, (1 - base) / gain), (self.seen(tally.counts) / n - base) / gain, n)


def padded_variance(epsilon: float, k: int, limit: int, share: float) -> float:
    """n times the variance of an item's share, for sets of at most `limit` items: l (1 - l) / g^2, l = s + f g.

    s = 1 / (k + L e^eps), g = (e^eps - 1) s.
    """
    base = 1 / (k + limit * np.exp(epsilon))
    gain = np.expm1(epsilon) * base
    seen = base + share * gain
    return float(seen * (1 - seen) / gain**2)
