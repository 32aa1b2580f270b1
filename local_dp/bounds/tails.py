"""Tails of laws: normal, binomial, and the largest of several errors."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_share, check_whole
from local_dp.optimise import crossing
from local_dp.tallies import divergence

_NORMAL = NormalDist()


def normal_quantile(tail: float) -> float:
    """z with Pr[N(0, 1) > z] = tail."""
    check_share("a tail probability", tail)
    return -_NORMAL.inv_cdf(tail)


def normal_tail(z: float) -> float:
    """Pr[N(0, 1) > z], to full relative precision far out."""
    return math.erfc(z / math.sqrt(2)) / 2


def mean_tail(share: Floats | float, n: int, at: Floats | float) -> Floats:
    """Pr[the mean of n independent variables within [0, 1] is `share` or more], at most, where its
    expectation is at most `at`: e^(-n KL(share, at)).

    Source: Hoeffding 1963.
    """
    high = np.clip(share, 0.0, 1.0)
    bound = np.exp(-n * divergence(high, np.asarray(at, dtype=np.float64)))
    return np.where(high > at, bound, 1.0)


def add_normal(mass: Floats, grid: Floats, mean: float, variance: float) -> Floats:
    """The law of the sum of a draw from `mass` on the grid and a normal variable."""
    reach = grid[-1] - grid[0]
    away = np.linspace(-reach, reach, 2 * len(grid) - 1)
    kernel = np.exp(-((away - mean) ** 2) / (2 * variance))
    length = 4 * len(grid)
    spectrum = np.fft.rfft(kernel / kernel.sum(), length)
    convolution = np.fft.irfft(np.fft.rfft(mass, length) * spectrum, length)
    return np.maximum(convolution[len(grid) - 1 : 2 * len(grid) - 1], 0.0)


@dataclass(frozen=True)
class CountLaw:
    """How many there are: `sizes` k, ascending, and `shares` Pr[K = k], both of shape (s,), adding
    up to 1."""

    sizes: Counts
    shares: Floats

    @classmethod
    def binomial(cls, n: int, share: float) -> Self:
        """Of n records, each with probability `share`, within 13 standard deviations and 40 of the
        mean: 1e-30 lies beyond, and rounding is 1e-9."""
        check_whole("n", n, 0, 1 << 40)
        check_share("share", share)
        mean = n * share
        away = 13 * math.sqrt(mean * (1 - share)) + 40
        first = max(0, math.floor(mean - away))
        last = min(n, math.ceil(mean + away))
        sizes = np.arange(first, last + 1)
        log_odds = math.log(share / (1 - share))
        steps = np.log((n - sizes[:-1]) / (sizes[:-1] + 1)) + log_odds
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


# the errors of largest variance, whose pairs are looked at: the others' share in them is below a
# thousandth
NEAR = 16
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_HALVINGS = 40


def both_beyond(a: float, b: float, correlation: float) -> float:
    """Pr[|X| > a and |Y| > b] of two standard normal variables, a, b >= 0: Plackett's identity, the
    joint density integrated from correlation 0."""
    end = math.asin(max(-1.0, min(1.0, correlation)))
    angle = end * (_NODES + 1) / 2
    square = a * a + b * b
    cross = 2 * a * b * np.sin(angle)
    scale = 2 * np.cos(angle) ** 2
    density = (np.exp(-(square - cross) / scale) - np.exp(-(square + cross) / scale)) / (
        2 * math.pi
    )
    gain = end / 2 * float(_WEIGHTS @ density)
    return 2 * (2 * normal_tail(a) * normal_tail(b) + gain)


@dataclass(frozen=True)
class Errors:
    """Normal errors of mean 0, those that one report leaves: `variance` of all, descending, shape
    (m,), and `near`, the covariance of the first few."""

    variance: Floats
    near: Floats

    @classmethod
    def of_covariance(cls, covariance: Floats) -> Self:
        """Of this covariance, shape (m, m)."""
        variance = np.diagonal(covariance)
        order = np.argsort(-variance, kind="stable")
        return cls(variance[order], covariance[np.ix_(order[:NEAR], order[:NEAR])])

    @classmethod
    def of_reports(cls, contributions: Floats, law: Floats, sample: Floats | None = None) -> Self:
        """Of the mean of what a report adds, shape (reports, m), where reports have this law; less
        the covariance `sample`, if given."""
        mean, less = law @ contributions, 0.0 if sample is None else np.diagonal(sample)
        variance = np.maximum(law @ (contributions - mean) ** 2 - less, 0.0)
        order = np.argsort(-variance, kind="stable")
        some = order[:NEAR]
        away = (contributions - mean)[:, some]
        near = (law[:, None] * away).T @ away
        return cls(variance[order], near if sample is None else near - sample[np.ix_(some, some)])

    def union(self, reach: float) -> float:
        """Pr[some error is beyond the reach], at most: the larger, for errors that know nothing of
        one another (Sidak 1967)."""
        chances = self._tails(reach)
        logs = (count * math.log1p(-min(chance, 1 - 1e-15)) for chance, count in chances)
        return -math.expm1(sum(logs))

    def beyond(self, reach: float) -> float:
        """Pr[some error is beyond the reach], at most: the lesser of Sidak's and Hunter's bounds.
        Exact for one error or two."""
        single = sum(chance * count for chance, count in self._tails(reach))
        return max(0.0, min(self.union(reach), single - _heaviest_tree(self._pairs(reach))))

    def reach(self, beta: float, *, quick: bool = False) -> float:
        """Within what all errors are, except with probability beta; with `quick` by Sidak's bound
        alone."""
        widest = math.sqrt(float(self.variance[0]))
        if widest == 0:
            return 0.0
        high = widest * normal_quantile(beta / (2 * len(self.variance)))
        failure = self.union if quick else self.beyond
        return crossing(0.0, high, lambda reach: failure(reach) > beta, _HALVINGS)[1]

    def _tails(self, reach: float) -> list[tuple[float, int]]:
        """Each error's chance to be beyond, and how many have it."""
        alike, counts = np.unique(self.variance, return_counts=True)
        groups = zip(alike.tolist(), counts.tolist(), strict=True)
        return [
            (2 * normal_tail(reach / math.sqrt(each)), count) for each, count in groups if each > 0
        ]

    def _pairs(self, reach: float) -> Floats:
        """For each two of the near errors, the chance that both are beyond."""
        deviation = np.sqrt(np.diagonal(self.near))
        size = int(np.count_nonzero(deviation > 1e-9 * max(deviation.max(), 1e-300)))
        pairs = np.zeros((size, size))
        memo = dict[tuple[float, ...], float]()
        for i in range(size):
            for j in range(i):
                a = reach / float(deviation[i])
                b = reach / float(deviation[j])
                together = float(self.near[i, j] / (deviation[i] * deviation[j]))
                alike = (round(a, 9), round(b, 9), round(together, 9))
                if alike not in memo:
                    memo[alike] = both_beyond(a, b, together)
                pairs[i, j] = pairs[j, i] = memo[alike]
        return pairs


def _heaviest_tree(weights: Floats) -> float:
    """The weight of the heaviest spanning tree of a complete graph (Prim)."""
    if len(weights) < 2:
        return 0.0
    outside = np.arange(1, len(weights))
    best = weights[0, 1:].copy()
    total = 0.0
    while len(outside):
        place = int(np.argmax(best))
        total += float(best[place])
        vertex = outside[place]
        outside = np.delete(outside, place)
        best = np.delete(best, place)
        best = np.maximum(best, weights[vertex, outside])
    return total


def widest_reach(candidates: list[Errors], beta: float) -> float:
    """The largest `reach` of several: exact bounds are computed only where the quick ones leave it
    open."""
    check_share("the failure probability", beta)
    widest = 0.0
    quick_reaches = ((each.reach(beta, quick=True), each) for each in candidates)
    for quick, errors in sorted(quick_reaches, key=lambda pair: -pair[0]):
        if quick <= widest:
            break
        widest = max(widest, errors.reach(beta))
    return widest
