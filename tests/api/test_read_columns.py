"""Of a table, a run reads the columns that its protocol names; every other bit of the run stays,
and so does every refusal."""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from pandas import DataFrame, Series

import local_dp as ldp
from local_dp.api import tables, trusted
from local_dp.api.asking import RunOptions, ask
from local_dp.api.curating.learned import LearnedRule
from local_dp.api.schemas import read_schema
from local_dp.api.tables import read_records, records_of, unsaid
from local_dp.errors import InputError, LocalDPError
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records, absent
from tests.support.inputs.launches import CITIES, RUNNING, TABLE
from tests.support.long import short
from tests.support.runs.asked import QUESTIONS
from tests.support.runs.people import written
from tests.support.wrong import wrong


def _outcome(
    protocol: LocalProtocol[Any], path: Path, stores: Path | None = None
) -> tuple[Any, Any]:
    """The table of a run, and all else but its times; or the refusal."""
    try:
        data = ask(protocol, path, RunOptions(seed=5, notice=unsaid, stores=stores)).to_dict()
    except LocalDPError as error:
        return {}, str(error)
    rounds = [{**each, "seconds": 0} for each in data["rounds"]]
    return data["table"], {
        name: value
        for name, value in {**data, "rounds": rounds}.items()
        if name not in ("table", "wall_s")
    }


ASKED: dict[str, dict[str, Any]] = {
    **RUNNING,
    "learn": {**RUNNING["learn"], "features": ("age > 30",)},
    "survey": {
        **RUNNING["survey"],
        "missing": "exclude",
        "by": "city",
        "labels": CITIES,
        "other": "exclude",
    },
}


@wrong(
    "local_dp.protocols.learning.learn:Learn.reads",
    "names_in(self.features, self.given, self.label)",
    "names_in(self.features, self.given)",
    "a question about a column of the table is refused, as if there were none",
    at="learn",
)
@pytest.mark.parametrize("name", short(ASKED, lambda name: name != "heavy-hitters"))
def test_the_named_columns_are_all_that_a_run_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run of every protocol gives the same result, truth and digests as on the whole table; its
    table has the named columns alone."""
    path = tmp_path / "t.parquet"
    polars.DataFrame(TABLE.columns).write_parquet(path)
    protocol = PROTOCOLS[name](**ASKED[name])
    table, outcome = _outcome(protocol, path)
    words = set(
        re.findall(
            r"\w+",
            " ".join(map(str, (value for key, value in ASKED[name].items() if key != "labels"))),
        )
    )
    assert table, outcome
    assert table["columns"] == [column for column in TABLE.columns if column in words]
    monkeypatch.setattr(type(protocol), "reads", None)
    whole, expected = _outcome(protocol, path)
    assert outcome == expected
    assert whole["columns"] == list(TABLE.columns)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_needs_the_named_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curator's release from the columns that the question names is that from the whole table."""
    question, arguments = QUESTIONS[name]
    path, read = str(written(tmp_path)), list[Records]()

    def note(*table: Any, **how: Any) -> Records:
        read.append(records_of(*table, **how))
        return read[-1]

    monkeypatch.setattr(trusted, "records_of", note)
    release = question(path, seed=3).to_dict()
    for kind in (trusted.Question, LearnedRule):
        monkeypatch.setattr(kind, "reads", None)
    assert {**question(path, seed=3).to_dict(), "wall_s": 0} == {**release, "wall_s": 0}
    assert list(read[0].columns) == [
        column for column in read[1].columns if column in re.findall(r"\w+", arguments)
    ]


def test_a_query_beyond_the_named_columns_is_refused() -> None:
    """A protocol of a plug-in whose query is about another column than `reads` names gets a line;
    one that names none reads the first column."""
    table = records_of({"a": [1, 2], "b": [3, 4]}, only=["b"])
    for part in (table, table.take(slice(0, 1)), table.schema(), table.at_length()):
        with pytest.raises(
            InputError,
            match="'a' was not read, because the protocol does not name it; add it to `reads`",
        ):
            part["a"]
        with pytest.raises(InputError, match="no column 'c'; there are a, b"):
            part["c"]
    assert list(records_of({"a": [1], "b": [2]}, only=["c"]).columns) == ["a"]


