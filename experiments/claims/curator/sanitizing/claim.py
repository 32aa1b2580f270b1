"""What a little delta buys a curator who releases all counts or all thresholds: records against the size of the domain."""

import math
from typing import Any, ClassVar

from local_dp.experiments.claims.curator.sanitizing.runs import (
    ALPHA,
    DEARER,
    EPSILON,
    SUCCESS,
    WORST,
    measure_counts,
    measure_learned,
    measure_proven,
    measure_shape,
    measure_thresholds,
)
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.minimal_clients import reached_check
from local_dp.loss import ATTO, NANO
from local_dp.populations.parity import SHAPES

BITS = (8, 16, 32, 64, 128, 256, 1024)
DELTAS = (0.0, 1e-6, 1e-3)
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
LEARNED: dict[Scale, tuple[dict[int, int], int]] = {"quick": ({16: 3300, 32: 4100}, 40), "full": ({16: 3300, 32: 4100, 64: 8000}, 400)}
"""By the bits of the domain the records of a learner from releases; and how many runs."""
CROSSED = {"counts": 22, "thresholds": 66}
WITHIN = 4  # bits
SURE = 4.9  # standard errors: a right rate is called wrong once in a million
TREES = {"pure": "medians, pure", "sparse": "sparse medians, delta 1e-6"}
CELLS = {0.0: "noise on all cells, pure", 1e-6: "thresholded histogram, delta 1e-6", 1e-3: "thresholded histogram, delta 1e-3"}
Measured = list[tuple[Point, Measurement]]
Counts = dict[int, int]
"""The least number by the bits of the domain."""


