"""The local part of the parity experiment: least numbers of clients with and without interaction, beside the lower bounds."""

from collections.abc import Callable
from typing import Any

from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound, parity_masks_bound, parity_one_round_clients
from local_dp.bounds.response import response_gain
from local_dp.experiments.lab.claim import Check, Curve, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.minimal_clients import exact_recovery, measured_clients, reached_check
from local_dp.experiments.lab.store import as_data
from local_dp.noise import stream_key
from local_dp.populations.population import Population
from local_dp.protocols.registry import find_protocol

EPSILON, TARGET = 1.0, 0.9
HALVING, ONE_ROUND = "parity", "parity-one-round"
LABELS = {HALVING: "local, interactive (halving)", ONE_ROUND: "local, one round"}
# the counts that earlier simulations found (limits 4.2)
REFERENCE: dict[str, dict[int, float]] = {
    HALVING: {4: 454, 6: 2_040, 8: 7_490, 10: 3.3e4, 12: 1.2e5},
    ONE_ROUND: {4: 740, 6: 4_530, 8: 2.05e4, 10: 9.9e4, 12: 4.4e5},
}
WITHIN = 1.1
_FORMULA: dict[str, Callable[[int, float, float], int]] = {
    HALVING: parity_halving_clients,
    ONE_ROUND: parity_one_round_clients,
}
_BOUND: dict[str, Callable[[int, float, float], float]] = {
    HALVING: parity_interactive_bound,
    ONE_ROUND: parity_masks_bound,
}


LEAST = 0.85  # the success at the formula's count, client by client, that counts as what the formula says, 90 %


def local_points(scale: Scale) -> list[Point]:
    """Each protocol at each d: 4, 6, 8, and in full 10 and 12 too; and each client by client at d = 4."""
    dimensions = (4, 6, 8) if scale == "quick" else (4, 6, 8, 10, 12)
    trials = 1500 if scale == "quick" else 4000
    counts = [{"kind": "local", "protocol": protocol, "d": d, "trials": trials} for protocol in LABELS for d in dimensions]
    return [*counts, *({"kind": "local", "cross": protocol, "d": min(dimensions)} for protocol in LABELS)]


def measure_local(point: Point, seed: int) -> Measurement:
    """The least number of clients that find the parity exactly in 90 % of the runs, with a 95 % interval; or a cross-check."""
    name, d = point["cross"] if "cross" in point else point["protocol"], point["d"]
    protocol, guess = find_protocol(name).from_settings({"d": str(d)}), _FORMULA[name](d, EPSILON, 1 - TARGET)
    if "cross" in point:

        def exact(result: Any, population: Population) -> bool:
            return protocol.true_error(result, population) == 0

        return as_data(
            cross_check(lambda: Trial(protocol.algorithm(EPSILON, guess), lambda drawn: protocol.synthetic(guess, drawn), exact, guess, EPSILON), seed)
        )
    own_seed = int.from_bytes(stream_key(f"parity {name}", seed, d)[:8], "little")
    return as_data(measured_clients(exact_recovery(protocol, EPSILON, own_seed), guess, target=TARGET, trials=point["trials"], least=2 * d))


def local_curves(measurements: list[tuple[Point, Measurement]]) -> tuple[list[Curve], list[Table], list[Check]]:
    """The measured curves and the lower bounds over d, a table in clients and in units of C^2 2^d, and what they show; if a search failed, only that."""
    counted = [(point, measurement) for point, measurement in measurements if "cross" not in point]
    crossed = [cross_check_shown(f"{LABELS[p['cross']]}, d = {p['d']}", m, LEAST) for p, m in measurements if "cross" in p]
    reached = reached_check([(f"{LABELS[point['protocol']]}, d = {point['d']}", measurement) for point, measurement in counted])
    if not reached.shown:
        return [], [], [reached, *crossed]
    found: Found = {protocol: {} for protocol in LABELS}
    for point, measurement in sorted(counted, key=lambda pair: int(pair[0]["d"])):
        found[point["protocol"]][point["d"]] = measurement
    curves = [curve for protocol, by_d in found.items() for curve in _curves(protocol, by_d)]
    return curves, [_table(found)], [reached, *_known_checks(found), _bound_check(found), *_interaction_checks(found), *crossed]


