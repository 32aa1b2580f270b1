"""Weighted least squares on a tree of counts, in O(D): what each noisy count says of all others, and how well the result is known."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats


@dataclass(frozen=True)
class Shape:
    """A tree over `leaves` leaves: `height` levels below the root, each node with `branching` children, the root and the right edge with fewer."""

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
        """How many leaves lie below a node of each level, from the root's children down to the leaves."""
        return tuple(self.branching**below for below in reversed(range(self.height)))

    @property
    def _padded(self) -> list[int]:
        """How many nodes each level has once it is filled up with empty ones."""
        return [-(-self.leaves // self.widths[0]) * self.widths[0] // width for width in self.widths]

    def filled(self, levels: Sequence[Counts | Floats]) -> list[Floats]:
        """Levels with empty nodes behind the right edge: they hold 0 and are known."""
        return [np.append(level.astype(np.float64), np.zeros(size - len(level))) for level, size in zip(levels, self._padded, strict=True)]

    def spreads(self) -> list[Floats]:
        """The variance of each node as estimated from itself and all below it, in units of the variance of one noisy count."""
        own = self.filled([np.ones(-(-self.leaves // width)) for width in self.widths])
        found = [own[-1]]
        for here in reversed(own[:-1]):
            below = found[0].reshape(len(here), -1).sum(axis=1)
            found.insert(0, below * here / np.maximum(below + here, 1e-300))
        return found


def consistent(levels: Sequence[Counts], shape: Shape, total: float) -> Floats:
    """The leaves that add up to `total` with the least sum of squared differences to all noisy counts: unbiased, and of the least variance of all such.

    Two passes: up, each node averages its own count and its children's sum by their variances; down, what a parent has more than its children is shared out
    in proportion to their variances. Source: Hay, Rastogi, Miklau, Suciu 2010, Theorem 3.
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
    """How many records lie below each leaf by the noisy counts as they are, largest intervals first: shape (leaves + 1,). The baseline of `consistent`."""
    below = np.array([0.0, total])
    for level in shape.filled(levels):
        children = level.reshape(len(below) - 1, -1)
        inside = below[:-1, None] + np.cumsum(children, axis=1) - children
        below = np.append(inside.ravel(), below[-1])
    return np.append(below[: shape.leaves], total)


def prefix_variances(shape: Shape) -> Floats:
    """The variance of the consistent count below each leaf, shape (leaves + 1,), in units of the variance of one noisy count: exact, O(D).

    Given the errors at a node's two ends, the error at its children's borders is their mean by the share f of the variance that lies left of the border, and
    on top an independent bridge of variance S f (1 - f), S the sum of the children's variances: the part of the children that their sum does not show.
    """
    variances, adjacent = np.zeros(2), np.zeros(1)  # at the borders, and of each border with the next
    for spread in shape.spreads():
        nodes = len(adjacent)
        sums, shares = spread.reshape(nodes, -1).sum(axis=1)[:, None], _shares(spread, nodes)
        left, right, both = variances[:-1, None], variances[1:, None], adjacent[:, None]
        end = np.cumsum(shares, axis=1)
        start = end - shares

        def together(f: Floats, g: Floats, ends: tuple[Floats, Floats, Floats, Floats] = (left, right, both, sums)) -> Floats:
            """Of the errors at two borders, f <= g."""
            here, there, mixed, total = ends
            return (1 - f) * (1 - g) * here + f * g * there + (f * (1 - g) + g * (1 - f)) * mixed + total * f * (1 - g)

        variances, adjacent = np.append(together(start, start).ravel(), variances[-1]), together(start, end).ravel()
    return variances[: shape.leaves + 1]


def _shares(spread: Floats, nodes: int) -> Floats:
    """Each child's part of the variance of its siblings' sum, shape (nodes, children)."""
    children = spread.reshape(nodes, -1)
    return np.asarray(children / np.maximum(children.sum(axis=1), 1e-300)[:, None])


def largest_variance(leaves: int, branching: int) -> float:
    """At least the variance of every consistent interval count, in units of one noisy count's: (b_h s_h + 2 sum of b_j s_j over the lower levels) / 4.

    s_j = 1 / (1 + 1/b + ... + b^-j) is the variance of a node with j levels below it; a bridge over b_j children has at most b_j s_j / 4, and an interval two
    ends. With noise of eps / 2h on each of h = log_b D levels about 4 (b - 1) ln(D)^3 / (eps^2 ln(b)^3): least where b ln b = 3 (b - 1), b = 16.8.
    """
    widths = Shape(leaves, branching).widths
    spreads = [1 / math.fsum(branching**-k for k in range(below + 1)) for below in reversed(range(len(widths)))]
    return (-(-leaves // widths[0]) * spreads[0] + 2 * branching * math.fsum(spreads[1:])) / 4


def branchings(leaves: int) -> Iterator[int]:
    """For each height the smallest branching that reaches it: no other is better."""
    branching = 2
    while branching < leaves:
        yield branching
        height = Shape(leaves, branching).height
        while Shape(leaves, branching).height == height:
            branching += 1
    yield leaves
