"""One column of a frame, as numpy has it: numbers, truth values, dates and texts."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from local_dp.arrays import Column
from local_dp.errors import InputError
from local_dp.queries.dates import date_of
from local_dp.records import DATES, LONGEST

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

_JOINED = 1 << 16  # texts


class OddColumnError(InputError):
    """A column whose cells are neither numbers nor texts, which does no harm where no question reads it."""


def exactly(*names: str) -> "polars.Expr":
    """The columns of these names, also of those that polars would read as patterns, such as '*'."""
    import polars

    return polars.selectors.by_name(*names).as_expr()


def declared_column(series: "polars.Series", kind: str, total: bool) -> Column:
    """A column of the type that was declared for it."""
    import polars

    name, series = series.name, _flat(series)
    if kind.startswith("text"):
        return column_of(series.cast(polars.String), length_of(kind))
    if kind.startswith("date"):
        return dates_of(series, kind, required=not total)
    if kind == "truth":
        return _declared_truth(series, total)
    if series.dtype == polars.Boolean:
        series = series.cast(polars.UInt8)
    texts = series if series.dtype.is_numeric() else series.cast(polars.String).str.strip_chars()
    numbers = texts.cast(polars.Float64 if kind == "number" else polars.Int64, strict=False)
    if kind == "whole" and total:
        numbers = numbers.fill_null(0)
    if kind == "whole" and numbers.null_count():
        raise InputError(f"{name!r} is declared whole, and a record has no whole number there; declare it number, which may be missing")
    return numbers.fill_null(math.nan).to_numpy() if kind == "number" else numbers.to_numpy()


def _declared_truth(series: "polars.Series", total: bool) -> Column:
    import polars

    texts = series.cast(polars.String).str.strip_chars().str.to_lowercase()
    if not total and not texts.is_in(["true", "false", "1", "0"]).fill_null(False).all():
        raise InputError(f"{series.name!r} is declared truth, and a record is neither true nor false there; declare it text, which may be missing")
    return texts.is_in(["true", "1"]).fill_null(False).to_numpy()


def _flat(series: "polars.Series") -> "polars.Series":
    """The column. Raises InputError for lists, bytes and other cells that are neither numbers nor texts, whatever the rows hold."""
    import polars

    if series.dtype.is_nested() or series.dtype in (polars.Binary, polars.Object, polars.Duration):
        raise OddColumnError(f"column {series.name!r:.80} has cells of type {str(series.dtype)!r:.80}, not numbers or texts; write the table without it")
    return series


def column_of(series: "polars.Series", most: int = LONGEST) -> Column:
    """Numbers, truth values and dates stay such, all else becomes text, cut one letter beyond `most`. What is missing becomes NaN, NaT or empty."""
    import polars

    series = _flat(series)
    if series.dtype == polars.Boolean:
        series = series.cast(polars.UInt8) if series.null_count() else series
    if series.dtype in (polars.Date, polars.Datetime):  # times as the table shows them, whatever their zone
        local = series.dt.replace_time_zone(None) if series.dtype == polars.Datetime else series
        return np.ascontiguousarray(local.cast(polars.Datetime("us")).to_numpy())
    if str(series.dtype) in ("Int128", "UInt128"):
        raise OddColumnError(f"column {series.name!r:.80} holds whole numbers beyond 64 bits; write them as text, or with a decimal point")
    if series.dtype.is_numeric() or series.dtype == polars.Boolean:
        plain = series.cast(polars.Float64) if series.null_count() or series.dtype.is_decimal() else series
        return np.ascontiguousarray(plain.to_numpy())
    return _letters(series.cast(polars.String).fill_null("").str.slice(0, most + 1))


def _letters(texts: "polars.Series") -> Column:
    """Texts as numpy has them, each with room for the longest: some are joined to one text, whose code points are their letters."""
    longest: Any = texts.str.len_chars().max()
    width = longest or 1
    letters = np.empty(len(texts), dtype=f"<U{width}")
    for first in range(0, len(texts), _JOINED):
        joined: Any = texts.slice(first, _JOINED).str.pad_end(width, "\0").str.join().item()
        letters[first : first + _JOINED] = np.frombuffer(joined.encode("utf-32-le"), dtype=letters.dtype)
    return letters


def length_of(kind: str) -> int:
    """The greatest length of a declared text."""
    return int(kind.removeprefix("text") or LONGEST)


def dates_of(series: "polars.Series", kind: str = "date", required: bool = False) -> Column:
    """A column as dates: texts in the form that the kind names, or without one YYYY-MM-DD. What has another form is missing.

    Raises InputError if every value is missing so, and one is `required`.
    """
    import polars

    if series.dtype in (polars.Date, polars.Datetime):
        return column_of(series)
    texts, form = series.cast(polars.String).str.strip_chars(), kind[5:]
    if form:
        dates = column_of(texts.str.to_datetime(form, strict=False, time_unit="us"))
    else:
        texts = texts.fill_null("")
        different = texts.unique()
        each = np.array([date_of(text) for text in different.to_list()], dtype=DATES)
        dates = column_of(texts.replace_strict(different, polars.Series(each), return_dtype=polars.Datetime("us")))
    if required and np.isnan(dates).all() and (texts.fill_null("") != "").any():
        raise InputError(f"no value of {series.name!r:.80} is a date in the form {form or '%Y-%m-%d'!r}; give the form that the values have")
    return dates
