"""Statistical queries answered by private reports: how accurate, by which noise, and how to spend the clients."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.bounds.response import clipped_laplace_variance, response_gain, rr_failure, split_budget_cost
from local_dp.errors import RefusedError
from local_dp.experiments.claims.laplace import clipped, laplace_reports
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.checks import every
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.cross_check import Crossing, Refusal, Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import ClientsFor, local_from_sq, one_random_query, split_budget, tight_clients

Z = 4.0  # a two-sided normal interval that misses with probability 6e-5
BETA = 0.05
USERS_MEAN = 0.6
FEWER = 0.6  # the part of the exact count that must not be enough
SPENDING = ("fresh clients", "one random query", "split budget")
Answers: TypeAlias = tuple[float, ...]


def _columns(t: int, clients: int, seed: int, mean: float = 0.0) -> Finite:
    """t yes/no columns, all 1 or all 0: every query has this mean on the +1/-1 scale, of which 0 is the hardest."""
    return Finite(Records({f"q{j}": np.array([0, 1], dtype=np.uint8) for j in range(t)}), [(1 - mean) / 2, (1 + mean) / 2], clients, seed)


def queries(t: int, tau: float) -> Nonadaptive[StatisticalQuery, float, Answers]:
    """The algorithm that asks t yes/no queries at once and returns the answers."""
    return Nonadaptive(tuple(StatisticalQuery(Question(f"q{j} == 1"), tau) for j in range(t)), tuple)


@dataclass(frozen=True)
class Successes:
    """Runs with every answer within tau, and the clients of a query."""

    good: int
    clients: int


@dataclass(frozen=True)
class Accuracy:
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
        algorithm = local_from_sq(queries(self.t, self.tau), self.epsilon, lambda query: max(1, round(self.part * needed(query))))
        clients = len(algorithm.queries[0].cohort)
        population = _columns(self.t, self.t * clients, seed)
        good = 0
        for trial in range(self.trials):
            generator = np.random.default_rng([seed, 1, trial, round(1000 * self.epsilon), self.t, round(100 * self.part)])
            try:
                answers = run(algorithm, AggregateOracle(population, generator, self.epsilon))
            except RefusedError:
                break
            good += max(map(abs, answers)) <= self.tau
        return Successes(good, clients)

    def interval(self, successes: Successes) -> tuple[float, float]:
        """Of the success rate."""
        return wilson(successes.good, self.trials, Z)

    def predicted(self, successes: Successes) -> float:
        """By the exact binomial law."""
        return (1 - rr_failure(successes.clients, self.epsilon, self.tau)) ** self.t


@dataclass(frozen=True)
class Users:
    """The same with every client answering, beside its law, and a mean that no decoder finds by doing nothing."""

    epsilon: float
    tau: float
    t: int

    def measure(self, seed: int, counts: Callable[[float, float], ClientsFor]) -> Crossing:
        algorithm, count = queries(self.t, self.tau), counts(self.epsilon, BETA / self.t)
        clients = sum(count(query) for query in algorithm.queries)

        def close(answers: Answers, people: Population) -> bool:
            return bool(np.all(np.abs(np.array(answers) - USERS_MEAN) <= self.tau))

        people = partial(_columns, self.t, clients, mean=USERS_MEAN)
        return cross_check(lambda: Trial(local_from_sq(algorithm, self.epsilon, count), people, close, clients, self.epsilon), seed)


@dataclass(frozen=True)
class Variances:
    """The sample variance of an unbiased report of each mechanism, and its standard error."""

    response: tuple[float, float]
    laplace: tuple[float, float]
    clipped: tuple[float, float]

    def ratio(self) -> tuple[float, float, float]:
        """Laplace over randomized response, with its interval."""
        ratio = self.laplace[0] / self.response[0]
        spread = Z * ratio * math.hypot(*(error / variance for variance, error in (self.laplace, self.response)))
        return ratio, ratio - spread, ratio + spread


@dataclass(frozen=True)
class Reports:
    """n one-client estimates of a mean of signs, half of them +1: shipped randomized response, literal Laplace noise, and that noise clipped."""

    epsilon: float
    n: int

    def measure(self, seed: int) -> Variances:
        generator = np.random.default_rng([seed, 2, round(1000 * self.epsilon)])
        bits = (np.arange(self.n) % 2).astype(np.uint8)
        randomizer = BinaryRR(self.epsilon)
        words: Words = generator.integers(0, randomizer.total - 1, self.n, dtype=np.uint32 if randomizer.word_bits == 32 else np.uint64, endpoint=True)
        response: Floats = randomizer.gain * (2.0 * randomizer.respond(bits, words, np.zeros(1, dtype=np.uint8)).astype(np.float64) - 1.0)
        noisy = laplace_reports(2.0 * bits.astype(np.float64) - 1.0, self.epsilon, generator)
        return Variances(*map(_variance, (response, noisy, clipped(noisy, self.epsilon))))

    @property
    def square(self) -> float:
        """C^2, the variance by randomized response."""
        return response_gain(self.epsilon) ** 2

    @property
    def predicted(self) -> float:
        """The variance by Laplace noise, in units of C^2."""
        return (8 / self.epsilon**2 + 1) / self.square


def _variance(reports: Floats) -> tuple[float, float]:
    centred = (reports - reports.mean()) ** 2
    return float(centred.mean()), float(centred.std()) / math.sqrt(len(reports))


@dataclass(frozen=True)
class Costs:
    """The mean square error of an answer, and the mean product of two answers' errors."""

    mean_square: float
    mean_product: float
    error: float
    product_error: float
    spent: float


