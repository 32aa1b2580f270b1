"""The local half of the experiment `parity`: verdicts follow the measurements, and wrong protocols lose them at the quick scale."""

from typing import Any

import pytest

from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound, parity_masks_bound
from local_dp.errors import InputError
from local_dp.experiments.claims.local.parity.local import HALVING, ONE_ROUND, REFERENCE, local_curves, local_points, measure_local
from local_dp.experiments.lab.claim import Check, Measurement, Point
from local_dp.interaction import Nonadaptive
from local_dp.protocols.registry import PROTOCOLS
from local_dp.randomizers import one_bit

pytestmark = pytest.mark.long
Measured = list[tuple[Point, Measurement]]


def invented(protocol: str, d: int) -> Measurement:
    """A measurement that agrees with what is known."""
    n = 0.97 * (parity_halving_clients(d, 1.0, 0.1) if protocol == HALVING else REFERENCE[protocol][d])
    return {"n": n, "low": 0.98 * n, "high": 1.02 * n, "trials": 1}


def made(as_if: str = "") -> Measured:
    """Measurements at every full point as they should be, or as if every protocol were one."""
    return [
        (point, {"clients": 500, "users": [362, 400], "law": [1440, 1600]} if "cross" in point else invented(as_if or point["protocol"], point["d"]))
        for point in local_points("quick")
    ]


def lost(measured: Measured) -> list[Check]:
    return [check for check in local_curves(measured)[2] if not check.shown]


def test_checks_follow_the_measurements() -> None:
    """Counts as known are shown; a halving that needs a factor d more, or a one-round learner below its limit, is not."""
    curves, tables, checks = local_curves(made())
    assert all(check.shown for check in checks), checks
    assert len(curves) == 4
    assert len(tables[0].rows) == len([point for point, _ in made() if "cross" not in point])
    assert lost(made(as_if=ONE_ROUND))
    magic = [(point, m if "cross" in point else {key: value / 3 for key, value in m.items()}) for point, m in made()]
    assert [check.statement for check in lost(magic) if "lower bounds" in check.statement]


def test_a_point_is_reproducible_and_near_what_is_known() -> None:
    """One quick point of each protocol, twice, gives one result, at most 10 % above the known count up to its interval."""
    assert {point["kind"] for point in local_points("quick")} == {"local"}
    for protocol in (HALVING, ONE_ROUND):
        point = {"kind": "local", "protocol": protocol, "d": 4, "trials": 1000}
        measured = measure_local(point, 2)
        assert measured == measure_local(point, 2)
        assert measured["low"] <= 1.1 * REFERENCE[protocol][4]


def quick() -> Measured:
    """The one-round protocol's quick points at d = 4, measured, among known others."""
    known = {(point.get("protocol"), point.get("cross"), point["d"]): measurement for point, measurement in made()}
    return [
        (
            point,
            measure_local(point, 1)
            if ONE_ROUND in (point.get("protocol"), point.get("cross")) and point["d"] == 4
            else known[point.get("protocol"), point.get("cross"), point["d"]],
        )
        for point in local_points("quick")
    ]


@pytest.mark.parametrize(
    ("twin", "why"), [("right", ""), ("decodes to 0", "does not reach"), ("twice epsilon", "budget"), ("one short", "asked"), ("leaks", "loss 2.0")]
)
def test_wrong_protocols_are_not_shown(monkeypatch: pytest.MonkeyPatch, twin: str, why: str) -> None:
    """The shipped protocol is shown; a decoder to 0, twice the epsilon, a client who is never asked and a leaking channel are not, and why is said."""
    kind = PROTOCOLS[ONE_ROUND]
    right, weight = kind.algorithm, one_bit.flip_weight

    def wrong(self: Any, epsilon: float, clients: int) -> Any:
        if twin == "twice epsilon":
            return right(self, 2 * epsilon, clients)
        algorithm: Any = right(self, epsilon, clients - (twin == "one short"))
        return Nonadaptive(algorithm.queries, lambda tallies: 0) if twin == "decodes to 0" else algorithm

    monkeypatch.setattr(kind, "algorithm", wrong)
    if twin == "leaks":
        monkeypatch.setattr(one_bit, "flip_weight", lambda nano, bits: weight(2 * nano, bits))
    failures = lost(quick())
    assert bool(failures) == bool(why), failures
    assert not why or any(why in check.evidence for check in failures), failures


def test_bounds_refuse_what_is_no_budget() -> None:
    """The bounds hold at every epsilon that is a budget, beyond ln 3 too; one that is none is refused by both."""
    for bound in (parity_interactive_bound, parity_masks_bound):
        assert bound(4, 1.0986, 0.9) > bound(4, 1.0987, 0.9) > bound(4, 24.0, 0.9) > 0
        for epsilon in (-1.0, 0.0, 25.0):
            with pytest.raises(InputError, match="epsilon"):
                bound(4, epsilon, 0.9)
