"""Weights of all 2^d rows of a binary table, moved by estimates of their marginals: post-processing, and therefore floats."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_whole
from local_dp.curator.marginals.base import DENSE, Marginals


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic table of d binary columns: `weights`, shape (2^d,), the count of each row, as fractions of a record; their sum is n."""

    d: int
    weights: Floats

    def answers(self, workload: Marginals) -> Floats:
        return workload.of_histogram(self.weights)

    def rows(self, count: int, generator: np.random.Generator) -> Counts:
        """A random sample of `count` rows, as whole numbers of d bits."""
        return generator.choice(len(self.weights), count, p=self.weights / self.weights.sum())


class Weights:
    """Positive weights of sum 1 of all 2^d rows, uniform at first. Moving them by one marginal costs two passes: a fifth of a millisecond at d = 17."""

    def __init__(self, d: int) -> None:
        check_whole("d", d, 1, DENSE)
        self.d = d
        self.flat = np.full(1 << d, 0.5**d)

    def marginal(self, mask: int) -> Floats:
        """The share of each cell: adds the two halves that differ in a column, the highest column first, so that all passes together read the table twice."""
        rest = self.flat
        for column in reversed(range(self.d)):
            if not mask >> column & 1:
                pairs = rest.reshape(-1, 2, 1 << column)
                rest = pairs[:, 0] + pairs[:, 1]
        return rest.reshape(-1)

    def move(self, mask: int, shares: Floats) -> None:
        """Multiplicative weights: each row's weight times e^(the share that its cell should have, less the share that it has)."""
        table = self.flat.reshape((2,) * self.d)
        table *= spread(self.d, mask, np.exp(shares - self.marginal(mask)))

    def normalise(self) -> None:
        """To a sum of 1."""
        self.flat /= self.flat.sum()


def spread(d: int, mask: int, cells: Floats) -> Floats:
    """A number for each cell of a marginal, shaped to be broadcast over a table of shape (2,) * d."""
    return cells.reshape([1 + (mask >> column & 1) for column in reversed(range(d))])
