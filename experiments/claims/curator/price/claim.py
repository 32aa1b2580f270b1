"""The price of many answers: k times as much purely, sqrt(k) times with a delta, and no less."""

import math
from typing import ClassVar

import numpy as np

from local_dp.accounting.rules import RULES
from local_dp.bounds.packing import least_error, packing_error
from local_dp.experiments.claims.curator.price import runs
from local_dp.experiments.claims.curator.price.runs import COMPOSED, DELTA, EACH, EPSILON, GAUSSIAN, K_NORM, LAPLACE, NOISES, NOTHING, RECORDS
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import quantile, wilson

ANSWERS = (1, 10, 100, 1000, 10_000, 100_000)
COUNTS = (4, 16, 64, 256, 1024, 4096)
RUNS: dict[Scale, int] = {"quick": 300, "full": 3000}
SMALL = ((1, 3), (2, 2), (3, 1))
CERTAIN = 4.4  # standard errors: a right rate is called wrong once in 100,000
BOUND = "no pure mechanism below"
Measured = list[tuple[Point, Measurement]]
KINDS = ("rules", "transcripts", "privacy", "normal", "errors")


class Price(Experiment[Point, Measurement]):
    """Composition, packing, and what a delta buys."""

    name: ClassVar[str] = "price"
    chapter: ClassVar[Chapter] = PURE_AND_APPROXIMATE
    title: ClassVar[str] = "The price of many answers: k, or the root of k"
    claim: ClassVar[str] = (
        "A curator who answers k questions about the same records pays k times for pure privacy and about sqrt(k) times with a little delta, and must: the "
        "optimal composition is what k noisy counts do lose. So k counts of which one record may change all err by about k / epsilon. No pure mechanism errs "
        "less than noise in the shape of a cube; noise on each count is ln k times worse; Gaussian noise errs by about sqrt(k), less than any pure mechanism "
        "can from a few hundred counts on. For a few counts pure noise is better."
    )
    source: ClassVar[str] = "Dwork, Rothblum, Vadhan 2010; Kairouz, Oh, Viswanath 2015; Hardt, Talwar 2010; Balle, Wang 2018"

    def points(self, scale: Scale) -> list[Point]:
        small = [{"kind": "privacy", "name": name, "k": k, "n": n} for name in (K_NORM, LAPLACE, COMPOSED) for k, n in SMALL]
        errors = [{"kind": "errors", "name": name, "k": k, "runs": 1 if name == NOTHING else RUNS[scale]} for name in (*NOISES, NOTHING) for k in COUNTS]
        return [
            *({"kind": "rules", "k": k} for k in ANSWERS),
            *({"kind": "transcripts", "k": k} for k in range(1, 6)),
            *small,
            *({"kind": "normal", "k": k} for k in (16, 256)),
            *errors,
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] == "errors":
            return runs.measure_errors(point, seed)
        measured = {"rules": runs.measure_rules, "transcripts": runs.measure_transcripts, "privacy": runs.measure_privacy, "normal": runs.measure_normal}
        return measured[point["kind"]](point)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        rules, transcripts, privacy, normal, errors = ([(point, found) for point, found in measurements if point["kind"] == kind] for kind in KINDS)
        tables = [_rules_table(rules), _errors_table(errors)]
        figures = [_rules_figure(rules), _errors_figure(errors)]
        checks = [_check_rules(rules), _check_transcripts(transcripts), _check_privacy(privacy), _check_normal(normal), _check_laws(errors)]
        medians = _Medians(errors)
        checks += _check_errors(medians) if errors else []
        checks += [figure_check([figure], table) for figure, table in zip(figures, tables, strict=True)]
        notes = [
            f"Errors at epsilon {EPSILON:g}, and delta {DELTA:g} where there is one; no noise depends on the data. Nothing says half of {RECORDS:,} for all.",
            "The bound is that of the best of all pure mechanisms for counts of any size (`bounds/packing.py`); packing gives about a third of it.",
            "That sqrt(k) is needed with a delta too is shown by attacks: experiment `tracing`.",
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(medians))


class _Medians:
    """The median of the largest errors of each mechanism and k with its 95 % interval."""

    def __init__(self, errors: Measured) -> None:
        self.errors = {(point["name"], point["k"]): np.array(found["errors"]) for point, found in errors}
        self.found = {(point["name"], point["k"]): _median(found) for point, found in errors}

    def at(self, name: str, k: int) -> tuple[float, float, float]:
        return self.found[name, k]

    def within(self, name: str, k: int, error: int) -> tuple[float, float]:
        """Between which numbers the chance of an error of at most this is, but for one time in 100,000."""
        errors = self.errors[name, k]
        return wilson(int((errors <= error).sum()), len(errors), CERTAIN)

    def power(self, name: str, low: int, high: int) -> float:
        """Of k, as which the median grows from `low` counts to `high`."""
        return math.log(self.at(name, high)[0] / self.at(name, low)[0]) / math.log(high / low)


