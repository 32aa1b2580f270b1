"""Files as spreadsheets, statistics programs and databases write them are read rightly, or refused
with the line and the words to type; frames of any kind."""

import re
import shlex
from os import mkfifo
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import local_dp as ldp
from local_dp.api.files import Form
from local_dp.api.tables import read_records, records_of
from local_dp.errors import InputError
from local_dp.queries.dates import date_texts
from local_dp.records import absent
from tests.support.inputs.exports import READ, REFUSED, excel
from tests.support.inputs.fresh_tables import SOURCES, copied
from tests.support.inputs.fresh_tables import records as cells
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

LISTS = polars.DataFrame({"a": [1, 2], "odd": [[1], [2]]})
SCHEMA = {"x": "number", "n": "whole", "t": "text"}


@wrong(
    "local_dp.api.files:Source._sheet",
    "fractions[name].fill_null(rows[name][1:])",
    "rows[name][1:]",
    "a fraction in an Excel file loses its digits after the tenth",
    at="airports-xlsx",
)
@pytest.mark.parametrize(
    "form", ["csv", "tsv", "german", "parquet", "xlsx", "pandas", "polars", "lazy"]
)
@pytest.mark.parametrize("name", SOURCES)
def test_a_real_table_in_any_form_has_the_same_values(name: str, form: str, tmp_path: Path) -> None:
    """Twelve tables of other packages, as pandas has them: each name and cell, and which cells are
    missing; one column is doubted, and dates."""
    table, path, notices, csv = copied(name), tmp_path / f"t.{form}", list[str](), ""
    frame = polars.DataFrame(columns := cells(table))
    if form in ("csv", "tsv"):
        table.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    elif form == "german":
        table.to_csv(
            path := tmp_path / "t.csv", index=False, sep=";", decimal=",", encoding="utf-16"
        )
        csv = "sep=; decimal=, encoding=utf-16"
    elif form == "parquet":
        frame.write_parquet(path)
    elif form == "xlsx":
        path.write_bytes(excel({"t": [[*columns], *zip(*columns.values(), strict=True)]}))
    source = {"pandas": table, "polars": frame, "lazy": frame.lazy()}.get(form, path)
    records = records_of(source, notice=notices.append, csv=csv)
    assert all(
        "dates" in each or "'model' is text, because 369 of 370 cells are no numbers" in each
        for each in notices
    ), notices
    for column, expected in columns.items():
        values = records[column]
        texts = date_texts(values).tolist() if values.dtype.kind == "M" else values.tolist()
        result = [
            None if gap else value
            for value, gap in zip(texts, absent(values).tolist(), strict=True)
        ]
        assert result == [each or None if isinstance(each, str) else each for each in expected], (
            column
        )


