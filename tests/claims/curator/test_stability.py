"""`stability` is shown as it stands; wrong choices in its place are not."""

from dataclasses import replace

import pytest

from local_dp.curator.selection.stable import UNIT, Lead, StableChoice, best_acceptance
from local_dp.experiments.claims.curator import stability
from local_dp.experiments.claims.curator.stability import EXPERIMENT
from local_dp.experiments.lab.claim import Finding, Point
from local_dp.loss import Approximate

POINTS = EXPERIMENT.points("quick")
ONE = [point for point in POINTS if (point["epsilon"], point["delta"]) == (1.0, 1e-3)]


def found(points: list[Point] = POINTS) -> Finding:
    """The finding of a quick run."""
    return EXPERIMENT.conclude([(point, EXPERIMENT.measure(point, 1)) for point in points], "quick")


def lost(finding: Finding) -> list[str]:
    """The checks that fell."""
    return [check.statement for check in finding.checks if not check.shown]


@pytest.mark.long
def test_shown() -> None:
    finding = found()
    assert finding.verdict == "shown", lost(finding)
    saved = next(table for table in finding.tables if table.title.startswith("records"))
    assert [row[2:4] for row in saved.rows] == [(268, 218), (209, 192), (363, 345), (1621, 1124)]


def test_a_choice_that_answers_at_any_lead_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The winner told always: no delta is kept."""
    monkeypatch.setattr(StableChoice, "answered", lambda choice, gap: UNIT)
    assert any("enumerated in whole numbers" in statement for statement in lost(found(ONE)))


def test_a_lead_that_is_thought_to_move_by_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best law in steps of 1 instead of 2: private if the lead had sensitivity 1."""

    def in_steps_of_one(loss: Approximate) -> tuple[int, ...]:
        accepted = best_acceptance(loss)
        return (accepted[0], *accepted[2::2])

    monkeypatch.setattr("local_dp.curator.selection.stable.best_acceptance", in_steps_of_one)
    assert any("best test has its delta" in statement for statement in lost(found(ONE)))


def test_a_mechanism_that_does_not_draw_from_its_law_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a choice at half the delta tell the point too seldom."""
    right = StableChoice.release
    points = [point for point in ONE if point["kind"] == "records"]
    monkeypatch.setattr(StableChoice, "release", lambda choice, lead, draws: right(replace(choice, delta=choice.delta / 20), lead, draws))
    assert any("runs tell a point" in statement for statement in lost(found(points)))


def test_the_lead_is_counted_twice_over() -> None:
    """The mechanism's lead and the enumeration's, by separate code, agree."""
    for records in (((0,), (0,), (2,)), ((1,), (2,), (2,), (1,)), ((2,),)):
        best, gap = stability._lead(records)
        assert stability.lead_of(stability._multiset(records)) == Lead(best, gap)
