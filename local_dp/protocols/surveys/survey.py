"""Yes/no questions by randomized response: a list of statistical queries; a share among all, or in
each group."""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import mul
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import grouped_clients
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.checks import check_built, check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.populations.finite import Finite, Population, bernoulli
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    MeanProtocol,
    PlainData,
    describe_estimate,
    parameter,
    policy,
)
from local_dp.protocols.surveys.compare import combined, population_shares
from local_dp.protocols.surveys.frequency import Conditional, frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally
from local_dp.theorems.from_sq import enough_clients, local_from_sq

MAX_SYNTHETIC = 10


@dataclass(frozen=True)
class StatisticalQueries(LocalProtocol[tuple[Estimate, ...]]):
    """Answers each of `queries` (questions, separated by ';') on the +1/-1 scale within its
    tolerance, all together with probability 95 %.

    `tolerances` is one number, or one for each query, separated by ';'. Every query has fresh
    clients, in proportion to the number that its tolerance needs. Without a table, `t` independent
    columns q0, q1, ... have shares 1/(t+1), 2/(t+1), ... of yes. Privacy: every report is
    epsilon-locally private. Utility: of n clients, standard error at most C / sqrt n with C =
    (e^eps + 1) / (e^eps - 1). Cost: one bit a client, one round.
    """

    name = "sq"
    summary = "Answers several yes/no questions, each by its own clients"
    source = "KLNRS 2008, Lemma 4.3 and Theorem 4.8"
    example = "--records fair.csv --question 'age >= 30; affairs > 0'"
    queries: tuple[str, ...] = parameter(
        (),
        "Yes/no questions about the columns",
        help="Such as 'age >= 30; affairs > 0'",
        alias="question",
        of_table=True,
    )
    tolerances: tuple[str, ...] = parameter(
        ("0.1",),
        "Target error of each answer, or of all; scale -1 to +1",
    )
    missing: str = policy("records without an answer", no="they count as no")
    t: int = parameter(4, "Without a table: number of columns")

    def check(self) -> None:
        check_whole("t", self.t, 1, MAX_SYNTHETIC)
        check_built(self.statistical)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.queries or tuple(f"q{index} == 1" for index in range(self.t))

    @property
    def statistical(self) -> tuple[StatisticalQuery, ...]:
        try:
            tolerances = [float(text) for text in self.tolerances]
        except ValueError:
            raise InputError(
                f"tolerances is {';'.join(self.tolerances)!r}; give numbers separated by ';'"
            ) from None
        if len(tolerances) not in (1, len(self.texts)):
            raise InputError(
                f"there are {len(self.texts)} queries and {len(tolerances)} tolerances; give one, "
                "or one for each query"
            )
        each = tolerances * len(self.texts) if len(tolerances) == 1 else tolerances
        return tuple(
            StatisticalQuery(Question(text), tau)
            for text, tau in zip(self.texts, each, strict=True)
        )

    def _needed(self, epsilon: float) -> list[int]:
        clients_for = enough_clients(epsilon, BETA / len(self.texts))
        return [clients_for(query) for query in self.statistical]

    @property
    def possible(self) -> tuple[float, float]:
        return -1.0, 1.0

    def clients(self, epsilon: float) -> int:
        return sum(self._needed(epsilon))

    def algorithm(self, epsilon: float, clients: int) -> Local[tuple[Estimate, ...]]:
        if clients < len(self.texts):
            raise InputError(
                f"{len(self.texts)} queries need fresh clients each; {clients} are too few"
            )
        needed = self._needed(epsilon)
        # every query gets one client, and the others in proportion to its further need
        more = [count - 1 for count in needed]
        spare = clients - len(needed)
        ends = [
            place + 1 + spare * sum(more[: place + 1]) // sum(more) for place in range(len(needed))
        ]
        sizes = iter(np.diff([0, *ends]).tolist())
        algorithm: Statistical[tuple[float, ...]] = Nonadaptive(
            self.statistical, lambda answers: answers
        )
        queries = local_from_sq(algorithm, epsilon, lambda query: next(sizes)).queries
        randomizers = [query.randomizer for query in queries]
        return Nonadaptive(
            queries,
            lambda tallies: tuple(
                each.estimate(tally).on_scale(-1.0, 1.0)
                for each, tally in zip(randomizers, tallies, strict=True)
            ),
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        if self.queries:
            raise InputError(
                "sq: `queries` are about the columns of a table; add --records, or leave them out"
            )
        yes = [(index + 1) / (self.t + 1) for index in range(self.t)]
        kinds = list(product((0, 1), repeat=self.t))
        shares = [
            reduce(mul, (p if bit else 1 - p for p, bit in zip(yes, kind, strict=True)))
            for kind in kinds
        ]
        columns = {
            f"q{index}": np.array([kind[index] for kind in kinds], dtype=np.uint8)
            for index in range(self.t)
        }
        return Finite(Records(columns), shares, clients, seed)

    def for_table(self, table: Launch) -> Self:
        if not self.queries:
            raise InputError(
                "sq needs questions about the table: add --question, or --queries 'age >= 30; "
                "affairs > 0'"
            )
        for query in self.statistical:
            assert isinstance(query.query, Question)
            table.refuse_open(
                self.missing,
                query.query,
                "missing=no (a question left open counts as no), or survey with missing=exclude",
            )
        return self

    def describe(self, result: tuple[Estimate, ...]) -> PlainData:
        described = [describe_estimate(estimate) for estimate in result]
        return {
            "labels": list(self.texts),
            "tolerances": [query.tolerance for query in self.statistical],
            **{key: [part[key] for part in described] for key in described[0]},
        }

    def values(self, result: tuple[Estimate, ...]) -> Floats:
        return np.array([float(estimate.value) for estimate in result])

    def truth(self, population: Population) -> Floats:
        """The expectations of the queries in the distribution that the clients are drawn from, on
        the +1/-1 scale, shape (queries,)."""
        return np.array(
            [2 * float(population.law(query.query)[1]) - 1 for query in self.statistical]
        )


@dataclass(frozen=True)
class Survey(MeanProtocol):
    """Estimates the share of clients whose record answers yes to `question`; without a table, of a
    population with share `p` of yes.

    With `by`, the share within each group of that column, and with `weights` that of the population
    with groups of these sizes (post-stratification: who answers need not be a fair sample of the
    groups). A missing value that leaves the question open stops the run, counts as no, or the
    record is left out ("exclude"). Privacy: every report is epsilon-locally private. Utility: of
    everybody, standard error at most C / (2 sqrt n), C = (e^eps + 1) / (e^eps - 1): first-order
    minimax. `tolerance` sets the default number of clients: the error stays below it in 95 % of
    runs, in every group if groups are equal; of everybody, the interval also keeps its level. Cost:
    one bit a client, or log2 of the cells; one round.
    """

    name = "survey"
    summary = "Estimates the share of clients who answer yes to a question"
    source = "Warner 1965; KLNRS 2008, Section 4.3"
    example = "--records fair.csv --question 'affairs > 0'"
    question: str = parameter(
        "yes == 1",
        "Yes/no question about the columns",
        help="Such as 'affairs > 0 and age >= 30'",
        of_table=True,
    )
    by: str = parameter("", "Column of groups, for a share within each group")
    labels: tuple[str, ...] = parameter((), "The public groups")
    labels_from_data: bool = parameter(
        False, "Read the groups from the table, and publish them", help="In a simulation only"
    )
    missing: str = policy(
        "records without an answer", no="they count as no", exclude="the share among the others"
    )
    weights: tuple[str, ...] = parameter(
        (),
        "Size of each group in the population, public",
        help="Adds the share of all, weighted by these sizes",
    )
    other: str = policy("groups that are not listed", exclude="")
    randomizer: str = parameter(
        BinaryRR.name,
        "Randomizer of a yes/no value",
    )
    p: float = parameter(0.3, "Without a table: share of yes")
    tolerance: float = parameter(
        0.05,
        "Error in 95 % of runs; sets the default client number",
        unit="share",
    )

    def check(self) -> None:
        check_share("p", self.p)
        if self.weights:
            check_built(self.population_shares)
        if self.by and self.missing == "no":
            raise InputError(
                "missing=no is for questions without groups; with groups choose refuse or exclude"
            )
        if (self.by or self.missing == "exclude") and self.randomizer != BinaryRR.name:
            raise InputError(
                f"{self.randomizer} takes yes or no alone; with groups or missing=exclude leave "
                "out randomizer"
            )

    @property
    def population_shares(self) -> Floats:
        return population_shares(self.weights, self.by, self.labels, self.labels_from_data)

    @property
    def query(self) -> Query:
        if self.by:
            if not self.labels:
                raise InputError(
                    f"the groups of {self.by!r} are public: list them, as in labels='first;second'"
                )
            return Crossed((self.by, self.question), (SEPARATOR.join(self.labels), ""), ("none",))
        return Question(self.question, ("missing",) if self.missing == "exclude" else ())

    @property
    def conditional(self) -> Conditional | None:
        """The shares of yes among their wholes; None where the whole is everybody."""
        if not self.by and self.missing != "exclude":
            return None
        groups, k = (len(self.labels), self.query.domain.size) if self.by else (1, 3)
        cells = np.eye(k)  # no and yes of each group, then those without a place
        return Conditional(
            cells[1 : 2 * groups : 2], cells[0 : 2 * groups : 2] + cells[1 : 2 * groups : 2]
        )

    def clients(self, epsilon: float) -> int:
        if self.by or self.missing == "exclude":
            return grouped_clients(epsilon, max(1, len(self.labels)), self.tolerance, BETA)
        return max(rr_clients(epsilon, 2 * self.tolerance, BETA), levelled_clients(epsilon))

    def aim(self) -> Aim | None:
        return super().aim() if self.conditional is None else None

    def randomizer_for(self, epsilon: float) -> Randomizer:
        return RANDOMIZERS.build(self.randomizer, {"epsilon": epsilon})

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        conditional = self.conditional
        if conditional is None:
            return super().algorithm(epsilon, clients)
        oracle = frequency_randomizer(epsilon, self.query.domain.size, joint=True)

        def read(tally: Tally) -> Estimate:
            if self.weights:
                return combined(oracle, tally, conditional, self.population_shares)
            shares = conditional.estimate(oracle, tally)
            return shares if self.by else shares.at(0)

        return ask_all(self.query, oracle, clients, read)

    def synthetic(self, clients: int, seed: int) -> Population:
        if self.by:
            raise InputError("groups (by) are of a table: add --records")
        return bernoulli("yes", self.p, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.refuse_open(
            self.missing,
            Question(self.question),
            "missing=exclude (the share among the others) or missing=no (it counts as no)",
        )
        return (
            replace(
                self, labels=table.groups(self.by, self.labels, self.labels_from_data, self.other)
            )
            if self.by
            else self
        )

    def describe(self, result: Estimate) -> PlainData:
        groups = (
            {"by": self.by, "labels": [*self.labels, *["all, weighted"] * bool(self.weights)]}
            if self.by
            else {}
        )
        return {"question": self.question, **groups, **describe_estimate(result)}

    def truth(self, population: Population) -> Floats:
        conditional = self.conditional
        if conditional is None:
            return super().truth(population)
        shares = conditional.of(population.law(self.query))
        if self.weights:
            return np.append(shares, self.population_shares @ shares)
        return shares if self.by else np.asarray(shares[0])
