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
    grid,
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
# epsilon, tau and the number of queries; a quick run takes the last three
SETTINGS = (
    (0.25, 0.1, 1),
    (2.0, 0.1, 1),
    (1.0, 0.2, 8),
    (0.5, 0.1, 1),
    (1.0, 0.1, 1),
    (1.0, 0.2, 4),
)
# epsilon and the number of queries; a quick run takes the last four
BUDGETS = ((0.5, 2), (0.5, 4), (0.5, 8), (6.0, 4), (1.0, 2), (1.0, 4), (1.0, 8), (6.0, 2))
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
    questions = [Question(f"q{j} == 1") for j in range(t)]
    return Nonadaptive(tuple(StatisticalQuery(each, tau) for each in questions), tuple)


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
        clients_for = count(self.epsilon, BETA / self.t)

        def cohort(query: StatisticalQuery) -> int:
            return max(1, round(self.part * clients_for(query)))

        algorithm = local_from_sq(queries(self.t, self.tau), self.epsilon, cohort)
        clients = len(algorithm.queries[0].cohort)
        population = _columns(self.t, self.t * clients, seed)
        place = round(1000 * self.epsilon), self.t, round(100 * self.part)
        good = 0
        for trial in range(self.trials):
            generator = default_rng([seed, 1, trial, *place])
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
        dtype: Any = np.uint32 if randomizer.word_bits == 32 else np.uint64
        words: Words = generator.integers(
            0, randomizer.total - 1, self.n, dtype=dtype, endpoint=True
        )
        reports = randomizer.respond(bits, words, np.zeros(1, dtype=np.uint8)).astype(np.float64)
        response: Floats = randomizer.gain * (2.0 * reports - 1.0)
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


def _mean(values: list[float]) -> tuple[float, float]:
    """With its standard error."""
    return float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))


def _variance(reports: Floats) -> tuple[float, float]:
    centred = (reports - reports.mean()) ** 2
    return float(centred.mean()), float(centred.std()) / math.sqrt(len(reports))


