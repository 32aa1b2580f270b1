"""Branch and bound for monotone conjunctions, in whole numbers, with a proof that is checked apart
from the search.

A tree of choices (a literal is left out, or taken in) with a bound at each leaf proves a minimum.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.checks import check_dimension, check_whole
from local_dp.curator.oracle_efficient.separated import (
    FAIL,
    MAX_DIMENSION,
    Certified,
    Fail,
    Weighted,
)

LEAF = -1
Key = tuple[int, int]  # total, number: of two of equal total the lower number is less


@dataclass(frozen=True)
class Proof:
    """That `choice`, of total `value`, is the least: the splits of the tree, a node before its
    subtrees, left out before taken in; -1 is a leaf."""

    choice: int
    value: int
    splits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Node:
    """All conjunctions with the literals `literals` and some undecided ones; `zeros`, (k, d), marks
    the undecided literals that each surviving point fails."""

    literals: int
    zeros: Bools
    weights: Counts

    @classmethod
    def root(cls, data: Weighted, d: int) -> "_Node":
        """Everything undecided, and equal points merged."""
        points, where = np.unique(data.points.astype(np.int64), return_inverse=True)
        weights = np.zeros(len(points), dtype=np.int64)
        np.add.at(weights, where, data.weights)
        zeros = (points[:, None] >> np.arange(d, dtype=np.int64)) & 1 == 0
        return cls(0, zeros[weights != 0], weights[weights != 0])

    @cached_property
    def open(self) -> Counts:
        """The number of undecided literals that each point fails."""
        return np.asarray(self.zeros.sum(axis=1))

    @cached_property
    def linear(self) -> Counts:
        """The weight that each undecided literal keeps while it is left out, of points that fail it
        alone."""
        alone = self.open == 1
        return np.asarray(self.weights[alone] @ self.zeros[alone])

    @cached_property
    def best(self) -> int:
        """The taken literals, and those that would be taken if only points that fail one literal
        mattered."""
        return self.literals | sum(1 << int(i) for i in np.flatnonzero(self.linear > 0))

    @cached_property
    def least(self) -> Key:
        """A lower bound on the key of every conjunction of the node; the key of `best`, where no
        point fails two undecided literals."""
        several = self.weights[self.open > 1]
        total = self.weights[self.open == 0].sum()
        total += np.minimum(self.linear, 0).sum() + np.minimum(several, 0).sum()
        return int(total), self.literals if len(several) else self.best

    def split(self, literal: int) -> tuple["_Node", "_Node"]:
        fails = self.zeros[:, literal]
        others = self.zeros.copy()
        others[:, literal] = False
        taken_in = self.literals | 1 << literal
        within = _Node(taken_in, self.zeros[~fails], self.weights[~fails])
        return _Node(self.literals, others, self.weights), within

    def literal(self) -> int:
        """The literal with the most weight."""
        several = self.open > 1
        return int(np.argmax(np.abs(self.weights[several]) @ self.zeros[several]))

    def key(self, choice: int) -> Key:
        """Of one conjunction of the node."""
        literals = np.array([choice >> i & 1 for i in range(self.zeros.shape[1])], dtype=np.bool_)
        return int(self.weights[~(self.zeros & literals).any(axis=1)].sum()), choice


class _SpentError(Exception):
    """No nodes remain."""


@dataclass(frozen=True)
class BranchAndBound:
    """A certifying oracle of monotone conjunctions over d coordinates: the least by branch and
    bound, within `nodes` nodes, with a checked proof.

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
        try:
            return _proof(data, self.d, self.nodes)
        except _SpentError:
            return None


@dataclass(frozen=True)
class FullSearch:
    """A perfect oracle of monotone conjunctions over d coordinates: branch and bound to its end, up
    to 2^d nodes."""

    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_DIMENSION)

    def minimise(self, data: Weighted) -> Certified:
        answer = check(_proof(data, self.d, math.inf), data, self.d)
        assert isinstance(answer, Certified), "a finished search proves what it found"
        return answer


def _proof(data: Weighted, d: int, nodes: float) -> Proof:
    """Raises _SpentError where the nodes do not suffice."""
    root, remaining = _Node.root(data, d), nodes
    best = root.key(root.best)

    def splits(node: _Node) -> list[int]:
        nonlocal best, remaining
        remaining -= 1
        if remaining < 0:
            raise _SpentError
        best = min(best, root.key(node.best))
        if node.least >= best:
            return [LEAF]
        literal = node.literal()
        without, with_it = node.split(literal)
        if with_it.least < without.least:  # the better one first: what it finds cuts the other
            within = splits(with_it)
            return [literal, *splits(without), *within]
        return [literal, *splits(without), *splits(with_it)]

    tree = tuple(splits(root))
    value, choice = best
    return Proof(choice, value, tree)


def check(proof: Proof, data: Weighted, d: int) -> Certified | Fail:
    """Certified if the total is that of the choice and each leaf of the tree is bounded by its key;
    Fail for anything else. No search."""
    root = _Node.root(data, d)
    if not 0 <= proof.choice < 1 << d or root.key(proof.choice) != (proof.value, proof.choice):
        return FAIL
    stack = [root]
    for literal in proof.splits:
        if not stack or not LEAF <= literal < d:
            return FAIL
        node = stack.pop()
        if literal == LEAF:
            if node.least < (proof.value, proof.choice):
                return FAIL
        else:
            stack.extend(reversed(node.split(literal)))
    return FAIL if stack else Certified(proof.choice, proof.value)
