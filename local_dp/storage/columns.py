"""One column of a frame, as numpy has it: numbers, truth values, dates and texts."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from local_dp.arrays import Column
from local_dp.errors import InputError
from local_dp.queries.dates import date_of
from local_dp.records import DATES, LONGEST, MERGED, TRUTHS, WHOLES, Orders

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

_JOINED = 1 << 16  # texts
_OFFSET, _OFFSETS = " *%:?z$", r" *(?:Z|[+-]\d\d(?::?\d\d)?)$"
# polars panics at a fixed zone such as +05:30, unless this lets it pass; it looks at each file
os.environ.setdefault("POLARS_IGNORE_TIMEZONE_PARSE_ERROR", "1")
_GAPS: dict[str, Any] = {"f": math.nan, "U": "", "M": np.datetime64("NaT", "us")}
_TYPES = {"M8": DATES, "f2": np.dtype(np.float32)}


class OddColumnError(InputError):
    """A column whose cells are neither numbers nor texts, which does no harm where no question
    reads it."""


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
        raise InputError(
            f"{name!r} is declared whole, and a record has no whole number there; declare it "
            "number, which may be missing"
        )
    return numbers.fill_null(math.nan).to_numpy() if kind == "number" else numbers.to_numpy()


def column_of_kind(series: "polars.Series", kind: str) -> Column:
    """A column of the declared `kind`, whatever the rows hold; with none, of its own type."""
    return declared_column(series, kind, total=True) if kind else column_of(series)


def _declared_truth(series: "polars.Series", total: bool) -> Column:
    import polars

    texts = series.cast(polars.String).str.strip_chars().str.to_lowercase()
    if not total and not texts.is_in(["true", "false", "1", "0"]).fill_null(False).all():
        raise InputError(
            f"{series.name!r} is declared truth, and a record is neither true nor false there; "
            "declare it text, which may be missing"
        )
    return texts.is_in(["true", "1"]).fill_null(False).to_numpy()


def _flat(series: "polars.Series") -> "polars.Series":
    """The column. Raises InputError for lists, bytes and other cells that are neither numbers nor
    texts, whatever the rows hold."""
    import polars

    if series.dtype.is_nested() or series.dtype in (polars.Binary, polars.Object, polars.Duration):
        raise OddColumnError(
            f"column {series.name!r:.80} has cells of type {str(series.dtype)!r:.80}, not numbers "
            "or texts; write the table without it"
        )
    return series


def column_of(series: "polars.Series", most: int = LONGEST) -> Column:
    """Numbers, truth values and dates stay such, all else becomes text, cut one letter beyond
    `most`. What is missing becomes NaN, NaT or empty."""
    import polars

    series = _flat(series)
    if series.dtype == polars.Boolean and series.null_count():
        return series.cast(polars.Float32).to_numpy().astype(TRUTHS)
    if series.dtype == polars.Float16:
        series = series.cast(polars.Float32)
    # times as the table shows them, whatever their zone
    if ":" in (zone := getattr(series.dtype, "time_zone", None) or ""):
        series = series.cast(polars.Datetime("us")) + datetime.strptime(zone, "%z").utcoffset()
    if series.dtype in (polars.Date, polars.Datetime):
        local = series.dt.replace_time_zone(None) if series.dtype == polars.Datetime else series
        return np.ascontiguousarray(local.cast(polars.Datetime("us")).to_numpy())
    if str(series.dtype) in ("Int128", "UInt128"):
        raise OddColumnError(
            f"column {series.name!r:.80} holds whole numbers beyond 64 bits; write them as text, "
            "or with a decimal point"
        )
    if series.dtype.is_numeric() or series.dtype == polars.Boolean:
        lacking = series.null_count() > 0 and not series.dtype.is_float()
        plain = series.cast(polars.Float64) if lacking or series.dtype.is_decimal() else series
        ends: list[Any] = (
            [series.min() or 0, series.max() or 0]
            if plain is not series and is_whole(series.dtype)
            else [0]
        )
        if max(map(abs, ends)) > MERGED:
            kind = "of a decimal type" if series.dtype.is_decimal() else "and a missing one"
            raise OddColumnError(
                f"column {series.name!r:.80} holds whole numbers beyond 2^53 {kind}; write them "
                "as text, or with a decimal point"
            )
        numbers = np.ascontiguousarray(plain.to_numpy())
        return numbers.view(WHOLES) if lacking and is_whole(series.dtype) else numbers
    return _letters(series.cast(polars.String).fill_null("").str.slice(0, most + 1))


def order_of(of_type: Any) -> tuple[str, ...] | None:
    """The categories of a type in their order, none where it has no order; None of other types."""
    kind = type(of_type).__name__
    if kind not in ("Enum", "CategoricalDtype"):
        return () if kind == "Categorical" else None
    return tuple(map(str, of_type.categories)) if getattr(of_type, "ordered", True) else ()


def orders_of(types: Mapping[str, Any]) -> Orders:
    """The order of each column of these types."""
    return {name: order_of(each) for name, each in types.items()}


def is_whole(of_type: "polars.DataType") -> bool:
    """True if a column of this type holds whole numbers alone."""
    return of_type.is_integer() or (of_type.is_decimal() and getattr(of_type, "scale", 0) == 0)


def values_of(name: str, values: Any) -> Column:
    """A column from an array, a list or a series."""
    import polars

    if isinstance(values, polars.Series):
        return column_of(values)

    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(
        values, Iterable
    ):
        form = " in a list, as df.to_dict('list') does" * isinstance(
            values, Mapping
        ) or " in a list" * isinstance(values, set | frozenset)
        raise InputError(
            f"column {name!r} is {type(values).__name__}; give one value for each record{form}"
        )
    array = np.asanyarray(values) if isinstance(getattr(values, "dtype", None), np.dtype) else None
    if array is not None and array.ndim == 1 and array.dtype.kind in "biufUM":
        kind = array.dtype.kind
        if kind in _GAPS or not np.ma.is_masked(array):
            return np.ascontiguousarray(
                np.ma.filled(array, _GAPS.get(kind)),
                dtype=_TYPES.get(array.dtype.str[1:3], array.dtype),
            )
        values = array.tolist()  # with None where it is masked
    # also where every number is missing
    of_type = (
        polars.Float64
        if array is None and getattr(getattr(values, "dtype", None), "kind", "") == "f"
        else None
    )
    try:
        plain = [_plain(value) for value in values]
        kinds = set(map(type, plain))
        if kinds == {type(None)} and any(isinstance(value, float) for value in values):
            of_type = polars.Float64
        if any(issubclass(each, date | time | timedelta) for each in kinds) and any(
            issubclass(each, Number) for each in kinds
        ):
            raise ValueError("it has numbers and dates; give values of one kind")
        series = polars.Series(name, plain, of_type, strict=False)
        if series.null_count() > sum(value is None for value in plain):
            raise ValueError(
                "a value is too large, or of another kind than the first; give values of one kind"
            )
        return column_of(series)
    except (polars.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise OddColumnError(
            # a text that is not Unicode would show its letter
            f"column {name!r:.80} cannot be read: "
            f"{getattr(error, 'reason', str(error).splitlines()[0])}"
        ) from None


def _plain(value: Any) -> Any:
    """A value as Python has it, a time as its own zone shows it; None where it is missing: None,
    NaN, and the equivalents of frames."""
    if isinstance(value, np.generic):
        value = (
            value.astype(f"{value.dtype.kind}8[us]") if value.dtype.kind in "mM" else value
        ).item()
    if isinstance(value, Decimal) and not value.is_finite():
        value = float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.replace(tzinfo=None)
    return (
        None
        if (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")
        else value
    )


def _letters(texts: "polars.Series") -> Column:
    """Texts as numpy has them, each with room for the longest: some are joined to one text, whose
    code points are their letters."""
    longest: Any = texts.str.len_chars().max()
    width = longest or 1
    letters = np.empty(len(texts), dtype=f"<U{width}")
    for first in range(0, len(texts), _JOINED):
        text: Any = texts.slice(first, _JOINED).str.pad_end(width, "\0").str.join().item()
        letters[first : first + _JOINED] = np.frombuffer(
            text.encode("utf-32-le"), dtype=letters.dtype
        )
    return letters


def length_of(kind: str) -> int:
    """The greatest length of a declared text."""
    return int(kind.removeprefix("text") or LONGEST)


def dates_of(series: "polars.Series", kind: str = "date", required: bool = False) -> Column:
    """A column as dates: texts in the form that the kind names, or without one YYYY-MM-DD. What has
    another form is missing.

    Raises InputError if every value is missing so, and one is `required`.
    """
    import polars

    if series.dtype in (polars.Date, polars.Datetime):
        return column_of(series)
    texts, form = series.cast(polars.String).str.strip_chars(), kind[5:]
    if form:
        # the hour that is written, whatever its offset: as in a frame
        if re.search(_OFFSET, form):
            form, texts = re.sub(_OFFSET, "", form), texts.str.replace(_OFFSETS, "")
        if re.search(r"%(\+|[:#]*z)", form):
            raise InputError(f"the dates in {series.name!r:.80} have an offset; give %z at the end")
        dates = column_of(texts.str.to_datetime(form, strict=False, time_unit="us"))
    else:
        texts = texts.fill_null("")
        different = texts.unique()
        each = np.array([date_of(text) for text in different.to_list()], dtype=DATES)
        dates = column_of(
            texts.replace_strict(different, polars.Series(each), return_dtype=polars.Datetime("us"))
        )
    if required and np.isnan(dates).all() and (texts.fill_null("") != "").any():
        raise InputError(
            f"no value of {series.name!r:.80} is a date in the form {form or '%Y-%m-%d'!r}; give "
            "the form that the values have"
        )
    return dates
