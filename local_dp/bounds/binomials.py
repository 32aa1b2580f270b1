"""The binomial law, where nearly all of it is."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_whole
from local_dp.errors import InputError


@dataclass(frozen=True)
class CountLaw:
    """How many there are: `sizes` k, ascending, and `shares` Pr[K = k], both of shape (s,), adding up to 1."""

    sizes: Counts
    shares: Floats

    @classmethod
    def binomial(cls, n: int, share: float) -> Self:
        """Of n records, each with probability `share`, within 13 standard deviations and 40 of the mean: 1e-30 lies beyond, and rounding is 1e-9."""
        check_whole("n", n, 0, 1 << 40)
        if not 0 < share < 1:
            raise InputError(f"share is {share}; give a number strictly between 0 and 1")
        mean = n * share
        away = 13 * math.sqrt(mean * (1 - share)) + 40
        sizes = np.arange(max(0, math.floor(mean - away)), min(n, math.ceil(mean + away)) + 1)
        steps = np.log((n - sizes[:-1]) / (sizes[:-1] + 1)) + math.log(share / (1 - share))
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        shares = np.exp(logs - logs.max())
        return cls(sizes, shares / shares.sum())

    @classmethod
    def always(cls, size: int) -> Self:
        """Exactly so many."""
        return cls(np.array([size]), np.array([1.0]))

    def mean(self, values: Floats) -> float:
        """E[value], `values` for each of the sizes."""
        return float(self.shares @ values)


def log_sum(logs: Floats) -> float:
    """ln of the sum of e^log; minus infinity of nothing."""
    most = float(logs.max(initial=-math.inf))
    return most + math.log(float(np.exp(logs - most).sum())) if math.isfinite(most) else most
