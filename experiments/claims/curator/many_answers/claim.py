"""Many answers at once: weights on all points against noise on every answer, and where either
pays."""

import math
from collections.abc import Iterator

import numpy as np

from local_dp.experiments.claims.curator.many_answers import runs
from local_dp.experiments.claims.curator.many_answers.runs import (
    BOOSTED,
    CONCENTRATED,
    DUAL,
    FITTED,
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
    SYNOPSIS,
    TENTH,
    WEIGHTS,
    WORST,
    AllMarginals,
    Errors,
    Privacy,
    Queries,
    Small,
)
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Positive,
    Rate,
    Scale,
    Sheet,
    Table,
    every,
    holds,
    measured,
    positive_mean,
    ratio,
    tabulate,
    within,
)

QUERIES = {"quick": (100, 1000, 2000), "full": (100, 1000, 10_000, 100_000)}
SMALL_SIZES, SMALL_ROWS = (100, 1000, 10_000), (4, 10)
SIZES = {"quick": (1000, 5000, 15_000), "full": (300, 1000, 5000, 15_000, 100_000)}
COLUMNS = 12
RUNS = {"quick": 12, "full": 16}
TITLES = (
    (
        f"largest error of k random queries, {runs.RECORDS:,} records of {1 << runs.POINTS_BITS} "
        "points"
    ),
    "largest error of all 27 conjunctions of 3 bits",
    f"largest error of a cell of all 3-way marginals of {COLUMNS} columns",
)
Sized = dict[int, Errors]  # by the number of queries or of records


class ManyAnswers(Experiment):
    name = "many-answers"
    chapter = CURATOR_AND_ATTACKS
    title = "Many answers: a table of weights against noise on each of them"
    claim = (
        "Noise on each of k answers grows with sqrt(k). Private multiplicative weights answer "
        "from a hypothesis, at an error that hardly depends on k; small databases do so at an "
        "error that depends on their size. On random queries of a few hundred points both lose to "
        "a noisy histogram of these points, and the weights to Gaussian noise, too. Boosting for "
        "queries makes a strong answer of weak ones, and errs less than private multiplicative "
        "weights; but weights fitted once to as many noisy counts, at the same price, err less "
        "still. MWEM, which counts the queries that it answers worst, errs as these do. Weights "
        "pay where a histogram has more cells than there are records. A synthetic table fitted to "
        "selected marginals, with noise counted in rho, then errs less on average over all 3-way "
        "marginals than any baseline, from 1,000 to 15,000 records. The table nearest to one "
        "release of all their characters errs still less, in one round. From 15,000 records on "
        "noise on the characters alone is as good."
    )
    source = (
        "Blum, Ligett, Roth 2008; Dwork, Rothblum, Vadhan 2010; Hardt, Rothblum 2010; Hardt, "
        "Ligett, McSherry 2012; Gaboardi et al. 2014"
    )

    def points(self, scale: Scale) -> Points:
        trials = RUNS[scale]
        by_queries = (Queries(k, trials) for k in QUERIES[scale])
        tables = (Small(n, SMALL_ROWS, 2 * trials) for n in SMALL_SIZES)
        marginals = (AllMarginals(n, COLUMNS, trials) for n in SIZES[scale])
        return [
            *map(Privacy, runs.PROVED),
            *by_queries,
            *tables,
            *marginals,
        ]

    def finding(self, sheet: Sheet) -> Finding:
        queries: Sized = {p.k: m for p, m in sheet[Queries]}
        small: Sized = {p.n: m for p, m in sheet[Small]}
        marginals: Sized = {p.n: m for p, m in sheet[AllMarginals]}
        by_queries, by_records, by_marginals = TITLES
        tables = [
            _table(by_queries, "queries", queries),
            _halts(queries),
            _table(by_records, "records", small),
            _table(by_marginals, "records", marginals),
        ]
        checks = [
            _check_privacy({p.what: m.share for p, m in sheet[Privacy]}),
            *_check_weights(queries),
            *_check_losers(queries),
            _check_boosting({k: m for k, m in queries.items() if BOOSTED in m.errors}),
            _check_halted({k: m for k, m in queries.items() if k >= 1000}),
            _check_small({n: m for n, m in small.items() if n >= 1000}),
            *_check_marginals(marginals),
        ]
        headline = _headline(queries, marginals)
        return Finding(checks, tables, [*_figures(*tables)], NOTES, headline=headline)


