"""What frequency oracles share: shares of k symbols, and any linear functions of them with their covariance."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.cube import walsh_hadamard
from local_dp.domains import Domain, symbols
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Joint, Tally


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


@dataclass(frozen=True)
class DirectOracle(FiniteOracle):
    """An oracle whose report names a symbol, or a set of them: the client's own with probability p, each other one with probability q.

    Utility: each share has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q).
    """

    @property
    @abstractmethod
    def chances(self) -> tuple[float, float]:
        """p and q."""

    def support(self, counts: Counts) -> Counts:
        """The number of reports that name each symbol, shape (..., cells, alphabet) to (..., shares)."""
        return counts[..., 0, :]

    def gathered(self, weights: Floats) -> Floats:
        """The sum of the weights of the symbols that each report names, shape (m, shares) to (m, cells, alphabet): the transpose of `support`."""
        return weights[:, None, :]

    def values(self, counts: Counts) -> Floats:
        p, q = self.chances
        return np.asarray((self.support(counts) / counts.sum(axis=(-2, -1))[..., None] - q) / (p - q))

    def estimate(self, tally: Tally) -> Estimate:
        n, (p, q) = tally.answered, self.chances
        return Estimate.between((-q / (p - q), (1 - q) / (p - q)), self.values(tally.counts), n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        p, q = self.chances
        return joint_of_reports(tally, (self.gathered(weights) - q * weights.sum(axis=1)[:, None, None]) / (p - q))


@dataclass(frozen=True)
class SignOracle(FiniteOracle):
    """An oracle whose report is a sign in a random row of a Hadamard matrix: `gain` times the mean sign at a symbol is its share."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """C = 1 / (1 - 2 Pr[flip])."""

    def values(self, counts: Counts) -> Floats:
        signs = np.moveaxis((counts[..., 0] - counts[..., 1]).astype(np.float64), -1, 0)
        sums = np.moveaxis(walsh_hadamard(signs)[: self.shares], 0, -1)
        return np.asarray(self.gain * sums / counts.sum(axis=(-2, -1))[..., None])

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        return Estimate.between((-self.gain, self.gain), self.values(tally.counts), n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """By Parseval the products of two functions of a report average to gain^2 <w, w'>, whatever the law."""
        n, mean = tally.answered, weights @ self.values(tally.counts)
        return Joint(mean, (self.gain**2 * weights @ weights.T - np.outer(mean, mean)) / n, n)


@dataclass(frozen=True, kw_only=True)
class OfSymbols(Randomizer):
    """A randomizer of one of `k` symbols. 2 <= k <= 4096."""

    k: int = 2

    @property
    def domain(self) -> Domain:
        return symbols(self.k)


def joint_of_reports(tally: Tally, each: Floats) -> Joint:
    """`FrequencyOracle.joint` from the value that one report adds to each function, shape (m, cells, alphabet)."""
    n, flat = tally.answered, each.reshape(len(each), -1)
    law = tally.counts.ravel() / n
    mean = flat @ law
    return Joint(mean, ((flat * law) @ flat.T - np.outer(mean, mean)) / n, n)


def joint_of_places(n: int, weights: Floats, mean: Floats, square: Floats) -> Joint:
    """The same where places are independent given the value: from the mean and the mean square of each place's own estimate."""
    total = weights @ mean
    return Joint(total, ((weights * square) @ weights.T - np.outer(total, total)) / n, n)
