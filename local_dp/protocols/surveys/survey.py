"""Yes/no questions by randomized response: a list of statistical queries; a share among all, or in
each group."""

from dataclasses import dataclass
from itertools import accumulate, product
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_built, check_share, check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Local
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.populations.finite import Finite, Population, bernoulli
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimate,
    numbers_in,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.compare import OfGroups
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Possible
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
        count = len(self.texts)
        tolerances = numbers_in("tolerances", self.tolerances).tolist()
        if len(tolerances) not in (1, count):
            raise InputError(
                f"there are {count} queries and {len(tolerances)} tolerances; give one, or one "
                "for each query"
            )
        each = tolerances * (count // len(tolerances))
        return tuple(map(StatisticalQuery, map(Question, self.texts), each))

    def needs(self, epsilon: float) -> list[int]:
        """The number of clients that each query's tolerance takes."""
        clients_for = enough_clients(epsilon, BETA / len(self.texts))
        return [clients_for(query) for query in self.statistical]

    def possible(self, result: tuple[Estimate, ...]) -> Possible:
        return Possible(-1.0, 1.0)

    def clients(self, epsilon: float) -> int:
        return sum(self.needs(epsilon))

    def algorithm(self, epsilon: float, clients: int) -> Local[tuple[Estimate, ...]]:
        if clients < len(self.texts):
            raise InputError(
                f"{len(self.texts)} queries need fresh clients each; {clients} are too few"
            )
        # every query gets one client, and the others in proportion to its further need
        more = list(accumulate(count - 1 for count in self.needs(epsilon)))
        spare = clients - len(more)
        ends = [place + spare * total // more[-1] for place, total in enumerate(more, 1)]
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
        self.check_without_table("queries", self.queries)
        kinds = np.array(list(product((0, 1), repeat=self.t)), dtype=np.uint8).T
        shares = np.ones(1 << self.t)
        columns = {}
        for index, bits in enumerate(kinds):
            yes = (index + 1) / (self.t + 1)
            shares = shares * np.where(bits, yes, 1 - yes)
            columns[f"q{index}"] = bits
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
        rows = [describe_estimate(estimate) for estimate in result]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        tolerances = [query.tolerance for query in self.statistical]
        return {"labels": list(self.texts), "tolerances": tolerances, **columns}

    def values(self, result: tuple[Estimate, ...]) -> Floats:
        return np.array([float(estimate.value) for estimate in result])

    def truth(self, population: Population) -> Floats:
        """The expectations of the queries in the distribution that the clients are drawn from, on
        the +1/-1 scale, shape (queries,)."""
        return np.array(
            [2 * float(population.law(query.query)[1]) - 1 for query in self.statistical]
        )


@dataclass(frozen=True)
class Survey(OfGroups):
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
    minimum: int = parameter(
        0,
        "Withhold groups below this count",
        help="By estimate; names are shown, numbers are not",
    )
    other: str = policy("unlisted groups", exclude="")
    randomizer: str = parameter(
        BinaryRR.name,
        "Randomizer of a yes/no value",
    )
    p: float = parameter(0.3, "Without a table: share of yes")
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_share("p", self.p)
        super().check()
        if self.by and self.missing == "no":
            raise InputError(
                "missing=no is for questions without groups; with groups choose refuse or exclude"
            )
        if not self.whole and self.randomizer != BinaryRR.name:
            raise InputError(
                f"{self.randomizer} takes yes or no alone; with groups or missing=exclude leave "
                "out randomizer"
            )

    @property
    def query(self) -> Query:
        if self.by:
            self.check_groups()
            return Crossed((self.by, self.question), (SEPARATOR.join(self.labels), ""), ("none",))
        return Question(self.question, ("missing",) if self.missing == "exclude" else ())

    def randomizer_for(self, epsilon: float) -> Randomizer:
        return self.need.randomizer(self.randomizer, epsilon, self.name)

    @property
    def need(self) -> Need:
        return Need(symbols(2), ones=True)

    def group_oracle(self, epsilon: float) -> FrequencyOracle:
        return frequency_randomizer(epsilon, self.query.domain.size, joint=True)

    def synthetic(self, clients: int, seed: int) -> Population:
        self.check_without_table("groups (by)", self.by)
        return bernoulli("yes", self.p, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.refuse_open(
            self.missing,
            Question(self.question),
            "missing=exclude (the share among the others) or missing=no (it counts as no)",
        )
        return self.for_groups(table)

    def describe(self, result: Estimate) -> PlainData:
        return {"question": self.question, **super().describe(result)}

    def truth(self, population: Population) -> Floats:
        if self.whole:
            return super().truth(population)
        law = population.law(self.query)
        return self.of_groups(self.cells(len(law)).of(law))
