"""Graphs, and two kinds of random ones."""

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.errors import InputError
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment


def test_edges_in_any_order_and_direction_are_one_graph() -> None:
    """The smaller node first, in order; a graph without edges is one."""
    graph = Graph.of([(3, 1), (0, 2), (1, 0)], 4)
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 3]]
    assert Graph.of(np.array([[2, 0], [1, 3], [0, 1]], dtype=np.uint8), 4).edges.tolist() == graph.edges.tolist()
    assert Graph.of([], 1).edges.shape == (0, 2)


@pytest.mark.parametrize(("edges", "nodes", "said"), [
    ([(1, 1)], 3, "with itself"), ([(0, 1), (1, 0)], 3, "given twice"), ([(0, 3)], 3, "unknown node; the nodes are 0..2"),
    ([(-1, 2)], 3, "unknown node"), ([(0, 1, 2)], 3, "two whole numbers"), ([(0.5, 1)], 3, "two whole numbers"), ([], 0, "number of nodes is 0"),
])  # fmt: skip
def test_bad_edges_get_a_line(edges: list[tuple[int, int]], nodes: int, said: str) -> None:
    """One line each, without a node of an edge in it."""
    with pytest.raises(InputError, match=said):
        Graph.of(edges, nodes)


def test_binomial_graphs() -> None:
    """Each pair is an edge with its probability: the count of all, and each of ten pairs over 500 graphs (failure 1e-6 each); a wrong chance is caught."""
    generator = np.random.default_rng(0)
    edges, pairs = len(binomial_graph(generator, 300, 0.1).edges), 300 * 299 // 2
    assert binom(pairs, 0.1).ppf(5e-7) <= edges <= binom(pairs, 0.1).isf(5e-7)
    assert not binom(pairs, 0.11).ppf(5e-7) <= edges <= binom(pairs, 0.11).isf(5e-7)
    seen = np.zeros((5, 5))
    for _ in range(500):
        seen[tuple(binomial_graph(generator, 5, 0.4).edges.T)] += 1
    counts = seen[np.triu_indices(5, 1)]
    assert ((counts >= binom(500, 0.4).ppf(5e-7)) & (counts <= binom(500, 0.4).isf(5e-7))).all()
    assert [len(binomial_graph(generator, 5, chance).edges) for chance in (0, 1)] == [0, 10]
    with pytest.raises(InputError, match="from 0 to 1"):
        binomial_graph(generator, 5, 1.5)


def test_preferential_attachment() -> None:
    """Each later node has `links` edges to earlier ones, and the fourth of a tree joins a node in the proportion of its degree (chi-squared, failure 1e-6)."""
    generator = np.random.default_rng(1)
    graph = preferential_attachment(generator, 200, 5)
    assert len(graph.edges) == 5 + 194 * 5
    assert np.bincount(graph.edges[:, 1], minlength=200)[6:].tolist() == [5] * 194
    joined = np.zeros(3, dtype=np.int64)
    for _ in range(1500):
        edges = preferential_attachment(generator, 4, 1).edges.tolist()
        degrees = np.bincount(np.array(edges[:1] + [edge for edge in edges[1:] if edge[1] == 2]).ravel(), minlength=3)
        joined[np.argsort(-degrees, kind="stable").tolist().index(next(low for low, high in edges if high == 3))] += 1
    assert chisquare(joined, [750, 375, 375]).pvalue > 1e-6 > chisquare(joined, [500, 500, 500]).pvalue
    with pytest.raises(InputError, match="links is 5"):
        preferential_attachment(generator, 5, 5)
