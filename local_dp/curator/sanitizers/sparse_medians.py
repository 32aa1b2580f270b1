"""All thresholds from a tree of medians at a price that hardly depends on the domain: the cuts are middles of dyadic intervals that hold records."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.curator.mechanism import Law
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.medians import Node, Spread, TreeOfMedians
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.candidates import Middles, middles
from local_dp.draws import Draws
from local_dp.loss import NANO, Approximate, approximate, exp_epsilon, nano_epsilon

ROOM = 2.5
"""How high a score may be, in those c that no answer is as likely as. The lowest interval around the median that holds c records has its middle within c of
it: 3 always leaves a candidate as likely as no answer; 2 fails on five points, and more room makes cuts worse where the records are nested."""


@dataclass(frozen=True)
class SparseMedians(TreeOfMedians[Approximate]):
    """Each cut of a node of m records is the middle t of a dyadic interval that holds c of them: score min(c, H - |2 #(below t) - m|), `SparseChoice`.

    Privacy: (eps, delta). A record added or removed changes one node of each level, there every score by at most 1, and makes one interval of each height
    appear or vanish, of score 1 at most: eps / (2 levels) and delta' each. A replaced record is one removed and one added: the sum of both, delta being
    (1 + e^(eps / 2)) levels delta'. Candidates `floor` and more below 1 may be left out: together they weigh less than one of score 1, which growth counts.
    Utility: cuts off by about (4 levels / eps) ln((bits + low) / delta') records where the records are nested, fewer elsewhere. No answer: the node's middle.
    Source: the warm-up of Beimel, Nissim, Stemmer 2013, Section 3.2, for medians.
    """

    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        approximate(self.epsilon, self.delta)
        self._choice(1)

    @property
    def loss(self) -> Approximate:
        once = self.removed
        return Approximate(2 * once.nano, math.ceil(once.atto * (1 + exp_epsilon(once.nano + 1))))

    @property
    def removed(self) -> Approximate:
        """What an added or removed record costs: one choice of each level."""
        level = self._choice(1).loss
        return Approximate(level.nano * self.levels, level.atto * self.levels)

    def cut(self, held: Spread, node: Node, draws: Draws) -> int:
        return _within(node, self._choice(held.bits).choose(self._candidates(held, node), draws))

    def cut_law(self, held: Spread, node: Node) -> Law[int]:
        found: dict[int, int] = {}
        for chosen, weight in self._choice(held.bits).law(self._candidates(held, node)).items():
            cut = _within(node, chosen)
            found[cut] = found.get(cut, 0) + weight
        return found

    def _choice(self, bits: int) -> SparseChoice:
        """What a level costs an added or removed record."""
        epsilon = nano_epsilon(self.epsilon) // (2 * self.levels) / NANO
        delta = self.delta / (self.levels * (1 + math.exp(self.epsilon / 2))) * (1 - 1e-9)
        return SparseChoice(epsilon, delta, growth=bits + 1)

    def _candidates(self, held: Spread, node: Node) -> Middles:
        """The middles of all dyadic intervals that hold one of the node's records, but for those too far from the median; and both ends of the domain."""
        level = self._choice(held.bits).loss
        floor = math.ceil(2 / level.epsilon * math.log(held.bits * (held.points.size + 2)))
        height = math.ceil(ROOM * 2 / level.epsilon * math.log((held.bits + 1) / level.delta))
        middle = (node.first + node.last) // 2
        near = height + floor + 2 * held.cell(middle) + 2
        last = min(node.last, middle + near)
        points, below = held.between(max(node.first, middle - near), last)
        upto = np.append(below, last)
        return middles(Multiset(held.bits, points, np.diff(upto)), height - np.abs(2 * upto - node.first - node.last))


def _within(node: Node, cut: int | None) -> int:
    """The cut, moved into the node's range; its middle if there is none."""
    return (node.low + node.high) // 2 if cut is None else min(max(cut, node.low), node.high)
