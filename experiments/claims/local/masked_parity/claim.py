"""Masked parity: what interaction buys, measured as the least number of clients that learn exactly in 90 % of the runs.

`local-dp experiment masked-parity --full` measures every client count below; about 5 minutes on one core.
"""

import math
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

from local_dp.bounds.masked_parity import masked_parity_curator_clients, masked_parity_interactive_bound, masked_parity_one_round_bound
from local_dp.experiments.claims.local.masked_parity.epsilon import Goal, Reports, epsilon_finding, epsilon_points
from local_dp.experiments.claims.local.masked_parity.runs import (
    CLAMPED,
    CLIENTS,
    CURATOR,
    EPSILON,
    FRESH,
    HASHED,
    LABELS,
    LISTED,
    LITERAL,
    ONE_ROUND,
    TARGET,
    Count,
    Users,
    count,
)
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.cross_check import Crossing, cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.minimal_clients import ClientCount, Search, reached_check

INTERACTIVE = (LITERAL, FRESH, HASHED, LISTED)
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
NORMAL = "normal approximation"
KINDS = dict.fromkeys(LABELS, NORMAL) | {LISTED: "hashing's times a measured share", CURATOR: "proven sufficient"}  # what the formula's count is
CROSSED = 4  # the d at which each is run client by client, with its formula's count
LEAST = 0.85  # the success that counts there as what the formula says, 90 %
Place: TypeAlias = Count | Users | Reports | Goal
Result: TypeAlias = Search | Crossing
Counts: TypeAlias = dict[str, dict[int, ClientCount]]  # by protocol and d


class MaskedParityExperiment(Experiment[Place, Result]):
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

    def points(self, scale: Scale) -> list[Place]:
        if scale == "quick":
            dimensions = {LITERAL: (4, 8), CLAMPED: (4,), FRESH: (4, 8), HASHED: (2, 4, 6, 8, 10), LISTED: (4, 8), ONE_ROUND: (2, 4, 6, 8, 10)}
            dimensions[CURATOR] = (2, 4, 6, 8, 10)
        else:
            wide = (4, 8, 16, 32, 64)
            hashed = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 32, 64)
            dimensions = {LITERAL: wide, CLAMPED: (4, 8, 16), FRESH: wide, HASHED: hashed, LISTED: wide, ONE_ROUND: (*range(2, 9), 10, 12, 14, 16, 18, 20)}
            dimensions[CURATOR] = (2, 4, 6, 8, 10, 12, 14, 16)
        counts = (count(protocol, d, scale) for protocol, ds in dimensions.items() for d in ds)
        return [*counts, *(Users(protocol, CROSSED) for protocol in LABELS), *epsilon_points(scale)]

    def conclude(self, measurements: Rows[Place, Result], scale: Scale) -> Finding:
        searches: Rows[Count, Search] = sorted(of_kind(measurements, Count), key=lambda row: row[0].d)
        crossed = [_crossed(p, m) for p, m in of_kind(measurements, Users)]
        epsilon_checks, epsilon_tables, epsilon_figures = epsilon_finding(measurements)
        reached = reached_check([(str(p), m) for p, m in searches])
        if not reached.shown:
            return Finding([reached, *crossed, *epsilon_checks], headline="A search did not find a least number of clients.")
        counts: Counts = {protocol: {p.d: m for p, m in searches if p.protocol == protocol and isinstance(m, ClientCount)} for protocol in LABELS}
        checks = [reached, *_reference_checks(counts)]
        checks += [check(counts) for check in (_order_check, _bound_check, _parting_check, _growth_check, _curator_check)]
        table, figure = _table(counts), _figure(counts)
        return Finding(
            checks=[*checks, *crossed, figure_check([figure], table), *epsilon_checks, intervals_check()],
            tables=[table, *epsilon_tables],
            figures=[figure, *epsilon_figures],
            notes=[
                "Examples are uniform: a learner for every distribution would also learn parity, which no efficient local protocol does.",
                f"epsilon = {EPSILON:g} unless stated otherwise. A run succeeds if every secret bit is right. Every count is a measured minimum with its 95 % "
                "interval. Tallies are drawn from their exact law; the cross-checks compare it with runs in which every client answers. The curator uses the "
                "exponential mechanism over all 2^(d+1) rules.",
                "The proven limit holds for every one-round (non-interactive) local protocol, at any epsilon. The information limit is proven for one round "
                "on the first d bits and heuristic for interactive protocols, sequentially or fully.",
            ],
            headline=_headline(counts),
        )


