"""Learners of thresholds: the hypothesis t of 0..2^bits labels x with 1 if and only if x >= t.

And distributions on which a threshold is hard to learn: few thresholds are good, and as many as
possible are slightly bad.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import compress

import numpy as np

from local_dp.arrays import Counts
from local_dp.checks import check_share
from local_dp.curator.mechanism import L_co, Law, Mechanism
from local_dp.curator.multisets import LabelledMultiset, check_bits, naturals, upto
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Runs
from local_dp.curator.selection.stable import Parts, Promise, RecConcave, levels_of
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Pure


@dataclass(frozen=True)
class ThresholdLearner(Mechanism[LabelledMultiset, int, L_co]):
    """From labelled points a threshold t; private on all of them, also where no threshold fits."""

    @abstractmethod
    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        """Pr[low <= t <= high] on this sample, up to rounding: analysis, not part of a release."""


def errors_by_gap(sample: LabelledMultiset) -> Counts:
    """The errors of the thresholds with g of the s distinct points below them, g = 0..s; a replaced
    record moves each by at most 1."""
    zeros_below = upto(sample.zeros)
    return np.asarray(upto(sample.ones) + (zeros_below[-1] - zeros_below))


def agreements(sample: LabelledMultiset) -> Runs:
    """The number of records that each threshold classifies right: quasi-concave where some
    threshold classifies all. O(s)."""
    return Runs(sample.values, sample.size - errors_by_gap(sample), 1 << sample.bits)


@dataclass(frozen=True)
class PureThresholds(ByScore[LabelledMultiset, int], ThresholdLearner[Pure]):
    """The threshold t with probability proportional to e^(-eps (errors of t) / 2).

    Privacy: epsilon. Utility: within alpha of the best for about (2 / (eps alpha)) ln(2^bits /
    beta) records. Every pure proper learner needs a constant share of that. Cost: O(m log m).
    Source: KLNRS 2008, Theorem 3.7; Beimel, Nissim, Stemmer 2013, Section 2.5.2.
    """

    summary = "Learns a threshold under pure privacy"
    epsilon: float

    def candidates(self, database: LabelledMultiset) -> Runs:
        """A replaced example moves the errors of a threshold by at most 1."""
        return agreements(database)

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        runs = agreements(sample)
        return float(self.choice.share(runs, runs.within(low, high)))


@dataclass(frozen=True)
class LearnThresholds(ThresholdLearner[Approximate]):
    """The threshold that RecConcave finds by the number of correct records, promised m of m; one
    that errs on `slack` m is good to it.

    Privacy: by count of the parts, on every sample. Utility: `tuned` and `printed`. Refuses samples
    of fewer than `least` records, a public number. Cost: O(m log m + bits). Source: Theorem 3.18.
    """

    summary = "Learns a threshold by recursive concave optimisation"
    slack: float
    parts: Parts
    levels: int = 2
    least: int = 1

    @property
    def loss(self) -> Approximate:
        return self.parts.total(self.levels)

    def release(self, database: LabelledMultiset, draws: Draws) -> int:
        return self.solver(database.size).release(database, draws)

    def law(self, database: LabelledMultiset) -> Law[int]:
        return self.solver(database.size).law(database)

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        return self.solver(sample.size).chance(sample, low, high)

    def solver(self, m: int) -> RecConcave[LabelledMultiset]:
        """RecConcave for m records. Raises InputError for fewer than `least`."""
        if m < max(1, self.least):
            raise InputError(f"there are {m} records; these parameters need {max(1, self.least)}")
        promise = Promise(m - max(1, math.floor(self.slack * m)), m)
        return RecConcave(agreements, promise, self.parts, self.levels)


def tuned(alpha: float, epsilon: float, delta: float) -> LearnThresholds:
    """Depth 2; parts of .24 (length), .30 with delta / 2 (stable choices), .16 of epsilon. About
    1,200 to 1,500 records at 32 to 128 bits, alpha .1."""
    check_share("alpha", alpha)
    parts = Parts(0.24 * epsilon, 0.3 * epsilon, delta / 2, 0.16 * epsilon)
    factor = min(1.2, max(0.9, 0.6 - 0.1 * math.log10(delta)))
    return LearnThresholds(min(1.0, factor * alpha), parts)


def printed(
    bits: int, alpha: float, epsilon: float, delta: float, beta: float = 0.1
) -> LearnThresholds:
    """Theorem 3.18: slack alpha / 2, every part epsilon / (3 N) and delta / (3 N), N =
    `levels_of`(2^bits); below `printed_records` it refuses."""
    levels = levels_of(1 << bits)
    part = epsilon / (3 * levels)
    parts = Parts(part, part, delta / (3 * levels), part)
    records = printed_records(bits, alpha, epsilon, delta, beta)
    return LearnThresholds(alpha / 2, parts, levels, records)


def printed_records(
    bits: int, alpha: float, epsilon: float, delta: float, beta: float = 0.1
) -> int:
    """max{(200 / alpha^2) ln(4 / (alpha beta)), 8^N (72 N / (alpha eps)) (log2(12 N / (beta delta))
    + log2 log2 ... 2^bits, N times, rounded up each time)}."""
    check_bits(bits)
    check_share("alpha", alpha)
    check_share("beta", beta)
    levels, logarithm = levels_of(1 << bits), bits
    for _ in range(levels - 1):
        logarithm = max(logarithm - 1, 0).bit_length()
    learning = 200 / alpha**2 * math.log(4 / (alpha * beta))
    each = (1 << 3 * levels) * 72 * levels / (alpha * epsilon)
    return math.ceil(max(learning, each * (math.log2(12 * levels / (beta * delta)) + logarithm)))


_OVER = 1 + 1e-9  # a threshold with this many times alpha is bad


@dataclass(frozen=True)
class HardThreshold:
    """The points `points`, ascending, with probability `shares`; a point from `target` on is
    labelled 1, and a share `flips` of labels is flipped."""

    bits: int
    target: int
    points: tuple[int, ...]
    shares: tuple[float, ...]
    flips: float = 0.0

    def sample(self, n: int, generator: np.random.Generator) -> LabelledMultiset:
        """n labelled points."""
        counts = generator.multinomial(n, np.array(self.shares) / sum(self.shares))
        wrong = generator.binomial(counts, self.flips)
        truth = np.array([point >= self.target for point in self.points])
        ones = np.where(truth, counts - wrong, wrong)
        positive = counts > 0
        values = naturals(list(compress(self.points, positive)), self.bits)
        zeros, ones = (each[positive].astype(np.int64) for each in (counts - ones, ones))
        return LabelledMultiset(self.bits, values, zeros, ones)

    def good(self, alpha: float) -> tuple[int, int]:
        """The thresholds low..high, whose error exceeds that of the target by at most alpha."""
        spare = alpha / (1 - 2 * self.flips)
        low, high = self.target, self.target
        below = [place for place, point in enumerate(self.points) if point < self.target]
        for toward, side in ((-1, below[::-1]), (1, range(len(below), len(self.points)))):
            error, end = 0.0, (0 if toward < 0 else 1 << self.bits)
            for place in side:
                error += self.shares[place]
                if error > spare:
                    end = self.points[place] + (1 if toward < 0 else 0)
                    break
            low, high = (end, high) if toward < 0 else (low, end)
        return low, high


def hard_thresholds(
    bits: int, alpha: float, target: int, flips: float = 0.0
) -> dict[str, HardThreshold]:
    """The five worst known, by name; `target` is in 2..2^bits - 2, best odd and random: the middle
    of the smallest dyadic interval.

    needle: a little more than alpha on target - 1 and on target, so that only the target is good,
    the rest at both ends. needle with staircase: the rest at distances 1, 2, 4, ... to both sides.
    staircase: all of it. plateaus: as the needle, without points within 2^(bits / 2) or 2^(3 bits /
    4) of the target. With flipped labels alpha is divided by 1 - 2 `flips`, as is an excess
    error.
    """
    check_bits(bits)
    check_share("alpha", alpha)
    over = min(0.4999, alpha / (1 - 2 * flips) * _OVER)
    rest, top = 1 - 2 * over, (1 << bits) - 1
    steps = list[int]()
    for step in range(bits):
        steps += [target - (1 << step), target + (1 << step) - 1]
    inside = [point for point in steps if 0 <= point <= top]
    stairs = [(point, 1 / len(inside)) for point in inside]

    def law(*parts: tuple[int, float]) -> HardThreshold:
        shares: dict[int, float] = {}
        for point, share in parts:
            shares[point] = shares.get(point, 0.0) + share
        points = tuple(sorted(shares))
        return HardThreshold(bits, target, points, tuple(map(shares.__getitem__, points)), flips)

    def plateau(log_width: int) -> HardThreshold:
        half = min(1 << max(log_width - 1, 0), target, top + 1 - target)
        ends = (0, rest / 2), (top, rest / 2)
        return law((target - half, over), (target + half - 1, over), *ends)

    needle = (target - 1, over), (target, over)
    return {
        "needle": plateau(0),
        "needle with staircase": law(*needle, *((point, rest * share) for point, share in stairs)),
        "staircase": law(*stairs),
        "narrow plateau": plateau(bits // 2),
        "wide plateau": plateau(3 * bits // 4),
    }


def random_target(bits: int, generator: np.random.Generator) -> int:
    """A random odd threshold in the middle half, so that there is room on both sides."""
    words = generator.integers(0, 1 << 32, -(-bits // 32), dtype=np.uint64)
    number = int.from_bytes(words.astype("<u4").tobytes(), "little") % (1 << (bits - 1))
    return (number + (1 << (bits - 2))) | 1
