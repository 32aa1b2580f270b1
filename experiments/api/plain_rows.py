"""Tables without Polars: CSV files with a declared schema, as a client on a small machine reads its own row."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from local_dp.arrays import Column
from local_dp.errors import InputError, reading
from local_dp.experiments.api.cells import SEPARATORS, TRUTH, Form, number_pattern
from local_dp.experiments.api.files import ADVICE, check_rows, csv_rows, decoded, named_columns, separator_of
from local_dp.foreign import listed

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def read_declared(path: Path, schema: Mapping[str, str] | None, total: bool, form: Form) -> dict[str, Column]:
    """The declared columns of a CSV file, as `tables.read_records` reads them, for the kinds number, whole, truth and text. Raises InputError."""
    if schema is None or path.suffix.lower() not in (".csv", ".tsv", ".txt") or any(kind.startswith("date") for kind in schema.values()):
        raise InputError("without Polars, a table is a CSV file whose columns --schema FILE declares, and none a date; `pip install polars` reads all others")
    text, _ = decoded(path, True, total, form.encoding)
    with reading(path, ADVICE, "its lines or quotes are malformed" if total else ""):
        sep = form.sep or ("\t" if path.suffix.lower() == ".tsv" else separator_of(text, schema, path))
        lines = csv_rows(text, sep)
        names = named_columns(next(lines, []), path, [])
        head = lines.line_num
        rows = [row for row in lines if row or len(names) == 1]
    if not total:
        check_rows([(path, head + 1, b"".join(text.split(b"\n", head)[head:]))], len(names), sep)
    if not form.decimal and sep != "," and "number" in schema.values():
        raise InputError(
            f'{path.name!r} has separator {SEPARATORS[sep]!r}, so its numbers may have decimal commas; say which: csv="decimal=," or csv="decimal=."'
        )
    for name in schema:
        if name not in names:
            raise InputError(f"the schema has a column {name!r} that the table lacks; there are {listed(names)}")
    if not rows:
        raise InputError(f"the table {path.name!r} has 0 rows; at least one is needed")
    places = {name: names.index(name) for name in schema}
    cells = {name: ["" if len(row) <= place or row[place] == form.missing else row[place] for row in rows] for name, place in places.items()}
    return {name: _column(name, kind, cells[name], total, form.decimal or ".") for name, kind in schema.items()}


def _column(name: str, kind: str, cells: list[str], total: bool, decimal: str) -> Column:
    if kind.startswith("text"):
        return np.array(cells, dtype=np.str_)
    plain = [_plain(cell.strip(), decimal) for cell in cells]
    if kind == "number":
        return np.array([math.nan if each is None else float(each) for each in plain])
    if kind == "truth":
        if not total and not set(plain) <= {"0", "1"}:
            raise InputError(f"{name!r} is declared truth, and a record is neither true nor false there; declare it text, which may be missing")
        return np.array([each == "1" for each in plain])
    whole = [int(each) if each is not None and _WHOLE.fullmatch(each) and abs(int(each)) < 1 << 63 else None for each in plain]
    if None in whole and not total:
        raise InputError(f"{name!r} is declared whole, and a record has no whole number there; declare it number, which may be missing")
    return np.array([each or 0 for each in whole], dtype=np.int64)


def _plain(cell: str, decimal: str) -> str | None:
    """A number with a decimal point and without groups of three; a truth value as 1 or 0; None for all else."""
    if not re.fullmatch(number_pattern(decimal), cell, re.ASCII):
        return TRUTH.get(cell.lower())
    return re.sub(f"[{',.'.replace(decimal, '')} '\u2019\u00a0\u202f]", "", cell).replace(decimal, ".")