def _halts(queries: Sized) -> Table:
    rows = []
    for k, m in queries.items():
        for name in WEIGHTS:
            answers, errors = np.mean(m.answered[name]), np.mean(m.errors[name])
            rows.append((name, k, float(answers), m.alpha[name], float(errors)))
    title = "random queries that were answered before the changes were used up"
    return tabulate(title, "answer | queries | answered | alpha | largest error of these", rows)


def _figures(queries: Table, halts: Table, small: Table, marginals: Table) -> Iterator[Figure]:
    methods = (NOTHING, LAPLACE, GAUSSIAN, HISTOGRAM, PMW, TENTH, BOOSTED, FITTED, WORST)
    title, axes = "The share of the queries that PMW answers", ("queries k", "share answered")
    shares = halts.curves("answer | queries | answered")
    fits = (PRODUCT, HISTOGRAM, DUAL, CONCENTRATED, FOURIER, NEAREST)
    yield _figure("queries", "queries k", queries, methods)
    yield Figure("many-answers-halted", title, *axes, shares, log_x=True)
    yield _figure("small", "records n", small)
    yield _figure("marginals", "records n", marginals, fits)


def _check_privacy(proofs: dict[str, float]) -> Check:
    statement = (
        "whole transcripts on all pairs of small neighbours, enumerated, lose no more than is "
        "claimed, and .4 of it or more"
    )
    whole = proofs.keys() == runs.PROVED.keys()
    return within(statement, proofs, 0.4, 1, spec=".3f", also=whole)


NOTES = [
    "The first rule of private multiplicative weights is right on all data. A tenth or a fiftieth "
    "of its changes is a bet on the data at hand, made without seeing them. A run that lost its "
    "bet reports so: its error is that of the queries that it answered. MWEM's number of rounds "
    "comes from n, the number of columns and the budget."
]


def _headline(queries: Sized, marginals: Sized) -> str:
    """The largest errors at the most queries, and at the most records that MWEM is compared on."""

    def means(m: Errors, *names: str) -> str:
        return ", ".join(f"{np.mean(m.errors[name]):.2g} ({name})" for name in names)

    k, n = max(queries), max(marginals)
    first = means(queries[k], HISTOGRAM, GAUSSIAN, LAPLACE, PMW)
    second = means(marginals[n], NEAREST, CONCENTRATED, GAUSSIAN, PRODUCT)
    return (
        f"{k:,} random queries are off by {first}; the 3-way marginals of {n:,} records by "
        f"{second}."
    )


def _pool(by_size: Sized, worse: str, better: str) -> Positive:
    """How many times smaller the second error is, the mean of all runs of all sizes that have both,
    each on its own data."""
    ratios = []
    for m in by_size.values():
        pairs = zip(m.errors[worse], m.errors[better], strict=False)
        ratios += [top / bottom for top, bottom in pairs]
    return positive_mean(ratios)


def _check_weights(queries: Sized) -> Iterator[Check]:
    """Noise by its law, PMW by its rule, and how either grows."""
    few, many = min(queries), max(queries)
    noise, growth = dict[str, Positive](), dict[str, float]()
    for name in (LAPLACE, GAUSSIAN):
        noise[name] = positive_mean([each for m in queries.values() for each in m.noise[name]])
        laws = [np.mean(queries[k].predicted[name]) for k in (few, many)]
        growth[name] = float(laws[1] / laws[0])
    claims = {}
    for name, bounds in ((PMW, (1, 1.1)), (TENTH, (0.52, 0.63))):
        errors = [error / m.alpha[PMW] for m in queries.values() for error in m.errors[name]]
        claims[name] = Claimed(positive_mean(errors), *bounds)
    shares = [share for m in queries.values() for share in m.answered[PMW]]
    claims["runs that answered all"] = Claimed(Rate(shares.count(1), len(shares)), 0.95)
    root = math.sqrt(many / few)
    factors = (f"{name}: {x:.1f}" for name, x in growth.items())
    yield measured(
        "the largest error of noise on each answer is that of its law, within 2 % (in units of it)",
        noise,
        0.98,
        1.02,
    )
    yield holds(
        "PMW by the rule that sees no data answers all queries, and errs by alpha to 1.1 "
        "alpha; with a tenth of the changes by .52 to .63",
        claims,
    )
    pmw_growth = ratio(queries[many].errors[PMW], queries[few].errors[PMW])
    evidence = f"sqrt(k): {root:.1f}; by their laws, {', '.join(factors)}"
    yield measured(
        "from the fewest queries to the most noise on each answer grows as sqrt(k) and "
        "more, errors of PMW by less than a fifth",
        {PMW: pmw_growth},
        high=1.2,
        more=evidence,
        also=min(growth.values()) > root,
    )


