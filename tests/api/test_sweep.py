"""Sweeps and comparisons: what is measured is right, wherever and in how many attempts it is."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import local_dp as ldp
from local_dp.api import errors_of
from local_dp.api.errors_of import Case, quantile_places
from local_dp.api.sweep import Grid, comparison, read_grid, swept
from local_dp.errors import InputError, RefusedError
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records
from tests.support.inputs.randomizers import ORACLES
from tests.support.wrong import wrong

AGES = Records({"age": np.array([float(20 + row % 40) for row in range(400)])})
WHOLE: dict[str, Any] = {
    "epsilon": [1, 4],
    "clients": [400],
    "runs": 20,
    "quantiles": {},
    "parity": {"d": [4, 5]},
}


@pytest.mark.long
@pytest.mark.parametrize("tier", ["aggregate", "population"])
def test_what_is_measured_agrees_with_the_closed_form(tier: Any) -> None:
    """Of every cell the closed form lies in the measured interval of the 95 % point, widened to 4
    deviations; four times the clients halve the error."""
    grid = Grid(
        epsilon=(1.0,), clients=(300, 1200), runs=2000 if tier == "aggregate" else 100, tier=tier
    )
    data = swept(comparison(Survey(), grid), None).data
    assert {row["randomizer"] for row in data["rows"]} == {"binary-rr", *ORACLES}
    for row in data["rows"]:
        low, high = (row["error"] + 2.05 * (row[end] - row["error"]) for end in ("low", "high"))
        assert low <= row["planned"] <= high, row
    few, many = data["rows"][:2]
    assert few["error"] / many["error"] == pytest.approx(
        2, rel=0.05 if tier == "aggregate" else 0.5
    )


@pytest.mark.long
def test_a_row_is_the_same_whether_a_parameter_is_typed() -> None:
    """Parameters left out, at their defaults, and in a comparison: one number for one seed; another
    value of a parameter has other numbers."""
    rest: dict[str, Any] = {"epsilon": 1, "clients": 1000, "seed": 1, "only": "grr", "runs": 50}
    errors = [
        ldp.sweep({"frequency": parameters, **rest}, workers=1).data["rows"][0]["error"]
        for parameters in ({}, {"tolerance": 0.05, "k": 8}, {"k": 4})
    ]
    error = ldp.compare(
        "frequency", k=4, epsilon=1, clients=1000, seed=1, only="grr", runs=50
    ).data["rows"][0]["error"]
    assert errors[1] == errors[0]
    assert error == errors[2]
    assert errors[0] != errors[2]


@wrong(
    "local_dp.api.sweep:Sweep.__call__",
    "case.measure(point, seed)",
    "case.measure(point, 1)",
    "rows of several seeds repeat one measurement",
)
def test_a_cut_store_is_completed(tmp_path: Path) -> None:
    """A store cut at any of some bytes, or with a line of other code, gives the table of a whole
    one, and only the missing points are measured."""
    grid = read_grid(
        {
            "epsilon": 1,
            "clients": 200,
            "seed": [1, 2],
            "only": "grr",
            "runs": 20,
            "frequency": {"k": [3, 5]},
        }
    )
    lines = list[bytes]()
    store, out = tmp_path / "t.csv.measurements.jsonl", tmp_path / "t.csv"
    swept(grid, out, formats=())
    whole, text = store.read_bytes(), out.read_text()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == len({json.loads(line)["measurement"]["rmse"] for line in lines}) == 4, (
        "seeds and parameters draw anew"
    )
    for part, rest in (
        (b"", 4),
        (whole[:-1], 0),
        (whole[: len(lines[0]) + 9], 3),
        (b"".join(lines[:2]) + lines[2].replace(b'"code":"', b'"code":"0'), 2),
    ):
        store.write_bytes(part)
        points = list[str]()
        swept(
            grid,
            out,
            lambda what, done, total, points=points: points.append(what),  # type: ignore[misc]
            formats=(),
        )
        assert len(points) == rest
        assert out.read_text() == text
        assert store.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        "{}",
        "[]",
        '{"error":1,"high":1,"low":1}',
        '{"error":1,"high":1,"low":1,"rmse":"nan"}',
        '{"error":1,"high":1,"low":1,"rmse":1e999}',
    ],
)
def test_a_damaged_store_leaves_the_table_as_it_is(damage: str, tmp_path: Path) -> None:
    """A stored measurement of another form is refused in one line, before anything is measured or
    written."""
    store, out = tmp_path / "t.csv.measurements.jsonl", tmp_path / "t.csv"
    grid = {"epsilon": 1, "clients": 200, "only": "grr", "runs": 20, "frequency": {"k": 3}}
    swept(read_grid(grid), out, formats=())
    text = out.read_text()
    store.write_text(re.sub('"measurement":{[^}]*}', f'"measurement":{damage}', store.read_text()))
    with pytest.raises(
        InputError,
        match=(
            r"t\.csv\.measurements\.jsonl.*not one number for each of error, low, high, rmse; "
            r"remove it to measure again"
        ),
    ):
        swept(read_grid({**grid, "clients": [100, 200]}), out, formats=())
    assert out.read_text() == text
    assert store.read_text().count("\n") == 1


@pytest.mark.long
def test_cores_measure_what_one_process_does() -> None:
    """Two worker processes measure the bits of this one, of comparisons and of whole runs."""
    grid = WHOLE | {"survey": {}, "only": "olh"}
    alone, shared = (ldp.sweep(grid, workers=workers) for workers in (1, 2))
    assert alone.data == shared.data


def test_whole_runs_are_measured_where_the_answer_is_no_mean() -> None:
    """Rows are in the order of the grid; a protocol has its own error and, where it has one, its
    closed form; a law that is missing is refused."""
    rows = ldp.sweep(WHOLE, workers=1).data["rows"]
    assert [(row["protocol"], row["d"], row["epsilon"], row["randomizer"]) for row in rows] == [
        *(("quantiles", None, epsilon, "own") for epsilon in (1.0, 4.0)),
        *(("parity", d, epsilon, "own") for d in (4, 5) for epsilon in (1.0, 4.0)),
    ]  # fmt: skip
    assert [row["planned"] is None for row in rows] == [False, False, True, True, True, True]
    assert 0.5 < rows[0]["error"] / rows[0]["planned"] < 1.5
    assert rows[3]["error"] == 0, "400 clients at epsilon 4 find a parity of 4 bits"
    with pytest.raises(RefusedError, match="--tier population"):
        ldp.sweep({"epsilon": 1, "clients": 100, "runs": 20, "mean-vector": {}}, workers=2)


@pytest.mark.long
def test_a_sweep_of_a_table_draws_from_its_rows(tmp_path: Path) -> None:
    """Means of a table's column: errors are about the table's own mean, in shares of the range;
    what is written is what is returned."""
    grid: dict[str, Any] = {"epsilon": 2.0, "clients": 2000, "only": "one-bit-mean", "runs": 400}
    comparison = ldp.compare(
        "mean", AGES, column="age", bounds=(0, 100), out=tmp_path / "t.json", **grid
    )
    (row,) = comparison.data["rows"]
    (same,) = ldp.sweep(
        {**grid, "mean": {"column": "age", "bounds": [0, 100]}}, AGES, workers=1
    ).data["rows"]
    assert json.loads((tmp_path / "t.json").read_text()) == comparison.data
    assert row["planned"] == pytest.approx(row["error"], rel=0.2)
    assert same["planned"] == row["planned"]
    assert (tmp_path / "t.png").exists()


@pytest.mark.parametrize(
    ("grid", "what"),
    [
        ({"runs": 5}, "runs is 5"),
        ({"clients": 0}, "clients is 0"),
        ({"only": "grrr"}, "did you mean 'grr'"),
        ({"only": 3}, "only is a tuple; give a list of texts"),
        ({"frequency": {"k": []}, "survey": {}}, "k of frequency has 0 values; give at least one"),
        ({"frequency": [], "survey": {}}, "no key 'frequency'"),
        ({"epsilon": "much"}, "epsilon is 'much'"),
        ({"seed": []}, "seed has 0 values"),
        ({"seed": -1}, "seed"),
        ({"tier": "hosts"}, "tier is 'hosts'"),
        ({"runz": 50}, "did you mean 'runs'"),
        ({"survey": {"k": [4]}}, "no parameter 'k'"),
        ({"surwey": {}}, "did you mean 'survey'"),
        ({"survey": {}, "seed": [*range(50_000)]}, "at most 100,000"),
    ],
)
def test_a_grid_that_cannot_be_measured_is_refused(grid: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        ldp.sweep(
            {**({} if {"survey", "surwey"} & {*grid} else {"frequency": {}}), **grid}, workers=1
        )


def test_the_places_of_a_quantile_hold_it() -> None:
    """Of 1,000 sorted draws the interval of places holds the 95 % point with probability 95 to 97
    %, by the binomial law of the draws below it; one of half the width does not."""
    low, at, high = quantile_places(1000)
    assert low == 935
    assert at == 949
    assert high == 964
    below = stats.binom(1000, 0.95).cdf
    assert 0.95 <= below(high) - below(low) <= 0.97
    assert below(at + 7) - below(at - 7) < 0.8


@wrong(
    "local_dp.api.errors_of:Case._simulation_errors",
    "'population'",
    "self.tier",
    "the counts of a large tally are drawn where 100 clients have little to say",
)
def test_few_clients_of_a_large_tally_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tally of subset selection has 261,632 counts."""
    monkeypatch.setattr(errors_of, "AggregateOracle", None)
    case = Case(Frequency(k=512), "aggregate")
    case.randomizers(1.0, ("subset-selection",))
    assert case.measure(case.point("subset-selection", 1.0, 100, 2), 1)["error"] > 0.1
