"""The map of what each model can learn (KLNRS Figure 2), every class placed by runs, proven bounds and a checked certificate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from local_dp.bounds.masked_parity import masked_parity_one_round_bound, masked_parity_one_round_clients
from local_dp.bounds.parity import parity_interactive_bound
from local_dp.experiments.claims.local.map.games import measure_parity_game, measure_worst_case, parity_game_check, worst_case_check
from local_dp.experiments.claims.local.map.runs import (
    EPSILON,
    ONE_ROUND,
    PROTOCOLS,
    SHUFFLE_DELTA,
    SUCCESS,
    measure_one_round,
    measure_parity,
    measure_protocol,
    measure_users,
)
from local_dp.experiments.claims.local.map.shuffled import SHUFFLED, shuffled_check, shuffled_points, shuffled_table, shuffled_told
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.checks import SURE
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Region, Regions, Scale, Table
from local_dp.experiments.lab.cross_check import cross_check_shown
from local_dp.experiments.lab.intervals import wilson

POLYNOMIAL = 4.0  # the largest power of d that counts as growing slowly
SEPARATED = 10.0  # how many times more people the smaller model must provably need at the largest dimension
TIGHT = 4.0  # how far above its proven bound the best protocol of the smaller model may lie
COMPARED = 8  # the dimension at which all classes are counted
MEASURED, EXACT = "measured minimum", "exact minimum, runs agree"
USERS = {"stumps": (4, 180), "masked-parity": (4, 1200), "parity-halving": (4, 460)}  # small points that are run client by client too: d, people
TITLES = {
    **{name: kind.title for name, kind in ONE_ROUND.items()},
    "masked-parity": "Masked parity",
    "masked-parity-one-round": "Masked parity in one round",
    "parity-halving": "Parity without a curator",
    "parity": "Parity",
}
Row = tuple[Point, Measurement]


@dataclass(frozen=True)
class Series:
    """The least numbers of people for one class, by dimension, each with a 95 % interval."""

    rows: list[Row]

    @property
    def found(self) -> bool:
        """Whether there is such a number at every dimension."""
        return bool(self.rows) and all("failed" not in found for _, found in self.rows)

    @property
    def d(self) -> list[int]:
        return [point["d"] for point, found in self.rows if "failed" not in found]

    def count(self, key: str = "n") -> list[int]:
        """The numbers, or the ends `low` or `high` of their intervals."""
        return [found[key] for _, found in self.rows if "failed" not in found]

    def at(self, d: int, key: str = "n") -> int:
        """The number at one dimension."""
        return self.count(key)[self.d.index(d)]

    def power(self, shift: bool = False) -> float:
        """The power of d that the number grows with, from the first dimension to the last; with `shift`, the largest that the intervals allow."""
        first, last = (self.count("low")[0], self.count("high")[-1]) if shift else (self.count()[0], self.count()[-1])
        return math.log(last / first) / math.log(self.d[-1] / self.d[0])

    def said(self, d: int) -> str:
        """The number at one dimension in words."""
        low, n, high = math.floor(self.at(d, "low")), self.at(d), math.ceil(self.at(d, "high"))
        return f"{n:,} people at d = {d}" + (f" [{low:,} to {high:,}]" if low < high else "")

    def grown(self) -> str:
        """How the number grows, in words."""
        return f"d^{self.power():.1f} from d = {self.d[0]} to {self.d[-1]}"


def _learned(what: str, series: Series, kind: str, only: bool = True) -> Check:
    """Whether there is a least number of people at every dimension, which grows slowly."""
    if not series.found:
        failed = next((found["failed"] for _, found in series.rows if "failed" in found), "nothing was measured")
        return Check(what, False, f"no number of people found: {failed}")
    said = f"{series.said(COMPARED)} ({kind} for {SUCCESS:.0%} of the runs); it grows as {series.grown()}"
    return Check(what, only and series.power(shift=True) <= POLYNOMIAL, said)


def _separated(what: str, larger: Series, smaller: Series, bound: Callable[[int], float]) -> Check:
    """Whether a proven bound for the smaller model leaves the larger model's measured number behind, further with every dimension, and stands by its own runs:
    the best protocol of the smaller model, measured too, needs at least the bound, not TIGHT times it, and more than the larger model."""
    if not (larger.found and smaller.found):
        return Check(what, False, "no number of people found")
    ratios = [bound(d) / n for d, n in zip(larger.d, larger.count("high"), strict=True)]
    beyond = [high / bound(d) for d, high in zip(smaller.d, smaller.count("high"), strict=True)]
    apart = smaller.at(COMPARED, "low") / larger.at(COMPARED, "high")
    shown = ratios == sorted(ratios) and ratios[-1] >= SEPARATED and min(beyond) >= 1 and apart > 1
    shown = shown and smaller.count("low")[-1] <= TIGHT * bound(smaller.d[-1])
    d, last = larger.d[-1], smaller.d[-1]
    return Check(
        what,
        shown,
        f"at d = {d} proven to need {math.ceil(bound(d)):,} people, {ratios[-1]:,.0f} times the {larger.said(d)} that were enough; "
        f"run, the best protocol of the kind that is ruled out needs {smaller.said(last)}, {smaller.at(last) / bound(last):.1f} times its bound",
    )


def _one_round_bound(d: int) -> float:
    return masked_parity_one_round_bound(d, EPSILON, SUCCESS)


def _local_bound(d: int) -> float:
    return parity_interactive_bound(d, EPSILON, SUCCESS)


def _curated(series: Series) -> Check:
    """Whether the runs succeed as often as the curator's exact law says, which is SUCCESS."""
    check = _learned("Parity is learned by a trusted curator (in CI)", series, EXACT)
    agree = [(wilson(found["wins"], point["trials"], SURE), found["predicted"]) for point, found in series.rows]
    shown = all(low <= predicted <= high and predicted >= SUCCESS for (low, high), predicted in agree)
    rates = ", ".join(f"{found['wins'] / point['trials']:.3f} of {found['predicted']:.3f} at d = {point['d']}" for point, found in series.rows)
    return Check(check.statement, check.shown and shown, f"{check.evidence}; success {rates}")


