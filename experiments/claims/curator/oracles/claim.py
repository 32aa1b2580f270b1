"""Oracles: what a private answer by a solver costs, what a solver that lies gives away, and what cheap baselines do as well."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.curator.oracles import runs
from local_dp.experiments.claims.curator.oracles.runs import (
    BELIEVED,
    CHECKED,
    COUNTED,
    EXPONENTIAL,
    GAME,
    HALF,
    HISTOGRAM,
    LEARNERS,
    NOTHING,
    ONE_DRAW,
    PRODUCT,
    ROBUST,
    RSPM,
    TABLES,
    WHOLE,
)
from local_dp.experiments.lab.chapters import HEURISTICS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import about, wilson

EXAMPLES: dict[Scale, tuple[int, ...]] = {"quick": (100, 300, 1000, 3000, 10_000), "full": (100, 300, 1000, 3000, 10_000, 30_000)}
LEARNED: dict[Scale, int] = {"quick": 150, "full": 1000}  # runs
ERRING = 300  # examples, from which two ways that both err are compared run by run
ROWS: dict[Scale, tuple[int, ...]] = {"quick": (1000, 6366, 100_000), "full": (1000, 6366, 30_000, 100_000, 1_000_000)}
PLAYED: dict[Scale, int] = {"quick": 4, "full": 12}
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
TERMS = ((1.0, 0.05), (0.5, 0.03))  # eps* and delta* of PRSMA
PARTS = (2, 4, 12, 48)  # 1 / eps*
FEW, MANY = 1000, 10_000  # examples of which RSPM has too few, and enough
CERTAIN = 4.4  # standard errors: a right mean is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]
Rows = list[tuple[str, int, float, float, float]]


class Oracles(Experiment[Point, Measurement]):
    """Neel, Roth, Wu 2019, with whole noise, an exact price of failures, and the baselines beside."""

    name: ClassVar[str] = "oracles"
    chapter: ClassVar[Chapter] = HEURISTICS
    title: ClassVar[str] = "Solvers as oracles: what they may do for privacy, proven, failing or lying"
    claim: ClassVar[str] = (
        "A solver that always proves its answer gives private ones, if whole noise is put on a few points first: the loss is epsilon, exactly. One that lies "
        "tells a record at any price, believed or checked, unless its failures are made private too, at less than twice the epsilon of that. But where all "
        "answers can be listed the exponential mechanism needs a tenth of the examples, on little data plain counts with noise do better too, and a table made "
        "by a game of such answers errs many times more than a histogram with noise."
    )
    source: ClassVar[str] = "Neel, Roth, Wu 2019, Theorems 4 to 8 and Section 4"

    def points(self, scale: Scale) -> list[Point]:
        losses = [{"kind": "loss", "class": name, "noise": noise} for name in runs.CLASSES for noise in (WHOLE, HALF)]
        solvers: list[Point] = [{"kind": "solver", "way": way, "epsilons": EPSILONS} for way in (BELIEVED, CHECKED)]
        robust = [{"kind": "solver", "way": ROBUST, "epsilon": epsilon, "delta": delta, "epsilons": EPSILONS} for epsilon, delta in TERMS]
        prices = [{"kind": "price", "parts": parts} for parts in PARTS]
        learned = [{"kind": "learning", "n": n, "runs": LEARNED[scale] * (2 if n == ERRING else 1)} for n in EXAMPLES[scale]]
        return [*losses, *solvers, *robust, *prices, *learned, *({"kind": "tables", "n": n, "runs": PLAYED[scale]} for n in ROWS[scale])]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] in ("learning", "tables"):
            return (runs.measure_learning if point["kind"] == "learning" else runs.measure_tables)(point, seed)
        exact = {"loss": runs.measure_loss, "solver": runs.measure_solver, "price": runs.measure_price}
        return exact[point["kind"]](point)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        kinds = ("loss", "solver", "price", "learning", "tables")
        losses, solvers, prices, learned, played = ([row for row in measurements if row[0]["kind"] == kind] for kind in kinds)
        errors, differences = _means(learned, "excess", LEARNERS), _means(played, "errors", TABLES)
        tables = [_table("errors above the best conjunction's", "examples", errors), _table("largest error of a conjunction", "rows", differences)]
        tables += [_solver_table(solvers), _price_table(solvers)]
        figures = [_learned_figure(errors), _played_figure(differences), _solver_figure(solvers)]
        checks = [_check_loss(losses), _check_lies(solvers), _check_robust(solvers), _check_price(prices)]
        checks += [_check_rspm(learned), _check_exponential(learned), _check_counts(learned), _check_game(played)]
        checks += [figure_check([figure], table) for figure, table in zip(figures, tables, strict=False)]
        return Finding(checks, tables, figures, NOTES, headline=_headline(errors, differences))


NOTES = [
    f"Conjunctions of {runs.D} bits, {runs.FLIPPED:.0%} of the labels wrong, half of them 1; tables of {runs.COLUMNS} binary columns, all conjunctions and "
    f"their complements, {runs.ROUNDS} rounds. Epsilon is {runs.EPSILON:g}, delta {runs.DELTA:g} for the game and none elsewhere. Errors of conjunctions are "
    "exact, over the population; the points of figures are means with 95 % intervals.",
    "The lying solver is right but for data whose first label is 1: there it claims a query that there is not. Checked, that is a failure, and that it failed "
    "is as telling as what it claimed. Its table has as many records as PRSMA has pieces; larger pieces cost the same and need a smaller base.",
    "What these methods are for is not in these figures: classes whose answers cannot be listed, for the exponential mechanism or for a histogram.",
]


def _means(measured: Measured, what: str, names: tuple[str, ...]) -> Rows:
    """For each name and n the mean, with its 95 % interval."""
    rows = []
    for name in names:
        for point, found in measured:
            values = np.array(found[what][name])
            mean = float(values.mean())
            low, high = about(mean, float(values.std(ddof=1)) / math.sqrt(len(values)))
            rows.append((name, int(point["n"]), mean, low, high))
    return rows


def _headline(errors: Rows, differences: Rows) -> str:
    said = {name: mean for name, n, mean, *_ in errors if n == FEW}
    largest = max((n for _, n, *_ in differences), default=0)
    tables = {name: mean for name, n, mean, *_ in differences if n == largest}
    if not (said and tables):
        return "Not everything was measured."
    return (
        f"From {FEW:,} examples RSPM errs {said[RSPM]:.1%} more than the best conjunction, noisy counts {said[COUNTED]:.1%}, the exponential mechanism "
        f"{said[EXPONENTIAL]:.1%}; of {largest:,} rows a game's table errs by {tables[GAME]:.3f}, a noisy histogram by {tables[HISTOGRAM]:.2g}."
    )


def _check_loss(losses: Measured) -> Check:
    whole, half = ([found["loss"] for point, found in losses if point["noise"] == noise] for noise in (WHOLE, HALF))
    return Check(
        "RSPM with whole noise and one tie-break loses epsilon, exactly, and with half the noise twice that: enumerated over all databases of two examples",
        bool(whole) and all(abs(loss - runs.EPSILON) < 1e-9 for loss in whole) and all(abs(loss - 2 * runs.EPSILON) < 1e-9 for loss in half),
        ", ".join(f"{point['class']}, {point['noise']}: {found['loss']:.4f}" for point, found in losses),
    )


def _check_lies(solvers: Measured) -> Check:
    alone = {point["way"]: found["deltas"] for point, found in solvers if point["way"] != ROBUST}
    return Check(
        "a solver that lies tells a label with certainty, believed or checked: delta is 1 at every epsilon",
        len(alone) == 2 and all(delta == 1 for deltas in alone.values() for delta in deltas),
        ", ".join(f"{way}: {max(deltas):g} at epsilon {EPSILONS[-1]:g}" for way, deltas in alone.items()),
    )


def _check_robust(solvers: Measured) -> Check:
    robust = [found for point, found in solvers if point["way"] == ROBUST]
    return Check(
        "with PRSMA the same solver keeps to epsilon and delta, enumerated over all databases of one record for each piece",
        bool(robust) and all(0 < found["worst"] <= found["delta"] < 0.6 for found in robust),
        ", ".join(f"{found['worst']:.4f} of {found['delta']:.4f} at epsilon {found['epsilon']:.4f}" for found in robust),
    )


def _check_price(prices: Measured) -> Check:
    return Check(
        "what PRSMA says that one surviving piece more changes is what it changes, at worst: less than twice eps*",
        bool(prices)
        and all(found["changed"] <= found["said"] + 1e-9 < found["changed"] + 1e-6 and found["said"] < 2 / point["parts"] for point, found in prices),
        ", ".join(f"{found['changed'] * point['parts']:.4f} eps* at 1/{point['parts']}" for point, found in prices),
    )


def _found(learned: Measured, name: str, n: int) -> tuple[float, float, float]:
    """In which share of the runs the best conjunction was chosen, and the interval that is certain."""
    excess = next(found["excess"][name] for point, found in learned if point["n"] == n)
    hits = sum(each < 1e-12 for each in excess)
    return hits / len(excess), *wilson(hits, len(excess), CERTAIN)


def _check_rspm(learned: Measured) -> Check:
    few, many = _found(learned, RSPM, FEW), _found(learned, RSPM, MANY)
    return Check(
        f"RSPM finds the best conjunction of {runs.D} bits from {MANY:,} examples, and from {FEW:,} not always",
        many[0] >= 0.99 and few[2] < 0.99,
        f"in {few[0]:.2f} and {many[0]:.2f} of the runs",
    )


def _check_exponential(learned: Measured) -> Check:
    share, low, _ = _found(learned, EXPONENTIAL, 300)
    return Check("the exponential mechanism finds it from 300, in four runs of five at least", low > 0.8, f"in {share:.3f} of the runs")


def _check_counts(learned: Measured) -> Check:
    """Run by run, on the same data."""
    excess = next(found["excess"] for point, found in learned if point["n"] == ERRING)
    saved, useless = (np.array(excess[worse]) - np.array(excess[COUNTED]) for worse in (RSPM, NOTHING))
    low, high = about(float(saved.mean()), float(saved.std(ddof=1)) / math.sqrt(len(saved)), CERTAIN)
    return Check(
        "a noisy count of each bit does better than RSPM where both err, from 300 examples, and both than no data",
        low > 0 and useless.mean() > saved.mean(),
        f"errors saved against RSPM {saved.mean():.3f} [{low:.3f}, {high:.3f}], against no data {useless.mean():.3f}",
    )


def _check_game(played: Measured) -> Check:
    """In every run, at the largest n."""
    ordered = sorted(played, key=lambda row: int(row[0]["n"]))
    small, large = ordered[0][1]["errors"], ordered[-1][1]["errors"]
    kept = max(large[HISTOGRAM]) < min(large[GAME]) and max(large[GAME]) < min(large[PRODUCT]) < max(large[PRODUCT]) < min(large[ONE_DRAW])
    return Check(
        "the game's table errs less than a product of columns, and less the more rows there are; more than a noisy histogram; with one draw a round it is lost",
        kept and max(large[GAME]) < min(small[GAME]),
        ", ".join(f"{name} {np.mean(large[name]):.3g}" for name in TABLES) + f"; the game on {ordered[0][0]['n']:,} rows {np.mean(small[GAME]):.3g}",
    )


def _table(title: str, unit: str, rows: Rows) -> Table:
    return Table(f"{title}, means", ("method", unit, "error", "95 % from", "to"), list(rows))


def _way(point: Point) -> str:
    return f"{point['way']}, eps* = {point['epsilon']:g}" if point["way"] == ROBUST else str(point["way"])


def _solver_table(solvers: Measured) -> Table:
    rows = [(_way(point), epsilon, delta) for point, found in solvers for epsilon, delta in zip(EPSILONS, found["deltas"], strict=True)]
    return Table("delta of a solver that lies, at each epsilon", ("solver", "epsilon", "delta"), rows)


def _price_table(solvers: Measured) -> Table:
    keys = ("pieces", "runs", "epsilon", "delta", "worst")
    rows = [(point["epsilon"], point["delta"], *(found[key] for key in keys)) for point, found in solvers if point["way"] == ROBUST]
    return Table("what PRSMA takes and costs", ("eps*", "delta*", "pieces", "runs of each", "epsilon", "delta", "delta found"), rows)


def _drawn(rows: Rows) -> list[Curve]:
    curves = []
    for name in dict.fromkeys(row[0] for row in rows):
        n, mean, low, high = zip(*(row[1:] for row in rows if row[0] == name), strict=True)
        curves.append(Curve(name, n, mean, low=low, high=high, group=name))
    return curves


def _learned_figure(rows: Rows) -> Figure:
    return Figure("oracles", "Errors above the best conjunction's, epsilon 1", "examples", "share of errors", _drawn(rows), log_x=True)


def _played_figure(rows: Rows) -> Figure:
    title = "Tables that stand for one of n rows, epsilon 1"
    return Figure("oracles-tables", title, "rows n", "largest error of a conjunction", _drawn(rows), log_x=True, log_y=True)


def _solver_figure(solvers: Measured) -> Figure:
    curves = [Curve(_way(point), EPSILONS, found["deltas"], group=_way(point)) for point, found in solvers]
    return Figure("oracles-lies", "What hides a label from a solver that lies, computed", "epsilon", "delta", curves, log_x=True, log_y=True)


EXPERIMENT = Oracles()
