"""A column has one type, one answer and one set of labels in every form of a table."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import local_dp as ldp
from local_dp.api.tables import records_of, unsaid
from local_dp.errors import InputError
from tests.support.wrong import wrong

FORM = "%Y-%m-%dT%H:%M:%S%z"
DAYS = [datetime(2019, 12, 31, 23, 30), datetime(2020, 1, 1)]
TEXTS = ["2019-12-31T23:30:00", "2020-01-01"]
ORDER = ["low", "medium", "high"]
ZONE = polars.Datetime("us", "Asia/Tokyo")
# cells, a question with answer yes for half of them, labels, and the types of polars and pandas
COLUMNS: dict[str, tuple[list[Any], str, list[str], Any, Any]] = {
    "truth": ([True, False], "x", ["False", "True"], polars.Boolean, "boolean"),
    "whole": ([3, 1], "x > 1", ["1", "3"], polars.Int64, "Int64"),
    "number": ([2.5, 1.0], "x > 1.5", ["1", "2.5"], polars.Float64, "Float64"),
    "text": (["b", "a"], "x > 'a'", ["a", "b"], polars.String, "string"),
    "date": (DAYS, "year(x) == 2019", TEXTS, polars.Datetime, "datetime64[us]"),
    "zone": (DAYS, "year(x) == 2019", TEXTS, ZONE, "datetime64[us, Asia/Tokyo]"),
    "order": (
        [*ORDER, "low"],
        "x > 'low'",
        ORDER,
        polars.Enum(ORDER),
        pandas.CategoricalDtype(ORDER, ordered=True),
    ),
}


@wrong(
    "local_dp.storage.columns:column_of",
    "series.dtype == polars.Boolean and series.null_count()",
    "False",
    "a missing cell turns truth values into numbers",
    at="True-truth",
)
@wrong(
    "local_dp.storage.columns:dates_of",
    "re.search(_OFFSET, form)",
    "False",
    "a date with an offset in a file is that of Greenwich",
    at="False-zone",
)
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("lacking", [False, True])
def test_a_column_is_the_same_in_every_form(kind: str, lacking: bool, tmp_path: Path) -> None:
    """With a missing cell or without: by a question, by its labels, locally and curated; whole
    numbers have whole quantiles."""
    cells, question, labels, of_polars, of_pandas = COLUMNS[kind]
    values = [*cells * 20, *[None] * lacking]
    naive = polars.Series("x", values)
    series = naive.dt.replace_time_zone("Asia/Tokyo") if kind == "zone" else naive.cast(of_polars)
    frame, plain = series.to_frame().with_columns(y=1), pandas.Series(values)
    column = plain.dt.tz_localize("Asia/Tokyo") if kind == "zone" else plain.astype(of_pandas)
    forms: dict[str, Any] = {
        "parquet": tmp_path / "t.parquet",
        "pandas": pandas.DataFrame({"x": column if kind in ("zone", "order") else plain}),
        "nullable": column.to_frame("x"),
        "polars": frame,
        "arrow": SimpleNamespace(__arrow_c_stream__=frame.__arrow_c_stream__),
        "lists": {"x": values},
        "csv": tmp_path / "t.csv",
    }
    frame.write_parquet(forms["parquet"])
    frame.write_csv(forms["csv"], datetime_format=FORM if kind == "zone" else None)
    how: dict[str, Any] = {"seed": 1, "missing": "exclude", "epsilon": 8.0}
    for name, table in forms.items():
        if name == "csv":
            how["dates"] = {"x": FORM} if kind == "zone" else None
        if kind != "order" or name not in ("csv", "lists"):  # which declare none
            assert ldp.survey(table, question, notice=unsaid, **how).truth == 0.5, name
            counts = ldp.frequency(
                table, "x", labels_from_data=True, notice=unsaid, **how
            ).to_dict()
            assert counts["result"]["labels"] == labels, name
        if labels != TEXTS:
            rows = ldp.curate.histogram(table, "x", **how).rows
            assert {str(row[0]) for row in rows} == {*labels}, name
        if kind in ("truth", "whole") and (name != "pandas" or not lacking):  # it has fractions
            middles = [ldp.quantiles(table, "x", bounds=(0, 9), notice=unsaid, **how).value[0]]
            middles.append(ldp.curate.median(table, "x", **how).value)
            assert [middle % 1 for middle in middles] == [0, 0], name


@wrong(
    "local_dp.storage.columns:order_of",
    "kind not in ('Enum', 'CategoricalDtype')",
    "True",
    "categories compare by their letters",
)
def test_categories_compare_in_one_declared_order_alone() -> None:
    frame = polars.DataFrame({"x": ["a", "b"] * 9, "y": ["b", "a"] * 9, "z": ["b", "a"] * 9}).cast(
        {"x": polars.Categorical(), "y": polars.Enum(["b", "a"]), "z": polars.Enum(["a", "b"])}
    )
    for question, line in {
        "x > 'a'": "without one order",
        "y < z": "without one order",
        "y < 'c'": "'c' is no category of that column",
    }.items():
        with pytest.raises(InputError, match=line):
            ldp.survey(frame, question, seed=1)
    part = SimpleNamespace(dictionary=SimpleNamespace(to_pylist=lambda: ["b", "a"]))
    of_pyarrow = SimpleNamespace(
        __arrow_c_stream__=frame.__arrow_c_stream__,
        schema=[SimpleNamespace(name="x", type=SimpleNamespace(ordered=True))],
        column=lambda name: part,
    )
    assert ldp.survey(of_pyarrow, "x > 'b'", seed=1, notice=unsaid).truth == 0.5
    assert ldp.survey(frame, "x == 'a' and y < 'a'", seed=1, notice=unsaid).truth == 0.5


@wrong(
    "local_dp.simulation.over_bus:_Members.config_of",
    "first.orders",
    "{}",
    "processes compare by letters",
)
def test_processes_compare_in_the_declared_order(tmp_path: Path) -> None:
    """As the population tier, bit for bit; also numbers, in an order that is not theirs."""
    words, path = (
        polars.Series("x", [*ORDER, "low"] * 9, polars.Enum(ORDER)),
        tmp_path / "t.parquet",
    )
    words.to_frame().write_parquet(path)
    of_numbers = pandas.CategoricalDtype([3, 1, 2], ordered=True)
    numbers = pandas.DataFrame({"x": pandas.Series([3, 3, 2, 1] * 9).astype(of_numbers)})
    for table, question in (path, "x > 'low'"), (numbers, "x > 3"):
        how: dict[str, Any] = {"epsilon": 8.0, "seed": 1, "notice": unsaid}
        runs = [ldp.survey(table, question, tier=tier, **how) for tier in ("population", "hosts")]
        assert runs[0].truth == 0.5
        assert len({run.to_dict()["rounds"][0]["digest"] for run in runs}) == 1


def test_a_column_in_the_place_of_its_name_is_refused() -> None:
    """The line names the column where the table has it, and shows no cell."""
    table = pandas.DataFrame({"x": [987_654] * 4, "y": ["secret"] * 4})
    for column, own in (table.x, "x"), (table.y.to_numpy(), "age"), ([table.y], "y"):
        for ask, values in (
            (ldp.mean, {"column": column, "bounds": (0, 1)}),
            (ldp.curate.histogram, {"column": column}),
            (ldp.survey, {"question": "x > 1", "by": column}),
        ):
            with pytest.raises(InputError, match=f"name the column: '{own}'$"):
                ask(table, **values)
    assert ldp.mean(table, table.columns[:1], bounds=(0, 1e6), seed=1, notice=unsaid).value
    for cells in polars.Series([987_654.0]), table.x:
        calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
            (ldp.run, {"protocol": "mean-vector", "columns": cells, "low": 0, "high": 9}),
            (ldp.quantiles, {"table": table, "column": "x", "bounds": (0, 9), "at": cells}),
            (ldp.compare, {"task": "mean", "epsilon": cells}),
            (ldp.audit, {"name": cells}),
        ]
        for ask, values in calls:
            with pytest.raises(InputError, match="a Series") as error:
                ask(**values)
            assert "987" not in str(error.value)


def test_whole_numbers_may_be_stored_as_fractions() -> None:
    """A simulation takes them; it counts fractions and gaps."""
    one, other = (
        ldp.run(
            "prefix-sums", {"x": np.array([1, 3] * 9, of)}, column="x", k=4, seed=1, notice=unsaid
        )
        for of in ("i8", "f8")
    )
    assert one.value == other.value
    for name in ("prefix-sums", "heavy-hitters"):
        with pytest.raises(InputError, match="in 1 of 3 records 'x' has no whole number"):
            ldp.run(name, {"x": [1, None, 2]}, column="x")


def test_a_fixed_zone_shows_its_own_hour(tmp_path: Path) -> None:
    """Polars panics at it in a Parquet file, unless the zone is left as it is."""
    days = polars.Series("x", [datetime(2020, 1, 1)] * 9).dt.replace_time_zone("Israel")
    data = days.to_frame().write_ipc(None).getvalue().replace(b"Israel", b"+05:30")
    (frame := polars.read_ipc(data)).write_parquet(path := tmp_path / "t.parquet")
    for table in (path, frame):
        assert ldp.survey(table, "x < '2020-01-01 04:00'", seed=1, notice=unsaid).truth == 1.0


@pytest.mark.parametrize(
    "text", ["2-Jan-2020", "2 January 2020", "2-Jan-20", "Jan 2, 2020", "1/2/2020"]
)
def test_the_form_that_a_refusal_names_works(text: str) -> None:
    with pytest.raises(InputError, match="give the form of its dates") as refusal:
        ldp.survey({"x": [text]}, f"x < '{text}'")
    dates = {"x": str(refusal.value).split('"')[-2]}
    assert records_of({"x": [text]}, dates=dates)["x"].astype(str) == "2020-01-02T00:00:00.000000"


def test_labels_that_look_alike_get_one_notice() -> None:
    labels, notices = ["caf\u00e9", "cafe\u0301", "y", "y ", "y\u00a0"], list[str]()
    ldp.frequency({"x": labels * 9}, "x", labels=labels, seed=1, notice=notices.append)
    assert notices[0].startswith("labels that look like others: 3;")
    with pytest.raises(InputError, match="'x' has 1 label; give 2 to"):
        ldp.frequency({"x": ["y"]}, "x", labels=["y"])
