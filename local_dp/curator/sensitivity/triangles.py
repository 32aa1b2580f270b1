"""The number of triangles of a graph, whose neighbours differ in one edge: its local sensitivity at
every distance, and private counts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts
from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace, laplace_tail, least_tail
from local_dp.curator.mechanism import Law, Neighbours, mixture, probabilities, whole_weights
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Runs
from local_dp.curator.sensitivity.mechanisms import (
    GlobalNoise,
    InHalves,
    LocalSensitivity,
    SmoothNoise,
)
from local_dp.draws import Draws
from local_dp.loss import nano_epsilon
from local_dp.populations.graphs import Graph

_CELLS = 1 << 22


class Triangles(LocalSensitivity):
    """The triangles of a graph, and A_k, the largest min(a + floor((k + min(k, b)) / 2), n - 2)
    over ALL pairs of nodes, joined by an edge or not.

    A pair has a common neighbours, and b nodes are a neighbour of one of the two. One edge makes
    such a node common, two edges any other node. Cost: O(n^2 + sum of squared degrees) once, in
    blocks of nodes, then O(the largest a) a look. Source: Nissim, Raskhodnikova, Smith 2007, Claim
    3.13.
    """

    def __init__(self, graph: Graph) -> None:
        self.last, self.most = math.comb(graph.nodes, 3), max(0, graph.nodes - 2)
        self.reach = 2 * graph.nodes
        corners, largest = 0, np.full(graph.nodes, -1)  # the largest b of the pairs with each a
        for triangles, common, single in _rows(graph):
            corners += triangles
            np.maximum.at(largest, common.ravel(), single.ravel())
        self.value = corners // 6
        self._common = np.flatnonzero(largest >= 0)
        self._single = largest[self._common]

    def within(self, distance: int) -> int:
        shares = self._common + (distance + np.minimum(distance, self._single)) // 2
        return min(self.most, int(shares.max()))


def _rows(graph: Graph) -> Iterator[tuple[int, Counts, Counts]]:
    """In blocks of nodes: twice their triangles; for each other node the common neighbours, and the
    nodes that are a neighbour of one of the two."""
    from scipy.sparse import csr_array

    n, ends = graph.nodes, np.concatenate([graph.edges, graph.edges[:, ::-1]])
    adjacency = csr_array((np.ones(len(ends), dtype=np.int64), ends.T), shape=(n, n))
    degrees = adjacency.sum(axis=0)
    for low in range(0, n, max(1, _CELLS // n)):
        rows = adjacency[low : low + max(1, _CELLS // n)]
        common, near = (rows @ adjacency).toarray(), rows.toarray()
        single = degrees[low : low + len(near), None] + degrees - 2 * common - 2 * near
        corners = int((common * near).sum())
        itself = np.arange(len(near)), np.arange(low, low + len(near))
        common[itself] = single[itself] = 0  # a node and itself are no pair
        yield corners, common, single


class OfTriangles:
    """A mechanism whose answer is the number of triangles; neighbours differ in one edge."""

    neighbours: ClassVar[Neighbours] = "edge"

    def local(self, database: Graph | Triangles) -> Triangles:
        return database if isinstance(database, Triangles) else Triangles(database)


@dataclass(frozen=True)
class SmoothTriangles(OfTriangles, SmoothNoise[Graph | Triangles]):
    """The number of triangles with Cauchy noise of its smooth sensitivity, clipped to 0..C(n, 3):
    pure."""

    summary = "Counts triangles with noise of their smooth sensitivity"


@dataclass(frozen=True)
class GlobalTriangles(OfTriangles, GlobalNoise[Graph | Triangles]):
    """The number of triangles with noise for n - 2, the most that one edge may be in: pure. The
    baseline."""

    summary = "Counts triangles with noise for the worst edge"


@dataclass(frozen=True)
class NoisyLocalTriangles(OfTriangles, InHalves[Graph | Triangles, int]):
    """The number of triangles with noise for a private upper bound of its local sensitivity.

    The bound is the local sensitivity with noise of eps / 2 plus a margin, clipped to 0..n - 2.
    Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). An edge moves the local
    sensitivity over all pairs by at most 1, and the bound lies below it with probability at most
    delta. Given a valid bound, the count's noise of eps / 2 hides an edge. Utility: standard error
    about sqrt(2) (LS + (2 / eps) ln(1 / delta)) 2 / eps. Source: lecture notes 2.2.3, clamped at 0.
    """

    summary = "Counts triangles with noise for a private sensitivity"
    epsilon: float
    delta: float

    def release(self, database: Graph | Triangles, draws: Draws) -> int:
        local = self.local(database)
        bound = ClippedLaplace(self._half, 1, local.most).add(local.within(0) + self.margin, draws)
        return ClippedLaplace(self._half, bound, local.last).add(local.value, draws)

    def law(self, database: Graph | Triangles) -> Law[int]:
        local = self.local(database)
        centre = local.within(0) + self.margin
        tails = [laplace_tail(self._half, bound - centre) for bound in range(1, local.most + 1)]
        beyond = [Fraction(1), *tails, Fraction(0)]
        laws = [
            probabilities(ClippedLaplace(self._half, bound, local.last).law(local.value))
            for bound in range(local.most + 1)
        ]
        return whole_weights(
            mixture(zip([least - more for least, more in pairwise(beyond)], laws, strict=True))
        )


@dataclass(frozen=True)
class LadderTriangles(OfTriangles, ByScore[Graph | Triangles, int]):
    """A number with weight e^(-eps t / 2) on rung t: A_(t - 1) numbers on both sides of those
    before it, the true count alone on rung 0.

    Privacy: epsilon, pure. The neighbour's rungs 0..t + 1 contain this graph's rungs 0..t: its A_0
    covers the step between the two counts, and its A_(u + 1) is at least A_u. Utility: about A_k at
    a distance k of about 2 / eps. Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao 2015.
    """

    summary = "Counts triangles by the ladder mechanism"
    epsilon: float

    def candidates(self, database: Graph | Triangles) -> Runs:
        local = self.local(database)
        rungs = self.choice.reach(local.last + 1)  # further ones are clamped
        wide = np.cumsum([0, *(local.within(t) for t in range(rungs))])
        below, above = local.value - wide - 1, local.value + wide
        below, above = below[below >= 0][::-1], above[above < local.last]
        scores = -np.abs(np.arange(-len(below), len(above) + 1))
        return Runs(np.concatenate([below, above]).astype(np.uint64), scores, local.last)

    def reach(self, nodes: int, sensitivity: int, misses: float) -> int:
        """W: the number is off by more than W with probability `misses` at most, on every graph of
        this size with at most this local sensitivity.

        Of A_0 = a, A_(t - 1) is a + t - 1 at most. So the rungs beyond T weigh sum_(t > T) 2 (a + t
        - 1) e^(-eps t / 2) at most. Those up to T weigh at least 1 + sum_(t <= T) 2 a e^(-eps t /
        2). Rungs that the range 0..C(n, 3) cuts weigh less. On rung T the number is off by sum_(u <
        T) (a + u) at most. W is the largest over all a; e^-44 is for what is clamped.
        """
        decay, most = float(self.choice.decay), max(0, nodes - 2)
        rungs = np.arange(self.choice.reach(math.comb(nodes, 3) + 1) + 1)
        q, worst = decay**rungs, 0
        for a in range(min(sensitivity, most) + 1):
            each = (a + rungs) / (1 - decay) + decay / (1 - decay) ** 2
            beyond = 2 * decay * q * each
            up_to = 1 + 2 * a * decay * (1 - q) / (1 - decay)
            last = int(np.argmax(beyond <= (misses - math.exp(-44)) * up_to))
            worst = max(worst, int(np.minimum(most, a + rungs[:last]).sum()))
        return worst


@dataclass(frozen=True)
class LocalOfTriangles(OfTriangles, ClippedAnswer[Graph | Triangles]):
    """The local sensitivity of the number of triangles over all pairs of nodes, with discrete
    Laplace noise, clipped to 0..n - 2.

    Privacy: epsilon, pure: an edge moves the number of common neighbours of a pair by at most 1.
    """

    summary = "Releases the local sensitivity of the triangle count"
    epsilon: float

    def noisy(self, database: Graph | Triangles) -> tuple[int, ClippedLaplace]:
        local = self.local(database)
        return local.within(0), ClippedLaplace(nano_epsilon(self.epsilon), 1, local.most)

    def at_most(self, release: int, misses: float) -> int:
        """What the local sensitivity exceeds with probability `misses` at most."""
        return release + least_tail(nano_epsilon(self.epsilon), Fraction(misses)) - 1
