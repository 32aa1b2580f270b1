"""Files of tables, byte by byte: CSV files that are in doubt, what is read of each and said; those
that are refused; and Excel files."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from string import ascii_uppercase
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

Rows = Sequence[Sequence[Any]]
_TYPES = "http://schemas.openxmlformats.org/"
_SHEET = f'<worksheet xmlns="{_TYPES}spreadsheetml/2006/main"><sheetData>%s</sheetData></worksheet>'


def excel(sheets: Mapping[str, Rows]) -> bytes:
    """An Excel file: numbers, texts, truth values, None, and dates as tuples of their number of
    days."""
    kind, buffer = f"{_TYPES}officeDocument/2006/relationships", io.BytesIO()
    links = "".join(
        f'<Relationship Id="s{n}" Type="{kind}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(len(sheets))
    )
    names = "".join(
        f'<sheet name="{name}" sheetId="{n + 1}" r:id="s{n}"/>' for n, name in enumerate(sheets)
    )
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{_TYPES}package/2006/content-types"><Default Extension="xml" '
            'ContentType="application/xml"/></Types>'
        ),
        "_rels/.rels": _links(
            f'<Relationship Id="r" Type="{kind}/officeDocument" Target="xl/workbook.xml"/>'
        ),
        "xl/workbook.xml": (
            f'<workbook xmlns="{_TYPES}spreadsheetml/2006/main" '
            f'xmlns:r="{kind}"><sheets>{names}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": _links(
            f'{links}<Relationship Id="st" Type="{kind}/styles" Target="styles.xml"/>'
        ),
        "xl/styles.xml": (
            f'<styleSheet xmlns="{_TYPES}spreadsheetml/2006/main"><cellXfs><xf numFmtId="0"/><xf '
            'numFmtId="14"/></cellXfs></styleSheet>'
        ),
        **{
            f"xl/worksheets/sheet{n}.xml": _SHEET
            % "".join(map(_row, range(1, len(rows) + 1), rows))
            for n, rows in enumerate(sheets.values())
        },
    }
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0"?>{text}')
    return buffer.getvalue()


def _links(text: str) -> str:
    return f'<Relationships xmlns="{_TYPES}package/2006/relationships">{text}</Relationships>'


def _row(number: int, cells: Sequence[Any]) -> str:
    places = zip(ascii_uppercase, cells, strict=False)
    text = "".join(_cell(f"{letter}{number}", cell) for letter, cell in places)
    return f'<row r="{number}">{text}</row>'


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    return (
        f'<c r="{place}" s="1"><v>{value[0]}</v></c>'
        if isinstance(value, tuple)
        else f'<c r="{place}"><v>{value}</v></c>'
    )


# a file, its declared form, its columns, and the words of the notice
READ: dict[str, tuple[bytes, str, dict[str, list[Any]], str]] = {
    "leading zeros": (b"zip,x\n01234,00.5\n90210,0\n", "",
    {"zip": ["01234", "90210"], "x": [0.5, 0.0]}, "'zip' is text, because it has leading zeros"),
    "beyond 64 bits": (f"a,b\n{2**70},1\n1,2\n".encode(), "", {"a": [str(2**70), "1"], "b": [1, 2]},
    "whole numbers beyond 64 bits"),
    "decimal commas": (b"a;b\n1,5;x\n2;y\n", "sep=;", {"a": ["1,5", "2"], "b": ["x", "y"]},
    '1 of 2 cells have a comma; type csv="decimal=,"'),
    "the same, declared": (b"a;b\n1,5;x\n2;y\n", "sep=; decimal=,",
    {"a": [1.5, 2.0], "b": ["x", "y"]}, ""),
    "in quotes": (b'a,b\n"1,5",1\n"2,25",2\n', "decimal=,", {"a": [1.5, 2.25], "b": [1, 2]}, ""),
    "groups of three": (b'a,b\n"1,234,567",1\n', "", {"a": ["1,234,567"], "b": [1]},
    "have a comma"),
    "German groups": (b"a;b\n1.234;1,5\n", "sep=; decimal=,", {"a": ["1.234"], "b": [1.5]},
    "1 of 1 cells have a point"),
    "1.234": (b"a;b\n1.234;x\n2.345;y\n", "sep=;", {"a": [1.234, 2.345], "b": ["x", "y"]},
    "'a' is a number with a decimal point"),
    "1.234, declared": (b"a;b\n1.234;x\n", "sep=; decimal=.", {"a": [1.234], "b": ["x"]}, ""),
    "a missing word": (b"x,g\n1,a\nNA,b\n", "", {"x": ["1", "NA"], "g": ["a", "b"]},
    '1 of 2 cells are no numbers; csv="missing=NA" makes'),
    "it among texts": (b"x,g\n1,a\n2,NA\n", "", {"x": [1, 2], "g": ["a", "NA"]},
    "'g' is text, with cells that may be missing; csv=\"missing=NA\""),
    "words, declared": (b"x,g\n1,a\nNA,-\n", "missing=NA missing=-",
    {"x": [1.0, None], "g": ["a", ""]}, ""),
    "a late text": (b"x,y\n" + b"1,2\n" * 20_000 + b"about 2,3\n", "",
    {"x": ["1"] * 20_000 + ["about 2"], "y": [2] * 20_000 + [3]}, "1 of 20,001 cells are"),
    "truth words": (b"a,b,c\nTrue,false,yes\nFALSE,,no\n", "",
    {"a": [True, False], "b": [0.0, None], "c": ["yes", "no"]}, ""),
    "a mark, CRLF": (b"\xef\xbb\xbfa, b\r\n1, 2\r\n", "", {"a": [1], "b": [2]}, ""),
    "empty rows": (b"a,b\n1,x\n\n,\n2,\n\n", "", {"a": [1, 2], "b": ["x", ""]},
    "empty rows left out: 3"),
    "no name": (b'"",x\n1,2\n', "", {"x": [2]}, "columns without a name left out: 1"),
    "a line in quotes": (b'a,b\n"x\n,\n""y",1\n', "", {"a": ['x\n,\n"y'], "b": [1]}, ""),
    "a code page": ("a,b\nMünchen,2\n".encode("cp850"), "encoding=cp850",
    {"a": ["München"], "b": [2]}, ""),
    "the word nan": (b"a,b\nnan,1\n2,2\n", "", {"a": [None, 2.0], "b": [1, 2]},
    "'a' is a number, with missing cells 'nan'"),
    "spaces": (b"a,b\n x, 1\nx , \n", "", {"a": [" x", "x "], "b": [1.0, None]},
    "'a' is text, and the spaces around 2 of 2 cells count"),
    "dates in spaces": (b"d\n 2020-01-02\n2020-01-03 \n", "",
    {"d": [datetime(2020, 1, 2), datetime(2020, 1, 3)]}, "'d' is read as dates"),
    "infinity": (b"a,b\n-inf,1\n1e3,2\n", "", {"a": [-np.inf, 1000.0], "b": [1, 2]}, ""),
}  # fmt: skip
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "another separator": (b"a;b\n1,5;2\n", "", 'say which: csv="sep=;" or csv="sep=,"'),
    "two separators": (b"a;b,c\n1;2,3\n", "", 'say which: csv="sep=;" or csv="sep=,"'),
    "tabs": (b"a\tb\n1\t2\n", "", 'csv="sep=tab"'),
    "a separator that is none": (b"a,b\n1,2\n", "sep=; decimal=.", "no column 'b'"),
    "a line for Excel": (b"sep=,\na,b\n1,2\n", "", 'delete it, and type csv="sep=,"'),
    "CR in a row": (b"a,b\n1\r2,3\n4,5\n", "", "line 2 of 't.csv' begins a cell whose"),
    "a long row": (b"a,b\n1,2\n3,4,5\n", "", "line 3 of 't.csv' has 3 cells, and the header 2"),
    "an empty cell too many": (b"a,b\n1,2\n3,4,\n", "", "line 3 of 't.csv' has 3 cells"),
    "a short row": (b'a,b\n"1\n1",2\n3\n', "", "line 4 of 't.csv' has 1 cell, and the header 2"),
    "a short row among empty cells": (b"a,b\n1,\n3\n", "", "line 3 of 't.csv' has 1 cell"),
    "an open quote": (b'a,b\n1,2\n"3,4\n5,6\n', "", "line 3 of 't.csv' begins a cell whose quotes"),
    "a quote in a cell": (b'a,b\n1,2\n5" pipe,4\n', "", "a quote in a cell is doubled"),
    "a name twice": (b"a,b, a\n1,2,3\n", "", "two columns of 't.csv' are called 'a'"),
    "CR alone": (b"a,b\r1,2\r3,4\n", "", "its lines end in CR alone"),
    "Windows": ("a,b\nKöln,2\n".encode("cp1252"), "",
    "is not in UTF-8; name its encoding, such as csv=\"encoding=cp1252\""),
    "Windows, in the header": ("größe,b\n1,2\n".encode("cp1252"), "", "is not in UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "", "is not in UTF-8"),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "", "is not in UTF-8"),
    "another encoding": (b"a,b\n\xff,2\n", "encoding=ascii", "is not in ascii"),
    "nothing": (b"\xef\xbb\xbf\r\n", "", "has 0 rows"),
    "a header alone": (b"a,b\n", "", "has 0 rows"),
}  # fmt: skip