@wrong(
    "local_dp.api.asking:RunOptions.reads",
    "None if self.stores or self.person else protocol.reads",
    "protocol.reads",
    "another question about the same table takes its rows for others",
)
@pytest.mark.long
def test_a_store_belongs_to_whole_rows(tmp_path: Path) -> None:
    """With stores, all columns are read: another question finds the rows that the store belongs to,
    and their budget spent."""
    polars.DataFrame({"a": [1, 2] * 5, "b": [3, 4] * 5}).write_parquet(tmp_path / "t.parquet")
    first, second = (
        _outcome(Survey(question=question), tmp_path / "t.parquet", tmp_path / "stores")
        for question in ("a > 1", "b > 3")
    )
    assert first[0]["columns"] == ["a", "b"]
    assert "costs more than this client's budget has left" in second[1]
    with pytest.raises(InputError, match="would have a budget in each"):
        ldp.survey(tmp_path / "t.parquet", "a > 1", person="b", notice=unsaid)


def test_a_parquet_file_declares_its_types(tmp_path: Path) -> None:
    """A schema from the metadata is one for all rows: a missing whole number changes no type.
    Columns that no question can be about are left out."""
    columns = {
        "n": [1, 2],
        "x": [0.5, 1],
        "b": [True, False],
        "t": ["x", "K\u00f6ln"],
        "d": [date(2026, 1, 1), date(2026, 2, 1)],
        "odd": [[1], [2]],
    }
    whole, lacking = tmp_path / "whole.parquet", tmp_path / "lacking.parquet"
    polars.DataFrame(columns).write_parquet(whole)
    polars.DataFrame(columns).with_columns(polars.all().shift(1)).write_parquet(lacking)
    assert (
        read_schema(whole)
        == read_schema(lacking)
        == {"n": "number", "x": "number", "b": "number", "t": "text", "d": "date"}
    )
    kinds = [
        [
            values.dtype.kind
            for values in read_records(path, read_schema(path), total=True).columns.values()
        ]
        for path in (whole, lacking)
    ]
    assert kinds == [["f", "f", "f", "U", "M"]] * 2
    release = ldp.curate.mean(
        str(lacking),
        "n",
        bounds=(0, 3),
        private=True,
        schema=str(whole),
        missing="exclude",
        outside="clip",
    ).to_dict()
    assert release["private"]


def test_texts_become_letters_as_numpy_has_them() -> None:
    """Texts of one to four bytes a letter, empty, missing and with a NUL give the array that numpy
    makes of the list, type and all."""
    kinds = ["K\u00f6ln", "\u65e5\u672c", "a\U0001f600b", "", "x\0y", "plain", "x\0", None]
    for texts in ([*kinds], ["", None], ["one"], [kinds[place % 8] for place in range(70_000)]):
        values = records_of(polars.DataFrame({"t": texts}), notice=str)["t"]
        expected = np.array([text or "" for text in texts], dtype=np.str_)
        assert values.dtype == expected.dtype
        assert np.array_equal(values, expected)


