"""Any linear queries of a column or of several: one report a client, by the best of two strategies for all of them."""

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import known_totals, local_variance_bound
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_share
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, describe_estimate, parameter
from local_dp.protocols.surveys.policies import Columns, Launch, check_policy
from local_dp.protocols.vectors.workloads import Design, Symbols, design_signs, workload_of
from local_dp.queries.cells import Crossed
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.signs.sign_rows import SignRows, rows_text
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class Variances:
    """n times the worst variance of any query, strategy by strategy; and what is proven of every epsilon-local protocol of one report with unbiased answers.

    Of sign rows; of shares first, by k-ary response or one-bit Hadamard, then the queries; of one random query a client.
    """

    sign_rows: float
    shares_first: float
    one_query: float
    lower_bound: float

    @property
    def best(self) -> float:
        """That of the strategy taken."""
        return self.shares_first if self.by_shares else self.sign_rows

    @property
    def by_shares(self) -> bool:
        """Whether k-ary response is the better one, more than by rounding: one-bit Hadamard's rows are among the sign rows tried."""
        return self.shares_first < 0.999 * self.sign_rows


@dataclass(frozen=True)
class Answers:
    """The answers to all queries, and how they were found."""

    estimate: Estimate
    variances: Variances


@lru_cache(maxsize=16)
def _designed(queries: tuple[str, ...], symbols: Symbols) -> Design:
    return design_signs(workload_of(queries, symbols)[1])


def shares_first_variance(epsilon: float, workload: Floats) -> float:
    """n times a bound on the variance of any query of estimated shares: C^2 |w - mean|^2 by one-bit Hadamard, or what k-ary response has where it is less.

    That is (q |w - c|^2 + (p - q) max (w - c)^2) / (p - q)^2 for any constant c; here the better of some between the mean of w and the middle of its range.
    """
    k, growth = workload.shape[1], math.exp(epsilon)
    q = 1 / (growth + k - 1)
    gap = (growth - 1) * q
    mean, middle = workload.mean(axis=1), (workload.max(axis=1) + workload.min(axis=1)) / 2
    bounds = []
    for part in np.linspace(0, 1, 9):
        squares = (workload - (mean + part * (middle - mean))[:, None]) ** 2
        bounds.append((q * squares.sum(axis=1) + gap * squares.max(axis=1)) / gap**2)
    hadamard = float(((workload - mean[:, None]) ** 2).sum(axis=1).max()) * response_gain(epsilon) ** 2
    return min(hadamard, float(np.min(bounds, axis=0).max()))


def one_query_variance(epsilon: float, workload: Floats) -> float:
    """n times the bound on the variance of m queries of which each client is asked a random one: m C^2 (half the width of the widest)^2."""
    reach = float((workload.max(axis=1) - workload.min(axis=1)).max()) / 2
    return len(workload) * (response_gain(epsilon) * reach) ** 2


