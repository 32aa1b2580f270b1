"""The shuffled model: between nobody trusted and one curator, a party that only mixes reports."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Claimed,
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
    curve,
    curve_of,
    every,
    grid,
    holds,
    measured,
    relative_error,
    table_of,
    tabulate,
    within,
)
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import amplified, rows_of, worst_delta
from local_dp.shuffle.histogram import Target, multi_message, single_message

LOCAL, DELTA, K = 1.0, 1e-6, 16
RR, KARY, HADAMARD = "randomized response", f"{K}-ary response", "one-bit Hadamard"
TARGET = Target(10_000, 1.0, DELTA)
ALONE, ONE, MANY, CURATOR = "local", "shuffled, one report", "shuffled, blanket messages", "curator"
MODELS = (ALONE, ONE, MANY, CURATOR)
SHARES = np.arange(K, 0, -1) / (K * (K + 1) / 2)  # of the symbols, none alike
CLIENTS = (1000, 10_000, 100_000)
RUNS = {"quick": 4000, "full": 40_000}
SMALL = ((2, 4, 0.1), (2, 10, 0.01), (3, 4, 0.05), (4, 3, 0.02))
# times the error of the next of MODELS: 28.4, 1.34 and 2.33 by the closed forms
MORE = {ALONE: 28, ONE: 1.33, MANY: 2.3}
RULES = ("closed form", "clones", "variation ratio")


def randomizer(name: str) -> FiniteChannel:
    """One of the three, at the local epsilon."""
    if name == RR:
        return BinaryRR(LOCAL)
    return GRR(LOCAL, k=K) if name == KARY else Hadamard(LOCAL, k=K)


class Epsilons(Row):
    uppers: dict[str, float]  # by rule
    lower: float
    upper: float  # the best one
    exact: bool  # whether the ends are those of one worst data set


class Bounds(Row):
    """Every bound of n shuffled reports of a randomizer."""

    name: str
    n: int

    def measure(self, seed: int) -> Epsilons:
        bounds = amplified(randomizer(self.name), self.n, DELTA)
        return Epsilons(dict(bounds.uppers), bounds.lower, bounds.upper, bounds.exact)


class WorstDeltas(Row):
    uppers: dict[str, float]  # over all data sets, at each upper bound on epsilon
    lower: float  # and at the lower one
    least: float  # the lower bound on epsilon itself


class Enumerated(Row):
    """All data sets of a few clients, in fractions: no more than delta at the upper bounds, no less
    at the lower."""

    k: int
    n: int
    delta: float

    def measure(self, seed: int) -> WorstDeltas:
        small: FiniteChannel = BinaryRR(LOCAL) if self.k == 2 else GRR(LOCAL, k=self.k)
        bounds = amplified(small, self.n, self.delta)
        ends = [*bounds.uppers.values(), bounds.lower]
        deltas = worst_delta(rows_of(small), self.n, [Fraction(math.exp(end)) for end in ends])
        uppers = {rule: float(delta) for rule, delta in zip(bounds.uppers, deltas, strict=False)}
        return WorstDeltas(uppers, float(deltas[-1]), bounds.lower)


class Squares(Row):
    """The mean square of errors over symbols and runs, its standard error as a share of it, and the
    mean square that theory expects."""

    mean_square: float
    relative_error: float
    runs: int
    expected: float

    @property
    def predicted(self) -> float:
        return math.sqrt(self.expected)

    @property
    def root(self) -> Positive:
        """The root mean square. A run's mean over the symbols is about chi-squared with K - 1
        degrees of freedom."""
        return Positive(math.sqrt(self.mean_square), self.relative_error / 2, self.runs - 1)


class Errors(Row):
    """A histogram in one model, run by run, of the same people in every run."""

    model: str
    runs: int

    def measure(self, seed: int) -> Squares:
        generator = default_rng([seed, MODELS.index(self.model)])
        counts = np.round(SHARES * TARGET.clients).astype(np.int64)
        counts[0] += TARGET.clients - counts.sum()
        method = {CURATOR: _curator, MANY: _many}.get(self.model, _reports)
        draw, expected = method(self.model, counts)
        shares = counts / TARGET.clients
        squares = np.array([((draw(generator) - shares) ** 2).mean() for _ in range(self.runs)])
        return Squares(float(squares.mean()), relative_error(squares), self.runs, expected)


def _reports(model: str, counts: Any) -> Any:
    oracle = GRR(TARGET.epsilon, k=K) if model == ALONE else single_message("grr", K, TARGET)
    assert isinstance(oracle, GRR)
    by_symbol, n = dict(enumerate(counts.tolist())), TARGET.clients
    p, q = oracle.truth / oracle.total, oracle.other / oracle.total
    variance = p * (1 - p) + (K - 1) * q * (1 - q)

    def draw(generator: Generator) -> Any:
        return oracle.estimate(oracle.draw_tally(by_symbol, generator)).value

    return draw, variance / (K * n * (p - q) ** 2)


def _many(model: str, counts: Any) -> Any:
    histogram = multi_message(K, TARGET)

    def draw(generator: Generator) -> Any:
        return histogram.estimate(histogram.draw_tally(counts, generator)).value

    return draw, histogram.variance(TARGET.clients)


def _curator(model: str, counts: Any) -> Any:
    """Discrete Laplace noise on each count, of which a replaced record changes two."""
    n, ratio = TARGET.clients, math.exp(-TARGET.epsilon / 2)

    def draw(generator: Generator) -> Any:
        return (counts + generator.geometric(1 - ratio, K) - generator.geometric(1 - ratio, K)) / n

    return draw, 2 * ratio / (1 - ratio) ** 2 / n**2


class Shuffled(Experiment):
    name = "shuffled"
    chapter = LOCAL_MODEL
    title = "A shuffler: the step between local and central"
    claim = (
        "A trusted shuffler mixes all reports and hides their senders, so each report hides among "
        "the others: its loss falls about as 1 / sqrt(n). The loss is known from both sides, for "
        "randomized response exactly, over all data sets. A histogram at the same epsilon, with a "
        "small delta, errs far less than without a shuffler. With blanket messages it errs almost "
        "as little as a curator's."
    )
    source = "Feldman, McMillan, Talwar 2021; Balle, Bell, Gascon, Nissim 2019; Cheu, Zhilyaev 2022"

    def points(self, scale: Scale) -> Points:
        points = grid(Bounds, (RR, KARY, HADAMARD), CLIENTS)
        points += [Enumerated(*small) for small in SMALL]
        return points + grid(Errors, MODELS, [RUNS[scale]])

    def finding(self, sheet: Sheet) -> Finding:
        bounds, errors = sheet[Bounds], sheet[Errors]
        checks = [
            _check_exact(bounds),
            _check_power(bounds),
            _check_enumerated(sheet[Enumerated]),
            _check_errors(errors),
            _check_models(errors),
        ]
        title = f"Errors of a histogram of {TARGET.clients:,} clients at epsilon {TARGET.epsilon:g}"
        tables = [
            _bounds_table(bounds),
            table_of(title, "model | root mean square = root.value | predicted", errors),
        ]
        figures = [_bounds_figure(bounds), _errors_figure(errors)]
        return Finding(checks, tables, figures, _NOTES, headline=_headline(bounds))


_NOTES = [
    (
        f"A report loses {LOCAL:g}; delta is {DELTA:g}. Bounds are rounded outwards. Neighbours "
        "differ in one client's value."
    ),
    (
        "The shuffler is trusted to mix and to keep silent, and all clients to answer. Blanket "
        "messages leave no privacy from the shuffler itself."
    ),
]


def _bounds_table(bounds: Rows[Bounds, Epsilons]) -> Table:
    rows = []
    for point, each in bounds:
        uppers = (each.uppers[rule] for rule in RULES)
        rows.append((point.name, point.n, *uppers, each.upper, each.lower))
    headings = f"randomizer | reports | {' | '.join(RULES)} | best upper bound | lower bound"
    return tabulate("Epsilon after shuffling", headings, rows)


def _at(bounds: Rows[Bounds, Epsilons], name: str) -> dict[int, Epsilons]:
    return {point.n: epsilons for point, epsilons in bounds if point.name == name}


def _headline(bounds: Rows[Bounds, Epsilons]) -> str:
    loss = _at(bounds, RR)[10_000].upper
    return (
        f"Among 10,000 shuffled reports, randomized response of epsilon {LOCAL:g} loses "
        f"{loss:.4g} on the worst data set, at delta {DELTA:g}."
    )


def _check_exact(bounds: Rows[Bounds, Epsilons]) -> Check:
    gains, exact = {}, True
    for n, each in _at(bounds, RR).items():
        gains[f"n = {n:,}, times less"] = each.uppers["variation ratio"] / each.upper
        exact &= each.exact and each.upper <= each.lower * (1 + 1e-5)
    return within(
        "for randomized response the worst of all data sets is found, and loses less than the "
        "best general bound says",
        gains,
        math.nextafter(1.1, 2),
        spec=".3f",
        also=exact,
    )


def _check_power(bounds: Rows[Bounds, Epsilons]) -> Check:
    powers, (first, *_, last) = {}, CLIENTS
    for name in (RR, KARY):
        if each := _at(bounds, name):
            fall = math.log(each[last].upper / each[first].upper)
            powers[f"{name}, power"] = fall / math.log(last / first)
    return within("the loss falls about as 1 / sqrt(n)", powers, -0.62, -0.48, spec=".3f")


def _check_enumerated(rows: Rows[Enumerated, WorstDeltas]) -> Check:
    facts = []
    for point, each in rows:
        below = all(delta <= point.delta * (1 + 1e-9) for delta in each.uppers.values())
        above = each.least == 0 or each.lower >= point.delta * (1 - 1e-9)
        share = each.lower / point.delta
        text = f"k = {point.k}, n = {point.n}: {share:.4g} of delta at the lower end"
        facts.append((below and above, text))
    return every(
        "enumerated over all data sets of a few clients, no upper bound is too low and no "
        "lower one too high",
        facts,
    )


def _check_errors(errors: Rows[Errors, Squares]) -> Check:
    ratios = {point.model: squares.root / squares.predicted for point, squares in errors}
    return measured(
        "every histogram errs as its closed form says (root mean square errors in units of it)",
        ratios,
        1,
        1,
        also=len(errors) == len(MODELS),
    )


def _check_models(errors: Rows[Errors, Squares]) -> Check:
    roots = {point.model: squares.root for point, squares in errors}
    times = {}
    for model, other in pairwise(MODELS):
        if {model, other} <= roots.keys():
            claim = Claimed(roots[model] / roots[other], MORE[model])
            times[f"{model} against {other}"] = claim
    statement = (
        f"a curator errs least, blanket messages at least {MORE[MANY]} times as much, one "
        f"shuffled report {MORE[ONE]} times as much as they, and the local model {MORE[ALONE]} "
        "times as much as that"
    )
    return holds(statement, times)


def _bounds_figure(bounds: Rows[Bounds, Epsilons]) -> Figure:
    rows = {name: [row for row in bounds if row[0].name == name] for name in (RR, KARY, HADAMARD)}
    curves = []
    for rule in RULES:
        uppers = [(point.n, each.uppers[rule]) for point, each in rows[RR]]
        curves.append(curve(rule, uppers, "bound"))

    for name, each in rows.items():
        curves.append(curve_of(f"{name}, upper", "n | upper", each, "theory", name))
        curves.append(curve_of(f"{name}, lower", "n | lower", each, group=name))
    return LogLogFigure(
        "shuffled-epsilon",
        "Epsilon after shuffling",
        "reports shuffled together",
        "epsilon",
        curves,
        "shuffled",
    )


def _errors_figure(errors: Rows[Errors, Squares]) -> Figure:
    roots = [(place, squares.root.value) for place, (_, squares) in enumerate(errors)]
    return Figure(
        "shuffled-errors",
        f"A histogram of {TARGET.clients:,} clients",
        "model",
        "root mean square error",
        [curve("root mean square error", roots, "bars")],
        log_y=True,
        x_ticks=tuple(point.model for point, _ in errors),
    )


EXPERIMENT = Shuffled()
