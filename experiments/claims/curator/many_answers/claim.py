"""Many answers at once: weights on all points against noise on every answer, and where either pays."""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

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
    TENTH,
    WEIGHTS,
    AllMarginals,
    Errors,
    Privacy,
    Queries,
    Share,
    Small,
)
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS
from local_dp.experiments.lab.checks import every, within
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, of_kind
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import CERTAIN, curves, mean_log, smaller
from local_dp.experiments.lab.intervals import ratio

QUERIES: dict[Scale, tuple[int, ...]] = {"quick": (100, 1000, 2000), "full": (100, 1000, 10_000, 100_000)}
SMALL_SIZES, SMALL_ROWS = (100, 1000, 10_000), (4, 10)
SIZES: dict[Scale, tuple[int, ...]] = {"quick": (1000, 5000, 15_000), "full": (300, 1000, 5000, 15_000, 100_000)}
COLUMNS = 12
RUNS: dict[Scale, int] = {"quick": 8, "full": 16}
TITLES = (
    f"largest error of k random queries, {runs.RECORDS:,} records of {1 << runs.POINTS_BITS} points",
    "largest error of all 27 conjunctions of 3 bits",
    f"largest error of a cell of all 3-way marginals of {COLUMNS} columns",
)
Sized: TypeAlias = dict[int, Errors]  # by the number of queries or of records


class ManyAnswers(Experiment[Privacy | Queries | Small | AllMarginals, Errors | Share]):
    name = "many-answers"
    chapter = CURATOR_AND_ATTACKS
    title = "Many answers: a table of weights against noise on each of them"
    claim = (
        "Noise on each of k answers grows with sqrt(k). Private multiplicative weights answer from a hypothesis, at an error that hardly depends on k; small "
        "databases do so at an error that depends on their size. On random queries of a few hundred points both lose to a noisy histogram of these points, and "
        "the weights to Gaussian noise, too. Weights pay where a histogram has more cells than there are records. A synthetic table fitted to selected "
        "marginals, with noise counted in rho, then answers all 3-way marginals better than any baseline. The table nearest to one release of all their "
        "characters does as well or better, in one round. With many records noise on the characters alone is as good."
    )
    source = "Blum, Ligett, Roth 2008; Hardt, Rothblum 2010; Hardt, Ligett, McSherry 2012; Gaboardi et al. 2014"

    def points(self, scale: Scale) -> list[Privacy | Queries | Small | AllMarginals]:
        trials = RUNS[scale]
        return [
            *(Privacy(what) for what in runs.PROVED),
            *(Queries(k, trials + (12 if k < 1000 else 0)) for k in QUERIES[scale]),
            *(Small(n, SMALL_ROWS, 2 * trials) for n in SMALL_SIZES),
            *(AllMarginals(n, COLUMNS, trials) for n in SIZES[scale]),
        ]

    def conclude(self, measurements: list[tuple[Any, Any]], scale: Scale) -> Finding:
        queries: Sized = {p.k: m for p, m in of_kind(measurements, Queries)}
        small: Sized = {p.n: m for p, m in of_kind(measurements, Small)}
        marginals: Sized = {p.n: m for p, m in of_kind(measurements, AllMarginals)}
        answered = [(name, k, float(np.mean(m.answered[name])), m.alpha[name], float(np.mean(m.errors[name]))) for k, m in queries.items() for name in WEIGHTS]
        columns = ("answer", "queries", "answered", "alpha", "largest error of these")
        halted = Table("random queries that were answered before the changes were used up", columns, answered)
        tables = [_table(TITLES[0], "queries", queries), halted, _table(TITLES[1], "records", small), _table(TITLES[2], "records", marginals)]
        shares = sorted((row[:3] for row in answered), key=lambda row: list(WEIGHTS).index(row[0]))
        figures = [
            _figure("queries", TITLES[0], "queries k", queries, (NOTHING, LAPLACE, GAUSSIAN, HISTOGRAM, PMW, TENTH)),
            Figure("many-answers-halted", "The share of the queries that PMW answers", "queries k", "share answered", curves(shares), log_x=True),
            _figure("small", TITLES[1], "records n", small, next((tuple(m.errors) for m in small.values()), ())),
            _figure("marginals", TITLES[2], "records n", marginals, (PRODUCT, HISTOGRAM, DUAL, CONCENTRATED, FOURIER, NEAREST)),
        ]
        proved = {p.what: m.share for p, m in of_kind(measurements, Privacy)}
        names = [f"{runs.SMALL}, {rows} rows" for rows in SMALL_ROWS]
        pairs = [(n, HISTOGRAM, name) for n in small if n >= 1000 for name in names]
        checks = [
            within(
                "whole transcripts on all pairs of small neighbours, enumerated, lose no more than is claimed, and .4 of it or more",
                proved,
                0.4,
                1,
                spec=".3f",
                also=len(proved) == len(runs.PROVED),
            ),
            *_check_weights(queries),
            *_check_losers(queries),
            _check_halted({k: m for k, m in queries.items() if k >= 1000}),
            _better(small, "n", "a noisy histogram beats small databases (BLR) from 1,000 records on", pairs),
            *_check_marginals(marginals),
            *(figure_check([figure], table) for figure, table in zip(figures, tables, strict=True)),
        ]
        notes = [
            "The first rule of private multiplicative weights is right on all data. A tenth or a fiftieth of its changes is a bet on the data at hand, made "
            "without seeing them. A run that lost its bet reports so: its error is that of the queries that it answered. MWEM's number of rounds comes from "
            "n, the number of columns and the budget."
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(queries, marginals))


