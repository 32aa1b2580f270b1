"""What a shared coin saves: how many people it takes to tell a law from the uniform one, with coins that all see and with coins that each tosses alone."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from local_dp.bounds.interaction import ROWS, half_errors, half_stretch
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.coins import runs
from local_dp.experiments.claims.frontier.coins.runs import ALPHA, BETA, EPSILON, FACTORS, FIXED, HALVES, MEAN, PRIVATE, PUBLIC
from local_dp.experiments.lab.chapters import FRONTIER, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table

SIZES: dict[Scale, tuple[int, ...]] = {"quick": (16, 64, 256, 1024, 2048), "full": (16, 64, 256, 1024, 2048, 4096)}
TRIALS: dict[Scale, int] = {"quick": 6000, "full": 20_000}
OWN_CELLS: dict[Scale, int] = {"quick": 2 << 20, "full": 12 << 20}  # with own rows at most so many trials times symbols
TEN, _ = HALVES
KNOWN: dict[str, dict[int, float]] = {  # what a prototype needed
    TEN: {16: 6_160, 64: 27_700, 256: 119_500, 1024: 472_700},
    PRIVATE: {16: 6_180, 64: 42_500, 256: 308_600, 1024: 2.24e6},
}
WITHIN = 1.1
CERTAIN = 4.5  # standard errors of a share of trials: wrong less than once in a hundred thousand
Measured = list[tuple[Point, Measurement]]
Counts = dict[str, dict[int, float]]  # people by design and k


class Coins(Experiment[Point, Measurement]):
    """Uniformity testing along halves or rows that many share, and along rows drawn alone."""

    name: ClassVar[str] = "coins"
    chapter: ClassVar[Chapter] = FRONTIER
    title: ClassVar[str] = "Sharing a coin saves sqrt(k)"
    claim: ClassVar[str] = (
        "Without any interaction, a coin that all can see saves people: to tell whether k symbols are equally frequent takes of the order of k C^2 / alpha^2 "
        "people if a few random halves of the symbols are shared, and k^1.5 C^2 / alpha^2 if everybody draws a row alone. What is shared must be random: rows "
        "that are known beforehand miss some law for ever."
    )
    source: ClassVar[str] = "Acharya, Canonne, Freitag, Tyagi 2019 (limits 12.5)"

    def points(self, scale: Scale) -> list[Point]:
        return [
            {"design": design, "k": k, "trials": min(TRIALS[scale], OWN_CELLS[scale] // k) if design == PRIVATE else TRIALS[scale]}
            for design in (*HALVES, PUBLIC, PRIVATE, FIXED)
            for k in SIZES[scale]
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        least = _counts(measurements, (*HALVES, PUBLIC, PRIVATE), "least", MEAN)
        tested = _counts(measurements, (PUBLIC, PRIVATE), "misses", BETA)
        formula = {(point["design"], point["k"]): found["predicted"] for point, found in measurements}
        checks = [
            _check_slope("with a shared coin", 1.0, *(least[design] for design in HALVES), tested[PUBLIC]),
            _check_slope("with rows drawn alone", 1.5, least[PRIVATE], tested[PRIVATE]),
            _check_gain(least),
            _check_formula("the chi-square formula says how many shared halves need, within a tenth", 0.1, _shares(least, formula, HALVES)),
            _check_formula("the closed forms of `identity` say how many it needs, within a sixth", 1 / 6, _shares(tested, formula, tested)),
            _check_known(least),
            _check_half_way(measurements),
            _check_level(measurements),
            _check_fixed(measurements),
        ]
        notes = [
            f"Epsilon {EPSILON:g}, total variation {ALPHA:g}. The law away from uniform is the hardest: half of the symbols more frequent, half less, which "
            "half at random. The sums of reports are drawn from their binomial laws.",
            f"People for a mean of both errors of {MEAN:g} at the best threshold of the run; for `local-dp run identity`, which has {ROWS} shared rows or own "
            f"ones, also for both errors of {BETA:g} at its threshold. With halves the formula's threshold is half of what the law away adds.",
            "That no test with private coins does better than k^1.5 is proved in the source, not here: the curve is that of the best known one.",
        ]
        return Finding(checks, [_people(least, tested, formula), _errors(measurements)], [_figure(least, tested, formula)], notes, headline=_headline(least))


def needed(clients: list[int], errors: list[float], level: float) -> float:
    """The clients at which the error falls through `level`: by a parabola through those of a fourth to four times as much; NaN if it does not."""
    people, shares = np.array(clients), np.array(errors)
    near = (shares > level / 4) & (shares < 4 * level)
    if not shares[-1] < level < shares[0] or near.sum() < 3:
        return math.nan
    return math.exp(np.polyval(np.polyfit(np.log(shares[near]), np.log(people[near]), 2), math.log(level)))


def unit(k: int) -> float:
    """C^2 k / alpha^2."""
    return response_gain(EPSILON) ** 2 * k / ALPHA**2


def _of(measurements: Measured, design: str) -> Measured:
    return [(point, found) for point, found in measurements if point["design"] == design]


def _counts(measurements: Measured, designs: tuple[str, ...], errors: str, level: float) -> Counts:
    return {design: {point["k"]: needed(found["clients"], found[errors], level) for point, found in _of(measurements, design)} for design in designs}


def _slope(by_k: dict[int, float]) -> float:
    if len(by_k) < 2 or any(math.isnan(count) for count in by_k.values()):
        return math.nan
    return float(np.polyfit(np.log(list(by_k)), np.log(list(by_k.values())), 1)[0])


def _check_slope(whose: str, power: float, *counts: dict[int, float]) -> Check:
    slopes = [_slope(by_k) for by_k in counts]
    return Check(
        f"{whose} people grow as k^{power:g}, but for a tenth in the power",
        all(abs(slope - power) < 0.1 for slope in slopes),
        "powers " + ", ".join(f"{slope:.3f}" for slope in slopes) + ", of which the last is at the threshold of `identity`",
    )


def _check_gain(least: Counts) -> Check:
    gains = {k: count / least[TEN].get(k, math.nan) for k, count in least[PRIVATE].items()}
    rising = list(gains.values()) == sorted(gains.values())
    return Check(
        "the more symbols, the more a shared coin saves, and more than four times at the most",
        bool(gains) and rising and gains[max(gains)] > 4,
        ", ".join(f"k = {k}: {gain:.2f}" for k, gain in gains.items()),
    )


def _shares(counts: Counts, formula: dict[tuple[str, int], int], designs: Iterable[str]) -> dict[tuple[str, int], float]:
    return {(design, k): count / formula[design, k] for design in designs for k, count in counts[design].items()}


def _told(shares: dict[tuple[str, int], float], digits: str) -> str:
    """The shares of each design, in the order of k."""
    designs = dict.fromkeys(design for design, _ in shares)
    return "; ".join(f"{each}: " + ", ".join(f"{share:{digits}}" for (design, _), share in shares.items() if design == each) for each in designs)


def _check_formula(statement: str, within: float, shares: dict[tuple[str, int], float]) -> Check:
    shown = bool(shares) and all(abs(share - 1) <= within for share in shares.values())
    return Check(statement, shown, _told(shares, ".2f"))


def _check_known(least: Counts) -> Check:
    ratios = {(design, k): least[design].get(k, math.nan) / count for design, counts in KNOWN.items() for k, count in counts.items()}
    return Check(
        "10 groups and rows drawn alone need at most a tenth more people than a prototype of each did",
        all(ratio <= WITHIN for ratio in ratios.values()),
        _told(ratios, ".2f"),
    )


def _said(design: str, k: int, clients: int) -> tuple[float, float]:
    """False alarms and misses at the stated threshold, as a formula says."""
    if design in HALVES:
        return half_errors(half_stretch(EPSILON, k, ALPHA, clients, HALVES[design]), HALVES[design], runs.threshold(design, k, clients))
    return BETA, 1 - BETA if design == FIXED else BETA


def _check_half_way(measurements: Measured) -> Check:
    seen = [
        (point, error, said)
        for point, found in measurements
        if point["design"] in HALVES
        for n, *errors in zip(found["clients"], found["alarms"], found["misses"], strict=True)
        for error, said in zip(errors, _said(point["design"], point["k"], n), strict=True)
    ]
    off = {design: max((abs(error - said) for point, error, said in seen if point["design"] == design), default=math.nan) for design in HALVES}
    return Check(
        "the threshold half way between both laws of the halves errs as the formula says, but for .02 and chance, with any number of people",
        bool(seen) and all(abs(error - said) <= 0.02 + CERTAIN * math.sqrt(said * (1 - said) / point["trials"]) for point, error, said in seen),
        ", ".join(f"{design}: {most:.3f} away at most" for design, most in off.items()),
    )


def _check_level(measurements: Measured) -> Check:
    most = {(point["design"], point["k"]): (max(found["alarms"]), point["trials"]) for point, found in measurements if point["design"] not in HALVES}
    return Check(
        f"the threshold of `identity` rejects the uniform law in {BETA:.0%} of runs at most, within what chance allows",
        bool(most) and all(share - CERTAIN * math.sqrt(BETA * (1 - BETA) / trials) <= BETA + 0.01 for share, trials in most.values()),
        _told({place: share for place, (share, _) in most.items()}, ".3f"),
    )


def _check_fixed(measurements: Measured) -> Check:
    rates = [1 - min(found["misses"]) for _, found in _of(measurements, FIXED)]
    return Check(
        "rows known beforehand miss a law that was made for them, with any number of people",
        bool(rates) and max(rates) < 0.2,
        ", ".join(f"found in {rate:.1%}" for rate in rates),
    )


def _headline(least: Counts) -> str:
    k = max(least[TEN].keys() & least[PRIVATE].keys(), default=0)
    if not k or math.isnan(least[TEN][k] + least[PRIVATE][k]):
        return "No number of people was found that is enough both with a shared coin and without."
    return f"At k = {k:,}: {least[TEN][k]:,.0f} people with halves that 10 groups share, {least[PRIVATE][k]:,.0f} with rows drawn alone."


def _people(least: Counts, tested: Counts, formula: dict[tuple[str, int], int]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for design, by_k in least.items():
        for k, count in by_k.items():
            found = (_whole(count), round(count / unit(k), 2))
            both = _whole(tested.get(design, {}).get(k, math.nan))
            rows.append((design, k, *found, formula[design, k], "", "") if design in HALVES else (design, k, *found, "", both, formula[design, k]))
    said = f"mean error {MEAN:g}"
    columns = ("design", "symbols k", f"people, {said}", "in C^2 k / alpha^2", f"formula, {said}", f"people, both errors {BETA:g}", "formula, both errors")
    return Table("People needed", columns, rows)


def _whole(count: float) -> int | str:
    return "" if math.isnan(count) else round(count)


def _errors(measurements: Measured) -> Table:
    place = FACTORS.index(1.0)
    rows = [
        (
            p["design"],
            p["k"],
            m["predicted"],
            m["alarms"][place],
            m["misses"][place],
            *(round(error, 3) for error in _said(p["design"], p["k"], m["predicted"])),
        )
        for p, m in measurements
    ]
    columns = ("design", "symbols k", "people", "false alarms", "misses", "said", "said of misses")
    return Table("Errors at the stated threshold, with as many people as the formula says", columns, rows)


def _figure(least: Counts, tested: Counts, formula: dict[tuple[str, int], int]) -> Figure:
    curves = []
    for counts, said in ((least, f"mean error {MEAN:g}"), (tested, f"both errors {BETA:g}")):
        designs: Iterable[str] = (*HALVES, PRIVATE) if counts is least else tested
        for design in designs:
            told = {k: count / unit(k) for k, count in counts[design].items() if not math.isnan(count)}
            curves.append(Curve(f"{design}, {said}", list(told), list(told.values()), group=f"{design}, {said}"))
            if counts is tested or design in HALVES:
                theory = [formula[design, k] / unit(k) for k in told]
                curves.append(Curve(f"{design}, formula", list(told), theory, "theory", group=f"{design}, {said}"))
    return Figure("coins", "People to tell a law from the uniform one", "symbols k", "people / (C^2 k / alpha^2)", curves, log_x=True, log_y=True)


EXPERIMENT = Coins()