@dataclass(frozen=True)
class Spending:
    """The same simulated clients, for t queries, spent in one of three ways. Costs are in units of C^2 / n, the error of one query."""

    way: str
    epsilon: float
    t: int
    clients: int
    trials: int

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, t = {self.t}"

    def measure(self, seed: int) -> Costs | Refusal:
        squares, products = [], []
        for trial in range(self.trials):
            run_seed = seed * 1_000_003 + trial
            oracle = PopulationOracle(_columns(self.t, self.clients, run_seed), KeyedNoise(run_seed), run_seed, self.epsilon)
            try:
                answers = run(self._algorithm(run_seed), oracle)
            except RefusedError as error:
                return Refusal(str(error))
            squares.append(sum(answer**2 for answer in answers) / self.t)
            products.append((sum(answers) ** 2 - self.t * squares[-1]) / (self.t * (self.t - 1)))  # the mean over pairs of answers
        spread, shared = (float(np.std(each)) / math.sqrt(len(each)) for each in (squares, products))
        return Costs(float(np.mean(squares)), float(np.mean(products)), spread, shared, oracle.ledger.max_spent)

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
        """t with whole budgets, t C(eps / t)^2 / C^2 with split ones. Multinomial cohorts are uneven: a factor 1 + t / n, far below the interval."""
        return self.t * split_budget_cost(self.epsilon, self.t) if self.way == "split budget" else float(self.t)

    def cost(self, costs: Costs) -> float:
        return costs.mean_square / self.unit

    def spread(self, costs: Costs) -> float:
        return Z * costs.error / self.unit

    def agrees(self, costs: Costs) -> bool:
        """Whether cost and mean product are as predicted: the product is 1 / C^2 if the same people, with equal columns, answer both queries, else 0."""
        same = response_gain(self.epsilon) ** -2 if self.way == "split budget" else 0.0
        alike = abs(costs.mean_product / self.unit - same) <= Z * costs.product_error / self.unit
        return abs(self.cost(costs) - self.predicted) <= self.spread(costs) and alike


Place: TypeAlias = Accuracy | Users | Reports | Spending
Result: TypeAlias = Successes | Crossing | Variances | Costs
Pair: TypeAlias = tuple[tuple[Spending, Costs], tuple[Spending, Costs]]  # fresh clients and a split budget, otherwise alike


