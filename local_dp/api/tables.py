"""Tables in any form, as records."""

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from local_dp.api.files import (
    ADVICE,
    MALFORMED,
    OF_OTHER_KIND,
    TEXTS,
    Form,
    Source,
    check_distinct,
    files_of,
)
from local_dp.api.inference import declared_cells, inferred_columns
from local_dp.api.plain_rows import read_declared
from local_dp.api.schemas import check_schema, read_schema
from local_dp.arrays import Column
from local_dp.bus.children import Folder
from local_dp.checks import converted
from local_dp.errors import InputError, LocalDPWarning, reading, unknown
from local_dp.foreign import listed
from local_dp.populations.dealing import Dealing
from local_dp.populations.finite import Rows
from local_dp.queries.dates import FORMS, ISO, LOCAL
from local_dp.queries.labels import letters_in
from local_dp.records import LONGEST, MERGED, PART, Orders, Records, chosen
from local_dp.storage.columns import (
    OddColumnError,
    column_of_kind,
    dates_of,
    declared_column,
    exactly,
    is_whole,
    length_of,
    order_of,
    orders_of,
    values_of,
)
from local_dp.storage.scanned import Columns, File, Scanned

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

Bounds: TypeAlias = tuple[float, float]
BoundsOf: TypeAlias = Mapping[Any, str | Bounds]
# the types of columns, or a JSON file with them
Schema: TypeAlias = Mapping[str, str] | str | Path | None
Dates: TypeAlias = Mapping[str, str] | None  # the forms of columns of dates
Notice: TypeAlias = Callable[[str], object]
# columns, lines that refuse others, the names of all, and orders
Found: TypeAlias = tuple[dict[str, Column], dict[str, str], Sequence[str], Orders]
# a path to a file or folder, a mapping of columns, Records, or a frame or series, or whatever
# offers the Arrow C stream
Table: TypeAlias = Any


def records_of(
    table: Table,
    schema: Schema = None,
    *,
    private: bool = False,
    notice: Notice | None = None,
    csv: str = "",
    dates: Dates = None,
    only: Collection[str] | None = None,
    copy: bool = False,
) -> Records:
    """A table as records: a path, as in `read_records`, a mapping of columns, or a frame or series
    of pandas, polars, pyarrow or what has `__arrow_c_stream__`.

    Numbers stay numbers (a missing one becomes NaN), truth values and dates stay such, all else
    becomes text (missing: empty), unless a `schema` declares the columns, as in `read_records`.
    `dates` are the forms of columns of dates, as in {"date": "%m/%d/%Y"}; YYYY-MM-DD needs none. Of
    a date with an offset, the written hour counts. Texts are cut at their greatest length; `notice`
    shows how many, by default as a warning, but not of a `private` table. A column of other cells,
    such as lists, is left out with a notice. `csv` is that of `read_records`. `only`: the columns
    to read and digest (`chosen`); None: all. `copy`: whether a large CSV table may be copied to a
    temporary folder, so that memory does not grow with its rows: not a private one. Raises
    InputError, also for a private table whose types would be read from its values.
    """
    kinds = _kinds_of(schema)
    if private and kinds is None and not _has_types(table):
        raise InputError(
            "the types of columns are read from the values, so an error would reveal some: "
            "declare them: schema=FILE"
        )
    notice = unsaid if private else notice or warn
    if isinstance(table, str | Path):
        how: Any = {"csv": csv, "dates": dates, "only": only, "copy": copy}
        return read_records(Path(table), kinds, total=private, notice=notice, **how)
    if isinstance(table, Scanned) and kinds is None:
        return table.only(only)
    if isinstance(table, Records) and kinds is None:
        facts = table.odd, table.names, table.orders
        return _cut(table.columns, table.lengths, notice, *facts).only(only)
    if csv:
        raise InputError("csv describes a CSV file, but this table is not one; leave out csv")
    columns, odd, names, orders = (
        (table.columns, table.odd, table.names, table.orders)
        if isinstance(table, Records)
        else _columns(table, notice, only)
    )
    sizes = [len(values) for values in columns.values()] or [0]
    if not all(sizes):
        raise InputError(
            f"the table has {len(columns)} columns and {sizes[0]} rows; at least one of each is "
            "needed"
        )
    if kinds is None:
        return _cut(_with_dates(columns, dates, names), {}, notice, odd, names, orders).only(only)
    import polars

    for name in odd.keys() & kinds.keys():
        raise InputError(odd[name])
    frame = polars.DataFrame(columns)
    return _of_schema(frame, columns, kinds | _kinds(dates), private, notice, orders).only(only)


