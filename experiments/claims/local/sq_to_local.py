"""Statistical queries answered by private reports: how accurate, by which noise, and how to spend the clients."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.bounds.response import clipped_laplace_variance, response_gain, rr_failure, split_budget_cost
from local_dp.errors import RefusedError
from local_dp.experiments.claims.laplace import clipped, laplace_reports
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.store import as_data
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


def _answers(answers: Answers) -> Answers:
    return answers


def _columns(t: int, clients: int, seed: int, mean: float = 0.0) -> Finite:
    """t yes/no columns, all 1 or all 0: every query has this mean on the +1/-1 scale, of which 0 is the hardest."""
    return Finite(Records({f"q{j}": np.array([0, 1], dtype=np.uint8) for j in range(t)}), [(1 - mean) / 2, (1 + mean) / 2], clients, seed)


def queries(t: int, tau: float) -> Nonadaptive[StatisticalQuery, float, Answers]:
    """The algorithm that asks t yes/no queries at once and returns the answers."""
    return Nonadaptive(tuple(StatisticalQuery(Question(f"q{j} == 1"), tau) for j in range(t)), _answers)


@dataclass(frozen=True)
class SqToLocal(Experiment[Point, Measurement]):
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

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        points: list[Point] = [
            {"kind": "accuracy", "epsilon": epsilon, "tau": tau, "t": t, "part": part, "trials": 10_000 if full else 1500}
            for epsilon, tau, t in (*(((0.25, 0.1, 1), (2.0, 0.1, 1), (1.0, 0.2, 8)) if full else ()), (0.5, 0.1, 1), (1.0, 0.1, 1), (1.0, 0.2, 4))
            for part in (1.0, FEWER)
        ]
        points += [{"kind": "users", "epsilon": 1.0, "tau": 0.2, "t": 2}]
        points += [{"kind": "variance", "epsilon": epsilon, "n": 1 << (22 if full else 20)} for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0)]
        points += [
            {"kind": "spending", "way": way, "epsilon": epsilon, "t": t, "clients": 2000, "trials": (6000 if full else 1600) // t}
            for epsilon, t in (*(((0.5, 2), (0.5, 4), (0.5, 8), (6.0, 4)) if full else ()), (1.0, 2), (1.0, 4), (1.0, 8), (6.0, 2))
            for way in SPENDING
        ]
        return points

    def measure(self, point: Point, seed: int) -> Measurement:
        kinds = {"accuracy": self._accuracy, "users": self._users, "variance": self._variance, "spending": self._spending}
        return kinds[point["kind"]](point, seed)

    def _accuracy(self, point: Point, seed: int) -> Measurement:
        """How many runs have all t answers within tau, with `part` of the clients the count asks for; none if they are refused."""
        epsilon, tau, t = point["epsilon"], point["tau"], point["t"]
        asked = self.count(epsilon, BETA / t)
        algorithm = local_from_sq(queries(t, tau), epsilon, lambda query: max(1, round(point["part"] * asked(query))))
        clients = len(algorithm.queries[0].cohort)
        population = _columns(t, t * clients, seed)
        good = 0
        for trial in range(point["trials"]):
            generator = np.random.default_rng([seed, 1, trial, round(1000 * epsilon), t, round(100 * point["part"])])
            try:
                answers = run(algorithm, AggregateOracle(population, generator, epsilon))
            except RefusedError:
                break
            good += max(map(abs, answers)) <= tau
        return {"good": good, "clients": clients}

    def _users(self, point: Point, seed: int) -> Measurement:
        """The same with every client answering, beside its law, and a mean that no decoder finds by doing nothing."""
        t, tau, epsilon = point["t"], point["tau"], point["epsilon"]
        asked, count = queries(t, tau), self.count(epsilon, BETA / t)
        clients = sum(count(query) for query in asked.queries)

        def close(answers: Answers, people: Population) -> bool:
            return bool(np.all(np.abs(np.array(answers) - USERS_MEAN) <= tau))

        return as_data(
            cross_check(
                lambda: Trial(local_from_sq(asked, epsilon, count), lambda drawn: _columns(t, clients, drawn, USERS_MEAN), close, clients, epsilon), seed
            )
        )

    def _variance(self, point: Point, seed: int) -> Measurement:
        """The sample variance of one unbiased report, at mean 0: shipped randomized response, literal Laplace noise, and that noise clipped."""
        epsilon, n = point["epsilon"], point["n"]
        generator = np.random.default_rng([seed, 2, round(1000 * epsilon)])
        found: Measurement = {}
        for name, reports in unbiased_reports(epsilon, n, generator):
            centred = (reports - reports.mean()) ** 2
            found[name] = {"variance": float(centred.mean()), "error": float(centred.std()) / math.sqrt(n)}
        return found

    def _spending(self, point: Point, seed: int) -> Measurement:
        """The mean square error of all answers when the same clients are spent in one of three ways: real simulated clients, n of them for t queries."""
        epsilon, t, n = point["epsilon"], point["t"], point["clients"]
        squares, products = [], []
        for trial in range(point["trials"]):
            run_seed = seed * 1_000_003 + trial
            oracle = PopulationOracle(_columns(t, n, run_seed), KeyedNoise(run_seed), run_seed, epsilon)
            try:
                answers = run(spend(point["way"], queries(t, 0.5), epsilon, n, run_seed), oracle)
            except RefusedError as error:
                return {"refused": str(error)}
            squares.append(sum(answer**2 for answer in answers) / t)
            products.append((sum(answers) ** 2 - t * squares[-1]) / (t * (t - 1)))  # the mean over pairs of answers
        spread, shared = (float(np.std(each)) / math.sqrt(len(each)) for each in (squares, products))
        means = {"mean_square": float(np.mean(squares)), "mean_product": float(np.mean(products))}
        return {**means, "error": spread, "product_error": shared, "spent": oracle.ledger.max_spent}

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        kinds: dict[str, list[tuple[Point, Measurement]]] = {kind: [] for kind in ("accuracy", "users", "variance", "spending")}
        for point, measured in measurements:
            kinds[point["kind"]].append((point, measured))
        accuracy = sorted((_accuracy_row(point, found) for point, found in kinds["accuracy"]), key=lambda row: (row["epsilon"], row["t"], -row["part"]))
        variance = [_variance_row(point, found) for point, found in kinds["variance"]]
        spending = [_spending_row(point, found) for point, found in kinds["spending"] if "refused" not in found]
        refused = [f"{point['way']} is refused: {found['refused']}" for point, found in kinds["spending"] if "refused" in found]
        users = [cross_check_shown("Two queries with the exact count", found, 1 - BETA) for _, found in kinds["users"]]
        checks = [*_accuracy_checks(accuracy), *users, *_variance_checks(variance), *_spending_checks(spending, refused)]
        tables, figures = _tables(accuracy, variance, spending), _figures(variance, spending)
        return Finding([*checks, figure_check(figures[1:], tables[2], ends=False)], tables, figures, headline=_headline(accuracy))


def _signs(bits: Words) -> Floats:
    return 2.0 * bits.astype(np.float64) - 1.0


def unbiased_reports(epsilon: float, n: int, generator: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """n unbiased one-client estimates of a mean of signs, half of them +1, by each mechanism."""
    bits = (np.arange(n) % 2).astype(np.uint8)
    randomizer = BinaryRR(epsilon)
    words: Words = generator.integers(0, randomizer.total - 1, n, dtype=np.uint32 if randomizer.word_bits == 32 else np.uint64, endpoint=True)
    reported = randomizer.respond(bits, words, np.zeros(1, dtype=np.uint8))
    yield "randomized response", randomizer.gain * _signs(reported)
    noisy = laplace_reports(_signs(bits), epsilon, generator)
    yield "Laplace", noisy
    yield "clipped Laplace", clipped(noisy, epsilon)


def spend(way: str, algorithm: Nonadaptive[StatisticalQuery, float, Answers], epsilon: float, clients: int, seed: int) -> Algorithm[LocalQuery, Tally, Answers]:
    """The local algorithm that spends these clients in one of the three ways."""
    t = len(algorithm.queries)
    if way == "fresh clients":
        return local_from_sq(algorithm, epsilon, lambda query: clients // t)
    if way == "one random query":
        return one_random_query(algorithm, epsilon, clients, seed)
    return split_budget(algorithm, epsilon, clients, t)


def _accuracy_row(point: Point, found: Measurement) -> dict[str, Any]:
    """The success rate, and what the exact binomial law predicts for it."""
    low, high = wilson(found["good"], point["trials"], Z)
    predicted = (1 - rr_failure(found["clients"], point["epsilon"], point["tau"])) ** point["t"]
    return {**point, **found, "rate": found["good"] / point["trials"], "low": low, "high": high, "predicted": predicted}


def _headline(rows: list[dict[str, Any]]) -> str:
    """Of the last setting: the exact count, and fewer clients."""
    if not rows:
        return "No accuracy was measured."
    epsilon, tau, t = setting = tuple(rows[-1][key] for key in ("epsilon", "tau", "t"))
    told = ", ".join(f"{row['clients']:,} in {row['rate']:.1%}" for row in rows if (row["epsilon"], row["tau"], row["t"]) == setting)
    return f"Clients at epsilon {epsilon:g} who answer {t} statistical {'queries' if t > 1 else 'query'} to within {tau:g}: {told} of the runs."


def _accuracy_checks(rows: list[dict[str, Any]]) -> list[Check]:
    enough, fewer = ([row for row in rows if row["part"] == part] for part in (1.0, FEWER))

    def said(found: list[dict[str, Any]]) -> str:
        return "; ".join(f"epsilon {r['epsilon']:g}, tau {r['tau']:g}, t = {r['t']}: n = {r['clients']}, {r['low']:.4f} to {r['high']:.4f}" for r in found)

    shown = bool(enough) and all(row["high"] >= 1 - BETA and row["low"] <= row["predicted"] <= row["high"] for row in enough)
    return [
        Check(f"With the exact count, all answers are within tau in {1 - BETA:.0%} of runs, as the binomial law predicts", shown, said(enough)),
        Check(f"The count is tight: with {FEWER:.0%} of the clients they are not", bool(fewer) and all(row["high"] < 1 - BETA for row in fewer), said(fewer)),
    ]


def _variance_row(point: Point, found: Measurement) -> dict[str, Any]:
    """Variances, and the ratio of Laplace to randomized response with its interval."""
    epsilon = point["epsilon"]
    coin, noise, cut = (found[name] for name in ("randomized response", "Laplace", "clipped Laplace"))
    ratio = noise["variance"] / coin["variance"]
    spread = Z * ratio * math.hypot(noise["error"] / noise["variance"], coin["error"] / coin["variance"])
    square = response_gain(epsilon) ** 2
    return {
        "epsilon": epsilon, "coin": coin["variance"], "coin predicted": square, "ratio": ratio, "low": ratio - spread, "high": ratio + spread,
        "predicted": (8 / epsilon**2 + 1) / square, "noise": noise["variance"], "cut": cut["variance"], "cut spread": Z * cut["error"],
        "cut predicted": clipped_laplace_variance(epsilon),
    }  # fmt: skip


def _variance_checks(rows: list[dict[str, Any]]) -> list[Check]:
    return [
        Check(
            "Laplace noise needs more clients than randomized response by the predicted ratio",
            bool(rows) and all(row["low"] <= row["predicted"] <= row["high"] for row in rows),
            "; ".join(f"epsilon {row['epsilon']:g}: {row['ratio']:.4f} +- {row['high'] - row['ratio']:.4f}, predicted {row['predicted']:.4f}" for row in rows),
        ),
        Check(
            "A server that clips the Laplace reports wins the predicted part of that back, never all of it",
            bool(rows) and all(abs(row["cut"] - row["cut predicted"]) <= row["cut spread"] and row["coin"] < row["cut"] < row["noise"] for row in rows),
            "; ".join(f"epsilon {row['epsilon']:g}: {row['cut']:.4f} +- {row['cut spread']:.4f}, predicted {row['cut predicted']:.4f}" for row in rows),
        ),
    ]


def _spending_row(point: Point, found: Measurement) -> dict[str, Any]:
    """The mean square error in units of one query's C^2 / n, and its prediction: t for both ways with whole budgets, C(eps/t)^2/C^2 for split ones.

    So is the mean product of two answers' errors, `shared`: 1/C^2 where both are of the same people, whose columns are all equal, 0 where they are not.
    """
    epsilon, t = point["epsilon"], point["t"]
    unit = response_gain(epsilon) ** 2 / point["clients"]
    predicted = t * split_budget_cost(epsilon, t) if point["way"] == "split budget" else float(t)
    same = response_gain(epsilon) ** -2 if point["way"] == "split budget" else 0.0
    together = {"shared": found["mean_product"] / unit, "shared spread": Z * found["product_error"] / unit, "shared predicted": same}
    return {**point, "cost": found["mean_square"] / unit, "spread": Z * found["error"] / unit, "predicted": predicted, "spent": found["spent"], **together}


def _spending_checks(rows: list[dict[str, Any]], refused: list[str]) -> list[Check]:
    by = {(row["epsilon"], row["t"], row["way"]): row for row in rows}
    all_pairs = [
        (by[epsilon, t, "fresh clients"], row) for (epsilon, t, way), row in by.items() if way == "split budget" and (epsilon, t, "fresh clients") in by
    ]
    private, open_handed = ([pair for pair in all_pairs if (pair[0]["epsilon"] <= 1) == small] for small in (True, False))

    def gain(fresh: dict[str, Any], split: dict[str, Any]) -> tuple[float, float]:
        return split["cost"] - fresh["cost"], math.hypot(split["spread"], fresh["spread"])

    # multinomial cohorts are uneven, which costs a factor 1 + t/n: far below the interval
    agree = bool(rows) and all(abs(row["cost"] - row["predicted"]) <= row["spread"] for row in rows)
    own = all(abs(row["shared"] - row["shared predicted"]) <= row["shared spread"] for row in rows)
    return [
        Check(
            "Each way to spend the clients costs what is predicted, each answer with noise of its own, and nobody spends more than epsilon",
            agree and own and not refused and all(row["spent"] <= row["epsilon"] for row in rows),
            "; ".join(
                [*refused[:1]] + [f"{row['way']}, epsilon {row['epsilon']:g}, t = {row['t']}: {row['cost']:.2f} of {row['predicted']:.2f}" for row in rows]
            ),
        ),
        Check(
            "Up to epsilon 1, fresh clients beat a split budget by a factor that grows with the number of queries and stays below it",
            bool(private) and all(saved > spread for saved, spread in (gain(*pair) for pair in private)) and _grows(private),
            "; ".join(f"epsilon {fresh['epsilon']:g}, t = {fresh['t']}: {split['cost'] / fresh['cost']:.2f} times" for fresh, split in private),
        ),
        Check(
            "At epsilon 6, where sampling costs more than privacy, the order turns",
            bool(open_handed) and all(-saved > spread for saved, spread in (gain(*pair) for pair in open_handed)),
            "; ".join(f"epsilon {fresh['epsilon']:g}, t = {fresh['t']}: {split['cost'] / fresh['cost']:.2f} times" for fresh, split in open_handed),
        ),
    ]


def _grows(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Whether the factor by which the second costs more grows with t at every epsilon, and is below t, intervals allowed for."""
    for epsilon in {fresh["epsilon"] for fresh, _ in pairs}:
        here = sorted((fresh["t"], fresh, split) for fresh, split in pairs if fresh["epsilon"] == epsilon)
        factors = [split["cost"] / fresh["cost"] for _, fresh, split in here]
        least = [(split["cost"] - split["spread"]) / (fresh["cost"] + fresh["spread"]) for _, fresh, split in here]
        if factors != sorted(factors) or any(factor >= t for factor, (t, _, _) in zip(least, here, strict=True)):
            return False
    return True


