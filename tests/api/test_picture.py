"""What a run's figure shows: its axes, its units, the truth, and never more than forty rows."""

import math
from typing import Any

import pytest

import local_dp as ldp
from local_dp.experiments.api.picture import MOST, pictured

RUN: dict[str, Any] = {"tier": "aggregate", "seed": 1, "notice": str}  # few clients suffice here, and the warning is not needed
PEOPLE = {"age": [20.0, 30.0, 40.0, 40.0] * 100, "town": ["a", "b", "c", "c"] * 100}


def test_axes_say_what_is_estimated() -> None:
    """A mean has its column and units, a share is a share of the clients; the truth is drawn where it is known, and only there."""
    mean = pictured(ldp.mean(PEOPLE, "age", bounds=(0, 50), **RUN).data)
    assert (mean.axis, mean.rows, mean.labels) == ("mean of age, in the units of the column", "", ("age",))
    assert mean.truth == pytest.approx([32.5], abs=1e-3)
    town = ldp.frequency(PEOPLE, "town", labels=["a", "b", "c"], **RUN).data
    drawn = pictured(town)
    assert (drawn.title, drawn.axis, drawn.rows) == ("frequency, epsilon 1, 400 clients; simulation: not private", "share of the clients", "town")
    assert drawn.truth == [0.25, 0.25, 0.5]
    town["result"]["truth"] = None
    assert pictured(town).truth is None


@pytest.mark.parametrize("labels", [MOST, MOST + 1, 100])
def test_other_labels_are_summed(labels: int) -> None:
    """Of more than forty labels the last ones are one row, their sum: nothing is lost, and the choice does not look at the estimates."""
    data = ldp.frequency(PEOPLE, "town", labels=["a", "b", "c", *map(str, range(labels - 3))], **RUN).data
    drawn, estimate = pictured(data), data["result"]["estimate"]
    assert len(drawn.labels) == MOST
    assert drawn.truth is not None
    assert [sum(drawn.values), sum(drawn.truth)] == pytest.approx([sum(estimate), 1])
    assert list(drawn.values[: MOST - 1]) == estimate[: MOST - 1]
    assert (drawn.labels[-1] == f"{labels - MOST + 1} others, summed") == (labels > MOST)
    assert math.isnan(drawn.lows[-1]) == (labels > MOST)


def test_neighbouring_bins_are_summed() -> None:
    data = ldp.histogram(PEOPLE, "age", bounds=(0, 50), bins=100, **RUN).data
    drawn = pictured(data)
    assert len(drawn.labels) == 34  # 102 with both sides, in threes
    assert drawn.labels[0] == "below 0 to [0.5, 1)"
    assert "3 neighbouring bins summed" in drawn.axis
    assert drawn.values[1] == pytest.approx(sum(data["result"]["estimate"][3:6]))
    assert drawn.truth is not None
    assert sorted(drawn.truth)[-3:] == [0.25, 0.25, 0.5]
