"""Tables as spreadsheets, statistics programs and databases write them, byte by byte; `python -m tests.support.inputs.exports` prints what is read of each."""

import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars

from local_dp.errors import InputError
from local_dp.experiments.api.tables import read_records

Rows = Sequence[Sequence[Any]]
_TYPES = "http://schemas.openxmlformats.org/"
_SHEET = f'<worksheet xmlns="{_TYPES}spreadsheetml/2006/main"><sheetData>%s</sheetData></worksheet>'


def excel(sheets: Mapping[str, Rows]) -> bytes:
    """An Excel file: numbers, texts, truth values, None, and dates as tuples of their number of days."""
    kind, made = f"{_TYPES}officeDocument/2006/relationships", io.BytesIO()
    links = "".join(f'<Relationship Id="s{n}" Type="{kind}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in range(len(sheets)))
    names = "".join(f'<sheet name="{name}" sheetId="{n + 1}" r:id="s{n}"/>' for n, name in enumerate(sheets))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": _links(f'<Relationship Id="r" Type="{kind}/officeDocument" Target="xl/workbook.xml"/>'),
        "xl/workbook.xml": f'<workbook xmlns="{_TYPES}spreadsheetml/2006/main" xmlns:r="{kind}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _links(f'{links}<Relationship Id="st" Type="{kind}/styles" Target="styles.xml"/>'),
        "xl/styles.xml": f'<styleSheet xmlns="{_TYPES}spreadsheetml/2006/main"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        **{f"xl/worksheets/sheet{n}.xml": _SHEET % "".join(map(_row, range(1, len(rows) + 1), rows)) for n, rows in enumerate(sheets.values())},
    }
    with zipfile.ZipFile(made, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0"?>{text}')
    return made.getvalue()


def _links(text: str) -> str:
    return f'<Relationships xmlns="{_TYPES}package/2006/relationships">{text}</Relationships>'


def _row(number: int, cells: Sequence[Any]) -> str:
    return f'<row r="{number}">{"".join(_cell(f"{letter}{number}", cell) for letter, cell in zip("ABCDEFGH", cells, strict=False))}</row>'


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    return f'<c r="{place}" s="1"><v>{value[0]}</v></c>' if isinstance(value, tuple) else f'<c r="{place}"><v>{value}</v></c>'


def parquet(columns: Mapping[str, Any]) -> bytes:
    made = io.BytesIO()
    polars.DataFrame(columns).write_parquet(made)
    return made.getvalue()


@dataclass(frozen=True)
class Export:
    """A file, or a folder of files by their names. It is `read` as columns and a notice that has the words of `said`, or `refused` in a line with these."""

    file: str
    data: bytes | Mapping[str, bytes]
    read: Mapping[str, list[Any]] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    refused: str = ""
    csv: str = ""

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        if isinstance(self.data, bytes):
            path.write_bytes(self.data)
        else:
            path.mkdir()
            for name, data in self.data.items():
                (path / name).write_bytes(data)
        return path


NONE = None  # a missing number
GERMAN = 'Größe;Ort;Lohn\r\n1,5;Köln;"1.234,50"\r\n2,25;"Bonn; Süd";950,00\r\n'
R = '"","x","g","ok"\n"1",1.5,"a",TRUE\n"2",NA,"b",FALSE\n"3",3,NA,TRUE\n'
EXPORTS: dict[str, Export] = {
    "Excel, German, CSV": Export("de.csv", GERMAN.encode("cp1252"), {"Größe": [1.5, 2.25], "Ort": ["Köln", "Bonn; Süd"], "Lohn": [1234.5, 950.0]},
        ("separator ';'", "decimal comma", "encoding cp1252", "groups of three in 'Lohn'")),
    "Excel, German, CSV UTF-8": Export("de8.csv", GERMAN.encode("utf-8-sig"), {"Größe": [1.5, 2.25], "Ort": ["Köln", "Bonn; Süd"], "Lohn": [1234.5, 950.0]},
        ("separator ';'", "decimal comma")),
    "Excel, French, CSV": Export("fr.csv", "Né(e);Revenu;Marié\r\n1980;1\xa0234,5;VRAI\r\n1991;987;FAUX\r\n".encode("cp1252"),
        {"Né(e)": [1980, 1991], "Revenu": [1234.5, 987.0], "Marié": [1, 0]}, ("separator ';'", "decimal comma", "encoding cp1252")),
    "Excel, Unicode text": Export("unicode.txt", "Größe\tOrt\r\n1,5\tKöln\r\n#NV\tŁódź\r\n".encode("utf-16"), {"Größe": [1.5, NONE], "Ort": ["Köln", "Łódź"]},
        ("separator 'tab'", "decimal comma", "encoding utf-16", "'#NV' missing in 'Größe'")),
    "Excel, sep= line": Export("sep.csv", b"sep=;\r\na;b\r\n1;2\r\n3;\r\n;\r\n;\r\n",
        {"a": [1, 3], "b": [2.0, NONE]}, ("separator ';'", "empty rows left out: 2")),
    "Excel, US, thousands": Export("us.csv", b'State,Income,Rate\r\nOhio,"1,234",0.5\r\nUtah,"12,345,678",-\r\n',
        {"State": ["Ohio", "Utah"], "Income": [1234, 12345678], "Rate": [0.5, NONE]}, ("groups of three in 'Income'", "'-' missing in 'Rate'")),
    "Excel, US, text with tabs": Export("us.txt", b'Income\tRate\r\n"1,234"\t0.5\r\n"2,345"\t1\r\n',
        {"Income": [1234, 2345], "Rate": [0.5, 1.0]}, ("separator 'tab'",)),
    "Excel, Swiss, CSV": Export("ch.csv", "Lohn;Quote\r\n1’234.50;0.5\r\n1'000;1\r\n".encode(),
        {"Lohn": [1234.5, 1000.0], "Quote": [0.5, 1.0]}, ("separator ';'",)),
    "Excel, .xlsx": Export("book.xlsx", excel({"Data": [["age", "day", "ok", "name", None, "mixed"], [31, (45000,), True, "Köln", "x", 1.5],
        [None, (45001,), False, "Bonn", "y", "NA"], [40, (45002,), True, None, "z", 2]], "Notes": [["x"], [1]]}),
        {"age": [31.0, NONE, 40.0], "day": ["2023-03-15", "2023-03-16", "2023-03-17"], "ok": [1, 0, 1], "name": ["Köln", "Bonn", ""],
        "mixed": [1.5, NONE, 2.0]}, ("sheet 'Data', the first of 2", "without a name left out: 1", "'NA' missing in 'mixed'")),
    "Excel, .xlsx, a name twice": Export("twice.xlsx", excel({"Data": [["a", "a"], [1, 2]]}), refused="two columns of 'twice.xlsx' are called 'a'"),
    "R, write.csv": Export("r.csv", R.encode(),
        {"x": [1.5, NONE, 3.0], "g": ["a", "b", "NA"], "ok": [1, 0, 1]},
        ("without a name left out: 1", "'NA' missing in 'x'", "'NA' a text in 'g', and missing with")),
    "R, write.csv, said": Export("r3.csv", R.encode(),
        {"x": [1.5, NONE, 3.0], "g": ["a", "b", ""], "ok": [1, 0, 1]}, ("without a name left out: 1",), csv="missing=NA"),
    "R, write.csv2": Export("r2.csv", b'"";"x";"n"\n"1";1,5;1\n"2";NA;2\n',
        {"x": [1.5, NONE], "n": [1, 2]}, ("separator ';'", "decimal comma", "'NA' missing")),
    "SAS, PROC EXPORT": Export("sas.csv", b"id,weight,sex\r\n1,.,F\r\n2,71.5,M\r\n3,.A,\r\n",
        {"id": [1, 2, 3], "weight": [NONE, 71.5, NONE], "sex": ["F", "M", ""]},
        ("'.' missing in 'weight'", "'.A' missing in 'weight'")),
    "Stata, export delimited": Export("stata.csv", b"make,price,rep78\nAMC Concord,4099,3\nAMC Spirit,4749,\n",
        {"make": ["AMC Concord", "AMC Spirit"], "price": [4099, 4749], "rep78": [3.0, NONE]}),
    "SPSS, tab-delimited": Export("spss.tsv", b"\xef\xbb\xbfid\tage\tgrp\r\n1\t 23.00\tA\r\n2\t#NULL!\tB\r\n",
        {"id": [1, 2], "age": [23.0, NONE], "grp": ["A", "B"]},
        ("'#NULL!' missing in 'age'",)),
    "MySQL, all quoted, NULL": Export("sql.csv", b'"id";"n"\n"1";"5"\n"2";NULL\n', {"id": [1, 2], "n": [5.0, NONE]}, ("separator ';'", "'NULL' missing")),
    "Python, True and False": Export("py.csv", b"ok,x\nTrue,1\nFalse,2\n,3\n", {"ok": [1.0, 0.0, NONE], "x": [1, 2, 3]}),
    "Python, nan": Export("nan.csv", b"x,n\n.5,1\nnan,2\nNaN,nan\n", {"x": [0.5, NONE, NONE], "n": [1.0, 2.0, NONE]},
        ("'nan' missing in 'x', 'n'", "'NaN' missing in 'x'")),
    "trailing empty lines": Export("tail.csv", b"a,b\n1,x\n2,y\n\n\r\n\n", {"a": [1, 2], "b": ["x", "y"]}),
    "Macintosh, lines end in CR": Export("cr.csv", b"a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
    "a line inside quotes": Export("lines.csv", b'a,b\r\n"x\r\ny",1\r\n"5"" pipe",2\r\n', {"a": ["x\r\ny", '5" pipe'], "b": [1, 2]}),
    "Parquet": Export("t.parquet", parquet({"a": [1, 2], "b": ["x", None]}), {"a": [1, 2], "b": ["x", ""]}),
    "a folder": Export("parts", {"2024.csv": b"a;b\n1;2,5\n", "2025.csv": "a;b\n3;\n4;1,5\n".encode("utf-16")},
        {"a": [1, 3, 4], "b": [2.5, NONE, 1.5]},
        ("2 .csv files", "decimal comma")),
    "a folder, other columns": Export("others", {"1.csv": b"a,b\n1,2\n", "2.csv": b"a,c\n1,2\n"}, refused="'2.csv' has the columns a, c, and '1.csv' has a, b"),
    "a folder of two kinds": Export("kinds", {"1.csv": b"a\n1\n", "1.parquet": b""}, refused="has .csv and .parquet tables"),
    "a row too long": Export("long.csv", b"a,b\n1,2\n3,4,5\n", refused="line 3 of 'long.csv' has 3 cells, and the header 2"),
    "a row too short": Export("short.csv", b'a,b,c\n"1\n1",2,3\n4,5\n', refused="line 4 of 'short.csv' has 2 cells, and the header 3"),
    "quotes without an end": Export("quotes.csv", b'sep=,\na,b\n1,2\n"3,4\n5,6\n', refused="line 4 of 'quotes.csv' begins a cell whose quotes do not match"),
    "a quote in a cell": Export("inch.csv", b'a,b\n1,2\n5" pipe,4\n', refused="line 3 of 'inch.csv' has a quote in a cell"),
    "quotes in cells": Export("inches.csv", b'a,b\n"1\n2",5\n5" pipe,1\n6" pipe,2\n', refused="line 4 of 'inches.csv' has a quote in a cell"),
    "a line that ends in CR alone": Export("cr.csv", b"a,b\n1,2\n3\r,4\n", refused="line 3 of 'cr.csv' has 1 cell, and the header 2"),
    "a name twice": Export("twins.csv", b"a;b; a\n1;2;3\n", refused="two columns of 'twins.csv' are called 'a'"),
    "1.234, German or not": Export("three.csv", b"a;b\n1.234;x\n2.345;y\n", refused='say which: csv="decimal=," or csv="decimal=."'),
    "postcodes": Export("zip.csv", b"zip,x\n01234,0.5\n1234,00.5\n90210,0\n", {"zip": [1234, 1234, 90210], "x": [0.5, 0.5, 0.0]},
                        ("leading zeros dropped in 'zip', and kept where a schema declares text",)),
    "the same, said": Export("said.csv", b"a;b\n1.234;x\n2.345;y\n", {"a": [1234, 2345], "b": ["x", "y"]}, ("groups of three in 'a'",), csv="decimal=,"),
    "commas both ways": Export("both.csv", b"a;b\n1,5;1,234.5\n2,5;2,345.6\n", refused="the decimal sign of 'b' is a point, and that of 'a' a comma"),
    "two separators": Export("seps.csv", b"a;b,c\n1;2,3\n4;5,6\n", refused='say which: csv="sep=," or csv="sep=;"'),
    "one column, decimal commas": Export("one.csv", b"x\r\n1,5\r\n2,5\r\n", refused="line 2 of 'one.csv' has 2 cells, and the header 1"),
    "quoted decimal commas": Export("qdc.csv", b'a,b\n"1,5",1\n"2,25",2\n', {"a": ["1,5", "2,25"], "b": [1, 2]}, ("texts in 'a', where the decimal sign",)),
    "the same, said again": Export("qdc2.csv", b'a,b\n"1,5",1\n"2,25",2\n', {"a": [1.5, 2.25], "b": [1, 2]}, ("decimal comma",), csv="decimal=,"),
    "the same, said too": Export("one2.csv", b"x\r\n1,5\r\n2,5\r\n", {"x": [1.5, 2.5]}, ("separator ';'", "decimal comma"), csv="sep=; decimal=,"),
    "UTF-16 without a mark": Export("nul.csv", "a,b\n1,2\n".encode("utf-16-le"), refused="has a NUL byte in line 1"),
    "another code page": Export("dos.csv", "a,b\nMünchen,2\n".encode("cp850"), {"a": ["München"], "b": [2]}, ("encoding cp850",), csv="encoding=cp850"),
    "an empty file": Export("nothing.csv", b"\xef\xbb\xbf\r\n", refused="has 0 rows"),
    "a header alone": Export("header.csv", b"a,b\n", refused="has 0 rows"),
    "an old Excel file": Export("old.xls", b"\xd0\xcf\x11\xe0", refused="ends in '.xls'; give a CSV"),
}  # fmt: skip


def outcome(export: Export, folder: Path) -> tuple[dict[str, list[Any]], str]:
    """What is read, and the notice; or no columns, and the refusal. NaN is None, a truth value a number, a date a text."""
    said: list[str] = []
    try:
        records = read_records(export.write(folder), notice=said.append, csv=export.csv)
    except InputError as error:
        return {}, str(error)
    return {name: [_as_typed(each) for each in values.tolist()] for name, values in records.columns.items()}, " ".join(said)


def _as_typed(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d")
    return None if value != value else int(value) if isinstance(value, bool) else value  # noqa: PLR0124  # NaN


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print("| file | read as | said, or refused |\n|---|---|---|")
        for name, export in EXPORTS.items():
            read, said = outcome(export, Path(made))
            cells = "; ".join(f"{column}: {', '.join(map(repr, values))}" for column, values in read.items()) or "refused"
            print(f"| {name} | {cells} | {said} |".replace("\r\n", " "))
