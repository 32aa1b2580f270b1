"""A table of two or more categories: the joint distribution, and a test of independence that allows for the noise."""

from dataclasses import asdict, dataclass, replace
from itertools import pairwise, product
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.best import Aim
from local_dp.bounds.frequencies import frequency_clients
from local_dp.checks import check_built
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.postprocessing.steps import onto_simplex
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.frequency import Conditional, among, frequency_randomizer
from local_dp.protocols.surveys.policies import Columns, Launch
from local_dp.queries.cells import Crossed
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

REPETITIONS = 999
_LEAST = 0.1  # of a uniform share: the least divisor, in place of a smaller estimated margin


@dataclass(frozen=True)
class Independence:
    """`chi_square` of the estimated table, its mean under independence with this noise, and Pr[at least as much | independent]."""

    chi_square: float
    if_independent: float
    degrees_of_freedom: int
    p_value: float


def independence(oracle: FiniteOracle, tally: Tally, shape: tuple[int, int] | tuple[int, ...], conditional: Conditional) -> Independence:
    """The test by parametric bootstrap: 999 whole tallies drawn from independent columns with the estimated margins, through the same channel.

    With noisy shares the statistic is many times larger than the textbook's law, so its law is simulated. The margins are the estimated ones, moved to the
    nearest distribution; p is at least 1/1000, and uniform for independent columns up to the error of the margins.
    Source: Gaboardi, Rogers 2018 (Monte Carlo tests under local privacy).
    """
    n = tally.answered
    shares = _shares(oracle, tally.counts, conditional)
    observed = float(_chi_square(shares.reshape(shape), n))
    table = onto_simplex(shares).reshape(shape)
    law = np.zeros(conditional.parts.shape[1])
    law[: table.size] = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel()
    if len(law) > table.size:  # the symbols left out keep their share
        lost = np.clip(1 - oracle.joint(tally, conditional.wholes[:1]).value[0], 0.0, 0.99)
        law = law * (1 - lost)
        law[table.size :] = lost / (len(law) - table.size)
    reports = sum(share * report_law(oracle, value) for value, share in enumerate(law.tolist()) if share)
    generator = np.random.default_rng(0)  # fixed: the p-value is a function of the tally
    drawn = generator.multinomial(n, reports / np.sum(reports), size=REPETITIONS).reshape(REPETITIONS, *tally.counts.shape)
    chance = _chi_square(_shares(oracle, drawn, conditional).reshape(REPETITIONS, *shape), n)
    beyond = int(np.count_nonzero(chance >= observed))
    degrees = (shape[0] - 1) * (shape[1] - 1)
    return Independence(observed, float(chance.mean()), degrees, (1 + beyond) / (1 + REPETITIONS))


def _shares(oracle: FiniteOracle, counts: Counts, conditional: Conditional) -> Floats:
    """The estimated shares among records with a place, shape (..., shown); where none is estimated, among all."""
    estimated = oracle.values(counts)
    whole = estimated @ conditional.wholes.T
    return estimated @ conditional.parts.T / np.where(whole > 0, whole, 1.0)


