"""All thresholds, and so all quantiles, from a tree of medians: pure, by one choice among the domain's thresholds in each node."""

import math
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import WORD, Multiset
from local_dp.curator.sanitizers.steps import Steps
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Runs
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Loss, Pure, nano_epsilon


@lru_cache(maxsize=8)
def reversed_bits(low: int) -> Ints:
    """The numbers 0..2^low - 1 with their bits in reversed order."""
    found = np.zeros(1, dtype=np.int64)
    for _ in range(low):
        found = np.concatenate([2 * found, 2 * found + 1])
    return found


@dataclass(frozen=True)
class Spread:
    """The records of `points` as finer points below 2^(bits + low), in order: record number r is the one with r others before it."""

    points: Multiset
    low: int

    @property
    def bits(self) -> int:
        """Of the finer points."""
        return self.points.bits + self.low

    @cached_property
    def upto(self) -> Counts:
        """How many records have a lower value, shape (s + 1,)."""
        return np.concatenate([[0], np.cumsum(self.points.counts)])

    def rank(self, threshold: int) -> int:
        """How many records lie below a threshold of 0..2^bits."""
        value, part = threshold >> self.low, threshold & ((1 << self.low) - 1)
        if value >> self.points.bits:
            return int(self.upto[-1])
        at = int(np.searchsorted(self.points.values, np.array(value, dtype=self.points.values.dtype)))
        below = int(self.upto[at])
        if part and at < len(self.points.values) and int(self.points.values[at]) == value:
            rounds, more = divmod(int(self.points.counts[at]), 1 << self.low)
            below += rounds * part + int(np.count_nonzero(reversed_bits(self.low)[:more] < part))
        return below

    def cell(self, record: int) -> int:
        """At most how many records share the finer point of this one."""
        at = int(np.searchsorted(self.upto, record, side="right")) - 1
        return (int(self.points.counts[at]) >> self.low) + 1 if at < len(self.points.values) else 1

    def between(self, first: int, last: int) -> tuple[Naturals, Counts]:
        """The finer points of the records first..last - 1, distinct and ascending, and how many records lie below each."""
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
        held = (counts[which] >> self.low) + (number < (counts[which] & ((1 << self.low) - 1)))
        upto = int(self.upto[start]) + np.cumsum(held[order])
        below = upto - held[order]
        kept = (upto > first) & (below < last)
        chosen = order[kept]
        fine = values[which[chosen]].astype(word) * (1 << self.low) + part[chosen].astype(word)
        return fine, below[kept]


L_co = TypeVar("L_co", bound=Loss, covariant=True)
MAX_LEVELS, MAX_LOW = 16, 20


class Node(NamedTuple):
    """The finer points from `low` to `high` - 1, whose records have the numbers `first`..`last` - 1."""

    low: int
    high: int
    first: int
    last: int

    def split(self, held: Spread, cut: int) -> tuple["Node", "Node"]:
        """The points below the cut, and the others."""
        middle = held.rank(cut)
        return Node(self.low, cut, self.first, middle), Node(cut, self.high, middle, self.last)


