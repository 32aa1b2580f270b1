"""The price of many answers: k times as much purely, sqrt(k) times with a delta, and no less."""

import math
from collections.abc import Iterator
from itertools import count, product, takewhile

import numpy as np
from numpy.random import default_rng

from local_dp.accounting import rules
from local_dp.accounting.losses import DiscreteGaussian
from local_dp.bounds.packing import least_error, packing_error
from local_dp.curator.counts import (
    ColumnCounts,
    ComposedLaplaceCounts,
    CountsMechanism,
    GaussianCounts,
    KNormCounts,
    LaplaceCounts,
    NoCounts,
)
from local_dp.curator.mechanism import SmallDatabases
from local_dp.experiments.lab.parts import (
    NO_FACTOR,
    PURE_AND_APPROXIMATE,
    Check,
    Claimed,
    Deltas,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Positive,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    every,
    holds,
    measured,
    positive_mean,
    quantile,
    seeded,
    tabulate,
)
from local_dp.loss import ATTO, Loss, Pure, nano_epsilon

EPSILON, DELTA, RECORDS = 1.0, 1e-6, 1000
EACH = 0.01  # the loss of one of many answers
K_NORM, LAPLACE, COMPOSED, GAUSSIAN, NOTHING = (
    "K-norm, pure",
    "Laplace, pure",
    "Laplace, with delta",
    "Gaussian, with delta",
    "nothing, 1,000 records",
)
NOISES = (K_NORM, LAPLACE, COMPOSED, GAUSSIAN)
ANSWERS, COUNTS = (1, 10, 100, 1000, 10_000, 100_000), (4, 16, 64, 256, 1024, 4096)
# of up to `FEW` counts, whose errors vary most, and of more
RUNS = {"quick": (2000, 300), "full": (6000, 3000)}
FEW = 64
PLACES = (0.1, 0.5, 0.9)  # of the law of an error, at which runs are compared to it
BOUND = "no pure mechanism below"
LEAST = {k: least_error(k, EPSILON) for k in COUNTS}  # of all pure mechanisms


def mechanism(name: str, k: int) -> CountsMechanism[Loss]:
    """The mechanism of a curve."""
    if name == K_NORM:
        return KNormCounts(k, EPSILON)
    if name == LAPLACE:
        return LaplaceCounts(k, EPSILON)
    if name == COMPOSED:
        return ComposedLaplaceCounts(k, EPSILON, DELTA)
    return GaussianCounts(k, EPSILON, DELTA)


def _small(k: int, n: int) -> SmallDatabases[tuple[int, ...], ColumnCounts]:
    return SmallDatabases(
        list(product((0, 1), repeat=k)), n, lambda rows: ColumnCounts.of(np.array(rows))
    )


class Losses(Row):
    epsilons: dict[str, float]  # by rule


class Rules(Row):
    """The loss of k answers of pure loss `EACH` beside delta."""

    answers: int

    def measure(self, seed: int) -> Losses:
        losses: dict[Loss, int] = {Pure(nano_epsilon(EACH)): self.answers}
        return Losses({rule: rules.epsilon(losses, DELTA, rule) for rule in rules.RULES})


class Transcript(Row):
    enumerated: float  # delta beside 1 nat, over all neighbours
    exact: float  # by the exact rule


class Transcripts(Row):
    """k counts with Laplace noise of half a nat each."""

    k: int

    def measure(self, seed: int) -> Transcript:
        worst = _small(self.k, 1).worst_delta(
            LaplaceCounts(self.k, self.k / 2), Pure(nano_epsilon(EPSILON))
        )
        return Transcript(float(worst), rules.delta({Pure(nano_epsilon(0.5)): self.k}, EPSILON))


