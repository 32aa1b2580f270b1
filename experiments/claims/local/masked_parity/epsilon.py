"""What masked parity costs from a small epsilon to a large one: list decoding by the reports that tell most, by one-bit reports, and the information limit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from local_dp.bounds.masked_parity import masked_parity_interactive_bound, masked_parity_list_clients
from local_dp.experiments.lab.claim import Check, Curve, Figure, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.minimal_clients import exact_recovery, measured_clients, reached_check
from local_dp.experiments.lab.store import as_data
from local_dp.masked.protocols import MaskedParityList
from local_dp.noise import stream_key
from local_dp.populations.population import Population

D, TARGET = 8, 0.9
BEST, ONE_BIT = "two rounds, the reports that tell most", "two rounds, one bit a report"
GOALS = {3.0: 460, 4.0: 180}  # clients at most
LEAST = 0.9  # the success that so many have, asked one by one
LARGE = 4.0  # from this epsilon on, at least FEWER times fewer clients than by one bit
FEWER = 4.0
EPSILONS: dict[Scale, tuple[float, ...]] = {"quick": (0.25, 1.0, 3.0, 4.0), "full": (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)}
TRIALS: dict[Scale, int] = {"quick": 400, "full": 6000}
RUNS: dict[Scale, int] = {"quick": 150, "full": 2000}
Measured = list[tuple[Point, Measurement]]


@dataclass(frozen=True)
class OneBitList(MaskedParityList):
    """List decoding whose every report is one hashed bit, with two bits of r left open, as is best for it."""

    one_bit: ClassVar[bool] = True
    bits: int = 2


REPORTS: dict[str, Callable[[], MaskedParityList]] = {BEST: lambda: MaskedParityList(d=D), ONE_BIT: lambda: OneBitList(d=D)}


def epsilon_points(scale: Scale) -> list[Point]:
    """A search for each kind of report and epsilon, and the goals client by client."""
    searches = [{"reports": kind, "epsilon": epsilon, "trials": TRIALS[scale]} for epsilon in EPSILONS[scale] for kind in REPORTS]
    return [*searches, *({"goal": n, "epsilon": epsilon, "runs": RUNS[scale]} for epsilon, n in GOALS.items())]


def measure_epsilon(point: Point, seed: int) -> Measurement:
    """The least clients, or how often the goal's clients succeed."""
    epsilon = point["epsilon"]
    if "goal" in point:
        return as_data(cross_check(lambda: _trial(point["goal"], epsilon), seed, users=point["runs"], laws=point["runs"]))
    own = int.from_bytes(stream_key(f"masked-parity {point['reports']} {epsilon}", seed, D)[:8], "little")
    guess = max(3 * D, masked_parity_list_clients(D, epsilon, 1 - TARGET))
    return as_data(measured_clients(exact_recovery(REPORTS[point["reports"]](), epsilon, own), guess, target=TARGET, trials=point["trials"], least=2 * D))


def _trial(n: int, epsilon: float) -> Trial:
    protocol = REPORTS[BEST]()

    def exact(result: Any, population: Population) -> bool:
        return protocol.true_error(result, population) == 0

    return Trial(protocol.algorithm(epsilon, n), lambda drawn: protocol.synthetic(n, drawn), exact, n, epsilon)


@dataclass(frozen=True)
class ByEpsilon:
    """The checks, the figure and its table; without a count that was not found, the first check alone."""

    checks: list[Check]
    tables: list[Table]
    figures: list[Figure]


def conclude_epsilon(measured: Measured) -> ByEpsilon:
    """What the measurements of `epsilon_points` show."""
    counts = [(point, found) for point, found in measured if "goal" not in point]
    reached = reached_check([(f"{point['reports']}, epsilon {point['epsilon']:g}", found) for point, found in counts])
    goals = [cross_check_shown(f"{BEST}, d = {D}, epsilon {point['epsilon']:g}", found, LEAST) for point, found in measured if "goal" in point]
    if not reached.shown:
        return ByEpsilon([reached, *goals], [], [])
    by_kind = {kind: {point["epsilon"]: found for point, found in counts if point["reports"] == kind} for kind in REPORTS}
    table, figure = _table(by_kind), _figure(by_kind)
    return ByEpsilon([reached, *goals, _goal_check(by_kind[BEST]), _never_worse(by_kind), figure_check([figure], table)], [table], [figure])


Found = dict[float, Measurement]


def _goal_check(best: Found) -> Check:
    known = {epsilon: best[epsilon] for epsilon in GOALS if epsilon in best}
    said = ", ".join(f"{found['n']:,} [{found['low']:,}, {found['high']:,}] at epsilon {epsilon:g}" for epsilon, found in known.items())
    statement = f"Masked parity at d = {D} takes at most {GOALS[4.0]} clients at epsilon 4 and {GOALS[3.0]} at epsilon 3, the whole interval of the measurement"
    return Check(statement, len(known) == len(GOALS) and all(found["high"] <= GOALS[epsilon] for epsilon, found in known.items()), said)


def _never_worse(by_kind: dict[str, Found]) -> Check:
    best, one = by_kind[BEST], by_kind[ONE_BIT]
    fewer = {epsilon: one[epsilon]["n"] / found["n"] for epsilon, found in best.items()}
    beside = {epsilon: found["n"] / masked_parity_interactive_bound(D, epsilon) for epsilon, found in best.items()}
    shown = all(found["low"] <= one[epsilon]["high"] for epsilon, found in best.items()) and all(
        fewer[epsilon] >= FEWER for epsilon in fewer if epsilon >= LARGE
    )
    said = "; ".join(f"epsilon {epsilon:g}: {fewer[epsilon]:.3g} times fewer, {beside[epsilon]:.3g} times the information limit" for epsilon in fewer)
    statement = f"Reports that tell most never take more clients than one bit, up to the intervals; from epsilon {LARGE:g} on {FEWER:g} times fewer"
    return Check(statement, shown, said)


def _table(by_kind: dict[str, Found]) -> Table:
    columns = ("reports", "epsilon", "clients for 90 %, measured minimum", "95 % low", "95 % high", "information limit")
    rows: list[tuple[Any, ...]] = [
        (kind, epsilon, found["n"], found["low"], found["high"], round(masked_parity_interactive_bound(D, epsilon), 1))
        for kind, by_epsilon in by_kind.items()
        for epsilon, found in by_epsilon.items()
    ]
    return Table(f"Least number of clients that learn every bit in 90 % of the runs, d = {D}", columns, rows)


def _figure(by_kind: dict[str, Found]) -> Figure:
    curves = [Curve(kind, list(found), [float(each["n"]) for each in found.values()], "measured", *_band(found)) for kind, found in by_kind.items()]
    grid = sorted(by_kind[BEST])
    limit = [masked_parity_interactive_bound(D, epsilon) for epsilon in grid]
    curves.append(Curve("information limit (proven for one round on d bits)", grid, limit, "bound"))
    title = f"Clients needed to learn masked parity, d = {D}"
    return Figure("clients-by-epsilon", title, "epsilon", "clients for 90 % success", curves, log_x=True, log_y=True)


def _band(found: Found) -> tuple[list[float], list[float]]:
    return [float(each["low"]) for each in found.values()], [float(each["high"]) for each in found.values()]
