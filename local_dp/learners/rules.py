"""Learners of rules over literals: conjunctions, decision stumps, decision lists and decision
trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Floats, Ints
from local_dp.checks import check_dimension, check_whole
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import AdaptiveLearner, CubeLearner, Learner, Promise, share, signs
from local_dp.oracles.statistical.oracles import Statistical, StatisticalPlay, StatisticalQuery
from local_dp.queries.tables import Question
from local_dp.records import Records


@dataclass(frozen=True, order=True)
class Literal:
    """The condition x{place} = value."""

    place: int
    value: int = 1

    def __str__(self) -> str:
        return f"x{self.place} == {self.value}"

    def holds(self, records: Records) -> Bools:
        return np.asarray(records[f"x{self.place}"] == self.value)


@dataclass(frozen=True)
class AllOf:
    """+1 where every literal holds, else -1; of no literals, always +1."""

    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.literals)) or "always"

    def holds(self, records: Records) -> Bools:
        every = np.ones(len(records), dtype=np.bool_)
        for literal in self.literals:
            every &= literal.holds(records)
        return every

    def predict(self, records: Records) -> Ints:
        return signs(self.holds(records))


@dataclass(frozen=True, kw_only=True)
class Conjunctions(CubeLearner[AllOf]):
    """Learns a conjunction of literals (of variables only, if `monotone`) over {0,1}^d under every
    distribution: error at most alpha.

    Asks Pr[literal false and y = 1] for each of L = 2d (or d) literals at once and keeps those with
    an answer of at most half the tolerance, alpha / 2L: each literal of the target stays, and each
    that stays wrongly rejects at most alpha / L. Tolerance alpha / L. Source: Kearns 1998; limits
    9.
    """

    name = "conjunctions"
    source = "Kearns 1998"
    monotone: bool = False

    @property
    def literals(self) -> tuple[Literal, ...]:
        return tuple(
            Literal(place, value)
            for place in range(self.d)
            for value in ((1,) if self.monotone else (0, 1))
        )

    @property
    def promise(self) -> Promise:
        queries = len(self.literals)
        return Promise(self.alpha / queries, queries)

    def algorithm(self) -> Statistical[AllOf]:
        literals, most = self.literals, self.tolerance / 2

        def decode(answers: tuple[float, ...]) -> AllOf:
            pairs = zip(literals, answers, strict=True)
            return AllOf(
                tuple(literal for literal, answer in pairs if share(answer) <= most * (1 + 1e-9))
            )

        return Nonadaptive(
            tuple(
                self.ask(Question(f"x{literal.place} == {1 - literal.value} and y == 1"))
                for literal in literals
            ),
            decode,
        )


@dataclass(frozen=True)
class Stump:
    """+1 where its literal holds, else -1."""

    literal: Literal

    def __str__(self) -> str:
        return str(self.literal)

    def predict(self, records: Records) -> Ints:
        return signs(self.literal.holds(records))


@dataclass(frozen=True, kw_only=True)
class Stumps(CubeLearner[Stump]):
    """Learns the best single literal over {0,1}^d, agnostically, from d correlations within alpha:
    error at most the best's plus alpha. Source: Kearns 1998."""

    name = "stumps"
    source = "Kearns 1998"

    @property
    def promise(self) -> Promise:
        return Promise(self.alpha, self.d)

    def algorithm(self) -> Statistical[Stump]:
        def decode(answers: tuple[float, ...]) -> Stump:
            best = int(np.abs(answers).argmax())
            return Stump(Literal(best, int(answers[best] >= 0)))

        return Nonadaptive(
            tuple(
                self.ask(Question(f"(x{place} == 1 and y == 1) or (x{place} == 0 and y == -1)"))
                for place in range(self.d)
            ),
            decode,
        )


LABELS = (-1, 1)


def by_label(
    learner: Learner[Any], cells: Sequence[Sequence[object]]
) -> tuple[StatisticalQuery, ...]:
    """Asks for the mass of each cell, a conjunction of conditions, by label."""
    texts = (" and ".join([f"y == {label}", *map(str, cell)]) for cell in cells for label in LABELS)
    return tuple(learner.ask(Question(text)) for text in texts)


@dataclass(frozen=True)
class Rule:
    """If the literal holds (always, if there is none), the label +1 or -1."""

    literal: Literal | None
    label: int

    def __str__(self) -> str:
        return (
            f"{self.label:+d}"
            if self.literal is None
            else f"if {self.literal} then {self.label:+d}"
        )