@dataclass(frozen=True)
class Workload(LocalProtocol[Answers]):
    """Estimates many linear queries of the law of `columns`' labels together; without a table, of k labels a column, the first columns' ones rarer.

    Privacy: every report is epsilon-locally private. Utility: unbiased; variance at most C^2 v / n for sign rows, v near the factorization norm squared, or
    that of k-ary response where it is less; beside it the lower bound for all local protocols of one report. `tolerance` sets the default number of clients:
    all answers within it with probability 95 %. Cost: one bit or log2 k bits a client, one round.
    """

    name: ClassVar[str] = "workload"
    source: ClassVar[str] = "factorization mechanism: Edmonds, Nikolov, Ullman 2020"
    example: ClassVar[str] = "--records fair.csv --columns 'religious;occupation' --labels '1|2|3|4;1|2|3|4|5|6' --queries marginals-1"
    columns: tuple[str, ...] = parameter(("value",), "the columns or yes/no questions, separated by ';'", of_table=True)
    labels: tuple[str, ...] = parameter((), "the labels of each column that is not a question, public, separated by '|', columns by ';'")
    queries: tuple[str, ...] = parameter(
        ("prefixes",), "identity, prefixes, ranges, parities, marginals-1, -2 or -3, or rows of numbers, one for each combination of labels, separated by ';'"
    )
    missing: str = parameter("refuse", "a missing value: refuse, or category (a label of its own, the last one, in every column)")
    other: str = parameter("refuse", "a value that is not listed: refuse, or category (a label of its own, after the others)")
    k: int = parameter(32, "without a table: how many labels each column has")
    tolerance: float = parameter(0.02, "the default number of clients is for errors of at most this, all answers together, with probability 95 %")

    def check(self) -> None:
        check_share("tolerance", self.tolerance)
        check_policy("missing", self.missing, ("refuse", "category"))
        check_policy("other", self.other, ("refuse", "category"))
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InputError(f"the columns are {';'.join(self.columns)!r}; give different ones, separated by ';'")
        check_built(self.listed)

    @property
    def parts(self) -> Columns:
        """The columns and what becomes of values without a label."""
        return Columns(self.columns, self.labels, self.k, self.missing, self.other)

    @cached_property
    def symbols(self) -> Symbols:
        """The combinations of labels that the queries are about."""
        return Symbols(self.columns, tuple(map(tuple, self.parts.sides)))

    @property
    def query(self) -> Crossed:
        """The query that is put to every client: the combination of its labels."""
        return self.parts.query

    @cached_property
    def listed(self) -> tuple[list[str], Floats]:
        """The queries' names and their matrix."""
        return workload_of(self.queries, self.symbols)

    @property
    def matrix(self) -> Floats:
        """The queries, shape (m, k)."""
        return self.listed[1]

    @property
    def design(self) -> Design:
        """The sign rows and what bounds them."""
        return _designed(self.queries, self.symbols)

    def variances(self, epsilon: float) -> Variances:
        """What each strategy costs at this epsilon."""
        signs = response_gain(epsilon) ** 2 * self.design.excess
        bound = local_variance_bound(epsilon, self.matrix, self.design.certificate)
        return Variances(signs, shares_first_variance(epsilon, self.matrix), one_query_variance(epsilon, self.matrix), bound)

    def clients(self, epsilon: float) -> int:
        z = normal_quantile(BETA / (2 * len(self.matrix)))
        return math.ceil(self.variances(epsilon).best * (z / self.tolerance) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[Answers]:
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        variances, everybody = self.variances(epsilon), Cohort(0, clients)
        if variances.by_shares:
            shares = GRR(epsilon, k=self.matrix.shape[1])
            return Nonadaptive((LocalQuery(self.query, shares, everybody),), lambda told: Answers(_from_shares(shares, told[0], self.matrix), variances))
        rows = self.design.rows.astype(np.float64)
        weights = self.matrix @ known_totals(rows.T @ rows / len(rows))
        signs = SignRows(epsilon, k=rows.shape[1], signs=rows_text(rows))
        return Nonadaptive((LocalQuery(self.query, signs, everybody),), lambda told: Answers(signs.answers(told[0], self.matrix, weights), variances))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Each combination of labels with a share proportional to its place, from 1."""
        told = zip(self.columns, self.symbols.labels, self.symbols.places, strict=True)
        return Finite(Records({name: np.array(labels)[places] for name, labels, places in told}), range(1, self.symbols.k + 1), clients, seed)

    def for_table(self, table: Launch) -> Self:
        return replace(self, labels=self.parts.labels_of_table(table, False, "missing=category (a label of its own)"))

    def describe(self, result: Answers) -> PlainData:
        strategy = "shares first" if result.variances.by_shares else "sign rows"
        return {"labels": self.listed[0], "strategy": strategy, "variances": asdict(result.variances), **describe_estimate(result.estimate)}

    def truth(self, population: Population) -> Floats:
        """The answers on the distribution that the clients are drawn from, shape (m,)."""
        return self.matrix @ population.law(self.query)

    def true_error(self, result: Answers, population: Population) -> float:
        return float(np.abs(result.estimate.value - self.truth(population)).max())


def _from_shares(oracle: GRR, tally: Tally, workload: Floats) -> Estimate:
    """The queries of the estimated shares; each answer's variance is that which the reports themselves show."""
    p, q, n = oracle.truth / oracle.total, oracle.other / oracle.total, tally.answered
    law = tally.counts.sum(axis=0) / n
    centred = (workload - q * workload.sum(axis=1, keepdims=True)) / (p - q)
    mean = centred @ law
    return Estimate(mean, np.sqrt(np.maximum((centred**2) @ law - mean**2, 0.0) / n), n)
