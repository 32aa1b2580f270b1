"""Parity in one round: the bound for every randomizer, the best randomizer, and how few rounds beat them all."""

from itertools import pairwise
from typing import Any, ClassVar

from local_dp.bounds.channels import parity_asked_again_bound
from local_dp.bounds.parity import deny_information, parity_interactive_bound, parity_masks_bound, parity_one_round_bound, parity_report_bound
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.one_round_parity import runs
from local_dp.experiments.claims.frontier.one_round_parity.runs import BEATEN_FROM, DENY, EPSILON, HALVING, LN3, MASKS, ONE_ROUND, SEVERAL, TARGET, THREE, TWO
from local_dp.experiments.lab.chapters import FRONTIER, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import cross_check_shown
from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.minimal_clients import reached_check

KNOWN = {  # by earlier simulations: clients for 90 % at epsilon 1
    DENY: {4: 604, 6: 3_364, 8: 16_240, 10: 83_400, 12: 383_000},
    MASKS: {4: 714, 6: 4_075, 8: 19_840, 10: 95_050, 12: 446_950},
}
WITHIN = 1.05
NEAR = 0.95  # of the best of all channels
SURE = 3.0902  # standard errors: one-sided, 99.9 %
Measured = list[tuple[Point, Measurement]]
Found = dict[str, dict[int, Measurement]]


class OneRoundParity(Experiment[Point, Measurement]):
    """What any one round needs, what naming suspects needs, and what two or three rounds need."""

    name: ClassVar[str] = "one-round-parity"
    chapter: ClassVar[Chapter] = FRONTIER
    title: ClassVar[str] = "Parity in one round, whatever is asked"
    claim: ClassVar[str] = (
        "To find a hidden parity of d bits in one round takes about d times 2^d people, whatever they are asked. The best question is: name a suspect that "
        "your own example rules out. Two or three rounds of questions need fewer people than any one round."
    )
    source: ClassVar[str] = "limits 12.2"

    def points(self, scale: Scale) -> list[Point]:
        return runs.points(scale)

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        channels, bounded, crossed = (_of(measurements, kind) for kind in ("channels", "bound", "cross"))
        counted = [(point, found) for point, found in measurements if point["kind"] in (*ONE_ROUND, *SEVERAL)]
        reached = reached_check([(f"{point['kind']}, d = {point['d']}", found) for point, found in counted])
        checks = [reached, *_channel_checks(channels), _bound_check(bounded), *(cross_check_shown(_name(point), found, 0.85) for point, found in crossed)]
        tables, figures, headline = [_channel_table(channels), _bound_table(bounded)], list[Figure](), "No least number of clients was found."
        if reached.shown and counted:
            found = {kind: {point["d"]: m for point, m in counted if point["kind"] == kind} for kind in (*ONE_ROUND, *SEVERAL)}
            checks += [*_count_checks(found), _respects_check(found)]
            tables, figures, headline = [_count_table(found), *tables], [_figure(found)], _headline(found)
        notes = [
            "The bound for one round holds for every pure randomizer, different ones for different people and public coins included, at every epsilon; naming "
            "suspects comes near it for epsilon up to ln 3 only. The best of all channels is found by a linear program over all 2^(2^(d + 1)) extreme columns.",
            "Two and three rounds: suspects named first, then one-bit parities over a list that shrinks; lists and shares are the best by formula. That "
            "nothing better is possible in few rounds is not known: best method known.",
            f"Epsilon {EPSILON:g} and {TARGET:.0%} success unless said. Counts come with 95 % intervals; tallies are drawn from their law, and at d = 4 also "
            "client by client.",
        ]
        return Finding(checks, tables, figures, notes, headline=headline)


def _of(measurements: Measured, kind: str) -> Measured:
    return [(point, found) for point, found in measurements if point["kind"] == kind]


def _name(point: Point) -> str:
    return f"Parity, {point['of']}, d = {point['d']}"


