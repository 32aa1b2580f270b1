"""The shuffled model: between nobody trusted and one curator, a party that only mixes reports."""

import math
from itertools import pairwise
from typing import ClassVar, TypeAlias

from local_dp.experiments.claims.local.shuffled.runs import (
    ALONE,
    DELTA,
    HADAMARD,
    KARY,
    LOCAL,
    MANY,
    MODELS,
    ONE,
    RR,
    TARGET,
    Bounds,
    Enumerated,
    Epsilons,
    Errors,
    Squares,
    WorstDeltas,
)  # fmt: skip
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.checks import Claimed, every, holds, measured, within
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.findings import Rows

CLIENTS = (1000, 10_000, 100_000)
RUNS: dict[Scale, int] = {"quick": 4000, "full": 40_000}
SMALL = ((2, 4, 0.1), (2, 10, 0.01), (3, 4, 0.05), (4, 3, 0.02))
MORE = {ALONE: 28, ONE: 1.33, MANY: 2.3}  # times the error of the next of MODELS: 28.4, 1.34 and 2.33 by the closed forms
RULES = ("closed form", "clones", "variation ratio")
Place: TypeAlias = Bounds | Enumerated | Errors
Result: TypeAlias = Epsilons | WorstDeltas | Squares


class Shuffled(Experiment[Place, Result]):
    """Amplification by shuffling, and histograms behind a shuffler."""

    name: ClassVar[str] = "shuffled"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "A shuffler: the step between local and central"
    claim: ClassVar[str] = (
        "A trusted shuffler mixes all reports and hides their senders, so each report hides among the others: its loss falls about as 1 / sqrt(n). "
        "The loss is known from both sides, for randomized response exactly, over all data sets. A histogram at the same epsilon, with a small delta, "
        "errs far less than without a shuffler. With blanket messages it errs almost as little as a curator's."
    )
    source: ClassVar[str] = "Feldman, McMillan, Talwar 2021; Balle, Bell, Gascon, Nissim 2019; Cheu, Zhilyaev 2022"

    def points(self, scale: Scale) -> list[Place]:
        return [
            *(Bounds(name, n) for name in (RR, KARY, HADAMARD) for n in CLIENTS),
            *(Enumerated(*small) for small in SMALL),
            *(Errors(model, RUNS[scale]) for model in MODELS),
        ]

    def conclude(self, measurements: Rows[Place, Result], scale: Scale) -> Finding:
        bounds, enumerated, errors = of_kind(measurements, Bounds), of_kind(measurements, Enumerated), of_kind(measurements, Errors)
        checks = [_check_order(bounds), _check_exact(bounds), _check_tight(bounds), _check_power(bounds), _check_enumerated(enumerated)]
        checks += [_check_laws(errors), _check_models(errors)]
        notes = [
            f"A report loses {LOCAL:g}; delta is {DELTA:g}. Bounds are rounded outwards. Neighbours differ in one client's value.",
            "The shuffler is trusted to mix and to keep silent, and all clients to answer. Blanket messages leave no privacy from the shuffler itself.",
        ]
        figures = [_bounds_figure(bounds), _errors_figure(errors)]
        return Finding(checks, [_bounds_table(bounds), _errors_table(errors)], figures, notes, headline=_headline(bounds))


def _at(bounds: Rows[Bounds, Epsilons], name: str) -> dict[int, Epsilons]:
    return {point.n: epsilons for point, epsilons in bounds if point.name == name}


def _headline(bounds: Rows[Bounds, Epsilons]) -> str:
    epsilons = _at(bounds, RR).get(10_000)
    loss = f"{epsilons.upper:.4g}" if epsilons else "an unknown epsilon"
    return f"Among 10,000 shuffled reports, randomized response of epsilon {LOCAL:g} loses {loss} on the worst data set, at delta {DELTA:g}."


def _check_order(bounds: Rows[Bounds, Epsilons]) -> Check:
    ordered = [(each, [each[1].uppers[rule] for rule in RULES] + [each[1].upper, each[1].lower]) for each in bounds]
    return every(
        "each rule is at least as good as the older one, and no upper bound is below a lower one",
        ((ends == sorted(ends, reverse=True), f"{point.name}, {point.n:,}: {each.lower:.4g} to {each.upper:.4g}") for (point, each), ends in ordered),
    )