Cell = tuple[int, float, float, float]  # runs, the mean of a figure, its error, its prediction


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
            population = _columns(self.t, self.clients, run_seed)
            oracle = PopulationOracle(population, KeyedNoise(run_seed), run_seed, self.epsilon)
            try:
                answers = run(self._algorithm(run_seed), oracle)
            except RefusedError as error:
                return Refusal(str(error))
            squares.append(sum(answer**2 for answer in answers) / self.t)
            sums.append(sum(answers) ** 2 / self.t)
        return Costs(*_mean(squares), *_mean(sums), oracle.ledger.max_spent)

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
        common = response_gain(self.epsilon) ** -2 if self.way == "split budget" else 0.0
        return self.predicted + (self.t - 1) * common

    def squares(self, costs: Costs) -> Cell:
        """Of the answers."""
        return self.trials, costs.mean_square, costs.error, self.unit * self.predicted

    def sums(self, costs: Costs) -> Cell:
        """Of the sums of answers."""
        return self.trials, costs.sum_square, costs.sum_error, self.unit * self.predicted_sum

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
        settings, trials = (SETTINGS, 10_000) if full else (SETTINGS[-3:], 4000)
        budgets, answers = (BUDGETS, 12_000) if full else (BUDGETS[-4:], 3200)
        reports = grid(Reports, (0.1, 0.5, 1.0, 2.0, 4.0), [1 << (22 if full else 20)])
        spending = (
            Spending(way, epsilon, t, 2000, answers // t)
            for epsilon, t in budgets
            for way in SPENDING
        )
        accuracy = (
            Accuracy(*setting, part, trials) for setting in settings for part in (1.0, FEWER)
        )
        return [*accuracy, Users(1.0, 0.2, 2), *reports, *spending]

    def measure(self, point: Any, seed: int) -> Any:
        if isinstance(point, (Accuracy, Users)):
            return point.measure(seed, self.count)
        return point.measure(seed)

    def finding(self, sheet: Sheet) -> Finding:
        accuracy = sorted(sheet[Accuracy], key=lambda row: (row[0].epsilon, row[0].t))
        variances, runs = sheet[Reports], sheet[Spending]
        spending = [(point, costs) for point, costs in runs if isinstance(costs, Costs)]
        refusals = [
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
            _cost_check(spending, refusals),
            _order_check(spending),
        ]
        figures = [_variance_figure(variances), _spending_figure(spending)]
        return Finding(checks, [_table(accuracy)], figures, headline=_headline(accuracy))


def _headline(rows: Rows[Accuracy, Successes]) -> str:
    """Of the last setting: the exact count, and fewer clients."""
    last = rows[-1][0]
    own = [(point, successes) for point, successes in rows if str(point) == str(last)]
    rates = ", ".join(f"{s.clients:,} in {s.good / p.trials:.1%}" for p, s in own)
    asks = "queries" if last.t > 1 else "query"
    aim = f"{last.t} statistical {asks} to within {last.tau:g}"
    return f"Clients at epsilon {last.epsilon:g} who answer {aim}: {rates} of the runs."


def _accuracy_checks(rows: Rows[Accuracy, Successes]) -> list[Check]:
    def of_part(part: float) -> dict[str, Claimed]:
        return {f"{p}: n = {s.clients}": p.as_predicted(s) for p, s in rows if p.part == part}

    enough, fewer = of_part(1), of_part(FEWER)
    promise = 1 - BETA
    exact = holds(
        f"With the exact count, all answers are within tau in {promise:.0%} of runs and more: as "
        "often as the binomial law says",
        enough,
        also=all(rate.low >= promise for rate in enough.values()),
    )
    tight = holds(
        f"The count is tight: with {FEWER:.0%} of the clients it is less often, again as the law "
        "says",
        fewer,
        also=all(rate.high < promise for rate in fewer.values()),
    )
    return [exact, tight]


def _variance_checks(rows: Rows[Reports, Variances]) -> list[Check]:
    def in_units(way: str) -> dict[str, Positive]:
        """Of the predicted variance."""
        laws = [(point.epsilon, point.predicted[way], each.of(way)) for point, each in rows]
        return {
            f"epsilon {epsilon:g}, predicted {law:.4g}": ratio / law for epsilon, law, ratio in laws
        }

    noise = measured(
        "Laplace noise needs more clients than randomized response by the predicted ratio (in "
        "units of it)",
        in_units("laplace"),
        1,
        1,
    )
    between = all(1 < p.predicted["clipped"] < p.predicted["laplace"] for p, _ in rows)
    clip = measured(
        "A server that clips the Laplace reports wins the predicted part of that back, never all "
        "of it (variances in units of the predicted ones)",
        in_units("clipped"),
        1,
        1,
        also=between,
    )
    return [noise, clip]


def _cost_check(rows: Rows[Spending, Costs], refusals: list[str]) -> Check:
    figures = {}
    for way in SPENDING:
        own = [(point, costs) for point, costs in rows if point.way == way]
        figures[way] = _pool([point.squares(costs) for point, costs in own])
        figures[f"{way}, sums of answers"] = _pool([point.sums(costs) for point, costs in own])
    text = "; ".join(f"{p.way}, {p}: {p.cost(c):.2f} of {p.predicted:.2f}" for p, c in rows)
    within = all(costs.spent <= point.epsilon for point, costs in rows)
    return measured(
        "Each way to spend the clients costs what is predicted, each answer with noise of its "
        "own, and nobody spends more than epsilon (in units of the prediction, over all runs)",
        figures,
        1,
        1,
        text + "".join(refusals[:1]),
        also=not refusals and within,
    )


def _order_check(rows: Rows[Spending, Costs]) -> Check:
    points = sorted((p.epsilon, p.t) for p, _ in rows if p.way == "split budget")
    factors = [(epsilon, t, split_budget_cost(epsilon, t)) for epsilon, t in points]
    low = [(epsilon, factor) for epsilon, _, factor in factors if epsilon <= 1]
    grows = all(
        below < above for (epsilon, below), (other, above) in pairwise(low) if epsilon == other
    )
    cases = []
    for epsilon, t, factor in factors:
        true = 1 < factor < t if epsilon <= 1 else factor < 1
        cases.append((true, f"epsilon {epsilon:g}, t = {t}: {factor:.2f} times"))
    return every(
        "By these costs, fresh clients beat a split budget up to epsilon 1, by a factor that "
        "grows with the number of queries and stays below it; at epsilon 6, where sampling "
        "costs more than privacy, the order turns",
        cases,
        also=grows,
    )


def _pool(cells: list[Cell]) -> Positive:
    """The mean over all runs of the measured figure in units of the predicted one."""
    runs = max(1, sum(own for own, *_ in cells))
    values = [own * mean / prediction for own, mean, _, prediction in cells]
    errors = [own * error / prediction for own, _, error, prediction in cells]
    value, error = sum(values) / runs, math.hypot(*errors) / runs
    return Positive(value, error / value, runs - len(cells)) if value else NO_FACTOR


def _table(accuracy: Rows[Accuracy, Successes]) -> Table:
    rates = []
    for p, s in accuracy:
        setting = p.epsilon, p.tau, p.t, p.part, s.clients
        rates.append((*setting, s.good / p.trials, *wilson(s.good, p.trials), p.predicted(s)))
    return tabulate(
        "Runs with every answer within tau, with 95 % intervals",
        "epsilon | tau | queries | part of the count | clients a query | rate | low | high | "
        "predicted",
        rates,
    )


def _variance_figure(rows: Rows[Reports, Variances]) -> Figure:
    def law(way: str) -> list[tuple[float, float]]:
        return [(point.epsilon, point.predicted[way]) for point, _ in rows]

    noise = [(point.epsilon, each.of("laplace")) for point, each in rows]
    clip = [(point.epsilon, each.of("clipped").value) for point, each in rows]
    laplace = [(epsilon, r.value, *about_log(r.value, r.error)) for epsilon, r in noise]
    ratios = [
        curve("Laplace / randomized response", laplace),
        curve("Laplace / randomized response, predicted", law("laplace"), "theory"),
        curve("clipped Laplace / randomized response", clip),
        curve("clipped Laplace / randomized response, predicted", law("clipped"), "theory"),
    ]
    title, y_label = "How many more clients Laplace noise needs", "ratio of variances"
    return Figure("laplace-ratio", title, "epsilon", y_label, ratios, "one-round", log_x=True)


def _spending_figure(rows: Rows[Spending, Costs]) -> Figure:
    at_one = [(p, p.cost(c), p.spread(c)) for p, c in rows if p.epsilon == 1.0]
    curves = []
    for way in SPENDING:
        own = [row for row in at_one if row[0].way == way]
        costs = [(point.t, cost, cost - spread, cost + spread) for point, cost, spread in own]
        curves.append(curve(way, costs))
        curves.append(curve_of(f"{way}, predicted", "t | predicted", own, "theory"))
    title = "Three ways to spend the same clients, epsilon 1"
    y_label = "mean square error, units of C^2 / n"
    return LogLogFigure("spending", title, "queries", y_label, curves, "one-round")


EXPERIMENT = SqToLocal()
