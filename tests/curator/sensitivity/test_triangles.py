"""Triangle counts: their sensitivity by brute force, their privacy on all graphs of five nodes."""

import math
from functools import cache
from itertools import combinations, compress, product

import numpy as np
import pytest

from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.sensitivity.mechanisms import FINE, CauchyNoise, cosh_loss
from local_dp.curator.sensitivity.triangles import (
    GlobalTriangles,
    LadderTriangles,
    NoisyLocalTriangles,
    SmoothTriangles,
    Triangles,
)
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment
from tests.support.runs.scripted import seeded

Edges = tuple[tuple[int, ...], ...]
PAIRS = list(combinations(range(5), 2))


def five(edges: Edges) -> Graph:
    return Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), 5)


class OfEdges(Triangles):
    """A wrong twin: the local sensitivity over joined pairs only, as if edges were never added."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        edges = graph.edges.tolist()
        near = [{u + v - w for u, v in edges if w in (u, v)} for w in range(5)]
        self.local = max((len(near[u] & near[v]) for u, v in edges), default=0)

    def within(self, distance: int) -> int:
        return super().within(distance) if distance else self.local


@cache
def neighbours(kind: type[Triangles] = Triangles) -> list[tuple[Triangles, Triangles]]:
    """Of all graphs of five nodes that differ in an edge, one pair for all with the same counts and
    sensitivities: no mechanism can distinguish them."""
    build = cache(lambda edges: kind(five(edges)))
    pairs = dict[tuple[tuple[int, ...], ...], tuple[Triangles, Triangles]]()
    key = cache(lambda local: (local.value, *map(local.within, range(11))))
    for m in range(1, 11):
        for one, other in SmallDatabases(PAIRS, m, five).pairs("edge"):
            pairs[key(build(one)), key(build(other))] = build(one), build(other)
    return list(pairs.values())


def test_sensitivities_by_brute_force() -> None:
    """On all graphs of five nodes: the count, and A_k as the largest step of the count over all
    graphs at distance k or less, exactly, for k up to 10."""
    codes, flips = np.arange(1024), 1 << np.arange(10)
    edges = {pair: codes >> place & 1 for place, pair in enumerate(PAIRS)}
    counts = sum(edges[i, j] * edges[i, k] * edges[j, k] for i, j, k in combinations(range(5), 3))
    near = codes[:, None] ^ flips
    steps = np.abs(counts[near] - counts[:, None]).max(axis=1)
    marks = product((0, 1), repeat=10)
    locals_ = [Triangles(five(tuple(compress(PAIRS, reversed(each))))) for each in marks]
    assert [local.value for local in locals_] == counts.tolist()
    for distance in range(11):
        assert [local.within(distance) for local in locals_] == steps.tolist()
        steps = np.maximum(steps, steps[near].max(axis=1))


@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_larger_graphs_in_blocks(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """By the definition, over dense matrices: random graphs with many and few edges or none, one
    row at a time and all at once."""
    monkeypatch.setattr("local_dp.curator.sensitivity.triangles._CELLS", cells)
    generator = np.random.default_rng(0)
    for graph in (
        *(binomial_graph(generator, 60, chance) for chance in (0, 0.05, 0.5, 1)),
        preferential_attachment(generator, 80, 4),
        Graph.of([], 1),
    ):
        adjacency = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
        adjacency[tuple(graph.edges.T)] = adjacency[tuple(graph.edges[:, ::-1].T)] = 1
        common, degrees, local = adjacency @ adjacency, adjacency.sum(axis=0), Triangles(graph)
        single = degrees + degrees[:, None] - 2 * common - 2 * adjacency
        assert local.value == (common * adjacency).sum() // 6
        for k in (0, 1, 2, 5, 13, 200):
            shares = (common + (k + np.minimum(k, single)) // 2)[np.triu_indices(graph.nodes, 1)]
            assert local.within(k) == min(max(0, graph.nodes - 2), shares.max(initial=0))


def largest_loss(noise: CauchyNoise, kind: type[Triangles] = Triangles) -> float:
    """The largest loss of two Cauchy laws of graphs that differ in an edge: over all graphs of five
    nodes."""
    worst = max(
        cosh_loss(FINE * (one.value - other.value), noise.scale(one), noise.scale(other))
        for one, other in neighbours(kind)
    )
    return math.acosh(worst)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_smooth_counts_are_private(epsilon: float) -> None:
    """On all graphs of five nodes and all edges the loss is at most epsilon, and reached to 2 %;
    over joined pairs only it is more."""
    assert 0.98 * epsilon < largest_loss(CauchyNoise.exact(epsilon)) <= epsilon
    assert largest_loss(CauchyNoise.exact(epsilon), OfEdges) > 1.05 * epsilon


def test_small_graphs_have_no_triangles() -> None:
    for graph in (Graph.of([], 1), Graph.of([(0, 1)], 2)):
        for mechanism in (
            SmoothTriangles(CauchyNoise.exact(1.0)),
            GlobalTriangles(1.0),
            NoisyLocalTriangles(1.0, 1e-6),
            LadderTriangles(1.0),
        ):
            assert mechanism.release(graph, seeded(0)) == 0
