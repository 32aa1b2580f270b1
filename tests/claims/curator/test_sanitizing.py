"""`sanitizing` is shown as it stands; wrong releases, sums and bounds in its place are not."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from local_dp.bounds.packing import per_cell_success, sanitizer_records
from local_dp.curator.reductions.learners import MediansByLabel
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import NoisyCounts, ThresholdedHistogram
from local_dp.curator.sanitizers.san_points import PrintedSanPoints
from local_dp.experiments.claims.curator.sanitizing import runs
from local_dp.experiments.claims.curator.sanitizing.claim import EXPERIMENT, MEASURED
from local_dp.experiments.lab.claim import Finding, Measurement, Point, Scale

pytestmark = pytest.mark.long
POINTS = [point for point in EXPERIMENT.points("quick") if point["bits"] <= 128 and (point["kind"] != "shape" or point["tree"] == "pure")]
SEARCHED: dict[tuple[str, int], int] = {  # as searches of 800 and more find
    ("pure", 16): 1422,
    ("pure", 64): 4688,
    ("pure", 128): 8782,
    ("sparse", 16): 4246,
    ("sparse", 64): 4799,
    ("sparse", 128): 5238,
}


def least(point: Point) -> Measurement:
    """What a search would find; it takes seconds."""
    n = SEARCHED[point["tree"], point["bits"]]
    return {"n": n, "low": n - 50, "high": n + 50, "trials": 600, "nano": 10**9, "atto": round(point["delta"] * 10**18)}


@cache
def measured(number: int) -> Measurement:
    point = POINTS[number]
    return least(point) if point["kind"] == "thresholds" else EXPERIMENT.measure(point, 1)


def finding(changed: str = "", scale: Scale = "quick") -> Finding:
    """Of all points, those of the kind `changed` measured afresh."""
    found = [(point, EXPERIMENT.measure(point, 1) if point["kind"] == changed else measured(number)) for number, point in enumerate(POINTS)]
    trees = [("pure", 0.0, 128), *(("sparse", 1e-6, bits) for bits in (16, 64, 128))]
    searched: list[Point] = [{"kind": "thresholds", "tree": tree, "delta": delta, "bits": bits, "trials": 600} for tree, delta, bits in trees]
    return EXPERIMENT.conclude(found + [(point, least(point)) for point in searched], scale)


def lost(found: Finding) -> list[str]:
    """The checks that fell."""
    return [check.statement for check in found.checks if not check.shown]


def test_right_releases_are_shown() -> None:
    """All checks, at both scales, and the exact sums to a record."""
    found = finding()
    assert found.verdict == "shown", lost(found)
    assert finding(scale="full").verdict == "shown"
    rows = [row for row in found.tables[0].rows if row[0] == "counts" and row[2] in (16, 32, 64, 128)]
    assert [row[3] for row in rows if row[1].endswith("pure")] == [270, 490, 930, 1820]
    assert {row[3] for row in rows if row[1].startswith("thresholded")} == {340, 200}


@pytest.mark.slow
def test_shown() -> None:
    """A quick run, searches and sparse trees and all."""
    found = EXPERIMENT.conclude([(point, EXPERIMENT.measure(point, 1)) for point in EXPERIMENT.points("quick")], "quick")
    assert found.verdict == "shown", lost(found)


def test_noise_for_one_count_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram with half the noise: other numbers, and another crossing."""
    right = ThresholdedHistogram.noise.func  # type: ignore[attr-defined]
    monkeypatch.setattr(ThresholdedHistogram, "noise", property(lambda held: right(replace(held, epsilon=2 * held.epsilon))))
    assert any("Released counts take fewer" in statement for statement in lost(finding("counts")))


def test_a_release_that_is_not_of_its_law_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors told too small: runs succeed too often."""
    monkeypatch.setattr(NoisyCounts, "worst_error", lambda held, points, together=1: 0)
    assert any("as often as the exact sums" in statement for statement in lost(finding("counts")))


def test_a_loss_that_is_more_than_compared_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "EPSILON", 1.5)
    assert any("counted from its parts" in statement for statement in lost(finding("counts")))


def test_a_threshold_that_grows_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram that is told from the domain's largest noise on: its number grows with the bits."""

    def by_bits(point: Point, seed: int, right: Any = runs.measure_counts) -> Any:
        found = right(point, seed)
        return {**found, "n": found["n"] + 10 * point["bits"]} if point["delta"] else found

    monkeypatch.setitem(MEASURED, "counts", by_bits)
    fallen = lost(finding("counts"))
    assert any("does not depend on the domain" in statement for statement in fallen)
    assert any("No purely private sanitizer" in statement for statement in fallen)


def test_a_sum_at_twice_epsilon_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the records for noise on all cells: another crossing, and runs that fail."""
    monkeypatch.setattr(runs, "per_cell_success", lambda bits, epsilon, m, alpha: per_cell_success(bits, 2 * epsilon, m, alpha))
    fallen = lost(finding("counts"))
    assert any("Released counts take fewer" in statement for statement in fallen)
    assert any("as often as the exact sums" in statement for statement in fallen)


def test_a_weak_bound_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is proven separates nothing up to 2^128; a printed size of nothing would pay."""
    monkeypatch.setattr(runs, "sanitizer_records", lambda *asked: sanitizer_records(*asked) // 2)
    assert any("No purely private sanitizer" in statement for statement in lost(finding("proven")))
    monkeypatch.setattr(PrintedSanPoints, "least", property(lambda held: 100))
    assert any("printed sizes" in statement for statement in lost(finding("proven")))


def test_trees_at_half_the_epsilon_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few records: some shapes are beyond alpha."""
    monkeypatch.setattr(runs, "tree_of", lambda kind, delta: Medians(0.5, 4))
    assert any("data of every shape" in statement for statement in lost(finding("shape")))


def test_trees_that_cross_elsewhere_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the records for the sparse tree: no crossing near; judged at full scale."""
    for bits in (16, 64, 128):
        monkeypatch.setitem(SEARCHED, ("sparse", bits), 8000)
    assert any("Released thresholds take fewer" in statement for statement in lost(finding(scale="full")))


def test_learners_that_do_not_learn_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hypothesis that ignores the release; records that were enough at half; a seventieth of them, which no learner learns from."""
    statement = "A threshold is learned from the released thresholds"
    for name, twin in (("best_threshold", lambda released: 1), ("MediansByLabel", lambda epsilon, levels: MediansByLabel(4 * epsilon, levels)), ("DEARER", 70)):
        with monkeypatch.context() as patch:
            patch.setattr(runs, name, twin)
            assert any(statement in fallen for fallen in lost(finding("learned"))), name