def _enough_check(rows: dict[str, list[Row]]) -> Check:
    """Whether the numbers called proven enough are t 2 C^2 ln(2 t / beta) / tau^2 (Hoeffding), rounded up for each of t queries, and are enough."""
    square, wrong = (1 / math.tanh(EPSILON / 2)) ** 2, []
    for name, found in rows.items():
        for point, measured in found:
            learner = ONE_ROUND[name].learner(point["d"])
            t = learner.queries
            proven = t * 2 * square * math.log(2 * t / (1 - SUCCESS)) / learner.tolerance**2
            enough = measured.get("enough", 0)
            if not (proven * (1 - 1e-6) <= enough <= proven * (1 + 1e-6) + t and measured.get("high", math.inf) <= enough):
                wrong.append(f"{TITLES[name]}, d = {point['d']}: {enough:,} for {proven:,.0f}")
    said = "; ".join(wrong) or f"{sum(map(len, rows.values()))} numbers"
    return Check("In one round, what is called proven enough is what Hoeffding's bound says, and no less than the measured minimum", not wrong, said)


class Map(Experiment[Point, Measurement]):
    """Places each class in the innermost region whose runs succeed, if what lies further in is ruled out by proof."""

    name: ClassVar[str] = "map"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "What one round can learn, what several can, and what needs a curator"
    claim: ClassVar[str] = (
        "What can be learned from a reasonable number of people depends on who is trusted and on how often they are asked. Simple rules are learned in one "
        "round with nobody trusted (LNI). A masked parity (see the notes) takes two rounds (LI): in one, the number of people doubles with every bit. A "
        "parity takes a trusted curator (CI): without one it doubles with every bit too, in however many rounds, as long as each person answers in one of them."
    )
    source: ClassVar[str] = "KLNRS 2008, Figure 2, Theorems 4.8 and 5.1, Corollary 4.6; Blum et al. 1994"

    def points(self, scale: Scale) -> list[Point]:
        quick = scale == "quick"
        trials = dict.fromkeys(ONE_ROUND, 300 if quick else 2000) | dict.fromkeys(PROTOCOLS, 1000 if quick else 2000)
        dimensions: dict[str, tuple[int, ...]] = dict.fromkeys(ONE_ROUND, (4, 8) if quick else (4, 6, 8, 10))
        dimensions |= {"masked-parity": (4, 8, 16) if quick else (4, 8, 12, 16, 20), "masked-parity-one-round": (8, 10) if quick else (4, 8, 10, 12)}
        dimensions |= {"parity-halving": (4, 8) if quick else (4, 6, 8, 10)}
        points: list[Point] = [{"class": name, "d": d, "trials": trials[name]} for name, ds in dimensions.items() for d in ds]
        points += [{"class": "parity", "d": d, "trials": 600 if quick else 2000} for d in ((8, 12, 16) if quick else (8, 12, 16, 20, 24))]
        points += [{"class": "worst-case", "d": d, "targets": 4 if quick else 10} for d in ((12,) if quick else (12, 14, 16))]
        points += [{"class": "parity-game", "d": d} for d in ((8,) if quick else (8, 10))]
        points += shuffled_points(quick)
        return [*points, *({"class": "users", "of": name, "d": d, "n": n} for name, (d, n) in USERS.items())]

    def measure(self, point: Point, seed: int) -> Measurement:
        name, d = point["class"], point["d"]
        if name == "worst-case":
            return measure_worst_case(d, point["targets"], seed)
        if name == "parity-game":
            return measure_parity_game(d, seed)
        if name == "users":
            return measure_users(point["of"], d, point["n"], seed)
        if name == SHUFFLED:
            return measure_one_round(point["of"], d, point["trials"], seed, shuffled=True)
        if name == "parity":
            return measure_parity(d, point["trials"], seed)
        return (measure_one_round if name in ONE_ROUND else measure_protocol)(name, d, point["trials"], seed)

    def conclude(self, measurements: list[Row], scale: Scale) -> Finding:
        by_class: dict[str, list[Row]] = {}
        for point, found in measurements:
            by_class.setdefault(point["class"], []).append((point, found))
        series = {name: Series(by_class[name]) for name in (*ONE_ROUND, *PROTOCOLS, "parity")}
        masked, parity = series["masked-parity"], series["parity"]
        in_lni = {}
        for name, kind in ONE_ROUND.items():
            fixed = all(found["fixed"] and found["rounds"] == 1 for _, found in by_class[name])
            in_lni[name] = _learned(f"{kind.title} are learned locally in one round (in LNI)", series[name], MEASURED, fixed)
        two_rounds = all(found["rounds"] == 2 for _, found in masked.rows)
        in_li = _learned("Masked parity is learned locally in two rounds, each person asked in one of them (in LI)", masked, MEASURED, two_rounds)
        not_lni = _separated(
            "No non-interactive local protocol, at any epsilon, learns masked parity from so few people (not in LNI; proven, stated for epsilon 1)",
            masked,
            series["masked-parity-one-round"],
            _one_round_bound,
        )
        worst, game = worst_case_check(by_class["worst-case"], SUCCESS), parity_game_check(by_class["parity-game"])
        in_ci = _curated(parity)
        not_li = _separated(
            "No sequentially interactive local protocol (each person answers once, rounds without limit) learns parity from so few people (proven, stated for "
            "epsilon 1)",
            parity,
            series["parity-halving"],
            _local_bound,
        )
        enough = _enough_check({name: by_class[name] for name in ONE_ROUND})
        users = [cross_check_shown(f"{TITLES[point['of']]}, d = {point['d']}", found, 0.8) for point, found in by_class["users"]]
        mixed = by_class[SHUFFLED]
        rules = [(TITLES[name], [check], _enough_told(series[name], by_class[name]) + shuffled_told(mixed, name, COMPARED)) for name, check in in_lni.items()]
        two = _bound_told("measured", masked, "in one round", series["masked-parity-one-round"], _one_round_bound)
        curated = _bound_told("computed exactly, runs agree", parity, "without a curator, each asked once", series["parity-halving"], _local_bound)
        placed = [
            Region("LNI = NASQ", "nobody trusted, one round", _placed(rules)),
            Region("LI = SQ", "nobody trusted, several rounds", _placed([(TITLES["masked-parity"], [in_li, not_lni, worst], two)])),
            Region("CI", "a trusted curator", _placed([(TITLES["parity"], [in_ci, not_li, game], curated)])),
        ]
        return Finding(
            checks=[*in_lni.values(), in_li, not_lni, worst, in_ci, not_li, game, *users, enough, shuffled_check(mixed, by_class), intervals_check()],
            tables=[_table(by_class), shuffled_table(mixed, by_class, TITLES)],
            figures=[Regions("map", f"Where each class lies, and the least people for {SUCCESS:.0%} success, at ε = {EPSILON:g}", placed), _curves(series)],
            notes=_NOTES,
            headline=_headline(masked, parity),
        )


