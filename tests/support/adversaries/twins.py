"""Wrong twins of the SQ learners: each differs from its learner in one line, and each must be
caught."""

from dataclasses import replace
from typing import Any

import numpy as np

from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.learners.halfspaces import Halfspace, Perceptron
from local_dp.learners.moments import (
    AtLeast,
    BayesRule,
    KMeans,
    LinearModel,
    LinearRegression,
    NaiveBayes,
    Thresholds,
)
from local_dp.learners.rules import AllOf, Conjunctions, DecisionLists, Literal, Rule, Stump, Stumps
from local_dp.oracles.statistical.oracles import StatisticalQuery


class LaxConjunctions(Conjunctions):  # keeps literals with six times the violations
    def algorithm(self) -> Nonadaptive[StatisticalQuery, float, AllOf]:
        right = super().algorithm()
        most = 6 * self.tolerance / 2

        def decode(answers: tuple[float, ...]) -> AllOf:
            pairs = zip(self.literals, answers, strict=True)
            return AllOf(tuple(literal for literal, answer in pairs if (1 + answer) / 2 <= most))

        return Nonadaptive(right.queries, decode)


class PositiveStumps(Stumps):  # never takes a negation
    def algorithm(self) -> Nonadaptive[StatisticalQuery, float, Stump]:
        return Nonadaptive(
            super().algorithm().queries, lambda answers: Stump(Literal(int(np.argmax(answers))))
        )


class ShiftedThresholds(Thresholds):  # one point too low
    def algorithm(self) -> Nonadaptive[StatisticalQuery, float, AtLeast]:
        right = super().algorithm()
        return Nonadaptive(
            right.queries, lambda answers: AtLeast(right.decode(answers).threshold - 1)
        )


class EvenBayes(NaiveBayes):  # takes both labels for equally likely
    def algorithm(self) -> Nonadaptive[StatisticalQuery, float, BayesRule]:
        right = super().algorithm()
        return Nonadaptive(right.queries, lambda answers: replace(right.decode(answers), prior=0.5))


class Uncorrelated(LinearRegression):  # leaves out the mixed moments
    def algorithm(self) -> Nonadaptive[StatisticalQuery, float, LinearModel]:
        right = super().algorithm()
        mixed = [query.query.params()["factors"] for query in right.queries]
        keep = [len(set(names)) == 1 or "y" in names for names in mixed if isinstance(names, tuple)]
        return Nonadaptive(
            right.queries,
            lambda answers: right.decode(
                tuple(answer * weight for answer, weight in zip(answers, keep, strict=True))
            ),
        )


class LaxLists(DecisionLists):  # calls a literal pure with six times the mistakes
    def _best(self, candidates: list[Literal | None], mass: np.ndarray) -> Rule:
        return replace(self, slack=6 * self.slack)._right(candidates, mass)

    def _right(self, candidates: list[Literal | None], mass: np.ndarray) -> Rule:
        return super()._best(candidates, mass)


class HastyPerceptron(Perceptron):  # moves once: the average of the examples
    @property
    def rounds(self) -> int:
        return 2


class ContentPerceptron(Perceptron):  # stops at six times the mistakes
    def algorithm(self) -> Adaptive[StatisticalQuery, float, Halfspace]:
        return replace(
            Perceptron(d=self.d, gamma=self.gamma), alpha=min(0.99, 6 * self.alpha)
        ).algorithm()


class WholeMeans(KMeans):  # forgets to divide by the share of the cluster
    def _play(self) -> Play[StatisticalQuery, float, Any]:
        inner = super()._play()
        try:
            queries = next(inner)
            while True:
                answers = yield queries
                queries = inner.send(
                    tuple(1.0 if place % 3 == 0 else answer for place, answer in enumerate(answers))
                )
        except StopIteration as end:
            return end.value
