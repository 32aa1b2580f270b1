"""Where asking again cannot help: parity stays exponential for fully interactive protocols, by cutting transcripts and pasting them."""

import math
from typing import ClassVar

from local_dp.bounds.channels import (
    affinity_curvature,
    parity_asked_again_bound,
    pasting_constant,
    report_squares,
    two_laws_asked_again_bound,
    two_laws_in_turn_bound,
)
from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.asking_again import runs
from local_dp.experiments.claims.frontier.asking_again.runs import EPSILON, SUCCESS, VARIATION
from local_dp.experiments.lab.chapters import FRONTIER, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.intervals import wilson

TURNS = {2: 6, 4: 8, 8: 10}
SEARCHES: dict[Scale, tuple[tuple[int, int, int, float], ...]] = {
    "quick": ((2, 8, 20, 400.0), (4, 16, 7, 100.0)),  # clients, turns, steps and reach of the grid
    "full": ((2, 8, 20, 400.0), (2, 16, 40, 1000.0), (4, 16, 7, 100.0)),
}
EPSILONS = (0.5, 1.0, 2.0)
LEAST = 0.85  # the success at the formula's count that counts as what the formula says, 90 %
NEAR = 0.92  # of the constant for two clients: a search finds a protocol that comes so close
DRAWN = range(4, 13)  # the d of the figure
Measured = list[tuple[Point, Measurement]]


