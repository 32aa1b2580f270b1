"""SanThresholds: blocks of about alpha m records each, found one by one at a price that hardly depends on the domain; as printed, and rebuilt."""

import math
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from local_dp.accounting.shares import optimal_part, printed_part
from local_dp.arrays import Counts
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.sanitizers.windows import Interval, blocks, fullest_blocks, fullest_windows, inside
from local_dp.curator.selection.exponential import ExponentialChoice, numbered
from local_dp.curator.selection.groups import Groups
from local_dp.curator.selection.printed import Goals, PrintedChoice
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.draws import Draws
from local_dp.loss import ATTO, NANO, Approximate, Pure, approximate

PARTS = 4  # of a call: two counts, a length, a block


class Aim(NamedTuple):
    """How many records are wanted: a length is good that has a block of at least `least`, and the next shorter length none above `most`."""

    least: int
    most: int
    leave: int
    """A range of fewer is a block itself."""


@dataclass(frozen=True)
class BlockByBlock(Mechanism[Multiset, Steps, Approximate]):
    """A synthetic database of blocks: at most `calls` times a range is looked at, in four parts of loss `part` each, and a block of it made out.

    A call counts its range; one of few records is a block. It chooses a length, number z, by score min(I(z) - least, most - I(z - 1)), I the most records in
    an interval of that length, by RecConcave at depth 1, which is the exponential mechanism; a block among the intervals that hold records of two partitions
    into lengths 2^(z + 1), single points for z = 0; counts the block; and calls on what is left on both sides of it.
    Cost: O(s) for each call and length, s distinct values. Source: Beimel, Nissim, Stemmer 2013, Figure 11, Lemmas 4.8 and 4.12.
    """

    epsilon: float
    delta: float
    goals: Goals

    @property
    @abstractmethod
    def calls(self) -> int:
        """How many ranges are looked at, at most."""

    @property
    @abstractmethod
    def part(self) -> Pure:
        """What each of the 4 `calls` parts may cost, but for the deltas of the choices of a block."""

    @abstractmethod
    def aim(self, size: int, bits: int) -> Aim:
        """How large blocks are to be, of a database of `size` records."""

    @abstractmethod
    def length(self, bits: int) -> Pure:
        """What the choice of a length costs, at most `part`."""

    @abstractmethod
    def fullest(self, points: Multiset, lengths: int) -> Counts:
        """I(0), ..., I(lengths - 1) of a range."""

    @abstractmethod
    def block(self, groups: Groups[Interval], growth: int, size: int, draws: Draws) -> Interval | None:
        """The block chosen, or None: no answer."""

    @abstractmethod
    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        """The synthetic records of a block."""

    def release(self, database: Multiset, draws: Draws) -> Steps:
        found, _ = self.run(database, draws)
        return found

    def run(self, database: Multiset, draws: Draws) -> tuple[Steps, int]:
        """The release, and how many calls were made, which it tells."""
        return _Run(self, database, draws).steps()


class _Run:
    """One run: the ranges still to be looked at, and the synthetic records so far."""

    def __init__(self, sanitizer: BlockByBlock, points: Multiset, draws: Draws) -> None:
        self._of, self._points, self._draws = sanitizer, points, draws
        self._aim = sanitizer.aim(points.size, points.bits)
        self._noise = Fraction(sanitizer.part.nano, NANO)
        self._synthetic: Counter[int] = Counter()

    def steps(self) -> tuple[Steps, int]:
        """Of the whole domain. A range without an answer is looked at again, after the others."""
        ranges, calls = deque([(0, (1 << self._points.bits) - 1)]), 0
        while ranges and calls < self._of.calls:
            calls += 1
            ranges.extend(self._call(ranges.popleft()))
        held = sorted(self._synthetic.items())
        total = max(1, self._synthetic.total())
        upto = accumulate(count for _, count in held)
        return Steps.of(self._points.bits, ((point + 1, below / total) for (point, _), below in zip(held, upto, strict=True))), calls

    def _call(self, interval: Interval) -> list[Interval]:
        """Adds a block, and says which ranges are left."""
        low, high = interval
        points = inside(self._points, interval)
        count = self._noisy(points.size)
        if count < self._aim.leave:
            self._synthetic.update(self._of.synthetic(interval, count))
            return []
        z = self._length(points, (high - low).bit_length() + 1)
        block = self._of.block(blocks(points, interval, z), 2 if z else 1, self._points.size, self._draws)
        if block is None:
            return [interval]
        first, last = block
        self._synthetic.update(self._of.synthetic(block, self._noisy(inside(self._points, block).size)))
        return [rest for rest in ((low, first - 1), (last + 1, high)) if rest[0] <= rest[1]]

    def _length(self, points: Multiset, lengths: int) -> int:
        """z, below `lengths`."""
        held = self._of.fullest(points, lengths)
        scores = np.minimum(held - self._aim.least, self._aim.most - np.concatenate([[0], held[:-1]]))
        choice = ExponentialChoice(self._of.length(self._points.bits).epsilon)
        return choice.choose(numbered(scores), self._draws)

    def _noisy(self, count: int) -> int:
        return max(0, count + self._draws.discrete_laplace(self._noise))


