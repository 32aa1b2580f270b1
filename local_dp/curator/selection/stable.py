"""Stable choice: the best candidate if it leads the second best by enough, at a price that does not
depend on the number of candidates.

A replaced record moves the gap by up to 2, since the best loses one and the second best gains one.
The printed test assumes 1 (Beimel, Nissim, Stemmer, Proposition 2.26; erratum E1).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import (
    D,
    Law,
    Mechanism,
    R,
    WithinDelta,
    independent,
    mixture,
    probabilities,
    whole_weights,
)
from local_dp.curator.multisets import WORD, bit_lengths
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Restricted, Runs
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, Pure, approximate, exp_epsilon, nano_epsilon

UNIT = 1 << 64  # probabilities of an answer are multiples of 2^-64
_MOST = 1 << 20  # gaps


@lru_cache(maxsize=64)
def best_acceptance(loss: Approximate) -> tuple[int, ...]:
    """Pr[answer | gap g] in units of 2^-64, for g = 0, 1, ...; it is 1 from the last listed gap on.

    Privacy: (eps, delta). a[0] = a[1] = a[2] = delta, a[g + 2] = min(e^eps a[g] + delta, 1 - e^-eps
    (1 - a[g] - delta)), rounded down. No (eps, delta)-private test of the gap answers more often at
    any gap. Source: Desfontaines, Voss, Gipson, Mandayam 2022, in steps of 2. Raises InputError
    where even a gap of 2^20 is not always answered.
    """
    growth, spare = exp_epsilon(loss.nano), Fraction(loss.atto * UNIT, 10**18)
    likely, acceptance = math.floor(spare), [0]
    while likely < UNIT:
        if len(acceptance) > _MOST:
            raise InputError(
                f"{loss} would answer for certain only at gaps beyond {_MOST}; give a larger "
                "epsilon or delta"
            )
        acceptance += [likely, likely]
        likelier = math.floor(likely * growth + spare)
        unlikelier = math.ceil(max(Fraction(0), (UNIT - likely - spare) / growth))
        likely = min(UNIT, likelier, UNIT - unlikelier)
    return (acceptance[1], *acceptance[1:], UNIT) if len(acceptance) > 1 else (UNIT,)


def laplace_acceptance(gap: int, loss: Approximate) -> float:
    """The repaired test: gap + Lap(2 / eps) >= 2 + (2 / eps) ln(1 / (2 delta)). Privacy: (eps,
    delta), exactly."""
    scale = 2 / loss.epsilon
    return _tail(2 + scale * math.log(1 / (2 * loss.delta)) - gap, scale)


def printed_acceptance(gap: int, loss: Approximate) -> float:
    """The test as printed: gap + Lap(1 / eps) >= (1 / eps) ln(1 / delta). NOT (eps, delta)-private:
    it is (2 eps, delta e^(2 eps) / 2), exactly."""
    scale = 1 / loss.epsilon
    return _tail(scale * math.log(1 / loss.delta) - gap, scale)


def _tail(threshold: float, scale: float) -> float:
    """Pr[Lap(scale) >= threshold]."""
    beyond = math.exp(-abs(threshold) / scale) / 2
    return beyond if threshold >= 0 else 1 - beyond


@dataclass(frozen=True)
class Lead(Generic[R]):
    """The best candidate and the gap between its score and the second best: 0 for a tie, which a
    fixed order breaks; None where there is no other."""

    best: R
    gap: int | None

    def __post_init__(self) -> None:
        if self.gap is not None and (type(self.gap) is not int or self.gap < 0):
            raise InputError(
                f"the gap is {self.gap!r}; scores are whole numbers, so give 0 or more"
            )


@dataclass(frozen=True)
class StableChoice(WithinDelta[D, R | None]):
    """The best candidate with probability `best_acceptance` of its lead, otherwise None: no answer.

    `lead` finds the best by scores that no replaced record moves by more than 1.
    Privacy: (eps, delta), tight. With the same best on both neighbours the gap moves by at most 2,
    and the acceptance is private in steps of 2. With another best both gaps are at most 2, so
    either is released with probability at most delta. Utility: certain from a gap of about 2 + (4 /
    eps) ln(1 / delta) on. Cost: one look at the leader. Source: A_dist of Beimel, Nissim, Stemmer
    2013, Proposition 2.26, repaired (erratum E1) and sharpened (Desfontaines et al. 2022).
    """

    summary = "Chooses the best candidate if its lead is large"
    lead: Callable[[D], Lead[R]]
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        best_acceptance(self.loss)

    def release(self, database: D, draws: Draws) -> R | None:
        lead = self.lead(database)
        return lead.best if draws.below(UNIT) < self.answered(lead.gap) else None

    def law(self, database: D) -> Law[R | None]:
        lead = self.lead(database)
        weight = self.answered(lead.gap)
        return {lead.best: weight, None: UNIT - weight}

    def certain(self, misses: float = 0.05) -> int:
        """The least lead from which on the best is released with probability 1 - `misses` or more:
        without an answer the lead is below it, so probably."""
        enough, weights = math.ceil((1 - misses) * UNIT), best_acceptance(self.loss)
        return next(gap for gap, weight in enumerate(weights) if weight >= enough)

    def answered(self, gap: int | None) -> int:
        """The probability of an answer, in units of 2^-64."""
        acceptance = best_acceptance(self.loss)
        return UNIT if gap is None else acceptance[min(gap, len(acceptance) - 1)]


Interval: TypeAlias = tuple[int, int]  # low..high, both included


@dataclass(frozen=True)
class Partition:
    """The intervals of equal length from `offset` up to `last`, the last one cut there. Candidates
    below `offset` are in none."""

    offset: int
    length: int
    last: int

    def lead(self, runs: Runs) -> Lead[Interval]:
        """The interval with the best candidate, the lowest of those that tie, and its lead over the
        other intervals. O(runs)."""
        start = runs.run_of(self.offset)
        run = start + int(runs.scores[start:].argmax())
        low, high = self.interval(max(runs.start(run), self.offset))
        others = [runs.scores[start : runs.run_of(low - 1) + 1]] if low > self.offset else []
        others += [runs.scores[runs.run_of(high + 1) :]] if high < self.last else []
        if not others:
            return Lead((low, high), None)
        second = max(int(scores.max()) for scores in others)
        return Lead((low, high), int(runs.scores[run]) - second)

    def interval(self, candidate: int) -> Interval:
        low = candidate - (candidate - self.offset) % self.length
        return low, min(low + self.length - 1, self.last)


def crossing(width: int, last: int) -> tuple[Partition, ...]:
    """Two partitions into intervals of length 8 `width`, shifted by half: any 4 `width` candidates
    in a row lie within one interval of one of them."""
    return tuple(Partition(offset, 8 * width, last) for offset in (0, 4 * width) if offset <= last)


def union(intervals: list[Interval], last: int) -> tuple[Interval, ...]:
    """Their candidates up to `last` in disjoint intervals, ascending."""
    disjoint: list[Interval] = []
    for low, high in sorted((low, min(high, last)) for low, high in intervals if low <= last):
        if disjoint and low <= disjoint[-1][1] + 1:
            disjoint[-1] = (disjoint[-1][0], max(high, disjoint[-1][1]))
        else:
            disjoint.append((low, high))
    return tuple(disjoint)


def doubled(last: int) -> int:
    """The least k with 2^k >= last."""
    return max(last - 1, 0).bit_length()


def extended(runs: Runs) -> Runs:
    """The function continued up to the least power of two that is `last` or more: by the smaller of
    0 and its last value."""
    top = 1 << doubled(runs.last)
    if top == runs.last:
        return runs
    kind = np.uint64 if runs.ends.dtype != object and runs.last >> WORD == 0 else object
    ends = np.append(runs.ends.astype(kind), np.array([runs.last], dtype=kind))
    return Runs(ends, np.append(runs.scores, min(0, int(runs.scores[-1]))), top)


def plateaus(runs: Runs) -> Counts:
    """L[0..k+1] on 0..2^k: L[j] is the largest v such that some window of length 2^j lies at v or
    above; L[k + 1] = min(0, L[k]).

    It holds for every function, as privacy needs. No neighbour moves an entry by more than it moves
    a value (Beimel, Nissim, Stemmer, Observation 3.11). O(runs).
    """
    steps = doubled(runs.last)
    scores = runs.scores.astype(np.int64)
    lengths = np.minimum(steps, _whole_log2(runs, *_reaches(scores)))
    heights = np.full(steps + 2, scores.min(), dtype=np.int64)
    np.maximum.at(heights, lengths, scores)
    heights[: steps + 1] = np.maximum.accumulate(heights[steps::-1])[::-1]
    heights[steps + 1] = min(0, heights[steps])
    return heights


def _reaches(scores: Counts) -> tuple[Ints, Ints]:
    """For each run the first and the last run around it that are nowhere lower; of runs that tie,
    for one of them."""
    levels, open_runs = scores.tolist(), list[int]()
    left, right = [0] * len(levels), [len(levels) - 1] * len(levels)
    for run, level in enumerate(levels):
        while open_runs and levels[open_runs[-1]] > level:
            right[open_runs.pop()] = run - 1
        if open_runs:
            left[run] = open_runs[-1] + 1
        open_runs.append(run)
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


def _whole_log2(runs: Runs, first: Ints, final: Ints) -> Ints:
    """floor(log2) of the number of candidates from run `first` to run `final`, exactly; for all of
    them k = log2(`last`)."""
    before, upto = _marks(runs, first, 0), _marks(runs, final, 1)
    lengths = upto - before
    logs = bit_lengths(lengths) - 1
    if lengths.dtype == object:
        return logs
    # lengths of 2^64 and of 2^64 + 1, in words
    overflow = (lengths == 0) | ((first == 0) & (final == len(runs.ends)))
    return np.where(overflow, doubled(runs.last), logs)


def _marks(runs: Runs, which: Ints, shift: int) -> Naturals:
    """One after the last candidate of run `which` - 1 + `shift`; in words modulo 2^64."""
    kind, final = object, runs.last + 1
    if runs.ends.dtype != object and runs.last >> WORD <= 1:
        kind, final = np.uint64, final % (1 << WORD)
    marks = [np.zeros(1, kind), runs.ends.astype(kind) + 1, np.array([final], kind)]
    return np.concatenate(marks)[which + shift]


BASE = 32
_NEGLIGIBLE = 1e-9


def levels_of(last: int, base: int = BASE) -> int:
    """The printed number of levels: log2, rounded up, is taken of `last` until it is at most
    `base`, and one more."""
    return 1 if last <= base else 1 + levels_of(doubled(last), base)


@dataclass(frozen=True)
class Promise:
    """The best score is `high` or more; an answer of score `low` or more is good. Privacy does not
    rest on it."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if type(self.low) is not int or type(self.high) is not int or self.low >= self.high:
            raise InputError(
                f"the promise is from {self.low!r} to {self.high!r}; give two whole numbers, the "
                "second larger"
            )

    @property
    def inner(self) -> "Promise":
        """The promise of the search for a length: R = (high - low) / 2 at a quarter, in whole
        numbers, since scores move by whole steps at every level."""
        high = max(1, (self.high - self.low) // 2)
        return Promise(min(math.ceil(3 * high / 4), high - 1), high)


@dataclass(frozen=True)
class Parts:
    """The loss of each part in nats: the innermost choice, each of the two stable choices of a
    level, and each level's final choice."""

    inner: float
    stable: float
    delta: float
    final: float

    def __post_init__(self) -> None:
        self.total(2)

    def total(self, levels: int) -> Approximate:
        """The loss of all levels: `levels` exponential mechanisms and 2 (levels - 1) stable
        choices."""
        inner, stable = Pure(nano_epsilon(self.inner)), approximate(self.stable, self.delta)
        level = Pure(nano_epsilon(self.final)) + stable + stable
        return sum([level] * (levels - 1), Approximate(0, 0)) + inner


@dataclass(frozen=True)
class RecConcave(Mechanism[D, int, Approximate]):
    """A candidate of 0..last. Its score is `promise.low` or more if the score is quasi-concave and
    reaches `promise.high`, for a high enough `high`.

    A score is quasi-concave if no candidate between two others is lower than both. `score` gives
    whole scores that no neighbour moves by more than 1, on the same 0..last for all databases of a
    size. Privacy: the sum of the parts, `levels` exponential mechanisms and 2 (levels - 1) stable
    choices, for EVERY score. A level scores the length 2^j of a plateau by q(j) = min(L(j) - low,
    high - L(j + 1)), which moves by at most 1. Then it compares the best candidates of intervals of
    8 such lengths. Utility: `high - low` of about 8^levels (log of log ... of last) / eps; Lemma
    3.14. If both stable choices give no answer: the middle, last // 2. Cost: O(runs + levels log
    last). Source: Figure 5, Lemmas 3.12 and 3.14, Theorem 3.15, with stable choice as repaired (E1)
    and the loss as counted (E7).
    """

    summary = "Chooses a candidate whose score is nearly concave"
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
        """Pr[the answer is in low..high], short by at most 1e-9 times the number of lengths.
        Analysis, not part of a release."""
        runs = self.score(database)
        if self.levels == 1:
            return float(self._first.share(runs, runs.within(low, high)))
        chance, lengths = 0.0, self._lengths(runs, self.promise)
        for length, share in self._shares(lengths, self.promise.inner, self.levels - 1).items():
            if share > _NEGLIGIBLE:
                chance += float(share) * sum(
                    float(part * self._inside(runs, among, low, high))
                    for part, among in self._subsets(runs, length)
                )
        return chance

    def stable(self, partition: Partition) -> StableChoice[Runs, Interval]:
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
        length = self._solve(self._lengths(runs, promise), promise.inner, levels - 1, draws)
        partitions = crossing(1 << length, wide.last)
        among = _among(runs, [self.stable(each).release(wide, draws) for each in partitions])
        return self._final.choose(among, draws) if among else runs.last // 2

    def _lengths(self, runs: Runs, promise: Promise) -> Runs:
        """The score of length 2^j, j = 0..k: high if there is a plateau of that length and none of
        twice the length."""
        height = plateaus(extended(runs))
        scores = np.minimum(height[:-1] - promise.low, promise.high - height[1:])
        return Runs(np.arange(len(scores) - 1, dtype=np.uint64), scores, len(scores) - 1)

    def _shares(self, runs: Runs, promise: Promise, levels: int) -> dict[int, Fraction]:
        if levels == 1:
            return probabilities(self._first.law(runs))
        lengths = self._shares(self._lengths(runs, promise), promise.inner, levels - 1)
        middle = {runs.last // 2: Fraction(1)}
        parts = (
            (share * part, among)
            for length, share in lengths.items()
            for part, among in self._subsets(runs, length)
        )
        return mixture(
            (share, probabilities(self._final.law(among)) if among else middle)
            for share, among in parts
        )

    def _subsets(self, runs: Runs, length: int) -> Iterator[tuple[Fraction, Restricted | None]]:
        """The candidates that the stable choices may leave, each set with its probability."""
        wide = extended(runs)
        partitions = crossing(1 << length, wide.last)
        laws = [probabilities(self.stable(each).law(wide)) for each in partitions]
        for answers, share in independent(laws):
            if share:
                yield share, _among(runs, answers)

    def _inside(self, runs: Runs, among: Restricted | None, low: int, high: int) -> Fraction:
        if among:
            return self._final.share(among, among.within(low, high))
        return Fraction(low <= runs.last // 2 <= high)


def _among(runs: Runs, answers: Iterable[Interval | None]) -> Restricted | None:
    intervals = union([answer for answer in answers if answer is not None], runs.last)
    return Restricted(runs, intervals) if intervals else None
