"""Dates and truth values in tables of every form: which columns are dates, what is said of them,
and what a question about them answers."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import local_dp as ldp
from local_dp.api.tables import read_records, records_of
from local_dp.queries.dates import FORMS
from local_dp.records import Records
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

CSV = """iso,time,us,mixed,flag,gap,age
2020-05-01,2020-05-01T10:00,5/1/2020,2020-05-01,true,true,20
2020-06-01,2020-06-01 00:00:00.5,6/1/2020,1/6/2020,false,,30
,,,,true,false,40
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    return path


@wrong(
    "local_dp.storage.columns:dates_of",
    "texts.str.to_datetime(form, strict=False, time_unit='us')",
    "texts.str.to_datetime('%d/%m/%Y', strict=False, time_unit='us')",
    "a date is read in another form than the one that was declared",
)
def test_a_column_of_a_file_is_a_date_in_one_form_only(table: Path) -> None:
    """YYYY-MM-DD with or without a time is read and noted; other forms stay text until theirs is
    declared; truth values stay such where none is missing."""
    notes = list[str]()
    records = read_records(table, notice=notes.append)
    assert notes[:2] == [
        f"column '{name}' is read as dates of the form YYYY-MM-DD" for name in ("iso", "time")
    ]
    assert notes[2:] == [
        "column 'us' is text, not dates, until their form is declared: us=%m/%d/%Y or %d/%m/%Y",
        "column 'mixed' is text, not dates, because no form fits them all",
    ]
    assert (
        "".join(
            records[name].dtype.kind
            for name in ("iso", "time", "us", "mixed", "flag", "gap", "age")
        )
        == "MMUUbfi"
    )
    assert records["time"].astype(str).tolist() == [
        "2020-05-01T10:00:00.000000",
        "2020-06-01T00:00:00.500000",
        "NaT",
    ]
    with_form = read_records(table, notice=notes.append, dates={"us": "%m/%d/%Y"})
    assert with_form["us"].astype("M8[D]").astype(str).tolist() == [
        "2020-05-01",
        "2020-06-01",
        "NaT",
    ]
    of_schema = read_records(
        table, {"us": "date %d/%m/%Y", "iso": "date", "mixed": "date", "flag": "truth"}, total=True
    )
    assert of_schema["us"].astype("M8[D]").astype(str).tolist() == [
        "2020-01-05",
        "2020-01-06",
        "NaT",
    ]
    assert np.isnan(of_schema["mixed"]).tolist() == [False, True, True]
    assert of_schema["flag"].tolist() == [True, False, True]


def test_each_form_that_is_offered_reads_the_dates(tmp_path: Path) -> None:
    """By a file and by a question; also where a later month has a longer name."""
    days = [datetime(2020, 5, 13, 14, 30), datetime(2019, 12, 23)]
    for form in (*FORMS[::5], "%d-%b-%Y", "%d/%b/%Y", "%b %d, %Y"):
        texts = [day.strftime(form.replace("%z", "+02:00")) for day in days]
        notes, path = list[str](), tmp_path / "t.csv"
        polars.DataFrame({"d": texts, "x": [1, 2]}).write_csv(path)
        read_records(path, notice=notes.append)
        with pytest.raises(ldp.InputError) as error:
            ldp.survey({"d": texts}, "d < '2020-05-01'", epsilon=1)
        forms = re.findall(r"%[^'\"=]+?(?=['\"]| or )", f"{notes} {error.value}")
        assert form.replace("%b", "%B") in forms
        for each in forms:
            dates = read_records(path, notice=str, dates={"d": each})["d"]
            assert dates.astype("M8[D]").tolist() == [day.date() for day in days]


def test_questions_about_dates_and_truth_values() -> None:
    """Once the form of dates is declared, the share is the right one. Truth values have labels."""
    many = {
        "us": ["5/1/2020", "12/1/2019", "6/1/2020", "6/2/2020"] * 500,
        "flag": [True, False, True, True] * 500,
    }
    how: dict[str, Any] = {"epsilon": 8, "seed": 1, "dates": {"us": "%m/%d/%Y"}}
    assert ldp.survey(many, "us < '2020-05-02' and not flag", **how).truth == 0.25
    assert ldp.survey(many, "flag", **how).truth == 0.75
    assert ldp.frequency(many, "flag", labels=[True, False], **how).truth == [0.75, 0.25]


def test_wrong_forms_and_uses_of_dates_are_one_line(table: Path) -> None:
    days = Records({"d": np.array(["2020-05-01"], dtype="M8[us]")})
    refuse(
        ("give the form of the dates in 'us', as in --date 'us=%m/%d/%Y'",
        lambda: read_records(table, notice=str, dates={"us": "US"})),
        ("no value of 'us' is a date in the form '%Y/%m/%d'",
        lambda: read_records(table, notice=str, dates={"us": "%Y/%m/%d"})),
        ("no column 'x'", lambda: read_records(table, notice=str, dates={"x": "%m/%d/%Y"})),
        ("neither true nor false", lambda: read_records(table, {"gap": "truth"})),
        ("is no schema", lambda: records_of(table, {"us": "date US"})),
        ("use numbers, truth values, dates in microseconds",
        lambda: Records({"d": np.array(["2020-05-01"], dtype="M8[D]")})),
        ("is of dates; this query needs numbers", lambda: days.numbers("d")),
        ("is of dates; this query needs whole numbers", lambda: days.whole("d")),
    )  # fmt: skip


def test_a_digest_sees_dates_and_takes_truth_values_for_0_and_1() -> None:
    """So a store that was bound to truth values as 0 and 1 stays with its rows."""
    days = [
        Records({"d": np.array([text], dtype="M8[us]")}).digest()
        for text in ("2020-05-01", "2020-05-01T00:00:00.000001", "NaT")
    ]
    assert len(set(days)) == 3
    assert (
        Records({"x": np.array([True, False])}).digest()
        == Records({"x": np.array([1, 0], dtype=np.uint8)}).digest()
    )
