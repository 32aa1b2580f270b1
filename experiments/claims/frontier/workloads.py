"""Many linear queries in one round: what public sign rows need beside the least that one-bit
reports can."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import default_rng

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import known_totals, one_bit_variance_bound
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    Crossing,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Positive,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    Trial,
    cross_check,
    cross_check_shown,
    curve,
    every,
    grid,
    measured,
    table_of,
)
from local_dp.experiments.lab.shapes import Style
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Finite
from local_dp.protocols.vectors.workload import Answers, Variances, Workload, query_excess

EPSILON, LARGE = 1.0, 4.0
PREFIXES, RANGES, MARGINALS, PARITIES = "prefixes", "ranges", "marginals-2", "parities"
WORKLOADS = (PREFIXES, RANGES, MARGINALS, PARITIES)
SIZES = {"quick": (8, 16, 32, 64), "full": (8, 16, 32, 64, 128)}
CLIENTS = 1000
TRIALS = {"quick": 2000, "full": 20_000}
NEAR = 1.25  # how many times the bound for one-bit reports sign rows have at most


def protocol_of(queries: str, k: int) -> Workload:
    """Of one column with k labels, or of log2 k columns with two."""
    if queries in (PREFIXES, RANGES):
        return Workload(queries=(queries,), k=k)
    return Workload(tuple("abcdefg"[: k.bit_length() - 1]), queries=(queries,), k=2)


class Strategies(Row):
    variances: Variances
    one_bit: float  # n times the worst variance of one-bit reports, at least


class Strategy(Row):
    """The worst variances of all strategies in closed form, beside the bounds."""

    queries: str
    k: int
    epsilon: float

    def measure(self, seed: int) -> Strategies:
        protocol = protocol_of(self.queries, self.k)
        certificate = protocol.design.certificate
        bound = one_bit_variance_bound(self.epsilon, protocol.matrix, certificate)
        return Strategies(protocol.variances(self.epsilon), bound)


@dataclass(frozen=True)
class Worst:
    """The query with the largest variance, asked where it has it: of two symbols so frequent that
    the query's mean is its best constant."""

    protocol: Workload

    @cached_property
    def query(self) -> int:
        return int(np.argmax(query_excess(self.protocol.design.rows, self.protocol.matrix)))

    @cached_property
    def law(self) -> Floats:
        signs = self.protocol.design.rows.astype(np.float64)
        gram = signs.T @ signs / len(signs)
        query = self.protocol.matrix[self.query]
        constant = float((query - query @ known_totals(gram) @ gram).mean())
        shares = np.zeros(len(query))
        ends = [query.argmin(), query.argmax()]
        shares[ends] = query.max() - constant, constant - query.min()
        return shares

    @cached_property
    def stated(self) -> float:
        return self.protocol.variances(EPSILON).sign_rows / CLIENTS

    def people(self, seed: int) -> Finite:
        return Finite(self.protocol.synthetic(1, 0).kinds, self.law, CLIENTS, seed)

    @cached_property
    def truth(self) -> float:
        return float(self.protocol.truth(self.people(0))[self.query])

    def square(self, result: Answers) -> float:
        """The square of the query's error, in units of the stated variance."""
        return float(result.estimate.value[self.query] - self.truth) ** 2 / self.stated


class Square(Row):
    mean: float  # in units of the stated variance
    stated: float  # times n


class Runs(Row):
    """The worst query's error in independent runs, every client simulated."""

    queries: str
    k: int
    trials: int

    def ratio(self, row: Square) -> Positive:
        """Mean squared normal errors are chi-squared: on a logarithmic scale Student's law with a
        quarter of the trials as degrees is as heavy, both tails together."""
        return Positive(row.mean, math.sqrt(2 / self.trials), self.trials / 4)

    def measure(self, seed: int) -> Square:
        worst = Worst(protocol_of(self.queries, self.k))
        algorithm = worst.protocol.algorithm(EPSILON, CLIENTS)
        total = 0.0
        for draw in default_rng([seed, self.k]).integers(1 << 62, size=self.trials).tolist():
            oracle = PopulationOracle(worst.people(draw), KeyedNoise(draw), draw, EPSILON)
            total += worst.square(run(algorithm, oracle))
        return Square(total / self.trials, worst.stated * CLIENTS)


class Users(Row):
    """How often the worst query is within one standard error, client by client and by law."""

    queries: str
    k: int

    def measure(self, seed: int) -> Crossing:
        worst = Worst(protocol_of(self.queries, self.k))

        def trial() -> Trial:
            return Trial(
                worst.protocol.algorithm(EPSILON, CLIENTS),
                worst.people,
                lambda result, _: worst.square(result) <= 1,
                CLIENTS,
                EPSILON,
            )

        return cross_check(trial, seed)


