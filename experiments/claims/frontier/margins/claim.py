"""Margin complexity: files that prove how many people one round takes to learn a class barely, whatever the distribution (limits 12.4)."""

import math
from itertools import pairwise
from typing import ClassVar, Final

from local_dp.bounds.interaction import margin_clients, margin_constant, vote_clients
from local_dp.experiments.claims.frontier.margins import runs
from local_dp.experiments.claims.frontier.margins.runs import EPSILON, SUCCESS
from local_dp.experiments.lab.chapters import FRONTIER, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import cross_check_shown
from local_dp.experiments.lab.intervals import wilson
from local_dp.learners.rules import DecisionLists
from local_dp.populations.concepts import FUNCTIONS

LISTS: Final = "odd-max-bit"
CERTIFIED: Final = ((LISTS, 4, 2), (LISTS, 8, 2), (LISTS, 8, 4), (LISTS, 8, 8), (LISTS, 8, 16), ("and", 8, 4), ("majority", 7, 4), ("parity", 4, 4))
LARGER: Final = ((LISTS, 9, 81), (LISTS, 10, 16), ("parity", 8, 4))
SMALL: Final = ((2, 2), (2, 3), (3, 2), (3, 3))
VOTED: Final = ((LISTS, 4, 2), (LISTS, 8, 16), ("and", 8, 4), ("majority", 7, 4), ("parity", 4, 4))
MAX_LIST: Final = 40  # variables of the learner of lists
CLOSE: Final = 1e-6
CERTAIN: Final = 4.9  # standard errors: wrong once in a million
Measured = list[tuple[Point, Measurement]]


class Margins(Experiment[Point, Measurement]):
    """Linear programs, certificates of their optima, and votes that come near what the certificates allow."""

    name: ClassVar[str] = "margins"
    chapter: ClassVar[Chapter] = FRONTIER
    title: ClassVar[str] = "A file that proves how many people one round takes, whatever the distribution"
    claim: ClassVar[str] = (
        "A file anybody can check proves that no one-round method learns these rules from fewer than n people, not even barely: to be right more often than "
        "wrong. For lists of rules and other functions of variables that nobody knows, n is about 2.29 times the square of a number that a small linear "
        "program finds, and one round in which everybody is asked about one random parity comes within a factor of 5 of it."
    )
    source: ClassVar[str] = "Daniely, Feldman 2019, with a constant; the linear program and the converse are proved in limits 12.4"

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        points: list[Point] = [{"kind": "certificate", "function": f, "t": t, "b": b} for f, t, b in (*CERTIFIED, *(LARGER if full else ()))]
        most = 10 if full else 8
        points += [{"kind": "blocks", "function": f, "b": 4, "ts": list(range(1, most + 1, 1 + (f == "majority")))} for f in FUNCTIONS]
        points += [{"kind": "squares", "function": LISTS, "ts": list(range(2, 10))}, {"kind": "limits", "function": LISTS, "ts": list(range(1, 9))}]
        points += [{"kind": "matrix", "function": f, "t": t, "b": b} for f in FUNCTIONS for t, b in SMALL]
        points += [{"kind": "vote", "function": f, "t": t, "b": b, "trials": 40_000 if full else 8_000} for f, t, b in VOTED]
        return [*points, {"kind": "run", "clients": 282, "users": 400 if full else 100}]

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        certificates = _of(measurements, "certificate")
        checks = [
            _dual(measurements),
            _matrices(_of(measurements, "matrix")),
            _certified(certificates),
            _closed(measurements),
            _votes(_of(measurements, "vote")),
        ]
        checks += [cross_check_shown("the vote on odd-max-bit, 4 blocks of 2", found, least=0.7) for _, found in _of(measurements, "run")]
        files = {f"certificate {point['function']} {point['t']} {point['b']}": found["certificate"] for point, found in certificates}
        tables = [_certificate_table(certificates), _squares_table(_of(measurements, "squares")), _vote_table(_of(measurements, "vote"))]
        return Finding(checks, tables, _figures(measurements), _notes(measurements), files, headline=_headline(certificates))


def _of(measurements: Measured, kind: str) -> Measured:
    return [(point, found) for point, found in measurements if point["kind"] == kind]


def _named(point: Point) -> str:
    return f"{point['function']} ({point['t']}, {point['b']})"


def _sides(measurements: Measured) -> list[Measurement]:
    """Every pair of bounds that was computed."""
    return [side for _, found in measurements for side in (found.get("margins") or [found]) if "at_most" in side]


def _headline(certificates: Measured) -> str:
    lists = [(point, found) for point, found in certificates if point["function"] == LISTS]
    if not lists:
        return "No list was certified."
    point, found = max(lists, key=lambda row: row[1]["certificate"]["clients_at_least"])
    valid = "proves" if found["check"]["valid"] else "does not prove"
    return (
        f"A file of {len(found['certificate']['weights'])} whole numbers {valid} that no one-round method learns lists of {point['t']} rules over "
        f"{point['t'] * point['b']} variables from fewer than {found['certificate']['clients_at_least']:,} people, not even barely."
    )


