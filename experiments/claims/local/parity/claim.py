"""Parity: a trusted curator learns it from a number of examples linear in d, local clients only from exponentially many."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound, parity_masks_bound, parity_one_round_clients
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.local.parity.central import Central, CentralResult, central_finding, central_points
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.cross_check import Crossing, cross_check, cross_check_shown, exact_trial
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.minimal_clients import ClientCount, Search, exact_recovery, measured_clients, reached_check
from local_dp.noise import stream_key
from local_dp.protocols.registry import find_protocol

GROWTH = 0.7  # doublings of the local n for each dimension that count as exponential
EPSILON, TARGET = 1.0, 0.9
HALVING, ONE_ROUND = "parity", "parity-one-round"
LABELS = {HALVING: "local, interactive (halving)", ONE_ROUND: "local, one round"}
# the counts that earlier simulations found (limits 4.2)
REFERENCE: dict[str, dict[int, float]] = {
    HALVING: {4: 454, 6: 2_040, 8: 7_490, 10: 3.3e4, 12: 1.2e5},
    ONE_ROUND: {4: 740, 6: 4_530, 8: 2.05e4, 10: 9.9e4, 12: 4.4e5},
}
WITHIN = 1.1
FORMULA: dict[str, Callable[[int, float, float], int]] = {HALVING: parity_halving_clients, ONE_ROUND: parity_one_round_clients}
BOUND: dict[str, Callable[[int, float, float], float]] = {HALVING: parity_interactive_bound, ONE_ROUND: parity_masks_bound}
LEAST = 0.85  # the success at the formula's count, client by client, that counts as what the formula says, 90 %
Counts: TypeAlias = dict[str, dict[int, ClientCount]]  # by protocol and d


@dataclass(frozen=True)
class Local:
    """The least number of clients that find the parity exactly in 90 % of the runs."""

    protocol: str
    d: int
    trials: int

    def __str__(self) -> str:
        return f"{LABELS[self.protocol]}, d = {self.d}"

    def measure(self, seed: int) -> Search:
        protocol, guess = find_protocol(self.protocol).from_settings({"d": str(self.d)}), FORMULA[self.protocol](self.d, EPSILON, 1 - TARGET)
        own_seed = int.from_bytes(stream_key(f"parity {self.protocol}", seed, self.d)[:8], "little")
        return measured_clients(exact_recovery(protocol, EPSILON, own_seed), guess, target=TARGET, trials=self.trials, least=2 * self.d)


@dataclass(frozen=True)
class Users:
    """The formula's number of clients, client by client."""

    protocol: str
    d: int

    def __str__(self) -> str:
        return f"{LABELS[self.protocol]}, d = {self.d}"

    def measure(self, seed: int) -> Crossing:
        protocol, clients = find_protocol(self.protocol).from_settings({"d": str(self.d)}), FORMULA[self.protocol](self.d, EPSILON, 1 - TARGET)
        return cross_check(lambda: exact_trial(protocol, EPSILON, clients), seed)


Place: TypeAlias = Central | Local | Users
Result: TypeAlias = CentralResult | Search | Crossing


