"""Learners of points and of thresholds on the distributions that are hardest for them: the exact chance of success on a sample, and runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Ints
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
from local_dp.curator.thresholds.learner import HardThreshold, PureThresholds, ThresholdLearner, hard_thresholds, random_target, tuned
from local_dp.draws import Draws
from local_dp.loss import Loss
from local_dp.noise import KeyedNoise

ALPHA, EPSILON, SUCCESS = 0.1, 1.0, 0.9
PUBLIC = 300  # points without labels that a semi-private learner has besides
OTHERS = 27  # the points beside the target on which buckets err most
APART = {"labels": 3, "semi-private": 12}  # which dichotomies are candidates
Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One learner and one distribution: labelled points with shares; how likely the learner is right on a sample, and whether a result is right."""

    learner: Mechanism[LabelledMultiset, Any, Loss]
    bits: int
    points: tuple[int, ...]
    shares: tuple[float, ...]
    ones: tuple[bool, ...]
    chance: Callable[[LabelledMultiset], float]
    right: Callable[[Any], bool]

    def order(self, size: int, generator: Random) -> Ints:
        """The numbers of the points of `size` people, one after the other; more people are the same ones and others."""
        ends = np.cumsum(self.shares)
        people: Ints = np.minimum(np.searchsorted(ends / ends[-1], generator.random(size), side="right"), len(self.points) - 1)
        return people

    def sample(self, people: Ints) -> LabelledMultiset:
        """The labelled points of these people."""
        counts: Counts = np.bincount(people, minlength=len(self.points)).astype(np.int64)
        kept = counts > 0
        ones = np.where(self.ones, counts, 0)
        values = np.array([point for point, there in zip(self.points, kept, strict=True) if there], dtype=np.uint64 if self.bits <= 64 else object)
        return LabelledMultiset(self.bits, values, (counts - ones)[kept], ones[kept])


Cases = Mapping[str, Case]
"""By the name of the distribution, that which is likely to be the worst first."""


@dataclass(frozen=True)
class PointClass:
    """The points that occur, and None, 0 everywhere: what label privacy of points chooses among."""

    @property
    def dimension(self) -> int:
        return 1

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int | None]:
        """s + 1 of them."""
        every = int(examples.ones.sum())
        errors = np.append(every + examples.zeros - examples.ones, every)
        return Candidates(errors, lambda number: int(points.values[number]) if number < len(points.values) else None)


def point_cases(kind: str, bits: int, delta: float, generator: Random) -> Cases:
    """Just alpha on a random point, labelled 1; the rest on points that are 0: on one, or on as many as do the most harm."""
    if kind == "buckets":
        return {"27 others": _bucket_case(bits, generator)}
    if kind == "labels":
        return {"all others apart": _label_case(bits, generator)}
    return {"one other": (_pure_case if kind == "pure" else _stable_case)(bits, delta, random_target(bits, generator))}


def _pure_case(bits: int, delta: float, target: int) -> Case:
    learner = ProperPointLearner(EPSILON)

    def chance(sample: LabelledMultiset) -> float:
        every = AllPoints(sample.labelled(1))
        return float(learner.choice.share(every, np.arange(len(every.sizes)) == 0)) if len(every.sizes) > 1 else 0.0

    return _needle(learner, bits, target, chance)


def _stable_case(bits: int, delta: float, target: int) -> Case:
    learner = PointLearner(EPSILON, delta)

    def chance(sample: LabelledMultiset) -> float:
        law = learner.law(sample)
        return law.get(target, 0) / sum(law.values())

    return _needle(learner, bits, target, chance)


def _needle(learner: Mechanism[LabelledMultiset, Any, Loss], bits: int, target: int, chance: Callable[[LabelledMultiset], float]) -> Case:
    return Case(learner, bits, (0, target), (1 - ALPHA, ALPHA), (False, True), chance, lambda result: bool(result == target))


