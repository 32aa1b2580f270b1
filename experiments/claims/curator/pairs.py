"""Pairs: the noise of one release of all pairs of columns, and the gain by projection."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.curator.marginals.pairs import (
    NoisyPairs,
    PairGaussian,
    SignTable,
    onto_elliptope,
    onto_hull,
    pairs_of,
    rms_error,
)
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Normal,
    Points,
    Positive,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    every,
    holds,
    mean,
    measured,
    positive_mean,
    seeded,
    tabulate,
)
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers.randomizer import NO_COIN
from local_dp.randomizers.signs.binary_rr import BinaryRR

EPSILON, DELTA = 1.0, 1e-6
CENTRES, KEPT = 5, 0.85
SEARCHED = 1 + 1e-4  # the slack of a search for a projection
RAW, ZERO, LINEAR, PROJECTED, HULL = "raw", "zero", "best linear shrinkage", "projected", "hull"
LOCAL, LOCAL_PROJECTED = "local, raw", "local, projected"
COLUMNS = (50, 100, 200)
TIMES = {"quick": (5, 10, 20), "full": (2, 5, 10, 20, 50, 100)}
# by d
RUNS = {"quick": {10: 160, 50: 24, 100: 12, 200: 8}, "full": {10: 240, 50: 48, 100: 24, 200: 24}}
SMALL, SMALL_TIMES = 10, 15
AT = 20  # records to a column in the figure over d
Named = dict[str, list[float]]


class Errors(Row):
    errors: Named  # root mean square errors over all pairs, of each answer and each run
    scores: list[float]  # of the noise: squared errors in units of the stated variance
    nearer: bool  # whether no projection was farther from the truth than the release


class Releases(Row):
    """Releases of all pairs of d columns, on planted tables of `times` d records."""

    d: int
    times: int
    runs: int
    hull: bool
    local: bool

    def measure(self, seed: int) -> Errors:
        d, n = self.d, self.d * self.times
        generator, mechanism = default_rng([seed, d, n]), PairGaussian(d, EPSILON, DELTA)
        errors, scores, nearer = Named(), list[float](), True
        for run in range(self.runs):
            own = (d << 16 | self.times) << 16 | run  # sizes share no noise
            table = planted(d, n, generator)
            truth = table.sums / n
            release = mechanism.release(table, seeded(seed, own))
            answers = processed(release.means, truth, self.hull)
            scores.append((rms_error(release.means, truth) / release.deviation) ** 2)
            limit = rms_error(release.means, truth) * SEARCHED
            bodies = [answers[body] for body in (PROJECTED, HULL) if body in answers]
            nearer &= all(rms_error(body, truth) <= limit for body in bodies)
            if self.local:
                local = local_pairs(table, generator, KeyedNoise(seed + own))
                answers |= {LOCAL: local.means, LOCAL_PROJECTED: onto_elliptope(local.means)}
            for name, means in answers.items():
                errors.setdefault(name, []).append(rms_error(means, truth))
        return Errors(errors, scores, bool(nearer))


def planted(d: int, n: int, generator: Generator) -> SignTable:
    """n records, each one of five random rows of d bits, every bit of it kept with probability
    .85."""
    centres = generator.integers(0, 2, (CENTRES, d), dtype=np.int8)
    rows = centres[generator.integers(0, CENTRES, n)]
    return SignTable.of(rows ^ (generator.random((n, d)) >= KEPT))


def local_pairs(table: SignTable, generator: Generator, noise: KeyedNoise) -> NoisyPairs:
    """Each client reports by randomized response the product of two signs that a public coin names:
    unbiased, of variance nearly C^2 k / n for k pairs."""
    one, other = np.triu_indices(table.d, 1)
    pairs = generator.integers(0, len(one), table.size)
    clients, randomizer = np.arange(table.size), BinaryRR(epsilon=EPSILON)
    signs = table.signs[clients, one[pairs]]
    values = signs != table.signs[clients, other[pairs]]
    words = randomizer.draw(noise, Draw(0), 0, table.size)
    reports = randomizer.respond(values.astype(np.uint8), words, NO_COIN)
    counts = np.bincount(pairs, weights=1.0 - 2.0 * reports, minlength=len(one))
    sums = np.asarray(counts * randomizer.gain * len(one), dtype=np.float64)
    variance = randomizer.gain**2 * len(one) * table.size
    return pairs_of(sums, table.size, variance)


def processed(means: Floats, truth: Floats, hull: bool) -> dict[str, Floats]:
    """The answers made of one release. The best linear shrinkage is the best for this very truth,
    which nobody knows."""
    above = np.triu_indices(len(means), 1)
    squares = float(means[above] @ means[above])
    factor = float(truth[above] @ means[above]) / squares
    answers = {
        RAW: means,
        ZERO: np.eye(len(means)),
        LINEAR: factor * means,
        PROJECTED: onto_elliptope(means),
    }
    return answers | {HULL: onto_hull(means)} if hull else answers


class Squares(Row):
    worst: int  # the largest squared move of all pairs
    paid: int  # the one that the release pays for


class Move(Row):
    """Every row of d signs replaced by every other."""

    d: int

    def measure(self, seed: int) -> Squares:
        rows = np.array(list(product((1, -1), repeat=self.d)))
        one, other = np.triu_indices(self.d, 1)
        products = rows[:, one] * rows[:, other]
        worst = max(int(((products - each) ** 2).sum(axis=1).max()) for each in products)
        return Squares(worst, PairGaussian(self.d, EPSILON, DELTA).square)


class Pairs(Experiment):
    name = "pairs"
    chapter = CURATOR_AND_ATTACKS
    title = "Pairs: noise and projection"
    claim = (
        "A trusted curator who adds normal noise to the means of all products of two of d columns "
        "errs by about d / n on each. No table has such means. Moved to the nearest semidefinite "
        "matrix, which costs no privacy, they err less, by a factor that grows with d and that no "
        "linear shrinkage reaches. With few records for each column answering zero is better "
        "still. It is always better than the reports of clients who trust nobody."
    )
    source = "Nikolov, Talwar, Zhang 2013; Dwork, Nikolov, Talwar 2015; lecture notes 7"

    def points(self, scale: Scale) -> Points:
        runs = RUNS[scale]
        large = (
            Releases(d, times, runs[d], hull=False, local=True)
            for d in COLUMNS
            for times in TIMES[scale]
        )
        moves = map(Move, (2, 5, 8))
        return [
            *large,
            Releases(SMALL, SMALL_TIMES, runs[SMALL], hull=True, local=False),
            *moves,
        ]

    def finding(self, sheet: Sheet) -> Finding:
        releases = sheet[Releases]
        by_size = {(p.d, p.times): m.errors for p, m in releases}
        rows = []
        for p, m in releases:
            for name, errors in m.errors.items():
                interval = positive_mean(errors).stated
                rows.append((name, p.d, p.d * p.times, p.times, *interval, p.runs))
        headings = "answer | columns d | records n | n / d | error | 95 % from | to | runs"
        table = tabulate("root mean square error over all pairs", headings, rows)
        checks = [
            every(
                "the release pays for the largest squared move of all pairs over every row "
                "replaced by every other, and for no more",
                ((m.worst == m.paid, f"d = {p.d}: {m.worst} of {m.paid}") for p, m in sheet[Move]),
            ),
            _check_noise(releases),
            Check(
                "no projection is farther from the truth than the release, in any run: the "
                "truth lies in the body",
                all(m.nearer for _, m in releases),
                f"{sum(p.runs for p, _ in releases)} runs",
            ),
            *_check_order(by_size),
            _check_growth(by_size),
        ]
        notes = [
            (
                f"Epsilon {EPSILON:g}, delta {DELTA:g}; each record is one of {CENTRES} random "
                f"rows, each bit kept with probability {KEPT:g}."
            ),
            (
                "The best linear shrinkage multiplies by the factor that is best for the very "
                "truth, which nobody knows; no private one does better."
            ),
        ]
        headline = _headline(by_size[COLUMNS[-1], AT])
        return Finding(checks, [table], [*_figures(table)], notes, headline=headline)


Sized = dict[tuple[int, int], Named]  # by d and the records to a column


def _headline(errors: Named) -> str:
    raw, projection, zero = (float(np.mean(errors[name])) for name in (RAW, PROJECTED, ZERO))
    pairs = f"All pairs of {COLUMNS[-1]} columns of {AT * COLUMNS[-1]:,} records"
    return (
        f"{pairs} err by {raw:.2g} with noise alone, {projection:.2g} once moved to the means of a "
        f"table, and by {zero:.2g} if they are set to zero."
    )


def _check_noise(releases: Rows[Releases, Errors]) -> Check:
    """The scores times the numbers of pairs are sums of squares of standard normal variables, some
    10^6 in all: their mean is normal, of variance 2 / 10^6."""
    pairs = [(math.comb(p.d, 2), score) for p, m in releases for score in m.scores]
    squares = sum(many for many, _ in pairs)
    mean = sum(many * score for many, score in pairs) / squares
    figures = {f"{len(pairs)} releases": Positive(mean, math.sqrt(2 / squares))}
    return measured("the noise has its stated variance (in units of it)", figures, 1, 1)


def _gain(errors: Named, better: str, worse: str) -> Positive:
    """How many times smaller the better error is: the geometric mean of the runs' ratios, whose
    logarithms are nearly normal."""
    logs = mean(np.log(np.array(errors[worse]) / np.array(errors[better])))
    return Positive(math.exp(logs.value), logs.error, logs.degrees)


def _at(*least: float) -> dict[tuple[int, int], float]:
    """Factors at so many columns each, and AT records to a column."""
    return {(d, AT): factor for d, factor in zip(COLUMNS, least, strict=True)}


# a statement, the smaller error, the larger one, and how many times smaller it is at least; the
# factors lie some per cent below the measured ones
ORDERS: list[tuple[str, str, str, dict[tuple[int, int], float]]] = [
    (
        f"at n = {AT} d projected errs 1.55, 1.9 and 2.35 times less than raw",
        PROJECTED,
        RAW,
        _at(1.55, 1.9, 2.35),
    ),
    (
        "and 1.1, 1.35 and 1.7 times less than the best linear shrinkage",
        PROJECTED,
        LINEAR,
        _at(1.1, 1.35, 1.7),
    ),
    ("and 1.6, 1.95 and 2.45 times less than zero", PROJECTED, ZERO, _at(1.6, 1.95, 2.45)),
    (
        "zero errs 1.2 times less than projected at n = 5 d, d = 50",
        ZERO,
        PROJECTED,
        {(50, 5): 1.2},
    ),
    (
        "at n = 10 d projected errs 1.25 and 1.55 times less than zero, at d = 100 and 200",
        PROJECTED,
        ZERO,
        {(100, 10): 1.25, (200, 10): 1.55},
    ),
]


def _check_order(by_size: Sized) -> Iterator[Check]:
    clients = {(d, n): 1.5 if n <= AT else 1.25 for d, n in by_size if d in COLUMNS}
    factors = _at(5.6, 8.6, 13)
    local = [
        (
            (
                f"zero errs 1.5 times less than the clients' reports, projected, up to n = {AT} "
                "d, and 1.25 times less beyond"
            ),
            ZERO,
            LOCAL_PROJECTED,
            clients,
        ),
        (
            f"projecting helps clients 5.6, 8.6 and 13 times at n = {AT} d",
            LOCAL_PROJECTED,
            LOCAL,
            factors,
        ),
    ]
    for statement, better, worse, least in ORDERS + local:
        gains = {}
        for (d, times), factor in least.items():
            gain = _gain(by_size[d, times], better, worse)
            gains[f"d = {d}, n = {times} d"] = Claimed(gain, factor)
        yield holds(statement, gains)
    small = by_size[SMALL, SMALL_TIMES]
    bodies = {
        PROJECTED: Claimed(_gain(small, PROJECTED, RAW), 1.17),
        HULL: Claimed(_gain(small, HULL, PROJECTED), 1.06),
    }
    yield holds(
        f"at d = {SMALL} the elliptope reduces the error 1.17 times, and the hull 1.06 times more",
        bodies,
    )


def _check_growth(by_size: Sized) -> Check:
    """The power of d between the first and the last gain: a difference of means of logarithms, with
    the fewer degrees of freedom."""
    first, _, last = (_gain(by_size[d, AT], PROJECTED, RAW) for d in COLUMNS)
    growth = math.log(COLUMNS[-1] / COLUMNS[0])
    value = math.log(last.value / first.value) / growth
    error = math.hypot(first.error, last.error) / growth
    power = {"power": Normal(value, error, min(first.degrees, last.degrees))}
    statement = f"the gain by projecting grows with d at n = {AT} d, as a power of .28 to .33"
    return measured(statement, power, 0.28, 0.33)


def _figures(table: Table) -> Iterator[Figure]:
    names = (RAW, ZERO, LINEAR, PROJECTED, LOCAL, LOCAL_PROJECTED)
    columns, records = table.where("n / d", AT), table.where("columns d", COLUMNS[1])
    over_columns = columns.curves("answer | columns d | error | 95 % from | to", *names)
    few = (name for name in names if name != LOCAL)
    over_records = records.curves("answer | n / d | error | 95 % from | to", *few)
    title, axis = f"All pairs of d columns, n = {AT} d, epsilon 1", "root mean square error"
    yield LogLogFigure("pairs", title, "columns d", axis, over_columns)
    title = f"All pairs of {COLUMNS[1]} columns, epsilon 1"
    yield LogLogFigure("pairs-records", title, "n / d", axis, over_records)


EXPERIMENT = Pairs()
