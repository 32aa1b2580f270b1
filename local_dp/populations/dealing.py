"""Rows dealt to clients at random, without a list of all rows: a keyed permutation, of which each
place is computed by itself (decision 11).

A round that asks everybody needs no dealing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_whole
from local_dp.noise import philox_words, stream_key

# of a Feistel network: the coordinate that each moves, and its move for each value of the other
Rounds: TypeAlias = list[tuple[int, Ints]]
BITS = 32  # the law of two clients' rows is within 2^-BITS of uniform
MOST_ROWS = 1 << 40
_AT_A_TIME = 1 << 15  # clients: their arrays stay in the processor's cache


@dataclass(frozen=True)
class Dealing:
    """A permutation of `size` rows by a seed. Memory: about 80 sqrt(size) bytes. It is public, and
    protects nothing.

    A row is a point of a grid of a columns and b rows, a b - size < a. Each round moves one
    coordinate by a function of the other one: a table of Philox words. So each round is a bijection
    of the grid. A point beyond the rows goes through all rounds again, until it is a row (cycle
    walking). Two clients' points have the uniform law of two different points, up to 1 / min(a,
    b)^(r / 2 - 1) in total variation, with r rounds: 2^-32 here. Tests compute this law exactly on
    small grids. Errors: InputError for a size below 1 or above 2^40. Source: Black, Rogaway 2002.
    """

    size: int
    seed: int

    def __post_init__(self) -> None:
        check_whole("the number of rows", self.size, 1, MOST_ROWS)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """The two lengths of the grid, each at least 2."""
        first = max(2, math.isqrt(self.size - 1) + 1)
        return first, max(2, -(-self.size // first))

    @cached_property
    def _rounds(self) -> Rounds:
        count = 2 + 2 * math.ceil(BITS / math.log2(min(self.grid)))
        keys = (stream_key("dealing", self.seed, number) for number in range(count))
        moves = (
            philox_words(key, 0, self.grid[1 - number % 2]) % np.uint64(self.grid[number % 2])
            for number, key in enumerate(keys)
        )
        return [(number % 2, move.astype(np.int64)) for number, move in enumerate(moves)]

    @cached_property
    def _back(self) -> Rounds:
        return [(axis, -move % self.grid[axis]) for axis, move in reversed(self._rounds)]

    def rows(self, start: int, stop: int) -> Ints:
        """The rows of the clients start..stop, shape (stop - start,). About 0.1 microseconds
        each."""
        return self._walk(np.arange(start, stop), self._rounds)

    def clients(self, rows: Ints) -> Ints:
        """The clients that hold these rows, in any order, shape (n,)."""
        return self._walk(np.asarray(rows, dtype=np.int64), self._back)

    def _walk(self, points: Ints, rounds: Rounds) -> Ints:
        images = np.empty_like(points)
        for first in range(0, len(points), _AT_A_TIME):
            part = through(points[first : first + _AT_A_TIME], rounds, self.grid)
            while len(outside := np.flatnonzero(part >= self.size)):
                part[outside] = through(part[outside], rounds, self.grid)
            images[first : first + _AT_A_TIME] = part
        return images


def through(points: Ints, rounds: Iterable[tuple[int, Ints]], grid: tuple[int, int]) -> Ints:
    """Points of a grid, numbered row by row, after all rounds; shape (n,)."""
    at = list(np.divmod(points, grid[1]))
    for axis, move in rounds:
        place = at[axis] + move[at[1 - axis]]
        np.subtract(place, grid[axis], out=place, where=place >= grid[axis])
        at[axis] = place
    return np.asarray(at[0] * grid[1] + at[1])
