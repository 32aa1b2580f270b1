"""Masked parity: what interaction buys, measured as the least number of clients that learn exactly in 90 % of the runs.

`local-dp experiment masked-parity --full` measures every client count below; about 5 minutes on one core.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

from local_dp.bounds.masked_parity import (
    masked_parity_clients,
    masked_parity_curator_clients,
    masked_parity_fresh_clients,
    masked_parity_interactive_bound,
    masked_parity_list_clients,
    masked_parity_literal_clients,
    masked_parity_one_round_bound,
    masked_parity_one_round_clients,
)
from local_dp.experiments.claims.local.masked_parity.curator import curator_cross_check, curator_recovery
from local_dp.experiments.claims.local.masked_parity.epsilon import conclude_epsilon, epsilon_points, measure_epsilon
from local_dp.experiments.claims.local.masked_parity.literal import literal_by_clients, literal_recovery
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.minimal_clients import exact_recovery, measured_clients, reached_check
from local_dp.experiments.lab.store import as_data
from local_dp.noise import stream_key
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.registry import find_protocol

EPSILON, TARGET = 1.0, 0.9
LITERAL = "paper's Laplace"  # the literal protocol with ideal noise Lap(2 / epsilon), in law only: real numbers leak in floating point
CLAMPED, FRESH, HASHED, LISTED, ONE_ROUND = "masked-parity-literal", "masked-parity-fresh", "masked-parity", "masked-parity-list", "masked-parity-one-round"
CURATOR = "curator"
INTERACTIVE = (LITERAL, FRESH, HASHED, LISTED)
LABELS = {
    LITERAL: "two rounds, as printed (P0)",
    CLAMPED: "two rounds, as printed, noise on a lattice and clamped",
    FRESH: "two rounds, randomized response (P1)",
    HASHED: "two rounds, hashing (P2)",
    LISTED: "two rounds, list decoding (P4)",
    ONE_ROUND: "one round",
    CURATOR: "trusted curator (exponential mechanism)",
}
# the counts that earlier simulations found (limits 0, 3.2, 3.3 and 11)
REFERENCE: dict[str, dict[int, float]] = {
    LITERAL: {4: 34_870, 8: 3.45e5, 16: 3.32e6, 32: 3.17e7, 64: 2.98e8},
    CLAMPED: {4: 34_870, 8: 3.45e5, 16: 3.32e6},
    FRESH: {4: 5_092, 8: 50_890, 16: 4.88e5, 32: 4.64e6, 64: 4.27e7},
    HASHED: {4: 1_195, 8: 5_756, 10: 9_850, 12: 14_900, 14: 20_700, 16: 28_400, 32: 1.34e5, 64: 6.2e5},
    LISTED: {4: 855, 8: 3_510, 16: 16_850, 32: 77_800, 64: 3.68e5},
    ONE_ROUND: {2: 251, 4: 1_256, 8: 9_400, 10: 3.10e4, 12: 1.23e5, 14: 5.08e5, 16: 2.00e6, 18: 7.8e6, 20: 3.2e7},
    CURATOR: {8: 46, 16: 74},
}
WITHIN = 1.1
PARTED = 1.15  # the ratio of client counts at which two curves are said to have parted
CLIENTS: dict[str, Callable[[int, float, float], int]] = {
    LITERAL: masked_parity_literal_clients,
    CLAMPED: masked_parity_literal_clients,
    FRESH: masked_parity_fresh_clients,
    HASHED: masked_parity_clients,
    LISTED: masked_parity_list_clients,
    ONE_ROUND: masked_parity_one_round_clients,
    CURATOR: masked_parity_curator_clients,
}
NORMAL = "normal approximation"
KINDS = dict.fromkeys(LABELS, NORMAL) | {LISTED: "hashing's times a measured share", CURATOR: "proven sufficient"}  # what the formula's count is
CROSS_CHECKED = 4  # the d at which each is run client by client, with its formula's count
LEAST = 0.85  # the success that counts there as what the formula says, 90 %


class MaskedParityExperiment(Experiment[Point, Measurement]):
    """Client counts of every masked-parity protocol, epsilon = 1, success 90 %."""

    name: ClassVar[str] = "masked-parity"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Two rounds of questions learn masked parity; one round needs exponentially many clients"
    claim: ClassVar[str] = (
        "A hidden rule has d + 1 secret bits. If the server may ask a second question that depends on the first answers, the number of clients it needs grows "
        "like d^2 log d. If all questions must be fixed beforehand it doubles with every further bit, and no protocol whose questions are so fixed can avoid "
        "that. The two part at d about 5. A trusted curator needs only tens of people."
    )
    source: ClassVar[str] = "KLNRS 2008, Section 5 and Theorem 5.1 corrected (limits 3)"

    def points(self, scale: Scale) -> list[Point]:
        if scale == "quick":
            dimensions = {LITERAL: (4, 8), CLAMPED: (4,), FRESH: (4, 8), HASHED: (2, 4, 6, 8, 10), LISTED: (4, 8), ONE_ROUND: (2, 4, 6, 8, 10)}
            dimensions[CURATOR] = (2, 4, 6, 8, 10)
        else:
            wide = (4, 8, 16, 32, 64)
            hashed = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 32, 64)
            dimensions = {LITERAL: wide, CLAMPED: (4, 8, 16), FRESH: wide, HASHED: hashed, LISTED: wide, ONE_ROUND: (*range(2, 9), 10, 12, 14, 16, 18, 20)}
            dimensions[CURATOR] = (2, 4, 6, 8, 10, 12, 14, 16)
        counts = [{"protocol": protocol, "d": d, "trials": _trials(protocol, d, scale)} for protocol, ds in dimensions.items() for d in ds]
        return [*counts, *({"cross": protocol, "d": CROSS_CHECKED} for protocol in LABELS), *epsilon_points(scale)]

    def measure(self, point: Point, seed: int) -> Measurement:
        if "epsilon" in point:
            return measure_epsilon(point, seed)
        if "cross" in point:
            return _cross_check(point["cross"], point["d"], seed)
        protocol, d = point["protocol"], point["d"]
        success = _recovery(protocol, d, int.from_bytes(stream_key(f"masked-parity {protocol}", seed, d)[:8], "little"))
        return as_data(measured_clients(success, CLIENTS[protocol](d, EPSILON, 1 - TARGET), target=TARGET, trials=point["trials"], least=2 * d + 2))

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        found: Found = {protocol: {} for protocol in LABELS}
        widened = conclude_epsilon([(point, measurement) for point, measurement in measurements if "epsilon" in point])
        measurements = [(point, measurement) for point, measurement in measurements if "epsilon" not in point]
        crossed = [_crossed(point, measurement) for point, measurement in measurements if "cross" in point]
        counted = [(f"{LABELS[p['protocol']]}, d = {p['d']}", p, m) for p, m in measurements if "cross" not in p]
        reached = reached_check([(name, m) for name, _, m in counted])
        if not reached.shown:
            return Finding([reached, *crossed, *widened.checks], headline="Some least number of clients was not found.")
        for _, point, measurement in sorted(counted, key=lambda entry: int(entry[1]["d"])):
            found[point["protocol"]][point["d"]] = measurement
        checks = [
            reached,
            *_reference_checks(found),
            _order_check(found),
            _bound_check(found),
            _parting_check(found),
            _growth_check(found),
            _curator_check(found),
        ]
        table, figure = _table(found), _figure(found)
        return Finding(
            checks=[*checks, *crossed, figure_check([figure], table), *widened.checks, intervals_check()],
            tables=[table, *widened.tables],
            figures=[figure, *widened.figures],
            notes=[
                "Examples are uniform: a learner for every distribution would also learn parity, which no efficient local protocol does.",
                f"epsilon = {EPSILON:g} where nothing else is said; a run succeeds if every secret bit is found. Every count is a measured minimum with its "
                "95 % interval; tallies are drawn from their exact law, which the cross-checks hold against runs in which every client answers. The "
                "curator's is the exponential mechanism over all 2^(d+1) rules.",
                "The proven limit holds for every one-round (non-interactive) local protocol, at any epsilon. The information limit is proven for one round "
                "on the first d bits and heuristic for interactive protocols, sequentially or fully.",
            ],
            headline=_headline(found),
        )


Found = dict[str, dict[int, Measurement]]


def _headline(found: Found) -> str:
    """At the greatest dimension in which the best protocol of either kind was run."""
    d = max(set(found[LISTED]) & set(found[ONE_ROUND]))
    two, one = found[LISTED][d]["n"], found[ONE_ROUND][d]["n"]
    return f"At d = {d} masked parity takes {two:,} clients in two rounds and {one:,}, {one / two:,.3g} times as many, in one."


def _protocol(name: str, d: int) -> LocalProtocol[Any]:
    return find_protocol(name).from_settings({"d": str(d)})


def _recovery(protocol: str, d: int, seed: int) -> Callable[[int, int], int]:
    if protocol == LITERAL:
        return literal_recovery(d, EPSILON, seed)
    return curator_recovery(d, EPSILON, seed) if protocol == CURATOR else exact_recovery(_protocol(protocol, d), EPSILON, seed)


def _cross_check(name: str, d: int, seed: int) -> Measurement:
    """Client by client and from the law, with the formula's count: a protocol, the paper's with ideal noise, or the curator's mechanism itself."""
    n = CLIENTS[name](d, EPSILON, 1 - TARGET)
    if name == CURATOR:
        return curator_cross_check(d, EPSILON, n, seed)
    users, laws = (150, 1200) if name in (LITERAL, CLAMPED) else (400, 1600)  # tens of thousands of clients each
    if name == LITERAL:
        right = sum(literal_by_clients(d, EPSILON, n, run) for run in range(seed * users, (seed + 1) * users))
        return {"clients": n, "users": [right, users], "law": [literal_recovery(d, EPSILON, seed)(n, laws), laws]}
    protocol = _protocol(name, d)

    def exact(result: Any, population: Population) -> bool:
        return protocol.true_error(result, population) == 0

    def trial() -> Trial:
        return Trial(protocol.algorithm(EPSILON, n), lambda drawn: protocol.synthetic(n, drawn), exact, n, EPSILON)

    return as_data(cross_check(trial, seed, users=users, laws=laws))