Found = dict[str, dict[int, Measurement]]


def _units(d: int) -> float:
    """C^2 2^d, the clients that put one standard deviation between the right parity and the others."""
    return response_gain(EPSILON) ** 2 * 2.0**d


def _curves(protocol: str, by_d: dict[int, Measurement]) -> list[Curve]:
    ds = [float(d) for d in by_d]
    n, low, high = ([float(m[key]) for m in by_d.values()] for key in ("n", "low", "high"))
    bound = [_BOUND[protocol](d, EPSILON, TARGET) for d in by_d]
    limit = "every sequentially interactive protocol, proven limit" if protocol == HALVING else "one round, one randomized parity each, proven limit"
    return [Curve(LABELS[protocol], ds, n, "measured", low, high), Curve(limit, ds, bound, "bound")]


def _table(found: Found) -> Table:
    rows: list[tuple[Any, ...]] = []
    for protocol, by_d in found.items():
        for d, m in by_d.items():
            known, formula, bound = REFERENCE[protocol][d], _FORMULA[protocol](d, EPSILON, 1 - TARGET), _BOUND[protocol](d, EPSILON, TARGET)
            per_unit = round(m["n"] / _units(d), 2)
            rows.append((LABELS[protocol], d, m["n"], m["low"], m["high"], per_unit, formula, round(bound), known, round(m["n"] / known, 3)))
    columns = (
        "protocol",
        "d",
        "clients for 90 %, measured minimum",
        "95 % low",
        "95 % high",
        "in C^2 2^d",
        "formula (normal approximation)",
        "proven lower bound",
        "known before",
        "ratio to known",
    )
    return Table("Parity in the local model: least number of clients, epsilon = 1", columns, rows)


def _known_checks(found: Found) -> list[Check]:
    known = [(protocol, d, m, REFERENCE[protocol][d]) for protocol, by_d in found.items() for d, m in by_d.items()]
    ratios = {f"{LABELS[protocol]}, d = {d}": m["n"] / n for protocol, d, m, n in known}
    apart = {f"{LABELS[protocol]}, d = {d}": m["low"] / n for protocol, d, m, n in known}
    worst, farthest = max(ratios, key=ratios.__getitem__), max(apart, key=apart.__getitem__)
    return [
        Check(
            "No local parity protocol needs 10 % more clients than the count known for it, up to the confidence interval of the measurement",
            apart[farthest] <= WITHIN,
            f"n / known from {min(ratios.values()):.3f} to {ratios[worst]:.3f} ({worst}); the intervals' lower ends up to {apart[farthest]:.3f} ({farthest})",
        )
    ]


def _bound_check(found: Found) -> Check:
    margins = {protocol: [m["low"] / _BOUND[protocol](d, EPSILON, TARGET) for d, m in by_d.items()] for protocol, by_d in found.items()}
    return Check(
        "Local parity respects the proven lower bounds: for every sequentially interactive protocol, and for one round with one randomized parity a client "
        f"(epsilon = {EPSILON:g})",
        all(min(ratios) >= 1 for ratios in margins.values()),
        "closest, of the intervals' lower ends: "
        + ", ".join(f"{min(ratios):.2f} times its bound ({LABELS[protocol]})" for protocol, ratios in margins.items()),
    )


def _interaction_checks(found: Found) -> list[Check]:
    units = [m["n"] / _units(d) for d, m in found[HALVING].items()]
    ratios = {d: found[ONE_ROUND][d]["n"] / m["n"] for d, m in found[HALVING].items()}
    first, last = min(ratios), max(ratios)
    apart = found[ONE_ROUND][last]["low"] / found[HALVING][last]["high"] > found[ONE_ROUND][first]["high"] / found[HALVING][first]["low"]
    return [
        Check(
            "Halving in rounds does not save the exponential: it needs a constant times C^2 2^d at every d measured",
            max(units) <= 1.3 * min(units),
            f"the constant is {min(units):.2f} to {max(units):.2f}",
        ),
        Check(
            "Halving in rounds saves a factor against one round that grows with d",
            apart,
            "one round over halving: " + ", ".join(f"{ratio:.2f} at d = {d}" for d, ratio in ratios.items()),
        ),
    ]
