"""Padding and sampling: how many hold each item, where everybody holds a set of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools
from local_dp.checks import check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.randomizers.sets.base import Padded
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class PaddingSampling(Padded):
    """Tells one item of a set of some of k, filled up to `limit` members with dummies, by randomized response over k + limit symbols.

    A value is the set as a number, bit j for item j. Estimated are the shares of clients that hold each item; of a set of m > limit items each counts
    limit / m. Privacy: (s + g) / s <= e^eps, with 1 = (k + L) s + L g: as much as response at ln(L (e^eps - 1) + 1) without sampling. Utility: each share
    has variance l (1 - l) / (n g^2), l = s + f g (`padded_variance`). Cost: log2(k + L) bits. 1 <= limit <= k <= 12.
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
        held: Bools = np.arange(1 << self.k)[:, None] >> np.arange(self.k) & 1 > 0
        return held

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares, unbiased where no set has more than `limit` items, shape (k,)."""
        n, (base, gain) = tally.answered, self.odds
        return Estimate.between((-base / gain, (1 - base) / gain), (self.seen(tally.counts) / n - base) / gain, n)


def padded_variance(epsilon: float, k: int, limit: int, share: float) -> float:
    """n times the variance of the share of an item that `share` of the clients hold, in sets of at most `limit`: l (1 - l) / g^2, l = s + f g.

    s = 1 / (k + L e^eps), g = (e^eps - 1) s.
    """
    base = 1 / (k + limit * np.exp(epsilon))
    gain = np.expm1(epsilon) * base
    seen = base + share * gain
    return float(seen * (1 - seen) / gain**2)
