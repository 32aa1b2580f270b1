"""PCKV: of keys with numbers, how many hold each key, and the mean of its numbers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.checks import check_whole
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.randomizers.frequencies.base import seen_joint
from local_dp.randomizers.sets.base import MAX_VALUES, Padded
from local_dp.tallies import Estimate, Ratio, Tally


@dataclass(frozen=True, kw_only=True)
class PCKV(Padded):
    """Tells one of a client's keys, filled up to `limit` with dummies, and the sign to which its number is rounded, by one randomized response (PCKV-GRR).

    A record is a number of k digits in base steps + 2, the least one that of key 0: 0 where the key is missing, and 1 + v for the number 2 v / steps - 1 in
    [-1, 1]. Estimated are, for each key, the share f of clients that hold it, and then, for each, the sum m of its numbers over all clients, divided by n;
    `means` are the quotients. Of more than `limit` keys each counts limit / their number. Privacy: (s + g) / s <= e^eps with 1 = (2 k + L) s + L g, the
    paper's best split between key and number. Utility: f has variance l (1 - l) / (n g^2), l = 2 s + f g, and m has (l / g^2 - m^2) / n (`pckv_variances`).
    Cost: log2(2 k + L) bits. 1 <= limit <= k, (steps + 2)^k <= 4096.
    """

    name: ClassVar[str] = "pckv"
    source: ClassVar[str] = "Gu, Li, Cheng, Xiong, Cao 2020 (PCKV-GRR)"
    estimates: ClassVar[str] = "for each key the share that holds it, and the sum of its numbers by the number of clients"
    steps: int = 2

    @property
    def domain(self) -> Domain:
        return key_values(self.k, self.steps, MAX_VALUES)

    @property
    def digits(self) -> Ints:
        """Of each record, shape (values, k)."""
        return digits_of(np.arange(self.domain.size), self.k, self.steps)

    @property
    def held(self) -> Bools:
        held: Bools = self.digits > 0
        return held

    @property
    def signs(self) -> int:
        return 2

    @property
    def fineness(self) -> int:
        return self.steps

    def spread(self, gains: Ints) -> Ints:
        """Plus signs of all keys, then minus signs."""
        level, steps = np.maximum(self.digits - 1, 0).astype(np.uint64), np.uint64(self.steps)
        plus = gains // steps * level + gains % steps * level // steps
        return np.concatenate([plus, gains - plus], axis=1)

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares and the k sums, unbiased where no client has more than `limit` keys, shape (2 k,)."""
        n, (base, gain) = tally.answered, self.odds
        plus, minus = self.seen(tally.counts).reshape(2, self.k) / n
        share, total = (plus + minus - 2 * base) / gain, (plus - minus) / gain
        spread = np.concatenate([(plus + minus) * (1 - plus - minus), plus + minus - (plus - minus) ** 2])
        return Estimate(np.concatenate([share, total]), np.sqrt(spread / n) / gain, n)

    def means(self, tally: Tally) -> Ratio:
        """The mean in [-1, 1] of each key's numbers over those who hold it, shape (k,), with Fieller's interval."""
        base, gain = self.odds
        stands, keys = np.zeros((2 * self.k, 1, self.alphabet)), np.arange(self.k)
        stands[: self.k] = -2 * base / gain
        for sign, first in ((1, 0), (-1, self.k)):
            stands[keys, 0, first + keys] += 1 / gain
            stands[self.k + keys, 0, first + keys] = sign / gain
        return seen_joint(tally, stands).ratio(slice(self.k, None), slice(0, self.k), -1.0, 1.0)


def key_values(k: int, steps: int, most: int) -> Domain:
    """Records of k keys, each missing or with a number of `steps` steps, as one number of k digits in base steps + 2. Raises InputError beyond `most`."""
    check_whole("k", k, 1, most.bit_length())
    check_whole("steps", steps, 1, most - 2)
    if (steps + 2) ** k > most:
        raise InputError(f"{k} keys with numbers of {steps} steps make more than {most} records; give fewer of either")
    return Domain("key values", 0, (steps + 2) ** k - 1)


def digits_of(records: Ints, k: int, steps: int) -> Ints:
    """Of each record, shape (values, k)."""
    digits: Ints = records[:, None] // (steps + 2) ** np.arange(k) % (steps + 2)
    return digits


def pckv_variances(epsilon: float, k: int, limit: int, share: float, total: float) -> tuple[float, float]:
    """n times the variances of the share f of a key and of the sum m of its numbers, divided by n: l (1 - l) / g^2 and l / g^2 - m^2, l = 2 s + f g.

    s = 1 / (2 k + L e^eps), g = (e^eps - 1) s, for clients with at most L keys.
    """
    base = 1 / (2 * k + limit * np.exp(epsilon))
    gain = np.expm1(epsilon) * base
    seen = 2 * base + share * gain
    return float(seen * (1 - seen) / gain**2), float(seen / gain**2 - total**2)
