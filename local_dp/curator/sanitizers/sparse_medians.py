"""All thresholds from a tree of medians at a price that hardly depends on the domain: the cuts are middles of dyadic intervals with records."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.medians import Node, Spread, TreeOfMedians
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.dyadic import Middles, middles
from local_dp.loss import NANO, Approximate, approximate, exp_epsilon, nano_epsilon

ROOM = 2.5
"""The highest score, in units of the score c at which a candidate is as likely as no answer. The lowest interval around the median with c records has its
middle within c of it: 3 always leaves a likely candidate. 2 fails on five points, and more room makes cuts worse where the records are nested."""


@dataclass(frozen=True)
class SparseMedians(TreeOfMedians[Approximate]):
    """Each cut of a node of m records is the middle t of a dyadic interval with c of them, of score min(c, H - |2 #(below t) - m|), by `SparseChoice`.

    Privacy: (eps, delta). A record added or removed changes one node of each level. There it moves every score by at most 1. One interval of each height
    appears or vanishes, of score 1 at most. That costs eps / (2 levels) and delta' each. A replaced record is one removed and one added, and costs the sum:
    delta is (1 + e^(eps / 2)) levels delta'. Candidates `floor` below 1 may be left out: together they weigh less than one of score 1, which growth counts.
    Utility: cuts off by about (4 levels / eps) ln((bits + low) / delta') records where the records are nested, fewer elsewhere. No answer: the node's middle.
    Source: the warm-up of Beimel, Nissim, Stemmer 2013, Section 3.2, for medians.
    """

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
        return (node.low + node.high) // 2 if candidate is None else min(max(candidate, node.low), node.high)

    def choice(self, bits: int) -> SparseChoice:
        """Its loss is that of an added or removed record."""
        epsilon = nano_epsilon(self.epsilon) // (2 * self.levels) / NANO
        delta = self.delta / (self.levels * (1 + math.exp(self.epsilon / 2))) * (1 - 1e-9)
        return SparseChoice(epsilon, delta, growth=bits + 1)

    def candidates(self, records: Spread, node: Node) -> Middles:
        """The middles of all dyadic intervals with one of the node's records, except those too far from the median; and both ends of the domain."""
        level = self.choice(records.bits).loss
        floor = math.ceil(2 / level.epsilon * math.log(records.bits * (records.points.size + 2)))
        height = math.ceil(ROOM * 2 / level.epsilon * math.log((records.bits + 1) / level.delta))
        middle = (node.first + node.last) // 2
        near = height + floor + 2 * records.cell(middle) + 2
        last = min(node.last, middle + near)
        points, below = records.between(max(node.first, middle - near), last)
        upto = np.append(below, last)
        return middles(Multiset(records.bits, points, np.diff(upto)), height - np.abs(2 * upto - node.first - node.last))