class Parity(Experiment[Place, Result]):
    """KLNRS Theorem 3.8 beside Corollary 4.6: what a curator buys."""

    name: ClassVar[str] = "parity"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Parity: easy for a trusted curator, exponential without one"
    claim: ClassVar[str] = (
        "A hidden parity of d bits is learned privately by a trusted curator from a number of examples that grows linearly with d, while clients who trust "
        "nobody and randomize their own answers need about 2^d of them, in one round or in many, if each is asked in one round only."
    )
    source: ClassVar[str] = "KLNRS 2008, Section 3.2, Theorem 3.8 and Corollary 4.6; limits 4"

    def points(self, scale: Scale) -> list[Place]:
        return [*central_points(scale), *local_points(scale)]

    def conclude(self, measurements: Rows[Place, Result], scale: Scale) -> Finding:
        within, central_tables, central_checks = central_finding(measurements)
        beyond, local_tables, local_checks = local_finding(of_kind(measurements, Local), of_kind(measurements, Users))
        title = "Examples or clients for 90 % exact recovery of a parity, epsilon 1"
        figure = Figure("parity", title, "dimension d", "least n", within + beyond, log_x=True, log_y=True)
        notes = [
            "A* charged exactly pays for all its runs together, not for their sum; that saves a factor of about 1.5 over two runs with added budgets.",
            "The exponential mechanism needs 2^d time and, because scores fluctuate, a little more than its closed form; the other learners are efficient.",
            "The counts of the efficient learners are exact minima. The others are measured: the exponential mechanism's with the whole numbers within 3.9 "
            "standard errors, the local ones with 95 % intervals. The lower bound for interactive local protocols is proven for sequential interaction (each "
            "client answers in one round only); fully interactive protocols are outside of it.",
        ]
        checks = [*central_checks, separation(within, beyond), *local_checks, intervals_check()]
        return Finding(checks, [*central_tables, *local_tables], [figure], notes, headline=headline(within, beyond))


def headline(within: list[Curve], beyond: list[Curve]) -> str:
    """The fewest examples and the fewest clients that were measured in the greatest dimension of the latter."""
    d = max((d for curve in beyond if curve.style == "measured" for d in curve.x), default=0.0)
    least = [[dict(zip(curve.x, curve.y, strict=True)).get(d, math.inf) for curve in curves if curve.style == "measured"] for curves in (within, beyond)]
    curator, local = (min(counts, default=math.inf) for counts in least)
    return f"At d = {d:g} a parity takes a trusted curator {curator:,.0f} examples and local clients {local:,.0f}."


def separation(within: list[Curve], beyond: list[Curve]) -> Check:
    """Whether the measured local curves grow exponentially and lie above every curator's at their greatest d."""
    local = [curve for curve in beyond if curve.style == "measured" and len(curve.x) > 1]
    rates = [math.log2(curve.y[-1] / curve.y[0]) / (curve.x[-1] - curve.x[0]) for curve in local]
    factors = [curve.y[-1] / central.y[list(central.x).index(curve.x[-1])] for curve in local for central in within if curve.x[-1] in central.x]
    return Check(
        "each further dimension nearly doubles the clients of both local protocols, which need more than any curator's learner here",
        bool(rates) and bool(factors) and min(rates) >= GROWTH and min(factors) > 1,
        f"doublings a dimension: {', '.join(f'{rate:.2f} ({curve.label})' for rate, curve in zip(rates, local, strict=True))}; "
        f"local n over a curator's at the greatest d: from {min(factors, default=math.nan):.0f} to {max(factors, default=math.nan):.0f} times",
    )


def local_points(scale: Scale) -> list[Local | Users]:
    """Each protocol at each d: 4, 6, 8, and in full 10 and 12 too; and each client by client at d = 4."""
    dimensions, trials = ((4, 6, 8), 1500) if scale == "quick" else ((4, 6, 8, 10, 12), 4000)
    return [*(Local(protocol, d, trials) for protocol in LABELS for d in dimensions), *(Users(protocol, dimensions[0]) for protocol in LABELS)]


def local_finding(searches: Rows[Local, Search], users: Rows[Users, Crossing]) -> tuple[list[Curve], list[Table], list[Check]]:
    """The measured curves and the lower bounds over d, a table in clients and in units of C^2 2^d, and the checks; if a search failed, only these."""
    crossed = [cross_check_shown(str(p), m, LEAST) for p, m in users]
    reached = reached_check([(str(p), m) for p, m in searches])
    if not reached.shown:
        return [], [], [reached, *crossed]
    counts: Counts = {protocol: {p.d: m for p, m in searches if p.protocol == protocol and isinstance(m, ClientCount)} for protocol in LABELS}
    curves = [each for protocol, by_d in counts.items() for each in _curves(protocol, by_d)]
    return curves, [_table(counts)], [reached, _known_check(counts), _bound_check(counts), *_interaction_checks(counts), *crossed]