class Privacy(Row):
    """The worst delta over all pairs of small databases, less the stated one, at epsilon; and at a
    thousandth less."""

    name: str
    k: int
    n: int

    def measure(self, seed: int) -> Deltas:
        counts, databases = mechanism(self.name, self.k), _small(self.k, self.n)

        def beyond(part: int) -> float:
            worst = databases.worst_delta(counts, Pure(counts.loss.nano * part // 1000))
            return float(worst - counts.loss.atto / ATTO)

        return Deltas(beyond(1000), beyond(999))


class Normal(Row):
    """The delta of Gaussian noise on so many counts beside epsilon, by the exact rule, as if it
    were discrete; and with a tenth less variance."""

    counts: int

    def measure(self, seed: int) -> Deltas:
        variance = GaussianCounts(self.counts, EPSILON, DELTA).variance
        noises = (DiscreteGaussian(-(-ATTO * 10 // (variance * part))) for part in (10, 9))
        return Deltas(*(rules.delta({noise: self.counts}, EPSILON) for noise in noises))


class Largest(Row):
    """The largest error of k counts, in runs and by its law."""

    median: tuple[float, float, float]  # of the runs, with its 95 % interval
    stated: float  # the median of the law
    ratio: Positive = NO_FACTOR  # the mean of the runs in units of that of the law
    below: tuple[Rate, ...] = ()  # of the runs, how many are below each of the places of the law


class Errors(Row):
    """The largest error of k counts."""

    name: str
    k: int
    runs: int

    def measure(self, seed: int) -> Largest:
        draws, generator = seeded(seed, self.k), default_rng([seed, self.k])
        table = ColumnCounts(RECORDS, np.linspace(0, RECORDS, self.k).astype(np.int64))
        if self.name == NOTHING:
            error = NoCounts().release(table, draws).largest_error(table)
            return Largest((error, error, error), error)
        counts = mechanism(self.name, self.k)
        errors = [counts.release(table, draws).largest_error(table) for _ in range(self.runs)]
        ranks = []  # uniform if the errors have their law
        for each in errors:
            low, high = counts.within(each - 1) if each else 0.0, counts.within(each)
            ranks.append(low + (high - low) * generator.random())
        tails = (1 - counts.within(each) for each in count())
        mean = positive_mean(errors) / sum(takewhile(lambda tail: tail > 1e-12, tails))
        below = tuple(Rate(sum(rank <= at for rank in ranks), self.runs) for at in PLACES)
        # Errors are whole, so the values next to the ranks are as good as for a continuous law.
        return Largest(quantile(errors, 0.5), counts.median_error, mean, below)


class Price(Experiment):
    name = "price"
    chapter = PURE_AND_APPROXIMATE
    title = "The price of many answers: k, or the root of k"
    claim = (
        "A curator who answers k questions about the same records pays k times for pure privacy "
        "and about sqrt(k) times with a little delta. The optimal composition is tight: k noisy "
        "counts lose exactly that. If one record may change all k counts, pure noise errs by "
        "about k / epsilon. For counts of any size no pure mechanism with whole answers errs less "
        "than noise in the shape of a cube; noise on each count is ln k times worse. Gaussian "
        "noise errs by about sqrt(k). From a few hundred counts on, that is less than any pure "
        "mechanism can reach. For a few counts pure noise is better."
    )
    source = (
        "Dwork, Rothblum, Vadhan 2010; Kairouz, Oh, Viswanath 2015; Hardt, Talwar 2010; Balle, "
        "Wang 2018"
    )

    def points(self, scale: Scale) -> Points:
        return [
            *map(Rules, ANSWERS),
            *map(Transcripts, range(1, 6)),
            *(
                Privacy(name, k, n)
                for name in (K_NORM, LAPLACE, COMPOSED)
                for k, n in ((1, 3), (2, 2), (3, 1))
            ),
            *map(Normal, (16, 256)),
            *(
                Errors(name, k, 1 if name == NOTHING else RUNS[scale][k > FEW])
                for name in (*NOISES, NOTHING)
                for k in COUNTS
            ),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        prices, errors = sheet[Rules], sheet[Errors]
        medians: Medians = {name: {} for name in (*NOISES, NOTHING)}
        for p, m in errors:
            medians[p.name][p.k] = m.stated
        title = f"the loss of k answers of epsilon {EACH:g}, delta {DELTA:g}"
        by_rule = [(rule, p.answers, m.epsilons[rule]) for rule in rules.RULES for p, m in prices]
        costs, largest = tabulate(title, RULE_COLUMNS, by_rule), _errors_table(errors)
        epsilons = {p.answers: m.epsilons for p, m in prices}
        checks = [
            _check_rules(epsilons),
            *_check_privacy(sheet),
            *_check_laws(errors),
            *_check_pure(medians),
            *_check_delta(medians),
        ]
        tables = [costs, largest]
        return Finding(checks, tables, [*_figures(*tables)], NOTES, headline=_headline(errors))


RULE_COLUMNS = "rule | answers | epsilon"
NOTES = [
    (
        f"Errors at epsilon {EPSILON:g}, and delta {DELTA:g} where there is one; no noise depends "
        f"on the data. Nothing answers {RECORDS // 2} for all."
    ),
    (
        "The bound is that of the best of all pure mechanisms with whole answers, for counts of "
        "any size (`bounds/packing.py`). Packing gives about a third of it."
    ),
    "Attacks show that sqrt(k) is needed with a delta too: experiment `tracing`.",
]


def _figures(costs: Table, largest: Table) -> Iterator[Figure]:
    title, axes = (
        f"What k answers of epsilon {EACH:g} cost",
        ("answers k", "epsilon beside delta 1e-6"),
    )
    yield LogLogFigure("price-rules", title, *axes, costs.curves(RULE_COLUMNS))
    columns = "answer | counts | median | at least 95 % from | to"
    curves = largest.curves(columns, *NOISES, NOTHING)
    curves += largest.curves("answer | counts | median", BOUND, style="bound")
    title = "The largest error of k counts of the same records, epsilon 1"
    yield LogLogFigure("price-errors", title, "counts k", "median error", curves)


def _check_privacy(sheet: Sheet) -> Iterator[Check]:
    """The stated losses, enumerated or by the exact rule."""
    cases = []
    for p, m in sheet[Transcripts]:
        verdict = -1e-9 * m.enumerated <= m.exact - m.enumerated <= 1e-9 * m.enumerated + 1e-15
        cases.append((verdict, f"k = {p.k}: delta {m.enumerated:.6g}"))
    yield every(
        "no price is lower: counts with Laplace noise lose exactly the price, enumerated over "
        "all neighbours",
        cases,
    )
    cases = []
    for noise, m in sheet[Privacy]:
        verdict = m.at <= 0 and (noise.name == COMPOSED or m.below > 0)
        evidence = f"{noise.name}, k = {noise.k}: {m.at:.2g}, below {m.below:.2g}"
        cases.append((verdict, evidence))
    yield every(
        "enumerated over all pairs of small databases, every noise keeps to its loss, and the "
        "pure ones to no less",
        cases,
    )
    cases = []
    for normal, m in sheet[Normal]:
        verdict = m.at <= 1.01 * DELTA < 1.5 * DELTA < m.below
        cases.append((verdict, f"k = {normal.counts}: {m.at:.4g}, with a tenth less {m.below:.3g}"))
    yield every(
        "Gaussian noise keeps to delta by the exact rule to 1 %, and a tenth less of its "
        "variance does not",
        cases,
    )


def _headline(errors: Rows[Errors, Largest]) -> str:
    most = COUNTS[-1]
    medians = {p.name: f"{m.median[0]:,.0f}" for p, m in errors if p.k == most}
    return (
        f"The largest of {most:,} counts is off by {medians[K_NORM]} with pure noise, and no whole "
        f"pure noise does better; with delta {DELTA:g} by {medians[GAUSSIAN]}."
    )


def _check_rules(by: dict[int, dict[str, float]]) -> Check:
    least = all(each["exact"] <= min(each.values()) * (1 + 1e-9) for each in by.values())
    power = {
        rule: math.log(by[10_000][rule] / by[100][rule]) / math.log(100)
        for rule in ("basic", "exact")
    }
    return Check(
        "the exact price is the least of all rules; from 100 to 10,000 answers it grows about "
        "as sqrt(k), where adding up grows as k",
        least and abs(power["basic"] - 1) < 1e-9 and 0.49 < power["exact"] < 0.56,
        ", ".join(
            f"{rule}: {by[100][rule]:.4g} to {by[10_000][rule]:.4g}, power {each:.3f}"
            for rule, each in power.items()
        ),
    )


def _check_laws(errors: Rows[Errors, Largest]) -> Iterator[Check]:
    """Runs against closed forms: the mean for each k, and the shape of the law for all k together,
    whose runs are independent."""
    means, shapes = dict[str, Positive](), dict[str, Claimed]()
    for name in NOISES:
        rows = [(p.k, m) for p, m in errors if p.name == name]
        means |= {f"{name}, k = {k}": m.ratio for k, m in rows}
        for number, place in enumerate(PLACES):
            rates = [m.below[number] for _, m in rows]
            rate = Rate(sum(each.successes for each in rates), sum(each.trials for each in rates))
            shapes[f"{name}, {place:.0%}"] = Claimed(rate, place, place)
    yield measured(
        "the largest error of k counts has the mean that its closed form gives (which is the unit)",
        means,
        1,
        1,
    )
    yield holds(
        "the largest errors of all runs are below the 10 %, 50 % and 90 % points of their "
        "closed forms that often",
        shapes,
    )


Medians = dict[str, dict[int, float]]  # of the laws, which the runs have, by noise and k


def _check_pure(medians: Medians) -> Iterator[Check]:
    most, cube, each = COUNTS[-1], medians[K_NORM], medians[LAPLACE]
    powers = {
        name: math.log(medians[name][most] / medians[name][256]) / math.log(most / 256)
        for name in (K_NORM, GAUSSIAN)
    }
    verdict = 0.99 < powers[K_NORM] < 1.01 and 0.5 < powers[GAUSSIAN] < 0.6
    yield Check(
        "purely, median errors grow as k; with a delta as sqrt(k) and a little more, "
        "which is a logarithm",
        verdict,
        ", ".join(f"{name}: power {power:.3f}" for name, power in powers.items()),
    )
    best = []
    for k, least in LEAST.items():
        verdict = cube[k] == least <= each[k]
        best.append((verdict, f"k = {k}: {cube[k]:,.0f} and {least:,}"))
    yield every(
        "noise in the shape of the cube has the median error of the best of all pure "
        "mechanisms with whole answers, and noise on each count no less",
        best,
    )
    ratios = {k: each[k] / cube[k] for k in (16, 256, most)}
    growth = 1 < ratios[16] < ratios[256] < ratios[most]
    evidence = ", ".join(f"k = {k}: {ratio:.2f} times" for k, ratio in ratios.items())
    yield Check(
        "noise on each count is worse than that of the cube, by a factor that grows with k",
        growth,
        evidence,
    )


def _check_delta(medians: Medians) -> Iterator[Check]:
    most, few = COUNTS[-1], (COUNTS[0], 16)
    cube, laplace, gaussian = medians[K_NORM], medians[COMPOSED], medians[GAUSSIAN]
    less = all(gaussian[k] < LEAST[k] for k in (256, 1024, most))
    better = less and 2 * gaussian[most] < laplace[most]
    bound = LEAST[most]
    evidence = (
        f"{most:,} counts: {gaussian[most]:,.0f}, Laplace {laplace[most]:,.0f}, best pure {bound:,}"
    )
    yield Check(
        "with a delta 256 counts and more err less than any pure mechanism can; Gaussian "
        "noise on 4,096 less than half of Laplace noise",
        better,
        evidence,
    )
    accurate = all(cube[k] < min(gaussian[k], laplace[k]) for k in few)
    yield Check(
        "for a few counts pure noise errs less than noise that has a delta",
        accurate,
        f"k = 16: {cube[16]:.0f} and {gaussian[16]:.0f}",
    )
    pure, some, nothing = cube[1024], gaussian[1024], medians[NOTHING][1024]
    means = f"nothing {nothing:.0f}, K-norm {pure:.0f}, Gaussian {some:.0f}"
    yield Check(
        f"for 1,024 counts of {RECORDS:,} records pure noise is worse than answering half "
        "of them for each, and Gaussian noise better",
        some < nothing < pure,
        means,
    )


def _errors_table(errors: Rows[Errors, Largest]) -> Table:
    rows = [(p.name, p.k, *m.median, m.stated, p.runs) for p, m in errors]
    for k, least in LEAST.items():
        for name, error in ((BOUND, least), ("packing", packing_error(k, EPSILON))):
            rows.append((name, k, error, error, error, error, 0))
    return tabulate(
        "the largest error of k counts",
        "answer | counts | median | at least 95 % from | to | by its law | runs",
        rows,
    )


EXPERIMENT = Price()
