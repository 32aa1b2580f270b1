"""All marginals of so many columns: each client reports a set of columns or one parity, by the least variance in closed form."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.postprocessing.steps import AgreeingLaws
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Columns, Launch
from local_dp.protocols.vectors.marginal_design import Dealt, Design, Set, Task, best_design
from local_dp.queries.cells import Crossed, Odd
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate

KINDS = 512  # of synthetic records


@dataclass(frozen=True)
class Margins:
    """Every cell of every marginal, the design of the questions, and n times the bound on a cell's variance for each design."""

    estimate: Estimate
    design: Design
    variances: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Marginals(LocalProtocol[Margins]):
    """Estimates all marginals of `ways` of the `columns`: the share of every combination of their labels; without a table, of columns of k labels.

    Each client reports its combination of one set of columns by the best frequency oracle; or, of columns with two labels each, one parity of at most `ways`
    columns by randomized response. A closed form chooses the sets, and the result explains the choice. Privacy: every report is epsilon-locally private.
    Utility: unbiased; a cell is a sum of interactions, each averaged over all sets that contain it, so marginals agree where they overlap. Shares below 0
    stay: the step `agreeing_laws` makes laws of them, at a price in bias. `tolerance` sets the default number of clients: all cells within it with
    probability 95 %. Cost: one round; a bit, or the bits of a set's oracle.
    """

    name: ClassVar[str] = "marginals"
    source: ClassVar[str] = "Cormode, Kulkarni, Srivastava 2018 (InpHT); Zhang, Wang, Li, He, Chen 2018 (CALM)"
    example: ClassVar[str] = "--records fair.csv --columns 'religious;occupation;affairs > 0' --labels '1|2|3|4;1|2|3|4|5|6' --ways 2"
    columns: tuple[str, ...] = parameter(tuple("abcdef"), "the columns or yes/no questions, separated by ';'", of_table=True)
    ways: int = parameter(2, "how many columns each marginal is of")
    labels: tuple[str, ...] = parameter((), "the labels of each column that is not a question, public, separated by '|', columns by ';'")
    labels_from_data: bool = parameter(False, "read the labels from the table: in a simulation only, for it publishes them")
    missing: str = parameter("refuse", "a missing value: refuse, or category (a label of its own, in every column)")
    other: str = parameter("refuse", "a value that is not listed: refuse, or category (a label of its own, in every column)")
    k: int = parameter(2, "without a table: how many labels each column has")
    tolerance: float = parameter(0.05, "the default number of clients is for errors of at most this, all cells together, with probability 95 %", unit="share")

    def check(self) -> None:
        self.check_choices(missing=("refuse", "category"), other=("refuse", "category"))
        symbols(self.k)
        if not self.columns or len(set(self.columns)) < len(self.columns) or len(self.columns) > 64:
            raise InputError(f"the columns are {';'.join(self.columns)!r}; give up to 64 different ones, separated by ';'")
        check_built(self.task)

    @cached_property
    def parts(self) -> Columns:
        return Columns(self.columns, self.labels, self.k, self.missing, self.other)

    @cached_property
    def task(self) -> Task:
        """The number of symbols of each column, and the marginals to estimate."""
        return Task(self.parts.shape, self.ways)

    def variances(self, epsilon: float) -> tuple[Design, tuple[tuple[str, float], ...]]:
        """The best design at this epsilon, and n times the bound on a cell's variance for each."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        return best_design(self.task, epsilon)

    def clients(self, epsilon: float) -> int:
        cells = sum(map(self.task.cells, self.task.sets))
        design = self.variances(epsilon)[0]
        return max(len(design.sets), math.ceil(design.variance * (normal_quantile(BETA / (2 * cells)) / self.tolerance) ** 2))

    def algorithm(self, epsilon: float, clients: int) -> Local[Margins]:
        design, variances = self.variances(epsilon)
        if clients < len(design.sets):
            raise InputError(f"{len(design.sets)} sets of columns need clients of their own; {clients} are too few")
        spare = clients - len(design.sets)  # every set has one client, and the others by the shares
        ends = [0, *(np.rint(np.cumsum(design.shares) * spare).astype(int) + np.arange(1, len(design.sets) + 1)).tolist()]
        queries = tuple(self._question(epsilon, design, columns, Cohort(*part)) for columns, part in zip(design.sets, pairwise(ends), strict=True))
        dealt = Dealt(self.task, design, tuple(len(query.cohort) for query in queries))
        oracles = [query.randomizer for query in queries]
        return Nonadaptive(queries, lambda tallies: Margins(dealt.estimate(oracles, tallies), design, variances))

    def _question(self, epsilon: float, design: Design, columns: Set, cohort: Cohort) -> LocalQuery:
        query = self.query(columns)
        if design.characters:
            return LocalQuery(Odd(query.parts, query.labels, query.spare), BinaryRR(epsilon), cohort)
        return LocalQuery(query, frequency_randomizer(epsilon, self.task.cells(columns), joint=True), cohort)

    def synthetic(self, clients: int, seed: int) -> Population:
        """512 fixed kinds of record: the first column uniform, each further one equal to the one before with probability 1/2, else uniform."""
        if self.labels or len(self.parts.named) < len(self.columns):
            raise InputError("marginals: labels and questions are about the columns of a table; add --records, or leave them out")
        words = philox_words(stream_key("marginals", 0), 0, 2 * KINDS * len(self.columns)).reshape(len(self.columns), 2, KINDS)
        values = (words[:, 0] % np.uint64(self.k)).astype(np.int64)
        for before, after, coin in zip(values, values[1:], words[1:, 1], strict=False):
            after[:] = np.where(coin >> np.uint64(63), before, after)
        return Finite(Records({name: column.astype(np.str_) for name, column in zip(self.columns, values, strict=True)}), [1.0] * KINDS, clients, seed)

    def for_table(self, table: Launch) -> Self:
        return replace(self, labels=self.parts.labels_of_table(table, self.labels_from_data, "missing=category (a label of its own)"))

    @property
    def agreeing_laws(self) -> AgreeingLaws:
        """The step that makes laws of the estimate, at a price in bias; it is never taken by default."""
        return AgreeingLaws(self.task.sets, self.task.shape)

    @property
    def cells(self) -> list[str]:
        """The name of every cell of every marginal."""
        sides = self.parts.sides
        every = ((columns, product(*(sides[column] for column in columns))) for columns in self.task.sets)
        return [", ".join(f"{self.columns[place]} = {name}" for place, name in zip(columns, cell, strict=True)) for columns, cells in every for cell in cells]

    def describe(self, result: Margins) -> PlainData:
        variances = dict(result.variances)
        others = "; ".join(f"{name}: {variance:.4g}" for name, variance in result.variances)
        taken = f"{result.design.name}, {len(result.design.sets)} in all: n times the variance of a share is at most {variances[result.design.name]:.4g}"
        choice = {"way": result.design.name, "sets": len(result.design.sets), "variances": variances, "explanation": f"{taken}, of all ways ({others})"}
        return {"columns": list(self.columns), "labels": self.cells, "choice": choice, **describe_estimate(result.estimate)}

    def truth(self, population: Population) -> Floats:
        return np.concatenate([population.law(self.query(columns)) for columns in self.task.sets])

    def query(self, columns: Set) -> Crossed:
        return self.parts.crossed(columns)
