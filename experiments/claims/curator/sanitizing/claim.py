"""What a little delta buys a curator who releases all counts or all thresholds: records against the size of the domain."""

from typing import Any, TypeAlias

from local_dp.experiments.claims.curator.sanitizing.runs import (
    ALPHA,
    BITS,
    CELLS,
    COUNTED,
    DEARER,
    DELTAS,
    ENOUGH,
    EPSILON,
    FEW,
    HALF,
    HARD,
    LEARNED,
    SELDOM,
    SHAPED,
    SUCCESS,
    TREE_DELTAS,
    TREES,
    TRIALS,
    WORST,
    Bounds,
    Counts,
    Learned,
    Learnt,
    Proven,
    Released,
    Right,
    Searched,
    Shape,
    Thresholds,
)
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE
from local_dp.experiments.lab.checks import Claimed, every, holds
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import Rows, crossing, curves
from local_dp.experiments.lab.minimal_clients import ClientCount, reached_check
from local_dp.experiments.lab.statistics import Rate, least_count
from local_dp.loss import ATTO, NANO
from local_dp.populations.parity import SHAPES

Point: TypeAlias = Counts | Thresholds | Shape | Learned | Proven
Measurement: TypeAlias = Released | Searched | Right | Learnt | Bounds
Numbers: TypeAlias = dict[int, int]  # by the bits of the domain
Leasts: TypeAlias = dict[tuple[str, int], ClientCount]  # by tree and bits


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
            *(Thresholds(tree, bits, trials) for (tree, bits), trials in TRIALS.items() if scale == "full"),
            *(Shape(tree, bits, shape, ENOUGH[tree][bits], many) for (tree, bits), shapes in SHAPED[scale].items() for shape, many in shapes.items()),
            *(Shape("pure", bits, WORST["pure"], n, SHAPED[scale]["pure", bits][WORST["pure"]]) for bits, n in FEW.items()),
            *(Learned(bits, n, runs) for bits, n in sizes.items()),
        ]

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        by_bits = sorted(measurements, key=lambda row: row[0].bits)
        counts, trees, shapes = of_kind(by_bits, Counts), of_kind(by_bits, Thresholds), of_kind(by_bits, Shape)
        learned, proven = of_kind(by_bits, Learned), {p.bits: m for p, m in of_kind(by_bits, Proven)}
        numbers = {delta: {p.bits: m.n for p, m in counts if p.delta == delta} for delta in DELTAS}
        between = {(p.tree, p.bits): ClientCount(ENOUGH[p.tree][p.bits], p.n, ENOUGH[p.tree][p.bits], p.runs) for p, _ in shapes if p.few}
        searched = {(p.tree, p.bits): m.search for p, m in trees if isinstance(m.search, ClientCount)}
        leasts: Leasts = searched or between
        bound = curve("proven for pure sanitizers", ((bits, each.n) for bits, each in proven.items()), "bound")
        drawn = [
            curves((CELLS[delta], bits, n) for delta in DELTAS for bits, n in numbers[delta].items()),
            curves((TREES[tree], bits, count.n, count.low, count.high) for (tree, bits), count in leasts.items()),
        ]
        axes = ("bits of the domain", "records")
        figures = [
            Figure("counts-by-domain", "Records that all counts take", *axes, [*drawn[0], bound], log_x=True, log_y=True),
            Figure("thresholds-released", "Records that all thresholds take", *axes, [*drawn[1], bound], log_x=True, log_y=True),
        ]
        table = _table(counts, leasts, proven)
        losses = [*((TREE_DELTAS[p.tree], m.loss) for p, m in trees), *((TREE_DELTAS[p.tree], m.loss) for p, m in shapes)]
        checks = [
            _check_loss([*((p.delta, m.loss) for p, m in counts), *losses]),
            _check_exact(counts),
            _check_flat(numbers),
            _check_separation(numbers, {bits: each.n for bits, each in proven.items()}),
            _check_crossing(numbers[0.0], numbers[1e-6]),
            *_check_shapes(shapes),
            *([reached_check([(f"{p.name} at {p.bits} bits", m.search) for p, m in trees]), _check_leasts(searched)] if scale == "full" else []),
            _check_learned(learned),
            _check_printed(proven, counts),
            figure_check(figures, table),
        ]
        shape_rows = [(TREES[p.tree], p.bits, p.n, p.shape, m.right.successes, p.runs) for p, m in shapes]
        learned_rows = [(p.bits, p.n, m.right.successes, m.half.successes, p.runs, round(m.direct.value, 3)) for p, m in learned]
        columns = ("bits", "records", "right", "right with half", "runs", f"chance without a release, one record in {DEARER}")
        tables = [
            table,
            Table("All thresholds within alpha, by the shape of the data", ("mechanism", "bits", "records", "shape", "right", "runs"), shape_rows),
            Table("Thresholds learned from released thresholds, pure", columns, learned_rows),
        ]
        return Finding(checks, tables, figures, NOTES, headline=_headline(numbers[1e-6], proven))


