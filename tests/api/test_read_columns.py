"""Of a table, a run reads the columns that its protocol names; every other bit of the run stays, and so does every refusal."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from pandas import DataFrame

import local_dp as ldp
from local_dp.errors import InputError, LocalDPError
from local_dp.experiments.api import trusted
from local_dp.experiments.api.asking import RunOptions, ask
from local_dp.experiments.api.curating.learned import LearnedRule
from local_dp.experiments.api.tables import read_records, read_schema, records_of, unsaid
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records
from tests.support.inputs.launches import CITIES, RUNNING, TABLE
from tests.support.long import short
from tests.support.runs.asked import QUESTIONS
from tests.support.runs.command import local_dp
from tests.support.runs.people import written


def _outcome(protocol: LocalProtocol[Any], path: Path, stores: Path | None = None) -> tuple[Any, Any]:
    """The table of a run, and all else but its times; or the refusal."""
    try:
        data = ask(protocol, path, RunOptions(seed=5, notice=unsaid, stores=stores)).to_dict()
    except LocalDPError as error:
        return {}, str(error)
    rounds = [{**each, "seconds": 0} for each in data["rounds"]]
    return data["table"], {name: value for name, value in {**data, "rounds": rounds}.items() if name not in ("table", "wall_s")}


ASKED: dict[str, dict[str, Any]] = {
    **RUNNING,
    "learn": {**RUNNING["learn"], "features": ("age > 30",)},
    "survey": {**RUNNING["survey"], "missing": "exclude", "by": "city", "labels": CITIES, "other": "exclude"},
}


@pytest.mark.parametrize("name", short(ASKED, lambda name: name != "heavy-hitters"))
def test_the_named_columns_are_all_that_a_run_needs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run of every protocol gives the same result, truth and digests as on the whole table; its table has the named columns alone."""
    path = tmp_path / "t.parquet"
    polars.DataFrame(TABLE.columns).write_parquet(path)
    protocol = PROTOCOLS[name](**ASKED[name])
    table, outcome = _outcome(protocol, path)
    words = set(re.findall(r"\w+", " ".join(map(str, (value for key, value in ASKED[name].items() if key != "labels")))))
    assert table, outcome
    assert table["columns"] == [column for column in TABLE.columns if column in words]
    monkeypatch.setattr(type(protocol), "reads", None)
    whole, expected = _outcome(protocol, path)
    assert outcome == expected
    assert whole["columns"] == list(TABLE.columns)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_needs_the_named_columns(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A curator's release from the columns that the question names is that from the whole table."""
    question, arguments = QUESTIONS[name]
    path, read = str(written(tmp_path)), list[Records]()

    def noted(*table: Any, **how: Any) -> Records:
        read.append(records_of(*table, **how))
        return read[-1]

    monkeypatch.setattr(trusted, "records_of", noted)
    asked = question(path, seed=3).to_dict()
    for kind in (trusted.Question, LearnedRule):
        monkeypatch.setattr(kind, "reads", None)
    assert {**question(path, seed=3).to_dict(), "wall_s": 0} == {**asked, "wall_s": 0}
    assert list(read[0].columns) == [column for column in read[1].columns if column in re.findall(r"\w+", arguments)]


def test_a_file_in_any_form_is_one_table(tmp_path: Path) -> None:
    """Parquet, CSV, a folder, a pattern and frames give one digest of the column; a file of a pattern stands in the order of its name."""
    frame = polars.DataFrame({"a": np.arange(40) % 7, "b": ["x", "K\u00f6ln"] * 20, "c": np.linspace(0, 1, 40)})
    for suffix, write in ((".csv", polars.DataFrame.write_csv), (".parquet", polars.DataFrame.write_parquet)):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        for place in (2, 0, 1, 3):
            write(frame.slice(10 * place, 10), folder / f"part{place}{suffix}")
        write(frame, tmp_path / f"t{suffix}")
    tables = [tmp_path / name for name in ("t.csv", "t.parquet", "csv", "parquet", "csv/*.csv", "parquet/part[0-9].parquet")]
    pandas = DataFrame(frame.to_dict(as_series=False))
    told = [ldp.survey(table, "a > 3 and b == 'x'", seed=1, notice=unsaid).to_dict()["table"] for table in (*tables, frame, frame.lazy(), pandas)]
    assert told == [told[0]] * len(told)
    assert told[0]["columns"] == ["a", "b"]
    done = local_dp("run", "survey", "--records", str(tables[-1]), "--question", "d > 1", "--seed", "1")
    assert "no column 'd'; there are a, b, c" in done.stderr
    with pytest.raises(InputError, match=r"there is no file '.*none\*.csv'"):
        read_records(tmp_path / "none*.csv")
    with pytest.raises(InputError, match=r"the pattern '\*' has .csv and .parquet tables"):
        read_records(tmp_path / "*")


def test_a_query_beyond_the_named_columns_is_refused() -> None:
    """A protocol of a plug-in whose query is about another column than `reads` names gets a line; one that names none reads the first column."""
    table = records_of({"a": [1, 2], "b": [3, 4]}, only=["b"])
    for part in (table, table.take(slice(0, 1)), table.schema(), table.at_length()):
        with pytest.raises(InputError, match="'a' was not read, because the protocol does not name it; add it to `reads`"):
            part["a"]
        with pytest.raises(InputError, match="no column 'c'; there are a, b"):
            part["c"]
    assert list(records_of({"a": [1], "b": [2]}, only=["c"]).columns) == ["a"]


def test_a_store_belongs_to_whole_rows(tmp_path: Path) -> None:
    """With stores, all columns are read: another question finds the rows that the store belongs to, and their budget spent."""
    polars.DataFrame({"a": [1, 2] * 5, "b": [3, 4] * 5}).write_parquet(tmp_path / "t.parquet")
    first, second = (_outcome(Survey(question=question), tmp_path / "t.parquet", tmp_path / "stores") for question in ("a > 1", "b > 3"))
    assert first[0]["columns"] == ["a", "b"]
    assert "costs more than this client's budget has left" in second[1]
    with pytest.raises(InputError, match="would have a budget in each"):
        ldp.survey(tmp_path / "t.parquet", "a > 1", person="b", notice=unsaid)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,2,3\n4,5,6,7\n", "line 3 of 't.csv' has 4 cells"), ("1,2,3\n4,5\n", "line 3 of 't.csv' has 2 cells"), ("1,2\n4,5,6,7\n", "line 2 of 't.csv' has 2"),
        ('1,"2,0",3\n', ""), ('1,"2,3\n', "line 2 of 't.csv' begins a cell"), ("1,,\n,,\n2,,x\n", ""), ("1,2,3\n\n2,3,4\n", ""), ("1,2,x\n2,NA,NA\n", ""),
    ],
)  # fmt: skip
def test_a_column_alone_hides_no_malformed_row(rows: str, words: str, tmp_path: Path) -> None:
    """A row of too many or too few cells stops the run though the column asked is whole; rows without a cell are left out as before."""
    path, read = tmp_path / "t.csv", list[Any]()
    path.write_text(f"a,b,c\n{rows}")
    for only in (None, ["a"], ["b"]):
        try:
            records = read_records(path, notice=str, only=only)
            read.append((records.known, {name: values.tolist() for name, values in records.columns.items() if name == "a"}))
        except InputError as error:
            read.append(str(error))
    assert read[0] == read[1]
    assert words in str(read[2])
    assert (not words) or read[0] == read[2]


