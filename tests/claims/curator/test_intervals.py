"""`intervals` is shown as it stands; wrong noise, trees and factorizations in its place are not."""

from fractions import Fraction

import pytest

from local_dp.curator.intervals import factorization
from local_dp.curator.intervals.level import Level
from local_dp.curator.rounded_normal import rounded_normals
from local_dp.experiments.claims.curator import intervals
from local_dp.experiments.claims.curator.intervals import CONSISTENT, EXPERIMENT, FLAT, LOCAL, ROOT
from local_dp.experiments.lab.claim import Measurement, Point
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


def test_noise_for_one_count_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that pays half of what it says is caught by enumeration, and by its errors."""
    monkeypatch.setattr(Level, "noise", property(lambda level: Fraction(level.loss.nano)))
    assert "pure at its epsilon" in lost(found("privacy"))
    assert "what closed forms say" in lost(found(FLAT))


def test_noise_of_too_little_variance_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factorization that draws less noise than its price asks for."""
    monkeypatch.setattr(factorization, "rounded_normals", lambda draws, variance, count: rounded_normals(draws, variance // 2, count))
    assert "what closed forms say" in lost(found(ROOT))


def test_a_tree_that_is_not_made_consistent_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves as they were counted, in a tree that says it is consistent."""
    monkeypatch.setattr("local_dp.curator.intervals.tree.consistent", lambda levels, shape, total: levels[-1].astype(float))
    assert "what closed forms say" in lost(found(CONSISTENT))


def test_clients_that_err_by_n_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that do not fall with more clients."""
    measure = intervals._measure_local

    def constant(point: Point, seed: int) -> Measurement:
        found = measure({**point, "n": 10_000}, seed)
        return {over: [error * point["n"] / 10_000 for error in errors] for over, errors in found.items()}

    monkeypatch.setattr(intervals, "_measure_local", constant)
    assert "sqrt(n)" in lost(found(LOCAL))
