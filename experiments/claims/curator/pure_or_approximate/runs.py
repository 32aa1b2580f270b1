"""The least number of records for 90 % success: exact sums where there is one, else exact chances given a sample, averaged over samples; and runs there."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.bounds.packing import least_records, plain_success, point_records, pure_success, stable_success, threshold_records
from local_dp.draws import Draws
from local_dp.experiments.claims.curator.pure_or_approximate.cases import ALPHA, EPSILON, SUCCESS, Case, Cases, point_cases, threshold_cases
from local_dp.experiments.lab.statistics import Normal, Positive, mean
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise

Key = tuple[str, str, float]  # points or thresholds, which learner, delta: 0 if it is pure
BEYOND = 1 << 14
MOST: dict[tuple[str, str], int] = {  # where a search ends, at first: more than any of them needs
    ("points", "buckets"): 300,
    ("points", "labels"): 300,
    ("thresholds", "dyadic"): 1000,
    ("thresholds", "RecConcave"): 2600,
    ("thresholds", "labels"): 250,
    ("thresholds", "semi-private"): 250,
}
SEEN = 1.96  # standard errors of the mean chance that its interval reaches to


@dataclass(frozen=True)
class Least:
    n: int
    low: float
    high: float
    law: str  # the worst distribution
    success: float | None = None  # by an exact sum, where there is one
    others: dict[str, Normal] = field(default_factory=dict)  # where there is: the mean chances on all other distributions

    def figure(self, samples: int) -> Positive:
        """The number with its error: none where it is exact.

        Student's law is near, not exact: of 100 searches for dyadic thresholds with 20 samples the errors were 1.25 times as wide, with a longer lower tail.
        So what is claimed of these numbers leaves room: the truth is a fifth or more from each bound on that side.
        """
        return Positive(self.n, (self.high - self.low) / (2 * SEEN * self.n), samples - 1)


@dataclass(frozen=True)
class Records:
    least: Least
    nano: int  # the learner's loss
    atto: int
    right: int  # runs at the least number
    expected: float


@dataclass(frozen=True)
class Learner:
    """The least number of records of one learner on one domain, its loss, and how often runs with so many are right."""

    of: str
    kind: str
    delta: float
    bits: int
    samples: int
    runs: int

    @property
    def key(self) -> Key:
        return self.of, self.kind, self.delta

    def measure(self, seed: int) -> Records:
        of, kind, bits, delta = self.of, self.kind, self.bits, self.delta
        generator = np.random.default_rng([seed, bits, len(of), len(kind), round(-math.log10(delta or 1))])
        made = point_cases if of == "points" else threshold_cases
        banks = [made(kind, bits, delta, generator) for _ in range(self.samples)]
        if (of, kind) in MOST:
            least = _least_sampled(banks, MOST[of, kind], generator)
        else:
            success = _exact(of, kind, bits, delta)
            n = least_records(success, SUCCESS)
            first, *others = banks[0]
            least = Least(n, n, n, first, success(n), {law: mean(_sampled(banks, law, n, generator)) for law in others})
        loss = banks[0][least.law].learner.loss
        return Records(least, loss.nano, getattr(loss, "atto", 0), *_runs(banks, least, self.runs, generator))


@dataclass(frozen=True)
class Bound:
    n: int  # no pure proper learner needs fewer
    plain: int  # enough without privacy: the least threshold without an error errs to one side only


@dataclass(frozen=True)
class Proven:
    """The proven number of records."""

    of: str
    bits: int

    def measure(self, seed: int) -> Bound:
        bound = point_records if self.of == "points" else threshold_records
        return Bound(bound(self.bits, EPSILON, ALPHA, 1 - SUCCESS), least_records(lambda m: plain_success(m, ALPHA), SUCCESS))


def _exact(of: str, kind: str, bits: int, delta: float) -> Callable[[int], float]:
    """The success by exact sums over the worst distribution."""
    if of == "thresholds":
        return lambda m: needle_success(bits, m)
    if kind == "pure":
        return lambda m: pure_success(bits, EPSILON, m, ALPHA)
    return lambda m: stable_success(approximate(EPSILON, delta), m, ALPHA)


def needle_success(bits: int, m: int) -> float:
    """Pr[the exponential mechanism over all thresholds selects the target]: against all those below and above, J and K examples next to it, alpha m expected.

    J + K ~ Bin(m, 2 alpha), and J ~ Bin(J + K, 1/2).
    """
    around = m * ALPHA + np.arange(-1, 2, 2) * (9 * math.sqrt(m * ALPHA) + 30)
    near = np.arange(max(0, math.floor(around[0])), min(m, math.ceil(around[1])) + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])
    j, k = near[:, None], near[None, :]
    rest = m - j - k
    ways = factorials[m] - factorials[j] - factorials[k] - factorials[np.maximum(rest, 0)]
    logs = np.where(rest >= 0, ways + (j + k) * math.log(ALPHA) + rest * math.log(1 - 2 * ALPHA), -np.inf)
    others = (bits - 1) * math.log(2) + np.logaddexp(-EPSILON * j / 2, -EPSILON * k / 2)
    return float((np.exp(logs) / (1 + np.exp(np.minimum(others, 700.0)))).sum())


def _least_sampled(banks: list[Cases], most: int, generator: np.random.Generator) -> Least:
    """The largest of the least numbers that the distributions need, with two standard errors on both sides."""
    least = Least(1, 1, 1, "")
    for law in banks[0]:
        chances = _chances([(bank[law], bank[law].order(most, generator)) for bank in banks])
        while chances(most).mean() < SUCCESS and most < BEYOND:
            most *= 2
            chances = _chances([(bank[law], bank[law].order(most, generator)) for bank in banks])
        if chances(least.n).mean() < SUCCESS:
            n = _least(chances, most)
            off = SEEN * _standard_error(chances, n)
            least = Least(n, round(n - off, 1), round(n + off, 1), law)
    return least


def _chances(samples: list[tuple[Case, Ints]]) -> Callable[[int], Floats]:
    """The chances of all samples with n records each; computed once for each n."""
    return cache(lambda n: np.array([case.chance(case.sample(order[:n])) for case, order in samples]))


def _least(chances: Callable[[int], Floats], most: int) -> int:
    """The least number, to 1/2 % of it, for a mean chance that grows with the number of records."""
    low, high = 0, most
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if chances(middle).mean() >= SUCCESS else (middle, high)
    return high


def _standard_error(chances: Callable[[int], Floats], n: int) -> float:
    """Of the least number: that of the mean chance, by what a record changes, over a tenth of the records on both sides."""
    step = max(1, n // 10)
    slope = float(chances(n + step).mean() - chances(n - step).mean()) / (2 * step)
    return float(chances(n).std(ddof=1)) / math.sqrt(len(chances(n))) / max(slope, 1e-9)


def _sampled(banks: list[Cases], law: str, n: int, generator: np.random.Generator) -> Floats:
    """The chances in one distribution, each on a sample of n records."""
    return np.array([bank[law].chance(bank[law].sample(bank[law].order(n, generator))) for bank in banks])


def _runs(banks: list[Cases], least: Least, runs: int, generator: np.random.Generator) -> tuple[int, float]:
    """How often releases at the least number are right, each on a fresh sample; expected: by exact sums, or by the chances on the samples."""
    draws, right, expected = Draws(KeyedNoise(int(generator.integers(1 << 32)))), 0, 0.0
    for number in range(runs):
        case = banks[number % len(banks)][least.law]
        sample = case.sample(case.order(least.n, generator))
        expected += case.chance(sample) if least.success is None else least.success
        right += case.right(case.learner.release(sample, draws))
    return right, expected
