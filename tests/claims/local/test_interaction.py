"""The experiment `interaction`: its verdict follows the measurements, and wrong methods lose it."""

import json
from typing import Any

import numpy as np
import pytest

from local_dp.experiments.claims.local.interaction import lists as interaction_lists
from local_dp.experiments.claims.local.interaction.claim import EXPERIMENT
from local_dp.experiments.claims.local.interaction.lists import BEST, GUESSES, OTHERS, ROUNDS, measure_lists
from local_dp.experiments.claims.local.interaction.prefixes import predicted_gain
from local_dp.experiments.lab.claim import Check, Figure, Measurement, Point
from local_dp.interaction import Adaptive
from local_dp.learners.fourier import LowDegree
from local_dp.theorems.local_from_sq import local_from_sq
from tests.support.long import short

Measured = list[tuple[Point, Measurement]]


def as_promised() -> Measured:
    """Measurements of the quick experiment in which everything goes as the claim says."""
    measured: Measured = []
    for point in EXPERIMENT.points("quick"):
        if point["part"] == "prefix":
            gain = predicted_gain(point["k"])
            found: Measurement = {"together": [1.0, 1.01, 0.99], "apart": [gain, 1.01 * gain, 0.99 * gain]}
        elif point["part"] == "cross":
            found = {"clients": 1000, "users": [80, 100], "law": [320, 400]}
        elif point["part"] == "least":
            n = GUESSES[point["learner"]][point["d"]]
            found = {"n": n, "low": round(0.9 * n), "high": round(1.1 * n), "trials": 500}
        else:
            good = point["part"] == "descent" or point["learner"] not in OTHERS
            found = {"errors": [[0.0 if good else 0.3] * point["trials"] for _ in point["grid"]], "spent": 1.0}
        measured.append((point, found))
    return measured


def lost(measured: Measured) -> list[Check]:
    """The checks that are not shown, after a journey through JSON."""
    return [check for check in EXPERIMENT.conclude(json.loads(json.dumps(measured)), "quick").checks if not check.shown]


def test_what_the_claim_says_is_shown() -> None:
    """Measurements as the claim has them give the verdict "shown", with finite tables and figures."""
    finding = EXPERIMENT.conclude(as_promised(), "quick")
    assert finding.verdict == "shown", lost(as_promised())
    assert all(len(row) == len(table.columns) for table in finding.tables for row in table.rows)
    curves = [curve for figure in finding.figures if isinstance(figure, Figure) for curve in figure.curves]
    assert curves
    assert all(len(curve.x) == len(curve.y) and np.isfinite(curve.y).all() for curve in curves)


@pytest.mark.parametrize(
    ("part", "learner", "found", "statement"),
    [
        ("least", ROUNDS, {"n": 9e8, "low": 8e8, "high": 1e9, "trials": 500}, "fewer clients in rounds"),
        ("least", BEST, {"n": 1e4, "low": 9e3, "high": 1.1e4, "trials": 500}, "fewer clients in rounds"),
        ("least", ROUNDS, {"failed": "success stays at 0.00"}, "finds one"),
        ("errors", "degree 1", {"errors": [[0.0] * 40] * 6}, "No other one-round method"),
        ("errors", "averaging", {"errors": [[0.015] * 40] * 6}, "Averaging"),
        ("descent", None, {"errors": [[0.5, 0.5]] * 3, "spent": 1.0}, "gradient descent"),
        ("descent", None, {"errors": [[0.0, 0.0]] * 3, "spent": 2.0}, "gradient descent"),
        ("cross", ROUNDS, {"refused": "budget"}, "client by client"),
        ("cross", BEST, {"clients": 1000, "users": [30, 100], "law": [320, 400]}, "client by client"),
    ],
)
def test_wrong_methods_lose_the_verdict(part: str, learner: str | None, found: Measurement, statement: str) -> None:
    """Rounds that need more clients, one-round methods that need fewer, searches that fail, and laws that are not the clients' are not shown."""
    measured = [(point, found if point["part"] == part and point.get("learner") == learner else m) for point, m in as_promised()]
    assert any(statement in check.statement for check in lost(measured))


def test_descent_spends_what_it_says() -> None:
    """A small run of private gradient descent reports that a client spent epsilon = 1, measured by its ledger."""
    found = EXPERIMENT.measure({"part": "descent", "d": 2, "grid": [3000], "trials": 1}, 1)
    assert found["spent"] == 1.0


def test_a_weak_mechanism_loses_the_verdict() -> None:
    """Prefix sums at half the predicted gain fail both checks about them."""
    measured = [(point, {**m, "together": [2 * error for error in m["together"]]} if point["part"] == "prefix" else m) for point, m in as_promised()]
    assert len(lost(measured)) == 2


@pytest.mark.parametrize(
    ("twin", "why"),
    short([("decodes to nothing", "0.000 of"), ("twice the clients", "exceeds"), ("beyond", "asked")], lambda pair: "decodes" in pair[0], several=True),
)
def test_wrong_programs_lose_the_cross_check(monkeypatch: pytest.MonkeyPatch, twin: str, why: str) -> None:
    """A learner that ignores its answers reaches nothing; one that asks a client twice is refused; one that asks nobody's client is seen."""
    right = interaction_lists._algorithm

    def wrong(learner: str, d: int, n: int) -> Any:
        if twin == "decodes to nothing":
            averaging = LowDegree(d=d, degree=1)
            return local_from_sq(averaging.algorithm(), 1.0, lambda query: n // averaging.queries)
        algorithm: Any = right(learner, d, n if twin == "twice the clients" else n + 200)
        if twin == "beyond":
            return algorithm

        def play() -> Any:
            for _ in range(2):
                answers = yield algorithm.queries
            return algorithm.decode(answers)

        return Adaptive(play)

    monkeypatch.setattr(interaction_lists, "_algorithm", wrong)
    found = measure_lists({"part": "cross", "learner": BEST, "d": 4}, 1)
    measured = [(point, found if point["part"] == "cross" and point.get("learner") == BEST else m) for point, m in as_promised()]
    if twin == "decodes to nothing":
        search = measure_lists({"part": "least", "learner": BEST, "d": 4, "trials": 100}, 1)
        measured = [(point, search if point["part"] == "least" and point["learner"] == BEST else m) for point, m in measured]
        why = "does not reach"
    assert any(why in check.evidence for check in lost(measured))


def test_measurements_repeat() -> None:
    """A point measured twice with one seed gives the same measurement, and it is plain JSON."""
    for point in (
        {"part": "prefix", "k": 16, "trials": 20},
        {"part": "least", "learner": BEST, "d": 4, "trials": 120},
        {"part": "errors", "learner": "degree 1", "d": 4, "grid": [200_000], "trials": 2},
        {"part": "descent", "d": 2, "grid": [10_000], "trials": 2},
    ):
        once = EXPERIMENT.measure(point, 7)
        assert json.loads(json.dumps(once)) == once == EXPERIMENT.measure(point, 7)