def _check_losers(queries: Sized) -> list[Check]:
    """In the mean over all k; Gaussian noise by its law; and the reversal at the largest k."""
    gaussian = []
    for k, m in queries.items():
        error, half = max(m.predicted[GAUSSIAN]), 0.5 * m.alpha[PMW]
        gaussian.append((error < half, f"k = {k:,}: {error:.4f}, half of alpha {half:.4f}"))
    cells = {
        PMW: Claimed(_pool(queries, PMW, HISTOGRAM), 170),
        TENTH: Claimed(_pool(queries, TENTH, HISTOGRAM), 92),
    }
    checks = [
        holds(
            "a noisy histogram of the points errs 170 times less than PMW, and 92 times less "
            "than with a bet, in the mean over all k",
            cells,
        ),
        every(
            "Gaussian noise on each answer beats PMW, bet or not: by its law it errs less "
            "than half of alpha",
            gaussian,
        ),
        measured(
            "PMW errs 1.45 times less than no data, in the mean over all k",
            {"": _pool(queries, NOTHING, PMW)},
            1.45,
        ),
    ]
    if 100_000 in queries:
        most = queries[100_000].errors
        checks.append(
            measured(
                "with 100,000 queries PMW by a bet errs 1.1 times less than Laplace noise",
                {"": ratio(most[LAPLACE], most[TENTH])},
                1.1,
            )
        )
    return checks


def _check_boosting(large: Sized) -> Check:
    return holds(
        "boosting errs 3.9 times less than PMW and 1.6 times less than its synopses in the mean, "
        "but 4 times more than weights fitted once to as many counts, and 4.5 times more than "
        "MWEM query by query; these two err alike, to a quarter",
        {
            "less than PMW": Claimed(_pool(large, PMW, BOOSTED), 3.9),
            "less than a synopsis": Claimed(_pool(large, SYNOPSIS, BOOSTED), 1.6),
            "more than weights fitted once": Claimed(_pool(large, BOOSTED, FITTED), 4),
            "more than MWEM": Claimed(_pool(large, BOOSTED, WORST), 4.5),
            "of weights fitted once, times MWEM": Claimed(_pool(large, FITTED, WORST), 0.8, 1.25),
        },
    )


def _check_halted(large: Sized) -> Check:
    """A run that used up its changes is marked; the error of its answers looks best."""
    looks = {}
    for k, m in large.items():
        counts = positive_mean([k * share for share in m.answered[HALTED]])
        looks[f"queries answered of {k:,}"] = Claimed(counts, high=180)
    looks["times smaller"] = Claimed(_pool(large, TENTH, HALTED), 1.4)
    return holds(
        "with a fiftieth of the changes PMW halts, and says so: it answers 180 queries at "
        "most, with errors 1.4 times smaller than of all answers by a tenth",
        looks,
    )


def _check_small(small: Sized) -> Check:
    """The error of a histogram in records does not depend on their number, that of small databases
    as a share does not."""
    cases = {}
    for n, m in small.items():
        for rows, bounds in zip(SMALL_ROWS, ((0.18, 0.2), (0.066, 0.083)), strict=True):
            name = f"{runs.SMALL}, {rows} rows"
            cases[f"{name}, n = {n:,}"] = Claimed(positive_mean(m.errors[name]), *bounds)
    cells = [error * n for n, m in small.items() for error in m.errors[HISTOGRAM]]
    return holds(
        "from 1,000 records on a small database (BLR) of 4 rows errs by .18 to .2, of 10 by "
        ".066 to .083, and a noisy histogram by 5.5 to 7 records",
        {**cases, "histogram, in records": Claimed(positive_mean(cells), 5.5, 7)},
    )