def _headline(medians: _Medians) -> str:
    most = COUNTS[-1]
    pure, some = (f"{medians.at(name, most)[0]:,.0f}" if (name, most) in medians.found else "an unknown number" for name in (K_NORM, GAUSSIAN))
    return f"The largest of {most:,} counts is off by {pure} with pure noise, and no pure noise does better; with delta {DELTA:g} by {some}."


def _median(found: Measurement) -> tuple[float, float, float]:
    """Whole errors, so the values next to the ranks are as good as an interval of a continuous law."""
    errors = found["errors"]
    return (float(errors[0]),) * 3 if len(errors) == 1 else quantile(errors, 0.5)


def _check_rules(rules: Measured) -> Check:
    by = {point["k"]: found for point, found in rules}
    least = [found["exact"] <= min(found.values()) * (1 + 1e-9) for found in by.values()]
    power = {rule: math.log(by[10_000][rule] / by[100][rule]) / math.log(100) for rule in ("basic", "exact")} if by else {}
    return Check(
        "the exact price is the least of all rules; from 100 to 10,000 answers it grows about as sqrt(k), where adding up grows as k",
        bool(by) and all(least) and abs(power["basic"] - 1) < 1e-9 and 0.49 < power["exact"] < 0.56,
        ", ".join(f"{rule}: {by[100][rule]:.4g} to {by[10_000][rule]:.4g}, power {each:.3f}" for rule, each in power.items()),
    )


def _check_transcripts(transcripts: Measured) -> Check:
    kept = [found["enumerated"] * (1 - 1e-9) <= found["exact"] <= found["enumerated"] * (1 + 1e-9) + 1e-15 for _, found in transcripts]
    return Check(
        "and no price is lower: counts with Laplace noise lose exactly that, enumerated over all neighbours",
        bool(kept) and all(kept),
        ", ".join(f"k = {point['k']}: delta {found['enumerated']:.6g}" for point, found in transcripts),
    )


def _check_privacy(privacy: Measured) -> Check:
    pure = [(point, found) for point, found in privacy if point["name"] != COMPOSED]
    return Check(
        "enumerated over all pairs of small databases, every noise keeps to its loss, and the pure ones to no less",
        bool(pure) and all(found["at"] <= 0 for _, found in privacy) and all(found["below"] > 0 for _, found in pure),
        ", ".join(f"{point['name']}, k = {point['k']}: {found['at']:.2g}, below {found['below']:.2g}" for point, found in privacy),
    )


def _check_normal(normal: Measured) -> Check:
    return Check(
        "Gaussian noise keeps to delta by the exact rule to 1 %, and a tenth less of its variance does not",
        bool(normal) and all(found["at"] <= 1.01 * DELTA < 1.5 * DELTA < found["below"] for _, found in normal),
        ", ".join(f"k = {point['k']}: {found['at']:.4g}, with a tenth less {found['below']:.3g}" for point, found in normal),
    )


def _check_laws(errors: Measured) -> Check:
    """Ranks of errors in their laws are uniform: at three places, for each mechanism, all k together."""
    ranks = {name: np.array([rank for point, found in errors if point["name"] == name for rank in found["ranks"]]) for name in NOISES}
    below = {(name, share): int((each <= share).sum()) for name, each in ranks.items() for share in (0.1, 0.5, 0.9)}
    kept = []
    for (name, share), count in below.items():
        low, high = wilson(count, max(1, len(ranks[name])), CERTAIN)
        kept.append(low <= share <= high)
    return Check(
        "the largest errors of all runs have the laws that closed forms give",
        bool(errors) and all(kept),
        ", ".join(f"{name}: {below[name, 0.5] / max(1, len(ranks[name])):.3f} up to the median" for name in NOISES),
    )


