"""A yes/no question put to everybody by randomized response, of all or group by group."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import grouped_clients
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import bernoulli
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import Conditional, frequency_randomizer, largest_error
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Estimate


@dataclass(frozen=True)
class Survey(LocalProtocol[Estimate]):
    """Estimates the share of clients whose record answers yes to `question`; without a table, of a population with share `p` of yes.

    With `by`, the share within each group of that column. A missing value that leaves the question open is refused before the run, counts as no, or the record
    is left out ("exclude": the share is among those with an answer). Privacy: every report is epsilon-locally private. Utility: of everybody, standard error
    at most C / (2 sqrt n), C = (e^eps + 1) / (e^eps - 1): minimax. `tolerance` sets the default number of clients: within it with probability 95 %, every
    group where groups are equal; of everybody, also enough for the interval to keep its level. `randomizer` names another one for a yes/no value. Cost: one
    bit a client, or log2 of the cells; one round.
    """

    name: ClassVar[str] = "survey"
    source: ClassVar[str] = "Warner 1965; KLNRS 2008, Section 4.3"
    example: ClassVar[str] = "--records fair.csv --question 'affairs > 0'"
    question: str = parameter("yes == 1", "a yes/no question about the columns, such as 'affairs > 0 and age >= 30'", of_table=True)
    by: str = parameter("", "a column whose groups are asked about one by one")
    labels: tuple[str, ...] = parameter((), "the groups, public, separated by ';'")
    labels_from_data: bool = parameter(False, "read the groups from the table: in a simulation only, for it publishes them")
    missing: str = parameter("refuse", "where a missing value leaves the question open: refuse, no (it counts as no), or exclude (the share among the others)")
    other: str = parameter("refuse", "a group that is not listed: refuse, or exclude")
    randomizer: str = parameter(BinaryRR.name, "the randomizer of a yes/no value, of this library or of an installed package")
    p: float = parameter(0.3, "without a table: the share of yes in the made-up population")
    tolerance: float = parameter(0.05, "error in 95 % of runs; sets the default number of clients", unit="share")

    def check(self) -> None:
        check_share("p", self.p)
        check_share("tolerance", self.tolerance)
        check_policy("missing", self.missing, ("refuse", "no", "exclude"))
        check_policy("other", self.other, ("refuse", "exclude"))
        if self.by and self.missing == "no":
            raise InputError("missing=no counts open questions of everybody; with groups choose refuse or exclude")
        if (self.by or self.missing == "exclude") and self.randomizer != BinaryRR.name:
            raise InputError(f"{self.randomizer} takes yes or no, and with groups or missing=exclude there is more to say; leave out randomizer")

    @property
    def query(self) -> Query:
        """The query that is put to every client."""
        if self.by:
            if not self.labels:
                raise InputError(f"the groups of {self.by!r} are public: list them, as in labels='first;second'")
            return Crossed((self.by, self.question), (SEPARATOR.join(self.labels), ""), ("none",))
        return Question(self.question, ("missing",) if self.missing == "exclude" else ())

    @property
    def conditional(self) -> Conditional | None:
        """The shares of yes among wholes, where the whole is not everybody."""
        if not self.by and self.missing != "exclude":
            return None
        groups, k = (len(self.labels), self.query.domain.size) if self.by else (1, 3)
        cells = np.eye(k)  # no and yes of each group, then those without a place
        return Conditional(cells[1 : 2 * groups : 2], cells[0 : 2 * groups : 2] + cells[1 : 2 * groups : 2])

    def clients(self, epsilon: float) -> int:
        if self.by or self.missing == "exclude":
            return grouped_clients(epsilon, max(1, len(self.labels)), self.tolerance, BETA)
        return max(rr_clients(epsilon, 2 * self.tolerance, BETA), levelled_clients(epsilon))

    def aim(self) -> Aim | None:
        return Aim.share_of_ones() if self.conditional is None else None

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        conditional = self.conditional
        if conditional is None:
            randomizer = RANDOMIZERS.build(self.randomizer, {"epsilon": epsilon})
            query = LocalQuery(self.query, randomizer, Cohort(0, clients))
            return Nonadaptive((query,), lambda answers: _share(randomizer.estimate(answers[0])))
        oracle = frequency_randomizer(epsilon, self.query.domain.size, joint=True)
        query = LocalQuery(self.query, oracle, Cohort(0, clients))
        return Nonadaptive((query,), lambda answers: self._shown(conditional.estimate(oracle, answers[0])))

    def _shown(self, estimate: Estimate) -> Estimate:
        """A vector of groups, or the one share there is."""
        return estimate if self.by else estimate.at(0)

    def synthetic(self, clients: int, seed: int) -> Population:
        if self.by:
            raise InputError("groups (by) are of a table: add --records")
        return bernoulli("yes", self.p, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.refuse_open(self.missing, Question(self.question), "missing=exclude (the share among the others) or missing=no (it counts as no)")
        return replace(self, labels=table.groups(self.by, self.labels, self.labels_from_data, self.other)) if self.by else self

    def describe(self, result: Estimate) -> PlainData:
        groups = {"by": self.by, "labels": list(self.labels)} if self.by else {}
        return {"question": self.question, **groups, **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        """The share of yes in the distribution that the clients are drawn from, shape () or (groups,)."""
        law, conditional = population.law(self.query), self.conditional
        if conditional is None:
            return np.asarray(law[1])
        shares = conditional.of(law)
        return shares if self.by else np.asarray(shares[0])

    def true_error(self, result: Estimate, population: Population) -> float:
        return largest_error(result.value, self.truth(population))


def _share(estimate: Estimate) -> Estimate:
    """The share of ones, from an oracle that estimates it alone or beside the share of zeros."""
    return estimate if estimate.value.ndim == 0 else estimate.at(1)