# how many times the error of MWEM with its noise in rho, in the mean over cells, at so many records
LEAST: dict[str, dict[int, float]] = {
    HISTOGRAM: {1000: 2.5, 5000: 3.5, 15_000: 2.9},
    GAUSSIAN: {1000: 3.8, 5000: 3.0, 15_000: 2.4},
    DUAL: {1000: 3.7, 5000: 9.7, 15_000: 17},
    PURE: {1000: 1.08, 5000: 1.9, 15_000: 2.5},
    PRODUCT: {1000: 1.15, 5000: 4.4, 15_000: 10},
}
# how many times the error of the nearest table, in the mean over cells
NEARER: dict[str, dict[int, tuple[float, float]]] = {
    CONCENTRATED: {
        300: (1.05, 1.4),
        1000: (1, 1.2),
        5000: (1, 1.15),
        15_000: (1.15, 1.35),
        100_000: (1.45, 1.8),
    },
    FOURIER: {
        300: (1.8, 2.3),
        1000: (1.28, 1.5),
        5000: (1.02, 1.14),
        15_000: (0.96, 1.08),
        100_000: (0.94, 1.06),
    },
}


def _check_marginals(marginals: Sized) -> Iterator[Check]:
    """On fixed tables, so that noise alone is random; bounds are some per cent beyond what 40 runs
    at seed 2001 measured."""

    def times(name: str, other: str, n: int, *bounds: float) -> Claimed:
        means = marginals[n].means
        return Claimed(ratio(means[name], means[other]), *bounds)

    beats = []
    for name, least in LEAST.items():
        statement = (
            f"MWEM with its noise in rho beats {name}: in the mean over cells it errs "
            f"{', '.join(f'{factor:g}' for factor in least.values())} times less at 1,000, 5,000 "
            "and 15,000 records"
        )
        factors = {f"n = {n:,}": times(name, CONCENTRATED, n, x) for n, x in least.items()}
        beats.append(holds(statement, factors))
    largest = {
        f"{name}, n = {n:,}": ratio(m.errors[name], m.errors[CONCENTRATED])
        for n, m in marginals.items()
        for name in (HISTOGRAM, GAUSSIAN, DUAL)
        if 1000 <= n <= 15_000
    }
    near = {
        f"{name}, n = {n:,}": times(name, NEAREST, n, *bounds)
        for name, each in NEARER.items()
        for n, bounds in each.items()
        if n in marginals
    }
    yield from beats
    yield measured(
        "its largest error of a cell is half of theirs at most: of a histogram's, of "
        "Gaussian noise's and of DualQuery's",
        largest,
        2,
    )
    yield holds(
        "pure MWEM beats the product of columns: in the mean over cells it errs 2 and 3.4 "
        "times less, at 5,000 and 15,000 records",
        {
            "n = 5,000": times(PRODUCT, PURE, 5000, 2.0),
            "n = 15,000": times(PRODUCT, PURE, 15_000, 3.4),
        },
    )
    yield holds(
        "in the mean over cells the table nearest to noisy characters errs less than MWEM, "
        "1.15 times less at 15,000 records; the characters as they are err 1.28 times more at "
        "1,000, and from 15,000 on as much within 8 %",
        near,
    )


def _table(title: str, size: str, by_size: Sized) -> Table:
    rows = []
    for n, m in by_size.items():
        for name, errors in m.errors.items():
            means = [float(np.mean(m.means[name]))] if m.means else []
            rows.append((name, n, *positive_mean(errors).stated, *means, len(errors)))
    mean = "mean error | " if len(rows[0]) > 6 else ""
    return tabulate(title, f"answer | {size} | largest error | 95 % from | to | {mean}runs", rows)


def _figure(name: str, axis: str, table: Table, labels: tuple[str, ...] = ()) -> Figure:
    curves = table.curves(f"answer | {table.columns[1]} | largest error | 95 % from | to", *labels)
    title = table.title[0].upper() + table.title[1:]
    return LogLogFigure(
        f"many-answers-{name}", title, axis, "largest error (share of the records)", curves
    )


EXPERIMENT = ManyAnswers()