def _dual(measurements: Measured) -> Check:
    gaps = [side["at_most"] / side["at_least"] - 1 for side in _sides(measurements)]
    return Check(
        "The law that bounds the margin complexity from below and the polynomial that bounds it from above agree to one part in a million",
        bool(gaps) and all(abs(gap) <= CLOSE for gap in gaps),
        f"{len(gaps)} classes, {sum(abs(gap) > CLOSE for gap in gaps)} further apart",
    )


def _matrices(rows: Measured) -> Check:
    off = [abs(value / found["at_least"] - 1) for _, found in rows for value in found["matrix"]]
    return Check(
        "On whole sign matrices, with no symmetry used, the spectral norm and vectors written out for every concept and point give the same number",
        bool(off) and max(off) <= CLOSE,
        f"{len(rows)} matrices of {', '.join(sorted({str((point['t'], point['b'])) for point, _ in rows}))} blocks: "
        f"{sum(value > CLOSE for value in off)} of {len(off)} bounds differ",
    )


def _certified(rows: Measured) -> Check:
    checks = [found["check"] for _, found in rows]
    forged, accepted = (sum(check[name] for check in checks) for name in ("forgeries", "forgeries_accepted"))
    short = [
        _named(point)
        for point, found in rows
        if found["certificate"]["clients_at_least"] < margin_clients(found["at_most"] ** 2, EPSILON, SUCCESS) * (1 - CLOSE) - 1
    ]
    return Check(
        "Every certificate passes the independent checker, and none with one altered weight, another B or a larger count does",
        bool(checks) and all(check["valid"] for check in checks) and forged > 0 == accepted and not short,
        f"{sum(check['valid'] for check in checks)} of {len(checks)} certificates verified; {accepted} of {forged} forgeries accepted"
        + (f"; short of the bound: {', '.join(short)}" if short else ""),
    )


def fibonacci(k: int) -> int:
    """The k-th number of 1, 1, 2, 3, 5, ..."""
    first, second = 0, 1
    for _ in range(k):
        first, second = second, first + second
    return first


def _closed(measurements: Measured) -> Check:
    parity = [side for point, found in _of(measurements, "blocks") if point["function"] == "parity" for side in found["margins"]]
    roots = all(abs(side["at_least"] / side["b"] ** (side["t"] / 2) - 1) <= CLOSE for side in parity)
    limits = [(t, value) for point, found in _of(measurements, "limits") for t, value in zip(point["ts"], found["limits"], strict=True)]
    return Check(
        "Parity of one variable of each of t blocks of B has margin complexity B^(t/2); odd-max-bit has sqrt(B) times a Fibonacci number less 1, for large B",
        bool(parity) and roots and bool(limits) and all(abs(value / (fibonacci(t + 2) - 1) - 1) <= CLOSE for t, value in limits),
        f"parity {', '.join(format(side['at_least'], '.4g') for side in parity)}; limits {', '.join(format(value, '.4g') for _, value in limits)}",
    )


def _votes(rows: Measured) -> Check:
    """Fewer clients than the certificate asks for must fail in more than a tenth of runs, and those that Cantelli's inequality asks for must not."""
    rates = {_named(point): (found["won"][0] / found["trials"], found["won"][-1] / found["trials"]) for point, found in rows}
    few = all(wilson(found["won"][0], found["trials"], CERTAIN)[1] < SUCCESS for _, found in rows)
    enough = all(wilson(found["won"][-1], found["trials"], CERTAIN)[0] >= SUCCESS for _, found in rows)
    least = [needed(found) / margin_clients(found["squared"], EPSILON, SUCCESS) for _, found in rows]
    return Check(
        f"The vote is right more often than wrong in {SUCCESS:.0%} of runs with less than 5 times the clients that every one-round method needs, "
        "not with fewer than these, and always with as many as its proof asks for",
        bool(rows) and few and enough and max(least) < 5,
        "; ".join(f"{name}: {below:.3f} with one client too few, {above:.3f} as proved" for name, (below, above) in rates.items())
        + f"; {SUCCESS:.0%} at {', '.join(format(value, '.2f') for value in least)} times the bound",
    )


def needed(found: Measurement) -> float:
    """The clients with which nine tenths of the votes are right more often than wrong: by a line through the two numbers around it; infinite if none."""
    rates = [won / found["trials"] for won in found["won"]]
    for place, (low, high) in enumerate(pairwise(rates)):
        if low < SUCCESS <= high:
            before, after = found["clients"][place : place + 2]
            return float(before + (SUCCESS - low) / (high - low) * (after - before))
    return math.inf


def _whole(count: float) -> float:
    """The nearest whole number of clients; infinite stays infinite."""
    return count if math.isinf(count) else round(count)


def _certificate_table(rows: Measured) -> Table:
    told = [
        (point["function"], point["t"], point["b"], point["t"] * point["b"], found["at_least"], found["certificate"]["clients_at_least"])
        for point, found in rows
    ]
    return Table(
        "What the certificates prove, epsilon 1", ("function", "blocks", "B", "variables", "margin complexity", "clients of one round, at least"), told
    )