@wrong(
    "local_dp.api.files:_text",
    "data.decode(form.encoding or 'utf-8', 'replace' if lossy else 'strict')",
    "data.decode('utf-8', 'replace')",
    "a label loses its accents in silence",
    at="a code page",
)
@wrong(
    "local_dp.api.inference:_doubts",
    "elif facts['known']:",
    "elif False:",
    "nobody hears that NA is a text in this column",
    at="it among texts",
)
@wrong(
    "local_dp.api.inference:_doubts",
    "elif facts['numbers']:",
    "elif False:",
    "nobody hears that one word among numbers makes them texts",
    at="a missing word",
)
@wrong(
    "local_dp.api.inference:_doubts",
    "0 < facts['points'] == facts['groups']",
    "facts['points'] < 0",
    "1.234 in a file that may be German is read in one of two ways",
    at="1.234",
)
@wrong(
    "local_dp.api.inference:_number",
    "~cell.str.contains('.', literal=True)",
    "cell.is_not_null()",
    "1.234 in a German file, which is 1234, is read as 1.234",
    at="German groups",
)
@wrong(
    "local_dp.api.inference:_number",
    "cell.str.replace(',', '.', literal=True)",
    "cell.str.replace(',', '', literal=True)",
    "1,5 is read as 15",
    at="the same, declared",
)
@wrong(
    "local_dp.api.inference:_kind",
    "not cells or facts['numbers'] < cells or facts['padded']",
    "not cells or facts['numbers'] < cells",
    "a postcode loses its first digit",
    at="leading zeros",
)
@pytest.mark.parametrize("name", READ)
def test_a_doubt_is_said_in_one_line(name: str, tmp_path: Path) -> None:
    """What may have been meant otherwise is read in the way that loses nothing, and the line names
    the words that decide; nothing else is said."""
    data, csv, columns, words = READ[name]
    (path := tmp_path / "t.csv").write_bytes(data)
    notices = list[str]()
    records = read_records(path, notice=notices.append, csv=csv)
    gaps = {
        column: absent(values) & (values.dtype.kind != "U")
        for column, values in records.columns.items()
    }
    result = {
        column: [
            None if gap else each for each, gap in zip(values.tolist(), gaps[column], strict=True)
        ]
        for column, values in records.columns.items()
    }
    assert result == columns
    assert [list(map(type, values)) for values in result.values()] == [
        list(map(type, values)) for values in columns.values()
    ]
    assert len(notices) == bool(words)
    assert words in "".join(notices)


@wrong(
    "local_dp.api.files:_check_rows",
    "lacks[-1] and width > 1",
    "lacks[-1] > width > 1",
    "the cells of a broken line stand in wrong columns",
    at="a short row-None",
)
@wrong(
    "local_dp.api.files:_check_rows",
    "polars.all",
    "polars.last",
    "the cells of a broken line stand in wrong columns, where the last column is not asked about",
    at="a long row-None",
)
@pytest.mark.parametrize("only", [None, ["b"]])
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_rightly_is_refused(
    name: str, only: Any, tmp_path: Path
) -> None:
    """In one line with the fault and the remedy, whichever columns are asked about."""
    data, csv, words = REFUSED[name]
    (path := tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError) as refusal:
        read_records(path, notice=str, csv=csv, only=only)["b"]
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["sep=::", "decimal=;", "seperator=;", "encoding=klingon", "encoding=hex", ";", 7]
)
def test_a_form_that_is_none_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match=r'csv="'):
        Form.parse(text)


def test_a_remedy_can_be_typed_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal names an option in a shell and a keyword in Python, and each of them makes the file
    readable; a frame takes none."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(b"a;b\n" + b"1,5;x\n2,5;y\n" * 900)
    with pytest.raises(InputError) as refusal:
        ldp.survey("t.csv", "a > 2", seed=1)
    (word, _) = re.findall(r'csv="([^"]*)"', str(refusal.value))
    with (
        pytest.warns(UserWarning, match="1,800 of 1,800 cells have a comma"),
        pytest.raises(InputError, match="is text"),
    ):
        ldp.survey("t.csv", "a > 2", seed=1, csv=word)
    assert ldp.survey("t.csv", "a > 2", seed=1, csv=f"{word} decimal=,").truth == 0.5
    command = shlex.split(
        "run survey --records t.csv --question 'a > 2' --seed 1 --tier population"
    )
    assert "--csv 'sep=;' or --csv sep=," in local_dp(*command).stderr
    assert local_dp(*command, "--csv", "sep=; decimal=,").returncode == 0
    with pytest.raises(InputError, match="leave out csv"):
        ldp.survey({"a": [1, 2]}, "a > 1", csv=word)