def _bucket_case(bits: int, generator: Random) -> Case:
    """A class of public hashes, and the hypotheses that are good in it."""
    points = sorted({random_target(bits, generator) for _ in range(OTHERS + 1)})
    place = int(generator.integers(len(points)))
    ones = tuple(number == place for number in range(len(points)))
    others = (1 - ALPHA) / (len(points) - 1)
    shares = tuple(ALPHA if one else others for one in ones)
    learner = BucketPointLearner(BucketClass.drawn(bits, Draws(KeyedNoise(int(generator.integers(1 << 32))))), EPSILON)
    scaled = [round(share * 10**9) for share in shares]
    weights = np.array(scaled)
    whole = LabelledMultiset(bits, _values(points, bits), np.where(ones, 0, weights), np.where(ones, weights, 0))
    good = learner.hypotheses.errors(whole) < ALPHA * 10**9

    def chance(sample: LabelledMultiset) -> float:
        weighed = EPSILON / 2 * -learner.hypotheses.errors(sample)
        odds = np.exp(weighed - weighed.max())
        return float(odds[good].sum() / odds.sum())

    return Case(learner, bits, tuple(points), shares, ones, chance, lambda result: bool(good[result]))


def _label_case(bits: int, generator: Random) -> Case:
    """Some hundred other points: hardly one occurs twice."""
    points = sorted({random_target(bits, generator) for _ in range(400)})
    place = int(generator.integers(len(points)))
    ones = tuple(number == place for number in range(len(points)))
    shares = tuple(ALPHA if one else (1 - ALPHA) / (len(points) - 1) for one in ones)
    learner = LabelPrivateLearner(PointClass(), EPSILON)

    def right(result: int | None) -> bool:
        return result == points[place]

    return Case(learner, bits, tuple(points), shares, ones, lambda sample: _dichotomy_chance(learner, sample, right), right)


def _values(points: list[int], bits: int) -> Any:
    return np.array(points, dtype=np.uint64 if bits <= 64 else object)


def threshold_cases(kind: str, bits: int, delta: float, generator: Random) -> Cases:
    """One learner on the five hard distributions around a random odd threshold."""
    laws = hard_thresholds(bits, ALPHA, random_target(bits, generator))
    first = "needle" if kind in ("pure", "labels", "semi-private") else "staircase"
    return {name: _threshold_case(kind, delta, laws[name], generator) for name in sorted(laws, key=lambda name: name != first)}


def _threshold_case(kind: str, delta: float, law: HardThreshold, generator: Random) -> Case:
    low, high = law.good(ALPHA)

    def right(result: int) -> bool:
        return low <= result <= high

    ones = tuple(point >= law.target for point in law.points)
    if kind in APART:
        by_labels, chance = _dichotomies(kind, law, generator, right)
        return Case(by_labels, law.bits, law.points, law.shares, ones, chance, right)
    learner = _threshold_learner(kind, law.bits, delta)
    return Case(learner, law.bits, law.points, law.shares, ones, lambda sample: learner.chance(sample, low, high), right)


def _threshold_learner(kind: str, bits: int, delta: float) -> ThresholdLearner[Any]:
    if kind == "pure":
        return PureThresholds(EPSILON)
    return DyadicThresholds(bits, ALPHA, EPSILON, delta) if kind == "dyadic" else tuned(ALPHA, EPSILON, delta)


def _dichotomies(
    kind: str, law: HardThreshold, generator: Random, right: Callable[[int], bool]
) -> tuple[DichotomyLearner[int], Callable[[LabelledMultiset], float]]:
    """Thresholds where only labels are secret, or where some points are public."""
    every = Thresholds(apart=APART[kind])
    seen = law.sample(PUBLIC, generator)
    public = Multiset(law.bits, seen.values, seen.zeros + seen.ones)
    learner = LabelPrivateLearner(every, EPSILON) if kind == "labels" else SemiPrivateLearner(every, EPSILON, public=public)
    return learner, lambda sample: _dichotomy_chance(learner, sample, right)


def _dichotomy_chance(learner: DichotomyLearner[Any], sample: LabelledMultiset, right: Callable[[Any], bool]) -> float:
    """Pr[one of the right candidates], by their weights."""
    candidates = learner.candidates(sample)
    weighed = learner.loss.epsilon / 2 * candidates.scores
    odds = np.exp(weighed - weighed.max())
    good = np.array([right(candidates.member(number, 0)) for number in range(len(odds))])
    return float(odds[good].sum() / odds.sum())
