"""The experiments `parity` (the curator's half) and `occam`: verdicts follow the measurements, and wrong learners lose them."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from local_dp.bounds.curator import occam_examples_realizable, parity_examples
from local_dp.curator.parity.learner import ParityLearner
from local_dp.curator.selection.occam import OccamLearner
from local_dp.experiments.claims.local import occam
from local_dp.experiments.claims.local.occam import Error, Place, Privacy, Result, Size
from local_dp.experiments.claims.local.parity import central as parity_central
from local_dp.experiments.claims.local.parity import claim as parity
from local_dp.experiments.claims.local.parity.claim import separation
from local_dp.experiments.lab.claim import Check, Curve, Measurement, Point
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.store import plain
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long
Measured = list[tuple[Point, Measurement]]


def measure_all(points: list[Point], measure: Callable[[Point, int], Measurement]) -> Measured:
    """Every point measured with seed 3, through JSON as a stored run would be."""
    return [(point, json.loads(json.dumps(measure(point, 3)))) for point in points]


def shown(checks: list[Check]) -> dict[str, bool]:
    return {check.statement: check.shown for check in checks}


def failed(checks: list[Check], *parts: str) -> bool:
    """Whether exactly the checks that contain one of `parts` are not shown."""
    lost = [statement for statement, good in shown(checks).items() if not good]
    return len(lost) == len(parts) and all(any(part in statement for statement in lost) for part in parts)


def central(trials: int = 150) -> list[Point]:
    """The quick points up to d = 8 with fewer trials."""
    return [
        {**point, "trials": trials} if point["kind"] == "central" else point
        for point in parity_central.central_points("quick")
        if point["d"] <= 8 and not (point["kind"] == "privacy" and point["n"] == 3)
    ]


@pytest.fixture(scope="module")
def measured_parity(once: Once) -> Measured:
    return once.measured("parity-central", parity.EXPERIMENT, central(), lambda point: parity_central.measure_central(point, 3))


def test_the_curators_half_is_shown(measured_parity: Measured) -> None:
    """On a small run every statement about the curator is shown, with a table row for each point and a curve for each learner."""
    assert all(shown(parity_central.central_checks(measured_parity)).values())
    sized, audited = parity_central.central_tables(measured_parity)
    assert len(sized.rows) + len(audited.rows) == len(measured_parity)
    curves = parity_central.central_curves(measured_parity)
    assert [list(curve.x) for curve in curves] == [[4, 8]] * 6


def test_one_seed_gives_one_measurement() -> None:
    """A point measured twice with one seed is identical; with another seed it is not."""
    point = {"kind": "central", "learner": parity_central.DEFAULT, "d": 8, "epsilon": 1.0, "trials": 100}
    assert parity_central.measure_central(point, 1) == parity_central.measure_central(point, 1)
    assert parity_central.measure_central(point, 1) != parity_central.measure_central(point, 2)


def test_a_learner_that_leaks_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: "exact constants" that keep half of the examples at every epsilon lose the verdict on privacy."""
    wrong = ParityLearner(Fraction(1, 2), Fraction(1, 4))
    monkeypatch.setitem(parity_central.AUDITED, "A with exact constants", lambda epsilon: wrong)
    checks = parity_central.central_checks(measure_all(central(), parity_central.measure_central))
    assert failed(checks, "loses exactly epsilon", "nor is charged more than epsilon")


def test_a_size_that_is_too_small_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: two thirds of the computed n lose the verdicts on success rates and on the published sizes."""
    right = parity_examples
    monkeypatch.setattr(parity_central, "parity_examples", lambda learner, d, success: 2 * right(learner, d, success) // 3)
    checks = parity_central.central_checks(measure_all(central(), parity_central.measure_central))
    assert failed(checks, "90 % of runs", "published sizes")


def test_separation_needs_exponential_growth() -> None:
    """Local curves that double with each dimension are shown; flat ones, or ones below the curator's, are not."""
    within = [Curve("curator", [4, 8, 12], [28, 43, 56])]
    assert separation(within, [Curve("local", [4, 8, 12], [400, 6400, 102400])]).shown
    assert not separation(within, [Curve("local", [4, 8, 12], [400, 800, 1200])]).shown
    assert not separation(within, [Curve("local", [4, 8, 12], [0.1, 1.6, 25.6])]).shown
    assert not separation(within, []).shown


def small_occam() -> Rows[Place, Result]:
    """The quick points with fewer trials, no more than 1,600 examples and no fine alpha, measured."""
    points = [point if isinstance(point, Privacy) else replace(point, trials=50) for point in occam.EXPERIMENT.points("quick")]
    small = [point for point in points if not (isinstance(point, Error) and point.n > 1600) and not (isinstance(point, Size) and point.alpha < 0.08)]
    return [occam.EXPERIMENT.read(plain(point), plain(point.measure(3))) for point in small]


def test_occam_is_shown() -> None:
    """On a small run the claim is shown, with figures of error and of size."""
    finding = occam.EXPERIMENT.conclude(small_occam(), "quick")
    assert finding.verdict == "shown", finding.checks
    assert [figure.name for figure in finding.figures] == ["occam-error-0.5", "occam-size"]
    assert all(len(table.rows) > 0 for table in finding.tables)


def test_occam_with_too_large_an_epsilon_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: a mechanism that spends three times its epsilon loses the verdict on privacy."""
    monkeypatch.setattr(occam, "OccamLearner", lambda hypotheses, epsilon: OccamLearner(hypotheses, 3 * epsilon))
    points = [Privacy(name, 1.0) for name in ("parities", "thresholds")]
    assert not occam._check_privacy([(point, point.measure(3)) for point in points]).shown


def test_occam_with_a_wrong_bound_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: an agnostic size in 1/alpha, as if some feature were perfect, loses the verdicts that rest on it."""
    monkeypatch.setattr(occam, "occam_examples", occam_examples_realizable)
    points = [Size(case, 1.0, alpha, 50) for case in occam.FLIP for alpha in (0.08, 0.16)]
    assert not occam._check_sizes([(point, point.measure(3)) for point in points]).shown
