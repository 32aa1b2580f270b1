"""Branch and bound for monotone conjunctions, in whole numbers, with a proof that is checked apart from the search.

A tree of choices (a literal is left out, or taken in) with a bound at each leaf proves a minimum. A solver in floating point proves none: its gap of 0 holds
up to its tolerances, and for the model that it was given.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.checks import check_dimension, check_whole
from local_dp.curator.oracle_efficient.separated import FAIL, MAX_DIMENSION, Certified, Fail, Weighted

LEAF = -1
Key = tuple[int, int]  # total, number: of two of equal total the lower number is less


@dataclass(frozen=True)
class Proof:
    """That `choice`, of total `value`, is the least: the splits of the tree, the node before its subtrees, left out before taken in; -1 is a leaf."""

    choice: int
    value: int
    splits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Node:
    """All conjunctions with the literals `taken` and some undecided ones; `zeros` are the undecided literals that each surviving point fails, (k, d)."""

    taken: int
    zeros: Bools
    weights: Counts

    @classmethod
    def root(cls, data: Weighted, d: int) -> "_Node":
        """Everything undecided, and equal points put together."""
        points, where = np.unique(data.points.astype(np.int64), return_inverse=True)
        weights = np.zeros(len(points), dtype=np.int64)
        np.add.at(weights, where, data.weights)
        zeros = (points[:, None] >> np.arange(d, dtype=np.int64)) & 1 == 0
        return cls(0, zeros[weights != 0], weights[weights != 0])

    @cached_property
    def open(self) -> Counts:
        """How many undecided literals each point fails."""
        return np.asarray(self.zeros.sum(axis=1))

    @cached_property
    def linear(self) -> Counts:
        """What each undecided literal keeps while it is left out, of the points that fail it alone."""
        alone = self.open == 1
        return np.asarray(self.weights[alone] @ self.zeros[alone])

    @cached_property
    def best(self) -> int:
        """The taken literals, and those that would be taken if only points that fail one literal mattered."""
        return self.taken | sum(1 << int(i) for i in np.flatnonzero(self.linear > 0))

    @cached_property
    def least(self) -> Key:
        """At most the key of every conjunction of the node; the key of one of them, `best`, where no point fails two undecided literals."""
        several = self.weights[self.open > 1]
        total = int(self.weights[self.open == 0].sum() + np.minimum(self.linear, 0).sum() + np.minimum(several, 0).sum())
        return total, self.taken if len(several) else self.best

    def split(self, literal: int) -> tuple["_Node", "_Node"]:
        """The literal left out, and taken in."""
        fails = self.zeros[:, literal]
        left = self.zeros.copy()
        left[:, literal] = False
        return _Node(self.taken, left, self.weights), _Node(self.taken | 1 << literal, self.zeros[~fails], self.weights[~fails])

    def literal(self) -> int:
        """The one that most weight hangs on."""
        several = self.open > 1
        return int(np.argmax(np.abs(self.weights[several]) @ self.zeros[several]))

    def key(self, choice: int) -> Key:
        """Of one conjunction of the node."""
        chosen = np.array([choice >> i & 1 for i in range(self.zeros.shape[1])], dtype=np.bool_)
        return int(self.weights[~(self.zeros & chosen).any(axis=1)].sum()), choice


@dataclass
class _Search:
    """The least key seen, and how many more nodes may be."""

    root: _Node
    nodes: float
    found: Key = field(init=False)

    def __post_init__(self) -> None:
        self.found = self.root.key(self.root.best)

    def splits(self, node: _Node) -> Iterator[int]:
        """The tree under the node. Raises _SpentError when no more nodes may be seen."""
        self.nodes -= 1
        if self.nodes < 0:
            raise _SpentError
        self.found = min(self.found, self.root.key(node.best))
        if node.least >= self.found:
            return iter((LEAF,))
        literal = node.literal()
        left, taken = node.split(literal)
        if taken.least < left.least:  # the better one first: what it finds cuts the other
            within = list(self.splits(taken))
            return iter((literal, *self.splits(left), *within))
        return iter((literal, *self.splits(left), *self.splits(taken)))


class _SpentError(Exception):
    """No more nodes."""


@dataclass(frozen=True)
class BranchAndBound:
    """A certifying oracle of monotone conjunctions over d coordinates: the least by branch and bound, within `nodes` nodes, checked before it is told.

    Cost: O(n d) a node. Errors: Fail where the nodes do not suffice, never a wrong answer.
    """

    d: int
    nodes: int = 100_000

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_DIMENSION)
        check_whole("nodes", self.nodes, 1, 10**9)

    def minimise(self, data: Weighted) -> Certified | Fail:
        proof = self.prove(data)
        return FAIL if proof is None else check(proof, data, self.d)

    def prove(self, data: Weighted) -> Proof | None:
        """The least and its proof, or nothing."""
        try:
            return _proof(data, self.d, self.nodes)
        except _SpentError:
            return None


@dataclass(frozen=True)
class FullSearch:
    """A perfect oracle of monotone conjunctions over d coordinates: branch and bound to its end, which may be as far off as 2^d nodes."""

    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_DIMENSION)

    def minimise(self, data: Weighted) -> Certified:
        answer = check(_proof(data, self.d, math.inf), data, self.d)
        assert isinstance(answer, Certified), "a finished search proves what it found"
        return answer


def _proof(data: Weighted, d: int, nodes: float) -> Proof:
    """Raises _SpentError where the nodes do not suffice."""
    root = _Node.root(data, d)
    search = _Search(root, nodes)
    splits = tuple(search.splits(root))
    value, choice = search.found
    return Proof(choice, value, splits)


def check(proof: Proof, data: Weighted, d: int) -> Certified | Fail:
    """Certified if the total is that of the choice and each leaf of the tree is bounded by its key; Fail for anything else. It searches nothing."""
    root = _Node.root(data, d)
    if not 0 <= proof.choice < 1 << d or root.key(proof.choice) != (proof.value, proof.choice):
        return FAIL
    waiting = [root]
    for literal in proof.splits:
        if not waiting or not LEAF <= literal < d:
            return FAIL
        node = waiting.pop()
        if literal == LEAF:
            if node.least < (proof.value, proof.choice):
                return FAIL
        else:
            waiting.extend(reversed(node.split(literal)))
    return FAIL if waiting else Certified(proof.choice, proof.value)
