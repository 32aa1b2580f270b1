"""How often each label of a categorical column occurs."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import frequency_clients, prefers_grr
from local_dp.checks import check_share
from local_dp.domains import symbols
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.base import Population
from local_dp.populations.finite import Finite
from local_dp.protocols.base import BETA, Protocol, Result, describe_estimate, parameter
from local_dp.queries.tables import Category, labels_of
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.grr import GRR
from local_dp.randomizers.hadamard import Hadamard
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally


def frequency_randomizer(epsilon: float, k: int) -> FiniteChannel:
    """k-ary randomized response when k < e^(2 eps) + e^eps + 3, else one-bit Hadamard: whichever has the smaller variance."""
    return GRR(epsilon, k=k) if prefers_grr(epsilon, k) else Hadamard(epsilon, k=k)


@dataclass(frozen=True)
class Frequency(Protocol[Estimate]):
    """Estimates the share of each label of `column`; without a table, of `k` symbols with shares proportional to 1, 1/2, ..., 1/k.

    The labels are public. With a table they are taken from it, sorted, unless `labels` lists them (separated by ';'); a private run must list them.
    Privacy: every report is epsilon-locally private. Utility: variance v / n a label, v of the better of two oracles (limits 2).
    `tolerance` sets the default number of clients: all labels within it with probability 95 %. `randomizer` names another one than the better of the
    two: one for k symbols with parameters epsilon and k. Cost: log2 k bits or 1 bit a client, one round.
    """

    name: ClassVar[str] = "frequency"
    source: ClassVar[str] = "Kairouz et al. 2014 (GRR); Bassily, Smith 2015 (one-bit Hadamard)"
    column: str = parameter("symbol", "the column whose labels are counted", of_table=True)
    labels: tuple[str, ...] = parameter((), "the labels, public, separated by ';'; without them they are taken from the table, unless the run is private")
    k: int = parameter(8, "without a table: how many symbols there are")
    randomizer: str = parameter("best", "one for k symbols, of this library or of an installed package, or best: the better of two")
    tolerance: float = parameter(0.05, "the default number of clients is for errors of at most this, all labels together, with probability 95 %", unit="share")

    def __post_init__(self) -> None:
        symbols(self.k)
        check_share("tolerance", self.tolerance)
        if self.labels:
            Category(self.column, self.labels)

    @property
    def category(self) -> Category:
        """The query that is put to every client."""
        return Category(self.column, self.labels or tuple(map(str, range(self.k))))

    def clients(self, epsilon: float) -> int:
        return frequency_clients(epsilon, self.category.domain.size, self.tolerance, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Nonadaptive[LocalQuery, Tally, Estimate]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input\'s fault, not the randomizer\'s
        k = self.category.domain.size
        randomizer: Randomizer = (
            frequency_randomizer(epsilon, k) if self.randomizer == "best" else RANDOMIZERS.build(self.randomizer, {"epsilon": epsilon, "k": k})
        )
        query = LocalQuery(self.category, randomizer, Cohort(0, clients))
        return Nonadaptive((query,), lambda answers: randomizer.estimate(answers[0]))

    def synthetic(self, clients: int, seed: int) -> Population:
        size = self.category.domain.size
        kinds = Records({self.column: np.array(self.category.labels)}) if self.labels else Records({self.column: np.arange(size)})
        return Finite(kinds, [1 / rank for rank in range(1, size + 1)], clients, seed)

    @property
    def undeclared(self) -> tuple[str, ...]:
        return () if self.labels else ("labels",)

    def for_table(self, records: Records) -> Self:
        labels = self.labels or tuple(np.unique(labels_of(records, self.column)).tolist())
        Category(self.column, labels)
        return replace(self, labels=labels)

    def describe(self, result: Estimate) -> Result:
        return {"column": self.column, "labels": list(self.category.labels), **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        """The shares of the labels in the distribution that the clients are drawn from, shape (k,)."""
        return population.law(self.category)

    def true_error(self, result: Estimate, population: Population) -> float:
        return float(np.abs(result.value - self.truth(population)).max())