def _check_exact(bounds: Rows[Bounds, Epsilons]) -> Check:
    epsilons = _at(bounds, RR)
    gains = {f"n = {n:,}, times less": each.uppers["variation ratio"] / each.upper for n, each in epsilons.items()}
    return within(
        "for randomized response the worst of all data sets is found, and loses less than the best general bound says",
        gains,
        math.nextafter(1.1, 2),
        spec=".3f",
        also=all(each.exact and each.upper <= each.lower * (1 + 1e-5) for each in epsilons.values()),
    )


def _check_tight(bounds: Rows[Bounds, Epsilons]) -> Check:
    gaps = {n: each.upper / each.lower - 1 for n, each in _at(bounds, KARY).items()}
    cases = ((n < 10_000 or gap < 1e-3, f"n = {n:,}: {gap:.2g}") for n, gap in gaps.items())
    return every("for k-ary response both sides agree to a thousandth from 10,000 reports on", cases)


def _check_power(bounds: Rows[Bounds, Epsilons]) -> Check:
    ends = [(name, each[CLIENTS[0]].upper, each[CLIENTS[-1]].upper) for name in (RR, KARY) if (each := _at(bounds, name))]
    powers = {f"{name}, power": math.log(last / first) / math.log(CLIENTS[-1] / CLIENTS[0]) for name, first, last in ends}
    return within("the loss falls about as 1 / sqrt(n)", powers, -0.62, -0.48, spec=".3f")


def _check_enumerated(enumerated: Rows[Enumerated, WorstDeltas]) -> Check:
    def true(point: Enumerated, deltas: WorstDeltas) -> bool:
        below = all(each <= point.delta * (1 + 1e-9) for each in deltas.uppers.values())
        return below and (deltas.least == 0 or deltas.lower >= point.delta * (1 - 1e-9))

    return every(
        "enumerated over all data sets of a few clients, no upper bound is too low and no lower one too high",
        ((true(point, each), f"k = {point.k}, n = {point.n}: {each.lower / point.delta:.4g} of delta at the lower end") for point, each in enumerated),
    )


def _check_laws(errors: Rows[Errors, Squares]) -> Check:
    ratios = {point.model: squares.root / math.sqrt(squares.expected) for point, squares in errors}
    return measured("every histogram errs as its closed form says (root mean square errors in units of it)", ratios, 1, 1, also=len(errors) == len(MODELS))


def _check_models(errors: Rows[Errors, Squares]) -> Check:
    roots = {point.model: squares.root for point, squares in errors}
    times = {
        f"{model} against {other}": Claimed(roots[model] / roots[other], MORE[model]) for model, other in pairwise(MODELS) if {model, other} <= roots.keys()
    }
    statement = (
        f"a curator errs least, blanket messages at least {MORE[MANY]} times as much, one shuffled report {MORE[ONE]} times as much as they, "
        f"and the local model {MORE[ALONE]} times as much as that"
    )
    return holds(statement, times)


def _bounds_table(bounds: Rows[Bounds, Epsilons]) -> Table:
    rows = [(point.name, point.n, *(each.uppers[rule] for rule in RULES), each.upper, each.lower) for point, each in bounds]
    return Table("Epsilon after shuffling", ("randomizer", "reports", *RULES, "best upper bound", "lower bound"), rows)


def _errors_table(errors: Rows[Errors, Squares]) -> Table:
    rows = [(point.model, squares.root.value, math.sqrt(squares.expected)) for point, squares in errors]
    return Table(f"Errors of a histogram of {TARGET.clients:,} clients at epsilon {TARGET.epsilon:g}", ("model", "root mean square", "predicted"), rows)


def _bounds_figure(bounds: Rows[Bounds, Epsilons]) -> Figure:
    curves = [curve(rule, [(n, each.uppers[rule]) for n, each in _at(bounds, RR).items()], "bound") for rule in RULES]
    for name in (RR, KARY, HADAMARD):
        curves.append(curve(f"{name}, upper", [(n, each.upper) for n, each in _at(bounds, name).items()], "theory"))
        curves.append(curve(f"{name}, lower", [(n, each.lower) for n, each in _at(bounds, name).items()]))
    return Figure("shuffled-epsilon", "Epsilon after shuffling", "reports shuffled together", "epsilon", curves, log_x=True, log_y=True)


def _errors_figure(errors: Rows[Errors, Squares]) -> Figure:
    bars = curve("root mean square error", [(place, squares.root.value) for place, (_, squares) in enumerate(errors)], "bars")
    title, ticks = f"A histogram of {TARGET.clients:,} clients", tuple(point.model for point, _ in errors)
    return Figure("shuffled-errors", title, "model", "root mean square error", [bars], log_y=True, x_ticks=ticks)


EXPERIMENT = Shuffled()
