"""Pairs: the noise of one release of all pairs of columns, and what projecting it takes off."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.curator.pairs import runs
from local_dp.experiments.claims.curator.pairs.runs import DELTA, EPSILON, HULL, LINEAR, LOCAL, LOCAL_PROJECTED, PROJECTED, RAW, ZERO
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import about_log, relative_error, student

COLUMNS = (50, 100, 200)
TIMES: dict[Scale, tuple[int, ...]] = {"quick": (5, 10, 20), "full": (2, 5, 10, 20, 50, 100)}
RUNS: dict[Scale, int] = {"quick": 8, "full": 24}
SMALL, SMALL_TIMES = 10, 15
MOVES = (2, 5, 8)
AT = 20  # records to a column in the figure over d
CERTAIN = 4.4  # standard errors: a right mean is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]


class Pairs(Experiment[Point, Measurement]):
    """Dwork, Nikolov, Talwar 2015, for marginals of two columns."""

    name: ClassVar[str] = "pairs"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Pairs: noise and projection"
    claim: ClassVar[str] = (
        "A trusted curator who adds normal noise to the means of all products of two of d columns errs by about d / n on each. No table has such means: moved "
        "to the nearest semidefinite matrix, which costs no privacy, they err less, by a factor that grows with d and that no linear shrinkage reaches. With "
        "few records for each column answering zero is better still, and over what clients tell who trust nobody it is better throughout."
    )
    source: ClassVar[str] = "Nikolov, Talwar, Zhang 2013; Dwork, Nikolov, Talwar 2015; lecture notes 7"

    def points(self, scale: Scale) -> list[Point]:
        large = [{"kind": "errors", "d": d, "times": times, "runs": RUNS[scale], "hull": False, "local": True} for d in COLUMNS for times in TIMES[scale]]
        small = {"kind": "errors", "d": SMALL, "times": SMALL_TIMES, "runs": 10 * RUNS[scale], "hull": True, "local": False}
        return [*large, small, *({"kind": "move", "d": d} for d in MOVES)]

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure_move(point) if point["kind"] == "move" else runs.measure_errors(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        moves, errors = ([each for each in measurements if each[0]["kind"] == kind] for kind in ("move", "errors"))
        table, figures = _table(errors), [_figure_over_columns(errors), _figure_over_records(errors)]
        checks = [_check_moves(moves), _check_noise(errors), _check_nearer(errors), *_check_order(errors), _check_growth(errors)]
        checks.append(figure_check(figures, table))
        notes = [
            f"Epsilon {EPSILON:g}, delta {DELTA:g}; each record is one of {runs.CENTRES} random rows, each bit kept with probability {runs.KEPT:g}.",
            "The best linear shrinkage multiplies by the factor that is best for the very truth, which nobody knows; no private one does better.",
        ]
        return Finding(checks, [table], figures, notes, headline=_headline(errors))


def _headline(errors: Measured) -> str:
    found = _of(errors, COLUMNS[-1], AT)
    if not found:
        return "No error of all pairs of many columns was measured."
    raw, projected, zero = (float(np.mean(found[name])) for name in (RAW, PROJECTED, ZERO))
    return (
        f"All pairs of {COLUMNS[-1]} columns of {AT * COLUMNS[-1]:,} records err by {raw:.2g} with noise alone, {projected:.2g} once moved to what a table "
        f"may have, and by {zero:.2g} if they are said to be zero."
    )


def _check_moves(moves: Measured) -> Check:
    return Check(
        "the release pays for the largest squared move of all pairs over every row replaced by every other, and for no more",
        bool(moves) and all(found["worst"] == found["paid"] for _, found in moves),
        ", ".join(f"d = {point['d']}: {found['worst']} of {found['paid']}" for point, found in moves),
    )


def _check_noise(errors: Measured) -> Check:
    """The squared error of one release averages d (d - 1) / 2 squares of normal variables: their mean has variance 4 / (d (d - 1)) of its own."""
    scores = [(score - 1) * math.sqrt(point["d"] * (point["d"] - 1) / 4) for point, found in errors for score in found["scores"]]
    far = abs(float(np.sum(scores))) / math.sqrt(max(1, len(scores)))
    return Check("the noise has the variance that it says", bool(scores) and far < CERTAIN, f"{far:.1f} standard errors away over {len(scores)} releases")


def _check_nearer(errors: Measured) -> Check:
    return Check(
        "no projection is farther from the truth than what it projected, in any run: the truth lies in the body",
        bool(errors) and all(found["nearer"] for _, found in errors),
        f"{sum(point['runs'] for point, _ in errors)} runs",
    )


def _of(errors: Measured, d: int, times: int) -> dict[str, list[float]]:
    return next((found["errors"] for point, found in errors if (point["d"], point["times"]) == (d, times)), {})


def _times_smaller(found: dict[str, list[float]], better: str, worse: str) -> tuple[float, float]:
    """The geometric mean of how many times smaller the better error is, run by run, and the lower end of its interval."""
    if not (found.get(better) and found.get(worse)):
        return math.nan, math.nan
    logs = np.log(np.array(found[worse]) / np.array(found[better]))
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return math.exp(float(logs.mean())), about_log(math.exp(float(logs.mean())), error, student(len(logs) - 1, CERTAIN))[0]


def _check_order(errors: Measured) -> list[Check]:
    local = [(point["d"], point["times"]) for point, _ in errors if point["local"]]
    said = [
        (f"projected beats raw at n = {AT} d", PROJECTED, RAW, [(d, AT) for d in COLUMNS]),
        (f"projected beats the best linear shrinkage at n = {AT} d", PROJECTED, LINEAR, [(d, AT) for d in COLUMNS]),
        (f"projected beats zero at n = {AT} d", PROJECTED, ZERO, [(d, AT) for d in COLUMNS]),
        (f"zero beats projected at n = 5 d, d = {COLUMNS[0]}", ZERO, PROJECTED, [(COLUMNS[0], 5)]),
        (f"projected beats zero from n = 10 d on where d is {COLUMNS[1]} or more", PROJECTED, ZERO, [(d, 10) for d in COLUMNS[1:]]),
        ("zero beats what clients tell, projected, everywhere", ZERO, LOCAL_PROJECTED, local),
        (f"projecting helps clients too at n = {AT} d", LOCAL_PROJECTED, LOCAL, [(d, AT) for d in COLUMNS]),
        (f"the elliptope takes something off at d = {SMALL}", PROJECTED, RAW, [(SMALL, SMALL_TIMES)]),
        (f"the hull takes more off at d = {SMALL}", HULL, PROJECTED, [(SMALL, SMALL_TIMES)]),
    ]
    checks = []
    for statement, better, worse, places in said:
        gains = [_times_smaller(_of(errors, *place), better, worse) for place in places]
        told = [f"{gain:.3g} [{least:.3g}, ...] times smaller at d = {d}, n = {times} d" for (gain, least), (d, times) in zip(gains, places, strict=True)]
        evidence = ", ".join(told) if len(told) <= len(COLUMNS) else f"{min(gains)[0]:.3g} [{min(gains)[1]:.3g}, ...] times or more at {len(told)} sizes"
        checks.append(Check(statement, all(least > 1 for _, least in gains), evidence))
    return checks


def _check_growth(errors: Measured) -> Check:
    """Two of the geometric means, and their intervals do not meet."""
    logs = [np.log(np.array(_of(errors, d, AT).get(RAW, [math.nan])) / np.array(_of(errors, d, AT).get(PROJECTED, [math.nan]))) for d in COLUMNS]
    means = [float(each.mean()) for each in logs]
    spread = math.hypot(*(float(each.std(ddof=1)) / math.sqrt(len(each)) for each in (logs[0], logs[-1]))) if len(logs[0]) > 1 else math.nan
    grown = (means[-1] - means[0]) / math.log(COLUMNS[-1] / COLUMNS[0])
    error = student(2 * len(logs[0]) - 2, CERTAIN) * spread / math.log(COLUMNS[-1] / COLUMNS[0])
    return Check(
        f"what projecting takes off grows with d at n = {AT} d, about as d^(1/3) here",
        grown - error > 0.2 and grown + error < 0.5,
        f"power {grown:.3f} +- {error:.3f}; {', '.join(f'{math.exp(mean):.2f}' for mean in means)} times",
    )


def _interval(errors: list[float]) -> tuple[float, float, float]:
    mean = float(np.mean(errors))
    return mean, *about_log(mean, relative_error(errors), student(len(errors) - 1))


def _table(errors: Measured) -> Table:
    rows = [
        (name, point["d"], point["d"] * point["times"], point["times"], *_interval(each), point["runs"])
        for point, found in errors
        for name, each in found["errors"].items()
    ]
    return Table("root mean square error over all pairs", ("answer", "columns d", "records n", "n / d", "error", "95 % from", "to", "runs"), rows)


def _curve(name: str, places: list[tuple[int, dict[str, list[float]]]]) -> Curve:
    kept = [(x, *_interval(found[name])) for x, found in places if name in found]
    return Curve(name, [x for x, *_ in kept], [mean for _, mean, _, _ in kept], low=[low for *_, low, _ in kept], high=[high for *_, high in kept])


def _figure_over_columns(errors: Measured) -> Figure:
    places = [(d, _of(errors, d, AT)) for d in COLUMNS]
    curves = [_curve(name, places) for name in (RAW, ZERO, LINEAR, PROJECTED, LOCAL, LOCAL_PROJECTED)]
    return Figure("pairs", f"All pairs of d columns, n = {AT} d, epsilon 1", "columns d", "root mean square error", curves, log_x=True, log_y=True)


def _figure_over_records(errors: Measured) -> Figure:
    places = [(point["times"], found["errors"]) for point, found in errors if point["d"] == COLUMNS[1]]
    curves = [_curve(name, places) for name in (RAW, ZERO, LINEAR, PROJECTED, LOCAL_PROJECTED)]
    return Figure("pairs-records", f"All pairs of {COLUMNS[1]} columns, epsilon 1", "n / d", "root mean square error", curves, log_x=True, log_y=True)


EXPERIMENT = Pairs()
