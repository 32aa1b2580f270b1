"""Files as spreadsheets, statistics programs and databases write them are read rightly, or refused with the line and the words to type; frames of any kind."""

import csv
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import local_dp as ldp
from local_dp.errors import InputError
from local_dp.experiments.api import files
from local_dp.experiments.api.cells import Form
from local_dp.experiments.api.tables import read_records, records_of
from tests.support.inputs.exports import EXPORTS, excel, outcome, parquet
from tests.support.runs.command import local_dp

LISTS = polars.DataFrame({"a": [1, 2], "odd": [[1], [2]]})
SCHEMA = {"x": "number", "n": "whole", "t": "text"}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_file_is_read_rightly_or_refused(name: str, tmp_path: Path) -> None:
    """Each of forty files gives exactly its columns and types, or one line with the fault and the remedy; what was detected is one line."""
    export = EXPORTS[name]
    read, line = outcome(export, tmp_path)
    assert read == export.read
    assert [list(map(type, values)) for values in read.values()] == [list(map(type, values)) for values in export.read.values()]
    assert all(words in line for words in (*export.said, export.refused)), line
    assert bool(line) == bool(export.said or export.refused), line
    assert "\n" not in line


@pytest.mark.parametrize("text", ["sep=::", "decimal=;", "seperator=;", "encoding=klingon", "encoding=hex", ";", 7])
def test_a_form_that_is_none_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match=r'csv="'):
        Form.parse(text)


def test_a_remedy_can_be_typed_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal names an option in a shell and a keyword in Python, and each of them makes the file readable; a frame takes none."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(b"a;b\n" + b"1.234;x\n2.345;y\n" * 900)
    with pytest.raises(InputError) as refused:
        ldp.survey("t.csv", "a > 2000", seed=1)
    said: list[str] = []
    (word, _) = re.findall(r'csv="([^"]*)"', str(refused.value))
    assert ldp.survey("t.csv", "a > 2000", seed=1, csv=word, notice=said.append).truth == 0.5
    assert "decimal comma" in said[0]
    with pytest.warns(UserWarning, match="decimal comma"):
        ldp.curate.mean("t.csv", "a", bounds=(0, 3000), seed=1, csv=word)
    command = ("run", "survey", "--records", "t.csv", "--question", "a > 2", "--seed", "1", "--tier", "population")
    assert "--csv decimal=, or --csv decimal=." in local_dp(*command).stderr
    done = local_dp(*command, "--csv", "decimal=.")
    assert done.returncode == 0
    assert "'t.csv' is read as: separator ';'" in done.stderr
    with pytest.raises(InputError, match="leave out csv"):
        ldp.survey({"a": [1, 2]}, "a > 1", csv=word)


@pytest.mark.parametrize(("suffix", "total"), [(".csv", False), (".csv", True), (".xlsx", False)])
def test_of_a_declared_table_the_header_alone_is_detected(suffix: str, total: bool, tmp_path: Path) -> None:
    """Rows that would each be detected otherwise give the same types and, where they are private, no refusal and no notice."""
    read, said = set(), list[str]()
    for place, row in enumerate(("1,5;1;Köln", "1.234,5;2;", ";3;a,b", "wahr;4;NA", "1.5;5;x")):
        cells: list[Any] = row.split(";")
        path = tmp_path / f"{place}{suffix}"
        path.write_bytes(excel({"t": [list("xnt"), [cells[0], int(cells[1]), cells[2]]]}) if suffix == ".xlsx" else f"x;n;t\n{row}\n".encode())
        records = read_records(path, SCHEMA, total=total, notice=said.append, csv="" if suffix == ".xlsx" else "decimal=,")
        read.add(tuple(values.dtype.kind for values in records.columns.values()))
        assert records["n"].tolist() == [place + 1]
        if suffix == ".csv":
            assert np.array_equal(records["x"], [[1.5, 1234.5, np.nan, 1.0, np.nan][place]], equal_nan=True)
    assert read == {("f", "i", "U")}
    assert bool(said) == (suffix == ".csv" and not total)


def test_a_private_refusal_is_about_the_header(tmp_path: Path) -> None:
    """Semicolons ask for the decimal sign, whatever the rows hold; bytes that are no UTF-8, long rows and open quotes do not stop a private member."""
    path = tmp_path / "t.csv"
    for row in (b"1;1;a", b"1.5;1;a", b"1,5;1;a", b""):
        path.write_bytes(b"x;n;t\n" + row + b"\n")
        with pytest.raises(InputError, match=r"^'t.csv' has separator ';', so its numbers may have decimal commas; say which: csv=\"decimal=,\""):
            read_records(path, SCHEMA, total=True)
    for row, text in {b"1;1;K\xf6ln": "K\ufffdln", b"1;1;a;b;c": "a", b"1;1": "", b"\x00;1;a": "a"}.items():
        path.write_bytes(b"x;n;t\n" + row + b"\n")
        assert read_records(path, SCHEMA, total=True, csv="decimal=.")["t"].tolist() == [text]
    (tmp_path / "t.xlsx").write_bytes(excel({"t": [["t"], ["a"]]}))
    with pytest.raises(InputError, match="save a private table as CSV or Parquet"):
        read_records(tmp_path / "t.xlsx", SCHEMA, total=True)
    path.write_bytes("x;n;größe\n1;1;Köln\n".encode("cp1252"))
    assert read_records(path, {"größe": "text"}, total=True)["größe"].tolist() == ["Köln"]
    path.write_bytes("x,t\n1,Köln\n".encode("cp1252"))
    with pytest.raises(InputError, match=r'is not in utf-8; name its encoding, such as csv="encoding=cp1252"'):
        read_records(path, {"t": "text"})