@dataclass(frozen=True)
class TreeOfMedians(Mechanism[Multiset, Steps, L_co]):
    """2^levels - 1 cuts, each near the median of the records between its ancestors; a cut has an eps / `levels` of its own in every record's path.

    The share below the cut number v is v / 2^levels, between two cuts it is half-way; 1 / 2^(levels + 1) is thus the error without noise. Values that
    occur often are spread over 2^`low` finer points (`Spread`). Cost: O(s) for s distinct values, and 2^levels choices.
    """

    epsilon: float
    levels: int
    low: int = 10

    def __post_init__(self) -> None:
        check_whole("levels", self.levels, 1, MAX_LEVELS)
        check_whole("low", self.low, 0, MAX_LOW)
        if nano_epsilon(self.epsilon) < 4 * self.levels:
            raise InputError(f"epsilon is {self.epsilon} for {self.levels} levels; give a larger epsilon or fewer levels")

    @abstractmethod
    def cut(self, held: Spread, node: Node, draws: Draws) -> int:
        """Where the node is split."""

    @abstractmethod
    def cut_law(self, held: Spread, node: Node) -> Law[int]:
        """The law of `cut`."""

    def release(self, database: Multiset, draws: Draws) -> Steps:
        held = Spread(database, self.low)
        nodes, cuts = [_root(held)], list[int]()
        for _ in range(self.levels):
            found = [self.cut(held, node, draws) for node in nodes]
            nodes = [part for node, cut in zip(nodes, found, strict=True) for part in node.split(held, cut)]
            cuts = [node.high for node in nodes]
        return self._steps(database.bits, tuple(cuts[:-1]))

    def law(self, database: Multiset) -> Law[Steps]:
        held, found = Spread(database, self.low), Counter[Steps]()
        for cuts, weight in self._law(held, _root(held), self.levels).items():
            found[self._steps(database.bits, cuts)] += weight
        return found

    def _law(self, held: Spread, node: Node, levels: int) -> Law[tuple[int, ...]]:
        """The law of the cuts in a node, in order: those of both parts are drawn apart, once the cut between them is drawn."""
        if not levels:
            return {(): 1}
        found: dict[tuple[int, ...], int] = {}
        chosen = self.cut_law(held, node)
        laws = {cut: [self._law(held, part, levels - 1) for part in node.split(held, cut)] for cut in chosen}
        totals = {cut: math.prod(sum(law.values()) for law in parts) for cut, parts in laws.items()}
        common = math.lcm(*totals.values())
        for cut, weight in chosen.items():
            left, right = laws[cut]
            for before, less in left.items():
                for after, more in right.items():
                    found[(*before, cut, *after)] = weight * (common // totals[cut]) * less * more
        return found

    def _steps(self, bits: int, cuts: tuple[int, ...]) -> Steps:
        """The answers that go with ascending cuts: half-way between two, and at a cut that is a threshold of the domain what the cut stands for."""
        near = {threshold for cut in cuts for threshold in (cut >> self.low, (cut >> self.low) + 1)}

        def share(threshold: int) -> float:
            fine = threshold << self.low
            return (bisect_left(cuts, fine) + bisect_right(cuts, fine) + 1) / 2 / (1 << self.levels)

        return Steps.of(bits, ((threshold, share(threshold)) for threshold in sorted({1, *near}) if 0 < threshold < 1 << bits))


def _root(held: Spread) -> Node:
    return Node(0, 1 << held.bits, 0, held.points.size)


@dataclass(frozen=True)
class Medians(TreeOfMedians[Pure]):
    """Each cut t of a node of m records has weight e^(-eps |#(below t) - m / 2| / (2 levels)), over all thresholds of the node's range.

    Privacy: epsilon, pure. At each level a replaced record moves the scores of one node by up to 1, or those of two by up to 1/2; ranges are public by then.
    An added or removed record costs half of it: the databases may be of different sizes. Utility: a cut of a domain of 2^bits is off by about
    (2 levels / eps) (bits + low) ln 2 records, less where the records lie far apart.
    Source: quantile trees, as in Kaplan, Schnapp, Stemmer 2022, with the exponential mechanism of Smith 2011 in each node.
    """

    @property
    def loss(self) -> Pure:
        return Pure(self._level * self.levels)

    def cut(self, held: Spread, node: Node, draws: Draws) -> int:
        return node.low + self._choice.choose(self._scores(held, node), draws)

    def cut_law(self, held: Spread, node: Node) -> Law[int]:
        return {node.low + cut: weight for cut, weight in self._choice.law(self._scores(held, node)).items()}

    @property
    def _level(self) -> int:
        """The loss of a level, in nano-nats."""
        return nano_epsilon(self.epsilon) // self.levels

    @property
    def _choice(self) -> ExponentialChoice:
        """Scores are in half-records: whole numbers."""
        return ExponentialChoice(self._level / NANO, sensitivity=2)

    def _scores(self, held: Spread, node: Node) -> Runs:
        """Cuts from the node's low end to its high end; records so far from the median that their scores are all clamped are left out of the runs."""
        middle = (node.first + node.last) // 2
        near = self._choice.reach(node.high - node.low + 1) // 2 + 2 * held.cell(middle) + 2
        points, below = held.between(max(node.first, middle - near), min(node.last, middle + near))
        upto = np.append(below, min(node.last, middle + near)) if len(below) else np.array([node.first])
        offsets = points - points.dtype.type(node.low) if held.bits <= WORD else points - node.low
        return Runs(offsets, -np.abs(2 * upto - node.first - node.last), node.high - node.low)
