"""Statistical queries answered by private reports: how accurate, by which noise, and how to spend
the clients."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import default_rng

from local_dp.arrays import Floats, Words
from local_dp.bounds.response import (
    clipped_laplace_variance,
    response_gain,
    rr_failure,
    split_budget_cost,
)
from local_dp.errors import RefusedError
from local_dp.experiments.claims.laplace import clipped, laplace_reports
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    NO_FACTOR,
    Check,
    Claimed,
    Crossing,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Positive,
    Rate,
    Refusal,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    Trial,
    about_log,
    cross_check,
    cross_check_shown,
    curve,
    curve_of,
    every,
    holds,
    measured,
    tabulate,
    wilson,
)
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.finite import Finite, Population
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Z95, Tally
from local_dp.theorems.from_sq import (
    ClientsFor,
    local_from_sq,
    one_random_query,
    split_budget,
    tight_clients,
)

BETA = 0.05
USERS_MEAN = 0.6
FEWER = 0.9  # the part of the exact count that must not be enough
SPENDING = ("fresh clients", "one random query", "split budget")
Answers = tuple[float, ...]


def _columns(t: int, clients: int, seed: int, mean: float = 0.0) -> Finite:
    """t yes/no columns, all 1 or all 0: every query has this mean on the +1/-1 scale, of which 0 is
    the hardest."""
    return Finite(
        Records({f"q{j}": np.array([0, 1], dtype=np.uint8) for j in range(t)}),
        [(1 - mean) / 2, (1 + mean) / 2],
        clients,
        seed,
    )


def queries(t: int, tau: float) -> Nonadaptive[StatisticalQuery, float, Answers]:
    """The algorithm that asks t yes/no queries at once and returns the answers."""
    return Nonadaptive(
        tuple(StatisticalQuery(Question(f"q{j} == 1"), tau) for j in range(t)), tuple
    )


class Successes(Row):
    good: int  # runs with every answer within tau
    clients: int  # of a query


class Accuracy(Row):
    """t queries asked of `part` of the clients that the count asks for."""

    epsilon: float
    tau: float
    t: int
    part: float
    trials: int

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, tau {self.tau:g}, t = {self.t}"

    def measure(self, seed: int, count: Callable[[float, float], ClientsFor]) -> Successes:
        """How many runs have all answers within tau; none if they are refused."""
        needed = count(self.epsilon, BETA / self.t)
        algorithm = local_from_sq(
            queries(self.t, self.tau),
            self.epsilon,
            lambda query: max(1, round(self.part * needed(query))),
        )
        clients = len(algorithm.queries[0].cohort)
        population = _columns(self.t, self.t * clients, seed)
        good = 0
        for trial in range(self.trials):
            generator = default_rng(
                [seed, 1, trial, round(1000 * self.epsilon), self.t, round(100 * self.part)]
            )
            try:
                answers = run(algorithm, AggregateOracle(population, generator, self.epsilon))
            except RefusedError:
                break
            good += max(map(abs, answers)) <= self.tau
        return Successes(good, clients)

    def as_predicted(self, successes: Successes) -> Claimed:
        """That the rate is the law's."""
        law = self.predicted(successes)
        return Claimed(Rate(successes.good, self.trials), law, law)

    def predicted(self, successes: Successes) -> float:
        """By the exact binomial law."""
        return (1 - rr_failure(successes.clients, self.epsilon, self.tau)) ** self.t


class Users(Row):
    """The same with every client answering, beside its law, and a mean that no decoder finds by
    doing nothing."""

    epsilon: float
    tau: float
    t: int

    def measure(self, seed: int, counts: Callable[[float, float], ClientsFor]) -> Crossing:
        algorithm, count = queries(self.t, self.tau), counts(self.epsilon, BETA / self.t)
        clients = sum(count(query) for query in algorithm.queries)

        def close(answers: Answers, people: Population) -> bool:
            return bool(np.all(np.abs(np.array(answers) - USERS_MEAN) <= self.tau))

        people = partial(_columns, self.t, clients, mean=USERS_MEAN)
        return cross_check(
            lambda: Trial(
                local_from_sq(algorithm, self.epsilon, count), people, close, clients, self.epsilon
            ),
            seed,
            users=1200,
            laws=4800,
        )


