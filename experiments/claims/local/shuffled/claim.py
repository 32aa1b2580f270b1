"""The shuffled model: between nobody trusted and one curator, somebody who only mixes."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.local.shuffled import runs
from local_dp.experiments.claims.local.shuffled.runs import ALONE, CURATOR, DELTA, HADAMARD, KARY, LOCAL, MANY, MODELS, ONE, RR, TARGET
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table

CLIENTS = (1000, 10_000, 100_000)
RUNS: dict[Scale, int] = {"quick": 300, "full": 3000}
SMALL = ((2, 4, 0.1), (2, 10, 0.01), (3, 4, 0.05), (4, 3, 0.02))
CERTAIN = 5.0  # standard errors: a right mean square is called wrong less than once in a million
RULES = ("closed form", "clones", "variation ratio")
Measured = list[tuple[Point, Measurement]]


class Shuffled(Experiment[Point, Measurement]):
    """Amplification by shuffling, and histograms behind a shuffler."""

    name: ClassVar[str] = "shuffled"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "A shuffler: the step between local and central"
    claim: ClassVar[str] = (
        "Whoever trusts somebody to mix all reports and to tell nobody who sent which hides among the others: the loss of a report falls about as 1 / sqrt(n). "
        "How far is known from both sides, for randomized response exactly, over all data sets. So a histogram at the same epsilon, with a little delta, "
        "errs far less than without a shuffler, and with blanket messages almost as little as a curator's."
    )
    source: ClassVar[str] = "Feldman, McMillan, Talwar 2021; Balle, Bell, Gascon, Nissim 2019; Cheu, Zhilyaev 2022"

    def points(self, scale: Scale) -> list[Point]:
        return [
            *({"kind": "bounds", "name": name, "n": n} for name in (RR, KARY, HADAMARD) for n in CLIENTS),
            *({"kind": "enumerated", "k": k, "n": n, "delta": delta} for k, n, delta in SMALL),
            *({"kind": "errors", "model": model, "runs": RUNS[scale]} for model in MODELS),
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] == "errors":
            return runs.measure_errors(point, seed)
        return runs.measure_bounds(point) if point["kind"] == "bounds" else runs.measure_enumerated(point)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        bounds, enumerated, errors = ([(point, found) for point, found in measurements if point["kind"] == kind] for kind in ("bounds", "enumerated", "errors"))
        checks = [_check_order(bounds), _check_exact(bounds), _check_tight(bounds), _check_power(bounds), _check_enumerated(enumerated)]
        checks += [_check_laws(errors), _check_models(errors)]
        notes = [
            f"A report loses {LOCAL:g}; delta is {DELTA:g}. Bounds are rounded outwards. Neighbours differ in one client's value.",
            "The shuffler is trusted to mix and to keep silent, and all clients to answer. Blanket messages leave no privacy from the shuffler itself.",
        ]
        figures = [_bounds_figure(bounds), _errors_figure(errors)]
        return Finding(checks, [_bounds_table(bounds), _errors_table(errors)], figures, notes, headline=_headline(bounds))


def _at(bounds: Measured, name: str) -> dict[int, Measurement]:
    return {point["n"]: found for point, found in bounds if point["name"] == name}


def _headline(bounds: Measured) -> str:
    found = _at(bounds, RR).get(10_000)
    told = f"{found['upper']:.4g}" if found else "an unknown epsilon"
    return f"Among 10,000 shuffled reports, randomized response of epsilon {LOCAL:g} loses {told} on the worst data set, but for a delta of {DELTA:g}."


def _check_order(bounds: Measured) -> Check:
    kept = [[found["uppers"][rule] for rule in RULES] + [found["upper"], found["lower"]] for _, found in bounds]
    return Check(
        "each rule is at least as good as the older one, and no upper bound is below a lower one",
        bool(kept) and all(each == sorted(each, reverse=True) for each in kept),
        "; ".join(f"{point['name']}, {point['n']:,}: {found['lower']:.4g} to {found['upper']:.4g}" for point, found in bounds),
    )


def _check_exact(bounds: Measured) -> Check:
    found = _at(bounds, RR)
    gains = {n: each["uppers"]["variation ratio"] / each["upper"] for n, each in found.items()}
    close = [each["exact"] and each["upper"] <= each["lower"] * (1 + 1e-5) for each in found.values()]
    return Check(
        "for randomized response the worst of all data sets is found, and loses less than the best general bound says",
        bool(close) and all(close) and min(gains.values()) > 1.1,
        ", ".join(f"n = {n:,}: {gain:.3f} times less" for n, gain in gains.items()),
    )


def _check_tight(bounds: Measured) -> Check:
    gaps = {n: found["upper"] / found["lower"] - 1 for n, found in _at(bounds, KARY).items()}
    return Check(
        "for k-ary response both sides agree to a thousandth from 10,000 reports on",
        bool(gaps) and all(gap < 1e-3 for n, gap in gaps.items() if n >= 10_000),
        ", ".join(f"n = {n:,}: {gap:.2g}" for n, gap in gaps.items()),
    )


def _check_power(bounds: Measured) -> Check:
    found = {name: _at(bounds, name) for name in (RR, KARY)}
    ends = [(each[CLIENTS[0]]["upper"], each[CLIENTS[-1]]["upper"]) for each in found.values() if each]
    powers = [math.log(last / first) / math.log(CLIENTS[-1] / CLIENTS[0]) for first, last in ends]
    return Check(
        "the loss falls about as 1 / sqrt(n)",
        bool(powers) and all(-0.62 < power < -0.48 for power in powers),
        ", ".join(f"power {power:.3f}" for power in powers),
    )


def _check_enumerated(enumerated: Measured) -> Check:
    above = [all(each <= point["delta"] * (1 + 1e-9) for each in found["uppers"].values()) for point, found in enumerated]
    below = [found["least"] == 0 or found["lower"] >= point["delta"] * (1 - 1e-9) for point, found in enumerated]
    return Check(
        "enumerated over all data sets of a few clients, no upper bound is too low and no lower one too high",
        bool(above) and all(above) and all(below),
        ", ".join(f"k = {point['k']}, n = {point['n']}: {found['lower'] / point['delta']:.4g} of delta at the lower end" for point, found in enumerated),
    )


def _check_laws(errors: Measured) -> Check:
    away = {point["model"]: (np.mean(found["squares"]) - found["expected"]) / _error(found) for point, found in errors}
    return Check(
        "every histogram errs as its closed form says",
        len(away) == len(MODELS) and all(abs(each) < CERTAIN for each in away.values()),
        ", ".join(f"{model}: {each:.2g} standard errors" for model, each in away.items()),
    )


def _check_models(errors: Measured) -> Check:
    roots = {point["model"]: math.sqrt(np.mean(found["squares"])) for point, found in errors}
    found = [roots.get(model, math.nan) for model in (CURATOR, MANY, ONE, ALONE)]
    return Check(
        "a curator errs least, then blanket messages, then one shuffled report, and the local model ten times as much as that or more",
        found == sorted(found) and 10 * found[2] < found[3],
        ", ".join(f"{model}: {root:.3g}" for model, root in roots.items()),
    )


def _error(found: Measurement) -> float:
    """The standard error of a mean of mean squares."""
    return float(np.std(found["squares"]) / math.sqrt(len(found["squares"])))


def _bounds_table(bounds: Measured) -> Table:
    rows = [(point["name"], point["n"], *(found["uppers"][rule] for rule in RULES), found["upper"], found["lower"]) for point, found in bounds]
    return Table("Epsilon after shuffling", ("randomizer", "reports", *RULES, "best upper bound", "lower bound"), rows)


def _errors_table(errors: Measured) -> Table:
    rows = [(point["model"], math.sqrt(np.mean(found["squares"])), math.sqrt(found["expected"])) for point, found in errors]
    return Table(f"Errors of a histogram of {TARGET.clients:,} clients at epsilon {TARGET.epsilon:g}", ("model", "root mean square", "predicted"), rows)


def _bounds_figure(bounds: Measured) -> Figure:
    curves = [
        Curve(rule, CLIENTS, [found["uppers"][rule] for found in _at(bounds, RR).values()], "bound") for rule in RULES if len(_at(bounds, RR)) == len(CLIENTS)
    ]
    for name in (RR, KARY, HADAMARD):
        found = _at(bounds, name)
        curves += [
            Curve(f"{name}, {end}", list(found), [each[end] for each in found.values()], "theory" if end == "upper" else "measured")
            for end in ("upper", "lower")
        ]
    return Figure("shuffled-epsilon", "Epsilon after shuffling", "reports shuffled together", "epsilon", curves, log_x=True, log_y=True)


def _errors_figure(errors: Measured) -> Figure:
    ticks = tuple(point["model"] for point, _ in errors)
    roots = [math.sqrt(np.mean(found["squares"])) for _, found in errors]
    curve = Curve("root mean square error", range(len(roots)), roots, "bars")
    return Figure("shuffled-errors", f"A histogram of {TARGET.clients:,} clients", "model", "root mean square error", [curve], log_y=True, x_ticks=ticks)


EXPERIMENT = Shuffled()