def _chi_square(table: Floats, n: int) -> Floats:
    """The statistic of each table, shape (..., rows, columns) to (...)."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    expected = np.maximum(rows, _LEAST / table.shape[-2]) * np.maximum(columns, _LEAST / table.shape[-1])
    return np.asarray(n * ((table - rows * columns) ** 2 / expected).sum(axis=(-2, -1)))


@dataclass(frozen=True)
class CrossTable:
    """The share of every combination, the last column running fastest, and for two columns a test of their independence."""

    estimate: Estimate
    test: Independence | None


@dataclass(frozen=True)
class Crosstab(LocalProtocol[CrossTable]):
    """Estimates the share of every combination of the `columns`' labels; without a table, of two dependent columns of k labels.

    A part is a column with public labels, or a yes/no question such as "age >= 30". A missing or unlisted value stops the run, or has a label of its own; a
    record that lacks a value may be left out ("exclude"). Two parts get a test of independence that allows for the noise. Privacy: every report is
    epsilon-locally private. Utility: variance v / n a combination, v of the best oracle (limits 2). `tolerance` sets the default number of clients: all
    combinations within it with probability 95 %. Cost: at most about log2 k bits.
    """

    name: ClassVar[str] = "crosstab"
    source: ClassVar[str] = "Kairouz et al. 2014; Ye, Barg 2018; Wang et al. 2017 (frequencies); Gaboardi, Rogers 2018 (tests under local privacy)"
    example: ClassVar[str] = "--records fair.csv --columns 'affairs > 0; occupation' --labels '1|2|3|4|5|6'"
    columns: tuple[str, ...] = parameter(("first", "second"), "the columns or yes/no questions, separated by ';'", of_table=True)
    labels: tuple[str, ...] = parameter((), "the labels of each column that is not a question, public, separated by '|', columns by ';'")
    labels_from_data: bool = parameter(False, "read the labels from the table: in a simulation only, for it publishes them")
    missing: str = parameter("refuse", "a missing value: refuse, category (a label of its own), or exclude (shares among complete records)")
    other: str = parameter("refuse", "a value that is not listed: refuse, or category (a label of its own)")
    k: int = parameter(3, "without a table: how many labels each of the two made-up columns has")
    tolerance: float = parameter(0.05, "the default number of clients is for errors of at most this, all cells together, with probability 95 %", unit="share")

    def check(self) -> None:
        self.check_choices(missing=("refuse", "category", "exclude"), other=("refuse", "category"))
        if len(self.columns) < 2 or len(set(self.columns)) < len(self.columns):
            raise InputError(f"the columns are {';'.join(self.columns)!r}; give two or more different ones, separated by ';'")
        check_built(self.query)

    @property
    def parts(self) -> Columns:
        return Columns(self.columns, self.labels, self.k, self.missing, self.other)

    @property
    def query(self) -> Crossed:
        return self.parts.query

    def clients(self, epsilon: float) -> int:
        return frequency_clients(epsilon, self.query.domain.size, self.tolerance, BETA, joint=True)

    def aim(self) -> Aim | None:
        return None if self.missing == "exclude" else Aim.shares(self.query.domain.size)

    def algorithm(self, epsilon: float, clients: int) -> Local[CrossTable]:
        crossed, conditional = self.query, self.conditional
        oracle = frequency_randomizer(epsilon, crossed.domain.size, joint=True)

        def read(tally: Tally) -> CrossTable:
            shares = oracle.estimate(tally) if self.missing != "exclude" else conditional.estimate(oracle, tally)
            return CrossTable(shares, independence(oracle, tally, crossed.shape, conditional) if len(crossed.shape) == 2 else None)

        return ask_all(crossed, oracle, clients, read)

    @property
    def conditional(self) -> Conditional:
        """The combinations as shares of all complete records."""
        return among(self.query.domain.size, int(np.prod(self.query.shape)))

    def synthetic(self, clients: int, seed: int) -> Population:
        """The first column uniform; each further one equal to the one before with probability 1/2, else uniform."""
        if self.labels or len(self.parts.named) < len(self.columns):
            raise InputError("crosstab: labels and questions are about the columns of a table; add --records, or leave them out")
        cells = np.indices(self.query.shape).reshape(len(self.columns), -1)
        law = np.ones(cells.shape[1])
        for before, after in pairwise(cells):
            law *= (before == after) / 2 + 1 / (2 * self.k)
        return Finite(Records({name: values.astype(np.str_) for name, values in zip(self.columns, cells, strict=True)}), law.tolist(), clients, seed)

    def for_table(self, table: Launch) -> Self:
        choices = "missing=category (a label of its own) or missing=exclude (complete records only)"
        return replace(self, labels=self.parts.labels_of_table(table, self.labels_from_data, choices))

    def describe(self, result: CrossTable) -> PlainData:
        sides = self.parts.sides
        combined = [" / ".join(names) for names in product(*sides)]
        test = {} if result.test is None else {"independence": asdict(result.test)}
        return {"columns": list(self.columns), "sides": sides, "labels": combined, **describe_estimate(result.estimate), **test}

    def truth(self, population: Population) -> Floats:
        return self.conditional.of(population.law(self.query))
