"""Triangles of a graph that is hoped to have bounded degrees: restricted sensitivity."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import Law, Mechanism, Neighbours
from local_dp.curator.sensitivity.triangles import Triangles
from local_dp.draws import Draws
from local_dp.loss import Pure, nano_epsilon
from local_dp.populations.graphs import MAX_NODES, Graph


def bounded(graph: Graph, degree: int) -> Graph:
    """The edges that are among the first `degree` of both their nodes, in the order of the other node: all of them, if no node has more.

    One edge more or less in the graph is at most one edge, and at most one less or more at each of its nodes, in what remains.
    """
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    order = np.lexsort(ends.T[::-1])
    starts = np.searchsorted(ends[order, 0], np.arange(graph.nodes))
    place = np.empty(len(ends), dtype=np.int64)
    place[order] = np.arange(len(ends)) - starts[ends[order, 0]]
    first, second = place.reshape(2, -1) < degree
    return Graph(graph.nodes, graph.edges[first & second])


@dataclass(frozen=True)
class RestrictedTriangles(Mechanism[Graph, int, Pure]):
    """The triangles of the graph's edges that are among the first `degree` of both nodes, with discrete Laplace noise for 2 (degree - 1), clipped.

    Privacy: epsilon, pure, on every graph. In a graph of degree D an edge is in D - 1 triangles at most; a neighbour has one such edge more and up to two less,
    or the other way round. Utility: standard error 2 sqrt(2) (D - 1) / eps if no node has a degree above D; what lies beyond is not counted.
    Source: Blocki, Blum, Datta, Sheffet 2013, with noise for three edges; that two of them pull the other way is ours.
    """

    epsilon: float
    degree: int
    neighbours: ClassVar[Neighbours] = "edge"

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        check_whole("the degree", self.degree, 1, MAX_NODES)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    def sensitivity(self, nodes: int) -> int:
        """How far an edge can move the count."""
        return max(0, nodes - 2) if self.degree >= nodes - 1 else 2 * (self.degree - 1)

    def release(self, database: Graph, draws: Draws) -> int:
        local, noise = self._counted(database)
        return noise.add(local.value, draws)

    def law(self, database: Graph) -> Law[int]:
        local, noise = self._counted(database)
        return noise.law(local.value)

    def _counted(self, graph: Graph) -> tuple[Triangles, ClippedLaplace]:
        local = Triangles(bounded(graph, self.degree))
        return local, ClippedLaplace(nano_epsilon(self.epsilon), self.sensitivity(graph.nodes), local.last)
