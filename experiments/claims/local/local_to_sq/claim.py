"""Statistical queries simulate local randomizers: the exact distance on small domains, and how many queries it takes."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.bounds.simulations import conditional_draw_distance, draw_distance, relative_error
from local_dp.experiments.claims.local.local_to_sq.extremal import Accept, Tree, draw_laws, extremal_channel, mixture, random_law, within_draw_bound
from local_dp.experiments.claims.local.local_to_sq.laws import Drawn, OneReply, Replies, TwoReplies, law_points, law_table, laws_drawn
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.checks import drawn, measured
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind, table
from local_dp.experiments.lab.cross_check import Refusal
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.intervals import about_log
from local_dp.experiments.lab.statistics import Positive
from local_dp.theorems.likelihood import acceptance, total_variation


@dataclass(frozen=True)
class Distances:
    """Over all patterns of errors of size tau: the worst total variation, its bound, and how many of the patterns exceed that."""

    tau: float
    worst: float
    bound: float
    outside: int
    patterns: int

    @property
    def ratio(self) -> float:
        return self.worst / self.bound if self.bound else 0.0


@dataclass(frozen=True)
class Draw:
    """Random channels with |Z| <= 6 and |W| <= 5, all sign patterns. `share` is the tolerance in units of the one where tau' = 1, or of 0.9."""

    epsilon: float
    share: float
    channels: int
    batch: int

    def measure(self, seed: int, accept: Accept) -> Distances:
        generator = np.random.default_rng([seed, 1, self.batch, round(1000 * self.epsilon)])
        growth = Fraction(math.exp(self.epsilon)).limit_denominator(1000)
        tau = Fraction(self.share).limit_denominator(100) * min(2 / (growth**2 - 1), Fraction(9, 10))
        distances: list[Fraction] = []
        for _ in range(self.channels):
            values, reports = int(generator.integers(2, 7)), int(generator.integers(2, 6))
            channel, shares = extremal_channel(growth, values, reports, generator), random_law(values, generator)
            truth = mixture(shares, channel)
            distances += (total_variation(law, truth) for law in draw_laws(channel, shares, growth, tau, accept))
        outside = sum(not within_draw_bound(distance, growth, tau) for distance in distances)
        return Distances(float(tau), float(max(distances)), draw_distance(math.log(growth), float(tau)), outside, len(distances))


@dataclass(frozen=True)
class Trees:
    """Random trees of two replies, |Z| <= 5, 2 reports and then 3; all sign patterns of all eight answers."""

    epsilon: float
    share: float
    trees: int
    batch: int

    def measure(self, seed: int, accept: Accept) -> Distances:
        generator = np.random.default_rng([seed, 2, self.batch, round(1000 * self.epsilon)])
        one, two = (Fraction(math.exp(self.epsilon * part)).limit_denominator(100) for part in (0.6, 0.4))
        tau = Fraction(self.share).limit_denominator(100) * min(2 / ((one * two) ** 2 - 1), Fraction(9, 10))
        bound = draw_distance(math.log(one), float(tau)) + conditional_draw_distance(math.log(one * two), float(tau))
        distances: list[Fraction] = []
        for _ in range(self.trees):
            values = int(generator.integers(2, 6))
            second = [extremal_channel(two, values, 3, generator) for _ in range(2)]
            tree = Tree(extremal_channel(one, values, 2, generator), second, random_law(values, generator), (one, two))
            truth = tree.law()
            distances += (total_variation(law, truth) for law in tree.simulated(tau, accept))
        return Distances(float(tau), float(max(distances)), bound, sum(distance > bound for distance in distances), len(distances))


@dataclass(frozen=True)
class Queries:
    """Queries per answer, with the standard error of their logarithm, and the predicted number."""

    epsilon: float
    answers: int
    mean: Positive
    predicted: float

    @property
    def ends(self) -> tuple[float, float]:
        """Of the 95 % interval."""
        return about_log(self.mean.value, self.mean.error)


Place: TypeAlias = Draw | Trees | Replies
Result: TypeAlias = Distances | Drawn | Refusal
Merged: TypeAlias = Rows[Draw | Trees, Distances]


@dataclass(frozen=True)
class LocalToSq(Experiment[Place, Result]):
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

    def points(self, scale: Scale) -> list[Place]:
        full = scale == "full"
        batches = range(10 if full else 1)
        return [
            *(
                Draw(epsilon, share, 15, batch)
                for epsilon in ((0.1, 0.5, 1.0, 2.0, 3.0) if full else (0.1, 1.0, 3.0))
                for share in ((0.05, 0.25, 1.0) if epsilon < 2 else (0.05, 0.25, 1.0, 4.0))
                for batch in batches
            ),
            *(
                Trees(epsilon, share, 6, batch)
                for epsilon in ((0.5, 1.0, 2.0) if full else (0.5, 2.0)) for share in (0.0, 0.5, 0.95) for batch in batches
            ),
            *law_points(scale),
        ]  # fmt: skip

    def measure(self, point: Place, seed: int) -> Result:
        if isinstance(point, (Draw, Trees)):
            return point.measure(seed, self.accept)
        return point.measure(seed, same=self.same) if isinstance(point, TwoReplies) else point.measure(seed)

    def conclude(self, measurements: Rows[Place, Result], scale: Scale) -> Finding:
        draws, trees = _merge(of_kind(measurements, Draw)), _merge(of_kind(measurements, Trees))
        exact = [distances for point, distances in trees if point.share == 0]
        pairs = of_kind(measurements, TwoReplies)
        one, two, refused = laws_drawn(of_kind(measurements, OneReply), pairs)
        queries = [_queries(point, found.asked) for point, found in pairs if (point.people, point.bias, point.tier) == ("correlated", "exact", "sq")]
        checks = [
            _within("The rejection step, one answer: total variation within the bound for every channel and every way to err", draws),
            _within("The rejection step, two answers of one individual: the same", trees),
            Check(
                "Where the averages are exact, the rejection step gives two answers exactly the real law",
                bool(exact) and all(each.worst == 0 for each in exact),
                f"largest distance {max((each.worst for each in exact), default=math.nan):.3g} over {sum(each.patterns for each in exact)} exact cases",
            ),
            drawn(
                "The shipped simulation draws one answer from its law: the real one where the averages are exact, the predicted one where they err, also where "
                "an estimate must be moved back and where no candidate is accepted in time", one, "; ".join(refused), also=not refused,
            ),
            drawn("It draws two answers of one individual, the second question chosen by the first answer, from their joint law, as real clients do", two),
            measured(
                "It asks e^epsilon averages for a first answer, and (1 + tau')/(1 - tau') times that for a second (in units of the mean of both)",
                {f"epsilon {each.epsilon:g}": each.mean / each.predicted for each in queries}, 1, 1,
            ),
        ]  # fmt: skip
        headline = _headline([*draws, *trees], queries)
        return Finding(checks, [*_tables(draws, trees, queries), law_table(one | two)], _figures(draws, queries), headline=headline)