class Variances(Row):
    """The sample variance of an unbiased report of each mechanism, and its standard error."""

    response: tuple[float, float]
    laplace: tuple[float, float]
    clipped: tuple[float, float]

    def of(self, way: str) -> Positive:
        """In units of the variance by randomized response."""
        (variance, error), (unit, unit_error) = getattr(self, way), self.response
        return Positive(variance, error / variance) / Positive(unit, unit_error / unit)


class Reports(Row):
    """n one-client estimates of a mean of signs, half of them +1: shipped randomized response,
    literal Laplace noise, and that noise clipped."""

    epsilon: float
    n: int

    def measure(self, seed: int) -> Variances:
        generator = default_rng([seed, 2, round(1000 * self.epsilon)])
        bits = (np.arange(self.n) % 2).astype(np.uint8)
        randomizer = BinaryRR(self.epsilon)
        words: Words = generator.integers(
            0,
            randomizer.total - 1,
            self.n,
            dtype=np.uint32 if randomizer.word_bits == 32 else np.uint64,
            endpoint=True,
        )
        response: Floats = randomizer.gain * (
            2.0 * randomizer.respond(bits, words, np.zeros(1, dtype=np.uint8)).astype(np.float64)
            - 1.0
        )
        noisy = laplace_reports(2.0 * bits.astype(np.float64) - 1.0, self.epsilon, generator)
        return Variances(*map(_variance, (response, noisy, clipped(noisy, self.epsilon))))

    @property
    def square(self) -> float:
        """C^2, the variance by randomized response."""
        return response_gain(self.epsilon) ** 2

    @property
    def predicted(self) -> dict[str, float]:
        """The variances by Laplace noise and by that noise clipped, in units of C^2."""
        return {
            "laplace": (8 / self.epsilon**2 + 1) / self.square,
            "clipped": clipped_laplace_variance(self.epsilon) / self.square,
        }


def _variance(reports: Floats) -> tuple[float, float]:
    centred = (reports - reports.mean()) ** 2
    return float(centred.mean()), float(centred.std()) / math.sqrt(len(reports))


class Costs(Row):
    mean_square: float  # the mean square error of an answer
    error: float  # its standard error
    sum_square: float  # of the sum of t answers over t: larger if their errors go together
    sum_error: float  # its standard error
    spent: float