@pytest.mark.parametrize(("suffix", "total"), [(".csv", False), (".csv", True), (".xlsx", False)])
def test_of_a_declared_table_the_header_alone_is_detected(
    suffix: str, total: bool, tmp_path: Path
) -> None:
    """Rows that would each be detected otherwise give the same types and, where they are private,
    no refusal and no notice."""
    read, notices = set(), list[str]()
    for place, row in enumerate(("1,5;1;Köln", "1.234,5;2;", ";3;a,b", "true;4;NA", "1.5;5;x")):
        cells: list[Any] = row.split(";")
        path = tmp_path / f"{place}{suffix}"
        path.write_bytes(
            excel({"t": [list("xnt"), [cells[0], int(cells[1]), cells[2]]]})
            if suffix == ".xlsx"
            else f"x;n;t\n{row}\n".encode()
        )
        records = read_records(
            path,
            SCHEMA,
            total=total,
            notice=notices.append,
            csv="" if suffix == ".xlsx" else "sep=; decimal=,",
        )
        read.add(tuple(values.dtype.kind for values in records.columns.values()))
        assert records["n"].tolist() == [place + 1]
        if suffix == ".csv":
            assert np.array_equal(
                records["x"], [[1.5, np.nan, np.nan, 1.0, np.nan][place]], equal_nan=True
            )
    assert read == {("f", "i", "U")}
    assert notices == []


@wrong(
    "local_dp.api.files:Form.check_decimal",
    "self.sep_of(path) != ','",
    "self.sep_of(path) == ''",
    "1,5 of a private table is missing, in silence",
)
def test_a_private_refusal_is_about_the_header(tmp_path: Path) -> None:
    """Semicolons ask for the decimal sign, whatever the rows hold; bytes that are no UTF-8, long
    rows and open quotes do not stop a private member."""
    path = tmp_path / "t.csv"
    for row in (b"1;1;a", b"1.5;1;a", b"1,5;1;a", b""):
        path.write_bytes(b"x;n;t\n" + row + b"\n")
        with pytest.raises(
            InputError,
            match=(
                r"^'t.csv' has separator ';', so its numbers may have decimal commas; say which: "
                r"csv=\"decimal=,\""
            ),
        ):
            read_records(path, SCHEMA, total=True, csv="sep=;")
        with pytest.raises(InputError, match="can be separated in 2 ways"):
            read_records(path, SCHEMA, total=True)
    for row, text in {
        b"1;1;K\xf6ln": "K\ufffdln",
        b"1;1;a;b;c": "a",
        b"1;1": "",
        b"\x00;1;a": "a",
    }.items():
        path.write_bytes(b"x;n;t\n" + row + b"\n")
        assert read_records(path, SCHEMA, total=True, csv="sep=; decimal=.")["t"].tolist() == [text]
    (tmp_path / "t.xlsx").write_bytes(excel({"t": [["t"], ["a"]]}))
    with pytest.raises(InputError, match="save a private table as CSV or Parquet"):
        read_records(tmp_path / "t.xlsx", SCHEMA, total=True)
    path.write_bytes("x,n,größe\n1,1,Köln\n".encode("cp1252"))
    with pytest.raises(
        InputError, match=r'is not in UTF-8; name its encoding, such as csv="encoding=cp1252"'
    ):
        read_records(path, {"größe": "text"}, total=True)
    assert read_records(path, {"größe": "text"}, total=True, csv="encoding=cp1252")[
        "größe"
    ].tolist() == ["Köln"]
    path.write_bytes(b"x,t\n1,a\n,b\n\n\r\n")
    assert read_records(path, {"x": "whole", "t": "text"}, total=True)["x"].tolist() == [1, 0], (
        "empty lines at the end are no records, a record without a value is"
    )


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    """Files of one kind are laid together, whole numbers with fractions and an empty column with a
    full one; other columns, two kinds and none are refused."""
    writers: dict[str, Any] = {
        ".csv": lambda path, frame: frame.write_csv(path), ".parquet": lambda path,
        frame: frame.write_parquet(path),
        ".xlsx": lambda path, frame: path.write_bytes(excel({"s": [frame.columns, *frame.rows()]})),
    }  # fmt: skip
    with pytest.raises(InputError, match="has no tables"):
        read_records(tmp_path)
    (tmp_path / "gone.csv").symlink_to("nowhere")
    mkfifo(tmp_path / "pipe.csv")
    for name, line in (("gone.csv", "No such file"), ("pipe.csv", "is a pipe")):
        with pytest.raises(InputError, match=line):
            read_records(tmp_path / name)
    for suffix, write in writers.items():
        (folder := tmp_path / suffix[1:]).mkdir()
        for place, (a, b) in enumerate((([1, 2], [None, None]), ([0.5], [7]))):
            write(
                folder / f"{place}{suffix}",
                polars.DataFrame({"a": a, "b": b}, schema_overrides={"b": polars.Int64}),
            )
        notices: list[str] = []
        table = read_records(folder, notice=notices.append)
        assert table["a"].tolist() == [1, 2, 0.5]
        assert np.array_equal(table["b"], [np.nan, np.nan, 7], equal_nan=True)
        assert notices == [f"{folder.name!r}: 2 {suffix} files"]
        write(folder / f"3{suffix}", polars.DataFrame({"a": [1]}))
        with pytest.raises(InputError, match="give files of equal columns"):
            read_records(folder)
    (tmp_path / "csv" / "4.parquet").write_bytes(b"")
    for name, words in (
        ("csv", r"has \.csv and \.parquet tables"),
        ("csv/*", r"has \.csv and \.parquet tables"),
        ("none*.csv", "there is no file"),
    ):
        with pytest.raises(InputError, match=words):
            read_records(tmp_path / name)
    (tmp_path / "book.xlsx").write_bytes(
        excel(
            {
                "Data": [["age", "day", None], [31, (45000,), 1], ["NA", (45001,), 2]],
                "Notes": [["x"]],
            }
        )
    )
    table = read_records(tmp_path / "book.xlsx", notice=notices.append, csv="missing=NA")
    assert str(table["age"].tolist()) == "[31.0, nan]"
    assert date_texts(table["day"]).tolist() == ["2023-03-15", "2023-03-16"]
    assert (
        "'book.xlsx': sheet 'Data', the first of 2; columns without a name left out: 1" in notices
    )
    with pytest.raises(InputError, match="leave out csv"):
        read_records(tmp_path / "book.xlsx", csv="sep=;")