class Workloads(Experiment):
    name = "workloads"
    chapter = FRONTIER
    title = "Many questions, one bit from each person"
    claim = (
        "Prefix sums, ranges, marginals and parities can all be answered from one randomized bit "
        "a person. Public rows of signs, weighted for the questions, come near the least variance "
        "that one-bit reports can have. At a large epsilon longer reports do better."
    )
    source = "Edmonds, Nikolov, Ullman 2020 (limits 8.5)"

    def points(self, scale: Scale) -> Points:
        trials = TRIALS[scale]
        return [
            *grid(Strategy, WORKLOADS, SIZES[scale], (EPSILON, LARGE)),
            *grid(Runs, (PREFIXES,), SIZES["quick"], (trials,)),
            *grid(Runs, (RANGES, MARGINALS, PARITIES), (16,), (trials,)),
            Users(MARGINALS, 8),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        strategies = sheet[Strategy]
        table = _table(strategies)
        checks = [
            *_check_bounds(strategies),
            _check_variances(sheet[Runs]),
            *(cross_check_shown(f"{p.queries} of {p.k}", m) for p, m in sheet[Users]),
        ]
        return Finding(
            checks, [table], [_figure(table, sheet[Runs])], NOTES, headline=_headline(strategies)
        )


NOTES = [
    "The bound for one bit holds for unbiased answers from one private bit a person, with public "
    "coins, also if later questions follow from earlier answers. The bound for all reports holds "
    "for any number of bits. Neither is about biased answers or people who are asked again.",
    "Variances are the worst over queries and laws, times the number of people. Of one random "
    "query and of shares first they are upper bounds.",
]


def _check_bounds(rows: Rows[Strategy, Strategies]) -> list[Check]:
    near, valid = [], []
    for p, m in rows:
        times = m.variances.sign_rows / m.one_bit
        least = min(m.variances.sign_rows, m.variances.one_query)
        name = f"{p.queries} of {p.k}, epsilon {p.epsilon:g}"
        bounded = least >= m.one_bit * (1 - 1e-9)
        near.append((bounded and times <= NEAR, f"{name}: {times:.3f}"))
        shares = m.variances.shares_first / m.one_bit
        general = m.variances.lower_bound / m.one_bit
        below = shares < 1 or p.epsilon == EPSILON
        valid.append((below and general <= min(shares, 1), f"{name}: {shares:.3f}"))
    return [
        every(
            f"Sign rows have at most {NEAR:g} times the least variance of one-bit reports, and "
            "neither they nor one random query have less than that",
            near,
        ),
        every(
            f"Longer reports can do better: at epsilon {LARGE:g} shares by k-ary response have "
            "less variance than any one bit, and never less than the bound for all reports",
            valid,
        ),
    ]


def _check_variances(rows: Rows[Runs, Square]) -> Check:
    return measured(
        "The worst query's mean square error, with every client simulated, is the stated variance "
        "(in units of it)",
        {f"{p.queries} of {p.k}": p.ratio(m) for p, m in rows},
        1,
        1,
    )


def _headline(rows: Rows[Strategy, Strategies]) -> str:
    p, m = max(
        (row for row in rows if (row[0].queries, row[0].epsilon) == (PREFIXES, EPSILON)),
        key=lambda row: row[0].k,
    )
    times = m.variances.sign_rows / m.one_bit
    fewer = m.variances.one_query / m.variances.sign_rows
    return (
        f"All {p.k - 1} prefix sums of {p.k} values from one bit a person: {times:.2f} times the "
        f"least variance, {fewer:.1f} times less than by one random query each."
    )


def _table(rows: Rows[Strategy, Strategies]) -> Table:
    return table_of(
        "Worst variances times n",
        "workload = queries | k | epsilon | sign rows = variances.sign_rows : 3 | "
        "one bit, at least = one_bit : 3 | ratio = variances.sign_rows / one_bit : 3 | "
        "any report, at least = variances.lower_bound : 3 | "
        "shares first = variances.shares_first : 3 | one random query = variances.one_query : 3",
        rows,
    )


def _figure(table: Table, runs: Rows[Runs, Square]) -> Figure:
    prefixes = table.where("workload", PREFIXES).where("epsilon", EPSILON)
    styles: dict[str, Style] = {
        "one random query": "theory",
        "shares first": "theory",
        "sign rows": "theory",
        "one bit, at least": "bound",
        "any report, at least": "bound",
    }
    curves = [
        curve(name, zip(prefixes.column("k"), prefixes.column(name), strict=True), style)
        for name, style in styles.items()
    ]
    points = [
        (p.k, *(m.stated * value for value in p.ratio(m).stated))
        for p, m in runs
        if p.queries == PREFIXES
    ]
    curves.append(curve("sign rows, measured", points))
    return LogLogFigure(
        "workloads",
        f"All prefix sums from one report a person, epsilon {EPSILON:g}",
        "values k",
        "worst variance, times n",
        curves,
        "one-round",
    )


EXPERIMENT = Workloads()