class Spending(Row):
    """The same simulated clients, for t queries, spent in one of three ways. Costs are in units of
    C^2 / n, the error of one query."""

    way: str
    epsilon: float
    t: int
    clients: int
    trials: int

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, t = {self.t}"

    def measure(self, seed: int) -> Costs | Refusal:
        generator = default_rng(
            [seed, 3, SPENDING.index(self.way), round(1000 * self.epsilon), self.t]
        )
        squares, sums = [], []
        for run_seed in generator.integers(1 << 62, size=self.trials).tolist():
            oracle = PopulationOracle(
                _columns(self.t, self.clients, run_seed),
                KeyedNoise(run_seed),
                run_seed,
                self.epsilon,
            )
            try:
                answers = run(self._algorithm(run_seed), oracle)
            except RefusedError as error:
                return Refusal(str(error))
            squares.append(sum(answer**2 for answer in answers) / self.t)
            sums.append(sum(answers) ** 2 / self.t)
        spread, shared = (float(np.std(each)) / math.sqrt(len(each)) for each in (squares, sums))
        return Costs(
            float(np.mean(squares)), spread, float(np.mean(sums)), shared, oracle.ledger.max_spent
        )

    def _algorithm(self, seed: int) -> Algorithm[LocalQuery, Tally, Answers]:
        algorithm = queries(self.t, 0.5)
        if self.way == "fresh clients":
            return local_from_sq(algorithm, self.epsilon, lambda query: self.clients // self.t)
        if self.way == "one random query":
            return one_random_query(algorithm, self.epsilon, self.clients, seed)
        return split_budget(algorithm, self.epsilon, self.clients, self.t)

    @property
    def unit(self) -> float:
        return response_gain(self.epsilon) ** 2 / self.clients

    @property
    def predicted(self) -> float:
        """t with whole budgets, t C(eps / t)^2 / C^2 with split ones. Multinomial cohorts are
        uneven, which costs a factor 1 + (t - 1) / n."""
        if self.way == "split budget":
            return self.t * split_budget_cost(self.epsilon, self.t)
        return self.t * (1 + (self.t - 1) / self.clients if self.way == "one random query" else 1.0)

    @property
    def predicted_sum(self) -> float:
        """Two answers' errors have the mean product 1 / C^2 if the same people, with equal columns,
        answer both queries, else 0."""
        return self.predicted + (self.t - 1) * (
            response_gain(self.epsilon) ** -2 if self.way == "split budget" else 0.0
        )

    def cost(self, costs: Costs) -> float:
        return costs.mean_square / self.unit

    def spread(self, costs: Costs) -> float:
        return Z95 * costs.error / self.unit


@dataclass(frozen=True)
class SqToLocal(Experiment):
    """`count` is the number of clients of a query, under test; a wrong one must make the verdict
    "not shown"."""

    name = "sq-to-local"
    chapter = LOCAL_MODEL
    title = "Any algorithm that only needs averages can learn from private reports"
    claim = (
        "An algorithm that only asks for averages over the population (statistical queries) runs "
        "on randomized answers: enough clients answer each query, and all averages are within the "
        "tolerance tau except with probability beta. The exact number of clients is known, and it "
        "is tight. Up to epsilon 1 randomized response needs about half the clients that Laplace "
        "noise does; fresh clients for every query beat splitting everybody's privacy budget."
    )
    source = "KLNRS 2008, Claim 4.1, Lemmas 4.2 and 4.3, Theorem 4.8; limits 1"
    count: Callable[[float, float], ClientsFor] = tight_clients

    def points(self, scale: Scale) -> Points:
        full = scale == "full"
        settings = (
            *(((0.25, 0.1, 1), (2.0, 0.1, 1), (1.0, 0.2, 8)) if full else ()),
            (0.5, 0.1, 1),
            (1.0, 0.1, 1),
            (1.0, 0.2, 4),
        )
        spent = (
            *(((0.5, 2), (0.5, 4), (0.5, 8), (6.0, 4)) if full else ()),
            (1.0, 2),
            (1.0, 4),
            (1.0, 8),
            (6.0, 2),
        )
        return [
            *(
                Accuracy(epsilon, tau, t, part, 10_000 if full else 4000)
                for epsilon, tau, t in settings
                for part in (1.0, FEWER)
            ),
            Users(1.0, 0.2, 2),
            *(Reports(epsilon, 1 << (22 if full else 20)) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0)),
            *(
                Spending(way, epsilon, t, 2000, (12_000 if full else 3200) // t)
                for epsilon, t in spent
                for way in SPENDING
            ),
        ]

    def measure(self, point: Any, seed: int) -> Any:
        return (
            point.measure(seed, self.count)
            if isinstance(point, (Accuracy, Users))
            else point.measure(seed)
        )

    def finding(self, sheet: Sheet) -> Finding:
        accuracy = sorted(sheet[Accuracy], key=lambda row: (row[0].epsilon, row[0].t, -row[0].part))
        variances, runs = sheet[Reports], sheet[Spending]
        spending = [(point, costs) for point, costs in runs if isinstance(costs, Costs)]
        refused = [
            f"{point.way} is refused: {refusal.refused}"
            for point, refusal in runs
            if isinstance(refusal, Refusal)
        ]
        users = [
            cross_check_shown("Two queries with the exact count", crossing, 1 - BETA)
            for _, crossing in sheet[Users]
        ]
        checks = [
            *_accuracy_checks(accuracy),
            *users,
            *_variance_checks(variances),
            *_spending_checks(spending, refused),
        ]
        tables, figures = _tables(accuracy, variances, spending), _figures(variances, spending)
        return Finding(checks, tables, figures, headline=_headline(accuracy))


def _headline(rows: Rows[Accuracy, Successes]) -> str:
    """Of the last setting: the exact count, and fewer clients."""
    last = rows[-1][0]
    rates = ", ".join(
        f"{successes.clients:,} in {successes.good / point.trials:.1%}"
        for point, successes in rows
        if str(point) == str(last)
    )
    asked = f"{last.t} statistical {'queries' if last.t > 1 else 'query'} to within {last.tau:g}"
    return f"Clients at epsilon {last.epsilon:g} who answer {asked}: {rates} of the runs."


def _accuracy_checks(rows: Rows[Accuracy, Successes]) -> list[Check]:
    enough, fewer = (
        {f"{p}: n = {s.clients}": p.as_predicted(s) for p, s in rows if p.part == part}
        for part in (1, FEWER)
    )
    return [
        holds(
            (
                f"With the exact count, all answers are within tau in {1 - BETA:.0%} of runs and "
                "more: as often as the binomial law says"
            ),
            enough,
            also=all(claimed.low >= 1 - BETA for claimed in enough.values()),
        ),
        holds(
            (
                f"The count is tight: with {FEWER:.0%} of the clients it is less often, again as "
                "the law says"
            ),
            fewer,
            also=all(claimed.high < 1 - BETA for claimed in fewer.values()),
        ),
    ]


def _variance_checks(rows: Rows[Reports, Variances]) -> list[Check]:
    laplace, cut = (
        {
            f"epsilon {point.epsilon:g}, predicted {point.predicted[way]:.4g}": each.of(way)
            / point.predicted[way]
            for point, each in rows
        }
        for way in ("laplace", "clipped")
    )
    between = all(1 < point.predicted["clipped"] < point.predicted["laplace"] for point, _ in rows)
    statement = (
        "A server that clips the Laplace reports wins the predicted part of that back, never all "
        "of it"
    )
    return [
        measured(
            (
                "Laplace noise needs more clients than randomized response by the predicted ratio "
                "(in units of it)"
            ),
            laplace,
            1,
            1,
        ),
        measured(
            f"{statement} (variances in units of the predicted ones)", cut, 1, 1, also=between
        ),
    ]


def _spending_checks(rows: Rows[Spending, Costs], refused: list[str]) -> list[Check]:
    figures = {}
    for way in SPENDING:
        own = [(point, costs) for point, costs in rows if point.way == way]
        figures[way] = _pooled(
            [
                (point.trials, costs.mean_square, costs.error, point.unit * point.predicted)
                for point, costs in own
            ]
        )
        sums = [
            (point.trials, costs.sum_square, costs.sum_error, point.unit * point.predicted_sum)
            for point, costs in own
        ]
        figures[f"{way}, sums of answers"] = _pooled(sums)
    factors = sorted(
        (point.epsilon, point.t, split_budget_cost(point.epsilon, point.t))
        for point, _ in rows
        if point.way == "split budget"
    )
    grows = all(
        below < above
        for (epsilon, _, below), (other, _, above) in pairwise(factors)
        if epsilon == other <= 1
    )
    return [
        measured(
            "Each way to spend the clients costs what is predicted, each answer with noise of its "
            "own, and nobody spends more than epsilon (in units of the prediction, over all runs)",
            figures,
            1,
            1,
            "; ".join(
                f"{point.way}, {point}: {point.cost(costs):.2f} of {point.predicted:.2f}"
                for point, costs in rows
            )
            + "".join(refused[:1]),
            also=not refused and all(costs.spent <= point.epsilon for point, costs in rows),
        ),
        every(
            "By these costs, fresh clients beat a split budget up to epsilon 1, by a factor that "
            "grows with the number of queries and stays below it; at epsilon 6, where sampling "
            "costs more than privacy, the order turns",
            (
                (
                    1 < factor < t if epsilon <= 1 else factor < 1,
                    f"epsilon {epsilon:g}, t = {t}: {factor:.2f} times",
                )
                for epsilon, t, factor in factors
            ),
            also=grows,
        ),
    ]


def _pooled(cells: list[tuple[int, float, float, float]]) -> Positive:
    """The mean over all runs of cells (runs, mean, its standard error, prediction) of the measured
    figure in units of the predicted one."""
    runs = sum(own for own, *_ in cells)
    value = sum(own * mean / predicted for own, mean, _, predicted in cells) / max(1, runs)
    error = math.hypot(*(own * error / predicted for own, _, error, predicted in cells)) / max(
        1, runs
    )
    return Positive(value, error / value, runs - len(cells)) if value else NO_FACTOR


def _tables(
    accuracy: Rows[Accuracy, Successes],
    variances: Rows[Reports, Variances],
    spending: Rows[Spending, Costs],
) -> list[Table]:
    return [
        tabulate(
            "Runs with every answer within tau, with 95 % intervals",
            (
                "epsilon | tau | queries | part of the count | clients a query | rate | low | "
                "high | predicted"
            ),
            [
                (
                    p.epsilon,
                    p.tau,
                    p.t,
                    p.part,
                    s.clients,
                    s.good / p.trials,
                    *wilson(s.good, p.trials),
                    p.predicted(s),
                )
                for p, s in accuracy
            ],
        ),
        tabulate(
            "Variance of one unbiased report at mean 0",
            (
                "epsilon | randomized response | C^2 | Laplace | Laplace / randomized response | "
                "predicted | clipped Laplace | predicted, clipped"
            ),
            [
                (
                    *(p.epsilon, v.response[0], p.square, v.laplace[0]),
                    *(
                        v.of("laplace").value,
                        p.predicted["laplace"],
                        v.clipped[0],
                        p.predicted["clipped"] * p.square,
                    ),
                )
                for p, v in variances
            ],
        ),
        tabulate(
            "Mean square error in units of one query asked of everybody",
            "epsilon | queries | way | cost | 95 % interval +- | predicted",
            [(p.epsilon, p.t, p.way, p.cost(c), p.spread(c), p.predicted) for p, c in spending],
        ),
    ]


def _figures(variances: Rows[Reports, Variances], spending: Rows[Spending, Costs]) -> list[Figure]:
    laplace = [(point, each.of("laplace")) for point, each in variances]
    ratios = [
        curve(
            "Laplace / randomized response",
            [
                (p.epsilon, ratio.value, *about_log(ratio.value, ratio.error))
                for p, ratio in laplace
            ],
        ),
        curve(
            "Laplace / randomized response, predicted",
            [(point.epsilon, point.predicted["laplace"]) for point, _ in variances],
            "theory",
        ),
        curve(
            "clipped Laplace / randomized response",
            [(point.epsilon, each.of("clipped").value) for point, each in variances],
        ),
        curve(
            "clipped Laplace / randomized response, predicted",
            [(point.epsilon, point.predicted["clipped"]) for point, _ in variances],
            "theory",
        ),
    ]
    costs = []
    for way in SPENDING:
        rows = [
            (p, p.cost(c), p.spread(c)) for p, c in spending if p.way == way and p.epsilon == 1.0
        ]
        costs.append(
            curve(
                way, [(point.t, cost, cost - spread, cost + spread) for point, cost, spread in rows]
            )
        )
        costs.append(curve_of(f"{way}, predicted", "t | predicted", rows, "theory"))
    axis = "mean square error, units of C^2 / n"
    return [
        Figure(
            "laplace-ratio",
            "How many more clients Laplace noise needs",
            "epsilon",
            "ratio of variances",
            ratios,
            "one-round",
            log_x=True,
        ),
        LogLogFigure(
            "spending",
            "Three ways to spend the same clients, epsilon 1",
            "queries",
            axis,
            costs,
            "one-round",
        ),
    ]


EXPERIMENT = SqToLocal()
