"""Many answers at once: weights on all points against noise on every answer, and where either pays."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.curator.many_answers import runs
from local_dp.experiments.claims.curator.many_answers.runs import (
    CONCENTRATED,
    DUAL,
    FOURIER,
    GAUSSIAN,
    HALTED,
    HISTOGRAM,
    LAPLACE,
    NEAREST,
    NOTHING,
    PMW,
    PRODUCT,
    PURE,
    SMALL,
    TENTH,
    WEIGHTS,
)
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import ratio, relative_error, student

QUERIES: dict[Scale, tuple[int, ...]] = {"quick": (100, 1000, 2000), "full": (100, 1000, 10_000, 100_000)}
SMALL_SIZES, SMALL_ROWS = (100, 1000, 10_000), (4, 10)
SIZES: dict[Scale, tuple[int, ...]] = {"quick": (1000, 5000, 15_000), "full": (300, 1000, 5000, 15_000, 100_000)}
COLUMNS = 12
RUNS: dict[Scale, int] = {"quick": 8, "full": 16}
CERTAIN = 4.4  # standard errors: a right order is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]


class ManyAnswers(Experiment[Point, Measurement]):
    """Lecture notes 3; Hardt, Rothblum 2010; Hardt, Ligett, McSherry 2012."""

    name: ClassVar[str] = "many-answers"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Many answers: a table of weights against noise on each of them"
    claim: ClassVar[str] = (
        "Noise on each of k answers grows with sqrt(k). Private multiplicative weights answer from a hypothesis, at an error that hardly depends on k; small "
        "databases do so at an error that depends on their size. On random queries of a few hundred points both lose to a noisy histogram of these points, and "
        "the weights to Gaussian noise, too. Where a histogram has more cells than there are records, weights pay: a synthetic table that is fitted to chosen "
        "marginals, with noise counted in rho, answers all 3-way marginals better than any baseline. The table nearest to one release of all their characters "
        "does as well or better, in one round, and with many records noise on the characters alone is as good."
    )
    source: ClassVar[str] = "Blum, Ligett, Roth 2008; Hardt, Rothblum 2010; Hardt, Ligett, McSherry 2012; Gaboardi et al. 2014"

    def points(self, scale: Scale) -> list[Point]:
        trials = RUNS[scale]
        return [
            *({"kind": "privacy", "what": what} for what in runs.PROVED),
            *({"kind": "queries", "k": k, "runs": trials + (12 if k < 1000 else 0)} for k in QUERIES[scale]),
            *({"kind": "small", "n": n, "rows": list(SMALL_ROWS), "runs": 2 * trials} for n in SMALL_SIZES),
            *({"kind": "marginals", "n": n, "d": COLUMNS, "runs": trials} for n in SIZES[scale]),
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] == "privacy":
            return runs.measure_privacy(point)
        kinds = {"queries": runs.measure_queries, "small": runs.measure_small, "marginals": runs.measure_marginals}
        return kinds[point["kind"]](point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        privacy, queries, small, marginals = ([each for each in measurements if each[0]["kind"] == kind] for kind in KINDS)
        tables = [_table(TITLES[0], "queries", "k", queries), _answered_table(queries), _table(TITLES[1], "records", "n", small)]
        tables.append(_table(TITLES[2], "records", "n", marginals))
        figures = [
            _figure("many-answers-queries", TITLES[0], ("queries k", "k"), queries, (NOTHING, LAPLACE, GAUSSIAN, HISTOGRAM, PMW, TENTH)),
            _answered_figure(queries),
            _figure("many-answers-small", TITLES[1], ("records n", "n"), small, None),
            _figure("many-answers-marginals", TITLES[2], ("records n", "n"), marginals, (PRODUCT, HISTOGRAM, DUAL, CONCENTRATED, FOURIER, NEAREST)),
        ]
        checks = [_check_privacy(privacy), *_check_weights(queries), *_check_losers(queries), _check_halted(queries)]
        checks += [_check_small(small), *_check_marginals(marginals)]
        checks += [figure_check([figure], table) for figure, table in zip(figures, tables, strict=True)]
        return Finding(checks, tables, figures, [NOTE], headline=_headline(queries, marginals))


KINDS = ("privacy", "queries", "small", "marginals")
TITLES = (
    f"largest error of k random queries, {runs.RECORDS:,} records of {1 << runs.POINTS_BITS} points",
    "largest error of all 27 conjunctions of 3 bits",
    f"largest error of a cell of all 3-way marginals of {COLUMNS} columns",
)
ANSWERED = "random queries that were answered before the changes were used up"
NOTE = (
    "The first rule of private multiplicative weights is right on all data; how many changes are allowed, a tenth or a fiftieth of these, is a bet on the data "
    "at hand, which sees none of it. A run that lost its bet says so: its error is that of the queries which it answered, and only that. MWEM's number of "
    "rounds comes from n, the number of columns and the budget."
)


def _headline(queries: Measured, marginals: Measured) -> str:
    """The largest errors at the most queries, and at the most records that MWEM is compared on."""
    (asked, weighed), (held, told) = (
        max(each, key=lambda pair: tuple(pair[0].get(key, 0) for key in ("k", "n")), default=({}, {})) for each in (queries, marginals)
    )
    if not asked or not held:
        return "Nothing was asked of random queries or of marginals."
    first = ", ".join(f"{np.mean(weighed['errors'][name]):.2g} ({name})" for name in (HISTOGRAM, GAUSSIAN, LAPLACE, PMW))
    second = ", ".join(f"{np.mean(told['errors'][name]):.2g} ({name})" for name in (NEAREST, CONCENTRATED, GAUSSIAN, PRODUCT))
    return f"{asked['k']:,} random queries are off by {first}; the 3-way marginals of {held['n']:,} records by {second}."


def _of(measured: Measured, key: str, value: int, name: str, what: str = "errors") -> list[float]:
    return next(found[what][name] for point, found in measured if point[key] == value)


def _check_privacy(privacy: Measured) -> Check:
    shares = {point["what"]: found["share"] for point, found in privacy}
    return Check(
        "whole transcripts on all pairs of small neighbours, enumerated, lose no more than is claimed, and .4 of it or more",
        len(shares) == len(runs.PROVED) and all(0.4 < share <= 1 for share in shares.values()),
        ", ".join(f"{what}: {share:.3f} of it" for what, share in shares.items()),
    )


def _check_weights(queries: Measured) -> list[Check]:
    """What the rule promises, and that it does not grow as noise does."""
    kept = [max(found["errors"][PMW]) <= 1.5 * found["alpha"][PMW] and min(found["answered"][PMW]) == 1 for _, found in queries]
    promised = Check(
        "PMW by the rule that sees no data answers all queries within 3/2 alpha",
        bool(kept) and all(kept),
        ", ".join(f"k = {point['k']:,}: {max(found['errors'][PMW]):.3f}, alpha {found['alpha'][PMW]:.3f}" for point, found in queries),
    )
    sizes = [point["k"] for point, _ in queries]
    if len(sizes) < 2:
        return [promised]
    grown = {name: ratio(_of(queries, "k", sizes[-1], name), _of(queries, "k", sizes[0], name), CERTAIN) for name in (PMW, LAPLACE, GAUSSIAN)}
    roots = math.sqrt(sizes[-1] / sizes[0])
    flat = Check(
        "from the fewest queries to the most, errors of noise on each answer grow as sqrt(k) and more, those of PMW by less than half",
        grown[PMW][2] < 1.5 and all(grown[name][1] > roots / 2 and grown[name][2] > roots for name in (LAPLACE, GAUSSIAN)),
        f"sqrt(k): {roots:.1f}; " + ", ".join(f"{name}: {value:.2f} [{low:.2f}, {high:.2f}]" for name, (value, low, high) in grown.items()),
    )
    return [promised, flat]


def _better(measured: Measured, key: str, statement: str, pairs: list[tuple[int, str, str]]) -> Check:
    """Whether the first of each pair errs less than the second there."""
    found = [(size, better, worse, ratio(_of(measured, key, size, worse), _of(measured, key, size, better), CERTAIN)) for size, better, worse in pairs]
    said = [f"{key} = {size:,}: {better} {value:.1f} [{low:.1f}, {high:.1f}] times below {worse}" for size, better, worse, (value, low, high) in found]
    return Check(statement, bool(found) and all(low > 1 for *_, (_, low, _) in found), "; ".join(said))


def _check_losers(queries: Measured) -> list[Check]:
    """All of them at every k, and what the largest k turns."""
    sizes = [point["k"] for point, _ in queries]
    checks = [
        _better(queries, "k", "a noisy histogram of the points beats PMW, bet or not", [(k, HISTOGRAM, name) for k in sizes for name in (PMW, TENTH)]),
        _better(queries, "k", "Gaussian noise on each answer beats PMW, bet or not", [(k, GAUSSIAN, name) for k in sizes for name in (PMW, TENTH)]),
        _better(queries, "k", "PMW errs less than no data", [(k, PMW, NOTHING) for k in sizes]),
    ]
    if 100_000 in sizes:
        checks.append(_better(queries, "k", "with 100,000 queries PMW by a bet beats Laplace noise", [(100_000, TENTH, LAPLACE)]))
    return checks


def _check_halted(queries: Measured) -> Check:
    """A run that used up its changes is told apart; the error of what it answered looks best."""
    large = [(point, found) for point, found in queries if point["k"] >= 1000]
    halted = [max(found["answered"][HALTED]) < 0.5 and max(found["errors"][HALTED]) < min(found["errors"][TENTH]) for _, found in large]
    return Check(
        "with a fiftieth of the changes PMW halts, says so, and looks better than it is: what it answered errs less than the whole of others' answers",
        bool(halted) and all(halted) and all(min(found["answered"][TENTH]) == 1 for _, found in large),
        ", ".join(
            f"k = {point['k']:,}: {np.mean(found['answered'][HALTED]):.2g} answered, error {np.mean(found['errors'][HALTED]):.3f}" for point, found in large
        ),
    )


def _check_small(small: Measured) -> Check:
    names = [f"{SMALL}, {rows} rows" for rows in SMALL_ROWS]
    pairs = [(point["n"], HISTOGRAM, name) for point, _ in small if point["n"] >= 1000 for name in names]
    return _better(small, "n", "a noisy histogram beats small databases (BLR) from 1,000 records on", pairs)


def _check_marginals(marginals: Measured) -> list[Check]:
    """Where there are records enough to tell the columns' dependence."""
    checks = []
    for name, least in ((HISTOGRAM, 1000), (GAUSSIAN, 1000), (DUAL, 1000), (PURE, 5000), (PRODUCT, 5000)):
        sizes = [point["n"] for point, _ in marginals if least <= point["n"] <= 15_000]
        said = f"MWEM with its noise in rho beats {name}, from {least:,} to 15,000 records"
        checks.append(_better(marginals, "n", said, [(n, CONCENTRATED, name) for n in sizes]))
    large = [point["n"] for point, _ in marginals if point["n"] >= 5000]
    checks.append(_better(marginals, "n", "pure MWEM beats the product of columns from 5,000 records on", [(n, PURE, PRODUCT) for n in large]))
    return [*checks, _check_nearest(marginals)]


