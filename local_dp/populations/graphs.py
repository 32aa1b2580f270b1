"""Simple graphs as edge lists, and two kinds of random ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from local_dp.arrays import Counts, Ints
from local_dp.checks import check_whole
from local_dp.errors import InputError

MAX_NODES = 1 << 16


@dataclass(frozen=True)
class Graph:
    """A simple graph: nodes 0..`nodes` - 1, public, and `edges`, shape (m, 2), each ascending, in
    order. Neighbours differ in one edge."""

    nodes: int
    edges: Counts

    @classmethod
    def of(cls, edges: Iterable[tuple[int, int]] | Ints, nodes: int) -> Self:
        """From edges in any order and direction. Raises InputError for self-loops, repeated edges,
        unknown nodes, and more than 65,536 nodes."""
        check_whole("the number of nodes", nodes, 1, MAX_NODES)
        pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
        if not pairs.size:
            return cls(nodes, np.zeros((0, 2), dtype=np.int64))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InputError(
                f"the edges have shape {pairs.shape} and type {pairs.dtype}; give two whole "
                "numbers for each edge"
            )
        if pairs.min() < 0 or pairs.max() >= nodes:
            raise InputError(f"some edge has an unknown node; the nodes are 0..{nodes - 1}")
        pairs = np.sort(pairs.astype(np.int64), axis=1)
        if np.any(pairs[:, 0] == pairs[:, 1]):
            raise InputError("some edge joins a node with itself; leave self-loops out")
        codes = np.unique(pairs[:, 0] * nodes + pairs[:, 1])
        if len(codes) < len(pairs):
            raise InputError(
                "some edge is given twice, perhaps in both directions; give each edge once"
            )
        return cls(nodes, np.stack(np.divmod(codes, nodes), axis=1))


def binomial_graph(generator: np.random.Generator, nodes: int, chance: float) -> Graph:
    """G(n, p): each pair of nodes is an edge with probability `chance`, independently."""
    if not 0 <= chance <= 1:
        raise InputError(f"the chance of an edge is {chance}; give a number from 0 to 1")
    check_whole("the number of nodes", nodes, 1, MAX_NODES)
    later = [
        node + 1 + np.flatnonzero(generator.random(nodes - 1 - node) < chance)
        for node in range(nodes)
    ]
    first = np.repeat(np.arange(nodes), [len(others) for others in later])
    return Graph.of(np.stack([first, np.concatenate(later)], axis=1), nodes)


def preferential_attachment(generator: np.random.Generator, nodes: int, links: int) -> Graph:
    """From a star of `links` + 1 nodes on, each node joins `links` others in proportion to their
    degrees. Source: Barabasi, Albert 1999."""
    check_whole("the number of nodes", nodes, 2, MAX_NODES)
    check_whole("the number of links", links, 1, nodes - 1)
    edges = [(0, node) for node in range(1, links + 1)]
    ends = [node for edge in edges for node in edge]  # each node as often as it has edges
    for node in range(links + 1, nodes):
        others = dict[int, None]()
        while len(others) < links:
            others[ends[int(generator.integers(len(ends)))]] = None
        edges += [(other, node) for other in others]
        ends += [end for other in others for end in (other, node)]
    return Graph.of(edges, nodes)
