"""What a little delta buys a curator who learns: records against the size of the domain, pure, approximate and with public points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from local_dp.experiments.claims.curator.pure_or_approximate.cases import ALPHA, EPSILON, SUCCESS
from local_dp.experiments.claims.curator.pure_or_approximate.figures import LABELS, curves, placed, table
from local_dp.experiments.claims.curator.pure_or_approximate.runs import SEEN, measure_learner, measure_proven
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE, Chapter
from local_dp.experiments.lab.claim import Check, Experiment, Finding, Measurement, Point, Regions, Scale
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.loss import ATTO, NANO

BITS = (8, 16, 32, 64, 128, 256, 1024)
Key = tuple[str, str, float]
"""Points or thresholds, which learner, delta: 0 if it is pure."""
EXACT: tuple[Key, ...] = (("points", "pure", 0.0), ("points", "stable", 1e-6), ("points", "stable", 1e-3), ("thresholds", "pure", 0.0))
QUICK: dict[Key, tuple[tuple[int, ...], int]] = {  # on which domains, and over how many samples
    ("points", "buckets", 0.0): ((16, 1024), 120),
    ("points", "labels", 0.0): ((16, 1024), 120),
    ("thresholds", "labels", 0.0): ((16, 256), 240),
    ("thresholds", "semi-private", 0.0): ((16, 256), 120),
    ("thresholds", "dyadic", 1e-6): ((8, 16, 64, 256), 26),
    ("thresholds", "dyadic", 1e-3): ((8, 32, 128), 20),
    ("thresholds", "RecConcave", 1e-6): ((64, 128), 6),
}
FULL: dict[Key, tuple[tuple[int, ...], int]] = {
    **{key: ((16, 64, 256, 1024), 400) for key in QUICK if key[1] in ("buckets", "labels", "semi-private")},
    **{("thresholds", "dyadic", delta): (BITS, 120) for delta in (1e-6, 1e-3)},
    **{("thresholds", "RecConcave", delta): ((32, 64, 128, 256), 24) for delta in (1e-6, 1e-3)},
}
RUNS: dict[Scale, int] = {"quick": 300, "full": 1000}
CROSSED: dict[Key, int] = {("points", "stable", 1e-6): 19, ("thresholds", "dyadic", 1e-6): 14, ("thresholds", "RecConcave", 1e-6): 88}
WITHIN = 4  # bits
SURE = 4.9  # standard errors: a right figure is called wrong once in a million
DOUBLED = 4 * math.log(2) / (ALPHA * EPSILON)  # how many records more the proven number of dyadic thresholds has, where the bits are twice as many
SIZES: dict[str, int] = {"points": 64, "thresholds": 256}  # bits at which the separation is told
BEST: dict[str, Key] = {"points": ("points", "stable", 1e-6), "thresholds": ("thresholds", "dyadic", 1e-6)}
Measured = list[tuple[Point, Measurement]]


@dataclass(frozen=True)
class Series:
    """The least numbers of one learner, by the bits of the domain."""

    rows: Measured

    @property
    def bits(self) -> list[int]:
        return [point["bits"] for point, _ in self.rows]

    def at(self, bits: float, key: str = "n") -> float:
        """The number at a size, or an end `low`, `high` of its interval; between sizes on a line in the bits. Raises KeyError beyond them."""
        for (point, found), (other, more) in zip(self.rows, self.rows[1:] or self.rows, strict=False):
            if point["bits"] <= bits <= other["bits"]:
                share = (bits - point["bits"]) / max(1, other["bits"] - point["bits"])
                return float(found[key] + share * (more[key] - found[key]))
        raise KeyError(bits)

    def off(self, bits: int) -> float:
        """The standard error of a number."""
        return (self.at(bits, "high") - self.at(bits, "low")) / (2 * SEEN)

    def grown(self) -> tuple[float, float]:
        """From the first size to the last: by how many records, and the standard error of that."""
        first, last = self.bits[0], self.bits[-1]
        return self.at(last) - self.at(first), math.hypot(self.off(first), self.off(last))


class PureOrApproximate(Experiment[Point, Measurement]):
    """Beimel, Nissim, Stemmer 2013, Sections 3 and 6, with mechanisms as they are private and good today."""

    name: ClassVar[str] = "pure-or-approximate"
    chapter: ClassVar[Chapter] = PURE_AND_APPROXIMATE
    title: ClassVar[str] = "What a little delta buys a trusted curator who learns"
    claim: ClassVar[str] = (
        "To learn which point of a domain is marked, or where a threshold lies in it, a purely private curator who names a point or a threshold of the domain "
        "provably needs a number of people that grows with the number of bits of the domain. With a delta of one in a million, a point takes the same few "
        "hundred people in any domain, and a threshold takes hardly more people when the bits are doubled. Where only labels are secret, a threshold takes "
        "the same few people everywhere; and so does a point with pure privacy, if the hypothesis need not name it."
    )
    source: ClassVar[str] = "Beimel, Nissim, Stemmer 2013, Lemma 3.2, Theorems 3.18 and 6.2, Lemma 5.7; Beimel, Nissim, Stemmer 2013b; Feldman, Xiao 2014"

    def points(self, scale: Scale) -> list[Point]:
        sampled = QUICK if scale == "quick" else FULL
        asked = [*((key, BITS, 20 if scale == "quick" else 60) for key in EXACT), *((key, *how) for key, how in sampled.items())]
        found: list[Point] = [
            {"of": of, "kind": kind, "delta": delta, "bits": bits, "samples": samples, "runs": RUNS[scale] // (15 if kind == "RecConcave" else 1)}
            for (of, kind, delta), sizes, samples in asked
            for bits in sizes
        ]
        return found + [{"of": of, "kind": "proven", "delta": 0.0, "bits": bits} for of in SIZES for bits in BITS]

    def measure(self, point: Point, seed: int) -> Measurement:
        return (measure_proven if point["kind"] == "proven" else measure_learner)(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        series = by_learner(measurements)
        learners = {key: held for key, held in series.items() if key[1] != "proven"}
        checks = [_check_loss(learners), _check_runs(learners), _check_others(learners)]
        separated = {of: _check_separation(of, series) for of in SIZES}
        flat = {key: _check_flat(key, held) for key, held in learners.items() if key[1] not in ("pure", "dyadic", "RecConcave")}
        grows = {key: _check_grows(key, held) for key, held in learners.items() if key[1] == "dyadic"}
        crossings = [_check_crossing(key, series) for key in CROSSED]
        beyond = _check_beyond(series)
        told = table(learners, series)
        figures = [curves(of, series) for of in SIZES]
        checks += [*separated.values(), *flat.values(), *grows.values(), *crossings, beyond, figure_check(figures, told)]
        regions = Regions("flat", "What is learned from a number of people that does not grow with the domain", placed(series, flat, separated, beyond))
        return Finding(checks, [told], [regions, *figures], NOTES, headline=_headline(series))


NOTES = [
    f"Records for {SUCCESS:.0%} success within alpha {ALPHA:g}, epsilon {EPSILON:g}, in the worst distribution known. Of points: just alpha on the target. Of "
    "thresholds, the worst of five: a needle (just over alpha on both sides of the target, which alone is then good), a needle with a staircase of points at "
    "distances 1, 2, 4, ..., the staircase alone, and plateaus of 2^(d/2) and 2^(3d/4) around the target, which is random and odd.",
    "Success is computed exactly: in closed form where there is one, else given a sample and averaged over samples; intervals are of two standard errors of "
    "that average. Runs draw fresh samples.",
    "What is proven holds for every purely private learner that names a point or a threshold of the domain (proper), by packing. For thresholds no purely "
    "private learner at all does without a number that grows with the bits (Feldman, Xiao 2014), and with a delta none without the iterated logarithm of the "
    "domain (Alon, Livni, Malliaris, Moran 2019): proven there, not run.",
    "That thresholds take only labels' privacy to be flat is thus a theorem too; dyadic thresholds grow as log log of the domain, and RecConcave at depth 2 no "
    "faster, from a higher start.",
]


def _headline(series: dict[Key, Series]) -> str:
    told = []
    for of, bits in SIZES.items():
        proven, best = series[of, "proven", 0.0].at(bits), series[BEST[of]].at(bits)
        told.append(f"one of 2^{bits} {of} takes {best:,.0f} people with a delta of {BEST[of][2]:g}, and provably {proven:,.0f} without")
    return f"To learn and name {'; '.join(told)}."


def by_learner(measurements: Measured) -> dict[Key, Series]:
    """The measurements of each learner, in the order of the bits."""
    found: dict[Key, Measured] = {}
    for point, measured in sorted(measurements, key=lambda each: each[0]["bits"]):
        found.setdefault((point["of"], point["kind"], point["delta"]), []).append((point, measured))
    return {key: Series(rows) for key, rows in found.items()}


def crossing(pure: Series, other: Series) -> float:
    """The least number of bits from which the pure learner takes more records than the other; infinite if it never does."""
    sizes = range(max(pure.bits[0], other.bits[0]), min(pure.bits[-1], other.bits[-1]) + 1)
    return next((float(bits) for bits in sizes if pure.at(bits) > other.at(bits)), math.inf)


def _check_loss(learners: dict[Key, Series]) -> Check:
    wrong = [
        LABELS[key]
        for key, series in learners.items()
        for _, found in series.rows
        if (found["nano"], found["atto"]) != (round(EPSILON * NANO), round(key[2] * ATTO))
    ]
    said = f"not of: {', '.join(wrong[:3])}" if wrong else f"{sum(len(series.rows) for series in learners.values())} learners"
    return Check("Every learner's loss, counted from its parts, is the epsilon and the delta that it is compared at", bool(learners) and not wrong, said)


def _check_runs(learners: dict[Key, Series]) -> Check:
    rows = [(LABELS[key], point, found) for key, series in learners.items() for point, found in series.rows]
    wrong = []
    for label, point, found in rows:
        low, high = wilson(found["right"], point["runs"], SURE)
        if not low <= found["expected"] / point["runs"] <= high:
            wrong.append(f"{label} at {point['bits']} bits: {found['right']} of {point['runs']}, {found['expected']:.0f} expected")
    right, runs = sum(found["right"] for *_, found in rows), sum(point["runs"] for _, point, _ in rows)
    said = "; ".join(wrong[:3]) or f"{right:,} of {runs:,} runs right, {sum(found['expected'] for *_, found in rows):,.0f} expected"
    return Check(
        "With the least number of records, releases are right as often as the exact chance says (each of them fails once in a million)", not wrong, said
    )


def _check_others(learners: dict[Key, Series]) -> Check:
    """Where the least number is an exact sum over one distribution, it is enough in the others."""
    rows = [(LABELS[key], point, found) for key, series in learners.items() for point, found in series.rows if "others" in found]
    wrong = [f"{label} at {point['bits']} bits: {found['others']:.3f}" for label, point, found in rows if found["others"] < SUCCESS]
    said = "; ".join(wrong[:3]) or f"{len(rows)} numbers"
    return Check(
        "A least number that is an exact sum over one distribution is enough in all the others, by three standard errors", bool(rows) and not wrong, said
    )


def _check_separation(of: str, series: dict[Key, Series]) -> Check:
    """The proven number against the run one: at one size, further apart with every size from there on, and kept by the pure learner that is run."""
    proven, pure, best, bits = series[of, "proven", 0.0], series[of, "pure", 0.0], series[BEST[of]], SIZES[of]
    most = best.at(bits) + SURE * best.off(bits)
    ratios = [proven.at(size) / best.at(size) for size in best.bits]
    kept = [proven.at(size) <= pure.at(size) <= 5 * proven.at(size) for size in pure.bits if size >= 16]
    return Check(
        f"No purely private proper learner of {of} does with as few records as one with a delta: proven against run",
        proven.at(bits) > most and ratios == sorted(ratios) and all(kept),
        f"at 2^{bits} proven {proven.at(bits):,.0f}, run pure {pure.at(bits):,.0f}, with delta {BEST[of][2]:g} {best.at(bits):,.0f}",
    )


def _check_flat(key: Key, held: Series) -> Check:
    change, error = held.grown()
    first, last = held.bits[0], held.bits[-1]
    return Check(
        f"{LABELS[key]} ({key[0]}): the number does not grow with the domain",
        abs(change) <= SURE * error + 0.5 and SURE * error <= held.at(first) / 2,
        f"{held.at(first):,.0f} at 2^{first}, {held.at(last):,.0f} at 2^{last}, {change:+,.0f} with standard error {error:.1f}",
    )


def _check_grows(key: Key, held: Series) -> Check:
    change, error = held.grown()
    doublings = math.log2(held.bits[-1] / held.bits[0])
    return Check(
        f"{LABELS[key]} ({key[0]}): at most {DOUBLED:.0f} records more where the bits are doubled, which is log log of the domain",
        change - SURE * error <= DOUBLED * doublings and change + SURE * error >= 0,
        f"{change / doublings:.1f} a doubling, with standard error {error / doublings:.1f}",
    )


def _check_crossing(key: Key, series: dict[Key, Series]) -> Check:
    found = crossing(series[key[0], "pure", 0.0], series[key]) if key in series else math.inf
    return Check(
        f"{LABELS[key]} ({key[0]}) takes fewer records than pure privacy from about 2^{CROSSED[key]} on",
        abs(found - CROSSED[key]) <= WITHIN,
        f"from 2^{found:.0f} on" if math.isfinite(found) else "nowhere in these domains",
    )


def _check_beyond(series: dict[Key, Series]) -> Check:
    """RecConcave against dyadic thresholds."""
    pairs: Sequence[tuple[Key, Key]] = [(key, (key[0], "dyadic", key[2])) for key in series if key[1] == "RecConcave"]
    sizes = [(series[key], series[other], bits) for key, other in pairs for bits in series[key].bits]
    ratios = [concave.at(bits) / dyadic.at(bits) for concave, dyadic, bits in sizes]
    said = f"{min(ratios):.1f} to {max(ratios):.1f} times as many" if ratios else "nothing was measured"
    return Check("RecConcave at depth 2, tuned, nowhere takes fewer records than dyadic thresholds", bool(ratios) and min(ratios) > 1, said)


EXPERIMENT = PureOrApproximate()
