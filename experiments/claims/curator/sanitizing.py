"""What a little delta buys a curator who releases all counts or all thresholds: records against the
size of the domain."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.bounds.packing import (
    cell_failures,
    histogram_success,
    least_multiple,
    per_cell_success,
    sanitizer_records,
)
from local_dp.curator.multisets import Multiset
from local_dp.curator.reductions.learners import MediansByLabel, Processed, best_threshold
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, TreeOfMedians
from local_dp.curator.sanitizers.point_counts import PerCellHistogram, ThresholdedHistogram
from local_dp.curator.sanitizers.san_points import PrintedSanPoints
from local_dp.curator.sanitizers.san_thresholds import PrintedSanThresholds
from local_dp.curator.selection.sparse import Goals
from local_dp.curator.thresholds.learner import PureThresholds, hard_thresholds, random_target
from local_dp.experiments.lab.parts import (
    PURE_AND_APPROXIMATE,
    Check,
    Claimed,
    ClientCount,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Normal,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    crossing,
    curve,
    every,
    holds,
    least_count,
    mean,
    measured_clients,
    reached_check,
    seeded,
    tabulate,
)
from local_dp.loss import ATTO, NANO, Loss
from local_dp.populations.parity import SHAPES, shaped

ALPHA, EPSILON, SUCCESS, LEVELS = 0.1, 1.0, 0.9, 4
DEARER = 7  # how many times dearer learning from a release is than learning
WORST = {
    "pure": "clustered",
    "sparse": "nested",
    # the shape that asks for the most records; at 2^16 five points ask the pure tree for some 6 %
    # more
}
BITS = (8, 16, 32, 64, 128, 256, 1024)
DELTAS = (0.0, 1e-6, 1e-3)
TREE_DELTAS = {"pure": 0.0, "sparse": 1e-6}
# runs of a search, full scale
TRIALS = {("pure", bits): 3000 for bits in (16, 32, 64, 128)} | {
    ("sparse", bits): 1500 for bits in (16, 64, 128, 256)
}
# records of the shapes
ENOUGH = {"pure": {16: 1650, 32: 2800, 64: 4900}, "sparse": {16: 6400, 64: 6400, 256: 6400}}
# too few for the pure tree: of 300 and 160 runs at other seeds .57 and .42 were right
FEW = {16: 1150, 64: 4000}
SELDOM = 0.7  # with so few records at most so many runs are right
HARD = ("clustered", "five points")  # shapes on which the pure tree is wrong most often
SHAPED = {  # by tree and bits: how many runs on which shapes
    "quick": {
        ("pure", 16): {shape: 160 if shape in HARD else 30 for shape in SHAPES},
        ("pure", 64): dict.fromkeys(HARD, 60),
        ("sparse", 16): dict.fromkeys(SHAPES, 30),
        ("sparse", 256): {"nested": 30},
    },
    "full": {
        **{("pure", bits): dict.fromkeys(SHAPES, 400) for bits in (16, 32, 64)},
        **{("sparse", bits): dict.fromkeys(SHAPES, 100) for bits in (16, 64)},
        ("sparse", 256): {"nested": 100, "five points": 100},
    },
}
COUNTED = {"quick": (100, 400), "full": (600, 2000)}  # runs of the pure release, and of the others
# By the bits of the domain the records of a learner from releases; and how many runs.
LEARNED = {"quick": ({16: 3300, 32: 4100}, 120), "full": ({16: 3300, 32: 4100, 64: 8000}, 400)}
HALF = 0.25  # with half of the records at most so many runs are right
TREES = {"pure": "medians, pure", "sparse": "sparse medians, delta 1e-6"}
CELLS = {
    0.0: "noise on all cells, pure",
    1e-6: "thresholded histogram, delta 1e-6",
    1e-3: "thresholded histogram, delta 1e-3",
}
Numbers = dict[int, int]  # by the bits of the domain
Leasts = dict[tuple[str, int], ClientCount]  # by tree and bits


def loss_of(loss: Loss) -> tuple[int, int]:
    """Epsilon in nano-nats and delta in atto."""
    return loss.nano, getattr(loss, "atto", 0)


class Released(Row):
    n: int  # the least number, by exact sums
    success: float
    chance: (
        float  # that all counts of a database of as many heavy points as possible are within alpha
    )
    right: Rate  # runs where they are
    loss: tuple[int, int]


class Counts(Row):
    """Released counts, with noise on all cells or thresholded."""

    delta: float
    bits: int
    runs: int

    def measure(self, seed: int) -> Released:
        mechanism: PerCellHistogram | ThresholdedHistogram = PerCellHistogram(self.bits, EPSILON)
        if self.delta:
            mechanism = ThresholdedHistogram(EPSILON, self.delta)

        def success(m: int) -> float:
            if self.delta:
                return histogram_success(mechanism.noise, m, ALPHA)
            return per_cell_success(self.bits, EPSILON, m, ALPHA)

        n = least_multiple(success, ALPHA)
        heavy = heavy_points(n, self.bits)
        chance = float(np.prod(1 - cell_failures(mechanism.noise, n, n // 10)[heavy.counts]))
        # all other points of the domain err on one side only, where the sum has both
        if not self.delta:
            chance *= success(n) ** 0.5
        draws = seeded(seed, self.bits)
        releases = (mechanism.release(heavy, draws) for _ in range(self.runs))
        right = sum(release.worst_error(heavy) <= n // 10 for release in releases)
        return Released(n, success(n), chance, Rate(right, self.runs), loss_of(mechanism.loss))


def heavy_points(n: int, bits: int) -> Multiset:
    """As many points as there can be of one record more than may be left out, spread over the
    domain; the rest at one point more."""
    size = n // 10 + 1
    points = n // size
    counts = [size] * points + ([n - size * points] if n % size else [])
    step = (1 << bits) // (len(counts) + 1)
    values = [step * (place + 1) for place in range(len(counts))]
    repeats = np.array(counts, dtype=np.int64)
    return Multiset(
        bits,
        np.array(values, dtype=np.uint64 if bits <= 64 else object),
        repeats,
    )


def tree_of(kind: str) -> TreeOfMedians[Any]:
    """Four levels: an error of 1/32 without noise."""
    if kind == "pure":
        return Medians(EPSILON, LEVELS)
    return SparseMedians(EPSILON, LEVELS, delta=TREE_DELTAS[kind])


def within(kind: str, shape: str, bits: int, seeds: Generator) -> Callable[[int, int], int]:
    """For `measured_clients`: in how many of some runs all thresholds are within alpha, each on
    fresh data."""
    tree = tree_of(kind)

    def successes(n: int, runs: int) -> int:
        count = 0
        for seed in seeds.integers(1 << 62, size=runs).tolist():
            points = Multiset.of(shaped(shape, n, bits, seed), bits)
            count += tree.release(points, seeded(seed)).error(points) <= ALPHA
        return count

    return successes


class OfTree(Row):
    """Trees of medians."""

    tree: str
    bits: int

    @property
    def delta(self) -> float:
        return TREE_DELTAS[self.tree]

    @property
    def mechanism(self) -> str:
        return TREES[self.tree]


class Searched(Row):
    search: ClientCount
    loss: tuple[int, int]


class Thresholds(OfTree):
    """The least number of records on the shape that needs the most."""

    trials: int

    def measure(self, seed: int) -> Searched:
        generator = default_rng([seed, self.bits, len(self.tree)])
        success = within(self.tree, WORST[self.tree], self.bits, generator)
        guess = 60 * self.bits + 500 if self.tree == "pure" else 4000
        search = measured_clients(success, guess, target=SUCCESS, trials=self.trials)
        return Searched(search, loss_of(tree_of(self.tree).loss))


class Right(Row):
    right: Rate
    loss: tuple[int, int]


class Shape(OfTree):
    """How often all thresholds are within alpha of data of one shape."""

    shape: str
    n: int
    runs: int

    def measure(self, seed: int) -> Right:
        generator = default_rng([seed, self.bits, len(self.shape)])
        right = within(self.tree, self.shape, self.bits, generator)(self.n, self.runs)
        return Right(Rate(right, self.runs), loss_of(tree_of(self.tree).loss))

    @property
    def few(self) -> bool:
        return self.n < ENOUGH[self.tree][self.bits]

    def __str__(self) -> str:
        return f"{self.shape}, {self.mechanism}, {self.bits} bits, {self.n:,} records"


class Learnt(Row):
    right: Rate  # runs that learn the threshold from the releases
    half: Rate  # runs with half of the records
    # the exact chance without a release, from one part in `DEARER` of the records, averaged over
    # samples
    direct: Normal
    loss: tuple[int, int]


class Learned(Row):
    """A threshold of the needle, learned from all thresholds of each label's points."""

    bits: int
    n: int
    runs: int

    def measure(self, seed: int) -> Learnt:
        bits, n = self.bits, self.n
        learner = Processed(MediansByLabel(EPSILON, 3), best_threshold)
        direct = PureThresholds(EPSILON)
        generator, draws = default_rng([seed, bits, n]), seeded(seed)
        right, chances = {n: 0, n // 2: 0}, list[float]()
        for _ in range(self.runs):
            law = hard_thresholds(bits, ALPHA, random_target(bits, generator))["needle"]
            low, high = law.good(ALPHA)
            for size in right:
                right[size] += low <= learner.release(law.sample(size, generator), draws) <= high
            chances.append(direct.chance(law.sample(n // DEARER, generator), low, high))
        enough, half = (Rate(many, self.runs) for many in right.values())
        return Learnt(enough, half, mean(chances), loss_of(learner.loss))


class Bounds(Row):
    n: int  # no pure sanitizer of either class needs fewer
    points: int  # the printed SanPoints refuses below, at alpha .1
    thresholds: int  # the printed SanThresholds refuses below, at alpha .25


class Proven(Row):
    bits: int

    def measure(self, seed: int) -> Bounds:
        points = PrintedSanPoints(EPSILON, 1e-6, Goals(ALPHA, 1 - SUCCESS))
        thresholds = PrintedSanThresholds(EPSILON, 1e-6, Goals(0.25, 1 - SUCCESS))
        return Bounds(
            sanitizer_records(self.bits, EPSILON, ALPHA, 1 - SUCCESS),
            points.least,
            thresholds.least,
        )


class Sanitizing(Experiment):
    name = "sanitizing"
    chapter = PURE_AND_APPROXIMATE
    title = "What a little delta buys a trusted curator who releases data"
    claim = (
        "A curator releases how often each point of a domain occurs, or which share of the "
        "records lies below each threshold. With pure privacy that provably needs a number of "
        "people that grows with the number of bits of the domain. With a delta of one in a "
        "million, all counts take the same 340 people in any domain, known or not, and all "
        "thresholds take hardly more people in a larger domain. Learning a threshold from such a "
        "release costs several times as much as learning it directly."
    )
    source = (
        "Beimel, Nissim, Stemmer 2013, Theorems 4.6, 4.7, 4.13, Lemma 4.15; Korolova et al. 2009; "
        "Kaplan, Schnapp, Stemmer 2022"
    )

    def points(self, scale: Scale) -> Points:
        sizes, runs = LEARNED[scale]
        return [
            *map(Proven, BITS),
            *(Counts(delta, bits, COUNTED[scale][delta > 0]) for delta in DELTAS for bits in BITS),
            *(
                Thresholds(tree, bits, trials)
                for (tree, bits), trials in TRIALS.items()
                if scale == "full"
            ),
            *(
                Shape(tree, bits, shape, ENOUGH[tree][bits], many)
                for (tree, bits), shapes in SHAPED[scale].items()
                for shape, many in shapes.items()
            ),
            *(
                Shape("pure", bits, WORST["pure"], n, SHAPED[scale]["pure", bits][WORST["pure"]])
                for bits, n in FEW.items()
            ),
            *(Learned(bits, n, runs) for bits, n in sizes.items()),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        rows = Sheet(sorted(sheet.rows, key=lambda row: row[0].bits), sheet.scale)
        counts, trees, shapes = rows[Counts], rows[Thresholds], rows[Shape]
        proven: dict[int, Bounds] = {p.bits: m for p, m in rows[Proven]}
        numbers = {delta: {p.bits: m.n for p, m in counts if p.delta == delta} for delta in DELTAS}
        leasts: Leasts = {(p.tree, p.bits): m.search for p, m in trees}
        table = _table(counts, leasts or _between(shapes), proven)
        checks = [
            _check_losses([*counts, *trees, *shapes]),
            _check_exact(counts),
            *_check_domains(numbers, {bits: each.n for bits, each in proven.items()}),
            *_check_shapes(shapes),
            *([reached_check(trees), _check_leasts(leasts)] if trees else []),
            _check_learned(rows[Learned]),
            _check_printed(
                max(m.n for _, m in counts), min(each.points for each in proven.values())
            ),
        ]
        headline = _headline(numbers[1e-6], proven)
        return Finding(checks, [table], [*_figures(table, proven)], NOTES, headline=headline)


def _figures(table: Table, proven: dict[int, Bounds]) -> Iterator[Figure]:
    bound = curve(
        "proven for pure sanitizers", ((bits, each.n) for bits, each in proven.items()), "bound"
    )
    cells = table.curves("mechanism | bits | records", *CELLS.values())
    medians = table.curves("mechanism | bits | records | 95 % from | to")
    axes = ("bits of the domain", "records")
    yield LogLogFigure("counts-by-domain", "Records that all counts take", *axes, [*cells, bound])
    yield LogLogFigure(
        "thresholds-released", "Records that all thresholds take", *axes, [*medians, bound]
    )


def _between(shapes: Rows[Shape, Right]) -> Leasts:
    """Where nothing was searched: between a number that is too few and one that is enough."""
    few = ((p, ENOUGH[p.tree][p.bits]) for p, _ in shapes if p.few)
    return {(p.tree, p.bits): ClientCount(enough, p.n, enough, p.runs) for p, enough in few}


NOTES = [
    f"Records for {SUCCESS:.0%} success, all answers within alpha {ALPHA:g}, epsilon {EPSILON:g}. "
    f"Of counts in the worst of all databases, by exact sums. Of thresholds on {WORST['pure']} "
    "data for the pure tree (in a domain of 2^16 five points take some 6 % more), and on "
    f"{WORST['sparse']} data for the sparse one; measured, with 95 % intervals at the full scale.",
    (
        "At the quick scale the least number for thresholds lies between one that is too few and "
        "one that is enough."
    ),
    "The thresholded histogram takes no domain: nobody has to list the values that could occur.",
    (
        "The printed sanitizers are private only from a number of records on, below which they "
        "refuse: SanPoints at alpha .1, SanThresholds at alpha .25."
    ),
    (
        "Five shapes of data: uniform; eight clusters; as many records on each scale; nested "
        "around a point; and five points with a fifth of the records each."
    ),
]


def _headline(best: Numbers, proven: dict[int, Bounds]) -> str:
    """In the greatest domain."""
    bits = max(best)
    return (
        f"All counts of 2^{bits} values take {best[bits]:,} people with a delta of 1e-6, and "
        f"without one provably {proven[bits].n:,}."
    )


def _check_losses(releases: Rows[Any, Any]) -> Check:
    """A sparse tree rounds its delta down."""
    right = [
        m.loss[0] == EPSILON * NANO and 0.999 * p.delta * ATTO <= m.loss[1] <= p.delta * ATTO
        for p, m in releases
    ]
    return Check(
        "Every release's loss, counted from its parts, is the epsilon and the delta of the "
        "comparison",
        all(right),
        f"{len(right)} releases",
    )


def _check_exact(counts: Rows[Counts, Released]) -> Check:
    """All domains of one delta together: their runs are independent, and no sum of successes of
    such chances is wider than a binomial one (Hoeffding 1956)."""
    claims = {}
    for delta in dict.fromkeys(p.delta for p, _ in counts):
        rows = [m for p, m in counts if p.delta == delta]
        chance = sum(m.chance for m in rows) / len(rows)
        rate = Rate(sum(m.right.successes for m in rows), sum(m.right.trials for m in rows))
        claims[f"{CELLS[delta]}, {chance:.4f} by the sums"] = Claimed(rate, chance, chance)
    enough = all(SUCCESS <= m.success <= m.chance for _, m in counts)
    statement = (
        "With the least number of records, releases of counts are within alpha as often as the "
        "exact sums say"
    )
    return holds(statement, claims, also=enough)


def _check_domains(numbers: dict[float, Numbers], bound: Numbers) -> Iterator[Check]:
    """Released counts: with a delta in any domain, against pure noise, and against every pure
    sanitizer."""
    pure, best = numbers[0.0], numbers[1e-6]
    flat = {delta: sorted(set(each.values())) for delta, each in numbers.items() if delta}
    as_proven = all(bound[bits] <= pure[bits] <= 6 * bound[bits] for bits in pure)
    beyond = [bits for bits in best if bound[bits] > best[bits]]
    last = max(beyond, default=0)
    yield every(
        "Released counts: with a delta the number of records does not depend on the domain",
        (
            (len(each) == 1, f"{', '.join(f'{n:,}' for n in each)} at delta {delta:g}")
            for delta, each in flat.items()
        ),
    )
    yield Check(
        "No purely private sanitizer needs as few records as the thresholded histogram: "
        "proven against run",
        as_proven and last == max(best),
        (
            f"at 2^{last} proven {bound[last]:,}, run pure {pure[last]:,}, with delta 1e-6 "
            f"{best[last]:,}; from 2^{min(beyond)} on"
        )
        if last
        else "nowhere",
    )
    cheaper = all(best[bits] < pure[bits] for bits in pure if bits >= 32)
    verdict = best[16] > pure[16] and cheaper
    yield Check(
        "Released counts take more records with delta 1e-6 in a domain of 2^16, and fewer "
        "in one of 2^32 and all larger ones",
        verdict,
        f"fewer from 2^{crossing(pure, best):.0f} on",
    )


def _check_printed(most: int, least: int) -> Check:
    statement = "At the printed sizes no delta pays in any of these domains"
    evidence = f"SanPoints refuses below {least:,}; pure noise takes at most {most:,}"
    return Check(statement, most < least, evidence)


def _check_shapes(shapes: Rows[Shape, Right]) -> Iterator[Check]:
    few = {str(p): Claimed(m.right, high=SELDOM) for p, m in shapes if p.few}
    hard, easy = dict[str, Claimed](), dict[str, Claimed]()
    for p, m in shapes:
        if not p.few:
            claims = hard if p.tree == "pure" and p.shape in HARD else easy
            claims[str(p)] = Claimed(m.right, SUCCESS)
    text = "All thresholds are within alpha of data of {} nine times of ten"
    hardest = (
        f"the hardest shapes, by the pure tree, with fewer records at most {SELDOM:.0%} of the "
        "times, and with enough"
    )
    complete = {p.shape for p, _ in shapes} == set(SHAPES)
    yield holds(text.format(hardest), few | hard, also=bool(few))
    yield holds(text.format("every other shape"), easy, also=complete)


def _check_leasts(leasts: Leasts) -> Check:
    counts = {key: least_count(count) for key, count in leasts.items()}
    ratios = {
        "sparse for pure at 2^16": (("sparse", 16), ("pure", 16), 2.5),
        "pure for sparse at 2^128": (("pure", 128), ("sparse", 128), 1.4),
        "pure, 2^128 for 2^16": (("pure", 128), ("pure", 16), 5.0),
        "sparse, 2^16 for 2^256": (("sparse", 16), ("sparse", 256), 1 / 1.5),
    }
    claims = {}
    for name, (top, low, least) in ratios.items():
        claims[name] = Claimed(counts[top] / counts[low], least)
    statement = (
        "All thresholds take 2.5 times as many records with delta 1e-6 in a domain of 2^16, and "
        "purely 1.4 times as many in one of 2^128; from 2^16 to that they take five times as many "
        "purely, and with delta 1e-6 at most 1.5 times as many in one of 2^256"
    )
    return holds(statement, claims)


def _check_learned(learning: Rows[Learned, Learnt]) -> Check:
    """Half the records are too few, and one in seven are enough directly. The chances have a long
    lower tail: Student's law errs to the safe side."""
    claims = {}
    for p, m in learning:
        name = f"{p.bits} bits, {p.n:,}"
        claims[name] = Claimed(m.right, SUCCESS)
        claims[f"{name}, half"] = Claimed(m.half, high=HALF)
        claims[f"{name}, without"] = Claimed(m.direct, SUCCESS)
    statement = (
        "A threshold is learned from the released thresholds of both labels nine times of ten, "
        f"from half as many records at most {HALF:.0%} of the times; without a release one in "
        f"{DEARER} is enough"
    )
    losses = (m.loss for _, m in learning)
    pure = all(nano <= EPSILON * NANO and not atto for nano, atto in losses)
    return holds(statement, claims, also=pure)


def _table(counts: Rows[Counts, Released], leasts: Leasts, proven: dict[int, Bounds]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for p, m in counts:
        bound = proven[p.bits]
        bounds = (None if p.delta else bound.n, bound.points)
        rows.append(("counts", CELLS[p.delta], p.bits, m.n, None, None, *bounds))
    for (tree, bits), count in leasts.items():
        bounds = (proven[bits].n if tree == "pure" else None, proven[bits].thresholds)
        ends = (count.n, count.low, count.high)
        rows.append(("thresholds", TREES[tree], bits, *ends, *bounds))
    title = f"Least records for {SUCCESS:.0%} success within alpha {ALPHA:g} at epsilon {EPSILON:g}"
    headings = (
        "released | mechanism | bits | records | 95 % from | to | proven needed, pure | printed"
    )
    return tabulate(title, headings, rows)


EXPERIMENT = Sanitizing()
