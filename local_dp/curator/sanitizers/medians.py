"""All thresholds, and so all quantiles: from a tree of medians, pure, by one choice in each node;
and from noisy counts, to compare it with."""

import math
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import L_co, Law, Mechanism, image, independent
from local_dp.curator.multisets import WORD, Multiset, upto
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Groups, Runs
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.dyadic import Middles, middles
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure, approximate, exp_epsilon, nano_epsilon


def ranks(points: Multiset, thresholds: Sequence[int]) -> Ints:
    """The number of records below each threshold of 0..2^bits, exactly."""
    sums = upto(points.counts)
    inside = np.array(
        [min(threshold, (1 << points.bits) - 1) for threshold in thresholds],
        dtype=points.values.dtype,
    )
    below: Ints = sums[np.searchsorted(points.values, inside)]
    below[[threshold >> points.bits > 0 for threshold in thresholds]] = sums[-1]
    return below


@dataclass(frozen=True)
class Steps:
    """A step function of the thresholds: `shares[i]`, in 0..1, from `starts[i]` on; `starts` ascend
    from 0."""

    bits: int
    starts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, bits: int, steps: Iterable[tuple[int, float]]) -> Self:
        """From thresholds of 0..2^bits, in any order, with the share from each on; the last share
        of a threshold counts. 0 below the first, 1 at 2^bits."""
        share_from = {0: 0.0, **dict(steps), 1 << bits: 1.0}
        starts = sorted(share_from)
        return cls(
            bits, tuple(starts), tuple(min(1.0, max(0.0, share_from[start])) for start in starts)
        )

    def share(self, threshold: int) -> float:
        return self.shares[bisect_right(self.starts, threshold) - 1]

    def quantile(self, share: float) -> int:
        """The least threshold with at least this share below it: a quantile is the point before
        it."""
        return next(
            start for start, below in zip(self.starts, self.shares, strict=True) if below >= share
        )

    def error(self, points: Multiset) -> float:
        """The largest error over all thresholds 0..2^bits, exactly: the truth ascends, so it is at
        an end of a step. For analysis: not private."""
        lasts = [*(start - 1 for start in self.starts[1:]), 1 << self.bits]
        estimates: Floats = np.array(self.shares)
        size = max(1, points.size)
        errors = (ranks(points, ends) / size - estimates for ends in (self.starts, lasts))
        return max(float(np.abs(each).max()) for each in errors)


@lru_cache(maxsize=8)
def reversed_bits(low: int) -> Ints:
    """The numbers 0..2^low - 1 with their bits in reversed order."""
    numbers = np.zeros(1, dtype=np.int64)
    for _ in range(low):
        numbers = np.concatenate([2 * numbers, 2 * numbers + 1])
    return numbers


@dataclass(frozen=True)
class Spread:
    """The records of `points` as finer points below 2^(bits + low), in order: ties broken without a
    draw, so that every rank is near a finer point.

    The i-th record of a value gets the low bits i reversed (van der Corput). An added record adds
    one finer point and moves none, so neighbours stay neighbours: a mechanism that is private on
    finer points is private.
    """

    points: Multiset
    low: int

    @property
    def bits(self) -> int:
        return self.points.bits + self.low

    @property
    def root(self) -> "Node":
        return Node(0, 1 << self.bits, 0, self.points.size)

    @cached_property
    def upto(self) -> Counts:
        return upto(self.points.counts)

    def rank(self, threshold: int) -> int:
        """The number of records below a threshold of 0..2^bits."""
        value, part = threshold >> self.low, threshold & ((1 << self.low) - 1)
        if value >> self.points.bits:
            return int(self.upto[-1])
        at = int(
            np.searchsorted(self.points.values, np.array(value, dtype=self.points.values.dtype))
        )
        below = int(self.upto[at])
        if part and at < len(self.points.values) and int(self.points.values[at]) == value:
            rounds, more = divmod(int(self.points.counts[at]), 1 << self.low)
            below += rounds * part + int(np.count_nonzero(reversed_bits(self.low)[:more] < part))
        return below

    def cell(self, record: int) -> int:
        """The number of records at the finer point of this one, at most."""
        at = int(np.searchsorted(self.upto, record, side="right")) - 1
        return (int(self.points.counts[at]) >> self.low) + 1 if at < len(self.points.values) else 1

    def between(self, first: int, last: int) -> tuple[Naturals, Counts]:
        """The finer points of the records first..last - 1, distinct and ascending, and the number
        of records below each."""
        word = np.uint64 if self.bits <= WORD else object
        start = int(np.searchsorted(self.upto, first, side="right")) - 1
        stop = int(np.searchsorted(self.upto, last, side="left"))
        if first >= last:
            return np.zeros(0, dtype=word), np.zeros(0, dtype=np.int64)
        values, counts = self.points.values[start:stop], self.points.counts[start:stop]
        cells = np.minimum(counts, 1 << self.low)
        which = np.repeat(np.arange(len(values)), cells)
        number = np.arange(len(which)) - np.repeat(np.cumsum(cells) - cells, cells)
        part = reversed_bits(self.low)[number]
        order = np.argsort((which << self.low) + part)
        more = number < (counts[which] & ((1 << self.low) - 1))
        each = ((counts[which] >> self.low) + more)[order]
        ends = int(self.upto[start]) + np.cumsum(each)
        below = ends - each
        inside = (ends > first) & (below < last)
        places = order[inside]
        points = values[which[places]].astype(word) * (1 << self.low)
        return points + part[places].astype(word), below[inside]