def _headline(queries: Sized, marginals: Sized) -> str:
    """The largest errors at the most queries, and at the most records that MWEM is compared on."""
    if not queries or not marginals:
        return "Nothing was asked of random queries or of marginals."
    k, n = max(queries), max(marginals)
    first = ", ".join(f"{np.mean(queries[k].errors[name]):.2g} ({name})" for name in (HISTOGRAM, GAUSSIAN, LAPLACE, PMW))
    second = ", ".join(f"{np.mean(marginals[n].errors[name]):.2g} ({name})" for name in (NEAREST, CONCENTRATED, GAUSSIAN, PRODUCT))
    return f"{k:,} random queries are off by {first}; the 3-way marginals of {n:,} records by {second}."


def _check_weights(queries: Sized) -> list[Check]:
    """The rule's promise, and that its error does not grow as noise does."""
    worst = {k: (max(m.errors[PMW]), m.alpha[PMW], min(m.answered[PMW])) for k, m in queries.items()}
    promised = every(
        "PMW by the rule that sees no data answers all queries within 3/2 alpha",
        ((error <= 1.5 * alpha and answered == 1, f"k = {k:,}: {error:.3f}, alpha {alpha:.3f}") for k, (error, alpha, answered) in worst.items()),
    )
    if len(queries) < 2:
        return [promised]
    few, many = min(queries), max(queries)
    grown = {name: ratio(queries[many].errors[name], queries[few].errors[name], CERTAIN) for name in (PMW, LAPLACE, GAUSSIAN)}
    root = math.sqrt(many / few)
    flat = Check(
        "from the fewest queries to the most, errors of noise on each answer grow as sqrt(k) and more, those of PMW by less than half",
        grown[PMW][2] < 1.5 and all(grown[name][1] > root / 2 and grown[name][2] > root for name in (LAPLACE, GAUSSIAN)),
        f"sqrt(k): {root:.1f}; " + ", ".join(f"{name}: {value:.2f} [{low:.2f}, {high:.2f}]" for name, (value, low, high) in grown.items()),
    )
    return [promised, flat]


def _better(measured: Sized, key: str, statement: str, pairs: Iterable[tuple[int, str, str]]) -> Check:
    """Whether the first of each pair errs less than the second there."""
    cases = ((measured[n].errors[better], measured[n].errors[worse], f"{key} = {n:,}, {better} against {worse}: ") for n, better, worse in pairs)
    return smaller(statement, cases)