def _merge(rows: Merged) -> Merged:
    """One row for each (epsilon, share): the worst of its batches."""
    batches: dict[tuple[float, float], Merged] = {}
    for point, distances in rows:
        batches.setdefault((point.epsilon, point.share), []).append((point, distances))
    merged = []
    for _, each in sorted(batches.items()):
        (point, last), own = each[-1], [distances for _, distances in each]
        worst, outside, patterns = max(one.worst for one in own), sum(one.outside for one in own), sum(one.patterns for one in own)
        merged.append((point, Distances(last.tau, worst, last.bound, outside, patterns)))
    return merged


def _outside(rows: Merged) -> tuple[int, int]:
    return sum(distances.outside for _, distances in rows), sum(distances.patterns for _, distances in rows)


def _within(statement: str, rows: Merged) -> Check:
    outside, patterns = _outside(rows)
    worst = max((distances.ratio for _, distances in rows if distances.bound), default=math.nan)
    printed = all(distances.worst <= distances.bound * (1 + 1e-12) for _, distances in rows)  # `outside` may be decided by another way to the bound
    return Check(
        statement, patterns > 0 and outside == 0 and printed, f"{outside} of {patterns} exact cases outside; the worst reaches {worst:.3f} of its bound"
    )


def _queries(point: TwoReplies, asked: int) -> Queries:
    """Each answer asks a geometric number, independent of the others: the variance is known, and the mean of thousands is all but normal."""
    growth, n = math.exp(point.epsilon), point.draws
    ceiling = growth * (1 + relative_error(2 * point.epsilon, point.tolerance)) / (1 - relative_error(point.epsilon, point.tolerance))
    error = math.sqrt((growth * (growth - 1) + ceiling * (ceiling - 1)) / n) / (growth + ceiling)
    return Queries(point.epsilon, 2 * n, Positive(asked / (2 * n), error), (growth + ceiling) / 2)


def _headline(rows: Merged, queries: list[Queries]) -> str:
    outside, patterns = _outside(rows)
    averages = f"{queries[-1].mean.value:.2f} averages at epsilon {queries[-1].epsilon:g}" if queries else "an unknown number of averages"
    return f"A simulated answer takes {averages}. In {outside} of {patterns:,} exact cases its law is farther from a real answer's than the bound allows."


def _tables(draws: Merged, trees: Merged, queries: list[Queries]) -> list[Table]:
    def distances(title: str, rows: Merged) -> Table:
        columns = ("epsilon", "tolerance", "exact cases", "worst distance", "bound", "worst / bound")
        return Table(title, columns, [(point.epsilon, each.tau, each.patterns, each.worst, each.bound, each.ratio) for point, each in rows])

    return [
        distances("One answer: exact total variation against the bound", draws),
        distances("Two answers of one individual: exact total variation against the bound", trees),
        table(
            "Averages asked an answer, interactive",
            (
                {
                    "epsilon": each.epsilon, "answers": each.answers, "averages an answer": each.mean.value, "low": each.ends[0], "high": each.ends[1],
                    "predicted": each.predicted, "e^epsilon": math.exp(each.epsilon),
                }
                for each in queries
            ),
        ),
    ]  # fmt: skip


def _figures(draws: Merged, queries: list[Queries]) -> list[Figure]:
    curves = []
    for epsilon in sorted({point.epsilon for point, _ in draws}):
        rows = [distances for point, distances in draws if point.epsilon == epsilon]
        curves.append(curve(f"worst found, epsilon {epsilon:g}", [(each.tau, each.worst) for each in rows]))
        curves.append(curve(f"bound, epsilon {epsilon:g}", [(each.tau, each.bound) for each in rows], "bound"))
    averages = [
        curve("measured", [(each.epsilon, each.mean.value, *each.ends) for each in queries]),
        curve("e^epsilon", [(each.epsilon, math.exp(each.epsilon)) for each in queries], "theory"),
    ]
    title = "Distance of a simulated answer from a real one"
    return [
        Figure("distance", title, "tolerance of the averages", "total variation", curves, log_x=True, log_y=True),
        Figure("queries", "Averages asked an answer", "epsilon of an answer", "averages", averages, log_y=True),
    ]


EXPERIMENT = LocalToSq()
