"""Reads tables: CSV and Parquet through polars, into records."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from local_dp.arrays import Column
from local_dp.errors import InputError
from local_dp.noise import stream_key
from local_dp.populations.table import Rows
from local_dp.records import Records

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second


def read_records(path: Path) -> Records:
    """The table in `path`, .csv or .parquet. Raises InputError for a file that is missing, unreadable or empty."""
    import polars

    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; give --records a CSV or Parquet file")
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"{path.name!r} ends in {path.suffix!r}; a table is a .csv or .parquet file")
    try:
        frame = polars.read_csv(path, infer_schema_length=None) if suffix == ".csv" else polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path.name!r}: {str(error).splitlines()[0]}") from None
    if not frame.height or not frame.width:
        raise InputError(f"the table {path.name!r} has {frame.height} rows and {frame.width} columns; at least one of each is needed")
    return Records({name: _column(frame.get_column(name)) for name in frame.columns})


def _column(series: "polars.Series") -> Column:
    """Numbers stay numbers (a missing one becomes NaN), truth values become 0 and 1, all else becomes text (missing: empty)."""
    import polars

    if series.dtype == polars.Boolean:
        series = series.cast(polars.UInt8)
    if series.dtype.is_numeric():
        plain = series.cast(polars.Float64) if series.null_count() or series.dtype.is_decimal() else series
        return np.ascontiguousarray(plain.to_numpy())
    return np.array(series.cast(polars.String).fill_null("").to_list(), dtype=np.str_)


def sample_rows(records: Records, clients: int, seed: int) -> Rows:
    """A population of `clients` rows drawn without replacement, dealt to the clients in an order that depends on the seed alone.

    All rows are dealt too: tables come sorted, and the cohorts of a protocol are ranges of clients, who must be exchangeable.
    """
    rows = len(records)
    if not 1 <= clients <= rows:
        raise InputError(f"clients is {clients}, but the table has {rows} rows; give a number from 1 to {rows}")
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key("sample", seed), "little")))
    return Rows(records.take(generator.permutation(rows)[:clients]), sampled_from=records)
