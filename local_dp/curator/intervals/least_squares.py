"""Weighted least squares on a tree of counts, and the variance of its result, in O(D)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats


@dataclass(frozen=True)
class Shape:
    """A tree over `leaves` leaves with `height` levels below the root. Each node has `branching` children; the root and the right edge have fewer."""

    leaves: int
    branching: int

    @property
    def height(self) -> int:
        """The least with branching^height >= leaves."""
        height = 1
        while self.branching**height < self.leaves:
            height += 1
        return height

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of leaves below a node of each level, from the root's children down to the leaves."""
        return tuple(self.branching**below for below in reversed(range(self.height)))

    @property
    def _padded(self) -> list[int]:
        """The number of nodes of each level with the empty ones."""
        return [-(-self.leaves // self.widths[0]) * self.widths[0] // width for width in self.widths]

    def filled(self, levels: Sequence[Counts | Floats]) -> list[Floats]:
        """The levels with empty nodes behind the right edge, whose counts are exactly 0."""
        return [np.append(level.astype(np.float64), np.zeros(size - len(level))) for level, size in zip(levels, self._padded, strict=True)]

    def spreads(self) -> list[Floats]:
        """The variance of each node's estimate from itself and all nodes below, in units of the variance of one noisy count."""
        own = self.filled([np.ones(-(-self.leaves // width)) for width in self.widths])
        spreads = [own[-1]]
        for here in reversed(own[:-1]):
            below = spreads[0].reshape(len(here), -1).sum(axis=1)
            spreads.insert(0, below * here / np.maximum(below + here, 1e-300))
        return spreads


def consistent(levels: Sequence[Counts], shape: Shape, total: float) -> Floats:
    """The leaves that add up to `total` with the least sum of squared differences to all noisy counts: the unbiased estimate of least variance.

    Up: each node averages its own count and its children's sum by their variances. Down: the excess of a parent over its children is shared out in proportion
    to their variances. Source: Hay, Rastogi, Miklau, Suciu 2010, Theorem 3.
    """
    noisy, spreads = shape.filled(levels), shape.spreads()
    up = [noisy[-1]]
    for own, spread in zip(reversed(noisy[:-1]), reversed(spreads[1:]), strict=True):
        below = spread.reshape(len(own), -1).sum(axis=1)
        up.insert(0, (own * below + up[0].reshape(len(own), -1).sum(axis=1)) / (below + 1))
    above = np.array([total])
    for level, spread in zip(up, spreads, strict=True):
        children = level.reshape(len(above), -1)
        above = (children + _shares(spread, len(above)) * (above - children.sum(axis=1))[:, None]).ravel()
    return above[: shape.leaves]


def nested(levels: Sequence[Counts], shape: Shape, total: float) -> Floats:
    """The number of records below each leaf by the noisy counts as they are, largest intervals first: shape (leaves + 1,). The baseline of `consistent`."""
    below = np.array([0.0, total])
    for level in shape.filled(levels):
        children = level.reshape(len(below) - 1, -1)
        inside = below[:-1, None] + np.cumsum(children, axis=1) - children
        below = np.append(inside.ravel(), below[-1])
    return np.append(below[: shape.leaves], total)


def prefix_variances(shape: Shape) -> Floats:
    """The variance of the consistent count below each leaf, shape (leaves + 1,), in units of the variance of one noisy count: exact, O(D).

    Let f be the share of the children's variance S to the left of a border. The error there is the mean of the errors at the node's two ends by f, plus an
    independent bridge of variance S f (1 - f).
    """
    variances, adjacent = np.zeros(2), np.zeros(1)  # at the borders, and of each border with the next
    for spread in shape.spreads():
        nodes = len(adjacent)
        sums, shares = spread.reshape(nodes, -1).sum(axis=1)[:, None], _shares(spread, nodes)
        left, right, both = variances[:-1, None], variances[1:, None], adjacent[:, None]
        end = np.cumsum(shares, axis=1)
        start = end - shares

        def together(f: Floats, g: Floats, ends: tuple[Floats, Floats, Floats, Floats] = (left, right, both, sums)) -> Floats:
            """The covariance of the errors at two borders, f <= g."""
            here, there, mixed, total = ends
            return (1 - f) * (1 - g) * here + f * g * there + (f * (1 - g) + g * (1 - f)) * mixed + total * f * (1 - g)

        variances, adjacent = np.append(together(start, start).ravel(), variances[-1]), together(start, end).ravel()
    return variances[: shape.leaves + 1]


def _shares(spread: Floats, nodes: int) -> Floats:
    """Each child's share of the variance of the siblings' sum, shape (nodes, children)."""
    children = spread.reshape(nodes, -1)
    return np.asarray(children / np.maximum(children.sum(axis=1), 1e-300)[:, None])


def largest_variance(leaves: int, branching: int) -> float:
    """An upper bound of the variance of consistent interval counts, in units of one noisy count's: (b_h s_h + 2 sum of b_j s_j over the lower levels) / 4.

    s_j = 1 / (1 + 1/b + ... + b^-j) is the variance of a node with j levels below it. A bridge over b_j children has at most b_j s_j / 4, and an interval has
    two ends. With noise of eps / 2h on h = log_b D levels it is about 4 (b - 1) ln(D)^3 / (eps^2 ln(b)^3), least at b = 16.8.
    """
    widths = Shape(leaves, branching).widths
    spreads = [1 / math.fsum(branching**-k for k in range(below + 1)) for below in reversed(range(len(widths)))]
    return (-(-leaves // widths[0]) * spreads[0] + 2 * branching * math.fsum(spreads[1:])) / 4


def branchings(leaves: int) -> Iterator[int]:
    """For each height the smallest branching that reaches it, which is the best one of that height."""
    branching = 2
    while branching < leaves:
        yield branching
        height = Shape(leaves, branching).height
        while Shape(leaves, branching).height == height:
            branching += 1
    yield leaves
