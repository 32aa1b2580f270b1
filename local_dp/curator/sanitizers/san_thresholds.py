"""SanThresholds: blocks of about alpha m records each, found one by one at a price that hardly
depends on the domain; as printed, and rebuilt."""

import math
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.curator.multisets import WORD, Multiset, upto
from local_dp.curator.sanitizers.medians import Steps
from local_dp.curator.sanitizers.san_points import InParts, Printed, Rebuilt
from local_dp.curator.selection.exponential import ExponentialChoice, numbered
from local_dp.curator.selection.groups import Singles
from local_dp.curator.selection.sparse import Goals, PrintedChoice
from local_dp.draws import Draws
from local_dp.loss import NANO, Pure

Interval: TypeAlias = tuple[int, int]  # first..last, both included


@dataclass(frozen=True)
class Blocks(Singles[Interval]):
    """Intervals as candidates: of length 2^width, number `places[i]` from `origins[i]` on, trimmed
    at `high`; `scores` are their numbers of records."""

    scores: Counts
    places: Naturals
    origins: Naturals
    width: int
    high: int

    def member(self, group: int, place: int) -> Interval:
        first = int(self.origins[group]) + (int(self.places[group]) << self.width)
        return first, min(first + (1 << self.width) - 1, self.high)


def inside(points: Multiset, interval: Interval) -> Multiset:
    """The records in an interval, counted from its low end. O(log s)."""
    low, high = interval
    first, last = points.values.dtype.type(low), points.values.dtype.type(high)
    part = slice(
        int(np.searchsorted(points.values, first)),
        int(np.searchsorted(points.values, last, side="right")),
    )
    return Multiset(
        (high - low).bit_length() or 1, points.values[part] - first, points.counts[part]
    )


def fullest_windows(points: Multiset, lengths: int) -> Counts:
    """I(S, j), j = 0..lengths - 1: the most records in an interval of 2^j points. O(s log s) for
    each j, until one contains all records."""
    sums, values = upto(points.counts), points.values

    def window(j: int) -> int:
        last = values + np.minimum(values[-1] - values, (1 << j) - 1)
        return int((sums[np.searchsorted(values, last, side="right")] - sums[:-1]).max())

    return _fullest(points.size, lengths, window)


def fullest_blocks(points: Multiset, lengths: int) -> Counts:
    """The most records in one of the `blocks` of each number z = 0..lengths - 1. O(s) for each,
    until one contains all records."""
    return _fullest(points.size, lengths, lambda z: int(blocks(points, (0, 0), z).scores.max()))


def _fullest(size: int, lengths: int, records: Callable[[int], int]) -> Counts:
    """The number of records at each length, which grows up to `size`."""
    most = np.full(lengths, size, dtype=np.int64)
    for length in range(lengths if size else 0):
        most[length] = records(length)
        if most[length] == size:
            break
    return most


def blocks(points: Multiset, interval: Interval, z: int) -> Blocks:
    """The intervals with records of two partitions of `interval` into lengths 2^(z + 1), from its
    low end and from 2^z on; single points if z is 0.

    `points` are counted from the low end (`inside`). A record lies in two of the intervals, in one
    if z is 0.
    """
    (low, high), values, counts = interval, points.values, points.counts
    if not z:
        return Blocks(counts, values, np.full(len(values), low, dtype=object), 0, high)
    half = 1 << z
    fits = z < WORD or values.dtype == object
    later = np.searchsorted(values, values.dtype.type(half)) if fits else len(values)
    parts = (
        _bucket(values, counts, z + 1),
        _bucket(values[later:] - (half if fits else 0), counts[later:], z + 1),
    )
    lows = np.array([low, low + half], dtype=object)
    origins = np.repeat(lows, [len(places) for places, _ in parts])
    places, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Blocks(scores, places, origins, z + 1, high)


def _bucket(values: Naturals, counts: Counts, width: int) -> tuple[Naturals, Counts]:
    """The intervals of 2^width points from 0 on that have records, and how many."""
    if not len(values):
        return values, counts
    places = values >> width  # of a word by 64 bits or more: 0
    starts: Ints = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    return places[starts], np.add.reduceat(counts, starts)


PARTS = 4  # of a call: two counts, a length, a block


class Aim(NamedTuple):
    """The target size of blocks: a length is good if it has a block of at least `least` records,
    and the next shorter length none above `most`."""

    least: int
    most: int
    leave: int  # a range with fewer records is a block itself


