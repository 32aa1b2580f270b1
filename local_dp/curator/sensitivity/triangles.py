"""The number of triangles of a graph, whose neighbours differ in one edge: its local sensitivity at every distance, and five private counts."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from local_dp.arrays import Counts
from local_dp.curator.clipped import ClippedLaplace, laplace_tail, tail_beyond
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, Mechanism, Neighbours
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.runs import Runs
from local_dp.curator.sensitivity.local import LocalSensitivity
from local_dp.curator.sensitivity.mechanisms import GlobalNoise, SmoothNoise
from local_dp.draws import Draws
from local_dp.loss import Approximate, approximate, nano_epsilon
from local_dp.populations.graphs import Graph

_CELLS = 1 << 22


class Rows(NamedTuple):
    """Of some nodes and every other: `common`, how many neighbours they have in common, and `single`, how many nodes are a neighbour of one of them alone."""

    triangles: int  # seen from their edges: each of these nodes' triangles twice
    common: Counts
    single: Counts


class Triangles(LocalSensitivity):
    """The triangles of a graph, and A_k, the largest min(a + floor((k + min(k, b)) / 2), n - 2) over ALL pairs of nodes, joined by an edge or not.

    a is how many neighbours a pair has in common, b how many nodes are a neighbour of one alone: an edge makes one of those common, two edges any other node.
    Cost: O(n^2 + sum of squared degrees) once, in blocks of nodes, then O(the largest a) a look. Source: Nissim, Raskhodnikova, Smith 2007, Claim 3.13.
    """

    def __init__(self, graph: Graph) -> None:
        self.last, self.most, self.reach = math.comb(graph.nodes, 3), max(0, graph.nodes - 2), 2 * graph.nodes
        seen, largest = 0, np.full(graph.nodes, -1)  # the largest b of the pairs with each a
        for rows in _rows(graph):
            seen += rows.triangles
            np.maximum.at(largest, rows.common.ravel(), rows.single.ravel())
        self.value = seen // 6
        self._common = np.flatnonzero(largest >= 0)
        self._single = largest[self._common]

    def within(self, distance: int) -> int:
        raised = self._common + (distance + np.minimum(distance, self._single)) // 2
        return min(self.most, int(raised.max()))


def _local(database: Graph | Triangles) -> Triangles:
    return database if isinstance(database, Triangles) else Triangles(database)


def _rows(graph: Graph) -> Iterator[Rows]:
    """All nodes in turn, as many at a time as fit in some millions of cells."""
    n = graph.nodes
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    degrees = np.bincount(ends[:, 0], minlength=n)
    starts, others = np.concatenate([[0], np.cumsum(degrees)]), ends[:, 1]
    walks = np.bincount(ends[:, 0], weights=degrees[others], minlength=n)
    count = max(1, _CELLS // max(n, int(walks.max())))
    for low in range(0, n, count):
        high = min(n, low + count)
        owners, middles = ends[starts[low] : starts[high]].T
        owners = owners - low
        lengths = degrees[middles]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached = others[np.repeat(starts[middles], lengths) + within]
        common = np.bincount(np.repeat(owners, lengths) * n + reached, minlength=(high - low) * n).reshape(high - low, n)
        single = degrees[low:high, None] + degrees - 2 * common
        single[owners, middles] -= 2
        seen = int(common[owners, middles].sum())
        itself = np.arange(high - low), np.arange(low, high)
        common[itself] = single[itself] = 0  # no pair: it counts no more than any pair does
        yield Rows(seen, common, single)


@dataclass(frozen=True)
class SmoothTriangles(SmoothNoise[Graph | Triangles]):
    """The number of triangles with Cauchy noise of its smooth sensitivity, clipped to 0..C(n, 3): pure."""

    neighbours: ClassVar[Neighbours] = "edge"

    def local(self, database: Graph | Triangles) -> LocalSensitivity:
        return _local(database)


@dataclass(frozen=True)
class GlobalTriangles(GlobalNoise[Graph | Triangles]):
    """The number of triangles with noise for n - 2, what one edge may be in: pure. The baseline."""

    neighbours: ClassVar[Neighbours] = "edge"

    def local(self, database: Graph | Triangles) -> LocalSensitivity:
        return _local(database)


@dataclass(frozen=True)
class NoisyLocalTriangles(Mechanism[Graph | Triangles, int, Approximate]):
    """The number of triangles with noise for a bound of its local sensitivity, which is the sensitivity with noise of eps / 2 and so much more that it holds.

    Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). An edge moves the local sensitivity over all pairs by at most 1; the bound, of 0 to n - 2,
    lies below it with probability at most delta. Given a bound that holds, the count's noise of eps / 2 hides an edge.
    Utility: standard error about sqrt(2) (LS + (2 / eps) ln(1 / delta)) 2 / eps. Source: lecture notes 2.2.3, clamped at 0.
    """

    epsilon: float
    delta: float
    neighbours: ClassVar[Neighbours] = "edge"

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon / 2)
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(2 * self._half, approximate(self.epsilon, self.delta).atto)

    @property
    def margin(self) -> int:
        """How much is added to the noisy local sensitivity."""
        return tail_beyond(self._half, self.loss.atto)

    def release(self, database: Graph | Triangles, draws: Draws) -> int:
        local = _local(database)
        bound = ClippedLaplace(self._half, 1, local.most).add(self._raised(local), draws)
        return ClippedLaplace(self._half, bound, local.last).add(local.value, draws)

    def law(self, database: Graph | Triangles) -> Law[int]:
        local = _local(database)
        return whole_weights(self._shares(local))

    @property
    def _half(self) -> int:
        """What each of the two parts costs, in nano-nats."""
        return nano_epsilon(self.epsilon) // 2

    def _shares(self, local: Triangles) -> dict[int, Fraction]:
        """The probability of each answer, over all bounds."""
        raised, found = self._raised(local), defaultdict[int, Fraction](Fraction)
        beyond = [Fraction(1), *(laplace_tail(self._half, bound - raised) for bound in range(1, local.most + 1)), Fraction(0)]
        for bound, (least, more) in enumerate(pairwise(beyond)):
            law = ClippedLaplace(self._half, bound, local.last).law(local.value)
            total = sum(law.values())
            for answer, weight in law.items():
                found[answer] += (least - more) * weight / total
        return found

    def _raised(self, local: Triangles) -> int:
        """The bound before its noise."""
        return local.within(0) + self.margin


@dataclass(frozen=True)
class LadderTriangles(ByScore[Graph | Triangles, int]):
    """A number with weight e^(-eps t / 2) on rung t: A_(t - 1) numbers on both sides of those before it, the true count alone on rung 0.

    Privacy: epsilon, pure: the neighbour's rungs 0..t + 1 hold all that is on this graph's rungs 0..t, since its A_0 covers the step between the two counts and
    its A_(u + 1) is no less than A_u. Utility: about A_k at a distance k of about 2 / eps. Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao 2015.
    """

    epsilon: float
    neighbours: ClassVar[Neighbours] = "edge"

    def candidates(self, database: Graph | Triangles) -> Runs:
        local = _local(database)
        rungs = self.choice.reach(local.last + 1)  # further ones count no lower
        wide = np.cumsum([0, *(local.within(t) for t in range(rungs))])
        below, above = local.value - wide - 1, local.value + wide
        below, above = below[below >= 0][::-1], above[above < local.last]
        scores = np.concatenate([np.arange(-len(below), 1), np.arange(-1, -len(above) - 1, -1)])
        return Runs(np.concatenate([below, above]).astype(np.uint64), scores, local.last)
