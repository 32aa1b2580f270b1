"""Triangles by restricted sensitivity: private on every graph, right where degrees are bounded."""

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.laws import SmallDatabases, hockey_stick
from local_dp.curator.sensitivity.restricted import RestrictedTriangles, bounded
from local_dp.curator.sensitivity.triangles import Triangles
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.graphs import Graph, binomial_graph

Edges = tuple[tuple[int, ...], ...]
PAIRS = list(combinations(range(5), 2))


@cache
def count(edges: Edges, degree: int) -> int:
    """Of a graph of five nodes, as it is released but for the noise."""
    return Triangles(bounded(Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), 5), degree)).value


def moves(degree: int) -> set[tuple[int, int]]:
    """The counts of all graphs of five nodes and of their neighbours."""
    pairs = [pair for m in range(1, 11) for pair in SmallDatabases(PAIRS, m, len).pairs("edge")]
    return {(count(one, degree), count(other, degree)) for one, other in pairs}


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_private_by_enumeration(degree: int) -> None:
    """On all graphs of five nodes the loss is at most epsilon."""
    growth, complete = exp_epsilon(10**9), Graph.of(PAIRS, 5)
    found = moves(degree)
    assert max(abs(one - other) for one, other in found) <= RestrictedTriangles(1.0, degree).sensitivity(5)
    laws = {value: noise.law(value) for value in {one for one, _ in found} for noise in [RestrictedTriangles(1.0, degree)._counted(complete)[1]]}
    assert max(hockey_stick(laws[one], laws[other], growth) for one, other in found) == 0


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_the_sensitivity_is_met(degree: int) -> None:
    """Two nodes whose last edge is in as many triangles as it can be, joined by an edge that comes first: 2 (degree - 1) triangles go."""
    sides = [range(2 + side * degree, 2 + (side + 1) * degree) for side in (0, 1)]
    edges = [(side, node) for side, nodes in enumerate(sides) for node in nodes]
    edges += [(node, nodes[-1]) for nodes in sides for node in nodes[:-1]]
    graphs = [Graph.of([*edges, *joined], 2 + 2 * degree) for joined in ([], [(0, 1)])]
    mechanism = RestrictedTriangles(1.0, degree)
    counts = [Triangles(bounded(graph, degree)).value for graph in graphs]
    assert counts[0] - counts[1] == 2 * (degree - 1) == mechanism.sensitivity(2 + 2 * degree)
    growth, laws = exp_epsilon(10**9), [mechanism.law(graph) for graph in graphs]
    assert hockey_stick(laws[0], laws[1], growth) == 0 < hockey_stick(laws[0], laws[1], growth * 99 / 100)


def test_bounded_graphs_keep_their_edges() -> None:
    """No degree is above the bound; a graph that keeps it stays as it is; an edge more changes at most three edges, on 300 random graphs."""
    generator = np.random.default_rng(0)
    for _ in range(300):
        graph = binomial_graph(generator, 9, generator.uniform(0.2, 0.9))
        degree, most = int(generator.integers(1, 8)), int(np.bincount(graph.edges.ravel(), minlength=9).max())
        kept = bounded(graph, degree)
        assert np.bincount(kept.edges.ravel(), minlength=9).max() <= degree
        assert (kept.edges.tolist() == graph.edges.tolist()) == (most <= degree)
        if len(graph.edges):
            fewer = Graph(9, np.delete(graph.edges, generator.integers(len(graph.edges)), axis=0))
            ours, theirs = ({(u, v) for u, v in bounded(each, degree).edges.tolist()} for each in (graph, fewer))
            assert len(ours - theirs) <= 1
            assert len(theirs - ours) <= 2


def test_the_code_draws_from_its_law() -> None:
    """1,500 releases fit the exact law (chi-squared, failure 1e-6); not that of twice the epsilon."""
    graph, draws = binomial_graph(np.random.default_rng(1), 6, 0.7), Draws(KeyedNoise(2))
    drawn = Counter(RestrictedTriangles(2.0, 3).release(graph, draws) for _ in range(1500))

    def p_value(epsilon: float) -> float:
        law = RestrictedTriangles(epsilon, 3).law(graph)
        return float(chisquare([drawn[y] for y in law], [1500 * weight / sum(law.values()) for weight in law.values()]).pvalue)

    assert p_value(2.0) > 1e-6 > p_value(4.0)


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="degree is 0"):
        RestrictedTriangles(1.0, 0)