def _tables(accuracy: list[dict[str, Any]], variance: list[dict[str, Any]], spending: list[dict[str, Any]]) -> list[Table]:
    accuracy_columns = ("epsilon", "tau", "t", "part", "clients", "rate", "low", "high", "predicted")
    variance_columns = ("epsilon", "coin", "coin predicted", "noise", "ratio", "predicted", "cut", "cut predicted")
    spending_columns = ("epsilon", "t", "way", "cost", "spread", "predicted")

    def rows(found: list[dict[str, Any]], columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return [tuple(row[column] for column in columns) for row in found]

    return [
        Table(
            "Runs with every answer within tau",
            ("epsilon", "tau", "queries", "part of the count", "clients a query", "rate", "low", "high", "predicted"),
            rows(accuracy, accuracy_columns),
        ),
        Table(
            "Variance of one unbiased report at mean 0",
            ("epsilon", "randomized response", "C^2", "Laplace", "Laplace / randomized response", "predicted", "clipped Laplace", "predicted, clipped"),
            rows(variance, variance_columns),
        ),
        Table(
            "Mean square error in units of one query asked of everybody",
            ("epsilon", "queries", "way", "cost", "interval +-", "predicted"),
            rows(spending, spending_columns),
        ),
    ]


def _figures(variance: list[dict[str, Any]], spending: list[dict[str, Any]]) -> list[Figure]:
    epsilons = [row["epsilon"] for row in variance]
    low, high = ([row[side] for row in variance] for side in ("low", "high"))
    ratios = [
        Curve("Laplace / randomized response", epsilons, [row["ratio"] for row in variance], "measured", low, high),
        Curve("predicted", epsilons, [row["predicted"] for row in variance], "theory"),
        Curve("clipped Laplace / randomized response", epsilons, [row["cut"] / row["coin"] for row in variance]),
        Curve("predicted, clipped", epsilons, [row["cut predicted"] / row["coin predicted"] for row in variance], "theory"),
    ]
    costs = []
    for way in SPENDING:
        rows = sorted((row for row in spending if row["way"] == way and row["epsilon"] == 1.0), key=lambda row: int(row["t"]))
        counts = [float(row["t"]) for row in rows]
        low, high = ([row["cost"] + sign * row["spread"] for row in rows] for sign in (-1, 1))
        costs.append(Curve(way, counts, [row["cost"] for row in rows], "measured", low, high))
        costs.append(Curve(f"{way}, predicted", counts, [row["predicted"] for row in rows], "theory"))
    return [
        Figure("laplace-ratio", "How many more clients Laplace noise needs", "epsilon", "ratio of variances", ratios, log_x=True),
        Figure("spending", "Three ways to spend the same clients, epsilon 1", "queries", "mean square error, units of C^2 / n", costs, log_x=True, log_y=True),
    ]


EXPERIMENT = SqToLocal()