def _check_errors(medians: _Medians) -> list[Check]:
    least, most = COUNTS[0], COUNTS[-1]
    powers = {name: medians.power(name, 256, most) for name in (K_NORM, GAUSSIAN)}
    best = {k: least_error(k, EPSILON) for k in COUNTS}
    below = [medians.within(name, k, best[k] - 1)[0] for name in (K_NORM, LAPLACE) for k in COUNTS]
    reached = [medians.within(K_NORM, k, best[k])[1] for k in COUNTS]
    each = {k: medians.at(LAPLACE, k)[1] / medians.at(K_NORM, k)[2] for k in (16, 256, most)}
    pure, some = medians.at(K_NORM, 1024), medians.at(GAUSSIAN, 1024)
    nothing = medians.at(NOTHING, 1024)[0]
    return [
        Check(
            "purely, errors grow as k; with a delta as sqrt(k) and a little more, which is a logarithm",
            0.97 < powers[K_NORM] < 1.03 and 0.5 < powers[GAUSSIAN] < 0.63,
            ", ".join(f"{name}: power {power:.3f}" for name, power in powers.items()),
        ),
        Check(
            "no pure noise has a median error below that of the best of all pure mechanisms, and noise in the shape of the cube has it",
            max(below) <= 0.5 <= min(reached),
            ", ".join(f"k = {k}: {medians.at(K_NORM, k)[0]:,.0f} and {best[k]:,}" for k in (16, 256, most)),
        ),
        Check(
            "noise on each count is worse than that of the cube, by a factor that grows with k",
            1 < each[16] < each[256] < each[most],
            ", ".join(f"k = {k}: {ratio:.2f} times or more" for k, ratio in each.items()),
        ),
        Check(
            "with a delta 256 counts and more err less than any pure mechanism can; Gaussian noise on 4,096 less than half of Laplace noise",
            all(medians.at(GAUSSIAN, k)[2] < best[k] for k in (256, 1024, most)) and 2 * medians.at(GAUSSIAN, most)[2] < medians.at(COMPOSED, most)[1],
            f"{most:,} counts: {medians.at(GAUSSIAN, most)[0]:,.0f}, Laplace {medians.at(COMPOSED, most)[0]:,.0f}, best pure {best[most]:,}",
        ),
        Check(
            "for a few counts pure noise errs less than noise that has a delta",
            all(medians.at(K_NORM, k)[2] < min(medians.at(GAUSSIAN, k)[1], medians.at(COMPOSED, k)[1]) for k in (least, 16)),
            f"k = 16: {medians.at(K_NORM, 16)[0]:.0f} and {medians.at(GAUSSIAN, 16)[0]:.0f}",
        ),
        Check(
            f"of 1,024 counts of {RECORDS:,} records pure noise tells less than saying half of them for each, and Gaussian noise more",
            some[2] < nothing < pure[1],
            f"nothing {nothing:.0f}, K-norm {pure[0]:.0f}, Gaussian {some[0]:.0f}",
        ),
    ]


def _rules_table(rules: Measured) -> Table:
    rows = [(rule, point["k"], found[rule]) for rule in RULES for point, found in rules]
    return Table(f"what k answers of epsilon {EACH:g} come to, delta {DELTA:g}", ("rule", "answers", "epsilon"), rows)


def _errors_table(errors: Measured) -> Table:
    rows: list[tuple[object, ...]] = []
    for point, found in errors:
        rows.append((point["name"], point["k"], *_median(found), found.get("stated", found["errors"][0]), point["runs"]))
    for k in COUNTS if errors else ():
        rows += [(name, k, *(bound(k, EPSILON),) * 4, 0) for name, bound in ((BOUND, least_error), ("packing", packing_error))]
    return Table("the largest error of k counts", ("answer", "counts", "median", "at least 95 % from", "to", "by its law", "runs"), rows)


def _rules_figure(rules: Measured) -> Figure:
    answers = [point["k"] for point, _ in rules]
    curves = [Curve(rule, answers, [found[rule] for _, found in rules]) for rule in RULES]
    return Figure("price-rules", f"What k answers of epsilon {EACH:g} cost", "answers k", "epsilon beside delta 1e-6", curves, log_x=True, log_y=True)


def _errors_figure(errors: Measured) -> Figure:
    curves = []
    for name in dict.fromkeys(point["name"] for point, _ in errors):
        chosen = [(point["k"], *_median(found)) for point, found in errors if point["name"] == name]
        k, middle, low, high = zip(*chosen, strict=True)
        curves.append(Curve(name, k, middle, low=low, high=high))
    curves.append(Curve(BOUND, COUNTS, [least_error(k, EPSILON) for k in COUNTS], style="bound"))
    return Figure("price-errors", "The largest error of k counts of the same records, epsilon 1", "counts k", "median error", curves, log_x=True, log_y=True)


EXPERIMENT = Price()