@dataclass(frozen=True)
class SqToLocal(Experiment[Place, Result]):
    """`count` is the number of clients of a query, under test; a wrong one must make the verdict "not shown"."""

    name: ClassVar[str] = "sq-to-local"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Any algorithm that only needs averages can learn from private reports"
    claim: ClassVar[str] = (
        "An algorithm that only asks for averages over the population (statistical queries) runs on randomized answers: enough clients answer each query, and "
        "all averages are within the tolerance tau except with probability beta. The exact number of clients is known, and it is tight. Up to epsilon 1 "
        "randomized response needs about half the clients that Laplace noise does; fresh clients for every query beat splitting everybody's privacy budget."
    )
    source: ClassVar[str] = "KLNRS 2008, Claim 4.1, Lemmas 4.2 and 4.3, Theorem 4.8; limits 1"
    count: Callable[[float, float], ClientsFor] = tight_clients

    def points(self, scale: Scale) -> list[Place]:
        full = scale == "full"
        settings = (*(((0.25, 0.1, 1), (2.0, 0.1, 1), (1.0, 0.2, 8)) if full else ()), (0.5, 0.1, 1), (1.0, 0.1, 1), (1.0, 0.2, 4))
        spent = (*(((0.5, 2), (0.5, 4), (0.5, 8), (6.0, 4)) if full else ()), (1.0, 2), (1.0, 4), (1.0, 8), (6.0, 2))
        return [
            *(Accuracy(epsilon, tau, t, part, 10_000 if full else 1500) for epsilon, tau, t in settings for part in (1.0, FEWER)),
            Users(1.0, 0.2, 2),
            *(Reports(epsilon, 1 << (22 if full else 20)) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0)),
            *(Spending(way, epsilon, t, 2000, (6000 if full else 1600) // t) for epsilon, t in spent for way in SPENDING),
        ]

    def measure(self, point: Place, seed: int) -> Result:
        return point.measure(seed, self.count) if isinstance(point, (Accuracy, Users)) else point.measure(seed)

    def conclude(self, measurements: Rows[Place, Result], scale: Scale) -> Finding:
        accuracy = sorted(of_kind(measurements, Accuracy), key=lambda row: (row[0].epsilon, row[0].t, -row[0].part))
        variances, runs = of_kind(measurements, Reports), of_kind(measurements, Spending)
        spending = [(point, costs) for point, costs in runs if isinstance(costs, Costs)]
        refused = [f"{point.way} is refused: {refusal.refused}" for point, refusal in runs if isinstance(refusal, Refusal)]
        users = [cross_check_shown("Two queries with the exact count", crossing, 1 - BETA) for _, crossing in of_kind(measurements, Users)]
        checks = [*_accuracy_checks(accuracy), *users, *_variance_checks(variances), *_spending_checks(spending, refused)]
        tables, figures = _tables(accuracy, variances, spending), _figures(variances, spending)
        return Finding([*checks, figure_check(figures[1:], tables[2], ends=False)], tables, figures, headline=_headline(accuracy))


def _headline(rows: Rows[Accuracy, Successes]) -> str:
    """Of the last setting: the exact count, and fewer clients."""
    if not rows:
        return "No accuracy was measured."
    last = rows[-1][0]
    rates = ", ".join(f"{successes.clients:,} in {successes.good / point.trials:.1%}" for point, successes in rows if str(point) == str(last))
    asked = f"{last.t} statistical {'queries' if last.t > 1 else 'query'} to within {last.tau:g}"
    return f"Clients at epsilon {last.epsilon:g} who answer {asked}: {rates} of the runs."


def _accuracy_checks(rows: Rows[Accuracy, Successes]) -> list[Check]:
    cases = [(p.part, *p.interval(s), p.predicted(s), f"{p}: n = {s.clients}") for p, s in rows]
    enough = [(high >= 1 - BETA and low <= law <= high, f"{text}, {low:.4f} to {high:.4f}") for part, low, high, law, text in cases if part == 1]
    fewer = [(high < 1 - BETA, f"{text}, {low:.4f} to {high:.4f}") for part, low, high, _, text in cases if part == FEWER]
    return [
        every(f"With the exact count, all answers are within tau in {1 - BETA:.0%} of runs, as the binomial law predicts", enough),
        every(f"The count is tight: with {FEWER:.0%} of the clients they are not", fewer),
    ]


def _variance_checks(rows: Rows[Reports, Variances]) -> list[Check]:
    ratios, cuts = [], []
    for point, variances in rows:
        ratio, low, high = variances.ratio()
        text = f"epsilon {point.epsilon:g}: {ratio:.4f} +- {high - ratio:.4f}, predicted {point.predicted:.4f}"
        ratios.append((low <= point.predicted <= high, text))
        cut, spread, predicted = variances.clipped[0], Z * variances.clipped[1], clipped_laplace_variance(point.epsilon)
        between = variances.response[0] < cut < variances.laplace[0]
        cuts.append((abs(cut - predicted) <= spread and between, f"epsilon {point.epsilon:g}: {cut:.4f} +- {spread:.4f}, predicted {predicted:.4f}"))
    return [
        every("Laplace noise needs more clients than randomized response by the predicted ratio", ratios),
        every("A server that clips the Laplace reports wins the predicted part of that back, never all of it", cuts),
    ]


def _spending_checks(rows: Rows[Spending, Costs], refused: list[str]) -> list[Check]:
    by = {(point.epsilon, point.t, point.way): (point, costs) for point, costs in rows}
    keys = [(epsilon, t) for epsilon, t, way in by if way == "split budget" and (epsilon, t, "fresh clients") in by]
    pairs = [(by[epsilon, t, "fresh clients"], by[epsilon, t, "split budget"]) for epsilon, t in keys]
    private, weak = ([pair for pair in pairs if (pair[0][0].epsilon <= 1) == small] for small in (True, False))
    costs = [
        (point.agrees(each) and each.spent <= point.epsilon, f"{point.way}, {point}: {point.cost(each):.2f} of {point.predicted:.2f}") for point, each in rows
    ]
    statement = "Each way to spend the clients costs what is predicted, each answer with noise of its own, and nobody spends more than epsilon"
    return [
        every(statement, [*((False, reason) for reason in refused[:1]), *costs]),
        every(
            "Up to epsilon 1, fresh clients beat a split budget by a factor that grows with the number of queries and stays below it",
            [(_saving(pair) > 0, _factor(pair)) for pair in private],
            also=_grows(private),
        ),
        every("At epsilon 6, where sampling costs more than privacy, the order turns", [(_saving(pair[::-1]) > 0, _factor(pair)) for pair in weak]),
    ]


def _saving(pair: Pair) -> float:
    """By how much the second certainly costs more than the first; negative if that is not certain."""
    (first, cheap), (second, dear) = pair
    return second.cost(dear) - first.cost(cheap) - math.hypot(second.spread(dear), first.spread(cheap))


def _factor(pair: Pair) -> str:
    (fresh, cheap), (split, dear) = pair
    return f"{fresh}: {split.cost(dear) / fresh.cost(cheap):.2f} times"


def _grows(pairs: list[Pair]) -> bool:
    """Whether the factor by which the second costs more grows with t at every epsilon, and is below t, intervals allowed for."""
    for epsilon in {fresh.epsilon for (fresh, _), _ in pairs}:
        here = sorted((pair for pair in pairs if pair[0][0].epsilon == epsilon), key=lambda pair: pair[0][0].t)
        factors = [split.cost(dear) / fresh.cost(cheap) for (fresh, cheap), (split, dear) in here]
        least = [(split.cost(dear) - split.spread(dear)) / (fresh.cost(cheap) + fresh.spread(cheap)) / fresh.t for (fresh, cheap), (split, dear) in here]
        if factors != sorted(factors) or max(least) >= 1:
            return False
    return True


def _tables(accuracy: Rows[Accuracy, Successes], variances: Rows[Reports, Variances], spending: Rows[Spending, Costs]) -> list[Table]:
    return [
        Table(
            "Runs with every answer within tau",
            ("epsilon", "tau", "queries", "part of the count", "clients a query", "rate", "low", "high", "predicted"),
            [(p.epsilon, p.tau, p.t, p.part, s.clients, s.good / p.trials, *p.interval(s), p.predicted(s)) for p, s in accuracy],
        ),
        Table(
            "Variance of one unbiased report at mean 0",
            ("epsilon", "randomized response", "C^2", "Laplace", "Laplace / randomized response", "predicted", "clipped Laplace", "predicted, clipped"),
            [
                (
                    *(p.epsilon, v.response[0], p.square, v.laplace[0]),
                    *(v.ratio()[0], p.predicted, v.clipped[0], clipped_laplace_variance(p.epsilon)),
                )
                for p, v in variances
            ],
        ),
        Table(
            "Mean square error in units of one query asked of everybody",
            ("epsilon", "queries", "way", "cost", "interval +-", "predicted"),
            [(p.epsilon, p.t, p.way, p.cost(c), p.spread(c), p.predicted) for p, c in spending],
        ),
    ]


def _figures(variances: Rows[Reports, Variances], spending: Rows[Spending, Costs]) -> list[Figure]:
    ratios = [
        curve("Laplace / randomized response", [(point.epsilon, *each.ratio()) for point, each in variances]),
        curve("predicted", [(point.epsilon, point.predicted) for point, _ in variances], "theory"),
        curve("clipped Laplace / randomized response", [(point.epsilon, each.clipped[0] / each.response[0]) for point, each in variances]),
        curve("predicted, clipped", [(point.epsilon, clipped_laplace_variance(point.epsilon) / point.square) for point, _ in variances], "theory"),
    ]
    costs = []
    for way in SPENDING:
        rows = [(p, p.cost(c), p.spread(c)) for p, c in spending if p.way == way and p.epsilon == 1.0]
        costs.append(curve(way, [(point.t, cost, cost - spread, cost + spread) for point, cost, spread in rows]))
        costs.append(curve(f"{way}, predicted", [(point.t, point.predicted) for point, _, _ in rows], "theory"))
    return [
        Figure("laplace-ratio", "How many more clients Laplace noise needs", "epsilon", "ratio of variances", ratios, log_x=True),
        Figure("spending", "Three ways to spend the same clients, epsilon 1", "queries", "mean square error, units of C^2 / n", costs, log_x=True, log_y=True),
    ]


EXPERIMENT = SqToLocal()