@dataclass(frozen=True)
class PrintedSanThresholds(BlockByBlock):
    """As printed: 77 / alpha calls, the text's split of Theorem 2.5, the printed choosing mechanism, a block's records moved to its last point.

    Privacy: (eps, delta) ONLY from `least` records on; below, `release` refuses. The length's budget has the text's divisor 3 log* of the bits.
    Utility: without noise within 9 alpha / 32 of every threshold. No answer, which the text leaves open, is asked for again.
    """

    def __post_init__(self) -> None:
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(approximate(self.epsilon, self.delta).nano, self.calls * self._choice(2).loss.atto + self._spare)

    @property
    def calls(self) -> int:
        return math.ceil(77 / self.goals.alpha)

    @property
    def part(self) -> Pure:
        return printed_part(Approximate(approximate(self.epsilon, self.delta).nano, self._spare), PARTS * self.calls)

    @property
    def least(self) -> int:
        """The number of records from which it is private."""
        return self._choice(2).least

    def aim(self, size: int, bits: int) -> Aim:
        r = math.floor(share_of(self.goals.alpha, size) / 32)
        return Aim(r, 3 * r, math.ceil(share_of(self.goals.alpha, size) / 8))

    def length(self, bits: int) -> Pure:
        return Pure(self.part.nano // (3 * _iterated(bits)))

    def fullest(self, points: Multiset, lengths: int) -> Counts:
        return fullest_windows(points, lengths)

    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        return {block[1]: count}

    def block(self, groups: Groups[Interval], growth: int, size: int, draws: Draws) -> Interval | None:
        return self._choice(growth).choose(groups, size, draws)

    def run(self, database: Multiset, draws: Draws) -> tuple[Steps, int]:
        self._choice(2).check(database.size)
        return super().run(database, draws)

    @property
    def _spare(self) -> int:
        """The delta of the composition: a fifth, in units of 1e-18."""
        return approximate(self.epsilon, self.delta).atto // 5

    def _choice(self, growth: int) -> PrintedChoice:
        goals = Goals(self.goals.alpha / 64, self.goals.beta / (3 * self.calls))
        return PrintedChoice(self.part.epsilon, self.delta / (5 * self.calls), goals, growth)


@dataclass(frozen=True)
class SanThresholds(BlockByBlock):
    """Rebuilt: 1 + 51.2 / alpha calls, optimal composition, the sparse exponential mechanism. Private at every number of records.

    I is that of the two partitions themselves: at most doubled from one length to the next. Blocks have alpha m / 8 records, but no fewer than can be told
    from no answer, and half of a block's records are moved to its first point, half to its last.
    Privacy: (eps, delta), half of delta for the composition of 4 `calls` equal parts, half for the choices of a block.
    Utility: without noise within alpha / 4 of every threshold.
    """

    def __post_init__(self) -> None:
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(approximate(self.epsilon, self.delta).nano, self._spare + self.calls * self._choice(2).loss.atto)

    @property
    def calls(self) -> int:
        return math.ceil(1 + 51.2 / self.goals.alpha)

    @property
    def part(self) -> Pure:
        return optimal_part(Approximate(approximate(self.epsilon, self.delta).nano, self._spare), PARTS * self.calls)

    def aim(self, size: int, bits: int) -> Aim:
        loss = self._choice(2).loss
        told = math.ceil(2 / loss.epsilon * (math.log(2 / loss.delta) + math.log(bits + 1) + 2))
        wanted = max(told, math.ceil(share_of(self.goals.alpha, size) / 8))
        return Aim(wanted, wanted, wanted)

    def length(self, bits: int) -> Pure:
        return self.part

    def fullest(self, points: Multiset, lengths: int) -> Counts:
        return fullest_blocks(points, lengths)

    def synthetic(self, block: Interval, count: int) -> Mapping[int, int]:
        first, last = block
        return {last: count} if first == last else {first: count // 2, last: count - count // 2}

    def block(self, groups: Groups[Interval], growth: int, size: int, draws: Draws) -> Interval | None:
        return self._choice(growth).choose(groups, draws)

    @property
    def _spare(self) -> int:
        """The delta of the composition, in units of 1e-18."""
        return approximate(self.epsilon, self.delta).atto // 2

    def _choice(self, growth: int) -> SparseChoice:
        return SparseChoice(self.part.epsilon, self._spare // self.calls / ATTO, growth)


def share_of(alpha: float, size: int) -> Fraction:
    """alpha m, exactly."""
    return Fraction(repr(alpha)) * size


def _iterated(bits: int) -> int:
    """log* of the number of bits: how often log2 is taken until 1 is reached."""
    times, left = 0, float(bits)
    while left > 1:
        times, left = times + 1, math.log2(left)
    return max(1, times)