def test_a_folder_of_other_kinds(tmp_path: Path) -> None:
    """Parquet and Excel files are laid together too, whole numbers with fractions; nothing in the folder is no table."""
    with pytest.raises(InputError, match="has no tables"):
        read_records(tmp_path)
    for suffix, write in ((".parquet", parquet), (".xlsx", lambda columns: excel({"s": [[*columns], *zip(*columns.values(), strict=True)]}))):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        for place, values in enumerate(([1, 2], [0.5])):
            (folder / f"{place}{suffix}").write_bytes(write({"a": values}))
        said: list[str] = []
        assert read_records(folder, notice=said.append)["a"].tolist() == [1, 2, 0.5]
        assert said == [f"{folder.name!r} is read as: 2 {suffix} files"]


def _frames() -> dict[str, Any]:
    import pandas

    frame = polars.DataFrame({"a": [1, 2]})
    return {"LazyFrame": frame.lazy(), "Series": frame["a"], "pandas": pandas.DataFrame({"a": [1, 2]}), "pandas Series": pandas.Series([1, 2], name="a"),
            "an odd column": LISTS, "an odd list": {"a": [1, 2], "odd": [[1], [2]]}, "beyond 64 bits": {"a": [1, 2], "odd": [10**25, 1]},
            "odd in pandas": pandas.DataFrame({"a": [1, 2], "odd": [{1}, {2}]})}  # fmt: skip


@pytest.mark.parametrize("name", _frames())
def test_a_frame_of_any_kind_is_a_table(name: str) -> None:
    """An odd column does no harm: a notice names it, and a question about it, or a schema with it, gets the line that says why."""
    said: list[str] = []
    table = _frames()[name]
    records = records_of(table, notice=said.append)
    assert {each: values.tolist() for each, values in records.columns.items()} == {"a": [1, 2]}
    assert len(said) == ("odd" in records.odd) == ("odd" in name or "64" in name)
    if said:
        assert said[0].endswith("'odd'")
        for ask in (lambda: records["odd"], lambda: records.take(np.array([0])).schema()["odd"], lambda: records_of(table, {"odd": "text"}, notice=str)):
            with pytest.raises(InputError, match=r"column 'odd' (has cells of type|holds whole numbers beyond 64 bits)"):
                ask()


def _twins() -> list[Any]:
    import pandas

    class Arrow:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            twice = polars.Series("s", [{"a": 1, "b": 2}]).struct.rename_fields(["a", "a"])
            return twice.__arrow_c_stream__(requested_schema)

    return [pandas.DataFrame([[1, 2]], columns=["a", "a"]), {1: [1], "1": [2]}, Arrow(), polars.Series("l", [[1]]), [1, 2], None]


@pytest.mark.parametrize("place", range(6))
def test_a_frame_that_is_no_table_gets_a_line(place: int) -> None:
    with pytest.raises(InputError, match=r"^(two columns of the table|column 'l' has cells of type|a table is a path)") as refused:
        records_of(_twins()[place])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("seed", [1.5, "1", -1, True, 1 << 70])
def test_a_seed_of_another_kind_gets_a_line(seed: Any) -> None:
    table = {"a": [1, 2] * 900}
    for ask in (
        lambda: ldp.survey(table, "a > 1", seed=seed), lambda: ldp.curate.histogram(table, "a", seed=seed),
        lambda: ldp.attack.reconstruct(table, "a > 1", noise=1, seed=seed), lambda: ldp.compare("frequency", k=4, seed=seed),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"^seed is \S+; give a whole number from 0 to 2\^64 - 1$"):
            ask()


def test_a_seed_of_numpy_is_a_seed() -> None:
    seeds: list[Any] = [np.int64(1), 1]
    first, other = (ldp.survey({"a": [1, 2] * 900}, "a > 1", seed=seed).to_dict() for seed in seeds)
    assert first["result"] == other["result"]
    assert json.dumps(first["seed"]) == "1"


def test_a_rectangle_of_cells_is_as_it_is_parsed() -> None:
    """All 3,905 texts of up to 5 signs, against Python's strict reader: so many rows of so many cells if it finds them, no quote within a cell that has
    none around it, and no line that ends in CR alone."""
    found = {True: 0, False: 0}
    for length in range(1, 6):
        for signs in product('a",\n\r', repeat=length):
            text = "".join(signs) + "\n"
            try:
                cells = [max(1, len(row)) for row in csv.reader(text.splitlines(keepends=True), strict=True)]
            except csv.Error:
                cells = []
            strict = re.fullmatch(r'((("([^"\r]|\r\n|"")*"|[^",\r\n]*)(,|\r?\n))*)', text) is not None
            possible = product(range(1, text.count("\n") + 1), range(1, text.count(",") + 2))
            shapes = {(rows, width) for rows, width in possible if files.rectangular(text.encode(), rows, width, ",")}
            assert shapes == ({(len(cells), cells[0])} if strict and len(set(cells)) == 1 else set()), text
            found[bool(shapes)] += '"' in text
    assert min(found.values()) > 100