def _kinds_of(schema: Schema) -> dict[str, str] | None:
    """The declared kinds of columns. Raises InputError."""
    if isinstance(schema, str | Path):
        return read_schema(Path(schema))
    return schema if schema is None else check_schema(schema, "the schema")


def warn(text: str) -> None:
    """A warning at the caller's line: the first one outside this package and the wrappers around
    it."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "local_dp",
        "contextlib",
        "sklearn",
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, LocalDPWarning, stacklevel=level)


def unsaid(text: str) -> None:
    """The notice of a private table, whose texts nobody is to count."""


def _cut(
    columns: Mapping[str, Column],
    lengths: Mapping[str, int],
    notice: Notice,
    odd: Mapping[str, str] | None = None,
    names: Collection[str] = (),
    orders: Orders | None = None,
) -> Records:
    """The records, with each text cut at the declared length of its column: otherwise one long text
    would set the width of all, and show in time and memory.

    Every table comes through here.
    """
    cut, result = dict.fromkeys(columns, 0), dict(columns)
    for name, values in columns.items():
        most = lengths.get(name, LONGEST)
        if values.dtype.kind == "U" and letters_in(values) > most:
            cut[name] = int(np.count_nonzero(np.char.str_len(values) > most))
            result[name] = values.astype(f"U{most}")
    if any(cut.values()):
        which = ", ".join(repr(name) for name, many in cut.items() if many)
        notice(
            f"texts cut at their greatest length, {LONGEST} characters unless a schema declares "
            f"another: {sum(cut.values()):,} in {which:.200}"
        )
    return Records(result, lengths, odd, names, orders)


def _has_types(table: Table) -> bool:
    """True if each column has a type of its own, whatever its values."""
    return isinstance(table, Records) or (
        isinstance(table, Mapping) and all(map(_of_a_type, table.values()))
    )


def _of_a_type(values: object) -> bool:
    # a mask makes numbers fractions
    return (
        isinstance(values, np.ndarray)
        and values.dtype.kind in "biufUM"
        and not isinstance(values, np.ma.MaskedArray)
    )


def _columns(table: Any, notice: Notice, only: Collection[str] | None) -> Found:
    import polars

    if isinstance(table, type):  # a class has the methods of its objects
        raise _no_table(table)
    if isinstance(table, Mapping):
        return _readable(list(table), table.__getitem__, notice)
    if isinstance(table, polars.LazyFrame):
        names = table.collect_schema().names()
        frame = table.select(exactly(*chosen(names, only))).collect()
        return _readable(names, frame.get_column, notice, only)
    if hasattr(table, "to_frame") and hasattr(table, "name"):  # a series, of polars or pandas
        table = table.to_frame(table.name or "value")
    # of mixed cells, pyarrow cuts some; and it loses the order of categories
    if hasattr(table, "__arrow_c_stream__") and not any(
        each == np.dtype(object) or getattr(each, "ordered", False)
        for each in getattr(table, "dtypes", ())
    ):
        try:
            frame = polars.DataFrame(table).cast(_enums(table))
        except (ImportError, TypeError, ValueError, polars.exceptions.ComputeError):
            # pandas then needs pyarrow; polars lacks the time zone +05:30
            if not hasattr(table, "dtypes"):
                raise
        except polars.exceptions.DuplicateError as error:
            raise InputError(
                f"two columns of the table have one name ({str(error).splitlines()[0]:.200}); "
                "give each a name of its own"
            ) from None
        else:
            return _readable(frame.columns, frame.get_column, notice, only)
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return _readable(list(table.columns), table.__getitem__, notice, only)
    raise _no_table(table)


def _no_table(value: object) -> InputError:
    return InputError(
        "a table is a path, a mapping of columns, or a frame or series (pandas, polars, pyarrow); "
        f"not {type(value).__name__}"
    )


def _enums(table: Any) -> Any:
    """The types of a pyarrow table's columns with an order, which polars loses. Chunks of different
    categories have none."""
    import polars

    types = dict[str, Any]()
    for each in getattr(table, "schema", ()):
        if getattr(getattr(each, "type", None), "ordered", False) and hasattr(table, "column"):
            column = table.column(each.name)
            parts = getattr(column, "chunks", [column])
            with suppress(TypeError, ValueError):
                (labels,) = {tuple(part.dictionary.to_pylist()) for part in parts}
                types[each.name] = polars.Enum([*labels])
    return types


def _readable(
    names: Sequence[object],
    values: Callable[[Any], Any],
    notice: Notice,
    only: Collection[str] | None = None,
) -> Found:
    """Of the columns `only`, those that questions can be about, and for each other one the line
    that refuses it. Raises InputError if there are no others."""
    columns, odd, texts = dict[str, Column](), dict[str, str](), [str(name) for name in names]
    orders: dict[str, tuple[str, ...] | None] = {}
    check_distinct(texts, "the table")
    choice = chosen(texts, only)
    for name in names:
        if str(name) not in choice:
            continue
        try:
            each = values(name)
            columns[str(name)] = values_of(str(name), each)
            orders[str(name)] = order_of(getattr(each, "dtype", None))
        except OddColumnError as error:
            odd[str(name)] = str(error)
    if odd and not columns:
        raise InputError(next(iter(odd.values())))
    if odd:
        notice(
            "left out, because no question can be about its cells: "
            f"{listed([repr(name) for name in odd])}"
        )
    return columns, odd, [name for name in texts if name not in odd], orders


def read_records(
    path: Path,
    schema: Mapping[str, str] | None = None,
    *,
    total: bool = False,
    notice: Notice | None = None,
    csv: str = "",
    dates: Dates = None,
    only: Collection[str] | None = None,
    copy: bool = False,
) -> Records:
    """The table in `path`, a file, a folder or a pattern (`files.files_of`); the other options are
    those of `records_of`. Raises InputError.

    The types of the columns of CSV and Excel are inferred from all their values, unless `schema`
    declares them (`read_schema`). Then only those columns are read, and an unreadable number or
    date is missing: types and refusals do not depend on the rows. An unreadable whole number is
    refused, or 0 with `total`, where a line of too many cells is cut: a client must not reveal its
    record by staying away, nor a private curator by an error. `csv` is the form of a CSV file
    (`Form`): "sep=; decimal=, encoding=latin-1 missing=NA".
    """
    notice = unsaid if total else notice or warn
    form = Form.parse(csv)
    if find_spec("polars") is None:
        return _cut(read_declared(path, schema, total, form), _lengths(schema or {}), notice)
    only = only if schema is None else chosen({**schema, **(dates or {})}, only)
    source = Source(path, schema, total, form, only, files_of(path))
    if path not in source.files:
        source.notes.append(f"{len(source.files)} {source.suffix} files")
    _check_suffix(source, csv)
    records = _scan(source) if source.suffix == ".parquet" and not dates else None
    if records is None:
        frame, names = _frame(source)
        is_plain = schema is None and not dates and source.suffix in TEXTS
        if copy and is_plain and source.size >= LARGE:
            records = _copy_of(source, frame, names)
    if source.notes:
        notice(f"{path.name!r}: {'; '.join(source.notes)}")
    return _collect(source, frame, names, dates, notice) if records is None else records


def _check_suffix(source: Source, csv: str) -> None:
    """Raises InputError for files that have no such form, or whose rows depend on their cells."""
    name, of_text = source.path.name, source.form.sep or source.form.encoding
    if csv and (source.suffix == ".parquet" or (source.suffix == ".xlsx" and of_text)):
        raise InputError(
            f"csv describes a CSV file, or decimal and missing cells of Excel, and {name!r} "
            "has none; leave out csv"
        )
    if source.suffix == ".xlsx" and source.total:
        raise InputError(
            f"{name!r} is an Excel file, whose last rows count unless they are empty; save a "
            "private table as CSV or Parquet"
        )


def _frame(source: Source) -> "tuple[polars.LazyFrame, list[str]]":
    """The columns of a source, with their types or as texts of declared types, and the names of
    all."""
    frame, names = source.frame()
    if source.suffix == ".parquet":
        return frame, names
    if source.kinds is not None:
        source.form.check_decimal(source.kinds, source.files[0])
        return declared_cells(frame, source.kinds, source.form), names
    with reading(source.path, ADVICE):
        return inferred_columns(frame, source.form, source.notes), names


def _collect(
    source: Source, frame: "polars.LazyFrame", names: Sequence[str], dates: Dates, notice: Notice
) -> Records:
    """The records of a frame. Raises InputError for one without rows or columns."""
    cause = MALFORMED if source.suffix in TEXTS else OF_OTHER_KIND
    # Polars warns of an open quote
    quiet = warnings.catch_warnings(action="ignore" if source.total else None)
    with reading(source.path, _CELLS, cause if source.quiet else ""), quiet:
        table = frame.collect()
        if not table.height or not table.width:
            raise InputError(
                f"the table {source.path.name!r} has {table.height} rows and {table.width} "
                "columns; at least one of each is needed"
            )
        if source.kinds is not None:
            kinds = {**source.kinds, **_kinds(dates)}
            return _of_schema(table, names, kinds, source.total, notice, orders_of(table.schema))
        columns, odd, present, orders = _readable(
            names, lambda name: _guess(table.get_column(name), notice, dates), notice, source.only
        )
        return _cut(_with_dates(columns, dates, present), {}, notice, odd, present, orders)


def _copy_of(source: Source, frame: "polars.LazyFrame", names: Sequence[str]) -> Scanned | None:
    """The table in a Parquet file of a temporary folder, which goes when nobody holds it: memory
    does not grow with the rows."""
    home = Folder(prefix="local-dp-table-")
    file = Path(home.name) / "t.parquet"
    with reading(source.path, ADVICE):
        frame.sink_parquet(file, compression="lz4", row_group_size=PART)
    return _scan(replace(source, files=[file]), home, names) or None  # no row is refused later


_CELLS = "give a table of numbers and texts"
LARGE = 1 << 26  # bytes of CSV: from here on it is copied to a Parquet file
MANY = 1 << 20  # rows: from here on a table in Parquet files is read as it is used


def _scan(source: Source, home: object = None, names: Sequence[str] = ()) -> Scanned | None:
    """A table in Parquet files that is read as it is used; None for a small one, and where the
    values of a whole column decide how it is read."""
    import polars

    files = tuple(File.of(each, source.damage) for each in source.files)
    first, *others = (polars.read_parquet_schema(each) for each in source.files)
    rows, kinds = sum(file.rows for file in files), source.kinds or {}
    small = rows < MANY and home is None
    if small or any(each != first for each in others) or not kinds.keys() <= first.keys():
        return None
    if not source.total and any(kind.startswith(_OF_ALL) for kind in kinds.values()):
        return None
    reads = chosen(kinds or first, source.only)
    doubtful = [name for name in reads if not (name in kinds and source.total)]
    with reading(source.path, _CELLS, source.damage):
        facts = (
            polars.scan_parquet(source.files, glob=False)
            .select(_facts(name, first[name], kinds) for name in doubtful)
            .collect(engine="streaming")
        )
        lacking = {name: facts[name][0]["lacks"] for name in doubtful}
        if any(facts[name][0]["decides"] for name in doubtful):
            return None
        try:
            types = {
                name: column_of_kind(
                    polars.Series(name, [None] * lacking.get(name, False), first[name]),
                    kinds.get(name, ""),
                ).dtype
                for name in reads
            }
        except OddColumnError:
            return None
    columns = Columns(files, types, kinds, 0, rows, home=home)
    return Scanned(columns, _lengths(kinds), names or list(kinds or first), orders_of(first))


_FIRST_YEAR = 1000  # %Y reads 20 as the year 20
_OF_ALL = ("whole", "truth", "date")  # a cell of these kinds may refuse the whole table


def _facts(name: str, of_type: Any, kinds: Mapping[str, str]) -> "polars.Expr":
    """Whether a column `lacks` values, and whether a cell `decides` more than itself: a text that
    is to be cut with a notice, or may be a date; a large number."""
    import polars

    cell = exactly(name)
    lacks, decides = cell.null_count() > 0, [polars.lit(False)]
    # whole numbers that are refused beside a missing one
    if name not in kinds and is_whole(of_type):
        decides.append(lacks & ((cell.max() > MERGED) | (cell.min() < -MERGED)))
    kind = kinds.get(name, "")
    if of_type in (polars.String, polars.Categorical, polars.Enum) or kind.startswith("text"):
        text = cell.cast(polars.String)
        decides.append(text.str.len_chars().max() > length_of(kind or "text"))
        if name not in kinds and of_type == polars.String:
            forms = (text.str.contains(rf"^\s*(?:{form})\s*$").any() for form in (ISO, LOCAL))
            decides += forms
    any_of = polars.any_horizontal(decides)
    return polars.struct(lacks.alias("lacks"), any_of.alias("decides")).alias(name)


def _guess(series: "polars.Series", notice: Notice, dates: Dates) -> Any:
    """A column of a file. Texts that all have the form YYYY-MM-DD are dates."""
    import polars

    name, missing = series.name, series.null_count()
    if series.dtype != polars.String or name in (dates or {}) or missing == len(series):
        return series
    texts = series.str.strip_chars()
    if texts.str.contains(f"^(?:{ISO})$").all():
        column = dates_of(series)
        if np.isnan(column).sum() == missing:
            notice(f"column {name!r:.80} is read as dates of the form YYYY-MM-DD")
            return column
    if texts.str.contains(f"^(?:{LOCAL})$").all():
        # the first ones decide on most forms
        forms = [form for form in FORMS if _has(texts.head(64), form) and _has(texts, form)]
        how = f"until their form is declared: {name}={' or '.join(forms)}"
        notice(
            f"column {name!r:.80} is text, not dates, "
            f"{how if forms else 'because no form fits them all':.150}"
        )
    return series


def _has(texts: "polars.Series", form: str) -> bool:
    """True if all texts are dates in this form, in years of four digits."""
    years = texts.str.to_datetime(form, strict=False).dt.year()
    return bool((years >= _FIRST_YEAR).sum() == len(texts) - texts.null_count())


def _kinds(dates: Dates) -> dict[str, str]:
    """The declared kind of each column of dates. Raises InputError for an invalid form."""
    for name, form in (dates or {}).items():
        if "%" not in form:
            raise InputError(
                f"give the form of the dates in {name!r:.80}, as in --date {name + '=%m/%d/%Y'!r}"
            )
    return {name: f"date {form}" for name, form in (dates or {}).items()}


def _with_dates(
    columns: Mapping[str, Column], dates: Dates, names: Collection[str]
) -> dict[str, Column]:
    """The columns, those of `dates` read in their forms. Raises InputError for a column that is not
    among `names`."""
    import polars

    result = dict(columns)
    for name, kind in _kinds(dates).items():
        if name not in names:
            raise InputError(unknown("no column", name, names))
        if name in columns:
            result[name] = dates_of(polars.Series(name, columns[name]), kind, required=True)
    return result


def _of_schema(
    frame: "polars.DataFrame",
    names: Collection[str],
    schema: Mapping[str, str],
    total: bool,
    notice: Notice,
    orders: Orders,
) -> Records:
    """The declared columns in the frame. Raises InputError for one that is not among the table's
    `names`."""
    for name in schema:
        if name not in names:
            raise InputError(
                f"the schema has a column {name!r} that the table lacks; there are "
                f"{listed(list(names))}"
            )
    columns = {
        name: declared_column(frame.get_column(name), kind, total)
        for name, kind in schema.items()
        if name in frame.columns
    }
    return _cut(columns, _lengths(schema), notice, {}, list(schema), orders)


def _lengths(kinds: Mapping[str, str]) -> dict[str, int]:
    """The greatest length of each declared text."""
    return {name: length_of(kind) for name, kind in kinds.items() if kind.startswith("text")}


def sample_rows(records: Records, clients: int, seed: int) -> Rows:
    """A population of `clients` rows drawn without replacement, dealt to the clients in an order
    that depends on the seed alone.

    All rows are dealt too: tables come sorted, and the cohorts of a protocol are ranges of clients,
    who must be exchangeable.
    """
    rows = len(records)
    if not 1 <= clients <= rows:
        raise InputError(
            f"clients is {clients}, but the table has {rows} rows; give a number from 1 to "
            f"{rows}, or draw rows with replacement: resample=True"
        )
    return Rows(records, clients, Dealing(rows, seed))


def ends_of(bounds: Bounds) -> tuple[float, float]:
    """The bounds as two numbers. Raises InputError."""
    low, high = converted("bounds", bounds, Bounds)
    return float(low), float(high)


def bounds_text(bounds: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Public bounds by column in the form of `Learn`."""
    return tuple(
        f"{column}={ends if isinstance(ends, str) else '..'.join(map(str, ends))}"
        for column, ends in converted("bounds", bounds or {}, BoundsOf).items()
    )


def settings_text(parameters: Mapping[str, object] | None) -> tuple[str, ...]:
    """A learner's own parameters in the form of `Learn`."""
    return tuple(
        f"{name}={value if isinstance(value, str) else str(value).lower()}"
        for name, value in (parameters or {}).items()
    )