def _crossed(point: Point, measurement: Measurement) -> Check:
    way = "chosen by the mechanism itself" if point["cross"] == CURATOR else "client by client"
    return cross_check_shown(f"{LABELS[point['cross']]}, d = {point['d']}", measurement, LEAST, way)


def _trials(protocol: str, d: int, scale: Scale) -> int:
    """Runs for a search: more where they are cheap or where success grows slowly with n."""
    if protocol == LITERAL:
        return 3000 if scale == "quick" else 20_000
    if scale == "quick":
        return 1200 if d < 10 else 4000
    if protocol in (CLAMPED, CURATOR):
        return 3000 if d <= 12 else 2000
    return 12_000 if protocol == ONE_ROUND else 6000 if d <= 16 else 3000


def _reference_checks(found: Found) -> list[Check]:
    """Against the counts known before. The clamped noise saves clients, as post-processing may: known is the count with noise that is not."""
    known = {(protocol, d): (m, REFERENCE[protocol][d]) for protocol, by_d in found.items() for d, m in by_d.items() if d in REFERENCE[protocol]}
    ratios = {key: m["n"] / n for key, (m, n) in known.items() if key[0] != CLAMPED}
    apart = {key: max(m["low"] / n, n / m["high"]) for key, (m, n) in known.items() if key[0] != CLAMPED}
    saved = {d: m["n"] / n for (protocol, d), (m, n) in known.items() if protocol == CLAMPED}
    worst, farthest = max(ratios, key=ratios.__getitem__), max(apart, key=apart.__getitem__)
    return [
        Check(
            "Every count known before is met within 10 %, up to the confidence interval of the measurement",
            apart[farthest] <= WITHIN,
            f"n / known from {min(ratios.values()):.3f} to {ratios[worst]:.3f} ({_named(worst)}) over {len(ratios)} counts; the nearer end of the interval is "
            f"farthest from the known count, by a factor of {apart[farthest]:.3f}, at {_named(farthest)}",
        ),
        Check(
            "Noise on a lattice and clamped needs no more clients than the unbounded noise that it stands for",
            bool(saved) and max(saved.values()) <= 1,
            "clients over those known for unbounded noise: " + ", ".join(f"{ratio:.3f} at d = {d}" for d, ratio in saved.items()),
        ),
    ]


