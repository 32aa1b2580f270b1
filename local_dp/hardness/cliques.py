"""Cliques of a small graph: a greedy search, and an exact one by branch and bound."""

import numpy as np

from local_dp.arrays import Bools, Counts, Floats


def greedy_clique(adjacent: Bools, generator: np.random.Generator) -> list[int]:
    """A maximal clique of a graph, grown by the vertex with the most neighbours among the candidates left; ties are broken at random.

    `adjacent` is symmetric with a false diagonal, shape (N, N). Cost: O(N^2) a vertex found.
    """
    candidates: Bools = np.ones(len(adjacent), dtype=np.bool_)
    weights = adjacent.astype(np.float32)
    clique: list[int] = []
    while candidates.any():
        degrees: Floats = np.where(candidates, weights @ candidates.astype(np.float32), -1.0)
        best: Counts = np.flatnonzero(degrees == degrees.max())
        chosen = int(generator.choice(best))
        clique.append(chosen)
        candidates &= adjacent[chosen]
    return clique


class CliqueSearch:
    """Exact search for a clique: branch and bound, bounded by a greedy colouring (Tomita, Seki 2003). Exponential in general.

    It gives up after `steps` branches; `finished` says whether what it found, or did not find, is the whole truth.
    """

    def __init__(self, adjacent: Bools, steps: int) -> None:
        self._order = np.argsort(adjacent.sum(axis=1), kind="stable")  # few neighbours first: coloured first, branched on last
        self._masks = [sum(1 << int(place) for place in np.flatnonzero(adjacent[vertex][self._order])) for vertex in self._order]
        self._steps = steps

    @property
    def finished(self) -> bool:
        """Whether the search ended before its steps did."""
        return self._steps > 0

    def find(self, size: int) -> list[int] | None:
        """A clique of `size` vertices, or None if there is none, or none was found in time."""
        found = self._extend((1 << len(self._masks)) - 1, size, [])
        return None if found is None else [int(self._order[place]) for place in found]

    def _extend(self, candidates: int, wanted: int, clique: list[int]) -> list[int] | None:
        if wanted <= 0:
            return clique
        for vertex, colours in reversed(_coloured(self._masks, candidates)):
            if colours < wanted or self._steps <= 0:  # a clique takes one vertex of a colour, and colours only fall from here
                return None
            self._steps -= 1
            found = self._extend(candidates & self._masks[vertex], wanted - 1, [*clique, vertex])
            if found is not None:
                return found
            candidates &= ~(1 << vertex)
        return None


def _coloured(masks: list[int], candidates: int) -> list[tuple[int, int]]:
    """The candidates, each with the number of colours used up to it, so that no two adjacent ones share a colour."""
    coloured, colour = [], 0
    while candidates:
        colour += 1
        free = candidates
        while free:
            vertex = (free & -free).bit_length() - 1
            coloured.append((vertex, colour))
            candidates &= ~(1 << vertex)
            free &= ~(1 << vertex) & ~masks[vertex]
    return coloured