def _channel_checks(channels: Measured) -> list[Check]:
    shares = {(p["d"], p["epsilon"]): (m["best"] / m["bound"], m["random"] / m["bound"]) for p, m in channels}
    near = {(p["d"], p["epsilon"]): m["deny"] / m["best"] for p, m in channels if p["epsilon"] <= LN3}
    worse = [m["support"] < m["deny"] for _, m in channels]
    growing = [deny_information(d, EPSILON) / parity_report_bound(d, EPSILON) for d in (2, 4, 6, 8, 10)]
    return [
        Check(
            "no report tells more of a parity than the bound: the best of all channels does not, nor does any random one",
            bool(shares) and all(0 < max(pair) < 1 for pair in shares.values()),
            "best / bound, and the best of "
            + f"{runs.CHANNELS} random ones / bound: "
            + ", ".join(f"{best:.4f}, {drawn:.3f} (d = {d}, epsilon {epsilon:.3g})" for (d, epsilon), (best, drawn) in shares.items()),
        ),
        Check(
            "naming a suspect tells at least 95 % of what the best of all channels tells, up to ln 3, and more than naming a parity that agrees",
            bool(near) and all(worse) and all(NEAR < share <= 1 + 1e-9 for share in near.values()),
            ", ".join(f"{share:.4f} (d = {d}, epsilon {epsilon:.3g})" for (d, epsilon), share in near.items()),
        ),
        Check(
            "as d grows it tells all that the bound allows",
            all(less < more for less, more in pairwise(growing)) and 0.99 < growing[-1] < 1,
            "share of the bound at d = 2, 4, 6, 8, 10: " + ", ".join(f"{share:.4f}" for share in growing),
        ),
    ]


def _bound_check(bounded: Measured) -> Check:
    lows = {(p["of"], p["d"]): wilson(m["successes"], p["trials"], SURE)[0] for p, m in bounded if p["d"] >= BEATEN_FROM[p["of"]]}
    failed = [f"; {_name(p)}: {m['failed']}" for p, m in bounded if "failed" in m]
    return Check(
        f"with the clients that every one-round protocol needs at least for {TARGET:.0%}, halving and three rounds succeed more often from d = 7 on, two "
        "rounds from d = 8 on (99.9 %)",
        {kind for kind, _ in lows} == set(SEVERAL) and min(lows.values()) > TARGET,
        "lower ends: " + ", ".join(f"{low:.3f} ({kind}, d = {d})" for (kind, d), low in lows.items()) + "".join(failed),
    )


def _count_checks(found: Found) -> list[Check]:
    pairs = {d: (found[DENY][d], found[MASKS][d]) for d in found[DENY].keys() & found[MASKS].keys()}
    ratios = {(kind, d): (m["low"] / KNOWN[kind][d], m["high"] / KNOWN[kind][d]) for kind in ONE_ROUND for d, m in found[kind].items()}
    return [
        Check(
            "naming suspects needs fewer clients than random masks at every d, their intervals apart",
            bool(pairs) and all(deny["high"] < masks["low"] for deny, masks in pairs.values()),
            ", ".join(f"{deny['n'] / masks['n']:.3f} times (d = {d})" for d, (deny, masks) in sorted(pairs.items())),
        ),
        Check(
            "the counts of one round are those known, within 5 % and the intervals",
            bool(ratios) and all(low <= WITHIN and high >= 1 / WITHIN for low, high in ratios.values()),
            ", ".join(f"{low:.3f} to {high:.3f} ({kind}, d = {d})" for (kind, d), (low, high) in ratios.items()),
        ),
    ]


def _respects_check(found: Found) -> Check:
    one = {(kind, d): m["low"] / parity_one_round_bound(d, EPSILON, TARGET) for kind in ONE_ROUND for d, m in found[kind].items()}
    more = {(kind, d): m["low"] / parity_interactive_bound(d, EPSILON, TARGET) for kind in SEVERAL for d, m in found[kind].items()}
    return Check(
        "every protocol respects the bound of its kind",
        bool(one) and bool(more) and min(one.values()) >= 1 and min(more.values()) >= 1,
        f"nearest, of the intervals' lower ends: {min(one.values()):.2f} times the bound for one round, {min(more.values()):.2f} times that for several",
    )