def _squares_table(rows: Measured) -> Table:
    told = [
        (side["t"], side["b"], side["t"] * side["b"], side["at_least"], _steepness(found["margins"], place))
        for _, found in rows
        for place, side in enumerate(found["margins"])
    ]
    return Table(
        "Odd-max-bit, t blocks of t^2", ("blocks", "B", "variables", "margin complexity", "its growth since the line above, as a power of the variables"), told
    )


def _steepness(sides: list[Measurement], place: int) -> float | str:
    """The slope of ln MC over ln d between two neighbours."""
    if place == 0:
        return ""
    (first, second) = sides[place - 1 : place + 1]
    return math.log(second["at_least"] / first["at_least"]) / math.log(second["t"] * second["b"] / (first["t"] * first["b"]))


def _vote_table(rows: Measured) -> Table:
    told = [
        (_named(point), found["squared"] ** 0.5, margin_clients(found["squared"], EPSILON, SUCCESS), _whole(needed(found)), found["clients"][-1])
        for point, found in rows
    ]
    return Table(
        "Clients to learn barely in one round",
        ("function (blocks, B)", "margin complexity", "any method, at least", "the vote, measured", "the vote, proved"),
        told,
    )


def _notes(measurements: Measured) -> list[str]:
    enough = vote_clients(1e6, EPSILON, SUCCESS) / 1e6
    told = [
        "A class: all functions of one variable, or its negation, of each of t blocks of B, where nobody knows which. Odd-max-bit of them is a list of rules: "
        "the last block that says 1 decides, by whether its place is odd.",
        f"Epsilon {EPSILON:g}, success {SUCCESS:.0%}: n >= {margin_constant(EPSILON, SUCCESS):.4f} MC^2, and {enough:.1f} MC^2 are enough (Cantelli's "
        "inequality). Barely means an error below 1/2. To learn well is another matter: a class with large margins may still need exponentially many people "
        "in one round (Dagan, Feldman 2020), so MC^2 is no upper bound for that.",
        "B altered together with every figure that follows from it is no forgery: it proves what it then says, of the class with so many variables.",
    ]
    for _, found in _of(measurements, "squares"):
        sides = found["margins"]
        slopes = [slope for place in range(len(sides)) if isinstance(slope := _steepness(sides, place), float)]
        told.append(
            "That the margin complexity of lists of rules over d variables is exponential in d^(1/3) (recalled: Buhrman, Vereshchagin, de Wolf 2007) is "
            f"invisible at these sizes: with B = t^2 it grows as a power of d between {min(slopes):.2f} and {max(slopes):.2f} from one t to the next, up to "
            f"d = {sides[-1]['t'] * sides[-1]['b']}. Only parity grows by a constant factor with every block: with four variables in each, over the last "
            f"steps of t, {', '.join(f'{name} by {factor:.2f}' for name, factor in _factors(measurements))} a block."
        )
    lists = [(point, found) for point, found in _of(measurements, "certificate") if point["function"] == LISTS and point["t"] * point["b"] <= MAX_LIST]
    for point, found in lists[-1:]:
        learner = DecisionLists(d=point["t"] * point["b"])
        told.append(
            f"The bound lies far below what our learners use: the one for lists of rules over {learner.d} variables asks {learner.clients(EPSILON, 0.1):,} "
            f"people in {learner.rounds} rounds, for an error of a tenth; to learn barely, one round takes "
            f"{found['certificate']['clients_at_least']:,} at least."
        )
    return told


def _factors(measurements: Measured) -> list[tuple[str, float]]:
    """By how much a block more multiplies the margin complexity, of every function: the mean factor of its last step."""
    ends = [(point["function"], *found["margins"][-2:]) for point, found in _of(measurements, "blocks")]
    return [(name, (last["at_least"] / before["at_least"]) ** (1 / (last["t"] - before["t"]))) for name, before, last in ends]


def _figures(measurements: Measured) -> list[Figure]:
    curves = []
    for point, found in _of(measurements, "blocks"):
        curves.append(Curve(point["function"], [side["t"] for side in found["margins"]], [side["at_least"] for side in found["margins"]], "theory"))
    title = "Margin complexity of one variable of each block, four in a block"
    blocks = Figure("margins", title, "blocks t", "margin complexity", curves, log_y=True)
    votes = [
        Curve(_named(point), [n / found["squared"] for n in found["clients"]], [won / found["trials"] for won in found["won"]])
        for point, found in _of(measurements, "vote")
    ]
    constant = margin_constant(EPSILON, SUCCESS)
    votes.append(Curve("no method with fewer reaches 90 %", [constant, constant], [0.5, SUCCESS], "bound"))
    voted = Figure("votes", "One round is right more often than wrong", "clients, in units of MC^2", "share of runs", votes, log_x=True)
    return [blocks, voted]


EXPERIMENT = Margins()