def _headline(counts: Counts) -> str:
    """At the greatest dimension in which the best protocol of either kind was run."""
    d = max(set(counts[LISTED]) & set(counts[ONE_ROUND]))
    two, one = counts[LISTED][d].n, counts[ONE_ROUND][d].n
    return f"At d = {d} masked parity takes {two:,} clients in two rounds and {one:,}, {one / two:,.3g} times as many, in one."


def _crossed(point: Users, crossing: Crossing) -> Check:
    return cross_check_shown(str(point), crossing, LEAST, "chosen by the mechanism itself" if point.protocol == CURATOR else "client by client")


def _reference_checks(counts: Counts) -> list[Check]:
    """Against the counts known before. Clamping the noise saves clients, as post-processing may; the known count is of noise that is not clamped."""
    known = {
        str(Users(protocol, d)): (m, REFERENCE[protocol][d])
        for protocol, by_d in counts.items()
        for d, m in by_d.items()
        if protocol != CLAMPED and d in REFERENCE[protocol]
    }
    ratios = {name: m.n / n for name, (m, n) in known.items()}
    apart = {name: max(m.low / n, n / m.high) for name, (m, n) in known.items()}
    saved = {d: m.n / REFERENCE[CLAMPED][d] for d, m in counts[CLAMPED].items() if d in REFERENCE[CLAMPED]}
    worst, farthest = max(ratios, key=ratios.__getitem__), max(apart, key=apart.__getitem__)
    return [
        Check(
            "Every count known before is met within 10 %, up to the confidence interval of the measurement",
            apart[farthest] <= WITHIN,
            f"n / known from {min(ratios.values()):.3f} to {ratios[worst]:.3f} ({worst}) over {len(ratios)} counts; the nearer end of the interval is "
            f"farthest from the known count, by a factor of {apart[farthest]:.3f}, at {farthest}",
        ),
        Check(
            "Noise on a lattice and clamped needs no more clients than the unbounded noise that it stands for",
            bool(saved) and max(saved.values()) <= 1,
            "clients over those known for unbounded noise: " + ", ".join(f"{ratio:.3f} at d = {d}" for d, ratio in saved.items()),
        ),
    ]


def _order_check(counts: Counts) -> Check:
    shared = sorted(set.intersection(*(set(counts[protocol]) for protocol in INTERACTIVE)))
    steps = {(d, better): counts[worse][d].low / counts[better][d].high for d in shared for worse, better in pairwise(INTERACTIVE)}
    least = min(steps, key=steps.__getitem__)
    gains = ", ".join(f"{counts[LITERAL][d].n / counts[LISTED][d].n:.0f} at d = {d}" for d in shared)
    return Check(
        "Each improvement of the two-round protocol saves clients, the intervals apart",
        steps[least] > 1,
        f"list decoding against the printed protocol: {gains}; the least step saves at least {steps[least]:.2f} times ({LABELS[least[1]]}, d = {least[0]})",
    )


def _bound_check(counts: Counts) -> Check:
    bounds = {d: masked_parity_one_round_bound(d, EPSILON, TARGET) for d in counts[ONE_ROUND]}
    margins = {d: m.n / bounds[d] for d, m in counts[ONE_ROUND].items()}
    closest = min(margins, key=margins.__getitem__)
    return Check(
        "The one-round protocol respects the proven lower bound of all one-round protocols",
        all(m.low >= bounds[d] for d, m in counts[ONE_ROUND].items()),
        f"closest at d = {closest}: {margins[closest]:.2f} times the bound",
    )