@dataclass(frozen=True)
class RuleList:
    """The label of the first rule whose literal holds; -1 if none does."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return ", else ".join(map(str, self.rules)) or "-1"

    def predict(self, records: Records) -> Ints:
        labels = np.full(len(records), -1, dtype=np.int8)
        for rule in reversed(self.rules):
            labels = np.where(
                True if rule.literal is None else rule.literal.holds(records),
                np.int8(rule.label),
                labels,
            )
        return labels


@dataclass(frozen=True, kw_only=True)
class DecisionLists(AdaptiveLearner[RuleList]):
    """Learns a list of rules "if literal then label" over {0,1}^d under every distribution: error
    at most alpha.

    Each round counts the examples that no rule has caught, by label and by each literal of an
    unused variable or "always". Of the literals that are pure within the tolerance, alpha / (d + 1)
    on the +1/-1 scale, it takes the one that catches most: the target's first rule not yet in the
    list is one. At most 2 (d + 1)^2 queries. No non-adaptive learner of polynomial cost exists
    (Daniely, Feldman 2019). Source: Rivest 1987; Kearns 1998.
    """

    name = "decision-lists"
    source = "Rivest 1987; Kearns 1998"
    d: int = 5

    def check(self) -> None:
        check_dimension(self.d, 40)

    @property
    def promise(self) -> Promise:
        return Promise(self.alpha / (self.d + 1), 2 * (self.d + 1) ** 2, self.d + 1)

    def _play(self) -> StatisticalPlay[RuleList]:
        literals: list[Literal] = []
        rules: list[Rule] = []
        while True:
            unused = set(range(self.d)) - {literal.place for literal in literals}
            candidates = [
                None,
                *(Literal(place, value) for place in sorted(unused) for value in (0, 1)),
            ]
            # the examples that no rule catches
            left = [str(Literal(rule.place, 1 - rule.value)) for rule in literals]
            cells = [
                [*left, *([] if literal is None else [str(literal)])] for literal in candidates
            ]
            answers = yield by_label(self, cells)
            rule = self._best(
                candidates, np.array([share(answer) for answer in answers]).reshape(-1, 2)
            )
            rules.append(rule)
            if rule.literal is None:
                return RuleList(tuple(rules))
            literals.append(rule.literal)

    def _best(self, candidates: list[Literal | None], mass: np.ndarray) -> Rule:
        """The rule that catches most among the pure ones; the purest if no answer is within the
        tolerance of a pure one, as under sampling it may happen."""
        errors = mass.min(axis=1)
        pure = errors <= max(self.tolerance / 2 * (1 + 1e-9), errors.min())
        choice = 0 if pure[0] else int(np.where(pure, mass.max(axis=1), -np.inf).argmax())
        return Rule(candidates[choice], LABELS[int(mass[choice].argmax())])


Path: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True)
class Tree:
    """Leaves as (path, label): the label of the leaf whose path a record satisfies."""

    leaves: tuple[tuple[Path, int], ...]

    def __str__(self) -> str:
        return "; ".join(f"{AllOf(path)}: {label:+d}" for path, label in self.leaves)

    def predict(self, records: Records) -> Ints:
        labels = np.full(len(records), -1, dtype=np.int8)
        for path, label in self.leaves:
            labels[AllOf(path).holds(records)] = label
        return labels


@dataclass(frozen=True, kw_only=True)
class Trees(AdaptiveLearner[Tree]):
    """ID3 over {0,1}^d: splits each leaf on the attribute that leaves the least Gini impurity,
    `depth` times; the labels cost at most alpha of error.

    A round asks, for each leaf that is not pure, for its mass by label, and by label where x_j = 1
    for each attribute j not on its path. A leaf's label costs at most 2 tau, alpha / 2^(depth + 1).
    The greedy choice of splits promises nothing. Source: Quinlan 1986; limits 9.
    """

    name = "trees"
    source = "Quinlan 1986 (ID3) on statistical queries"
    d: int = 6
    depth: int = 3

    def check(self) -> None:
        check_dimension(self.d)
        check_whole("depth", self.depth, 1, min(self.d, 10))

    @property
    def promise(self) -> Promise:
        queries = sum((2 << level) * (self.d - level + 1) for level in range(self.depth))
        return Promise(self.alpha / (2 << self.depth), queries, self.depth)

    def _play(self) -> StatisticalPlay[Tree]:
        open_leaves: dict[Path, int] = {(): -1}
        closed: dict[Path, int] = {}
        for _ in range(self.depth):
            questions = [self._questions(path) for path in open_leaves]
            answers = iter((yield tuple(query for leaf in questions for query in leaf)))
            children: dict[Path, int] = {}
            for path, leaf in zip(open_leaves, questions, strict=True):
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
        return by_label(self, cells)


def _split(path: Path, places: list[int], mass: Floats) -> dict[Path, int]:
    """The two children of a leaf with their labels; `mass` by label, of the leaf and then where x_j
    = 1 for each place j, shape (1 + places, 2)."""
    ones = np.clip(mass[1:], 0, None)
    zeros = np.clip(mass[0] - mass[1:], 0, None)
    sides = (ones, zeros)
    impurity = sum(side.prod(axis=1) / np.maximum(side.sum(axis=1), 1e-12) for side in sides)
    best = int(np.argmin(impurity))
    return {
        (*path, Literal(places[best], value)): LABELS[int(side[best].argmax())]
        for value, side in enumerate((zeros, ones))
    }
