"""Tables without Polars: a CSV file with a declared schema, as a client on a small machine reads
its own row."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from local_dp.api.files import ADVICE, MALFORMED, TEXTS, Form, check_rows, header_of, opened
from local_dp.api.inference import TRUTH
from local_dp.arrays import Column
from local_dp.errors import InputError, reading
from local_dp.foreign import listed


def read_declared(
    path: Path, schema: Mapping[str, str] | None, total: bool, form: Form
) -> dict[str, Column]:
    """The declared columns of a CSV file, as `tables.read_records` reads them, for the kinds
    number, whole, truth and text. Raises InputError."""
    if (
        schema is None
        or path.suffix.lower() not in TEXTS
        or any(kind.startswith("date") for kind in schema.values())
    ):
        raise InputError(
            "without Polars, a table is a CSV file whose columns --schema FILE declares, and none "
            "a date; `pip install polars` reads all others"
        )
    names = header_of(path, form)
    form.check_decimal(schema, path)
    if not total:
        check_rows(path, len(names), form)
    with (
        reading(path, ADVICE, MALFORMED if total else ""),
        opened(path, form, "replace" if total else "strict") as file,
    ):
        _, *rows = csv.reader(file, delimiter=form.sep_of(path))
    while len(names) > 1 and rows and not rows[-1]:
        rows.pop()
    for name in schema:
        if name not in names:
            raise InputError(
                f"the schema has a column {name!r} that the table lacks; there are {listed(names)}"
            )
    if not rows:
        raise InputError(f"the table {path.name!r} has 0 rows; at least one is needed")
    gaps = "", *form.missing
    cells = {name: ["".join(row[names.index(name) :][:1]) for row in rows] for name in schema}
    return {
        name: _column(
            name,
            kind,
            ["" if cell.strip() in gaps else cell for cell in cells[name]],
            total,
            form,
        )
        for name, kind in schema.items()
    }


def _column(name: str, kind: str, cells: list[str], total: bool, form: Form) -> Column:
    if kind.startswith("text"):
        return np.array(cells, dtype=np.str_)
    values = [
        _number(TRUTH.get(cell.strip().lower(), cell.strip()), kind, form.decimal) for cell in cells
    ]
    if kind == "number":
        return np.array([math.nan if each is None else each for each in values])
    if None in values and not total:
        raise InputError(
            f"{name!r} is declared {kind}, and a record has another value there; declare it "
            "number, or text, which may be missing"
        )
    return np.array([each or 0 for each in values], dtype=np.bool_ if kind == "truth" else np.int64)


def _number(cell: str, kind: str, decimal: str) -> float | None:
    """The number as Polars reads it; None for all else."""
    if kind == "truth":
        return int(cell) if cell in ("0", "1") else None
    if not cell.isascii() or "_" in cell or (decimal == "," and "." in cell):
        return None
    try:
        number = (
            int(cell)
            if kind == "whole"
            else float(cell.replace(",", ".") if decimal == "," else cell)
        )
    except ValueError:
        return None
    return number if kind == "number" or -(1 << 63) <= number < 1 << 63 else None
