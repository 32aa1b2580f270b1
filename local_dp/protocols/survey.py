"""A yes/no question put to everybody by randomized response."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import rr_clients
from local_dp.checks import check_share
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.base import Population
from local_dp.populations.finite import bernoulli
from local_dp.protocols.base import BETA, Protocol, Result, describe_estimate, parameter
from local_dp.queries.questions import columns_of
from local_dp.queries.tables import Question
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class Survey(Protocol[Estimate]):
    """Estimates the share of clients whose record answers yes to `question`; without a table, of a population with share `p` of yes.

    Privacy: every report is epsilon-locally private. Utility: standard error at most C / (2 sqrt n), C = (e^eps + 1) / (e^eps - 1): minimax.
    `tolerance` sets the default number of clients: within it with probability 95 %. `randomizer` names another one for a yes/no value, of this library or
    of an installed package. Cost: one bit a client, one round.
    """

    name: ClassVar[str] = "survey"
    source: ClassVar[str] = "Warner 1965; KLNRS 2008, Section 4.3"
    question: str = parameter("yes == 1", "a yes/no question about the columns, such as 'affairs > 0 and age >= 30'", of_table=True)
    randomizer: str = parameter(BinaryRR.name, "the randomizer of a yes/no value, of this library or of an installed package")
    p: float = parameter(0.3, "without a table: the share of yes in the made-up population")
    tolerance: float = parameter(0.05, "the default number of clients is for an error of at most this, with probability 95 %", unit="share")

    def __post_init__(self) -> None:
        check_share("p", self.p)
        check_share("tolerance", self.tolerance)

    def clients(self, epsilon: float) -> int:
        return rr_clients(epsilon, 2 * self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Nonadaptive[LocalQuery, Tally, Estimate]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input\'s fault, not the randomizer\'s
        randomizer = RANDOMIZERS.build(self.randomizer, {"epsilon": epsilon})
        query = LocalQuery(Question(self.question), randomizer, Cohort(0, clients))
        return Nonadaptive((query,), lambda answers: _share(randomizer.estimate(answers[0])))

    def synthetic(self, clients: int, seed: int) -> Population:
        return bernoulli("yes", self.p, clients, seed)

    def for_table(self, records: Records) -> Self:
        question = Question(self.question)
        for column in sorted(columns_of(question.expression)):
            records[column]  # raises with the columns there are
        question(records.take(slice(0, 1)))
        return replace(self)

    def describe(self, result: Estimate) -> Result:
        return {"question": self.question, **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        """The share of yes in the distribution that the clients are drawn from, shape ()."""
        return np.asarray(population.law(Question(self.question))[1])

    def true_error(self, result: Estimate, population: Population) -> float:
        return abs(float(result.value) - float(self.truth(population)))


def _share(estimate: Estimate) -> Estimate:
    """The share of ones, from an oracle that estimates it alone or beside the share of zeros."""
    return estimate if estimate.value.ndim == 0 else estimate.at(1)
