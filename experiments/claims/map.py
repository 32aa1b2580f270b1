"""The map of what each model can learn (KLNRS Figure 2), every class placed by runs, proven bounds and a checked certificate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from experiments.claims.map_runs import EPSILON, ONE_ROUND, measure_masked_parity, measure_one_round, measure_parity, measure_worst_case
from experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Region, Regions, Scale, Table
from experiments.lab.intervals import wilson
from local_dp.bounds.masked_parity import masked_parity_one_round_bound, masked_parity_one_round_clients
from local_dp.bounds.parity import parity_interactive_bound

SUCCESS = 0.9  # what a run must show, with its confidence interval, and what the lower bounds are for
POLYNOMIAL = 4.0  # the largest power of d that counts as growing slowly: conjunctions need d^3 log d
SEPARATED = 10.0  # how many times more clients the smaller model must provably need


@dataclass(frozen=True)
class Series:
    """What was measured of one class, by dimension."""

    points: list[tuple[Point, Measurement]]

    @property
    def d(self) -> list[int]:
        return [point["d"] for point, _ in self.points]

    @property
    def n(self) -> list[int]:
        return [found["n"] for _, found in self.points]

    def reliable(self) -> bool:
        """Whether the interval of every success rate lies above SUCCESS."""
        return bool(self.points) and all(wilson(found["wins"], point["trials"])[0] >= SUCCESS for point, found in self.points)

    def power(self) -> float:
        """The power of d that the number of clients grows with, from the first dimension to the last."""
        return math.log(self.n[-1] / self.n[0]) / math.log(self.d[-1] / self.d[0])

    def evidence(self) -> str:
        """The last dimension in words."""
        point, found = self.points[-1]
        low, high = wilson(found["wins"], point["trials"])
        return f"{found['wins']} of {point['trials']} runs (95 % interval {low:.3f} to {high:.3f}) with {found['n']:,} people at d = {point['d']}"


def _learned(what: str, series: Series, only: bool = True) -> Check:
    shown = only and series.reliable() and series.power() <= POLYNOMIAL
    return Check(what, shown, f"{series.evidence()}; from d = {series.d[0]} to {series.d[-1]} their number grows as d^{series.power():.1f}")


def _separated(what: str, series: Series, bound: Callable[[int], float]) -> Check:
    """Whether a proven bound leaves the measured protocol behind, further with every dimension, and by SEPARATED at the last."""
    ratios = [bound(d) / n for d, n in zip(series.d, series.n, strict=True)]
    shown = ratios == sorted(ratios) and ratios[-1] >= SEPARATED
    d, n = series.d[-1], series.n[-1]
    return Check(what, shown, f"at d = {d} at least {bound(d):,.0f} people, {ratios[-1]:,.0f} times the {n:,} measured; the bound doubles with each step of d")


def _one_round_bound(d: int) -> float:
    return masked_parity_one_round_bound(d, EPSILON, SUCCESS)


def _local_bound(d: int) -> float:
    return parity_interactive_bound(d, EPSILON, SUCCESS)


def _worst_case_check(points: list[tuple[Point, Measurement]]) -> Check:
    shown = bool(points) and all(found["wins"] == point["trials"] and found["certificate"] and found["any_learner"] < SUCCESS for point, found in points)
    said = "; ".join(
        f"at d = {point['d']}, {found['wins']} of {point['trials']} won in two rounds; in one round with {found['queries']} queries of tolerance "
        f"{found['tolerance']:.3f} no learner wins more than {100 * found['any_learner']:.1f} %, and by the checked certificate the best known learner "
        f"wins at most {found['success_at_most']}"
        for point, found in points
    )
    return Check("Against the worst-case oracle two rounds of queries always win, and one round of as many, as precise, does not", shown, said)


class Map(Experiment):
    """Places each class in the innermost region whose runs succeed, if what lies further in is ruled out by proof."""

    name: ClassVar[str] = "map"
    title: ClassVar[str] = "What one round can learn, what several can, and what needs a curator"
    claim: ClassVar[str] = (
        "What can be learned from a reasonable number of people depends on who is trusted and on how often they are asked. Simple rules are learned in one "
        "round with nobody trusted (LNI). A masked parity (see the notes) takes two rounds (LI): in one, the number of people doubles with every bit. A "
        "parity takes a trusted curator (CI): without one, in however many rounds, it doubles with every bit too."
    )
    source: ClassVar[str] = "KLNRS 2008, Figure 2, Theorems 4.8 and 5.1, Corollary 4.6"

    def points(self, scale: Scale) -> list[Point]:
        quick = scale == "quick"
        trials = 200 if quick else 1000
        points: list[Point] = [{"class": name, "d": d, "trials": trials} for name in ONE_ROUND for d in ((4, 8) if quick else (4, 6, 8, 10))]
        points += [{"class": "masked-parity", "d": d, "trials": 1000} for d in ((4, 8, 16) if quick else (4, 8, 12, 16, 20))]
        points += [{"class": "worst-case", "d": d, "trials": 4 if quick else 10} for d in ((12,) if quick else (12, 16))]
        points += [{"class": "parity", "d": d, "trials": 1000} for d in ((8, 12, 16) if quick else (8, 12, 16, 20, 24))]
        return points

    def measure(self, point: Point, seed: int) -> Measurement:
        name, d, trials = point["class"], point["d"], point["trials"]
        if name in ONE_ROUND:
            return measure_one_round(name, d, trials, seed)
        kinds = {"masked-parity": measure_masked_parity, "worst-case": measure_worst_case, "parity": measure_parity}
        return kinds[name](d, trials, seed)

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        by_class: dict[str, list[tuple[Point, Measurement]]] = {}
        for point, found in measurements:
            by_class.setdefault(point["class"], []).append((point, found))
        masked, parity = Series(by_class["masked-parity"]), Series(by_class["parity"])
        in_lni = {}
        for name, kind in ONE_ROUND.items():
            series = Series(by_class[name])
            fixed = all(found["fixed"] and found["rounds"] == 1 for _, found in series.points)
            in_lni[name] = _learned(f"{kind.title} are learned locally in one round (in LNI)", series, fixed)
        two_rounds = all(found["rounds"] == 2 for _, found in masked.points)
        in_li = _learned("Masked parity is learned locally in two rounds (in LI)", masked, two_rounds)
        not_lni = _separated("No local protocol of one round learns masked parity from so few people (not in LNI; proven)", masked, _one_round_bound)
        worst = _worst_case_check(by_class["worst-case"])
        in_ci = _learned("Parity is learned by a trusted curator (in CI)", parity)
        not_li = _separated("No local protocol learns parity from so few people, in however many rounds (not in LI; proven)", parity, _local_bound)
        placed = [
            Region(
                "LNI = NASQ", "nobody trusted, one round", _placed([(ONE_ROUND[name].title, Series(by_class[name]), [check]) for name, check in in_lni.items()])
            ),
            Region("LI = SQ", "nobody trusted, several rounds", _placed([("Masked parity", masked, [in_li, not_lni, worst])])),
            Region("CI", "a trusted curator", _placed([("Parity", parity, [in_ci, not_li])])),
        ]
        return Finding(
            checks=[*in_lni.values(), in_li, not_lni, worst, in_ci, not_li],
            tables=[_table(by_class)],
            figures=[Regions("map", f"Where each class lies, at ε = {EPSILON:g}", placed), _curves(masked, parity)],
            notes=[
                "A point function is 1 at one point only; a stump looks at one bit; a conjunction asks for several bits at once. A parity says whether the "
                "number of ones among some hidden bits is odd. Of a masked parity, half of the examples each tell one hidden bit, and the others tell the "
                "parity of the hidden bits, either all as it is or all reversed: that last bit is what one round cannot ask for, not knowing the others.",
                "Masked parity separates one round from two for examples drawn uniformly. A protocol for every distribution would have to learn parity, "
                "which no local protocol does.",
                "The bound for parity holds for protocols in which each person answers once, at ε up to ln 3. The bound for one round holds for every "
                "protocol of one round.",
                "A class is drawn in a region only if its checks were shown in this run.",
            ],
        )


def _placed(candidates: Sequence[tuple[str, Series, list[Check]]]) -> list[tuple[str, str]]:
    """The classes whose checks were all shown, with a few words of evidence."""
    return [
        (title, f"{series.n[-1]:,} people at d = {series.d[-1]}, growing as d^{series.power():.1f}")
        for title, series, checks in candidates
        if all(check.shown for check in checks)
    ]


def _table(by_class: dict[str, list[tuple[Point, Measurement]]]) -> Table:
    bounds = {"masked-parity": _one_round_bound, "parity": _local_bound}
    models = {"masked-parity": "LI", "parity": "CI"}
    rows: list[tuple[Any, ...]] = []
    for name, measured in by_class.items():
        for point, found in measured:
            if name != "worst-case":
                low, high = wilson(found["wins"], point["trials"])
                proven = math.ceil(bounds[name](point["d"])) if name in bounds else None
                rows.append((name.replace("-", " "), models.get(name, "LNI"), point["d"], found["n"], found["wins"] / point["trials"], low, high, proven))
    columns = ("class", "model of the run", "d", "people", "success", "95 % from", "to", "one level further in: proven to need")
    return Table("Runs and proven bounds", columns, rows)


def _curves(masked: Series, parity: Series) -> Figure:
    best = [masked_parity_one_round_clients(d, EPSILON, 1 - SUCCESS) for d in masked.d]
    curves = [
        Curve("masked parity, one round: the best protocol known, predicted", masked.d, best, "theory", group="masked"),
        Curve("masked parity, one round: no protocol needs fewer", masked.d, [_one_round_bound(d) for d in masked.d], "bound", group="masked"),
        Curve("masked parity, two rounds: measured", masked.d, masked.n, "measured", group="masked"),
        Curve("parity, no curator: no protocol needs fewer", parity.d, [_local_bound(d) for d in parity.d], "bound", group="parity"),
        Curve("parity, trusted curator: measured", parity.d, parity.n, "measured", group="parity"),
    ]
    title = f"People needed against dimension, at ε = {EPSILON:g}"
    return Figure("separations", title, "dimension d (bits of an example)", "people", curves, log_y=True)


EXPERIMENT = Map()