NOTES = [
    f"Records for {SUCCESS:.0%} success, all answers within alpha {ALPHA:g}, epsilon {EPSILON:g}. Of counts in the worst of all databases, by exact "
    f"sums. Of thresholds on {WORST['pure']} data for the pure tree (in a domain of 2^16 five points take some 6 % more), and on {WORST['sparse']} "
    "data for the sparse one; measured, with 95 % intervals at the full scale.",
    "At the quick scale the least number for thresholds lies between one that is too few and one that is enough.",
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
    """All domains of one delta together: their runs are independent, and no sum of successes of such chances is wider than a binomial one (Hoeffding 1956)."""
    claims = {}
    for delta in dict.fromkeys(p.delta for p, _ in counts):
        rows = [(m.chance, m.right) for p, m in counts if p.delta == delta]
        chance = sum(each for each, _ in rows) / len(rows)
        rate = Rate(sum(right.successes for _, right in rows), sum(right.trials for _, right in rows))
        claims[f"{CELLS[delta]}, {chance:.4f} by the sums"] = Claimed(rate, chance, chance)
    enough = all(SUCCESS <= m.success <= m.chance for _, m in counts)
    return holds("With the least number of records, releases of counts are within alpha as often as the exact sums say", claims, also=enough)


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


def _check_crossing(pure: Numbers, best: Numbers) -> Check:
    statement = "Released counts take more records with delta 1e-6 in a domain of 2^16, and fewer in one of 2^32 and all larger ones"
    fewer = bool(pure) and best[16] > pure[16] and all(best[bits] < pure[bits] for bits in pure if bits >= 32)
    return Check(statement, fewer, f"fewer from 2^{crossing(pure, best):.0f} on")


def _check_shapes(shapes: Rows[Shape, Right]) -> list[Check]:
    few = {str(p): Claimed(m.right, high=SELDOM) for p, m in shapes if p.few}
    hard, easy = dict[str, Claimed](), dict[str, Claimed]()
    for p, m in shapes:
        if not p.few:
            (hard if p.tree == "pure" and p.shape in HARD else easy)[str(p)] = Claimed(m.right, SUCCESS)
    text = "All thresholds are within alpha of data of {} nine times of ten"
    hardest = f"the hardest shapes, by the pure tree, with fewer records at most {SELDOM:.0%} of the times, and with enough"
    known = {p.shape for p, _ in shapes} == set(SHAPES)
    return [holds(text.format(hardest), few | hard, also=bool(few)), holds(text.format("every other shape"), easy, also=known)]


def _check_leasts(leasts: Leasts) -> Check:
    """Of the full scale."""
    counts = {key: least_count(count) for key, count in leasts.items()}
    ratios = {
        "sparse for pure at 2^16": (("sparse", 16), ("pure", 16), 2.5),
        "pure for sparse at 2^128": (("pure", 128), ("sparse", 128), 1.4),
        "pure, 2^128 for 2^16": (("pure", 128), ("pure", 16), 5.0),
        "sparse, 2^16 for 2^256": (("sparse", 16), ("sparse", 256), 1 / 1.5),
    }
    claims = {name: Claimed(counts[top] / counts[low], least) for name, (top, low, least) in ratios.items() if {top, low} <= counts.keys()}
    statement = (
        "All thresholds take 2.5 times as many records with delta 1e-6 in a domain of 2^16, and purely 1.4 times as many in one of 2^128; from 2^16 to that "
        "they take five times as many purely, and with delta 1e-6 at most 1.5 times as many in one of 2^256"
    )
    return holds(statement, claims, also=len(claims) == len(ratios))


def _check_learned(learned: Rows[Learned, Learnt]) -> Check:
    """Half the records are too few, so the number is not idle; one in seven are enough without a release. Its chances have a long lower tail, in which
    Student's law errs to the safe side."""
    claims: dict[str, Claimed] = {}
    for p, m in learned:
        name = f"{p.bits} bits, {p.n:,}"
        claims |= {name: Claimed(m.right, SUCCESS), f"{name}, half": Claimed(m.half, high=HALF), f"{name}, without": Claimed(m.direct, SUCCESS)}
    statement = (
        f"A threshold is learned from the released thresholds of both labels nine times of ten, from half as many records at most {HALF:.0%} of the times; "
        f"without a release one in {DEARER} is enough"
    )
    return holds(statement, claims, also=all(m.loss[0] <= EPSILON * NANO and not m.loss[1] for _, m in learned))


def _check_printed(proven: dict[int, Bounds], counts: Rows[Counts, Released]) -> Check:
    """The printed sanitizer of points against noise on all cells: the domain from which on it would pay."""
    most, least = max((m.n for _, m in counts), default=0), min((each.points for each in proven.values()), default=0)
    evidence = f"SanPoints refuses below {least:,}; pure noise takes at most {most:,}"
    return Check("At the printed sizes no delta pays in any of these domains", 0 < most < least, evidence)


def _table(counts: Rows[Counts, Released], leasts: Leasts, proven: dict[int, Bounds]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for p, m in counts:
        rows.append(("counts", p.name, p.bits, m.n, None, None, None if p.delta else proven[p.bits].n, proven[p.bits].points))
    for (tree, bits), count in leasts.items():
        needed = proven[bits].n if tree == "pure" else None
        rows.append(("thresholds", TREES[tree], bits, count.n, count.low, count.high, needed, proven[bits].thresholds))
    columns = ("released", "mechanism", "bits", "records", "95 % from", "to", "proven needed, pure", "printed")
    return Table(f"Least records for {SUCCESS:.0%} success within alpha {ALPHA:g} at epsilon {EPSILON:g}", columns, rows)


EXPERIMENT = Sanitizing()