class AskingAgain(Experiment[Point, Measurement]):
    """A bound for every protocol, the inequality behind it on protocols written out, and the best known protocol."""

    name: ClassVar[str] = "asking-again"
    chapter: ClassVar[Chapter] = FRONTIER
    title: ClassVar[str] = "Parity stays exponential, however often one asks"
    claim: ClassVar[str] = (
        "To find a hidden parity of d bits takes of the order of 2^d people even if everybody may be questioned for ever. What all of them together tell is at "
        "most 3.47 times the sum of what each would tell among strangers, in squared Hellinger distance, whoever is asked and however often."
    )
    source: ClassVar[str] = "limits 12.3; Jayram 2009"

    def points(self, scale: Scale) -> list[Point]:
        count, trials = (100, 20_000) if scale == "quick" else (1000, 200_000)
        return [
            *({"part": "protocols", "clients": n, "turns": turns, "count": count} for n, turns in TURNS.items()),
            *({"part": "worst", "clients": n, "turns": turns, "steps": steps, "reach": reach} for n, turns, steps, reach in SEARCHES[scale]),
            *({"part": "curator", "clients": n} for n in TURNS),
            *({"part": "person", "d": d, "epsilon": epsilon} for d in (1, 2) for epsilon in (*EPSILONS, 3.0)),
            *({"part": "laws", "epsilon": epsilon, "trials": trials} for epsilon in EPSILONS),
            *({"part": "parity", "d": d, "trials": 1000} for d in ((4, 6, 8, 10) if scale == "quick" else (4, 6, 8, 10, 12))),
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        parts = {part: [(p, m) for p, m in measurements if p["part"] == part] for part in ("protocols", "worst", "curator", "person", "laws", "parity")}
        checks = [
            _check_pasting(parts["protocols"]),
            _check_worst(parts["worst"]),
            _check_curator(parts["curator"]),
            _check_person(parts["person"]),
            _check_parity(parts["parity"]),
            _check_laws(parts["laws"]),
        ]
        notes = [
            f"Parity: epsilon {EPSILON:g}, found exactly with probability {SUCCESS:.0%}. Halving asks nobody twice; no protocol that asks again is known to do "
            "better. Between it and the bound for all protocols the truth is open.",
            "Protocols written out: a tree of single bits, any of the clients speaking at each node; half of the tree's chances lie near 0 or 1. The worst one "
            "is searched for on a grid of likelihood ratios, so a worse one may exist.",
            "Two laws: any two at this total variation. The best report is found among the 8 columns that matter; it gains where each law has a part that the "
            "other lacks, and they share the rest. Between two laws of two symbols yes or no is the best report.",
        ]
        return Finding(
            checks,
            [_parity_table(parts["parity"]), _ratio_table(parts), _laws_table(parts["laws"])],
            [_parity_figure(parts["parity"]), _ratio_figure(parts), _laws_figure(parts["laws"])],
            notes,
            headline=_headline(parts["parity"]),
        )


def _largest(measured: Measured) -> dict[int, float]:
    """The largest ratio found for each number of clients."""
    found: dict[int, float] = {}
    for point, measurement in measured:
        ratios = measurement["ratios"] if "ratios" in measurement else [measurement["whole"] / measurement["parts"] if measurement["parts"] else math.inf]
        found[point["clients"]] = max([found.get(point["clients"], 0.0), *ratios])
    return found


def _check_pasting(measured: Measured) -> Check:
    found, broken = _largest(measured), sum(m["broken"] for _, m in measured)
    count = sum(len(m["ratios"]) + m["broken"] for _, m in measured)
    return Check(
        "In protocols drawn at random and written out, all clients together are never farther apart than the constant times the sum of each alone",
        bool(found) and broken == 0 and all(ratio <= pasting_constant(n) * (1 + 1e-9) for n, ratio in found.items()),
        f"{count} protocols; largest ratio " + ", ".join(f"{ratio:.3f} of {pasting_constant(n):.3f} with {n} clients" for n, ratio in found.items()),
    )


def _check_worst(measured: Measured) -> Check:
    found = _largest(measured)
    return Check(
        f"The worst protocols that a search finds stay below it too, and for two clients come within {1 - NEAR:.0%} of it: no much smaller constant is true",
        2 in found and all(ratio <= pasting_constant(n) for n, ratio in found.items()) and found[2] >= NEAR * pasting_constant(2),
        ", ".join(f"{ratio:.4f} of {pasting_constant(n):.4f} with {n} clients" for n, ratio in found.items()),
    )


def _check_curator(measured: Measured) -> Check:
    return Check(
        "A curator's private answer, which does not factor, breaks it: the AND of all bits",
        bool(measured) and all(m["whole"] > pasting_constant() * m["parts"] for _, m in measured),
        "; ".join(f"{p['clients']} clients: {m['whole']:.3f} together, {m['parts']:.3f} in sum" for p, m in measured),
    )


def _person_bound(point: Point) -> float:
    epsilon = float(point["epsilon"])
    return affinity_curvature(epsilon) * report_squares(epsilon) / float(2 ** point["d"])


def _check_person(measured: Measured) -> Check:
    shares = {(p["d"], p["epsilon"]): (m["best"] / _person_bound(p), m["masks"] / m["best"]) for p, m in measured}
    return Check(
        "No report of one person carries more than the bound's share of a parity, whichever channel it comes from",
        bool(shares) and all(best <= 1 + 1e-9 and masks <= 1 + 1e-9 for best, masks in shares.values()),
        "the best channel has, of what the bound allows, " + ", ".join(f"{best:.2f} (d = {d}, epsilon {e:g})" for (d, e), (best, _) in shares.items()),
    )


def _check_parity(measured: Measured) -> Check:
    rates = {p["d"]: wilson(m["successes"], p["trials"]) for p, m in measured}
    factors = {p["d"]: m["clients"] / parity_asked_again_bound(p["d"], EPSILON, SUCCESS) for p, m in measured}
    doubled = [parity_asked_again_bound(d + 1, EPSILON, SUCCESS) / parity_asked_again_bound(d, EPSILON, SUCCESS) for d in DRAWN]
    return Check(
        "With each bit the people that every protocol needs at least double, and halving, which asks nobody twice, takes less than nine times as many",
        bool(rates) and min(doubled) >= 2 and all(low >= LEAST for low, _ in rates.values()) and all(1 < factor < 9 for factor in factors.values()),
        ", ".join(f"d = {d}: {factor:.2f} times, success {rates[d][0]:.3f} to {rates[d][1]:.3f}" for d, factor in factors.items()),
    )


def _unit(epsilon: float) -> float:
    return (response_gain(epsilon) / VARIATION) ** 2


def _check_laws(measured: Measured) -> Check:
    shown = [
        m["carried"] > 1
        and min(m["two"], m["best"]) >= LEAST
        and m["fewer"] >= two_laws_in_turn_bound(p["epsilon"], VARIATION, SUCCESS) > two_laws_asked_again_bound(p["epsilon"], VARIATION, SUCCESS)
        for p, m in measured
    ]
    return Check(
        "Two known laws are told apart in one round with less than ten times the people that every protocol needs; a better report than yes or no takes fewer",
        bool(shown) and all(shown) and all(m["fewer"] < 10 * two_laws_asked_again_bound(p["epsilon"], VARIATION, SUCCESS) for p, m in measured),
        ", ".join(
            f"epsilon {p['epsilon']:g}: {m['clients']:,} by yes and no (right in {m['two']:.1%}), {m['fewer']:,} by {m['reports']} answers that carry "
            f"{m['carried']:.2f} times as much ({m['best']:.1%})"
            for p, m in measured
        ),
    )


def _headline(measured: Measured) -> str:
    if not measured:
        return "Nothing was measured."
    d, clients = measured[-1][0]["d"], measured[-1][1]["clients"]
    bound = parity_asked_again_bound(d, EPSILON, SUCCESS)
    return f"At d = {d} no protocol finds the parity with fewer than {bound:,.0f} people, however it asks. Halving, which asks nobody twice, takes {clients:,}."


def _parity_table(measured: Measured) -> Table:
    rows = []
    for p, m in measured:
        d, unit = p["d"], response_gain(EPSILON) ** 2 * 2.0 ** p["d"]
        again, turn = parity_asked_again_bound(d, EPSILON, SUCCESS), parity_interactive_bound(d, EPSILON, SUCCESS)
        rows.append((d, round(again), round(turn), m["clients"], round(m["successes"] / p["trials"], 3), round(again / unit, 3), round(m["clients"] / unit, 2)))
    columns = ("d", "every protocol, at least", "in turn, at least", "halving", "its success", "the first in C^2 2^d", "halving in C^2 2^d")
    return Table(f"Parity at epsilon {EPSILON:g}: people for {SUCCESS:.0%}", columns, rows)


def _ratio_table(parts: dict[str, Measured]) -> Table:
    drawn, worst = _largest(parts["protocols"]), _largest(parts["worst"])
    rows = [(n, round(drawn[n], 3), round(worst[n], 4) if n in worst else "", round(pasting_constant(n), 4)) for n in drawn]
    return Table("What all together tell, in units of the sum of what each tells alone", ("clients", "largest drawn", "largest found", "proven limit"), rows)


def _laws_table(measured: Measured) -> Table:
    rows = []
    for p, m in measured:
        bounds = (bound(p["epsilon"], VARIATION, SUCCESS) for bound in (two_laws_in_turn_bound, two_laws_asked_again_bound))
        rows.append((p["epsilon"], *(round(n / _unit(p["epsilon"]), 3) for n in (m["clients"], m["fewer"], *bounds)), round(m["carried"], 3)))
    columns = ("epsilon", "yes or no", "best report", "in turn, at least", "every protocol, at least", "best report carries")
    return Table(f"Two laws at total variation {VARIATION:g}: people in C^2 / t^2 for {SUCCESS:.0%}", columns, rows)


def _parity_figure(measured: Measured) -> Figure:
    ds = list(DRAWN)
    curves = [
        Curve(
            "halving, which asks nobody twice, as it was run", [p["d"] for p, _ in measured], [m["clients"] for _, m in measured], "measured", group="halving"
        ),
        Curve("halving, formula", ds, [parity_halving_clients(d, EPSILON, 1 - SUCCESS) for d in ds], "theory", group="halving"),
        Curve("asked in turn, proven limit", ds, [parity_interactive_bound(d, EPSILON, SUCCESS) for d in ds], "bound"),
        Curve("asked again and again, proven limit", ds, [parity_asked_again_bound(d, EPSILON, SUCCESS) for d in ds], "bound"),
    ]
    return Figure("asking-again-parity", "Parity: people needed, however they are asked", "bits of the hidden parity d", "people", curves, log_y=True)


def _ratio_figure(parts: dict[str, Measured]) -> Figure:
    drawn, worst = _largest(parts["protocols"]), _largest(parts["worst"])
    curves = [
        Curve("proven limit", list(drawn), [pasting_constant(n) for n in drawn], "bound"),
        Curve("worst protocol found by search", list(worst), list(worst.values())),
        Curve("largest of those drawn at random", list(drawn), list(drawn.values())),
    ]
    title, axis = "What all tell together is bounded by what each tells alone", "squared distance, all together over the sum of each alone"
    return Figure("asking-again-pasting", title, "clients", axis, curves, log_x=True)


def _laws_figure(measured: Measured) -> Figure:
    places = list(range(len(measured)))
    units = [_unit(p["epsilon"]) for p, _ in measured]

    def bars(label: str, counts: list[float]) -> Curve:
        return Curve(label, places, [count / unit for count, unit in zip(counts, units, strict=True)], "bars")

    curves = [
        bars("one round, yes or no", [m["clients"] for _, m in measured]),
        bars("one round, the best report", [m["fewer"] for _, m in measured]),
        bars("asked in turn, proven limit", [two_laws_in_turn_bound(p["epsilon"], VARIATION, SUCCESS) for p, _ in measured]),
        bars("asked again and again, proven limit", [two_laws_asked_again_bound(p["epsilon"], VARIATION, SUCCESS) for p, _ in measured]),
    ]
    ticks = tuple(f"epsilon {p['epsilon']:g}" for p, _ in measured)
    return Figure("asking-again-laws", "Telling two known laws apart", "privacy", "people, in C^2 / t^2", curves, x_ticks=ticks)


EXPERIMENT = AskingAgain()
