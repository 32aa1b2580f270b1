"""Intervals: the error of all interval counts at once, from one trusted server and from clients who
trust nobody."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.random import default_rng

from local_dp.arrays import Floats
from local_dp.curator.intervals import (
    CountTree,
    Level,
    PrefixFactorization,
    best_branching,
    prefix_variances,
)
from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Deltas,
    Experiment,
    Finding,
    LogLogFigure,
    Normal,
    Points,
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
    ratio,
    seeded,
    slope,
    tabulate,
)
from local_dp.interaction import run
from local_dp.loss import Pure
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.vectors.workload import PrefixSums

EPSILON, DELTA = 1.0, 1e-6
BITS = {"quick": (4, 6, 8, 10, 12, 14), "full": (4, 6, 8, 10, 12, 14, 16, 18, 20)}
RUNS = {"quick": 240, "full": 2000}
POINTS = 1 << 20  # of the domains of all runs of one case: larger domains get fewer runs
LOCAL_BITS, CLIENTS = (4, 6, 8), (10_000, 100_000, 1_000_000)
LOCAL_RUNS = {"quick": 32, "full": 100}  # on 2^8 values; twice and four times as many on fewer
FLAT, BINARY, CONSISTENT, TREE, ROOT = (
    "flat",
    "binary, added up",
    "binary, consistent",
    "best tree, consistent",
    "factorization (delta 1e-6)",
)
KINDS = (FLAT, BINARY, CONSISTENT, TREE, ROOT)


class Errors(Row):
    intervals: list[float]  # the largest error over intervals in each run, in records
    thresholds: list[float]  # and over thresholds
    # the mean of all thresholds' squared errors in units of their variance, where it is known
    scores: list[float]

    @classmethod
    def of(cls, errors: Iterable[Floats], variances: Floats | None = None) -> "Errors":
        figures = cls([], [], [])
        for each in errors:
            figures.intervals.append(float(np.ptp(each)))
            figures.thresholds.append(float(np.abs(each).max()))
            if variances is not None:
                squares = each[1:-1] ** 2
                figures.scores.append(float(np.mean(squares / variances[1:-1])))
        return figures


class Central(Row):
    """A trusted curator's release of all interval counts of 2^bits values."""

    kind: str
    bits: int
    runs: int

    def mechanism(self) -> CountTree | PrefixFactorization:
        if self.kind == ROOT:
            return PrefixFactorization(self.bits, EPSILON, DELTA)
        branching = {FLAT: 1 << self.bits, TREE: best_branching(self.bits, EPSILON)}.get(
            self.kind, 2
        )
        return CountTree(self.bits, EPSILON, branching, self.kind != BINARY)

    def measure(self, seed: int) -> Errors:
        release = self.mechanism()
        points = Multiset.of([0, 1, (1 << self.bits) - 1], self.bits)
        draws = seeded(seed, KINDS.index(self.kind) << 8 | self.bits)
        errors = (release.release(points, draws).errors(points) for _ in range(self.runs))
        return Errors.of(errors, stated_variances(release))


def stated_variances(release: CountTree | PrefixFactorization) -> Floats | None:
    """The variance of each threshold in closed form; a tree that is added up has none here."""
    if isinstance(release, PrefixFactorization):
        return release.deviations() ** 2
    one = 1 / (2 * math.sinh(release.levels[0].epsilon / 4) ** 2)
    return one * prefix_variances(release.shape) if release.by_least_squares else None


class Local(Row):
    """The same errors from one bit a client."""

    bits: int
    n: int
    runs: int

    def measure(self, seed: int) -> Errors:
        protocol = PrefixSums(k=1 << self.bits)
        population = protocol.synthetic(self.n, 0)
        generator = default_rng([seed, self.bits, self.n])

        def errors() -> Floats:
            oracle = AggregateOracle(population, generator, EPSILON)
            estimate = run(protocol.algorithm(EPSILON, self.n), oracle)
            return self.n * np.append(0.0, estimate.value - protocol.truth(population))

        return Errors.of(errors() for _ in range(self.runs))

    @property
    def name(self) -> str:
        return f"local, 2^{self.bits} values"


