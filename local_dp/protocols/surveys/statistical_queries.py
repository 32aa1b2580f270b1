"""A list of statistical queries, simulated locally."""

from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import mul
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_built, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Local
from local_dp.oracles.statistical.oracles import Statistical, StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.tables import Question
from local_dp.records import Records
from local_dp.tallies import Estimate
from local_dp.theorems.local_from_sq import enough_clients, local_from_sq

MAX_SYNTHETIC = 10


@dataclass(frozen=True)
class StatisticalQueries(LocalProtocol[tuple[Estimate, ...]]):
    """Answers each of `queries` (questions, separated by ';') on the +1/-1 scale within its tolerance, all together with probability 95 %.

    `tolerances` is one number, or one for each query, separated by ';'. Every query has fresh clients, in proportion to the number that its tolerance needs.
    Without a table, `t` independent columns q0, q1, ... have shares 1/(t+1), 2/(t+1), ... of yes. Privacy: every report is epsilon-locally private.
    Utility: of n clients, standard error at most C / sqrt n with C = (e^eps + 1) / (e^eps - 1). Cost: one bit a client, one round.
    """

    name: ClassVar[str] = "sq"
    source: ClassVar[str] = "KLNRS 2008, Lemma 4.3 and Theorem 4.8"
    example: ClassVar[str] = "--records fair.csv --question 'age >= 30; affairs > 0'"
    queries: tuple[str, ...] = parameter(
        (), "yes/no questions about the columns, separated by ';', such as 'age >= 30; affairs > 0'", alias="question", of_table=True
    )
    tolerances: tuple[str, ...] = parameter(
        ("0.1",), "how far each answer may be off, on the scale from -1 to +1: one number, or one for each question, separated by ';'"
    )
    missing: str = parameter("refuse", "where a missing value leaves a question open: refuse, or no (it counts as no)")
    t: int = parameter(4, "without a table: how many made-up columns are asked about")

    def check(self) -> None:
        check_whole("t", self.t, 1, MAX_SYNTHETIC)
        self.check_choices(missing=("refuse", "no"))
        check_built(self.statistical)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.queries or tuple(f"q{index} == 1" for index in range(self.t))

    @property
    def statistical(self) -> tuple[StatisticalQuery, ...]:
        try:
            tolerances = [float(text) for text in self.tolerances]
        except ValueError:
            raise InputError(f"tolerances is {';'.join(self.tolerances)!r}; give numbers separated by ';'") from None
        if len(tolerances) not in (1, len(self.texts)):
            raise InputError(f"there are {len(self.texts)} queries and {len(tolerances)} tolerances; give one, or one for each query")
        each = tolerances * len(self.texts) if len(tolerances) == 1 else tolerances
        return tuple(StatisticalQuery(Question(text), tau) for text, tau in zip(self.texts, each, strict=True))

    def _needed(self, epsilon: float) -> list[int]:
        clients_for = enough_clients(epsilon, BETA / len(self.texts))
        return [clients_for(query) for query in self.statistical]

    def clients(self, epsilon: float) -> int:
        return sum(self._needed(epsilon))

    def algorithm(self, epsilon: float, clients: int) -> Local[tuple[Estimate, ...]]:
        if clients < len(self.texts):
            raise InputError(f"{len(self.texts)} queries need fresh clients each; {clients} are too few")
        needed = self._needed(epsilon)
        more = [count - 1 for count in needed]  # every query gets one client, and the others in proportion to its further need
        spare = clients - len(needed)
        ends = [place + 1 + spare * sum(more[: place + 1]) // sum(more) for place in range(len(needed))]
        sizes = iter(np.diff([0, *ends]).tolist())
        algorithm: Statistical[tuple[float, ...]] = Nonadaptive(self.statistical, lambda answers: answers)
        queries = local_from_sq(algorithm, epsilon, lambda query: next(sizes)).queries
        randomizers = [query.randomizer for query in queries]
        return Nonadaptive(queries, lambda tallies: tuple(each.estimate(tally).on_scale(-1.0, 1.0) for each, tally in zip(randomizers, tallies, strict=True)))

    def synthetic(self, clients: int, seed: int) -> Population:
        if self.queries:
            raise InputError("sq: `queries` are about the columns of a table; add --records, or leave them out")
        yes = [(index + 1) / (self.t + 1) for index in range(self.t)]
        kinds = list(product((0, 1), repeat=self.t))
        shares = [reduce(mul, (p if bit else 1 - p for p, bit in zip(yes, kind, strict=True))) for kind in kinds]
        columns = {f"q{index}": np.array([kind[index] for kind in kinds], dtype=np.uint8) for index in range(self.t)}
        return Finite(Records(columns), shares, clients, seed)

    def for_table(self, table: Launch) -> Self:
        if not self.queries:
            raise InputError("sq needs questions about the table: add --question, or --set queries='age >= 30; affairs > 0'")
        for query in self.statistical:
            assert isinstance(query.query, Question)
            table.refuse_open(self.missing, query.query, "missing=no (a question left open counts as no), or survey with missing=exclude")
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
        """The expectations of the queries in the distribution that the clients are drawn from, on the +1/-1 scale, shape (queries,)."""
        return np.array([2 * float(population.law(query.query)[1]) - 1 for query in self.statistical])