def _named(key: tuple[str, int]) -> str:
    return f"{LABELS[key[0]]}, d = {key[1]}"


def _order_check(found: Found) -> Check:
    shared = sorted(set.intersection(*(set(found[protocol]) for protocol in INTERACTIVE)))
    steps = {(d, better): found[worse][d]["low"] / found[better][d]["high"] for d in shared for worse, better in pairwise(INTERACTIVE)}
    least = min(steps, key=steps.__getitem__)
    gains = ", ".join(f"{found[LITERAL][d]['n'] / found[LISTED][d]['n']:.0f} at d = {d}" for d in shared)
    return Check(
        "Each improvement of the two-round protocol saves clients, the intervals apart",
        steps[least] > 1,
        f"list decoding against the printed protocol: {gains}; the least step saves at least {steps[least]:.2f} times ({LABELS[least[1]]}, d = {least[0]})",
    )


def _bound_check(found: Found) -> Check:
    bounds = {d: masked_parity_one_round_bound(d, EPSILON, TARGET) for d in found[ONE_ROUND]}
    margins = {d: m["n"] / bounds[d] for d, m in found[ONE_ROUND].items()}
    closest = min(margins, key=margins.__getitem__)
    return Check(
        "The one-round protocol respects the proven lower bound of all one-round protocols",
        all(m["low"] >= bounds[d] for d, m in found[ONE_ROUND].items()),
        f"closest at d = {closest}: {margins[closest]:.2f} times the bound",
    )


def _ratios(found: Found) -> dict[int, float]:
    """One round's clients over two rounds' (hashing), where both were measured."""
    return {d: found[ONE_ROUND][d]["n"] / found[HASHED][d]["n"] for d in found[ONE_ROUND] if d in found[HASHED]}


