"""The figures' check: a figure whose numbers or names differ from those of its table is not shown."""

from dataclasses import replace

import pytest

from local_dp.experiments.lab.claim import Curve, Figure, Table
from local_dp.experiments.lab.figure_text import figure_check

TABLE = Table("counts", ("who", "d", "n", "low", "high"), [("one", 2, 10, 9, 11), ("one", 4, 20, 18, 23), ("two", 2, 5, 4, 6)])
ONE = Curve("one", [2, 4], [10, 20], "measured", [9, 18], [11, 23])
BOUND = Curve("nobody below", [2, 4], [1, 1], "bound")


def shown(*curves: Curve, ends: bool = True) -> bool:
    return figure_check([Figure("f", "f", "x", "y", [*curves, BOUND])], TABLE, ends=ends).shown


def test_a_figure_of_its_table_is_shown() -> None:
    """Every measured point and its interval stand in the table, under the name or under what the name begins with; theory need not."""
    assert shown(ONE, Curve("two, measured", [2], [5], "measured", [4], [6]))


@pytest.mark.parametrize("changed", [{"label": "two"}, {"y": [10, 21]}, {"x": [2, 3]}, {"low": [9, 17]}, {"high": [12, 23]}, {"high": [10, 20]}])
def test_another_figure_is_not(changed: dict[str, object]) -> None:
    """Another name, a point moved either way, an interval of another width, and nothing measured are found; without `ends` the interval is not looked at."""
    wrong = replace(ONE, **changed)  # type: ignore[arg-type]
    assert not shown(wrong)
    assert shown(wrong, ends=False) == ("low" in changed or "high" in changed)
    assert not shown()