def _units(d: int) -> float:
    """C^2 2^d, the clients that put one standard deviation between the right parity and the others."""
    return response_gain(EPSILON) ** 2 * 2.0**d


def _curves(protocol: str, by_d: dict[int, ClientCount]) -> list[Curve]:
    limit = "every sequentially interactive protocol, proven limit" if protocol == HALVING else "one round, one randomized parity each, proven limit"
    bound = curve(limit, ((d, BOUND[protocol](d, EPSILON, TARGET)) for d in by_d), "bound")
    return [curve(LABELS[protocol], ((d, m.n, m.low, m.high) for d, m in by_d.items())), bound]


def _table(counts: Counts) -> Table:
    rows = []
    for protocol, by_d in counts.items():
        for d, m in by_d.items():
            known, formula, bound = REFERENCE[protocol][d], FORMULA[protocol](d, EPSILON, 1 - TARGET), BOUND[protocol](d, EPSILON, TARGET)
            per_unit = round(m.n / _units(d), 2)
            rows.append((LABELS[protocol], d, m.n, m.low, m.high, per_unit, formula, round(bound), known, round(m.n / known, 3)))
    measured = ("protocol", "d", "clients for 90 %, measured minimum", "95 % low", "95 % high", "in C^2 2^d")
    others = ("formula (normal approximation)", "proven lower bound", "known before", "ratio to known")
    return Table("Parity in the local model: least number of clients, epsilon = 1", (*measured, *others), rows)


def _known_check(counts: Counts) -> Check:
    known = {f"{LABELS[protocol]}, d = {d}": (m, REFERENCE[protocol][d]) for protocol, by_d in counts.items() for d, m in by_d.items()}
    ratios = {name: m.n / n for name, (m, n) in known.items()}
    lowest = {name: m.low / n for name, (m, n) in known.items()}
    worst, farthest = max(ratios, key=ratios.__getitem__), max(lowest, key=lowest.__getitem__)
    return Check(
        "No local parity protocol needs 10 % more clients than the count known for it, up to the confidence interval of the measurement",
        lowest[farthest] <= WITHIN,
        f"n / known from {min(ratios.values()):.3f} to {ratios[worst]:.3f} ({worst}); the intervals' lower ends up to {lowest[farthest]:.3f} ({farthest})",
    )


def _bound_check(counts: Counts) -> Check:
    margins = {LABELS[protocol]: min(m.low / BOUND[protocol](d, EPSILON, TARGET) for d, m in by_d.items()) for protocol, by_d in counts.items()}
    return Check(
        "Local parity respects the proven lower bounds: for every sequentially interactive protocol, and for one round with one randomized parity a client "
        f"(epsilon = {EPSILON:g})",
        all(margin >= 1 for margin in margins.values()),
        "closest, of the intervals' lower ends: " + ", ".join(f"{margin:.2f} times its bound ({name})" for name, margin in margins.items()),
    )


def _interaction_checks(counts: Counts) -> list[Check]:
    halving, one_round = counts[HALVING], counts[ONE_ROUND]
    units = [m.n / _units(d) for d, m in halving.items()]
    ratios = {d: one_round[d].n / m.n for d, m in halving.items()}
    first, last = min(ratios), max(ratios)
    return [
        Check(
            "Halving in rounds does not save the exponential: it needs a constant times C^2 2^d at every d measured",
            max(units) <= 1.3 * min(units),
            f"the constant is {min(units):.2f} to {max(units):.2f}",
        ),
        Check(
            "Halving in rounds saves a factor against one round that grows with d",
            one_round[last].low / halving[last].high > one_round[first].high / halving[first].low,
            "one round over halving: " + ", ".join(f"{ratio:.2f} at d = {d}" for d, ratio in ratios.items()),
        ),
    ]


EXPERIMENT = Parity()
