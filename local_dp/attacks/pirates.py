"""Pirates: coalitions that mix their rows into one word, in every way that the marking condition leaves them."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.records import Records

Strategy: TypeAlias = Callable[[Bools, np.random.Generator], Bools]
"""From the coalition's rows, shape (c, d), to the word that it would like, shape (d,)."""


def marked(rows: Bools, wish: Bools) -> Bools:
    """The word nearest to the wish that the coalition can make: where all of its rows have one bit, that bit (the marking condition)."""
    word: Bools = np.where(rows.min(axis=0) == rows.max(axis=0), rows[0], wish)
    return word


def _flip(rows: Bools, generator: np.random.Generator) -> Bools:
    flipped: Bools = generator.random(rows.shape[1:]) < 0.5
    return flipped


def _interleave(rows: Bools, generator: np.random.Generator) -> Bools:
    mixed: Bools = rows[generator.integers(len(rows), size=rows.shape[1]), np.arange(rows.shape[1])]
    return mixed


STRATEGIES: dict[str, Strategy] = {
    "majority": lambda rows, generator: 2 * rows.sum(axis=0) > len(rows),
    "minority": lambda rows, generator: 2 * rows.sum(axis=0) < len(rows),
    "all ones": lambda rows, generator: np.ones(rows.shape[1], dtype=np.bool_),
    "all zeros": lambda rows, generator: np.zeros(rows.shape[1], dtype=np.bool_),
    "coin flips": _flip,
    "interleaved": _interleave,
    "parity": lambda rows, generator: rows.sum(axis=0) % 2 == 1,
    "one copied": lambda rows, generator: rows[0],
}
"""Eight ways to use what is left free. A copied row gives its owner away and nobody else; interleaved rows have every bit's mean right."""


class Pirates:
    """A coalition as an oracle: it answers statistical queries about its rows by a 0/1 word, as +1 and -1, where an honest oracle would give their means."""

    def __init__(self, coalition: Records, strategy: Strategy, generator: np.random.Generator) -> None:
        self.coalition = coalition
        self.strategy = strategy
        self.generator = generator

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """A feasible word, one letter a query."""
        rows = np.stack([query.numerators(self.coalition) > 0 for query in queries], axis=1)
        word = marked(rows, self.strategy(rows, self.generator))
        return tuple(np.where(word, 1.0, -1.0).tolist())
