"""`one-round-parity` is shown as it stands; wrong bounds, servers and randomizers in its place are not."""

import math
from typing import Any

import numpy as np
import pytest

from local_dp.bounds import channels
from local_dp.bounds import parity as one_round_parity
from local_dp.bounds.parity import parity_one_round_bound
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.one_round_parity import runs
from local_dp.experiments.claims.frontier.one_round_parity.claim import EXPERIMENT, KNOWN
from local_dp.experiments.claims.frontier.one_round_parity.runs import DENY, EPSILON, SEVERAL, TARGET, TWO, guess
from local_dp.experiments.lab.claim import Finding, Measurement, Point, Scale
from local_dp.interaction import Nonadaptive
from local_dp.protocols.parity.parity import ParityDeny
from local_dp.randomizers import one_bit
from local_dp.randomizers.one_bit import flip_weight
from local_dp.randomizers.signs import deny
from local_dp.tallies import Tally
from tests.support.runs.quick import lost


def invented(point: Point) -> Measurement:
    """A measurement that agrees with what is known."""
    kind, d = point["kind"], point["d"]
    if kind == "bound":
        return {"n": math.ceil(parity_one_round_bound(d, EPSILON, TARGET)), "successes": round(0.95 * point["trials"])}
    if kind == "cross":
        return {"clients": 500, "users": [362, 400], "law": [1440, 1600]}
    n = KNOWN.get(kind, {}).get(d, 0) or guess(kind, d)
    return {"n": n, "low": 0.98 * n, "high": 1.02 * n, "trials": 1}


def found(*, at: tuple[str, ...] = ("channels",), **changed: Any) -> Finding:
    """The finding of invented measurements; those of the kinds `at` are made now, at d up to 4, and those named in `changed` are given."""
    measured: list[tuple[Point, Measurement]] = []
    for place, point in enumerate(EXPERIMENT.points("quick")):
        own = str(point.get("of", point["kind"]))
        if point["kind"] == "channels" or (own in at and point["d"] <= 4):
            measured.append((point, EXPERIMENT.measure(point, 100 + place)))
        else:
            measured.append((point, invented(point) | changed.get(own.replace(" ", "_"), {})))
    return EXPERIMENT.conclude(measured, "quick")


def test_shown() -> None:
    """With channels and naming suspects at d = 4 measured, and the rest as known; a point measured twice is identical."""
    assert found(at=(DENY,)).verdict == "shown", lost(found(at=(DENY,)))
    point = {"kind": DENY, "d": 4, "trials": 500}
    assert EXPERIMENT.measure(point, 7) == EXPERIMENT.measure(point, 7)


def test_counts_that_are_not_so_are_not_shown() -> None:
    """Masks that need no more, two rounds that need what one round needs, a count below its bound, a search that failed."""
    assert "fewer clients than random masks" in lost(found(random_masks={"n": 1, "low": 1.0, "high": 2.0}))
    assert "known, within 5 %" in lost(found(named_suspects={"n": 10**6, "low": 10**6, "high": 10**6}))
    assert "respects the bound" in lost(found(halving={"n": 5, "low": 4.0, "high": 6.0, "successes": 1200}))
    assert "succeed more often" in lost(found(two_rounds={"successes": 1080}))
    assert "Every search" in lost(found(three_rounds={"failed": "never"}))


def test_a_curvature_at_the_other_end_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With kappa at +1/C the best of all channels at d = 3 tells more than the bound."""

    def at_plus(epsilon: float) -> float:
        most = 1 / response_gain(epsilon)
        return float(((1 + most) * math.log1p(most) - most) / most**2)

    monkeypatch.setattr(one_round_parity, "report_curvature", at_plus)
    assert "no report tells more" in lost(found())


def test_squares_as_below_ln_3_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With G = 1/C^2 at every epsilon the best of all channels at epsilon 3 tells more than the bound."""
    monkeypatch.setattr(channels, "LN3", math.inf)
    assert "no report tells more" in lost(found())


def test_a_server_that_takes_the_most_named_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never succeeds, and the search says so."""
    right = ParityDeny.algorithm

    def wrong(self: ParityDeny, epsilon: float, clients: int) -> Any:
        algorithm: Any = right(self, epsilon, clients)

        def most(tallies: tuple[Tally, ...]) -> int:
            return int(np.argmax(tallies[0].counts[0]))

        return Nonadaptive(algorithm.queries, most)

    monkeypatch.setattr(ParityDeny, "algorithm", wrong)
    assert "Every search" in lost(found(at=(DENY,)))


@pytest.mark.parametrize(("twin", "lost_check"), [("agrees", "client by client"), ("leaks", "client by client")])
def test_a_wrong_randomizer_is_not_shown(monkeypatch: pytest.MonkeyPatch, twin: str, lost_check: str) -> None:
    """Clients who name what agrees do not do as the law says; thresholds of twice the epsilon lose more than is charged."""
    if twin == "agrees":
        right = deny._ruled_out
        monkeypatch.setattr(deny, "_ruled_out", lambda held, named: right(held, named) ^ np.uint8(1))
    else:
        monkeypatch.setattr(one_bit, "flip_weight", lambda nano, bits: flip_weight(2 * nano, bits))
    assert lost_check in lost(found(at=(DENY,)))


def test_every_kind_has_its_points() -> None:
    """Each of the five protocols is counted in both scales, and those of several rounds are run at the bound from the d where they beat it."""
    scales: tuple[Scale, ...] = ("quick", "full")
    for scale in scales:
        points = EXPERIMENT.points(scale)
        assert {point["kind"] for point in points} == {"channels", "bound", "cross", *runs.ONE_ROUND, *SEVERAL}
        for kind in SEVERAL:
            assert runs.BEATEN_FROM[kind] in {point["d"] for point in points if point.get("of") == kind and point["kind"] == "bound"}
    assert TWO in {point["of"] for point in points if point["kind"] == "cross"}