class Sanitizing(Experiment[Point, Measurement]):
    """Beimel, Nissim, Stemmer 2013, Section 4, with mechanisms as they are private and good today."""

    name: ClassVar[str] = "sanitizing"
    chapter: ClassVar[Chapter] = PURE_AND_APPROXIMATE
    title: ClassVar[str] = "What a little delta buys a trusted curator who releases data"
    claim: ClassVar[str] = (
        "To release how often each point of a domain occurs, or which share of the records lies below each threshold, a purely private curator provably needs "
        "a number of people that grows with the number of bits of the domain. With a delta of one in a million, all counts take the same 340 people in any "
        "domain, known or not, and all thresholds take hardly more people in a larger domain. Who learns a threshold from such a release "
        "pays several times what learning it takes."
    )
    source: ClassVar[str] = "Beimel, Nissim, Stemmer 2013, Theorems 4.6, 4.7, 4.13, Lemma 4.15; Korolova et al. 2009; Kaplan, Schnapp, Stemmer 2022"

    def points(self, scale: Scale) -> list[Point]:
        found: list[Point] = [{"kind": "proven", "bits": bits} for bits in BITS]
        found += [{"kind": "counts", "delta": delta, "bits": bits, "runs": COUNTED[scale][delta > 0]} for delta in DELTAS for bits in BITS]
        trees = {"pure": 0.0, "sparse": 1e-6}
        found += [{"kind": "thresholds", "tree": tree, "delta": trees[tree], "bits": bits, "trials": trials} for (tree, bits), trials in TRIALS[scale].items()]
        for (tree, bits), (shapes, runs) in SHAPED[scale].items():
            n = ENOUGH[tree][bits]
            found += [{"kind": "shape", "tree": tree, "delta": trees[tree], "bits": bits, "shape": shape, "n": n, "runs": runs} for shape in shapes]
        sizes, runs = LEARNED[scale]
        return found + [{"kind": "learned", "bits": bits, "n": n, "runs": runs} for bits, n in sizes.items()]

    def measure(self, point: Point, seed: int) -> Measurement:
        return MEASURED[point["kind"]](point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        counts, trees, shapes, proven = (_of(measurements, kind) for kind in ("counts", "thresholds", "shape", "proven"))
        learned = _of(measurements, "learned")
        rows, others = _table(counts, trees, proven), [_shape_table(shapes), _learned_table(learned)]
        figures = [_counts_figure(counts, proven), _thresholds_figure(trees, proven)]
        checks = [_check_loss([*counts, *trees]), _check_exact(counts), _check_flat(counts), _check_separation(counts, proven), _check_counts(counts)]
        checks += [reached_check([(f"{TREES[point['tree']]} at {point['bits']} bits", found) for point, found in trees])]
        checks += [
            _check_shapes(shapes),
            *([_check_thresholds(trees)] if scale == "full" else []),
            _check_learned(learned),
            _check_printed(proven, counts),
            figure_check(figures, rows),
        ]
        return Finding(checks, [rows, *others], figures, NOTES, headline=_headline(counts, proven))


MEASURED = {
    "counts": measure_counts,
    "thresholds": measure_thresholds,
    "shape": measure_shape,
    "proven": measure_proven,
    "learned": measure_learned,
}
NOTES = [
    f"Records for {SUCCESS:.0%} success, all answers within alpha {ALPHA:g}, epsilon {EPSILON:g}. Of counts in the worst of all databases, by exact "
    f"sums. Of thresholds on the shape that takes the most records: {WORST['pure']} data for the pure tree, {WORST['sparse']} data for the "
    "sparse one; measured, with 95 % intervals.",
    "The thresholded histogram takes no domain: nobody need list the values that could occur.",
    "The printed sanitizers are private only from a number of records on, below which they refuse: SanPoints at alpha .1, SanThresholds at alpha .25.",
    "Five shapes of data: uniform; eight clusters; as many records on each scale; nested around a point; and five points with a fifth of the records each.",
]


def _of(measurements: Measured, kind: str) -> Measured:
    return sorted(((point, found) for point, found in measurements if point["kind"] == kind), key=lambda each: each[0]["bits"])


def _numbers(rows: Measured, which: str, value: Any) -> Counts:
    return {point["bits"]: found["n"] for point, found in rows if point[which] == value and "n" in found}


def _at(numbers: Counts, bits: int) -> float:
    """On a line between the sizes around. Raises KeyError beyond them."""
    sizes = list(numbers)
    for low, high in zip(sizes, sizes[1:] or sizes, strict=False):
        if low <= bits <= high:
            return numbers[low] + (bits - low) / max(1, high - low) * (numbers[high] - numbers[low])
    raise KeyError(bits)


def crossing(pure: Counts, other: Counts) -> float:
    """The least number of bits from which the pure release takes more records; infinite if it never does."""
    if not pure or not other:
        return math.inf
    sizes = range(max(min(pure), min(other)), min(max(pure), max(other)) + 1)
    return next((float(bits) for bits in sizes if _at(pure, bits) > _at(other, bits)), math.inf)


def _headline(counts: Measured, proven: Measured) -> str:
    """In the greatest domain."""
    bound, best = {point["bits"]: found["n"] for point, found in proven}, _numbers(counts, "delta", 1e-6)
    bits = max(set(bound) & set(best), default=0)
    if not bits:
        return "Not everything was measured."
    return f"All counts of 2^{bits} values take {best[bits]:,} people with a delta of 1e-6, and without one provably {bound[bits]:,}."


def _check_loss(rows: Measured) -> Check:
    """Of the sparse tree, delta is rounded down a little."""
    wrong = [point for point, found in rows if found["nano"] != EPSILON * NANO or not 0.999 * point["delta"] * ATTO <= found["atto"] <= point["delta"] * ATTO]
    return Check(
        "Every release's loss, counted from its parts, is the epsilon and the delta that it is compared at", bool(rows) and not wrong, f"{len(rows)} releases"
    )


def _check_exact(counts: Measured) -> Check:
    """Runs on a database of as many heavy points as there can be: of the thresholded histogram by its exact chance, of the pure one at least its success."""
    wrong = []
    for point, found in counts:
        low, high = wilson(found["right"], point["runs"], SURE)
        if high < found["success"] or (point["delta"] and not low <= found["chance"] <= high):
            wrong.append(f"{CELLS[point['delta']]} at {point['bits']} bits: {found['right']} of {point['runs']}")
    right, runs = sum(found["right"] for _, found in counts), sum(point["runs"] for point, _ in counts)
    said = "; ".join(wrong[:3]) or f"{right:,} of {runs:,}"
    return Check("With the least number of records, releases of counts are within alpha as often as the exact sums say", bool(counts) and not wrong, said)


def _check_flat(counts: Measured) -> Check:
    flat = {delta: set(_numbers(counts, "delta", delta).values()) for delta in DELTAS if delta}
    said = ", ".join(f"{', '.join(f'{n:,}' for n in sorted(numbers))} at delta {delta:g}" for delta, numbers in flat.items())
    return Check("Released counts: with a delta the number of records does not depend on the domain", all(len(numbers) == 1 for numbers in flat.values()), said)


def _check_separation(counts: Measured, proven: Measured) -> Check:
    bound, pure, best = {point["bits"]: found["n"] for point, found in proven}, _numbers(counts, "delta", 0.0), _numbers(counts, "delta", 1e-6)
    kept = bool(pure) and all(bound[bits] <= pure[bits] <= 6 * bound[bits] for bits in pure)
    beyond = [bits for bits in best if bound[bits] > best[bits]]
    last = max(beyond, default=0)
    return Check(
        "No purely private sanitizer does with as few records as the thresholded histogram: proven against run",
        kept and bool(beyond) and last == max(best),
        f"at 2^{last} proven {bound[last]:,}, run pure {pure[last]:,}, with delta 1e-6 {best[last]:,}; from 2^{min(beyond)} on" if last else "nowhere",
    )


def _check_counts(counts: Measured) -> Check:
    found = crossing(_numbers(counts, "delta", 0.0), _numbers(counts, "delta", 1e-6))
    return Check(
        f"Released counts take fewer records with delta 1e-6 from about 2^{CROSSED['counts']} on", abs(found - CROSSED["counts"]) <= WITHIN, _told(found)
    )


def _check_thresholds(trees: Measured) -> Check:
    found = crossing(_numbers(trees, "tree", "pure"), _numbers(trees, "tree", "sparse"))
    return Check(
        f"Released thresholds take fewer records with delta 1e-6 from about 2^{CROSSED['thresholds']} on",
        abs(found - CROSSED["thresholds"]) <= WITHIN,
        _told(found),
    )


def _told(bits: float) -> str:
    return f"from 2^{bits:.0f} on" if math.isfinite(bits) else "nowhere in these domains"


def _check_shapes(shapes: Measured) -> Check:
    wrong = []
    for point, found in shapes:
        _, high = wilson(found["right"], point["runs"], SURE)
        if high < SUCCESS:
            wrong.append(f"{point['shape']}, {TREES[point['tree']]}, {point['bits']} bits: {found['right']} of {point['runs']}")
    every = {point["shape"] for point, _ in shapes} == set(SHAPES)
    right, runs = sum(found["right"] for _, found in shapes), sum(point["runs"] for point, _ in shapes)
    shown = every and not wrong and right >= SUCCESS * runs
    statement = "All thresholds are within alpha of data of every shape nine times of ten (a right release is called wrong once in a million)"
    return Check(statement, shown, "; ".join(wrong[:3]) or f"{right:,} of {runs:,}")


def _check_learned(learned: Measured) -> Check:
    """Half the records are too few, so the number is not idle; one in seven are enough without a release."""
    enough = [wilson(found["right"], point["runs"], SURE)[1] >= SUCCESS for point, found in learned]
    half = [wilson(found["half"], point["runs"], SURE)[1] < SUCCESS for point, found in learned]
    direct = [found["direct"] >= SUCCESS for _, found in learned]
    statement = (
        f"A threshold is learned from the released thresholds of both labels, not from half as many records; without a release one in {DEARER} is enough"
    )
    said = "; ".join(f"{point['bits']} bits, {point['n']:,}: {found['right']} and {found['half']} of {point['runs']}" for point, found in learned)
    spent = all(found["nano"] <= EPSILON * NANO and not found["atto"] for _, found in learned)
    return Check(statement, bool(learned) and all([*enough, *half, *direct, spent]), said)


def _check_printed(proven: Measured, counts: Measured) -> Check:
    """The printed sanitizer of points against noise on all cells: from which domain on it would pay."""
    most = max((found["n"] for _, found in counts), default=0)
    least = min((found["SanPoints"] for _, found in proven), default=0)
    return Check(
        "At the printed sizes no delta pays in any of these domains", 0 < most < least, f"SanPoints refuses below {least:,}; pure noise takes at most {most:,}"
    )


def _table(counts: Measured, trees: Measured, proven: Measured) -> Table:
    bound = {point["bits"]: found for point, found in proven}
    rows: list[tuple[Any, ...]] = []
    for point, found in counts:
        name, bits = CELLS[point["delta"]], point["bits"]
        needed = None if point["delta"] else bound[bits]["n"]
        rows.append(("counts", name, bits, found["n"], None, None, needed, bound[bits]["SanPoints"]))
    for point, found in trees:
        name, bits = TREES[point["tree"]], point["bits"]
        needed = None if point["delta"] else bound[bits]["n"]
        rows.append(("thresholds", name, bits, *(found.get(which) for which in ("n", "low", "high")), needed, bound[bits]["SanThresholds"]))
    columns = ("released", "mechanism", "bits", "records", "95 % from", "to", "proven needed, pure", "printed")
    return Table(f"Least records for {SUCCESS:.0%} success within alpha {ALPHA:g} at epsilon {EPSILON:g}", columns, rows)


def _shape_table(shapes: Measured) -> Table:
    rows = [(TREES[point["tree"]], point["bits"], point["n"], point["shape"], found["right"], point["runs"]) for point, found in shapes]
    return Table("All thresholds within alpha, by the shape of the data", ("mechanism", "bits", "records", "shape", "right", "runs"), rows)


def _learned_table(learned: Measured) -> Table:
    rows = [(point["bits"], point["n"], found["right"], found["half"], point["runs"], round(found["direct"], 3)) for point, found in learned]
    columns = ("bits", "records", "right", "right with half", "runs", f"chance without a release, one record in {DEARER}")
    return Table("Thresholds learned from released thresholds, pure", columns, rows)


def _bound(proven: Measured) -> Curve:
    return Curve("proven for pure sanitizers", [point["bits"] for point, _ in proven], [found["n"] for _, found in proven], "bound")


def _counts_figure(counts: Measured, proven: Measured) -> Figure:
    curves = [Curve(CELLS[delta], list(numbers), list(numbers.values()), "measured") for delta in DELTAS if (numbers := _numbers(counts, "delta", delta))]
    return Figure("counts-by-domain", "Records that all counts take", "bits of the domain", "records", [*curves, _bound(proven)], log_x=True, log_y=True)


def _thresholds_figure(trees: Measured, proven: Measured) -> Figure:
    curves = []
    for tree, name in TREES.items():
        held = [(point["bits"], found) for point, found in trees if point["tree"] == tree and "n" in found]
        if not held:
            continue
        ends = [[found[which] for _, found in held] for which in ("n", "low", "high")]
        curves.append(Curve(name, [bits for bits, _ in held], ends[0], "measured", ends[1], ends[2]))
    title = "Records that all thresholds take"
    return Figure("thresholds-released", title, "bits of the domain", "records", [*curves, _bound(proven)], log_x=True, log_y=True)


EXPERIMENT = Sanitizing()