def _ratios(counts: Counts) -> dict[int, float]:
    """One round's clients over two rounds' (hashing), where both were measured."""
    return {d: counts[ONE_ROUND][d].n / counts[HASHED][d].n for d in counts[ONE_ROUND] if d in counts[HASHED]}


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


def _parting_check(counts: Counts) -> Check:
    ratios = _ratios(counts)
    at = parting(ratios)
    shown = ", ".join(f"{ratio:.2f} at d = {d}" for d, ratio in ratios.items())
    statement = "One round and two need about equally many clients up to d about 5 and part there for good"
    return Check(statement, 3.5 <= at <= 7, f"the ratio stays above {PARTED} from d = {at:.1f}: {shown}")


def _growth_check(counts: Counts) -> Check:
    """The last two measured d on each side: a power of 2 against a power of d."""
    one, two = counts[ONE_ROUND], counts[LISTED]
    (low, high), (narrow, wide) = sorted(one)[-2:], sorted(two)[-2:]
    doubling = math.log2(one[high].n / one[low].n) / (high - low)
    power = math.log(two[wide].n / two[narrow].n) / math.log(wide / narrow)
    return Check(
        "With one round the count about doubles with every bit; with two it grows like a power of d",
        0.75 <= doubling <= 1.25 and power <= 3,
        f"last steps: one round 2^({doubling:.2f} per bit), two rounds d^{power:.2f}",
    )


def _curator_check(counts: Counts) -> Check:
    """The mechanism against what is proven enough for it, and against the best local protocol."""
    curator = counts[CURATOR]
    sufficient = {d: masked_parity_curator_clients(d, EPSILON, 1 - TARGET) for d in curator}
    d = max(set(curator) & set(counts[LISTED]))
    factor = counts[LISTED][d].n / curator[d].n
    return Check(
        "A trusted curator's measured minimum is at most what is proven to suffice, and ten times below the best local protocol",
        all(curator[d].low <= sufficient[d] for d in curator) and factor > 10,
        ", ".join(f"d = {d}: {m.n} [{m.low}, {m.high}], {sufficient[d]} suffice" for d, m in curator.items())
        + f"; list decoding needs {factor:.0f} times as many at d = {d}",
    )


def _table(counts: Counts) -> Table:
    rows: list[tuple[Any, ...]] = []
    for protocol, by_d in counts.items():
        for d, m in by_d.items():
            known = REFERENCE[protocol].get(d)
            ratio = None if known is None else round(m.n / known, 3)
            rows.append((LABELS[protocol], d, m.n, m.low, m.high, CLIENTS[protocol](d, EPSILON, 1 - TARGET), KINDS[protocol], known, ratio))
    columns = ("protocol", "d", "clients for 90 %, measured minimum", "95 % low", "95 % high", "formula", "kind of formula", "known before", "ratio to known")
    return Table("Least number of clients that learn every bit in 90 % of the runs, epsilon = 1", columns, rows)


def _figure(counts: Counts) -> Figure:
    curves = [curve(LABELS[protocol], ((d, m.n, m.low, m.high) for d, m in by_d.items())) for protocol, by_d in counts.items()]
    grid = [d for d in range(2, max(counts[LISTED]) + 1) if d <= 16 or d % 4 == 0]
    one_round = ((d, masked_parity_one_round_bound(d, EPSILON, TARGET)) for d in range(2, max(counts[ONE_ROUND]) + 1))
    information = ((d, masked_parity_interactive_bound(d, EPSILON)) for d in grid)
    curves += [
        curve("every one-round protocol, proven limit", one_round, "bound"),
        curve("information limit (proven for one round on d bits)", information, "bound"),
        curve("trusted curator, proven to suffice", ((d, masked_parity_curator_clients(d, EPSILON, 1 - TARGET)) for d in grid), "theory"),
    ]
    return Figure("clients", "Clients needed to learn masked parity", "secret bits d", "clients for 90 % success", curves, log_x=True, log_y=True)


EXPERIMENT = MaskedParityExperiment()