_NOTES = [
    "A point function is 1 at one point only; a stump looks at one bit; a conjunction asks for several bits at once. A parity says whether the "
    "number of ones among some hidden bits is odd. Of a masked parity, half of the examples each tell one hidden bit, and the others tell the "
    "parity of the hidden bits, either all as it is or all reversed: that last bit is what one round cannot ask for, not knowing the others.",
    f"Numbers of people are minima for {SUCCESS:.0%} success, measured alike for every class and protocol that is run (for the curator, computed from its "
    "exact law and checked by runs). What is called proven is no measurement: a number that suffices lies above the minimum, one that is necessary below that "
    "of every protocol. Where the necessary number for the smaller model is still below what was measured in the larger one, nothing is separated yet.",
    "Every class is learned under one distribution: points and stumps as described in the code, the others from uniform examples. Masked parity separates one "
    "round from two for uniform examples; a protocol for every distribution would have to learn parity.",
    "Three kinds of interaction: non-interactive (all questions are fixed before any answer), sequentially interactive (questions depend on the answers of "
    "others, each person answers in one round), fully interactive (a person may be asked again). The bound for one round holds for every non-interactive "
    "protocol at every ε. The bound for parity holds for sequentially interactive protocols at every ε; nothing is proven here for fully interactive "
    "ones beyond the game, which bounds the queries of statistical-query algorithms, adaptive or not.",
    f"Behind a shuffler, between the two trusts, the same reports may lose more each: all of those to one question together lose ε = {EPSILON:g} beside "
    f"δ = {SHUFFLE_DELTA:g}, each person answering one. It is no region of its own: somebody is trusted to mix, and asks once.",
    "A class is drawn in a region only if its checks were shown in this run.",
]


