"""Statistical queries simulate local randomizers: the exact distance on small domains, and how many queries it takes."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from experiments.claims.extremal import Accept, Tree, draw_laws, extremal_channel, mixture, random_law, within_draw_bound
from experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.bounds.simulations import conditional_draw_distance, draw_distance, miss_probability, relative_error
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Question
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.rejection import acceptance, total_variation
from local_dp.theorems.sq_from_local import sq_from_local

Z = 4.0  # a two-sided normal interval that misses with probability 6e-5, so that a true claim is hardly ever called not shown
TRIALS = 400  # candidates a draw: none of them is accepted with probability below 1e-8 for epsilon <= 3


def _correlated(seed: int) -> Finite:
    """Individuals with two bits x and y that agree in 80 % of cases."""
    kinds = Records({"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1])})
    return Finite(kinds, [0.4, 0.1, 0.1, 0.4], 1, seed)


class Counting:
    """Answers exactly, computes no answer twice, and counts every query."""

    def __init__(self, population: Finite) -> None:
        self.oracle = ExactOracle(population)
        self.known: dict[StatisticalQuery, float] = {}
        self.asked = 0

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        self.asked += len(queries)
        new = tuple(query for query in dict.fromkeys(queries) if query not in self.known)
        self.known |= zip(new, self.oracle.answer(new), strict=True)
        return tuple(self.known[query] for query in queries)


def two_questions(epsilon: float, draws: int, *, same: bool = True) -> Adaptive[LocalQuery, Tally, list[int]]:
    """Each of `draws` clients is asked x; then, by its own reply, x or y. The result counts the transcripts 00, 01, 10, 11.

    Each reply costs epsilon. `same` puts the second question to the same individual; without it, to another one: a wrong simulation of the first kind.
    """
    randomizer = BinaryRR(epsilon)

    def play() -> Play[LocalQuery, Tally, list[int]]:
        tallies = yield tuple(LocalQuery(Question("x == 1"), randomizer, Cohort(i, i + 1)) for i in range(draws))
        first = [int(tally.counts[0, 1]) for tally in tallies]
        shift = 0 if same else draws
        tallies = yield tuple(
            LocalQuery(Question("x == 1" if reply else "y == 1"), randomizer, Cohort(shift + i, shift + i + 1)) for i, reply in enumerate(first)
        )
        second = [int(tally.counts[0, 1]) for tally in tallies]
        counts: list[int] = np.bincount([2 * a + b for a, b in zip(first, second, strict=True)], minlength=4).tolist()
        return counts

    return Adaptive(play)


def two_questions_law(epsilon: float) -> list[float]:
    """The exact law of one transcript 00, 01, 10, 11."""
    keep = 1 / (1 + math.exp(-epsilon))
    law = np.zeros((2, 2))
    for (x, y), share in zip(((0, 0), (0, 1), (1, 0), (1, 1)), (0.4, 0.1, 0.1, 0.4), strict=True):
        for a in (0, 1):
            for b in (0, 1):
                law[a, b] += share * (keep if a == x else 1 - keep) * (keep if b == (x if a else y) else 1 - keep)
    return [float(p) for p in law.ravel()]


def fixed_trials(epsilon: float, draws: int) -> Nonadaptive[LocalQuery, Tally, int]:
    """One round in which `draws` clients are asked x; the result counts the reported ones."""
    return Nonadaptive((LocalQuery(Question("x == 1"), BinaryRR(epsilon), Cohort(0, draws)),), lambda tallies: int(tallies[0].counts[0, 1]))


@dataclass(frozen=True)
class LocalToSq(Experiment):
    """`accept` and `same` are the protocol under test; a wrong one must make the verdict "not shown"."""

    name: ClassVar[str] = "local-to-sq"
    title: ClassVar[str] = "Anything a non-interactive survey of randomized answers learns, averages alone can learn"
    claim: ClassVar[str] = (
        "An algorithm that sees only privately randomized answers can be run without asking anybody: every answer is drawn from approximate averages over the "
        "population (statistical queries). However the averages err within their tolerance tau, the drawn answers are within a computable total variation of "
        "real ones, also where a second question depends on the first answer. It takes about e^epsilon averages an answer."
    )
    source: ClassVar[str] = "KLNRS 2008, Lemmas 4.4 and 4.5, with the constants of limits 6"
    accept: Accept = acceptance
    same: bool = True

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        points: list[Point] = [
            {"kind": "draw", "epsilon": epsilon, "share": share, "channels": 15, "batch": batch}
            for epsilon in ((0.1, 0.5, 1.0, 2.0, 3.0) if full else (0.1, 1.0, 3.0))
            for share in ((0.05, 0.25, 1.0) if epsilon < 2 else (0.05, 0.25, 1.0, 4.0))
            for batch in range(10 if full else 1)
        ]
        points += [
            {"kind": "tree", "epsilon": epsilon, "share": share, "trees": 6, "batch": batch}
            for epsilon in ((0.5, 1.0, 2.0) if full else (0.5, 2.0))
            for share in (0.0, 0.5, 0.95)
            for batch in range(10 if full else 1)
        ]
        points += [{"kind": "queries", "epsilon": epsilon, "draws": 4000 if full else 1000} for epsilon in (0.25, 0.5, 1.0, 1.5, 2.0)]
        points += [
            {"kind": "fixed", "epsilon": 1.0, "draws": 4000 if full else 1500, "trials": trials} for trials in ((1, 2, 3, 5, 8, 12) if full else (1, 2, 4, 8))
        ]
        return points

    def measure(self, point: Point, seed: int) -> Measurement:
        measured: Measurement = {"draw": self._draw, "tree": self._tree, "queries": self._queries, "fixed": self._fixed}[point["kind"]](point, seed)
        return measured

    def _draw(self, point: Point, seed: int) -> Measurement:
        """Random channels with |Z| <= 6 and |W| <= 5, all sign patterns. `share` is the tolerance in units of the one where tau' = 1, or of 0.9."""
        generator = np.random.default_rng([seed, 1, point["batch"], round(1000 * point["epsilon"])])
        growth = Fraction(math.exp(point["epsilon"])).limit_denominator(1000)
        tau = Fraction(point["share"]).limit_denominator(100) * min(2 / (growth**2 - 1), Fraction(9, 10))
        bound = draw_distance(math.log(growth), float(tau))
        worst, outside, patterns = Fraction(0), 0, 0
        for _ in range(point["channels"]):
            values, reports = int(generator.integers(2, 7)), int(generator.integers(2, 6))
            channel, shares = extremal_channel(growth, values, reports, generator), random_law(values, generator)
            truth = mixture(shares, channel)
            for law in draw_laws(channel, shares, growth, tau, self.accept):
                distance = total_variation(law, truth)
                worst, patterns = max(worst, distance), patterns + 1
                outside += not within_draw_bound(distance, growth, tau)
        return {"tau": float(tau), "worst": float(worst), "bound": bound, "outside": outside, "patterns": patterns}

    def _tree(self, point: Point, seed: int) -> Measurement:
        """Random trees of two replies, |Z| <= 5, 2 reports and then 3; all sign patterns of all eight answers."""
        generator = np.random.default_rng([seed, 2, point["batch"], round(1000 * point["epsilon"])])
        one, two = (Fraction(math.exp(point["epsilon"] * part)).limit_denominator(100) for part in (0.6, 0.4))
        tau = Fraction(point["share"]).limit_denominator(100) * min(2 / ((one * two) ** 2 - 1), Fraction(9, 10))
        bound = draw_distance(math.log(one), float(tau)) + conditional_draw_distance(math.log(one * two), float(tau))
        worst, outside, patterns = Fraction(0), 0, 0
        for _ in range(point["trees"]):
            values = int(generator.integers(2, 6))
            second = [extremal_channel(two, values, 3, generator) for _ in range(2)]
            tree = Tree(extremal_channel(one, values, 2, generator), second, random_law(values, generator), (one, two))
            truth = tree.law()
            for law in tree.simulated(tau, self.accept):
                distance = total_variation(law, truth)
                worst, patterns = max(worst, distance), patterns + 1
                outside += distance > bound
        return {"tau": float(tau), "worst": float(worst), "bound": bound, "outside": outside, "patterns": patterns}

    def _queries(self, point: Point, seed: int) -> Measurement:
        """The shipped interactive simulation of two replies from each client: queries used, and the transcripts it drew."""
        epsilon, draws = point["epsilon"], point["draws"]
        tolerance = 0.01 / relative_error(2 * epsilon, 1.0)
        oracle = Counting(_correlated(seed))
        counts = run(sq_from_local(two_questions(epsilon, draws, same=self.same), tolerance, TRIALS, seed), oracle)
        return {"asked": oracle.asked, "counts": counts, "tolerance": tolerance}

    def _fixed(self, point: Point, seed: int) -> Measurement:
        """The shipped non-interactive simulation, every candidate drawn before any answer."""
        oracle = Counting(_correlated(seed))
        ones = run(sq_from_local(fixed_trials(point["epsilon"], point["draws"]), 0.01, point["trials"], seed), oracle)
        return {"asked": oracle.asked, "ones": ones}

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        kinds: dict[str, list[tuple[Point, Measurement]]] = {kind: [] for kind in ("draw", "tree", "queries", "fixed")}
        for point, measured in measurements:
            kinds[point["kind"]].append((point, measured))
        draws, trees = _merge(kinds["draw"]), _merge(kinds["tree"])
        exact = [row for row in trees if row["share"] == 0]
        counted = [_queries_row(point, measured) for point, measured in kinds["queries"]]
        fixed = [_fixed_row(point, measured) for point, measured in kinds["fixed"]]
        checks = [
            _within("One answer: total variation within the bound for every channel and every way to err", draws),
            _within("Two answers of one individual: the same", trees),
            Check(
                "Where the averages are exact, the two answers have exactly the real law",
                bool(exact) and all(row["worst"] == 0 for row in exact),
                f"largest distance {max((row['worst'] for row in exact), default=math.nan):.3g} over {sum(row['patterns'] for row in exact)} exact cases",
            ),
            Check(
                "The drawn transcripts follow the real law of two dependent answers",
                bool(counted) and all(row["distance"] <= row["limit"] for row in counted),
                "; ".join(
                    f"epsilon {row['epsilon']:g}: distance {row['distance']:.3f}, chance alone exceeds {row['limit']:.3f} once in 10^6" for row in counted
                ),
            ),
            Check(
                "About e^epsilon averages an answer",
                bool(counted) and all(row["low"] <= row["expected"] <= row["high"] for row in counted),
                "; ".join(f"epsilon {row['epsilon']:g}: {row['low']:.3f} to {row['high']:.3f}, predicted {row['expected']:.3f}" for row in counted),
            ),
            Check(
                "Non-interactive, with the trials fixed beforehand: the drawn answers miss by what the miss probability predicts",
                bool(fixed) and all(row["low"] <= row["expected"] <= row["high"] for row in fixed),
                "; ".join(f"{row['trials']} trials: share of ones {row['low']:.3f} to {row['high']:.3f}, predicted {row['expected']:.3f}" for row in fixed),
            ),
        ]
        return Finding(checks, _tables(draws, trees, counted, fixed), _figures(draws, counted))


