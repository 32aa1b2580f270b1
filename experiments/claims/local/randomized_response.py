"""Error against the number of clients: randomized response, local Laplace noise, and a trusted
curator."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.laplace import laplace_reports
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Claimed,
    Crossing,
    Curve,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Normal,
    Points,
    Positive,
    Row,
    Scale,
    Sheet,
    Table,
    Trial,
    about,
    about_log,
    cross_check,
    cross_check_shown,
    holds,
    measured,
    relative_error,
    slope,
    tabulate,
)
from local_dp.interaction import run
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records

SHARE = 0.3
LAPLACE, CURATOR = 1.4, 67  # times more and times less than randomized response

Way = Callable[[Records, float, Generator], float]


def _by_survey(records: Records, epsilon: float, generator: Generator) -> float:
    """The shipped survey: randomized response, tallies drawn from their law."""
    oracle = AggregateOracle(Rows(records), generator, epsilon)
    return float(run(Survey().algorithm(epsilon, len(records)), oracle).value)


def _by_laplace(records: Records, epsilon: float, generator: Generator) -> float:
    """Every client adds Lap(2/eps) to +1 or -1; the mean, back on the 0..1 scale."""
    return (float(laplace_reports(2.0 * records["yes"] - 1.0, epsilon, generator).mean()) + 1) / 2


def _by_curator(records: Records, epsilon: float, generator: Generator) -> float:
    """A trusted curator sees all records and adds Lap(1/(eps n)) to their share: one record moves
    it by 1/n."""
    return float(records["yes"].mean() + generator.laplace(scale=1 / (epsilon * len(records))))


WAYS: dict[str, Way] = {
    "randomized response": _by_survey,
    "local Laplace": _by_laplace,
    "curator": _by_curator,
}
SLOPES = {"randomized response": -0.5, "local Laplace": -0.5, "curator": -1.0}


def _people(n: int) -> Records:
    answers = np.zeros(n, dtype=np.uint8)
    answers[: round(SHARE * n)] = 1
    return Records({"yes": answers})


class Users(Row):
    """The shipped survey with every client answering, beside its law: how often it is within 1.645
    predicted errors, which is 90 % of the time."""

    epsilon: float
    n: int

    def measure(self, seed: int) -> Crossing:
        records = _people(self.n)
        truth = float(records["yes"].mean())
        margin = 1.645 * error_by_law("randomized response", self.epsilon, self.n)

        def close(share: Any, people: Population) -> bool:
            return abs(float(share.value) - truth) <= margin

        def trial() -> Trial:
            algorithm = Survey().algorithm(self.epsilon, self.n)
            return Trial(algorithm, lambda own: Rows(records), close, self.n, self.epsilon)

        return cross_check(trial, seed, users=1600, laws=6400)


class MeanSquare(Row):
    mean_square: float  # of the error against the clients' own share
    relative_error: float  # its standard error, as a share of it


class Setting(Row):
    """A mechanism among n clients, in independent runs."""

    way: str
    epsilon: float
    n: int
    trials: int

    def __str__(self) -> str:
        return f"{self.way}, epsilon {self.epsilon:g}, n = {self.n}"

    @property
    def law_error(self) -> float:
        """The standard error of the logarithm of a root mean square: squares of normal errors vary
        by sqrt 2 of their mean, of one Laplace error by sqrt 5.

        The mean of n errors has a fourth moment that is larger by 3 / n at most. On a logarithmic
        scale Student's law with a quarter of the trials as degrees fits: from 1e-5 to 1e-8 both
        tails together are as heavy as chi-squared's, and as those of squared Laplace errors.
        """
        moment = 5 if self.way == "curator" else 2 + 3 / self.n
        return math.sqrt(moment / self.trials) / 2

    @property
    def error(self) -> float:
        return error_by_law(self.way, self.epsilon, self.n)

    def off(self, row: "Line") -> Positive:
        """The measured error in units of the predicted one."""
        return Positive(row.rmse / self.error, self.law_error, self.trials / 4)


@dataclass(frozen=True)
class Line:
    """The root mean square error at n, and the standard error of its logarithm."""

    n: int
    rmse: float
    spread: float

    @property
    def interval(self) -> tuple[float, float]:
        return about_log(self.rmse, self.spread)


Lines = dict[tuple[float, str], list[Line]]  # by epsilon and mechanism, in the order of n


def error_by_law(way: str, epsilon: float, n: int) -> float:
    """The root mean square error of the share of the n clients at hand: the noise of privacy
    alone."""
    if way == "curator":
        return math.sqrt(2) / (epsilon * n)
    variance = response_gain(epsilon) ** 2 - 1 if way == "randomized response" else 8 / epsilon**2
    return math.sqrt(variance / (4 * n))


@dataclass(frozen=True)
class RandomizedResponse(Experiment):
    """`ways` are the mechanisms under test; a wrong one must make the verdict "not shown"."""

    name = "randomized-response"
    chapter = LOCAL_MODEL
    title = "Without a trusted curator, ten times the accuracy takes a hundred times the people"
    claim = (
        "Estimate the share of yes among n people. If everybody randomizes their own answer, the "
        "error falls as 1 over the square root of n; if a trusted curator collects the true "
        "answers and adds noise once, it falls as 1/n. Randomized response, a coin flip, beats "
        "adding Laplace noise to every answer."
    )
    source = "KLNRS 2008, Sections 4.1 and 4.3; Warner 1965; limits 1"
    ways: dict[str, Way] = field(default_factory=lambda: dict(WAYS))

    def points(self, scale: Scale) -> Points:
        trials, sizes, epsilons = 4500, [100, 1000, 10_000], [0.5, 1.0]
        if scale == "full":
            trials, sizes = 6000, [100, 300, 1000, 3000, 10_000, 30_000, 100_000]
            epsilons = [0.25, 0.5, 1.0, 2.0]

        def runs(way: str, n: int) -> int:
            if way == "curator":
                return 3 * trials  # a single Laplace draw has a heavy tail
            return min(trials, 10**8 // n) if way == "local Laplace" else trials

        points: Points = [Users(1.0, 200)]
        for epsilon, way, n in product(epsilons, SLOPES, sizes):
            points.append(Setting(way, epsilon, n, runs(way, n)))
        return points

    def measure(self, point: Users | Setting, seed: int) -> Crossing | MeanSquare:
        if isinstance(point, Users):
            return point.measure(seed)
        way, epsilon, n = point.way, point.epsilon, point.n
        generator = default_rng([seed, list(SLOPES).index(way), round(1000 * epsilon), n])
        records, estimate = _people(n), self.ways[way]
        truth = float(records["yes"].mean())
        shares = (estimate(records, epsilon, generator) for _ in range(point.trials))
        squares = np.array([(share - truth) ** 2 for share in shares])
        return MeanSquare(float(squares.mean()), relative_error(squares))

    def finding(self, sheet: Sheet) -> Finding:
        lines: Lines = {}
        off: dict[Setting, Positive] = {}
        for point, square in sorted(sheet[Setting], key=lambda each: each[0].n):
            # the logarithm of a root is half as far off as the mean square is, relatively
            row = Line(point.n, math.sqrt(square.mean_square), square.relative_error / 2)
            lines.setdefault((point.epsilon, point.way), []).append(row)
            off[point] = point.off(row)
        slopes = {key: line_slope(rows) for key, rows in lines.items()}
        ratios = {str(point): each for point, each in off.items()}
        statement = "Every measured error is the one that the formula predicts (in units of it)"
        checks = [_slope_check(off), measured(statement, ratios, 1, 1), _order_check(off)]
        for _, crossing in sheet[Users]:
            checks.append(cross_check_shown("The survey of 200 people", crossing, 0.88))
        notes = [
            (
                "Errors are against the share among the n people at hand, so that they show the "
                "cost of privacy alone; sampling adds its own 1/sqrt(n)."
            )
        ]
        tables = _tables(lines, slopes)
        epsilons = sorted({epsilon for epsilon, _ in lines})
        figures = [_figure(tables[1], epsilon) for epsilon in epsilons]
        return Finding(checks, tables, figures, notes, headline=_headline(lines))


def line_slope(rows: list[Line]) -> tuple[float, float]:
    """The slope of ln error on ln n, and its standard error, from the measured errors and their
    spreads."""
    columns = zip(*((row.n, row.rmse, row.spread) for row in rows), strict=True)
    n, error, spread = (np.array(column) for column in columns)
    return slope(np.log(n), np.log(error), spread)


def _headline(lines: Lines) -> str:
    """At the greatest epsilon, with the most people."""
    epsilon = max(epsilon for epsilon, _ in lines)
    last = {way: rows[-1] for (own, way), rows in lines.items() if own == epsilon}
    errors = ", ".join(f"{row.rmse:.2g} ({way})" for way, row in last.items())
    most = max(row.n for row in last.values())
    return f"At epsilon {epsilon:g} a share among {most:,.0f} people is off by {errors}."


def _slope_check(off: dict[Setting, Positive]) -> Check:
    """Of the measured errors: the slope of what they are off, beside that of the formula."""
    slopes = {}
    for way, epsilon in sorted({(point.way, point.epsilon) for point in off}):
        own = []
        for point, each in off.items():
            if (point.way, point.epsilon) == (way, epsilon):
                own.append((math.log(point.n), math.log(each.value), each.error))
        (value, error), power = slope(*np.array(own).T), SLOPES[way]
        claim = Claimed(Normal(power + value, error), power, power)
        slopes[f"{way}, epsilon {epsilon:g}"] = claim
    return holds(
        "Errors fall as n to the power -1/2 where everybody randomizes, and as n to the power "
        "-1 with a curator",
        slopes,
    )


def _order_check(off: dict[Setting, Positive]) -> Check:
    """With the most people. The formulas give 1.41 and more, and 67.8 and more."""
    most = max(point.n for point in off)
    errors = {
        (point.way, point.epsilon): each * point.error
        for point, each in off.items()
        if point.n == most
    }
    claims = {}
    for epsilon in sorted({epsilon for _, epsilon in errors}):
        coin, noise, curator = (errors[way, epsilon] for way in SLOPES)
        claims[f"Laplace at epsilon {epsilon:g}"] = Claimed(noise / coin, LAPLACE)
        claims[f"curator at epsilon {epsilon:g}"] = Claimed(curator / coin, high=1 / CURATOR)
    statement = (
        f"Local Laplace noise errs at least {LAPLACE:g} times as much as randomized response, and "
        f"a curator of {most:,} people {CURATOR} times less"
    )
    return holds(statement, claims)


def _tables(lines: Lines, slopes: dict[tuple[float, str], tuple[float, float]]) -> list[Table]:
    errors: list[tuple[Any, ...]] = []
    for key, rows in sorted(lines.items()):
        for row in rows:
            law = error_by_law(key[1], key[0], row.n)
            errors.append((*key, row.n, row.rmse, *row.interval, law))
    fits = [(*key, value, *about(value, spread)) for key, (value, spread) in sorted(slopes.items())]
    return [
        tabulate(
            "Slopes of ln error on ln n, with 95 % intervals",
            "epsilon | mechanism | slope | low | high",
            fits,
        ),
        tabulate(
            "Root mean square error of the share, with 95 % intervals",
            "epsilon | mechanism | n | error | low | high | predicted",
            errors,
        ),
    ]


def _figure(errors: Table, epsilon: float) -> Figure:
    own, curves = errors.where("epsilon", epsilon), list[Curve]()
    for way in SLOPES:
        (theory,) = own.curves("mechanism | n | predicted", way, style="theory")
        curves += [
            *own.curves("mechanism | n | error | low | high", way),
            replace(theory, label=f"{way}, predicted"),
        ]
    title = f"Error of an estimated share against the number of people, epsilon {epsilon:g}"
    return LogLogFigure(
        f"error-epsilon-{epsilon:g}", title, "people", "root mean square error", curves, "one-round"
    )


EXPERIMENT = RandomizedResponse()
