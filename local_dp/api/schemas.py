"""Schemas: the declared kinds of a table's columns."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from local_dp.errors import InputError, reading

KIND = re.compile(r"number|whole|truth|date( .*%.*)?|text( [1-9]\d{0,2}| 1000)?")


def read_schema(path: Path) -> dict[str, str]:
    """The declared columns of a table: a JSON object that maps each name to its kind
    (`check_schema`), or the types that a Parquet file states before its rows.

    Raises InputError.
    """
    if not path.is_file():
        raise InputError(
            f"there is no file {str(path)!r}; give a JSON schema such as "
            + '{"age": "number", "city": "text"}'
        )
    with reading(path, "give a JSON schema, or a Parquet file"):
        if path.suffix.lower() == ".parquet":
            return check_schema(_of_metadata(path), repr(path.name))
        schema = json.loads(path.read_text(encoding="utf-8"))
    return check_schema(schema, repr(path.name))


def _of_metadata(path: Path) -> dict[str, str]:
    """The kinds of columns in a Parquet file, whatever its rows hold. Whole numbers and truth
    values are numbers, since any of them may be missing."""
    import polars

    columns, kinds = polars.read_parquet_schema(path), dict[str, str]()
    for name, of_type in columns.items():
        if of_type in (polars.Date, polars.Datetime):
            kinds[name] = "date"
        elif of_type.is_numeric() or of_type == polars.Boolean:
            kinds[name] = "number"
        elif of_type in (polars.String, polars.Categorical, polars.Enum):
            kinds[name] = "text"
    return kinds


def check_schema(schema: object, name: str) -> dict[str, str]:
    """Declared columns that are well formed: number, whole, truth, text, text 40 (at most 40
    characters), date, or date %m/%d/%Y. Raises InputError."""
    if (
        not isinstance(schema, Mapping)
        or not schema
        or not all(isinstance(kind, str) and KIND.fullmatch(kind) for kind in schema.values())
    ):
        kinds = (
            "number, whole, truth, date, date with its form, text, or text with its greatest "
            "length from 1 to 1000"
        )
        raise InputError(
            f"{name} is no schema: map each column to {kinds}, as in "
            + '{"age": "number", "city": "text 40"}'
        )
    return dict(schema)