def _merge(measured: list[tuple[Point, Measurement]]) -> list[dict[str, Any]]:
    """One row for each (epsilon, share): the worst of its batches."""
    rows: dict[tuple[float, float], dict[str, Any]] = {}
    for point, found in measured:
        row = rows.setdefault((point["epsilon"], point["share"]), {**point, **found, "worst": 0.0, "outside": 0, "patterns": 0})
        row["worst"] = max(row["worst"], found["worst"])
        row["outside"] += found["outside"]
        row["patterns"] += found["patterns"]
    return [rows[key] for key in sorted(rows)]


def _within(statement: str, rows: list[dict[str, Any]]) -> Check:
    outside, patterns = sum(row["outside"] for row in rows), sum(row["patterns"] for row in rows)
    worst = max((row["worst"] / row["bound"] for row in rows if row["bound"]), default=math.nan)
    return Check(statement, patterns > 0 and outside == 0, f"{outside} of {patterns} exact cases outside; the worst reaches {worst:.3f} of its bound")


def _queries_row(point: Point, measured: Measurement) -> dict[str, Any]:
    """Queries per reply with a normal interval (the number of trials is geometric), and the distance of the drawn transcripts from their law."""
    epsilon, n = point["epsilon"], point["draws"]
    growth, tau = math.exp(epsilon), measured["tolerance"]
    ceiling = growth * (1 + relative_error(2 * epsilon, tau)) / (1 - relative_error(epsilon, tau))
    mean = measured["asked"] / (2 * n)
    spread = Z * math.sqrt((growth * (growth - 1) + ceiling * (ceiling - 1)) / n) / 2
    distance = total_variation([count / n for count in measured["counts"]], two_questions_law(epsilon))
    limit = math.sqrt((4 * math.log(2) + math.log(1e6)) / (2 * n))  # Bretagnolle, Huber, Carol: Pr[distance >= t] <= 2^4 exp(-2 n t^2)
    return {
        "epsilon": epsilon, "draws": 2 * n, "mean": mean, "low": mean - spread, "high": mean + spread,
        "expected": (growth + ceiling) / 2, "distance": distance, "limit": limit,
    }  # fmt: skip