def _check_nearest(marginals: Measured) -> Check:
    """Against MWEM everywhere, against noise alone where there is much of it and where there is little."""
    if len(marginals) < 2:
        return Check("the nearest table was compared", False, "too few numbers of records")
    sizes = [point["n"] for point, _ in marginals]

    def times(n: int, name: str) -> tuple[float, float, float]:
        return ratio(_of(marginals, "n", n, name, "means"), _of(marginals, "n", n, NEAREST, "means"), CERTAIN)

    weighed, much, little = {n: times(n, CONCENTRATED) for n in sizes}, times(min(sizes), FOURIER), times(max(sizes), FOURIER)
    return Check(
        "in the mean over cells the table nearest to noisy characters errs no more than MWEM, less with many records, and less than the characters with few",
        all(high > 1 for _, _, high in weighed.values()) and weighed[max(sizes)][0] > 1.1 and much[1] > 1 and 0.9 < little[0] < 1.15,
        "; ".join(f"n = {n:,}: MWEM {value:.2f} [{low:.2f}, {high:.2f}] times" for n, (value, low, high) in weighed.items())
        + f"; characters {much[0]:.2f} times at {min(sizes):,}, {little[0]:.2f} at {max(sizes):,}",
    )


def _interval(values: list[float]) -> tuple[float, float, float]:
    """The mean, and 95 % for it, on a logarithmic scale: errors are positive."""
    mean = float(np.mean(values))
    error = relative_error(values) * student(len(values) - 1)
    return mean, mean * math.exp(-error), mean * math.exp(error)