def _check_losers(queries: Sized) -> list[Check]:
    """All of them at every k, and the reversal at the largest k."""
    checks = [
        _better(queries, "k", "a noisy histogram of the points beats PMW, bet or not", ((k, HISTOGRAM, name) for k in queries for name in (PMW, TENTH))),
        _better(queries, "k", "Gaussian noise on each answer beats PMW, bet or not", ((k, GAUSSIAN, name) for k in queries for name in (PMW, TENTH))),
        _better(queries, "k", "PMW errs less than no data", ((k, PMW, NOTHING) for k in queries)),
    ]
    if 100_000 in queries:
        checks.append(_better(queries, "k", "with 100,000 queries PMW by a bet beats Laplace noise", [(100_000, TENTH, LAPLACE)]))
    return checks


def _check_halted(large: Sized) -> Check:
    """A run that used up its changes is marked; the error of its answers looks best."""
    cases = []
    for k, m in large.items():
        halted, errors = m.answered[HALTED], m.errors[HALTED]
        holds = max(halted) < 0.5 and max(errors) < min(m.errors[TENTH]) and min(m.answered[TENTH]) == 1
        cases.append((holds, f"k = {k:,}: {np.mean(halted):.2g} answered, error {np.mean(errors):.3f}"))
    return every(
        "with a fiftieth of the changes PMW halts, says so, and looks better than it is: its answers err less than the whole of others' answers", cases
    )


def _check_marginals(marginals: Sized) -> list[Check]:
    """With enough records to show the columns' dependence."""
    checks = []
    for name, least in ((HISTOGRAM, 1000), (GAUSSIAN, 1000), (DUAL, 1000), (PURE, 5000), (PRODUCT, 5000)):
        statement = f"MWEM with its noise in rho beats {name}, from {least:,} to 15,000 records"
        checks.append(_better(marginals, "n", statement, ((n, CONCENTRATED, name) for n in marginals if least <= n <= 15_000)))
    large = ((n, PURE, PRODUCT) for n in marginals if n >= 5000)
    return [*checks, _better(marginals, "n", "pure MWEM beats the product of columns from 5,000 records on", large), _check_nearest(marginals)]


def _check_nearest(marginals: Sized) -> Check:
    """Against MWEM everywhere, against noise alone where there is much of it and where there is little."""
    if len(marginals) < 2:
        return Check("the nearest table was compared", False, "too few numbers of records")
    few, many = min(marginals), max(marginals)
    weighed = {n: ratio(m.means[CONCENTRATED], m.means[NEAREST], CERTAIN) for n, m in marginals.items()}
    much, little = (ratio(marginals[n].means[FOURIER], marginals[n].means[NEAREST], CERTAIN) for n in (few, many))
    return every(
        "in the mean over cells the table nearest to noisy characters errs no more than MWEM, less with many records, and less than the characters with few",
        ((high > 1, f"n = {n:,}: MWEM {value:.2f} [{low:.2f}, {high:.2f}] times") for n, (value, low, high) in weighed.items()),
        f"characters {much[0]:.2f} times at {few:,}, {little[0]:.2f} at {many:,}",
        also=weighed[many][0] > 1.1 and much[1] > 1 and 0.9 < little[0] < 1.15,
    )


def _table(title: str, size: str, measured: Sized) -> Table:
    rows = []
    for n, m in measured.items():
        for name, errors in m.errors.items():
            means = [float(np.mean(m.means[name]))] if m.means else []
            rows.append((name, n, *mean_log(errors), *means, len(errors)))
    cells = ("mean error",) if any(m.means for m in measured.values()) else ()
    return Table(title, ("answer", size, "largest error", "95 % from", "to", *cells, "runs"), rows)


def _figure(name: str, title: str, axis: str, measured: Sized, labels: tuple[str, ...]) -> Figure:
    drawn = curves((label, n, *mean_log(m.errors[label])) for label in labels for n, m in measured.items())
    return Figure(f"many-answers-{name}", title[0].upper() + title[1:], axis, "largest error (share of the records)", drawn, log_x=True, log_y=True)


EXPERIMENT = ManyAnswers()