def _units(d: float) -> float:
    return float(response_gain(EPSILON) ** 2 * 2.0**d)


def _figure(found: Found) -> Figure:
    labels = {
        DENY: "one round, suspects named",
        MASKS: "one round, random masks",
        TWO: "two rounds",
        THREE: "three rounds",
        HALVING: "d rounds, halving",
    }
    measured = [
        Curve(f"{labels[kind]}: measured", [float(d) for d in by_d], _scaled(by_d, "n"), "measured", _scaled(by_d, "low"), _scaled(by_d, "high"), kind)
        for kind, by_d in found.items()
        if by_d
    ]
    measured_at = [d for by_d in found.values() for d in by_d]
    grid = range(min(measured_at), max(measured_at) + 1)
    bounds = {
        "one round, anything asked: no fewer than": (parity_one_round_bound, DENY),
        "in turn, each once: no fewer than": (parity_interactive_bound, HALVING),
        "asked again at will: no fewer than": (parity_asked_again_bound, "again"),
    }
    limits = [
        Curve(label, [float(d) for d in grid], [bound(d, EPSILON, TARGET) / _units(d) for d in grid], "bound", group=group)
        for label, (bound, group) in bounds.items()
    ]
    return Figure(
        "one-round-parity", "Clients for 90 % exact recovery of a parity, epsilon 1", "dimension d", "clients / (C^2 2^d)", measured + limits, log_y=True
    )


def _scaled(by_d: dict[int, Measurement], key: str) -> list[float]:
    return [m[key] / _units(d) for d, m in by_d.items()]


def _headline(found: Found) -> str:
    d = max(found[DENY].keys() & found[TWO].keys(), default=0)
    if not d:
        return "Nothing was measured at one d in one round and in two."
    bound = parity_one_round_bound(d, EPSILON, TARGET)
    return (
        f"At d = {d}: {found[DENY][d]['n']:,.0f} people in one round, where no question does with fewer than {bound:,.0f}; "
        f"{found[TWO][d]['n']:,.0f} in two rounds, {found[THREE][d]['n']:,.0f} in three."
    )


def _count_table(found: Found) -> Table:
    rows: list[tuple[Any, ...]] = []
    for kind, by_d in found.items():
        for d, m in by_d.items():
            bound = parity_one_round_bound(d, EPSILON, TARGET) if kind in ONE_ROUND else parity_interactive_bound(d, EPSILON, TARGET)
            known, own = KNOWN.get(kind, {}).get(d, ""), round(parity_masks_bound(d, EPSILON, TARGET)) if kind == MASKS else ""
            rows.append((kind, d, m["n"], m["low"], m["high"], round(m["n"] / _units(d), 2), runs.guess(kind, d), round(bound), own, known))
    columns = (
        "protocol",
        "d",
        "clients for 90 %",
        "95 % low",
        "95 % high",
        "in C^2 2^d",
        "formula",
        "bound of its kind",
        "bound for masks alone",
        "known before",
    )
    return Table("Least number of clients, epsilon 1", columns, rows)


def _channel_table(channels: Measured) -> Table:
    rows = [
        (p["d"], round(p["epsilon"], 4), m["bound"], *(round(m[key] / m["bound"], 4) for key in ("best", "deny", "support", "random"))) for p, m in channels
    ]
    columns = ("d", "epsilon", "bound, nats", "best of all channels / bound", "a suspect named", "one that agrees named", "best of 250 random channels")
    return Table("What one report tells of a parity", columns, rows)


def _bound_table(bounded: Measured) -> Table:
    rows = [(p["of"], p["d"], m["n"], m["successes"] / p["trials"], *wilson(m["successes"], p["trials"], SURE)) for p, m in bounded]
    return Table("Success with as many clients as one round needs at least", ("protocol", "d", "clients", "success", "99.8 % low", "99.8 % high"), rows)


EXPERIMENT = OneRoundParity()