def _table(title: str, what: str, key: str, measured: Measured) -> Table:
    rows = []
    for point, found in measured:
        for name, errors in found["errors"].items():
            means = [float(np.mean(found["means"][name]))] if "means" in found else []
            rows.append((name, point[key], *_interval(errors), *means, point["runs"]))
    cells = ("mean error",) if any("means" in found for _, found in measured) else ()
    return Table(title, ("answer", what, "largest error", "95 % from", "to", *cells, "runs"), rows)


def _answered_table(queries: Measured) -> Table:
    rows = [
        (name, point["k"], float(np.mean(found["answered"][name])), found["alpha"][name], float(np.mean(found["errors"][name])))
        for point, found in queries
        for name in WEIGHTS
    ]
    return Table(ANSWERED, ("answer", "queries", "answered", "alpha", "largest error of these"), rows)


def _figure(name: str, title: str, axis: tuple[str, str], measured: Measured, chosen: tuple[str, ...] | None) -> Figure:
    curves = []
    for label in chosen or tuple(measured[0][1]["errors"]) if measured else ():
        middle, low, high = zip(*(_interval(found["errors"][label]) for _, found in measured), strict=True)
        curves.append(Curve(label, [point[axis[1]] for point, _ in measured], middle, low=low, high=high))
    return Figure(name, title[0].upper() + title[1:], axis[0], "largest error (share of the records)", curves, log_x=True, log_y=True)


def _answered_figure(queries: Measured) -> Figure:
    sizes = [point["k"] for point, _ in queries]
    curves = [Curve(name, sizes, [float(np.mean(found["answered"][name])) for _, found in queries]) for name in WEIGHTS]
    return Figure("many-answers-halted", "The share of the queries that PMW answers", "queries k", "share answered", curves, log_x=True)


EXPERIMENT = ManyAnswers()
