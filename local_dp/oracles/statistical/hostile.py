"""Oracles that are legal and unhelpful: rounded, biased, null-seeking."""

from collections.abc import Callable
from typing import TypeAlias

from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.population import Population


class RoundedOracle(ExactOracle):
    """Answers with the nearest multiple of 2 tau: the simplest legal adversary (limits 5.1)."""

    def answer_one(self, query: StatisticalQuery) -> float:
        step = 2 * query.tolerance
        return round(super().answer_one(query) / step) * step


Bias: TypeAlias = Callable[[float], float]


def upward(expectation: float) -> float:
    """Every answer tau too high."""
    return 1.0


def downward(expectation: float) -> float:
    """Every answer tau too low."""
    return -1.0


def against(expectation: float) -> float:
    """Every answer tau closer to the wrong sign: for algorithms that decide by the sign of an answer."""
    return -1.0 if expectation > 0 else 1.0


class BiasedOracle(ExactOracle):
    """Answers with the expectation plus tau times `bias(expectation)`, clipped to +-tau: legal, and wrong in a chosen direction every time."""

    def __init__(self, population: Population, bias: Bias) -> None:
        super().__init__(population)
        self.bias = bias

    def answer_one(self, query: StatisticalQuery) -> float:
        expectation = super().answer_one(query)
        return expectation + query.tolerance * min(1.0, max(-1.0, self.bias(expectation)))


class NullOracle(ExactOracle):
    """Answers as closely to the expectation under a `null` population as the tolerance lets it: the proofs' own adversary, who gives nothing away.

    With random labels as the null, a query is of use only if the target moves its expectation by more than tau (limits 5.1, item 4).
    """

    def __init__(self, population: Population, null: Population) -> None:
        super().__init__(population)
        self.null = null

    def answer_one(self, query: StatisticalQuery) -> float:
        expectation, wanted = super().answer_one(query), query.expectation(self.null.law(query.query))
        return min(expectation + query.tolerance, max(expectation - query.tolerance, wanted))