@dataclass(frozen=True)
class BlockByBlock(InParts[Steps]):
    """A synthetic database of blocks: at most `calls` times it finds a block in a range, in four
    parts of loss `part` each.

    A call counts its range; a range of few records is a block. It chooses a length, number z, by
    score min(I(z) - least, most - I(z - 1)), I the most records in an interval of that length. It
    chooses a block among the intervals with records of two partitions into lengths 2^(z + 1),
    single points for z = 0. Cost: O(s) for each call and length, s distinct values. Source: Beimel,
    Nissim, Stemmer 2013, Figure 11, Lemmas 4.8 and 4.12.
    """

    steps: ClassVar[int] = PARTS
    growth: ClassVar[int] = 2

    @abstractmethod
    def aim(self, size: int, bits: int) -> Aim:
        """The target size of blocks for a database of `size` records."""

    @abstractmethod
    def length(self, bits: int) -> Pure:
        """The cost of choosing a length, at most `part`."""

    @staticmethod
    @abstractmethod
    def fullest(points: Multiset, lengths: int) -> Counts:
        """I(0), ..., I(lengths - 1) of a range."""

    @abstractmethod
    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        """The synthetic records of a block."""

    def release(self, database: Multiset, draws: Draws) -> Steps:
        return self.run(database, draws)[0]

    def run(self, database: Multiset, draws: Draws) -> tuple[Steps, int]:
        """The release, and the number of calls, which it reveals. A range without an answer is
        tried again after the others."""
        aim, noise = self.aim(database.size, database.bits), Fraction(self.part.nano, NANO)
        length = ExponentialChoice(self.length(database.bits).epsilon)
        records = Counter[int]()

        def noisy(count: int) -> int:
            return max(0, count + draws.discrete_laplace(noise))

        def call(interval: Interval) -> list[Interval]:
            """Adds a block, and returns the remaining ranges."""
            low, high = interval
            points = inside(database, interval)
            count = noisy(points.size)
            if count < aim.leave:
                records.update(self.synthetic(interval, count))
                return []
            fullest = self.fullest(points, (high - low).bit_length() + 1)
            scores = np.minimum(fullest - aim.least, aim.most - np.concatenate([[0], fullest[:-1]]))
            z = length.choose(numbered(scores), draws)
            block = self.choose(blocks(points, interval, z), 2 if z else 1, database.size, draws)
            if block is None:
                return [interval]
            records.update(self.synthetic(block, noisy(inside(database, block).size)))
            sides = (low, block[0] - 1), (block[1] + 1, high)
            return [side for side in sides if side[0] <= side[1]]

        ranges, calls = deque([(0, (1 << database.bits) - 1)]), 0
        while ranges and calls < self.repetitions:
            calls += 1
            ranges.extend(call(ranges.popleft()))
        points, total = sorted(records), max(1, records.total())
        sums = accumulate(records[point] for point in points)
        steps = ((point + 1, below / total) for point, below in zip(points, sums, strict=True))
        return Steps.of(database.bits, steps), calls


@dataclass(frozen=True)
class PrintedSanThresholds(Printed[Steps], BlockByBlock):
    """As printed: 77 / alpha calls, the text's split of Theorem 2.5, the printed choosing
    mechanism, a block's records moved to its last point.

    Privacy: (eps, delta) ONLY from `least` records on; with fewer, `release` refuses. The length's
    budget has the text's divisor 3 log* of the bits. Utility: without noise within 9 alpha / 32 of
    every threshold. After no answer, which the text leaves open, the range is tried again.
    """

    summary = "Sanitizes thresholds as printed"
    fullest = staticmethod(fullest_windows)

    @property
    def repetitions(self) -> int:
        return math.ceil(77 / self.goals.alpha)

    def aim(self, size: int, bits: int) -> Aim:
        r = math.floor(share_of(self.goals.alpha, size) / 32)
        return Aim(r, 3 * r, math.ceil(share_of(self.goals.alpha, size) / 8))

    def length(self, bits: int) -> Pure:
        return Pure(self.part.nano // (3 * _log_star(bits)))

    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        return {block[1]: count}

    def run(self, database: Multiset, draws: Draws) -> tuple[Steps, int]:
        self.choice(2).check(database.size)
        return super().run(database, draws)

    def choice(self, growth: int) -> PrintedChoice:
        goals = Goals(self.goals.alpha / 64, self.goals.beta / (3 * self.repetitions))
        return PrintedChoice(self.part.epsilon, self.delta / (5 * self.repetitions), goals, growth)


@dataclass(frozen=True)
class SanThresholds(Rebuilt[Steps], BlockByBlock):
    """Rebuilt: 1 + 51.2 / alpha calls, optimal composition, the sparse exponential mechanism.
    Private at every number of records.

    I is that of the two partitions, at most doubled from one length to the next. Blocks have alpha
    m / 8 records, or more if the choice of a block needs them. Half of a block's records are moved
    to its first point, half to its last. Privacy: (eps, delta), half of delta for the composition
    of 4 `calls` equal parts, half for the choices of a block. Utility: without noise within alpha /
    4 of every threshold.
    """

    summary = "Sanitizes thresholds, rebuilt from the text"
    fullest = staticmethod(fullest_blocks)

    @property
    def repetitions(self) -> int:
        return math.ceil(1 + 51.2 / self.goals.alpha)

    def aim(self, size: int, bits: int) -> Aim:
        loss = self.choice(2).loss
        least = math.ceil(2 / loss.epsilon * (math.log(2 / loss.delta) + math.log(bits + 1) + 2))
        size_of_blocks = max(least, math.ceil(share_of(self.goals.alpha, size) / 8))
        return Aim(size_of_blocks, size_of_blocks, size_of_blocks)

    def length(self, bits: int) -> Pure:
        return self.part

    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        first, last = block
        return {last: count} if first == last else {first: count // 2, last: count - count // 2}


def share_of(alpha: float, size: int) -> Fraction:
    return Fraction(repr(alpha)) * size


def _log_star(bits: int) -> int:
    """log* of the number of bits: the number of times that log2 is taken to reach 1."""
    times, left = 0, float(bits)
    while left > 1:
        times, left = times + 1, math.log2(left)
    return max(1, times)
