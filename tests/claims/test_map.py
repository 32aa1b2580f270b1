"""The map: its verdict follows from its runs, and whatever breaks a run or a proof takes the class off the map."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from experiments.claims.map import EXPERIMENT, SUCCESS
from experiments.claims.map_runs import ONE_ROUND, measure_one_round
from experiments.lab.claim import Finding, Measurement, Point, Regions
from experiments.lab.intervals import wilson
from local_dp.learners.conjunctions import Conjunctions

Measured = list[tuple[Point, Measurement]]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """The quick run with seed 1."""
    return [(point, EXPERIMENT.measure(point, 1)) for point in EXPERIMENT.points("quick")]


def _placed(finding: Finding) -> list[list[str]]:
    diagram = finding.figures[0]
    assert isinstance(diagram, Regions)
    return [[name for name, _ in region.placed] for region in diagram.regions]


def _changed(measured: Measured, name: str, **values: Any) -> Finding:
    """The finding when every measurement of one class had these values instead."""
    changed = deepcopy(measured)
    for point, found in changed:
        if point["class"] == name:
            found.update(values)
    return EXPERIMENT.conclude(changed, "quick")


def test_quick_run_places_every_class(measured: Measured) -> None:
    """The quick run shows the claim: simple rules in LNI, masked parity in LI, parity in CI."""
    finding = EXPERIMENT.conclude(measured, "quick")
    assert finding.verdict == "shown", [check for check in finding.checks if not check.shown]
    assert _placed(finding) == [["Point functions", "Decision stumps", "Conjunctions"], ["Masked parity"], ["Parity"]]


@pytest.mark.parametrize(
    ("name", "values", "left"),
    [
        ("stumps", {"wins": 170}, [["Point functions", "Conjunctions"], ["Masked parity"], ["Parity"]]),
        ("stumps", {"rounds": 2}, [["Point functions", "Conjunctions"], ["Masked parity"], ["Parity"]]),
        ("masked-parity", {"wins": 900}, [["Point functions", "Decision stumps", "Conjunctions"], [], ["Parity"]]),
        ("masked-parity", {"n": 10**6}, [["Point functions", "Decision stumps", "Conjunctions"], [], ["Parity"]]),
        ("worst-case", {"certificate": False}, [["Point functions", "Decision stumps", "Conjunctions"], [], ["Parity"]]),
        ("worst-case", {"wins": 3}, [["Point functions", "Decision stumps", "Conjunctions"], [], ["Parity"]]),
        ("parity", {"wins": 0}, [["Point functions", "Decision stumps", "Conjunctions"], ["Masked parity"], []]),
    ],
)
def test_failed_run_takes_a_class_off_the_map(measured: Measured, name: str, values: dict[str, Any], left: list[list[str]]) -> None:
    """A learner that fails, asks a second round or needs too many people, and a certificate that does not hold, each make the verdict "not shown"."""
    finding = _changed(measured, name, **values)
    assert finding.verdict == "not shown"
    assert _placed(finding) == left


def test_wrong_learner_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries thirty times too coarse, hence with 900 times fewer people, do not learn conjunctions: the run itself shows it."""
    wrong = replace(ONE_ROUND["conjunctions"], learner=lambda d: Conjunctions(d=d, slack=30))
    monkeypatch.setitem(ONE_ROUND, "conjunctions", wrong)
    found = measure_one_round("conjunctions", 8, 100, 1)
    assert wilson(found["wins"], 100)[1] < SUCCESS


def test_wilson() -> None:
    """Wilson's interval at 9 of 10 is the textbook's (0.596, 0.982); it ends at 0 for no success and at 1 for no failure."""
    low, high = wilson(9, 10)
    assert (round(low, 4), round(high, 4)) == (0.5958, 0.9821)
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0
