"""What a little delta buys a curator who releases all counts or all thresholds: records against the size of the domain."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from local_dp.bounds.packing import cell_failures, histogram_success, least_multiple, per_cell_success, sanitizer_records
from local_dp.curator.multisets import Multiset
from local_dp.curator.reductions.learners import MediansByLabel, Processed, best_threshold
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, TreeOfMedians
from local_dp.curator.sanitizers.point_counts import PerCellHistogram, ThresholdedHistogram
from local_dp.curator.sanitizers.san_points import PrintedSanPoints
from local_dp.curator.sanitizers.san_thresholds import PrintedSanThresholds
from local_dp.curator.selection.sparse import Goals
from local_dp.curator.thresholds.learner import PureThresholds, hard_thresholds, random_target
from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE
from local_dp.experiments.lab.checks import every
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import Rows, crossing, curves, first_wrong
from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.minimal_clients import ClientCount, Search, measured_clients, reached_check
from local_dp.loss import ATTO, NANO, Loss
from local_dp.noise import KeyedNoise
from local_dp.populations.parity import SHAPES, shaped

ALPHA, EPSILON, SUCCESS, LEVELS = 0.1, 1.0, 0.9, 4
DEARER = 7  # how many times dearer learning from a release is than learning
WORST = {"pure": "clustered", "sparse": "nested"}  # the shape that asks for the most records
BITS = (8, 16, 32, 64, 128, 256, 1024)
DELTAS = (0.0, 1e-6, 1e-3)
TREE_DELTAS = {"pure": 0.0, "sparse": 1e-6}
TRIALS: dict[Scale, dict[tuple[str, int], int]] = {  # by tree and bits: how many runs a search has
    "quick": {("pure", 16): 160, ("pure", 64): 160},
    "full": {**{("pure", bits): 1500 for bits in (16, 32, 64, 128)}, **{("sparse", bits): 800 for bits in (16, 64, 128, 256)}},
}
ENOUGH = {"pure": {16: 1500, 32: 2700, 64: 4900}, "sparse": {16: 6400, 64: 6400, 256: 6400}}  # records of the shapes
SHAPED: dict[Scale, dict[tuple[str, int], tuple[tuple[str, ...], int]]] = {  # by tree and bits: which shapes, and how many runs
    "quick": {("pure", 16): (tuple(SHAPES), 20), ("pure", 64): (tuple(SHAPES), 20), ("sparse", 16): (tuple(SHAPES), 12), ("sparse", 256): (("nested",), 12)},
    "full": {
        **{("pure", bits): (tuple(SHAPES), 200) for bits in (16, 32, 64)},
        **{("sparse", bits): (tuple(SHAPES), 40) for bits in (16, 64)},
        ("sparse", 256): (("nested", "five points"), 40),
    },
}
COUNTED: dict[Scale, tuple[int, int]] = {"quick": (30, 300), "full": (300, 1000)}  # runs of the pure release, and of the others
# By the bits of the domain the records of a learner from releases; and how many runs.
LEARNED: dict[Scale, tuple[dict[int, int], int]] = {"quick": ({16: 3300, 32: 4100}, 40), "full": ({16: 3300, 32: 4100, 64: 8000}, 400)}
CROSSED = {"counts": 22, "thresholds": 66}
WITHIN = 4  # bits
SURE = 4.9  # standard errors: a right rate is called wrong once in a million
TREES = {"pure": "medians, pure", "sparse": "sparse medians, delta 1e-6"}
CELLS = {0.0: "noise on all cells, pure", 1e-6: "thresholded histogram, delta 1e-6", 1e-3: "thresholded histogram, delta 1e-3"}


def loss_of(loss: Loss) -> tuple[int, int]:
    """Epsilon in nano-nats and delta in atto."""
    return loss.nano, getattr(loss, "atto", 0)


@dataclass(frozen=True)
class Released:
    n: int  # the least number, by exact sums
    success: float
    chance: float  # that the points with records are within alpha: all of the worst database of a thresholded histogram, part of the other's
    right: int  # runs within alpha on a database of as many heavy points as possible
    loss: tuple[int, int]


@dataclass(frozen=True)
class Counts:
    """Released counts, with noise on all cells or thresholded."""

    delta: float
    bits: int
    runs: int

    def measure(self, seed: int) -> Released:
        mechanism = ThresholdedHistogram(EPSILON, self.delta) if self.delta else PerCellHistogram(self.bits, EPSILON)

        def success(m: int) -> float:
            return histogram_success(mechanism.noise, m, ALPHA) if self.delta else per_cell_success(self.bits, EPSILON, m, ALPHA)

        n = least_multiple(success, ALPHA)
        heavy = heavy_points(n, self.bits)
        chance = float(np.prod(1 - cell_failures(mechanism.noise, n, n // 10)[heavy.counts]))
        draws = Draws(KeyedNoise(seed))
        right = sum(mechanism.release(heavy, draws).worst_error(heavy) <= n // 10 for _ in range(self.runs))
        return Released(n, success(n), chance, right, loss_of(mechanism.loss))

    @property
    def name(self) -> str:
        return CELLS[self.delta]


def heavy_points(n: int, bits: int) -> Multiset:
    """As many points as there can be of one record more than may be left out, spread over the domain; the rest at one point more."""
    size = n // 10 + 1
    points = n // size
    counts = [size] * points + ([n - size * points] if n % size else [])
    values = [(1 << bits) // (len(counts) + 1) * (place + 1) for place in range(len(counts))]
    return Multiset(bits, np.array(values, dtype=np.uint64 if bits <= 64 else object), np.array(counts, dtype=np.int64))


def tree_of(kind: str) -> TreeOfMedians[Any]:
    """Four levels: an error of 1/32 without noise."""
    return Medians(EPSILON, LEVELS) if kind == "pure" else SparseMedians(EPSILON, LEVELS, delta=TREE_DELTAS[kind])


def within(kind: str, shape: str, bits: int, seeds: np.random.Generator) -> Callable[[int, int], int]:
    """For `measured_clients`: in how many of some runs all thresholds are within alpha, each on fresh data."""
    tree = tree_of(kind)

    def successes(n: int, runs: int) -> int:
        kept = 0
        for seed in seeds.integers(1 << 62, size=runs).tolist():
            points = Multiset.of(shaped(shape, n, bits, seed), bits)
            kept += tree.release(points, Draws(KeyedNoise(seed))).error(points) <= ALPHA
        return kept

    return successes


@dataclass(frozen=True)
class Searched:
    search: Search
    loss: tuple[int, int]


@dataclass(frozen=True)
class Thresholds:
    """Trees of medians: the least number of records on the shape that needs the most."""

    tree: str
    bits: int
    trials: int

    def measure(self, seed: int) -> Searched:
        success = within(self.tree, WORST[self.tree], self.bits, np.random.default_rng([seed, self.bits, len(self.tree)]))
        guess = 60 * self.bits + 500 if self.tree == "pure" else 4000
        return Searched(measured_clients(success, guess, target=SUCCESS, trials=self.trials), loss_of(tree_of(self.tree).loss))

    @property
    def name(self) -> str:
        return TREES[self.tree]


@dataclass(frozen=True)
class Right:
    right: int


@dataclass(frozen=True)
class Shape:
    """How often all thresholds are within alpha of data of one shape."""

    tree: str
    bits: int
    shape: str
    n: int
    runs: int

    def measure(self, seed: int) -> Right:
        return Right(within(self.tree, self.shape, self.bits, np.random.default_rng([seed, self.bits, len(self.shape)]))(self.n, self.runs))


@dataclass(frozen=True)
class Learnt:
    right: int  # runs that learn the threshold from the releases
    half: int  # runs with half of the records
    direct: float  # the exact chance without a release, from one part in `DEARER` of the records, averaged over samples
    loss: tuple[int, int]


@dataclass(frozen=True)
class Learned:
    """A threshold of the needle, learned from all thresholds of each label's points."""

    bits: int
    n: int
    runs: int

    def measure(self, seed: int) -> Learnt:
        bits, n = self.bits, self.n
        learner, direct = Processed(MediansByLabel(EPSILON, 3), best_threshold), PureThresholds(EPSILON)
        generator, draws = np.random.default_rng([seed, bits, n]), Draws(KeyedNoise(seed))
        right, chance = {n: 0, n // 2: 0}, 0.0
        for _ in range(self.runs):
            law = hard_thresholds(bits, ALPHA, random_target(bits, generator))["needle"]
            low, high = law.good(ALPHA)
            for size in right:
                right[size] += low <= learner.release(law.sample(size, generator), draws) <= high
            chance += direct.chance(law.sample(n // DEARER, generator), low, high)
        return Learnt(right[n], right[n // 2], chance / self.runs, loss_of(learner.loss))


@dataclass(frozen=True)
class Bounds:
    n: int  # no pure sanitizer of either class needs fewer
    points: int  # the printed SanPoints refuses below, at alpha .1
    thresholds: int  # the printed SanThresholds refuses below, at alpha .25


@dataclass(frozen=True)
class Proven:
    """Proven numbers of records."""

    bits: int

    def measure(self, seed: int) -> Bounds:
        points = PrintedSanPoints(EPSILON, 1e-6, Goals(ALPHA, 1 - SUCCESS))
        thresholds = PrintedSanThresholds(EPSILON, 1e-6, Goals(0.25, 1 - SUCCESS))
        return Bounds(sanitizer_records(self.bits, EPSILON, ALPHA, 1 - SUCCESS), points.least, thresholds.least)


Point: TypeAlias = Counts | Thresholds | Shape | Learned | Proven
Measurement: TypeAlias = Released | Searched | Right | Learnt | Bounds
Numbers: TypeAlias = dict[int, int]  # by the bits of the domain


class Sanitizing(Experiment[Point, Measurement]):
    name = "sanitizing"
    chapter = PURE_AND_APPROXIMATE
    title = "What a little delta buys a trusted curator who releases data"
    claim = (
        "A curator releases how often each point of a domain occurs, or which share of the records lies below each threshold. With pure privacy that provably "
        "needs a number of people that grows with the number of bits of the domain. With a delta of one in a million, all counts take the same 340 people in "
        "any domain, known or not, and all thresholds take hardly more people in a larger domain. Learning a threshold from such a release costs several "
        "times as much as learning it directly."
    )
    source = "Beimel, Nissim, Stemmer 2013, Theorems 4.6, 4.7, 4.13, Lemma 4.15; Korolova et al. 2009; Kaplan, Schnapp, Stemmer 2022"

    def points(self, scale: Scale) -> list[Point]:
        sizes, runs = LEARNED[scale]
        return [
            *(Proven(bits) for bits in BITS),
            *(Counts(delta, bits, COUNTED[scale][delta > 0]) for delta in DELTAS for bits in BITS),
            *(Thresholds(tree, bits, trials) for (tree, bits), trials in TRIALS[scale].items()),
            *(Shape(tree, bits, shape, ENOUGH[tree][bits], many) for (tree, bits), (shapes, many) in SHAPED[scale].items() for shape in shapes),
            *(Learned(bits, n, runs) for bits, n in sizes.items()),
        ]

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        by_bits = sorted(measurements, key=lambda row: row[0].bits)
        counts, trees, shapes = of_kind(by_bits, Counts), of_kind(by_bits, Thresholds), of_kind(by_bits, Shape)
        learned, proven = of_kind(by_bits, Learned), {p.bits: m for p, m in of_kind(by_bits, Proven)}
        numbers = {delta: {p.bits: m.n for p, m in counts if p.delta == delta} for delta in DELTAS}
        leasts = [(p, m.search) for p, m in trees if isinstance(m.search, ClientCount)]
        released = {tree: {p.bits: count.n for p, count in leasts if p.tree == tree} for tree in TREES}
        bound = curve("proven for pure sanitizers", ((bits, each.n) for bits, each in proven.items()), "bound")
        drawn = [
            curves((CELLS[delta], bits, n) for delta in DELTAS for bits, n in numbers[delta].items()),
            curves((TREES[tree], p.bits, count.n, count.low, count.high) for tree in TREES for p, count in leasts if p.tree == tree),
        ]
        axes = ("bits of the domain", "records")
        figures = [
            Figure("counts-by-domain", "Records that all counts take", *axes, [*drawn[0], bound], log_x=True, log_y=True),
            Figure("thresholds-released", "Records that all thresholds take", *axes, [*drawn[1], bound], log_x=True, log_y=True),
        ]
        table = _table(counts, trees, proven)
        checks = [
            _check_loss([*((p.delta, m.loss) for p, m in counts), *((TREE_DELTAS[p.tree], m.loss) for p, m in trees)]),
            _check_exact(counts),
            _check_flat(numbers),
            _check_separation(numbers, {bits: each.n for bits, each in proven.items()}),
            _check_crossing("Released counts", "counts", crossing(numbers[0.0], numbers[1e-6])),
            reached_check([(f"{p.name} at {p.bits} bits", m.search) for p, m in trees]),
            _check_shapes(shapes),
            *([_check_crossing("Released thresholds", "thresholds", crossing(released["pure"], released["sparse"]))] if scale == "full" else []),
            _check_learned(learned),
            _check_printed(proven, counts),
            figure_check(figures, table),
        ]
        shape_rows = [(TREES[p.tree], p.bits, p.n, p.shape, m.right, p.runs) for p, m in shapes]
        learned_rows = [(p.bits, p.n, m.right, m.half, p.runs, round(m.direct, 3)) for p, m in learned]
        columns = ("bits", "records", "right", "right with half", "runs", f"chance without a release, one record in {DEARER}")
        tables = [
            table,
            Table("All thresholds within alpha, by the shape of the data", ("mechanism", "bits", "records", "shape", "right", "runs"), shape_rows),
            Table("Thresholds learned from released thresholds, pure", columns, learned_rows),
        ]
        return Finding(checks, tables, figures, NOTES, headline=_headline(numbers[1e-6], proven))


NOTES = [
    f"Records for {SUCCESS:.0%} success, all answers within alpha {ALPHA:g}, epsilon {EPSILON:g}. Of counts in the worst of all databases, by exact "
    f"sums. Of thresholds on the shape that takes the most records: {WORST['pure']} data for the pure tree, {WORST['sparse']} data for the "
    "sparse one; measured, with 95 % intervals.",
    "The thresholded histogram takes no domain: nobody has to list the values that could occur.",
    "The printed sanitizers are private only from a number of records on, below which they refuse: SanPoints at alpha .1, SanThresholds at alpha .25.",
    "Five shapes of data: uniform; eight clusters; as many records on each scale; nested around a point; and five points with a fifth of the records each.",
]


def _headline(best: Numbers, proven: dict[int, Bounds]) -> str:
    """In the greatest domain."""
    bits = max(set(proven) & set(best), default=0)
    if not bits:
        return "Not everything was measured."
    return f"All counts of 2^{bits} values take {best[bits]:,} people with a delta of 1e-6, and without one provably {proven[bits].n:,}."


def _check_loss(losses: list[tuple[float, tuple[int, int]]]) -> Check:
    """Of the sparse tree, delta is rounded down a little."""
    kept = [nano == EPSILON * NANO and 0.999 * delta * ATTO <= atto <= delta * ATTO for delta, (nano, atto) in losses]
    statement = "Every release's loss, counted from its parts, is the epsilon and the delta of the comparison"
    return Check(statement, bool(kept) and all(kept), f"{len(kept)} releases")


def _check_exact(counts: Rows[Counts, Released]) -> Check:
    """Runs on a database of as many heavy points as possible: the thresholded histogram has its exact chance, the pure one at least its success."""
    cases = []
    for p, m in counts:
        low, high = wilson(m.right, p.runs, SURE)
        cases.append((high >= m.success and (not p.delta or low <= m.chance <= high), f"{p.name} at {p.bits} bits: {m.right} of {p.runs}"))
    total = f"{sum(m.right for _, m in counts):,} of {sum(p.runs for p, _ in counts):,}"
    return first_wrong("With the least number of records, releases of counts are within alpha as often as the exact sums say", cases, total)


def _check_flat(numbers: dict[float, Numbers]) -> Check:
    flat = {delta: sorted(set(numbers[delta].values())) for delta in DELTAS if delta}
    return every(
        "Released counts: with a delta the number of records does not depend on the domain",
        ((len(each) == 1, f"{', '.join(f'{n:,}' for n in each)} at delta {delta:g}") for delta, each in flat.items()),
    )


def _check_separation(numbers: dict[float, Numbers], bound: Numbers) -> Check:
    pure, best = numbers[0.0], numbers[1e-6]
    kept = bool(pure) and all(bound[bits] <= pure[bits] <= 6 * bound[bits] for bits in pure)
    beyond = [bits for bits in best if bound[bits] > best[bits]]
    last = max(beyond, default=0)
    return Check(
        "No purely private sanitizer needs as few records as the thresholded histogram: proven against run",
        kept and bool(beyond) and last == max(best),
        f"at 2^{last} proven {bound[last]:,}, run pure {pure[last]:,}, with delta 1e-6 {best[last]:,}; from 2^{min(beyond)} on" if last else "nowhere",
    )


def _check_crossing(name: str, key: str, bits: float) -> Check:
    evidence = f"from 2^{bits:.0f} on" if math.isfinite(bits) else "nowhere in these domains"
    return Check(f"{name} take fewer records with delta 1e-6 from about 2^{CROSSED[key]} on", abs(bits - CROSSED[key]) <= WITHIN, evidence)


def _check_shapes(shapes: Rows[Shape, Right]) -> Check:
    cases = []
    for p, m in shapes:
        cases.append((wilson(m.right, p.runs, SURE)[1] >= SUCCESS, f"{p.shape}, {TREES[p.tree]}, {p.bits} bits: {m.right} of {p.runs}"))
    right, runs = sum(m.right for _, m in shapes), sum(p.runs for p, _ in shapes)
    cases.append(({p.shape for p, _ in shapes} == set(SHAPES) and right >= SUCCESS * runs, f"{right:,} of {runs:,}"))
    statement = "All thresholds are within alpha of data of every shape nine times of ten (a right release is called wrong once in a million)"
    return first_wrong(statement, cases, f"{right:,} of {runs:,}")


def _check_learned(learned: Rows[Learned, Learnt]) -> Check:
    """Half the records are too few, so the number is not idle; one in seven are enough without a release."""
    cases = []
    for p, m in learned:
        enough, half = (wilson(right, p.runs, SURE)[1] >= SUCCESS for right in (m.right, m.half))
        spent = m.loss[0] <= EPSILON * NANO and not m.loss[1]
        cases.append((enough and not half and m.direct >= SUCCESS and spent, f"{p.bits} bits, {p.n:,}: {m.right} and {m.half} of {p.runs}"))
    statement = (
        f"A threshold is learned from the released thresholds of both labels, not from half as many records; without a release one in {DEARER} is enough"
    )
    return every(statement, cases)


def _check_printed(proven: dict[int, Bounds], counts: Rows[Counts, Released]) -> Check:
    """The printed sanitizer of points against noise on all cells: the domain from which on it would pay."""
    most, least = max((m.n for _, m in counts), default=0), min((each.points for each in proven.values()), default=0)
    evidence = f"SanPoints refuses below {least:,}; pure noise takes at most {most:,}"
    return Check("At the printed sizes no delta pays in any of these domains", 0 < most < least, evidence)


def _table(counts: Rows[Counts, Released], trees: Rows[Thresholds, Searched], proven: dict[int, Bounds]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for p, m in counts:
        rows.append(("counts", p.name, p.bits, m.n, None, None, None if p.delta else proven[p.bits].n, proven[p.bits].points))
    for tree, searched in trees:
        least = [getattr(searched.search, column, None) for column in ("n", "low", "high")]
        needed = proven[tree.bits].n if tree.tree == "pure" else None
        rows.append(("thresholds", tree.name, tree.bits, *least, needed, proven[tree.bits].thresholds))
    columns = ("released", "mechanism", "bits", "records", "95 % from", "to", "proven needed, pure", "printed")
    return Table(f"Least records for {SUCCESS:.0%} success within alpha {ALPHA:g} at epsilon {EPSILON:g}", columns, rows)


EXPERIMENT = Sanitizing()