MAX_LEVELS, MAX_LOW = 16, 20


class Node(NamedTuple):
    """The finer points from `low` to `high` - 1; their records have the numbers `first`..`last` -
    1."""

    low: int
    high: int
    first: int
    last: int

    def split(self, records: Spread, cut: int) -> tuple["Node", "Node"]:
        middle = records.rank(cut)
        return Node(self.low, cut, self.first, middle), Node(cut, self.high, middle, self.last)

    def near(self, records: Spread, reach: int) -> tuple[Naturals, Counts, Counts]:
        """The finer points of the records up to `reach` and two cells from the median. For the cuts
        between these the number of records below, and twice its distance from the median."""
        middle = (self.first + self.last) // 2
        near = reach + 2 * records.cell(middle) + 2
        last = min(self.last, middle + near)
        points, below = records.between(max(self.first, middle - near), last)
        ranks = np.append(below, last)
        return points, ranks, np.abs(2 * ranks - self.first - self.last)


@dataclass(frozen=True)
class TreeOfMedians(Mechanism[Multiset, Steps, L_co]):
    """2^levels - 1 cuts, each near the median of the records between its ancestors; the cuts of one
    level share eps / `levels`.

    The share below the cut number v is v / 2^levels, and half-way between two cuts; so the error
    without noise is 1 / 2^(levels + 1). Frequent values are spread over 2^`low` finer points
    (`Spread`). Cost: O(s) for s distinct values, and 2^levels choices.
    """

    epsilon: float
    levels: int
    low: int = 10

    def __post_init__(self) -> None:
        check_whole("levels", self.levels, 1, MAX_LEVELS)
        check_whole("low", self.low, 0, MAX_LOW)
        if nano_epsilon(self.epsilon) < 4 * self.levels:
            raise InputError(
                f"epsilon is {self.epsilon} for {self.levels} levels; give a larger epsilon or "
                "fewer levels"
            )

    @abstractmethod
    def choice(self, bits: int) -> ExponentialChoice | SparseChoice:
        """The choice of a cut among finer points of so many bits."""

    @abstractmethod
    def candidates(self, records: Spread, node: Node) -> Groups[int]:
        """The cuts that a node may have, by their scores."""

    @abstractmethod
    def cut(self, node: Node, candidate: int | None) -> int:
        """The cut of a candidate, or of no answer."""

    def release(self, database: Multiset, draws: Draws) -> Steps:
        records = Spread(database, self.low)
        nodes, choice = [records.root], self.choice(records.bits)
        for _ in range(self.levels):
            parts = list[Node]()
            for node in nodes:
                candidate = choice.choose(self.candidates(records, node), draws)
                parts += node.split(records, self.cut(node, candidate))
            nodes = parts
        return self._steps(database.bits, tuple(node.high for node in nodes[:-1]))

    def law(self, database: Multiset) -> Law[Steps]:
        records = Spread(database, self.low)
        return image(
            self._law(records, records.root, self.levels),
            lambda cuts: self._steps(database.bits, cuts),
        )

    def _law(self, records: Spread, node: Node, levels: int) -> Law[tuple[int, ...]]:
        """The law of the ascending cuts in a node: given its own cut, those of its two parts are
        independent."""
        if not levels:
            return {(): 1}
        outcomes = dict[tuple[int, ...], int]()
        law: Law[int | None] = {**self.choice(records.bits).law(self.candidates(records, node))}
        own = image(law, lambda candidate: self.cut(node, candidate))
        laws = {
            cut: [self._law(records, part, levels - 1) for part in node.split(records, cut)]
            for cut in own
        }
        totals = {cut: math.prod(sum(law.values()) for law in parts) for cut, parts in laws.items()}
        common = math.lcm(*totals.values())
        for cut, weight in own.items():
            for (before, after), rest in independent(laws[cut]):
                outcomes[(*before, cut, *after)] = weight * (common // totals[cut]) * rest
        return outcomes

    def _steps(self, bits: int, cuts: tuple[int, ...]) -> Steps:
        """The answers of ascending cuts: the share of a cut that is a threshold of the domain, and
        half-way between two cuts."""
        near = {threshold for cut in cuts for threshold in (cut >> self.low, (cut >> self.low) + 1)}

        def share(threshold: int) -> float:
            fine = threshold << self.low
            return (bisect_left(cuts, fine) + bisect_right(cuts, fine) + 1) / 2 / (1 << self.levels)

        return Steps.of(bits, ((t, share(t)) for t in {1, *near} if 0 < t < 1 << bits))


@dataclass(frozen=True)
class Medians(TreeOfMedians[Pure]):
    """Each cut t of a node of m records has weight e^(-eps |#(below t) - m / 2| / (2 levels)), over
    all thresholds of the node's range.

    Privacy: epsilon, pure. At each level a replaced record moves the scores of one node by up to 1,
    or those of two by up to 1/2; the ranges are public. An added or removed record costs half of
    that. Utility: a cut of a domain of 2^bits is off by about (2 levels / eps) (bits + low) ln 2
    records, less where the records lie far apart. Source: quantile trees, as in Kaplan, Schnapp,
    Stemmer 2022, with the exponential mechanism of Smith 2011 in each node.
    """

    summary = "Cuts the domain at noisy medians"

    @property
    def loss(self) -> Pure:
        return Pure(self._level * self.levels)

    def cut(self, node: Node, candidate: int | None) -> int:
        return node.low + (candidate or 0)

    def choice(self, bits: int = 0) -> ExponentialChoice:
        """Scores are in half-records, so that they are whole numbers."""
        return ExponentialChoice(self._level / NANO, sensitivity=2)

    def rank_error(self, bits: int, size: int, misses: float = 0.05) -> int:
        """E: except with probability `misses`, every cut k has k m / 2^levels +- E of the m <=
        `size` records below it, on every database.

        A node's best cut is off by half a finer point, the drawn one by the `shortfall` more; its
        target by half of the errors of two cuts of higher levels.
        """
        each = misses / ((1 << self.levels) - 1)
        shortfall = self.choice().shortfall((1 << (bits + self.low)) + 1, each)
        own = ((size >> self.low) + 1 + shortfall) / 2
        errors = [0.0, own]
        for _ in range(1, self.levels):
            errors.append(own + (errors[-1] + errors[-2]) / 2)
        return math.ceil(errors[-1])

    @property
    def _level(self) -> int:
        """The loss of a level, in nano-nats."""
        return nano_epsilon(self.epsilon) // self.levels

    def candidates(self, records: Spread, node: Node) -> Runs:
        """Cuts from the node's low end to its high end. The runs leave out records that are so far
        from the median that their scores are clamped."""
        points, _, off = node.near(records, self.choice().reach(node.high - node.low + 1) // 2)
        return Runs(points - node.low, -off, node.high - node.low)


ROOM = 2.5
"""The highest score, in units of the score c at which a candidate is as likely as no answer. The
lowest interval around the median with c records has its middle within c of it: 3 always leaves a
likely candidate. 2 fails on five points, and more room makes cuts worse where the records are
nested."""


@dataclass(frozen=True)
class SparseMedians(TreeOfMedians[Approximate]):
    """Each cut of a node of m records is the middle t of a dyadic interval with c of them, of score
    min(c, H - |2 #(below t) - m|), by `SparseChoice`.

    Privacy: (eps, delta). A record added or removed changes one node of each level. There it moves
    every score by at most 1. One interval of each height appears or vanishes, of score 1 at most.
    That costs eps / (2 levels) and delta' each. A replaced record is one removed and one added, and
    costs the sum: delta is (1 + e^(eps / 2)) levels delta'. Candidates `floor` below 1 may be left
    out: together they weigh less than one of score 1, which growth counts. Utility: cuts off by
    about (4 levels / eps) ln((bits + low) / delta') records where the records are nested, fewer
    elsewhere. No answer: the node's middle. Source: the warm-up of Beimel, Nissim, Stemmer 2013,
    Section 3.2, for medians.
    """

    summary = "Cuts the domain at medians that occur in the data"
    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        approximate(self.epsilon, self.delta)
        self.choice(1)

    @property
    def loss(self) -> Approximate:
        once = self.removed
        return Approximate(2 * once.nano, math.ceil(once.atto * (1 + exp_epsilon(once.nano + 1))))

    @property
    def removed(self) -> Approximate:
        """The cost of an added or removed record: one choice of each level."""
        level = self.choice(1).loss
        return Approximate(level.nano * self.levels, level.atto * self.levels)

    def cut(self, node: Node, candidate: int | None) -> int:
        """The candidate, moved into the node's range; the node's middle if there is none."""
        return (
            (node.low + node.high) // 2
            if candidate is None
            else min(max(candidate, node.low), node.high)
        )

    def choice(self, bits: int) -> SparseChoice:
        """Its loss is that of an added or removed record."""
        epsilon = nano_epsilon(self.epsilon) // (2 * self.levels) / NANO
        delta = self.delta / (self.levels * (1 + math.exp(self.epsilon / 2))) * (1 - 1e-9)
        return SparseChoice(epsilon, delta, growth=bits + 1)

    def candidates(self, records: Spread, node: Node) -> Middles:
        """The middles of all dyadic intervals with one of the node's records, except those too far
        from the median; and both ends of the domain."""
        level = self.choice(records.bits).loss
        floor = math.ceil(2 / level.epsilon * math.log(records.bits * (records.points.size + 2)))
        height = math.ceil(ROOM * 2 / level.epsilon * math.log((records.bits + 1) / level.delta))
        points, ranks, off = node.near(records, height + floor)
        return middles(Multiset(records.bits, points, np.diff(ranks)), height - off)
