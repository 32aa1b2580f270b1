"""Decision trees, grown greedily, one level a round."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_dimension, check_whole
from local_dp.interaction import Adaptive
from local_dp.learners.conjunctions import AllOf, Literal
from local_dp.learners.decision_lists import LABELS
from local_dp.learners.learner import Learner, share
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.queries.tables import Question
from local_dp.records import Records

Path: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True)
class Tree:
    """Leaves as (path, label): the label of the leaf whose path a record satisfies."""

    leaves: tuple[tuple[Path, int], ...]

    def __str__(self) -> str:
        return "; ".join(f"{AllOf(path)}: {label:+d}" for path, label in self.leaves)

    def predict(self, records: Records) -> Ints:
        """The tree's label of each record, shape (n,)."""
        labels = np.full(len(records), -1, dtype=np.int8)
        for path, label in self.leaves:
            labels[AllOf(path).holds(records)] = label
        return labels


@dataclass(frozen=True, kw_only=True)
class Trees(Learner[Tree]):
    """ID3 over {0,1}^d: splits each leaf on the attribute that leaves the least Gini impurity, `depth` times; the labels cost at most alpha of error.

    A round asks, for each leaf that is not pure, for its mass by label, and by label where x_j = 1 for each attribute j not on its path. A leaf's two masses
    are off by at most the tolerance tau (those where x_j = 0 are differences), so its label costs at most 2 tau beyond the better one: alpha / 2^(depth + 1).
    The greedy choice of splits is a heuristic and promises nothing. Source: Quinlan 1986; limits 9.
    """

    name: ClassVar[str] = "trees"
    source: ClassVar[str] = "Quinlan 1986 (ID3) on statistical queries"
    d: int = 6
    depth: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d)
        check_whole("depth", self.depth, 1, min(self.d, 10))

    @property
    def proven(self) -> float:
        return self.alpha / (2 << self.depth)

    @property
    def queries(self) -> int:
        return sum((2 << level) * (self.d - level + 1) for level in range(self.depth))

    @property
    def rounds(self) -> int:
        return self.depth

    def algorithm(self) -> StatisticalRounds[Tree]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[Tree]:
        open_leaves: dict[Path, int] = {(): -1}
        closed: dict[Path, int] = {}
        for _ in range(self.depth):
            asked = [self._questions(path) for path in open_leaves]
            answers = iter((yield tuple(query for leaf in asked for query in leaf)))
            children: dict[Path, int] = {}
            for path, leaf in zip(open_leaves, asked, strict=True):
                mass = np.array([share(next(answers)) for _ in leaf]).reshape(-1, 2)
                if mass[0].min() <= self.tolerance / 2:  # pure as far as the answers can tell
                    closed[path] = LABELS[int(mass[0].argmax())]
                else:
                    children |= _split(path, self._unused(path), mass)
            open_leaves = children
            if not open_leaves:
                break
        return Tree(tuple((closed | open_leaves).items()))

    def _unused(self, path: Path) -> list[int]:
        return sorted(set(range(self.d)) - {literal.place for literal in path})

    def _questions(self, path: Path) -> tuple[StatisticalQuery, ...]:
        cells = [path, *((*path, Literal(place)) for place in self._unused(path))]
        return tuple(self.ask(Question(" and ".join([f"y == {label}", *map(str, cell)]))) for cell in cells for label in LABELS)


def _split(path: Path, places: list[int], mass: Floats) -> dict[Path, int]:
    """The two children of a leaf with their labels; `mass` by label, of the leaf and then where x_j = 1 for each place j, shape (1 + places, 2)."""
    ones = np.clip(mass[1:], 0, None)
    zeros = np.clip(mass[0] - mass[1:], 0, None)
    impurity = sum(side.prod(axis=1) / np.maximum(side.sum(axis=1), 1e-12) for side in (ones, zeros))
    best = int(np.argmin(impurity))
    return {(*path, Literal(places[best], value)): LABELS[int(side[best].argmax())] for value, side in enumerate((zeros, ones))}