def parting(ratios: dict[int, float]) -> float:
    """The d, interpolated in the logarithm of the ratio, from which it stays above PARTED; infinite if it does not end above."""
    ds = sorted(ratios)
    below = [d for d in ds if ratios[d] < PARTED]
    if not ds or ratios[ds[-1]] < PARTED:
        return math.inf
    if not below:
        return ds[0]
    low, high = below[-1], ds[ds.index(below[-1]) + 1]
    return low + (high - low) * math.log(PARTED / ratios[low]) / math.log(ratios[high] / ratios[low])


def _parting_check(found: Found) -> Check:
    ratios = _ratios(found)
    at = parting(ratios)
    shown = ", ".join(f"{ratio:.2f} at d = {d}" for d, ratio in ratios.items())
    statement = "One round and two need about equally many clients up to d about 5 and part there for good"
    return Check(statement, 3.5 <= at <= 7, f"the ratio stays above {PARTED} from d = {at:.1f}: {shown}")


def _growth_check(found: Found) -> Check:
    """The last two measured d on each side: a power of 2 against a power of d."""
    one, two = found[ONE_ROUND], found[LISTED]
    (low, high), (narrow, wide) = sorted(one)[-2:], sorted(two)[-2:]
    doubling = math.log2(one[high]["n"] / one[low]["n"]) / (high - low)
    power = math.log(two[wide]["n"] / two[narrow]["n"]) / math.log(wide / narrow)
    return Check(
        "With one round the count about doubles with every bit; with two it grows like a power of d",
        0.75 <= doubling <= 1.25 and power <= 3,
        f"last steps: one round 2^({doubling:.2f} per bit), two rounds d^{power:.2f}",
    )


def _curator_check(found: Found) -> Check:
    """The mechanism against what is proven enough for it, and against the best local protocol."""
    curator = found[CURATOR]
    sufficient = {d: masked_parity_curator_clients(d, EPSILON, 1 - TARGET) for d in curator}
    d = max(set(curator) & set(found[LISTED]))
    factor = found[LISTED][d]["n"] / curator[d]["n"]
    return Check(
        "A trusted curator's measured minimum is at most what is proven to suffice, and ten times below the best local protocol",
        all(curator[d]["low"] <= sufficient[d] for d in curator) and factor > 10,
        ", ".join(f"d = {d}: {m['n']} [{m['low']}, {m['high']}], {sufficient[d]} suffice" for d, m in curator.items())
        + f"; list decoding needs {factor:.0f} times as many at d = {d}",
    )


def _table(found: Found) -> Table:
    rows: list[tuple[Any, ...]] = []
    for protocol, by_d in found.items():
        for d, m in by_d.items():
            known = REFERENCE[protocol].get(d)
            formula = CLIENTS[protocol](d, EPSILON, 1 - TARGET)
            ratio = None if known is None else round(m["n"] / known, 3)
            rows.append((LABELS[protocol], d, m["n"], m["low"], m["high"], formula, KINDS[protocol], known, ratio))
    columns = ("protocol", "d", "clients for 90 %, measured minimum", "95 % low", "95 % high", "formula", "kind of formula", "known before", "ratio to known")
    return Table("Least number of clients that learn every bit in 90 % of the runs, epsilon = 1", columns, rows)


def _figure(found: Found) -> Figure:
    curves = []
    for protocol, by_d in found.items():
        ds = sorted(by_d)
        low, high = ([float(by_d[d][side]) for d in ds] for side in ("low", "high"))
        curves.append(Curve(LABELS[protocol], [float(d) for d in ds], [float(by_d[d]["n"]) for d in ds], "measured", low, high))
    top = max(found[LISTED])
    grid = [d for d in range(2, top + 1) if d <= 16 or d % 4 == 0]
    narrow = range(2, max(found[ONE_ROUND]) + 1)
    one_round = [masked_parity_one_round_bound(d, EPSILON, TARGET) for d in narrow]
    information = masked_parity_interactive_bound(1, EPSILON)
    curator = [float(masked_parity_curator_clients(d, EPSILON, 1 - TARGET)) for d in grid]
    curves += [
        Curve("every one-round protocol, proven limit", [float(d) for d in narrow], one_round, "bound"),
        Curve("information limit (proven for one round on d bits)", [float(d) for d in grid], [information * d**2 for d in grid], "bound"),
        Curve("trusted curator, proven to suffice", [float(d) for d in grid], curator, "theory"),
    ]
    return Figure("clients", "Clients needed to learn masked parity", "secret bits d", "clients for 90 % success", curves, log_x=True, log_y=True)


EXPERIMENT = MaskedParityExperiment()