class Privacy(Row):
    """A level of counts on two records of four values, enumerated."""

    width: int

    def measure(self, seed: int) -> Deltas:
        level = Level(2, self.width, EPSILON)
        values = [(value,) for value in range(4)]
        databases = SmallDatabases(
            values,
            2,
            lambda records: Multiset.of([value for (value,) in records], 2),
        )
        losses = (Pure(level.loss.nano - less) for less in (0, 1))
        return Deltas(*(float(databases.worst_delta(level, loss)) for loss in losses))


class Intervals(Experiment):
    name = "intervals"
    chapter = CURATOR_AND_ATTACKS
    title = "Intervals: every range count of an ordered column at once"
    claim = (
        "A trusted curator answers all interval counts of D ordered values with an error that "
        "grows with a power of ln D and not with the number of records. Noise on every cell is "
        "best for small domains. From about a thousand values on a consistent tree of counts, "
        "with some 16 children a node, is better. With a little delta a factorization of prefix "
        "sums is better still on large domains. Clients who trust nobody pay sqrt(n) times more."
    )
    source = (
        "Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013; Fichtenberger, Henzinger, "
        "Upadhyay 2023; Edmonds, Nikolov, Ullman 2020"
    )

    def points(self, scale: Scale) -> Points:
        runs, most = RUNS[scale], POINTS * RUNS[scale] // RUNS["quick"]
        sizes = BITS[scale]
        trees = (
            Central(kind, bits, max(12, min(runs, most >> bits)))
            for bits in sizes
            for kind in KINDS
        )
        local_runs = LOCAL_RUNS[scale]
        clients = (
            Local(bits, n, local_runs << (8 - bits) // 2) for bits in LOCAL_BITS for n in CLIENTS
        )
        return [
            *trees,
            *clients,
            *map(Privacy, (1, 2)),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        local, central = sheet[Local], sheet[Central]
        table, by_clients = _table(central), _local_table(local)
        curves = table.curves(
            "release | values | largest error, intervals | 95 % from | to", *KINDS
        )
        local_curves = by_clients.curves("release | n | largest error, intervals")
        title, axis = (
            "All interval counts from a trusted curator, epsilon 1",
            "largest error (records)",
        )
        figures = [
            LogLogFigure("intervals", title, "values D", axis, curves),
            LogLogFigure(
                "intervals-local",
                "All interval counts from clients, epsilon 1",
                "clients n",
                axis,
                local_curves,
            ),
        ]
        checks = [
            every(
                "a level of counts is pure at its epsilon, and at no less: enumerated over "
                "all pairs of databases of two records",
                (
                    (
                        m.at == 0 < m.below,
                        f"width {p.width}: delta {m.at:g}, at 1e-9 nats less {m.below:.2g}",
                    )
                    for p, m in sheet[Privacy]
                ),
            ),
            _check_variances(central),
            *_check_order(central),
            *_check_local(local, central),
        ]
        notes = [
            "The error of a release does not depend on the data: any database gives these figures."
        ]
        headline = _headline(central, local)
        return Finding(checks, [table, by_clients], figures, notes, headline=headline)


def _headline(central: Rows[Central, Errors], local: Rows[Local, Errors]) -> str:
    bits = max(p.bits for p, _ in central)
    largest = ((p.kind, np.mean(m.intervals)) for p, m in central if p.bits == bits)
    kinds = (FLAT, TREE, ROOT)
    errors = ", ".join(f"{e:,.0f} ({kind})" for kind, e in largest if kind in kinds)
    p, m = local[-1]
    clients = f"by {np.mean(m.intervals):,.0f} of 2^{p.bits} values gathered from {p.n:,} clients"
    return (
        f"Over all intervals of 2^{bits} values a curator's counts are off by {errors}, and "
        f"{clients}."
    )


def _check_variances(central: Rows[Central, Errors]) -> Check:
    """By kind, all domains together. Means of dependent squares are skewed: 2 % are more than what
    that, and rounding, move a mean over a thousand runs."""
    figures = {}
    for kind in KINDS:
        scores = [score for p, m in central if p.kind == kind for score in m.scores]
        if kind != BINARY:
            figures[kind] = positive_mean(scores)
    statement = (
        "the squared errors of all thresholds agree with closed forms, on average within 2 % (in "
        "units of these)"
    )
    return measured(statement, figures, 0.98, 1.02)


def _check_order(central: Rows[Central, Errors]) -> Iterator[Check]:
    """How many times smaller the largest error over all intervals is; its law has a light tail, and
    its logarithm hardly any skew."""
    errors = {(p.kind, p.bits): m.intervals for p, m in central}
    large = [bits for _, bits in errors if bits >= 14]
    orders = [
        (
            "consistency makes a binary tree 2.1 times better, from 2^14 values on",
            CONSISTENT,
            BINARY,
            dict.fromkeys(large, 2.1),
        ),
        ("a flat histogram beats a tree 2.4 times on 2^4 values", FLAT, CONSISTENT, {4: 2.4}),
        ("and the factorization 2.3 times", FLAT, ROOT, {4: 2.3}),
        (
            (
                "the best tree beats a flat histogram 1.95 times from 2^14 values on, and 1.08 "
                "times on 2^10"
            ),
            TREE,
            FLAT,
            {10: 1.08, **dict.fromkeys(large, 1.95)},
        ),
        ("the best tree beats a binary one 1.8 times on 2^14 values", TREE, CONSISTENT, {14: 1.8}),
        (
            "with a delta, the factorization beats the tree 1.27 times, from 2^14 values on",
            ROOT,
            TREE,
            dict.fromkeys(large, 1.27),
        ),
    ]
    for statement, better, worse, least in orders:
        claims = {}
        for bits, times in least.items():
            gain = ratio(errors[worse, bits], errors[better, bits])
            claims[f"2^{bits}"] = Claimed(gain, times)
        yield holds(statement, claims)


def _check_local(local: Rows[Local, Errors], central: Rows[Central, Errors]) -> Iterator[Check]:
    """The slope of ln(error) on ln(n), all domains together; and the errors at the most clients, in
    units of sqrt(n) times the tree's."""
    powers, times = list[tuple[float, float]](), dict[str, Claimed]()
    for bits, least, most in ((4, 0.8, 1.02), (6, 0.6, 0.75), (8, 0.375, 0.46)):
        rows = [(p.n, m.intervals) for p, m in local if p.bits == bits]
        place = (TREE, bits)
        tree = next(m.intervals for p, m in central if (p.kind, p.bits) == place)
        figures = [mean(each) for _, each in rows]
        means, errors = np.array([(figure.value, figure.error) for figure in figures]).T
        log_clients = np.log([n for n, _ in rows])
        powers.append(slope(log_clients, np.log(means), errors / means))
        n, largest = rows[-1]
        times[f"2^{bits} values"] = Claimed(ratio(largest, tree) / math.sqrt(n), least, most)
    slopes, deviations = zip(*powers, strict=True)
    power = Normal(float(np.mean(slopes)), math.hypot(*deviations) / len(powers))
    yield measured("locally the error grows as sqrt(n)", {"power": power}, 0.5, 0.5)
    yield holds(
        "on 2^4, 2^6 and 2^8 values it is .8 to 1, .6 to .75 and .38 to .46 times sqrt(n) "
        "times the tree's",
        times,
    )


def _table(central: Rows[Central, Errors]) -> Table:
    rows = []
    for p, m in central:
        thresholds = float(np.mean(m.thresholds))
        rows.append((p.kind, 2**p.bits, *mean(m.intervals).stated, thresholds, p.runs))
    return tabulate(
        "largest errors of a trusted curator, in records",
        "release | values | largest error, intervals | 95 % from | to | thresholds | runs",
        rows,
    )


def _local_table(local: Rows[Local, Errors]) -> Table:
    rows = []
    for p, m in local:
        largest, thresholds = float(np.mean(m.intervals)), float(np.mean(m.thresholds))
        root = math.sqrt(p.n)
        rows.append((p.name, p.n, largest, largest / root, thresholds / root, p.runs))
    return tabulate(
        "largest errors of clients, in records",
        "release | n | largest error, intervals | by sqrt(n) | thresholds by sqrt(n) | runs",
        rows,
    )


EXPERIMENT = Intervals()