def test_a_decimal_sign_is_decided_by_all_columns(tmp_path: Path) -> None:
    """A column of 1.234 is read by the decimal comma of another column, though that one is not asked about."""
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1.234;1,5\n2.345;2,5\n")
    assert read_records(path, notice=str, only=["a"])["a"].tolist() == [1234, 2345]


def test_a_parquet_file_declares_its_types(tmp_path: Path) -> None:
    """A schema from the metadata is one for all rows: a missing whole number changes no type. Columns that no question can be about are left out."""
    columns = {"n": [1, 2], "x": [0.5, 1], "b": [True, False], "t": ["x", "K\u00f6ln"], "d": [date(2026, 1, 1), date(2026, 2, 1)], "odd": [[1], [2]]}
    whole, lacking = tmp_path / "whole.parquet", tmp_path / "lacking.parquet"
    polars.DataFrame(columns).write_parquet(whole)
    polars.DataFrame(columns).with_columns(polars.all().shift(1)).write_parquet(lacking)
    assert read_schema(whole) == read_schema(lacking) == {"n": "number", "x": "number", "b": "number", "t": "text", "d": "date"}
    kinds = [[values.dtype.kind for values in read_records(path, read_schema(path), total=True).columns.values()] for path in (whole, lacking)]
    assert kinds == [["f", "f", "f", "U", "M"]] * 2
    told = ldp.curate.mean(str(lacking), "n", bounds=(0, 3), private=True, schema=str(whole), missing="exclude", outside="clip").to_dict()
    assert told["private"]


def test_texts_become_letters_as_numpy_has_them() -> None:
    """Texts of one to four bytes a letter, empty, missing and with a NUL give the array that numpy makes of the list, type and all."""
    kinds = ["K\u00f6ln", "\u65e5\u672c", "a\U0001f600b", "", "x\0y", "plain", "x\0", None]
    for texts in ([*kinds], ["", None], ["one"], [kinds[place % 8] for place in range(70_000)]):
        values = records_of(polars.DataFrame({"t": texts}), notice=str)["t"]
        expected = np.array([text or "" for text in texts], dtype=np.str_)
        assert values.dtype == expected.dtype
        assert np.array_equal(values, expected)