def _frames() -> dict[str, Any]:
    import pandas

    frame = polars.DataFrame({"a": [1, 2]})
    return {"LazyFrame": frame.lazy(), "Series": frame["a"],
    "pandas": pandas.DataFrame({"a": [1, 2]}), "pandas Series": pandas.Series([1, 2], name="a"),
            "an odd column": LISTS, "an odd list": {"a": [1, 2], "odd": [[1], [2]]},
            "beyond 64 bits": {"a": [1, 2], "odd": [10**25, 1]},
            "odd in pandas": pandas.DataFrame({"a": [1, 2], "odd": [{1}, {2}]})}  # fmt: skip


@pytest.mark.parametrize("name", _frames())
def test_a_frame_of_any_kind_is_a_table(name: str) -> None:
    """An odd column does no harm: a notice names it, and a question about it, or a schema with it,
    gets the line that says why."""
    notices: list[str] = []
    table = _frames()[name]
    records = records_of(table, notice=notices.append)
    assert {each: values.tolist() for each, values in records.columns.items()} == {"a": [1, 2]}
    assert len(notices) == ("odd" in records.odd) == ("odd" in name or "64" in name)
    if notices:
        assert notices[0].endswith("'odd'")
        for ask in (
            lambda: records["odd"],
            lambda: records.take(np.array([0])).schema()["odd"],
            lambda: records_of(table, {"odd": "text"}, notice=str),
        ):
            with pytest.raises(
                InputError,
                match=r"column 'odd' (has cells of type|holds whole numbers beyond 64 bits)",
            ):
                ask()


@pytest.mark.parametrize("seed", [1.5, "1", -1, True, 1 << 64])
def test_a_seed_of_another_kind_gets_a_line(seed: Any) -> None:
    with pytest.raises(InputError, match=r"^seed is \S+; give a whole number"):
        ldp.survey({"a": [1, 2] * 900}, "a > 1", seed=seed)
