"""The least number of records for 90 % success: exact sums where there is one, else exact chances
given a sample, averaged over samples; and runs there."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Counts, Floats, Ints
from local_dp.bounds.packing import (
    least_records,
    plain_success,
    point_records,
    pure_success,
    stable_success,
    threshold_records,
)
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.points.learner import (
    AllPoints,
    BucketClass,
    BucketPointLearner,
    Candidates,
    DichotomyLearner,
    LabelPrivateLearner,
    PointLearner,
    ProperPointLearner,
    SemiPrivateLearner,
    Thresholds,
)
from local_dp.curator.selection.groups import Groups
from local_dp.curator.thresholds.dyadic import DyadicThresholds
from local_dp.curator.thresholds.learner import (
    HardThreshold,
    PureThresholds,
    ThresholdLearner,
    hard_thresholds,
    random_target,
    tuned,
)
from local_dp.experiments.lab.parts import Normal, Positive, Row, mean, seeded
from local_dp.loss import Loss, approximate

ALPHA, EPSILON, SUCCESS = 0.1, 1.0, 0.9
PUBLIC = 300  # points without labels that a semi-private learner has besides
OTHERS = 27  # the points beside the target on which buckets err most
APART = {"labels": 3, "semi-private": 12}  # which dichotomies are candidates
Random = Generator
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
class Case:
    """One learner and one distribution: labelled points with shares; how likely the learner is
    right on a sample, and whether a result is right."""

    learner: Mechanism[LabelledMultiset, Any, Loss]
    bits: int
    points: tuple[int, ...]
    shares: tuple[float, ...]
    ones: tuple[bool, ...]
    chance: Callable[[LabelledMultiset], float]
    right: Callable[[Any], bool]

    def order(self, size: int, generator: Random) -> Ints:
        """The numbers of the points of `size` people, one after the other; more people are the same
        ones and others."""
        ends = np.cumsum(self.shares)
        places = np.searchsorted(ends / ends[-1], generator.random(size), side="right")
        people: Ints = np.minimum(
            places,
            len(self.points) - 1,
        )
        return people

    def sample(self, people: Ints) -> LabelledMultiset:
        """The labelled points of these people."""
        counts: Counts = np.bincount(people, minlength=len(self.points)).astype(np.int64)
        present = counts > 0
        ones = np.where(self.ones, counts, 0)
        support = [point for point, there in zip(self.points, present, strict=True) if there]
        values = _values(support, self.bits)
        return LabelledMultiset(self.bits, values, (counts - ones)[present], ones[present])


Cases = Mapping[str, Case]
"""By the name of the distribution, that which is likely to be the worst first."""


@dataclass(frozen=True)
class PointClass:
    """The points that occur, and None, 0 everywhere: what label privacy of points chooses among."""

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int | None]:
        """s + 1 of them."""
        every = int(examples.ones.sum())
        errors = np.append(every + examples.zeros - examples.ones, every)
        return Candidates(
            errors,
            lambda number: int(points.values[number]) if number < len(points.values) else None,
        )


def point_cases(kind: str, bits: int, delta: float, generator: Random) -> Cases:
    """Just alpha on a random point, labelled 1; the rest on points that are 0: on one, or on as
    many as do the most harm."""
    if kind == "buckets":
        return {"27 others": _bucket_case(bits, generator)}
    if kind == "labels":
        return {"all others apart": _label_case(bits, generator)}
    return {
        "one other": (_pure_case if kind == "pure" else _stable_case)(
            bits, delta, random_target(bits, generator)
        )
    }


def _pure_case(bits: int, delta: float, target: int) -> Case:
    learner = ProperPointLearner(EPSILON)

    def chance(sample: LabelledMultiset) -> float:
        every = AllPoints(sample.labelled(1))
        size = len(every.sizes)
        if size <= 1:
            return 0.0
        return float(learner.choice.share(every, np.arange(size) == 0))

    return _needle(learner, bits, target, chance)


def _stable_case(bits: int, delta: float, target: int) -> Case:
    learner = PointLearner(EPSILON, delta)

    def chance(sample: LabelledMultiset) -> float:
        law = learner.law(sample)
        return law.get(target, 0) / sum(law.values())

    return _needle(learner, bits, target, chance)


def _needle(
    learner: Mechanism[LabelledMultiset, Any, Loss],
    bits: int,
    target: int,
    chance: Callable[[LabelledMultiset], float],
) -> Case:
    shares = (1 - ALPHA, ALPHA)
    return Case(
        learner,
        bits,
        (0, target),
        shares,
        (False, True),
        chance,
        lambda result: bool(result == target),
    )


def _one_of(
    most: int, bits: int, generator: Random
) -> tuple[tuple[int, ...], tuple[float, ...], tuple[bool, ...]]:
    """Random points, their shares and labels: one of them is labelled 1, with just alpha."""
    points = sorted({random_target(bits, generator) for _ in range(most)})
    place = int(generator.integers(len(points)))
    ones = tuple(number == place for number in range(len(points)))
    others = (1 - ALPHA) / (len(points) - 1)
    return tuple(points), tuple(ALPHA if one else others for one in ones), ones


def _bucket_case(bits: int, generator: Random) -> Case:
    """A class of public hashes, and the hypotheses that are good in it."""
    points, shares, ones = _one_of(OTHERS + 1, bits, generator)
    learner = BucketPointLearner(
        BucketClass.drawn(bits, seeded(int(generator.integers(1 << 32)))), EPSILON
    )
    weights = np.array([round(share * 10**9) for share in shares])
    whole = LabelledMultiset(
        bits, _values(points, bits), np.where(ones, 0, weights), np.where(ones, weights, 0)
    )
    good = learner.hypotheses.errors(whole) < ALPHA * 10**9

    def chance(sample: LabelledMultiset) -> float:
        return _chance_of(EPSILON / 2 * -learner.hypotheses.errors(sample), good)

    return Case(learner, bits, points, shares, ones, chance, lambda result: bool(good[result]))


def _label_case(bits: int, generator: Random) -> Case:
    """Some hundred other points: hardly one occurs twice."""
    points, shares, ones = _one_of(400, bits, generator)
    learner = LabelPrivateLearner(PointClass(), EPSILON)

    def right(result: int | None) -> bool:
        return result == points[ones.index(True)]

    return Case(
        learner,
        bits,
        points,
        shares,
        ones,
        lambda sample: _dichotomy_chance(learner, sample, right),
        right,
    )


def _values(points: Sequence[int], bits: int) -> Any:
    return np.array(points, dtype=np.uint64 if bits <= 64 else object)


def threshold_cases(kind: str, bits: int, delta: float, generator: Random) -> Cases:
    """One learner on the five hard distributions around a random odd threshold."""
    laws = hard_thresholds(bits, ALPHA, random_target(bits, generator))
    first = "needle" if kind in ("pure", "labels", "semi-private") else "staircase"
    names = sorted(laws, key=lambda name: name != first)
    return {name: _threshold_case(kind, delta, laws[name], generator) for name in names}


def _threshold_case(kind: str, delta: float, law: HardThreshold, generator: Random) -> Case:
    low, high = law.good(ALPHA)

    def right(result: int) -> bool:
        return low <= result <= high

    ones = tuple(point >= law.target for point in law.points)
    if kind in APART:
        by_labels, chance = _dichotomies(kind, law, generator, right)
        return Case(by_labels, law.bits, law.points, law.shares, ones, chance, right)
    learner = _threshold_learner(kind, law.bits, delta)
    return Case(
        learner,
        law.bits,
        law.points,
        law.shares,
        ones,
        lambda sample: learner.chance(sample, low, high),
        right,
    )


def _threshold_learner(kind: str, bits: int, delta: float) -> ThresholdLearner[Any]:
    if kind == "pure":
        return PureThresholds(EPSILON)
    return (
        DyadicThresholds(bits, ALPHA, EPSILON, delta)
        if kind == "dyadic"
        else tuned(ALPHA, EPSILON, delta)
    )


def _dichotomies(
    kind: str, law: HardThreshold, generator: Random, right: Callable[[int], bool]
) -> tuple[DichotomyLearner[int], Callable[[LabelledMultiset], float]]:
    """Thresholds where only labels are secret, or where some points are public."""
    every = Thresholds(apart=APART[kind])
    sample = law.sample(PUBLIC, generator)
    public = Multiset(law.bits, sample.values, sample.zeros + sample.ones)
    learner = (
        LabelPrivateLearner(every, EPSILON)
        if kind == "labels"
        else SemiPrivateLearner(every, EPSILON, public=public)
    )
    return learner, lambda sample: _dichotomy_chance(learner, sample, right)


def _dichotomy_chance(
    learner: DichotomyLearner[Any], sample: LabelledMultiset, right: Callable[[Any], bool]
) -> float:
    """Pr[one of the right candidates], by their weights."""
    candidates = learner.candidates(sample)
    logs = learner.loss.epsilon / 2 * candidates.scores
    good = [right(candidates.member(number, 0)) for number in range(len(logs))]
    return _chance_of(logs, np.array(good))


def _chance_of(logs: Any, good: Any) -> float:
    """Pr[one of the good], each as likely as e^log says."""
    odds = np.exp(logs - logs.max())
    return float(odds[good].sum() / odds.sum())


class Least(Row):
    n: int
    low: float
    high: float
    law: str  # the worst distribution
    success: float | None = None  # by an exact sum, where there is one
    # where there is: the mean chances on all other distributions
    others: dict[str, Normal] = field(default_factory=dict)

    def figure(self, samples: int) -> Positive:
        """The number with its error: none where it is exact.

        Student's law is near, not exact: of 100 searches for dyadic thresholds with 20 samples the
        errors were 1.25 times as wide, with a longer lower tail. So what is claimed of these
        numbers leaves room: the truth is a fifth or more from each bound on that side.
        """
        return Positive(self.n, (self.high - self.low) / (2 * SEEN * self.n), samples - 1)


class Records(Row):
    least: Least
    nano: int  # the learner's loss
    atto: int
    right: int  # runs at the least number
    expected: float


class Learner(Row):
    """The least number of records of one learner on one domain, its loss, and how often runs with
    so many are right."""

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
        digits = round(-math.log10(delta or 1))
        generator = default_rng([seed, bits, len(of), len(kind), digits])
        cases = point_cases if of == "points" else threshold_cases
        banks = [cases(kind, bits, delta, generator) for _ in range(self.samples)]
        if (of, kind) in MOST:
            least = _least_sampled(banks, MOST[of, kind], generator)
        else:
            success = _exact(of, kind, bits, delta)
            n = least_records(success, SUCCESS)
            first, *others = banks[0]
            chance = success(n)
            chances = {law: mean(_chances_in(banks, law, n, generator)) for law in others}
            least = Least(
                n,
                n,
                n,
                first,
                chance,
                chances,
            )
        loss = banks[0][least.law].learner.loss
        return Records(
            least, loss.nano, getattr(loss, "atto", 0), *_runs(banks, least, self.runs, generator)
        )


class Bound(Row):
    n: int  # no pure proper learner needs fewer
    plain: int  # enough without privacy: the least threshold without an error errs to one side only


class Proven(Row):
    """The proven number of records."""

    of: str
    bits: int

    def measure(self, seed: int) -> Bound:
        bound = point_records if self.of == "points" else threshold_records
        return Bound(
            bound(self.bits, EPSILON, ALPHA, 1 - SUCCESS),
            least_records(lambda m: plain_success(m, ALPHA), SUCCESS),
        )


def _exact(of: str, kind: str, bits: int, delta: float) -> Callable[[int], float]:
    """The success by exact sums over the worst distribution."""
    if of == "thresholds":
        return lambda m: needle_success(bits, m)
    if kind == "pure":
        return lambda m: pure_success(bits, EPSILON, m, ALPHA)
    return lambda m: stable_success(approximate(EPSILON, delta), m, ALPHA)


def needle_success(bits: int, m: int) -> float:
    """Pr[the exponential mechanism over all thresholds selects the target]: against all those below
    and above, J and K examples next to it, alpha m expected.

    J + K ~ Bin(m, 2 alpha), and J ~ Bin(J + K, 1/2).
    """
    margin = 9 * math.sqrt(m * ALPHA) + 30
    around = m * ALPHA + np.arange(-1, 2, 2) * margin
    most = min(m, math.ceil(around[1]))
    near = np.arange(max(0, math.floor(around[0])), most + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])
    j, k = near[:, None], near[None, :]
    rest = m - j - k
    rest_factorials = factorials[np.maximum(rest, 0)]
    ways = factorials[m] - factorials[j] - factorials[k] - rest_factorials
    outside = rest * math.log(1 - 2 * ALPHA)
    law = ways + (j + k) * math.log(ALPHA) + outside
    logs = np.where(rest >= 0, law, -np.inf)
    scores = np.logaddexp(-EPSILON * j / 2, -EPSILON * k / 2)
    others = (bits - 1) * math.log(2) + scores
    return float((np.exp(logs) / (1 + np.exp(np.minimum(others, 700.0)))).sum())


def _least_sampled(banks: list[Cases], most: int, generator: Generator) -> Least:
    """The largest of the least numbers that the distributions need, with two standard errors on
    both sides."""
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
    return cache(
        lambda n: np.array([case.chance(case.sample(order[:n])) for case, order in samples])
    )


def _least(chances: Callable[[int], Floats], most: int) -> int:
    """The least number, to 1/2 % of it, for a mean chance that grows with the number of records."""
    low, high = 0, most
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if chances(middle).mean() >= SUCCESS else (middle, high)
    return high


def _standard_error(chances: Callable[[int], Floats], n: int) -> float:
    """Of the least number: that of the mean chance, by what a record changes, over a tenth of the
    records on both sides."""
    step = max(1, n // 10)
    rise = chances(n + step).mean() - chances(n - step).mean()
    slope = float(rise) / (2 * step)
    deviation = float(chances(n).std(ddof=1))
    return deviation / math.sqrt(len(chances(n))) / max(slope, 1e-9)


def _chances_in(banks: list[Cases], law: str, n: int, generator: Generator) -> Floats:
    """The chances in one distribution, each on a sample of n records."""
    cases = (bank[law] for bank in banks)
    return np.array([case.chance(case.sample(case.order(n, generator))) for case in cases])


def _runs(banks: list[Cases], least: Least, runs: int, generator: Generator) -> tuple[int, float]:
    """How often releases at the least number are right, each on a fresh sample; expected: by exact
    sums, or by the chances on the samples."""
    draws, right, expected = seeded(int(generator.integers(1 << 32))), 0, 0.0
    for number in range(runs):
        case = banks[number % len(banks)][least.law]
        sample = case.sample(case.order(least.n, generator))
        expected += case.chance(sample) if least.success is None else least.success
        right += case.right(case.learner.release(sample, draws))
    return right, expected
