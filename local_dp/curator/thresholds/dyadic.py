"""Thresholds that occur in the data, in groups of equal score, and their learner: as many records
as the logarithm of the number of bits, not the bits.

The learner completes the warm-up of Section 3.2. Candidates are the middles of the dyadic intervals
that contain a record, and the two constants. The interval of height h around x is the 2^h points
that agree with x above their last h bits, h = 1..bits. Every t in 1..2^bits - 1 is the middle of
one. The intervals that contain a point form a compressed trie: every interval of a chain without
branches contains the same points.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.checks import check_built, check_share
from local_dp.curator.clipped import least_tail
from local_dp.curator.mechanism import Law, image
from local_dp.curator.multisets import (
    WORD,
    LabelledMultiset,
    Multiset,
    bit_lengths,
    check_bits,
    check_same,
    upto,
)
from local_dp.curator.selection.groups import Groups
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.learner import ThresholdLearner, errors_by_gap
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure, nano_epsilon


@dataclass(frozen=True)
class Trie:
    """All intervals that contain a point: c chains, and s - 1 forks for s distinct points; whole
    numbers.

    Chain i: the intervals of heights `above[i]` + 1 .. `below[i]` - 1 around the points number
    `first[i]`..`final[i]`, which lie in one half of each. Fork j: the interval of height
    `heights[j]` around the points `left[j]`..`right[j]`, of which number j is the last in the left
    half.
    """

    first: Ints
    final: Ints
    above: Ints
    below: Ints
    left: Ints
    right: Ints
    heights: Ints

    @classmethod
    def of(cls, values: Naturals, bits: int) -> Self:
        """Of ascending distinct points: height by height, O(s) in all."""
        count = len(values)
        if not count:
            return cls(*(np.zeros(0, dtype=np.int64) for _ in range(7)))
        forks = fork_heights(values)
        index = np.arange(count, dtype=np.int32)
        # by the last point, by the first, by the first
        first_of, final_of, top_of = index.copy(), index.copy(), np.zeros_like(index)
        left, right, above_left, above_right = (np.zeros_like(index[1:]) for _ in range(4))
        # of bytes: by counting
        small = np.uint8 if forks.max(initial=0) < 256 else np.int32
        order = np.argsort(forks.astype(small), kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(forks[order])) + 1)
        # forks of one height lie apart; `split` makes one empty group of none
        for group in groups[: len(forks)]:
            low, high = first_of[group], final_of[group + 1]
            left[group], right[group] = low, high
            above_left[group], above_right[group] = top_of[low], top_of[group + 1]
            first_of[high], final_of[low], top_of[low] = low, high, forks[group[0]]
        first = np.concatenate([left, index[1:], index[:1]])
        final = np.concatenate([index[:-1], right, index[-1:]])
        root = np.array([bits + 1], dtype=np.int32)
        above = np.concatenate([above_left, above_right, top_of[:1]])
        return cls(first, final, above, np.concatenate([forks, forks, root]), left, right, forks)


def fork_heights(values: Naturals) -> Ints:
    """The height of the smallest dyadic interval that contains both a point and the next one."""
    return bit_lengths(values[1:] ^ values[:-1]).astype(np.int32)


def ones_between(values: Naturals, low: Ints, high: Ints) -> Counts:
    """The number of ones among the bits low..high - 1 of each value, low <= high."""
    if values.dtype == object:
        every = zip(values.tolist(), low.tolist(), (high - low).tolist(), strict=True)
        counts = [
            (value >> start & ((1 << width) - 1)).bit_count() for value, start, width in every
        ]
        return np.array(counts, dtype=np.int64)
    # a shift by 64 bits leaves 0
    masks = ~np.uint64(0) >> (WORD - (high - low)).astype(np.uint64)
    ones = np.bitwise_count(values >> low.astype(np.uint64) & masks)
    return np.asarray(ones.astype(np.int64))


def middle(value: int, height: int) -> int:
    """The middle of the dyadic interval of this height around the value."""
    return ((value >> height << 1) | 1) << (height - 1)


@dataclass(frozen=True)
class Middles(Groups[int]):
    """Groups of thresholds, of the same score and with the same number `gap` of distinct points
    below them; all arrays of shape (k,).

    First the constants 0 and 2^bits, then the middle of each fork. Then, for each chain, the
    middles right of its points, and those left of them.
    """

    bits: int
    values: Naturals
    trie: Trie
    gap: Ints
    sizes: Naturals
    scores: Counts

    def member(self, group: int, place: int) -> int:
        forks, chains = len(self.trie.heights), len(self.trie.first)
        if group < 2:
            return group << self.bits
        if group < 2 + forks:
            fork = group - 2
            return middle(int(self.values[fork]), int(self.trie.heights[fork]))
        left, chain = divmod(group - 2 - forks, chains)
        value = int(self.values[self.trie.first[chain]])
        heights = range(int(self.trie.above[chain]) + 1, int(self.trie.below[chain]))
        own = [height for height in heights if value >> (height - 1) & 1 == left]
        return middle(value, own[place])

    def within(self, low: int, high: int) -> Naturals:
        """The number of thresholds of each group in low..high."""
        # the thresholds of gap g are starts[g]..starts[g + 1] - 1
        values = self.values.tolist()
        starts, ends = [0, *(value + 1 for value in values)], [*values, 1 << self.bits]
        ranges = list(zip(starts, ends, strict=True))
        whole = np.array([low <= start and end <= high for start, end in ranges])
        meets = np.array([start <= high and low <= end for start, end in ranges])
        inside: Naturals = np.where(whole[self.gap], self.sizes, 0).astype(np.uint64)
        for group in np.flatnonzero((meets & ~whole)[self.gap]).tolist():
            members = (self.member(group, place) for place in range(int(self.sizes[group])))
            inside[group] = sum(low <= member <= high for member in members)
        return inside


def middles(points: Multiset, by_gap: Counts) -> Middles:
    """The candidates of some points, of score min(points in the interval, `by_gap`[distinct points
    below]); the constants have no such limit. O(s log s)."""
    trie, count = Trie.of(points.values, points.bits), len(points.values)
    before = upto(points.counts)
    forks = before[trie.right + 1] - before[trie.left]
    chains = before[trie.final + 1] - before[trie.first]
    left = ones_between(points.values[trie.first], trie.above, trie.below - 1)
    gap = np.concatenate([[0, count], np.arange(1, len(forks) + 1), trie.final + 1, trie.first])
    right = trie.below - 1 - trie.above - left
    sizes = np.concatenate([np.ones(2 + len(forks), dtype=np.int64), right, left])
    scores = by_gap[gap]
    scores[2:] = np.minimum(scores[2:], np.concatenate([forks, chains, chains]))
    scores[sizes == 0] = scores[0]  # empty groups: the best score is that of a candidate
    return Middles(points.bits, points.values, trie, gap, sizes.view(np.uint64), scores)


def spare(epsilon: float, delta: float) -> float:
    """1 + (2 / eps) ln(1 / delta): the score at which one candidate weighs as much as its share of
    no answer."""
    return 1 - 2 / epsilon * math.log(delta)


def surely_within(bits: int, epsilon: float, delta: float, beta: float) -> float:
    """r = 2 + (2 / eps) ln(1 / delta) + (4 / eps) ln(d (1 + 2 / d + 4 / (1 - e^(-eps / 2))) /
    beta), d = `bits`.

    Take scores min(s, r + `spare` - off), off = 0 somewhere and growing by 1 or more from gap to
    gap. The sparse exponential mechanism of growth d then chooses a candidate with off <= r except
    with probability beta. Proof: with c = (r + spare) / 2, the lowest interval around the gap with
    s >= c has its middle less than c off, so the best score is (r + spare - 1) / 2 or more. Those
    with off > r have score `spare` at most, at most 2 d of them in a gap.
    """
    worse = 1 + 2 / bits - 4 / math.expm1(-epsilon / 2)
    return 1 + spare(epsilon, delta) + 4 / epsilon * math.log(bits * worse / beta)


_FORGOTTEN = 1e-4


@dataclass(frozen=True)
class DyadicThresholds(ThresholdLearner[Approximate]):
    """A threshold t with weight e^(eps min(s, H - errors(t)) / 2), s the number of records in the
    dyadic interval whose middle is t.

    Candidates have s >= 1; the constants 0 and 2^bits always are candidates, of score H - errors.
    No answer: 2^(bits - 1). H = alpha m + 1 + (2 / eps) ln(1 / delta), rounded down; `agnostic`:
    plus the least number of errors, estimated with a tenth of epsilon. Privacy: (eps, delta) on
    every sample: a record lies in `bits` intervals, one of each height, and the largest contains
    every record. So one replacement makes at most `bits` - 1 candidates leave, of score 1 or less,
    and moves a score by 1 at most. Utility: `dyadic_records`. Cost: O(m log m), whatever the bits.
    Source: completes the informal Section 3.2 of Beimel, Nissim, Stemmer 2013, where an interval
    counts the smaller number of its zeros and ones: as private, as well proven, but at 64 bits
    twice as many records.
    """

    summary = "Releases a threshold, scored on dyadic intervals"
    bits: int
    alpha: float
    epsilon: float
    delta: float
    agnostic: bool = False

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_share("alpha", self.alpha)
        check_built(self.choice.loss)  # refuses what the choice refuses

    @property
    def choice(self) -> SparseChoice:
        epsilon = (nano_epsilon(self.epsilon) - self.optimum.nano) / NANO
        return SparseChoice(epsilon, self.delta, max(1, self.bits - 1))

    @property
    def optimum(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon) // 10 if self.agnostic else 0)

    @property
    def loss(self) -> Approximate:
        return self.optimum + self.choice.loss

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        """With their scores, if the best threshold errs on `optimum` records."""
        check_same(sample.bits, self.bits)
        points = Multiset(sample.bits, sample.values, sample.zeros + sample.ones)
        height = optimum + self._room(sample.size)
        return middles(points, height - errors_by_gap(sample))

    def _room(self, size: int) -> int:
        """H without the least number of errors."""
        return math.floor(self.alpha * size + spare(self.choice.epsilon, self.delta))

    def release(self, database: LabelledMultiset, draws: Draws) -> int:
        optimum = 0
        if self.agnostic:
            noise = draws.discrete_laplace(Fraction(self.optimum.nano, NANO))
            optimum = int(errors_by_gap(database).min()) + noise
        return self._answer(self.choice.choose(self.candidates(database, optimum), draws))

    def law(self, database: LabelledMultiset) -> Law[int]:
        """Exact; not for an agnostic learner."""
        if self.agnostic:
            raise InputError(
                "an agnostic law has infinitely many outcomes and is not listed; use `chance`"
            )
        return image(self.choice.law(self.candidates(database, 0)), self._answer)

    def excess(self, size: int, misses: float = 0.05) -> int | None:
        """X: on any `size` records the threshold errs on at most X more than the best, with
        probability 1 - `misses`; None if no X below `size` is proved.

        A fifth of `misses` is for the noise y of the optimum; then H is at least best + h. The
        lowest interval around the best gap with c = (h + 1) / 2 records has its middle less than c
        from it: a candidate of score c or more. At most `bits` candidates a record and two
        constants err on more than X. Their scores are at most h - X - 1; no answer has the weight
        of `SparseChoice`.
        """
        rate = -math.log1p(float(self.choice.decay - 1))
        noise = least_tail(self.optimum.nano, Fraction(misses) / 10) - 1 if self.agnostic else 0
        room = self._room(size)
        least = 1 - max(0, room - noise + 1) // 2
        silent = self.choice.growth / self.delta * math.exp(rate * least)
        left = misses * (0.8 if self.agnostic else 1.0) - silent
        if left <= 0:
            return None
        beyond = math.ceil(math.log((self.bits * size + 2) / left) / rate)
        excess = (room + noise) // 2 - 1 + beyond
        return excess if excess < size else None

    def _answer(self, threshold: int | None) -> int:
        return self._middle if threshold is None else threshold

    @property
    def _middle(self) -> int:
        return 1 << (self.bits - 1)

    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        inside = self.candidates(sample, 0).within(low, high)
        # the possible estimates of the least number of errors, with their probabilities
        optima = [(0, 1.0)]
        if self.agnostic:
            least, rate = int(errors_by_gap(sample).min()), self.optimum.epsilon
            most = math.ceil(-math.log(_FORGOTTEN) / rate)
            noises = range(-most, most + 1)
            shares = (math.tanh(rate / 2) * math.exp(-rate * abs(noise)) for noise in noises)
            optima = [(least + noise, share) for noise, share in zip(noises, shares, strict=True)]
        total = 0.0
        for optimum, share in optima:
            hit, none = self.choice.share(self.candidates(sample, optimum), inside)
            total += share * float(hit + (none if low <= self._middle <= high else 0))
        return total


def dyadic_records(bits: int, alpha: float, epsilon: float, delta: float, beta: float = 0.1) -> int:
    """m with alpha m >= `surely_within`(bits, ...): if some threshold fits all m records, it errs
    on at most alpha m, except with probability beta."""
    return math.ceil(surely_within(bits, epsilon, delta, beta) / alpha)
