"""Intervals: what one trusted server pays for all interval counts at once, and what clients pay who trust nobody."""

import math
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.curator.intervals.factorization import PrefixFactorization
from local_dp.curator.intervals.least_squares import prefix_variances
from local_dp.curator.intervals.level import Level
from local_dp.curator.intervals.tree import CountTree, best_branching
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import about, ratio, slope
from local_dp.interaction import run
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.protocols.vectors.workload import PrefixSums

EPSILON, DELTA = 1.0, 1e-6
BITS: dict[Scale, tuple[int, ...]] = {"quick": (4, 6, 8, 10, 12, 14), "full": (4, 6, 8, 10, 12, 14, 16, 18, 20)}
RUNS: dict[Scale, int] = {"quick": 240, "full": 2000}
POINTS = 1 << 19  # of the domains of all runs of one case: larger domains get fewer runs
LOCAL_BITS, CLIENTS = (4, 6, 8), (10_000, 100_000, 1_000_000)
LOCAL_RUNS: dict[Scale, int] = {"quick": 16, "full": 100}
CERTAIN = 4.4  # standard errors: a right mean is called wrong once in 100,000
FLAT, BINARY, CONSISTENT, TREE, ROOT = "flat", "binary, added up", "binary, consistent", "best tree, consistent", "factorization (delta 1e-6)"
KINDS = (FLAT, BINARY, CONSISTENT, TREE, ROOT)
TOLD = (FLAT, TREE, ROOT)  # by the headline
LOCAL = "local, prefix-sums"
Measured = list[tuple[Point, Measurement]]


def mechanism(kind: str, bits: int) -> CountTree | PrefixFactorization:
    """The release of all intervals of this kind."""
    if kind == ROOT:
        return PrefixFactorization(bits, EPSILON, DELTA)
    branching = best_branching(bits, EPSILON) if kind == TREE else {FLAT: 1 << bits, BINARY: 2, CONSISTENT: 2}[kind]
    return CountTree(bits, EPSILON, branching, kind != BINARY)


