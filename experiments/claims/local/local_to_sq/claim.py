"""Statistical queries simulate local randomizers: the exact distance on small domains, and how many queries it takes."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from local_dp.bounds.simulations import conditional_draw_distance, draw_distance, relative_error
from local_dp.experiments.claims.local.local_to_sq.extremal import Accept, Tree, draw_laws, extremal_channel, mixture, random_law, within_draw_bound
from local_dp.experiments.claims.local.local_to_sq.laws import law_check, law_points, law_rows, law_table, measure_law, measure_pair, pair_tolerance
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.theorems.likelihood import acceptance, total_variation

Z = 4.0  # a two-sided normal interval that misses with probability 6e-5, so that a true claim is hardly ever called not shown


@dataclass(frozen=True)
class LocalToSq(Experiment[Point, Measurement]):
    """`accept` and `same` are the protocol under test; a wrong one must make the verdict "not shown"."""

    name: ClassVar[str] = "local-to-sq"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
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
        points += law_points(scale)
        return points

    def measure(self, point: Point, seed: int) -> Measurement:
        kinds = {"draw": self._draw, "tree": self._tree, "law": measure_law, "pair": self._pair}
        return kinds[point["kind"]](point, seed)

    def _pair(self, point: Point, seed: int) -> Measurement:
        return measure_pair(point, seed, same=self.same)

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

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        kinds: dict[str, list[tuple[Point, Measurement]]] = {kind: [] for kind in ("draw", "tree", "law", "pair")}
        for point, measured in measurements:
            kinds[point["kind"]].append((point, measured))
        draws, trees = _merge(kinds["draw"]), _merge(kinds["tree"])
        exact = [row for row in trees if row["share"] == 0]
        one, two = law_rows(kinds["law"], kinds["pair"])
        counted = [
            _queries_row(point, found) for point, found in kinds["pair"] if (point["people"], point["bias"], point["tier"]) == ("correlated", "exact", "sq")
        ]
        checks = [
            _within("The rejection step, one answer: total variation within the bound for every channel and every way to err", draws),
            _within("The rejection step, two answers of one individual: the same", trees),
            Check(
                "Where the averages are exact, the rejection step gives two answers exactly the real law",
                bool(exact) and all(row["worst"] == 0 for row in exact),
                f"largest distance {max((row['worst'] for row in exact), default=math.nan):.3g} over {sum(row['patterns'] for row in exact)} exact cases",
            ),
            law_check(
                "The shipped simulation draws one answer from its law: the real one where the averages are exact, the predicted one where they err, "
                "also where an estimate must be moved back and where no candidate is accepted in time",
                one,
            ),
            law_check("It draws two answers of one individual, the second question chosen by the first answer, from their joint law, as real clients do", two),
            Check(
                "It asks e^epsilon averages for a first answer, and (1 + tau')/(1 - tau') times that for a second",
                bool(counted) and all(row["low"] <= row["expected"] <= row["high"] for row in counted),
                "; ".join(f"epsilon {row['epsilon']:g}: {row['low']:.3f} to {row['high']:.3f} an answer, predicted {row['expected']:.3f}" for row in counted),
            ),
        ]
        headline = _headline([*draws, *trees], counted)
        return Finding(checks, [*_tables(draws, trees, counted), law_table([*one, *two])], _figures(draws, counted), headline=headline)


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
    printed = all(row["worst"] <= row["bound"] * (1 + 1e-12) for row in rows)  # `outside` may be decided by another way to the bound
    return Check(
        statement, patterns > 0 and outside == 0 and printed, f"{outside} of {patterns} exact cases outside; the worst reaches {worst:.3f} of its bound"
    )


def _queries_row(point: Point, measured: Measurement) -> dict[str, Any]:
    """Queries per answer with a normal interval: the number of trials is geometric."""
    epsilon, n = point["epsilon"], point["draws"]
    growth, tau = math.exp(epsilon), pair_tolerance(point)
    ceiling = growth * (1 + relative_error(2 * epsilon, tau)) / (1 - relative_error(epsilon, tau))
    mean = measured["asked"] / (2 * n)
    spread = Z * math.sqrt((growth * (growth - 1) + ceiling * (ceiling - 1)) / n) / 2
    return {"epsilon": epsilon, "draws": 2 * n, "mean": mean, "low": mean - spread, "high": mean + spread, "expected": (growth + ceiling) / 2}


def _headline(rows: list[dict[str, Any]], counted: list[dict[str, Any]]) -> str:
    outside, patterns = sum(row["outside"] for row in rows), sum(row["patterns"] for row in rows)
    asked = f"{counted[-1]['mean']:.2f} averages at epsilon {counted[-1]['epsilon']:g}" if counted else "nothing"
    return f"A simulated answer asks {asked}; {outside} of {patterns:,} exactly computed ones are farther from the real answer's law than is proven."


def _tables(draws: list[dict[str, Any]], trees: list[dict[str, Any]], counted: list[dict[str, Any]]) -> list[Table]:
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