LARGE, EAST = 2**53 + 1, timezone(timedelta(hours=2))
NINE = datetime(2021, 1, 1, 9)
READ: dict[str, tuple[Iterable[Any], str, list[Any]]] = {
    "a small numpy type first": ([np.int8(5), 300], "i", [5, 300]),
    "a short numpy fraction first": ([np.float32(2), 1e300], "f", [2, 1e300]),
    "whole numbers and fractions": (
        [1, 2.5, Fraction(1, 4), Decimal("NaN")],
        "f",
        [1, 2.5, 0.25, None],
    ),
    "truth values and numbers": ([True, 2], "i", [1, 2]),
    "numbers and texts": ([1, "a"], "U", ["1", "a"]),
    "a huge whole number and a fraction": ([2**70, 1.5], "f", [2.0**70, 1.5]),
    "days and times": (
        [np.datetime64("2021-01-01T09", "ns"), date(2021, 1, 2), NINE],
        "M",
        [NINE, datetime(2021, 1, 2), NINE],
    ),
    "masked whole numbers": (np.ma.masked_equal([1, 1, -999], -999), "f", [1, 1, None]),
    "masked texts": (np.ma.array(["a", "b"], mask=[False, True]), "U", ["a", ""]),
    "masked dates": (
        np.ma.array(np.array(["2021", "2022"], "M8[D]"), mask=[False, True]),
        "M",
        [datetime(2021, 1, 1), None],
    ),
    "one masked": ([1, np.ma.masked], "f", [1, None]),
    "times of two zones": (
        [NINE.replace(tzinfo=EAST), NINE.replace(tzinfo=timezone(timedelta(hours=5.5)))],
        "M",
        [NINE, NINE],
    ),
    "large whole numbers": ([LARGE, LARGE + 1], "i", [LARGE, LARGE + 1]),
}


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("case", READ)
def test_values_are_read_as_they_are(case: str, frame: bool) -> None:
    """No value takes the type of another; what is masked is missing; a time is what its own zone
    shows."""
    values, kind, expected = READ[case]
    column = (
        values
        if not frame or isinstance(values, Series | np.ma.MaskedArray)
        else Series(list(values), dtype=object)
    )
    result = records_of(
        DataFrame({"x": column}) if isinstance(column, Series) and frame else {"x": column},
        notice=str,
    )["x"]
    assert result.dtype.kind == kind
    gaps = absent(result) & (kind != "U")
    assert [
        None if gap else value for value, gap in zip(result.tolist(), gaps.tolist(), strict=True)
    ] == expected


UNREAD: dict[str, tuple[Any, str]] = {
    "numbers and dates": ([5, date(2020, 1, 1)], "numbers and dates; give values of one kind"),
    "a numpy duration and a number": (
        [np.timedelta64(5, "ns"), 2],
        "numbers and dates; give values of one kind",
    ),
    # as the parser finds it
    "a record and a number": (
        [{"a": 1}, 2],
        "(of another kind than the first; give values of one kind|not numbers or texts)",
    ),
    "a number beyond all types": ([2**200, 1], "too large"),
    "a column by its rows": (
        {0: 1.5, 1: 2.5},
        r"is dict; give one value for each record in a list, as df.to_dict\('list'\) does",
    ),
    "fractions in two directions": (np.ones((5, 1)), "has cells of type"),
    "large whole numbers and a gap": (
        [LARGE, None],
        r"beyond 2\^53 and a missing one; write them as text",
    ),
    "large whole numbers of pandas": (
        Series([LARGE, None], dtype="Int64"),
        r"beyond 2\^53 and a missing one",
    ),
    "large decimals": ([Decimal(LARGE)], r"beyond 2\^53 of a decimal type"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_values_of_no_one_kind_are_refused(case: str) -> None:
    """In one line that names the column and what to give."""
    with pytest.raises(InputError, match=rf"^column 'x' .*{UNREAD[case][1]}"):
        records_of({"x": UNREAD[case][0]}, notice=str)


def test_large_whole_numbers_are_merged_in_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a gap they are refused, also where the table is read as it is used; without one they are
    exact."""
    frame = polars.DataFrame({"h": [LARGE, LARGE + 1, None], "a": [1, 2, 3]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    frame[:2].write_parquet(tmp_path / "whole.parquet")
    monkeypatch.setattr(tables, "MANY", 1)
    for table in (frame, frame.lazy(), tmp_path / "t.csv", tmp_path / "t.parquet"):
        with pytest.raises(
            InputError, match=r"column 'h' holds whole numbers beyond 2\^53 and a missing one"
        ):
            records_of(table, notice=str)["h"]
    assert records_of(tmp_path / "whole.parquet", notice=str)["h"].tolist() == [LARGE, LARGE + 1]


def test_a_mask_is_no_type_of_a_private_column() -> None:
    """Whether one value is masked decides whether the others are fractions, so a private run needs
    a schema."""
    with pytest.raises(InputError, match="declare them: schema=FILE"):
        records_of({"x": np.ma.masked_equal([1, 2], 2)}, private=True)
    assert (
        records_of({"x": np.ma.masked_equal([1, 2], 2)}, {"x": "number"}, private=True)[
            "x"
        ].dtype.kind
        == "f"
    )
