"""The search for a quantile over several rounds: threshold questions where its place is still open, fresh clients in every round."""

import math

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import binomial_tail
from local_dp.queries.numbers import STEPS
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.tallies import Tally

REACH = 2.7  # how far from the quantile its ends are tested, in standard errors: such a test decides four times in five
_LOG_ROOT = math.log(2 * math.pi) / 2


def _log_cdf(z: float) -> float:
    """ln Pr[N(0, 1) <= z]; by its leading term far out."""
    return math.log(math.erfc(-z / math.sqrt(2)) / 2) if z > -20 else -(z**2) / 2 - math.log(-z) - _LOG_ROOT


def _ones(tally: Tally) -> int:
    return int(tally.counts[0, 1])


class Search:
    """Where a quantile may lie among `symbols` symbols, after what was answered.

    A question at threshold t tells S(t) = Pr[value <= t] - q Pr[there is a value], which rises from below 0 to above; the quantile is the least t where it is
    not below 0.
    Every answer multiplies the belief in the symbols on either side by the probability that S(t) has that sign (probabilistic bisection; Horstein 1963).
    The interval holds whatever the law: each end is moved by a test of its own, exact by the binomial law.
    """

    def __init__(self, randomizer: OneBitMean, symbols: int, level: int) -> None:
        self.randomizer, self.symbols, self.share = randomizer, symbols, level / STEPS
        self.low, self.high = 0, symbols - 1
        self._belief: Floats = np.zeros(symbols)  # ln of the weight of each symbol
        self._sums: dict[int, tuple[float, int]] = {}  # of the answers at each threshold: S times clients, clients
        self._one = float(randomizer.weight(np.array([1]), np.array([level]), np.array([0]))[0]) / randomizer.total  # Pr[a reported 1] where S = 0

    def thresholds(self, clients: int) -> tuple[int, int, int]:
        """What a round asks: below the quantile by REACH standard errors of `clients` reports, where belief is halved, above by as much."""
        weights = np.exp(self._belief - self._belief.max())
        halves = np.abs(np.cumsum(weights)[:-1] / weights.sum() - 0.5)
        reach = REACH * self._standard_error(clients)
        below = math.floor(self._crossing(-min(reach, self.share / 2)))
        above = math.ceil(self._crossing(min(reach, (1 - self.share) / 2)))
        return min(max(below, 0), self.symbols - 2), int(np.argmin(halves)), min(max(above, 0), self.symbols - 2)

    def tell(self, thresholds: tuple[int, ...], tallies: tuple[Tally, ...], alpha: float) -> None:
        """What was answered at each threshold: below, at and above where the quantile seemed to be.

        Tests move the ends of the interval, wrongly with probability at most alpha together: the outer two share 3/4 of it, for only one of them can be wrong
        (the lower one where its threshold is not below the quantile, the upper one where its threshold is), and the middle one, which moves either, has 1/4.
        """
        below, middle, above = tallies
        for threshold, tally in zip(thresholds, tallies, strict=True):
            self._believe(threshold, tally)
        for threshold, tally, level in ((thresholds[0], below, 0.75 * alpha), (thresholds[1], middle, 0.25 * alpha)):
            if binomial_tail(tally.answered, tally.answered - _ones(tally), 1 - self._one) <= level:  # so few ones
                self.low = max(self.low, threshold + 1)
        for threshold, tally, level in ((thresholds[2], above, 0.75 * alpha), (thresholds[1], middle, 0.25 * alpha)):
            if binomial_tail(tally.answered, _ones(tally), self._one) <= level:  # so many
                self.high = min(self.high, threshold)

    def _believe(self, threshold: int, tally: Tally) -> None:
        n = tally.answered
        margin = float(self.randomizer.estimate(tally).value) - self.share
        z = margin / self._standard_error(n)
        self._belief[: threshold + 1] += _log_cdf(z)
        self._belief[threshold + 1 :] += _log_cdf(-z)
        total, clients = self._sums.get(threshold, (0.0, 0))
        self._sums[threshold] = total + n * margin, clients + n

    def found(self) -> tuple[int, int, int]:
        """The quantile's symbol and the ends of its interval; ends that contradict one another change places."""
        low, high = min(self.low, self.high), max(self.low, self.high)
        return min(max(math.ceil(self._crossing(0.0)), low), high), low, high

    def _standard_error(self, clients: int) -> float:
        gain = self.randomizer.total / (self.randomizer.slope * STEPS)
        return gain * math.sqrt(self._one * (1 - self._one) / clients)

    def _crossing(self, level: float) -> float:
        """Where S reaches a level between -q and 1 - q: the answers made to rise by isotonic regression, straight lines between them."""
        places, heights = [-1.0], [-self.share]
        for total, clients, members in self._rising():
            places += members
            heights += [min(max(total / clients, -self.share), 1 - self.share)] * len(members)
        places.append(self.symbols - 1.0)
        heights.append(1 - self.share)
        after = next(place for place, height in enumerate(heights) if height >= level)
        left, right = heights[after - 1], heights[after]
        return places[after - 1] + (places[after] - places[after - 1]) * (level - left) / (right - left)

    def _rising(self) -> list[tuple[float, int, list[float]]]:
        """Runs of thresholds with one height each, rising: (sum, clients, thresholds), by pooling adjacent violators."""
        runs: list[tuple[float, int, list[float]]] = []
        for threshold in sorted(self._sums):
            run = (*self._sums[threshold], [float(threshold)])
            while runs and runs[-1][0] / runs[-1][1] >= run[0] / run[1]:
                before = runs.pop()
                run = (before[0] + run[0], before[1] + run[1], before[2] + run[2])
            runs.append(run)
        return runs
