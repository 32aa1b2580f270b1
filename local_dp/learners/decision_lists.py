"""Decision lists, one rule a round."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_dimension
from local_dp.interaction import Adaptive
from local_dp.learners.conjunctions import Literal
from local_dp.learners.learner import Learner, share
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalRounds
from local_dp.queries.tables import Question
from local_dp.records import Records

LABELS = (-1, 1)


@dataclass(frozen=True)
class Rule:
    """If the literal holds (always, if there is none), the label +1 or -1."""

    literal: Literal | None
    label: int

    def __str__(self) -> str:
        return f"{self.label:+d}" if self.literal is None else f"if {self.literal} then {self.label:+d}"


@dataclass(frozen=True)
class RuleList:
    """The label of the first rule whose literal holds; -1 if none does."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return ", else ".join(map(str, self.rules)) or "-1"

    def predict(self, records: Records) -> Ints:
        """The list's label of each record, shape (n,)."""
        labels = np.full(len(records), -1, dtype=np.int8)
        for rule in reversed(self.rules):
            labels = np.where(True if rule.literal is None else rule.literal.holds(records), np.int8(rule.label), labels)
        return labels


@dataclass(frozen=True, kw_only=True)
class DecisionLists(Learner[RuleList]):
    """Learns a list of rules "if literal then label" over {0,1}^d under every distribution: error at most alpha.

    Each round asks, for each literal of an unused variable and for "always", how many of the examples that no rule has caught satisfy it with label -1 and
    with label +1; of the literals that are pure within the tolerance it takes the one that catches most. The first rule of the target that is not yet in the
    list is pure, so there always is one; after d rules only "always" is left, and each rule misses at most twice the tolerance, so alpha / (d + 1) on the
    +1/-1 scale is enough. At most 2 (d + 1)^2 queries. No non-adaptive learner with polynomial cost exists (Daniely, Feldman 2019).
    Source: Rivest 1987; Kearns 1998.
    """

    name: ClassVar[str] = "decision-lists"
    source: ClassVar[str] = "Rivest 1987; Kearns 1998"
    d: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d, 40)

    @property
    def proven(self) -> float:
        return self.alpha / (self.d + 1)

    @property
    def queries(self) -> int:
        return 2 * (self.d + 1) ** 2

    @property
    def rounds(self) -> int:
        return self.d + 1

    def algorithm(self) -> StatisticalRounds[RuleList]:
        return Adaptive(self._play)

    def _play(self) -> StatisticalPlay[RuleList]:
        caught: list[Literal] = []
        rules: list[Rule] = []
        while True:
            unused = set(range(self.d)) - {literal.place for literal in caught}
            candidates = [None, *(Literal(place, value) for place in sorted(unused) for value in (0, 1))]
            answers = yield tuple(self.ask(Question(_uncaught(caught, literal, label))) for literal in candidates for label in LABELS)
            rule = self._best(candidates, np.array([share(answer) for answer in answers]).reshape(-1, 2))
            rules.append(rule)
            if rule.literal is None:
                return RuleList(tuple(rules))
            caught.append(rule.literal)

    def _best(self, candidates: list[Literal | None], mass: np.ndarray) -> Rule:
        """The rule that catches most among the pure ones; the purest if no answer is within the tolerance of a pure one, as under sampling it may happen."""
        missed = mass.min(axis=1)
        pure = missed <= max(self.tolerance / 2 * (1 + 1e-9), missed.min())
        chosen = 0 if pure[0] else int(np.where(pure, mass.max(axis=1), -np.inf).argmax())
        return Rule(candidates[chosen], LABELS[int(mass[chosen].argmax())])


def _uncaught(caught: list[Literal], literal: Literal | None, label: int) -> str:
    """The examples with this label that no rule catches and the literal does."""
    conditions = [f"y == {label}", *(str(Literal(rule.place, 1 - rule.value)) for rule in caught)]
    return " and ".join(conditions if literal is None else [*conditions, str(literal)])