class Intervals(Experiment[Point, Measurement]):
    """All interval counts of an ordered domain, trusted and local."""

    name: ClassVar[str] = "intervals"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Intervals: every range count of an ordered column at once"
    claim: ClassVar[str] = (
        "A trusted curator answers all interval counts of D ordered values with an error that grows with a power of ln D and not with the number of records. "
        "Noise on every cell is best for small domains; from about a thousand values on a tree of counts, with some 16 children a node and made consistent, is "
        "better; and with a little delta a factorization of prefix sums better still on large ones. Clients who trust nobody pay sqrt(n) times more."
    )
    source: ClassVar[str] = "Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013; Fichtenberger, Henzinger, Upadhyay 2023; Edmonds, Nikolov, Ullman 2020"

    def points(self, scale: Scale) -> list[Point]:
        central = [
            {"kind": kind, "bits": bits, "runs": max(12, min(RUNS[scale], POINTS * RUNS[scale] // RUNS["quick"] >> bits))}
            for bits in BITS[scale]
            for kind in KINDS
        ]
        local = [{"kind": LOCAL, "bits": bits, "n": n, "runs": LOCAL_RUNS[scale]} for bits in LOCAL_BITS for n in CLIENTS]
        return [*central, *local, *({"kind": "privacy", "width": width} for width in (1, 2))]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] == "privacy":
            return _measure_privacy(point)
        return _measure_local(point, seed) if point["kind"] == LOCAL else _measure_central(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        privacy, local, central = ([(point, found) for point, found in measurements if _group(point) == group] for group in ("privacy", LOCAL, "central"))
        tables = [_table(central), _local_table(local)]
        figures = [_figure(central), _local_figure(local)]
        checks = [_check_privacy(privacy), _check_variances(central), *_check_order(central), *_check_local(local, central)]
        checks += [figure_check([figure], table) for figure, table in zip(figures, tables, strict=True)]
        notes = ["The error of a release does not depend on the data: any database gives these figures."]
        return Finding(checks, tables, figures, notes, headline=_headline(central, local))


def _group(point: Point) -> str:
    return point["kind"] if point["kind"] in ("privacy", LOCAL) else "central"


def _measure_central(point: Point, seed: int) -> Measurement:
    """The largest errors over intervals and over thresholds of each run; and the mean of all thresholds' squared errors in units of their stated variance."""
    release, bits = mechanism(point["kind"], point["bits"]), point["bits"]
    points = Multiset.of([0, 1, (1 << bits) - 1], bits)
    draws, stated = Draws(KeyedNoise(seed), KINDS.index(point["kind"]) << 8 | bits), _stated(release)
    found: dict[str, list[float]] = {"intervals": [], "thresholds": [], "scores": []}
    for _ in range(point["runs"]):
        errors = release.release(points, draws).errors(points)
        found["intervals"].append(float(np.ptp(errors)))
        found["thresholds"].append(float(np.abs(errors).max()))
        if stated is not None:
            found["scores"].append(float(np.mean(errors[1:-1] ** 2 / stated[1:-1])))
    return found


def _stated(release: CountTree | PrefixFactorization) -> Floats | None:
    """The variance of each threshold in closed form; of a tree that is added up there is none here."""
    if isinstance(release, PrefixFactorization):
        return release.deviations() ** 2
    one = 1 / (2 * math.sinh(release.levels[0].epsilon / 4) ** 2)
    return one * prefix_variances(release.shape) if release.by_least_squares else None


def _measure_local(point: Point, seed: int) -> Measurement:
    """The same errors in records, from one bit a client."""
    protocol, n = PrefixSums(k=1 << point["bits"]), point["n"]
    population, generator = protocol.synthetic(n, 0), np.random.default_rng([seed, point["bits"], n])
    found: dict[str, list[float]] = {"intervals": [], "thresholds": []}
    for _ in range(point["runs"]):
        estimate = run(protocol.algorithm(EPSILON, n), AggregateOracle(population, generator, EPSILON))
        errors = n * np.append(0.0, estimate.value - protocol.truth(population))
        found["intervals"].append(float(np.ptp(errors)))
        found["thresholds"].append(float(np.abs(errors).max()))
    return found


def _measure_privacy(point: Point) -> Measurement:
    """The worst delta of a level over all pairs of two records of four values, at its epsilon and at a nano-nat less."""
    level = Level(2, point["width"], EPSILON)
    databases = SmallDatabases([(value,) for value in range(4)], 2, lambda records: Multiset.of([value for (value,) in records], 2))
    worst = (databases.worst_delta(level, Pure(level.loss.nano - less)) for less in (0, 1))
    return dict(zip(("at", "below"), map(float, worst), strict=True))


def _headline(central: Measured, local: Measured) -> str:
    bits = max((point["bits"] for point, _ in central), default=0)
    errors = ", ".join(f"{np.mean(found['intervals']):,.0f} ({point['kind']})" for point, found in central if point["bits"] == bits and point["kind"] in TOLD)
    point, found = max(local, key=lambda each: (each[0]["bits"], each[0]["n"]), default=({}, {}))
    clients = f", and by {np.mean(found['intervals']):,.0f} of 2^{point['bits']} values gathered from {point['n']:,} clients" if point else ""
    return f"Over all intervals of 2^{bits} values a curator's counts are off by {errors or 'an unknown number'}{clients}."


def _check_privacy(privacy: Measured) -> Check:
    return Check(
        "a level of counts is pure at its epsilon, and at no less: enumerated over all pairs of databases of two records",
        bool(privacy) and all(found["at"] == 0 < found["below"] for _, found in privacy),
        ", ".join(f"width {point['width']}: delta {found['at']:g}, at 1e-9 nats less {found['below']:.2g}" for point, found in privacy),
    )


def _check_variances(central: Measured) -> Check:
    """By kind, all domains together. Means of dependent squares are skewed: 5 standard errors are passed about as often as 4 by normal ones."""
    scores = {kind: np.array([score for point, found in central if point["kind"] == kind for score in found["scores"]]) for kind in KINDS if kind != BINARY}
    far = {kind: abs(each.mean() - 1) / (each.std(ddof=1) / math.sqrt(len(each))) for kind, each in scores.items() if len(each) > 1}
    return Check(
        "the squared errors of all thresholds are on average what closed forms say",
        len(far) == len(scores) and max(far.values()) < 5,
        ", ".join(f"{kind}: {scores[kind].mean():.3f} of it, {errors:.1f} standard errors away" for kind, errors in far.items()),
    )


def _of(central: Measured, kind: str, bits: int) -> list[float]:
    return next(found["intervals"] for point, found in central if (point["kind"], point["bits"]) == (kind, bits))


def _check_order(central: Measured) -> list[Check]:
    """Which release has the smaller largest error over all intervals, at the ends of the range of domains."""
    sizes = sorted({point["bits"] for point, _ in central})
    if not sizes:
        return []
    small, large = sizes[0], sizes[-1]
    said = [
        ("consistency makes a binary tree better", CONSISTENT, BINARY, large),
        ("a flat histogram beats a tree on a small domain", FLAT, CONSISTENT, small),
        ("the best tree beats a flat histogram on a large domain", TREE, FLAT, large),
        ("the best tree beats a flat histogram from a thousand values on", TREE, FLAT, 10),
        ("the best tree beats a binary one", TREE, CONSISTENT, large),
        ("a flat histogram beats the factorization on a small domain", FLAT, ROOT, small),
        ("with a delta, the factorization beats the tree on a large domain", ROOT, TREE, large),
    ]
    checks = []
    for statement, better, worse, bits in said:
        times, low, high = ratio(_of(central, worse, bits), _of(central, better, bits), CERTAIN)
        checks.append(Check(f"{statement}, 2^{bits} values", low > 1, f"{times:.2f} [{low:.2f}, {high:.2f}] times smaller"))
    return checks


def _check_local(local: Measured, central: Measured) -> list[Check]:
    """Errors grow as sqrt(n)."""
    checks = []
    for bits in sorted({point["bits"] for point, _ in local}):
        chosen = [(point["n"], np.array(found["intervals"])) for point, found in local if point["bits"] == bits]
        logs = np.log([errors.mean() for _, errors in chosen])
        spread = np.array([errors.std(ddof=1) / errors.mean() / math.sqrt(len(errors)) for _, errors in chosen])
        power, error = slope(np.log([n for n, _ in chosen]), logs, spread)
        low, high = about(power, error, CERTAIN)
        n, errors = chosen[-1]
        times = errors.mean() / np.mean(_of(central, TREE, bits))
        statement = f"locally the error grows as sqrt(n), 2^{bits} values"
        checks.append(
            Check(statement, low <= 0.5 <= high and error < 0.03, f"power {power:.3f} [{low:.3f}, {high:.3f}]; {times:.0f} times the tree's at n = {n:,}")
        )
    return checks


def _table(central: Measured) -> Table:
    rows = []
    for point, found in central:
        means = [(float(np.mean(found[over])), float(np.std(found[over], ddof=1) / math.sqrt(len(found[over])))) for over in ("intervals", "thresholds")]
        low, high = about(*means[0])
        rows.append((point["kind"], 2 ** point["bits"], means[0][0], low, high, means[1][0], point["runs"]))
    columns = ("release", "values", "largest error, intervals", "95 % from", "to", "thresholds", "runs")
    return Table("largest errors of a trusted curator, in records", columns, rows)


def _local_table(local: Measured) -> Table:
    rows = []
    for point, found in local:
        mean, roots = float(np.mean(found["intervals"])), math.sqrt(point["n"])
        rows.append((_local_name(point), point["n"], mean, mean / roots, float(np.mean(found["thresholds"])) / roots, point["runs"]))
    return Table("largest errors of clients, in records", ("release", "n", "largest error, intervals", "by sqrt(n)", "thresholds by sqrt(n)", "runs"), rows)


def _local_name(point: Point) -> str:
    return f"local, 2^{point['bits']} values"


def _figure(central: Measured) -> Figure:
    curves = []
    for kind in KINDS:
        rows = [row for row in _table(central).rows if row[0] == kind]
        curves.append(Curve(kind, [row[1] for row in rows], [row[2] for row in rows], low=[row[3] for row in rows], high=[row[4] for row in rows]))
    return Figure("intervals", "All interval counts from a trusted curator, epsilon 1", "values D", "largest error (records)", curves, log_x=True, log_y=True)


def _local_figure(local: Measured) -> Figure:
    curves = []
    for bits in sorted({point["bits"] for point, _ in local}):
        chosen = [(point, found) for point, found in local if point["bits"] == bits]
        curves.append(Curve(_local_name(chosen[0][0]), [point["n"] for point, _ in chosen], [float(np.mean(found["intervals"])) for _, found in chosen]))
    return Figure("intervals-local", "All interval counts from clients, epsilon 1", "clients n", "largest error (records)", curves, log_x=True, log_y=True)


EXPERIMENT = Intervals()