def _headline(masked: Series, parity: Series) -> str:
    if not (masked.found and parity.found):
        return "Some least number of people was not found."
    d, other = masked.d[-1], parity.d[-1]
    return (
        f"At d = {d} masked parity takes {masked.at(d):,} people in two rounds, and in one provably {math.ceil(_one_round_bound(d)):,}; at d = {other} parity "
        f"takes a curator {parity.at(other):,}, and without one, each person asked once, provably {math.ceil(_local_bound(other)):,}."
    )


def _placed(candidates: Sequence[tuple[str, list[Check], str]]) -> list[tuple[str, str]]:
    """The classes whose checks were all shown, each with its evidence."""
    return [(title, evidence) for title, checks, evidence in candidates if all(check.shown for check in checks)]


def _enough_told(series: Series, rows: list[Row]) -> str:
    """What was measured of a class that one round learns, and below it what is proven: numbers that suffice, which are no minima."""
    if not series.found:
        return ""
    enough = next(found["enough"] for point, found in rows if point["d"] == COMPARED)
    return f"measured: {series.said(COMPARED)}, growing as {series.grown()}\nproven: {enough:,} people suffice at d = {COMPARED}"


def _bound_told(kind: str, series: Series, ruled_out: str, smaller: Series, bound: Callable[[int], float]) -> str:
    """What was found of a class, and below it what rules it out of the next smaller region: the proven bound, and apart from it what was measured there."""
    if not (series.found and smaller.found):
        return ""
    d = series.d[-1]
    return (
        f"{kind}: {series.said(COMPARED)}, {series.said(d)}\n"
        f"proven {ruled_out}: at least {math.ceil(bound(COMPARED)):,} at d = {COMPARED}, {math.ceil(bound(d)):,} at d = {d}\n"
        f"measured {ruled_out}: {smaller.said(smaller.d[-1])}"
    )


def _table(by_class: dict[str, list[Row]]) -> Table:
    models = {"masked-parity": "sequential, two rounds", "parity-halving": "sequential, d rounds", "parity": "trusted curator"}
    bounds = {"masked-parity-one-round": _one_round_bound, "parity-halving": _local_bound}
    rows: list[tuple[Any, ...]] = []
    for name in (*ONE_ROUND, *PROTOCOLS, "parity"):
        for point, found in by_class.get(name, []):
            d, kind = point["d"], EXACT if name == "parity" else MEASURED
            counts = (None, None, None) if "failed" in found else (found["n"], math.floor(found["low"]), math.ceil(found["high"]))
            needed = math.ceil(bounds[name](d)) if name in bounds else None
            rows.append((TITLES[name], models.get(name, "non-interactive"), d, *counts, kind, found.get("enough"), needed))
    columns = ("class", "who is asked", "d", "least people", "95 % from", "to", "kind of number", "proven enough", "proven needed")
    return Table(f"People for {SUCCESS:.0%} success at ε = {EPSILON:g}", columns, rows)


def _curves(series: dict[str, Series]) -> Figure:
    masked, parity = series["masked-parity"], series["parity"]

    def measured(label: str, of: Series, group: str) -> Curve:
        return Curve(label, of.d, of.count(), "measured", of.count("low"), of.count("high"), group=group)

    best = [masked_parity_one_round_clients(d, EPSILON, 1 - SUCCESS) for d in masked.d]
    curves = [
        Curve("masked parity, one round: the best protocol known, predicted", masked.d, best, "theory", group="masked once"),
        measured("masked parity, one round: measured", series["masked-parity-one-round"], "masked once"),
        Curve("masked parity, one round: proven, no protocol needs fewer", masked.d, [_one_round_bound(d) for d in masked.d], "bound", group="masked once"),
        measured("masked parity, two rounds: measured", masked, "masked twice"),
        Curve("parity, no curator, each asked once: proven, no protocol needs fewer", parity.d, [_local_bound(d) for d in parity.d], "bound", group="alone"),
        measured("parity, no curator: measured", series["parity-halving"], "alone"),
        Curve("parity, trusted curator: computed, runs agree", parity.d, parity.count(), "theory", group="curator"),
    ]
    title = f"People needed against dimension, at ε = {EPSILON:g}"
    return Figure("separations", title, "dimension d (bits of an example)", "people", curves, log_y=True)


EXPERIMENT = Map()