def _fixed_row(point: Point, measured: Measurement) -> dict[str, Any]:
    """The share of ones: p where a candidate was accepted, the law of a rejected candidate after a miss."""
    n, growth = point["draws"], math.exp(point["epsilon"])
    miss = miss_probability(point["epsilon"], point["trials"])
    p, q = 0.5, 1 / (growth + 1)
    rejected = (q - p / growth) / (1 - 1 / growth)
    expected = (1 - miss) * p + miss * rejected
    share = measured["ones"] / n
    spread = Z * math.sqrt(expected * (1 - expected) / n)
    return {
        "trials": point["trials"], "asked": measured["asked"] / n, "miss": miss, "share": share,
        "low": share - spread, "high": share + spread, "expected": expected,
    }  # fmt: skip


def _tables(draws: list[dict[str, Any]], trees: list[dict[str, Any]], counted: list[dict[str, Any]], fixed: list[dict[str, Any]]) -> list[Table]:
    columns = ("epsilon", "tolerance", "exact cases", "worst distance", "bound", "worst / bound")

    def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [
            (row["epsilon"], row["tau"], row["patterns"], row["worst"], row["bound"], row["worst"] / row["bound"] if row["bound"] else 0.0) for row in found
        ]

    return [
        Table("One answer: exact total variation against the bound", columns, rows(draws)),
        Table("Two answers of one individual: exact total variation against the bound", columns, rows(trees)),
        Table(
            "Averages asked an answer, interactive",
            ("epsilon", "answers", "averages an answer", "low", "high", "predicted", "e^epsilon"),
            [(row["epsilon"], row["draws"], row["mean"], row["low"], row["high"], row["expected"], math.exp(row["epsilon"])) for row in counted],
        ),
        Table(
            "Non-interactive, epsilon 1: trials fixed beforehand",
            ("averages an answer", "miss probability", "share of ones", "low", "high", "predicted"),
            [(row["asked"], row["miss"], row["share"], row["low"], row["high"], row["expected"]) for row in fixed],
        ),
    ]


def _figures(draws: list[dict[str, Any]], counted: list[dict[str, Any]]) -> list[Figure]:
    curves = []
    for epsilon in sorted({row["epsilon"] for row in draws}):
        rows = [row for row in draws if row["epsilon"] == epsilon]
        curves.append(Curve(f"worst found, epsilon {epsilon:g}", [row["tau"] for row in rows], [row["worst"] for row in rows]))
        curves.append(Curve(f"bound, epsilon {epsilon:g}", [row["tau"] for row in rows], [row["bound"] for row in rows], "bound"))
    epsilons = [row["epsilon"] for row in counted]
    measured = Curve("measured", epsilons, [row["mean"] for row in counted], "measured", [row["low"] for row in counted], [row["high"] for row in counted])
    return [
        Figure("distance", "Distance of a simulated answer from a real one", "tolerance of the averages", "total variation", curves, log_x=True, log_y=True),
        Figure(
            "queries",
            "Averages asked an answer",
            "epsilon of an answer",
            "averages",
            [measured, Curve("e^epsilon", epsilons, [math.exp(epsilon) for epsilon in epsilons], "theory")],
            log_y=True,
        ),
    ]


EXPERIMENT = LocalToSq()
