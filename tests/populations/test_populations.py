"""Populations and classes: random graphs, concepts of blocks, and the share of every kind of
client."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.populations.concepts import BlockClass
from local_dp.populations.finite import Finite
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment
from local_dp.records import Records
from tests.support.inputs.refusals import refuse


def test_edges_in_any_order_and_direction_are_one_graph() -> None:
    graph = Graph.of([(3, 1), (0, 2), (1, 0)], 4)
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 3]]
    small = np.array([[2, 0], [1, 3], [0, 1]], dtype=np.uint8)
    assert Graph.of(small, 4).edges.tolist() == graph.edges.tolist()
    assert Graph.of([], 1).edges.shape == (0, 2)


@pytest.mark.parametrize(("edges", "nodes", "message"), [
    ([(1, 1)], 3, "with itself"), ([(0, 1), (1, 0)], 3, "given twice"),
    ([(0, 3)], 3, "unknown node; the nodes are 0..2"),
    ([(-1, 2)], 3, "unknown node"), ([(0, 1, 2)], 3, "two whole numbers"),
    ([(0.5, 1)], 3, "two whole numbers"), ([], 0, "number of nodes is 0"),
])  # fmt: skip
def test_bad_edges_get_a_line(edges: list[tuple[int, int]], nodes: int, message: str) -> None:
    refuse((message, lambda: Graph.of(edges, nodes)))


def test_binomial_graphs() -> None:
    """Each pair is an edge with its probability: the count of all, and each of ten pairs over 500
    graphs (failure 1e-6 each); a wrong chance is caught."""
    generator = np.random.default_rng(0)
    edges = len(binomial_graph(generator, 300, 0.1).edges)
    pairs = 300 * 299 // 2
    assert binom(pairs, 0.1).ppf(5e-7) <= edges <= binom(pairs, 0.1).isf(5e-7)
    assert not binom(pairs, 0.11).ppf(5e-7) <= edges <= binom(pairs, 0.11).isf(5e-7)
    sums = np.zeros((5, 5))
    for _ in range(500):
        sums[tuple(binomial_graph(generator, 5, 0.4).edges.T)] += 1
    counts = sums[np.triu_indices(5, 1)]
    assert ((counts >= binom(500, 0.4).ppf(5e-7)) & (counts <= binom(500, 0.4).isf(5e-7))).all()
    assert [len(binomial_graph(generator, 5, chance).edges) for chance in (0, 1)] == [0, 10]
    refuse(("from 0 to 1", lambda: binomial_graph(generator, 5, 1.5)))


def test_preferential_attachment() -> None:
    """Each later node has `links` edges to earlier ones, and the fourth joins a node in proportion
    to its degree (chi-squared, failure 1e-6)."""
    generator = np.random.default_rng(1)
    graph = preferential_attachment(generator, 200, 5)
    assert len(graph.edges) == 5 + 194 * 5
    assert np.bincount(graph.edges[:, 1], minlength=200)[6:].tolist() == [5] * 194
    degrees_joined = np.zeros(3, dtype=np.int64)
    for _ in range(1500):
        edges = preferential_attachment(generator, 4, 1).edges.tolist()
        others = edges[:1] + [edge for edge in edges[1:] if edge[1] == 2]
        degrees = np.bincount(np.array(others).ravel(), minlength=3)
        node = next(low for low, high in edges if high == 3)
        degrees_joined[np.argsort(-degrees, kind="stable").tolist().index(node)] += 1
    assert (
        chisquare(degrees_joined, [750, 375, 375]).pvalue
        > 1e-6
        > chisquare(degrees_joined, [500, 500, 500]).pvalue
    )
    refuse(("links is 5", lambda: preferential_attachment(generator, 5, 5)))


RULES: dict[str, Callable[[tuple[int, ...]], int]] = {
    "odd-max-bit": lambda u: next(((-1) ** (i + 1) for i in reversed(range(len(u))) if u[i]), 1),
    "and": lambda u: -1 if all(u) else 1,
    "majority": lambda u: -1 if sum(u) > len(u) / 2 else 1,
    "parity": lambda u: (-1) ** sum(u),
}


@pytest.mark.parametrize("function", RULES)
@pytest.mark.parametrize("t", [1, 2, 3, 6])
def test_signs_are_the_functions(function: str, t: int) -> None:
    """f of every string of t bits, the first block the lowest bit."""
    expected = [RULES[function](tuple(u >> i & 1 for i in range(t))) for u in range(1 << t)]
    assert BlockClass(function, t, 3).signs().tolist() == expected


@pytest.mark.parametrize(("t", "b"), [(1, 1), (2, 2), (2, 3), (3, 2)])
def test_concepts_read_one_variable_of_each_block(t: int, b: int) -> None:
    """Every concept (j, w) reads of every point the chosen bits, flipped by w; its masks hold the
    chosen variables of the blocks of S."""
    concepts = BlockClass("and", t, b)
    choices = list(product(range(b), repeat=t))

    def value(j: tuple[int, ...], w: int, x: int) -> int:
        return sum((x >> (i * b + j[i]) & 1 ^ w >> i & 1) << i for i in range(t))

    rows = [[value(j, w, x) for x in range(1 << t * b)] for j in choices for w in range(1 << t)]
    assert np.array_equal(concepts.told(), rows)
    for S in range(1 << t):
        blocks = [i for i in range(t) if S >> i & 1]
        masks = [sum(1 << (i * b + j[i]) for i in blocks) for j in choices]
        assert concepts.masks(S).tolist() == masks


ALPHA = 1e-6  # failure probability


@pytest.mark.parametrize(
    "shares",
    [
        (0.5, 0.5),
        (0.25, 0.25, 0.5),
        (1 / 256, 255 / 256),
        (0.3, 0.7),
        (0.0, 1.0),
        (1 / 512, 511 / 512),
    ],
)
def test_each_kind_has_its_share(shares: tuple[float, ...]) -> None:
    """Also where a sum of shares is a multiple of 1/256, which the first byte of a word alone
    decides: a byte too few or too many would show."""
    n = 4_000_000
    kinds = Finite(Records({"kind": np.arange(len(shares))}), shares, n, 1)
    frequencies = np.bincount(kinds.batch(0, n)["kind"], minlength=len(shares)) / n
    for frequency, share in zip(frequencies, shares, strict=True):  # Bernstein's inequality
        reach = math.log(2 * len(shares) / ALPHA)
        most = math.sqrt(2 * share * (1 - share) * reach / n) + 2 * reach / (3 * n)
        assert abs(frequency - share) <= most
    assert math.sqrt(0.5 * math.log(4 / ALPHA) / n) < 1 / 256  # what a byte's kinds would be off by
