"""What frequency oracles share: shares of k symbols, and any linear functions of them with their covariance."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.cube import walsh_hadamard
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Joint, Tally


@dataclass(frozen=True)
class FrequencyOracle(Randomizer):
    """A randomizer whose tally estimates the shares of `shares` symbols without bias."""

    @property
    def shares(self) -> int:
        """How many shares it estimates: one for each symbol that it takes."""
        return self.domain.size

    @abstractmethod
    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Unbiased estimates of `weights` @ shares, weights of shape (m, shares), with the covariance that the reports themselves show."""


@dataclass(frozen=True)
class FiniteOracle(FrequencyOracle, FiniteChannel):
    """A frequency oracle that is a finite channel: many tallies can be drawn from the law of one report, and estimated from at once."""

    @abstractmethod
    def values(self, counts: Counts) -> Floats:
        """The estimated shares from each of several tallies' counts, shape (..., cells, alphabet) to (..., shares)."""


def direct_values(counts: Counts, truth: float, other: float) -> Floats:
    """`FiniteOracle.values` where a report names a symbol: the true one with probability `truth`, each other one with probability `other`."""
    seen: Floats = counts[..., 0, :] / counts.sum(axis=(-2, -1))[..., None]
    return (seen - other) / (truth - other)


def hadamard_values(counts: Counts, gain: float, shares: int) -> Floats:
    """`FiniteOracle.values` where a report is `gain` times the sign at the client's symbol in a random row of a Hadamard matrix."""
    signs = np.moveaxis((counts[..., 0] - counts[..., 1]).astype(np.float64), -1, 0)
    sums = np.moveaxis(walsh_hadamard(signs)[:shares], 0, -1)
    shown: Floats = gain * sums / counts.sum(axis=(-2, -1))[..., None]
    return shown


def seen_joint(tally: Tally, seen: Floats) -> Joint:
    """`FrequencyOracle.joint` of what one report adds to each function, shape (m, cells, alphabet)."""
    n, flat = tally.answered, seen.reshape(len(seen), -1)
    law = tally.counts.ravel() / n
    mean = flat @ law
    return Joint(mean, ((flat * law) @ flat.T - np.outer(mean, mean)) / n, n)


def direct_joint(tally: Tally, weights: Floats, truth: float, other: float) -> Joint:
    """`FrequencyOracle.joint` where a report names a symbol: the true one with probability `truth`, each other one with probability `other`."""
    return seen_joint(tally, (weights - other * weights.sum(axis=1, keepdims=True)) / (truth - other))


def hadamard_joint(tally: Tally, weights: Floats, gain: float) -> Joint:
    """`FrequencyOracle.joint` where a report is `gain` times the sign at the client's symbol in a random row of a Hadamard matrix.

    By Parseval the products of two functions of a report average to gain^2 <w, w'>, whatever the law.
    """
    n = tally.answered
    mean = weights @ hadamard_values(tally.counts, gain, weights.shape[1])
    return Joint(mean, (gain**2 * weights @ weights.T - np.outer(mean, mean)) / n, n)
