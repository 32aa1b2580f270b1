"""RecConcave: a good candidate of a quasi-concave score on 0..last, found with fewer records than the logarithm of `last` (Beimel, Nissim, Stemmer, Figure 5).

A score is quasi-concave if between two candidates none is lower than both. The algorithm searches for the length of a plateau, a problem of the same kind on
0..log2(last), then for the plateau by two stable choices among intervals, then within it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.partitions import Interval, Partition, crossing, union
from local_dp.curator.selection.plateaus import doubled, extended, plateaus
from local_dp.curator.selection.runs import Restricted, Runs
from local_dp.curator.selection.stable import StableChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Pure, approximate, nano_epsilon

D = TypeVar("D")
BASE = 32
_NEGLIGIBLE = 1e-9


def levels_of(last: int, base: int = BASE) -> int:
    """How often 0..last is replaced by 0..log2(last), rounded up, until it is at most 0..`base`, and once more: the printed number of levels."""
    return 1 if last <= base else 1 + levels_of(doubled(last), base)


@dataclass(frozen=True)
class Promise:
    """The best score is `high` or more; an answer of score `low` or more is good. Privacy does not rest on it."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if type(self.low) is not int or type(self.high) is not int or self.low >= self.high:
            raise InputError(f"a score of {self.low!r} is to be good if there is one of {self.high!r}; give whole numbers, the second larger")

    @property
    def inner(self) -> "Promise":
        """Of the search for a length: R = (high - low) / 2 at a quarter, rounded to whole numbers, so that a score moves by whole steps at every level."""
        high = max(1, (self.high - self.low) // 2)
        return Promise(min(math.ceil(3 * high / 4), high - 1), high)


@dataclass(frozen=True)
class Parts:
    """What each part may lose: the innermost choice, each of the two stable choices of a level, and each level's final choice; in nats."""

    inner: float
    stable: float
    delta: float
    final: float

    def __post_init__(self) -> None:
        self.total(2)

    def total(self, levels: int) -> Approximate:
        """The loss of all levels, by count: `levels` exponential mechanisms and 2 (levels - 1) stable choices."""
        inner, final, stable = Pure(nano_epsilon(self.inner)), Pure(nano_epsilon(self.final)), approximate(self.stable, self.delta)
        return sum((final + stable + stable for _ in range(levels - 1)), Approximate(0, 0)) + inner


@dataclass(frozen=True)
class RecConcave(Mechanism[D, int, Approximate]):
    """A candidate of 0..last; its score is `promise.low` or more if the score is quasi-concave and somewhere `promise.high` or more, for a far enough `high`.

    `score` gives whole scores that no neighbour moves by more than 1, on the same 0..last for all databases of a size.
    Privacy: the sum of the parts, `levels` exponential mechanisms and 2 (levels - 1) stable choices, for EVERY score: one level asks the length of a plateau by
    q(j) = min(L(j) - low, high - L(j + 1)), which moves by 1 if the score does, then compares the best candidates of intervals of 8 such lengths.
    Utility: `high - low` of about 8^levels (log of log ... of last) / eps; Lemma 3.14. No answer from either stable choice: the middle, last // 2.
    Cost: O(runs + levels log last). Source: Figure 5, Lemmas 3.12 and 3.14, Theorem 3.15, with stable choice as repaired (E1) and the loss as counted (E7).
    """

    score: Callable[[D], Runs]
    promise: Promise
    parts: Parts
    levels: int = 2

    def __post_init__(self) -> None:
        check_whole("levels", self.levels, 1, 64)

    @property
    def loss(self) -> Approximate:
        return self.parts.total(self.levels)

    def release(self, database: D, draws: Draws) -> int:
        return self._solve(self.score(database), self.promise, self.levels, draws)

    def law(self, database: D) -> Law[int]:
        """Exactly, by recursion; for ranges of some dozens."""
        return whole_weights(self._shares(self.score(database), self.promise, self.levels))

    def chance(self, database: D, low: int, high: int) -> float:
        """Pr[the answer is in low..high], short by at most 1e-9 times the number of lengths. Analysis, not part of a release."""
        runs = self.score(database)
        if self.levels == 1:
            return float(self._first.share(runs, runs.within(low, high)))
        lengths, found = self._shares(self._lengths(extended(runs), self.promise), self.promise.inner, self.levels - 1), 0.0
        for length, share in lengths.items():
            if share > _NEGLIGIBLE:
                found += float(share) * sum(float(told * self._inside(runs, kept, low, high)) for told, kept in self._kept(runs, length))
        return found

    def stable(self, partition: Partition) -> StableChoice[Runs, Interval]:
        """The choice of one interval of a partition."""
        return StableChoice(partition.lead, self.parts.stable, self.parts.delta)

    @property
    def _first(self) -> ExponentialChoice:
        return ExponentialChoice(self.parts.inner)

    @property
    def _final(self) -> ExponentialChoice:
        return ExponentialChoice(self.parts.final)

    def _solve(self, runs: Runs, promise: Promise, levels: int, draws: Draws) -> int:
        if levels == 1:
            return self._first.choose(runs, draws)
        wide = extended(runs)
        length = self._solve(self._lengths(wide, promise), promise.inner, levels - 1, draws)
        answers = [self.stable(partition).release(wide, draws) for partition in crossing(1 << length, wide.last)]
        among = _among(runs, [answer for answer in answers if answer is not None])
        return self._final.choose(among, draws) if among else runs.last // 2

    def _lengths(self, wide: Runs, promise: Promise) -> Runs:
        """How good it is to look for a plateau of length 2^j, j = 0..k: many agree that there is one, and few that there is one twice as long."""
        height = plateaus(wide)
        scores = np.minimum(height[:-1] - promise.low, promise.high - height[1:])
        return Runs(np.arange(len(scores) - 1, dtype=np.uint64), scores, len(scores) - 1)

    def _shares(self, runs: Runs, promise: Promise, levels: int) -> dict[int, Fraction]:
        """The probability of each answer."""
        if levels == 1:
            return _normalised(self._first.law(runs))
        found: defaultdict[int, Fraction] = defaultdict(Fraction)
        for length, share in self._shares(self._lengths(extended(runs), promise), promise.inner, levels - 1).items():
            for told, among in self._kept(runs, length):
                last = _normalised(self._final.law(among)) if among else {runs.last // 2: Fraction(1)}
                for answer, part in last.items():
                    found[answer] += share * told * part
        return found

    def _kept(self, runs: Runs, length: int) -> Iterator[tuple[Fraction, Restricted | None]]:
        """What the stable choices leave to choose from, and how likely that is."""
        wide, ways = extended(runs), [(Fraction(1), list[Interval]())]
        for partition in crossing(1 << length, wide.last):
            law = self.stable(partition).law(wide)
            ways = [
                (share * Fraction(weight, sum(law.values())), [*held, *([] if answer is None else [answer])])
                for share, held in ways
                for answer, weight in law.items()
                if weight
            ]
        for share, held in ways:
            yield share, _among(runs, held)

    def _inside(self, runs: Runs, kept: Restricted | None, low: int, high: int) -> Fraction:
        return self._final.share(kept, kept.within(low, high)) if kept else Fraction(low <= runs.last // 2 <= high)


def _among(runs: Runs, answers: list[Interval]) -> Restricted | None:
    intervals = union(answers, runs.last)
    return Restricted(runs, intervals) if intervals else None


def _normalised(law: Law[int]) -> dict[int, Fraction]:
    total = sum(law.values())
    return {answer: Fraction(weight, total) for answer, weight in law.items()}
