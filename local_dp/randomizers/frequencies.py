"""What frequency oracles share: shares of k symbols, and any linear functions of them with their covariance."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.cube import walsh_hadamard
from local_dp.randomizers.finite import FiniteChannel
from local_dp.tallies import Joint, Tally


@dataclass(frozen=True)
class FrequencyOracle(FiniteChannel):
    """A finite channel whose tally estimates the shares of `symbols` symbols without bias."""

    @property
    @abstractmethod
    def shares(self) -> int:
        """How many shares it estimates."""

    @abstractmethod
    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Unbiased estimates of `weights` @ shares, weights of shape (m, shares), with the covariance that the reports themselves show."""


def direct_joint(tally: Tally, weights: Floats, truth: float, other: float) -> Joint:
    """`FrequencyOracle.joint` where a report names a symbol: the true one with probability `truth`, each other one with probability `other`."""
    n = tally.answered
    law = tally.counts[0] / n
    seen = (weights - other * weights.sum(axis=1, keepdims=True)) / (truth - other)  # what one report adds, shape (m, shares)
    mean = seen @ law
    return Joint(mean, ((seen * law) @ seen.T - np.outer(mean, mean)) / n, n)


def hadamard_joint(tally: Tally, weights: Floats, gain: float) -> Joint:
    """`FrequencyOracle.joint` where a report is `gain` times the sign at the client's symbol in a random row of a Hadamard matrix.

    By Parseval the products of two functions of a report average to gain^2 <w, w'>, whatever the law.
    """
    n = tally.answered
    signs = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64)
    mean = weights @ (gain * walsh_hadamard(signs)[: weights.shape[1]] / n)
    return Joint(mean, (gain**2 * weights @ weights.T - np.outer(mean, mean)) / n, n)
