"""`tracing` is shown as it stands; wrong choices in its place are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Bools
from local_dp.attacks.tracing import STRATEGIES, Signer, Traced, traced, traitor_tracing
from local_dp.experiments.claims.attacks.tracing import claim as tracing
from local_dp.experiments.claims.attacks.tracing import signed as tracing_signed
from local_dp.experiments.claims.attacks.tracing.claim import EXPERIMENT, MODELS
from local_dp.experiments.lab.claim import Finding, Point
from local_dp.loss import Pure

pytestmark = pytest.mark.long
POINTS = EXPERIMENT.points("quick")
MEANS = [point for point in POINTS if point["kind"] == "means"]
EXACT = [point for point in MEANS if point["model"] == "exact means"]
LARGEST = [point for point in MEANS if point["d"] == 1225]
CODES = [point for point in POINTS if point["kind"] == "codes" and point["c"] == 3]
TRAITORS = [point for point in POINTS if point["kind"] == "traitors"]
SIGNED = [point for point in POINTS if point["kind"] == "signed"]


def found(points: list[Point]) -> Finding:
    """The finding of a quick run of these points."""
    return EXPERIMENT.conclude([(point, EXPERIMENT.measure(point, 1)) for point in points], "quick")


def lost(finding: Finding) -> set[str]:
    """The first words of the checks that fell."""
    return {" ".join(check.statement.split()[:3]) for check in finding.checks if not check.shown}


def test_shown() -> None:
    """By the whole quick run; a point measured twice is identical."""
    finding = found(POINTS)
    assert finding.verdict == "shown", lost(finding)
    assert EXPERIMENT.measure(TRAITORS[0], 5) == EXPERIMENT.measure(TRAITORS[0], 5)
    assert EXPERIMENT.measure(MEANS[3], 5) != EXPERIMENT.measure(MEANS[3], 6)


def half_scored(shares: Any, means: Any, suspects: Any) -> Traced:
    """Scored against 1/2 in place of the strangers' shares."""
    weights = (2 * means - 1) / np.sqrt(shares * (1 - shares))
    scores = (suspects - shares) @ weights / np.sqrt(np.sum(weights**2 * shares * (1 - shares)))
    return Traced(scores, np.ones(len(scores)))


def all_accused(tells: Traced, failure: float) -> Bools:
    """By the one p-value, whatever the number of suspects."""
    accused: Bools = tells.p_values < 0.1
    return accused


TWINS: list[tuple[str, object, str | None, object, list[Point], str]] = [
    ("a score against one half", "local_dp.attacks.tracing.traced", None, half_scored, EXACT, "from exact means"),
    ("a curator without noise", MODELS, "a curator", MODELS["exact means"], LARGEST, "where means err"),
    ("accusations that are not shared out", Traced, "accused", all_accused, CODES, "innocents are accused"),
    ("pirates who are not marked", tracing, "marked", lambda rows, wish: STRATEGIES["coin flips"](rows, np.random.default_rng(1)), CODES, "of 6 c^2"),
    ("a code a sixth as long", tracing, "traced_length", lambda c, users, failure: 79, CODES, "of 6 c^2"),
    ("one tag under every message", Signer, "_tags", lambda signer, messages: 0 * messages, SIGNED, "rows made from"),
    ("synthetic rows that are the table's", tracing_signed, "_weighed", lambda table, *_: table.histogram.astype(np.float64), SIGNED, "rows made from"),
    ("a histogram that tells every row", tracing_signed, "_told", lambda table, _: table.histogram.astype(np.float64), SIGNED, "rows made from"),
    ("a curator that spends all on each", tracing, "optimal_part", lambda budget, parts: Pure(20 * budget.nano), TRAITORS, "who holds the"),
]


@pytest.mark.parametrize(("where", "name", "twin", "points", "falls"), [twin[1:] for twin in TWINS], ids=[twin[0] for twin in TWINS])
def test_wrong_twins_are_not_shown(where: Any, name: str | None, twin: object, points: list[Point], falls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loses the check that is about it."""
    if isinstance(where, dict):
        monkeypatch.setitem(where, name, twin)
    elif name is None:
        monkeypatch.setattr(where, twin)
    else:
        monkeypatch.setattr(where, name, twin)
    assert falls in lost(found(points))


def test_keys_of_others_are_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracer that takes the users in another order than it sent them rows accuses nobody, or innocents: not shown."""

    def shuffled(code: Any, keys: Any, tolerance: float) -> Any:
        right = traitor_tracing(code, keys, tolerance)
        other = code.rows[::-1]
        turn: Callable[[tuple[float, ...]], Traced] = lambda answers: traced(code.shares, (np.array(answers) >= 0).astype(np.float64), other)  # noqa: E731
        return type(right)(right.queries, turn)

    monkeypatch.setattr(tracing, "traitor_tracing", shuffled)
    assert "who holds the" in lost(found(TRAITORS))
