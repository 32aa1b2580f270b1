"""Excel files, byte by byte."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any
from xml.sax.saxutils import escape

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
    return f'<row r="{number}">{"".join(_cell(f"{letter}{number}", cell) for letter, cell in zip(ascii_uppercase, cells, strict=False))}</row>'


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    return f'<c r="{place}" s="1"><v>{value[0]}</v></c>' if isinstance(value, tuple) else f'<c r="{place}"><v>{value}</v></c>'
