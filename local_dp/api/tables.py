"""Tables in any form, as records."""

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from local_dp.api.files import ADVICE, MALFORMED, TEXTS, Form, files_of, frame_of
from local_dp.api.inference import declared_cells, inferred_columns
from local_dp.api.plain_rows import read_declared
from local_dp.api.schemas import check_schema, read_schema
from local_dp.arrays import Column
from local_dp.bus.children import Folder
from local_dp.errors import InputError, reading, unknown
from local_dp.foreign import listed
from local_dp.populations.dealing import Dealing
from local_dp.populations.finite import Rows
from local_dp.queries.dates import FORMS, ISO, LOCAL
from local_dp.queries.labels import letters_in
from local_dp.records import LONGEST, PART, Records, chosen
from local_dp.storage.columns import (
    MERGED,
    OddColumnError,
    column_of,
    dates_of,
    declared_column,
    exactly,
    is_whole,
    length_of,
    values_of,
)
from local_dp.storage.scanned import Columns, File, Scanned

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

Bounds: TypeAlias = tuple[float, float]
# the types of columns, or a JSON file with them
Schema: TypeAlias = Mapping[str, str] | str | Path | None
Dates: TypeAlias = Mapping[str, str] | None  # the forms of columns of dates
Notice: TypeAlias = Callable[[str], object]
# columns, lines that refuse others, and the names of all
Found: TypeAlias = tuple[dict[str, Column], dict[str, str], Sequence[str]]
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
    `dates` are the forms of columns of dates, as in {"date": "%m/%d/%Y"}; the form YYYY-MM-DD needs
    none. Texts are cut at their greatest length; `notice` shows how many, by default as a warning,
    but not of a `private` table. A column of other cells, such as lists, is left out with a notice;
    a question about it is refused. `csv` is that of `read_records`. `only`: the columns that are
    read, and digested (`chosen`); None: all. `copy`: whether a large CSV table may be copied to a
    temporary folder, so that memory does not grow with its rows: not a private one. Raises
    InputError, also for a private table whose types would be read from its values.
    """
    declared = (
        read_schema(Path(schema))
        if isinstance(schema, str | Path)
        else schema
        if schema is None
        else check_schema(schema, "the schema")
    )
    if private and declared is None and not _typed(table):
        raise InputError(
            "the types of columns are read from the values, so an error would reveal some: "
            "declare them: schema=FILE"
        )
    notice = unsaid if private else notice or warn
    if isinstance(table, Scanned) and declared is None:
        return table.only(only)
    if isinstance(table, Records) and declared is None:
        return _cut(table.columns, table.lengths, notice, table.odd, table.known).only(only)
    if isinstance(table, str | Path):
        return read_records(
            Path(table),
            declared,
            total=private,
            notice=notice,
            csv=csv,
            dates=dates,
            only=only,
            copy=copy,
        )
    if csv:
        raise InputError("csv describes a CSV file, and the table is none; leave out csv")
    columns, odd, known = (
        (table.columns, table.odd, table.known)
        if isinstance(table, Records)
        else _columns(table, notice, only)
    )
    lengths = {name: len(values) for name, values in columns.items()}
    if not columns or 0 in lengths.values():
        raise InputError(
            f"the table has {len(columns)} columns and {next(iter(lengths.values()), 0)} rows; at "
            "least one of each is needed"
        )
    if declared is not None:
        import polars

        for name in odd.keys() & declared.keys():
            raise InputError(odd[name])
        return _of_schema(
            polars.DataFrame(columns), columns, declared | _kinds(dates), private, notice
        ).only(only)
    return _cut(_formed(columns, dates, known), {}, notice, odd, known).only(only)


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
    warnings.warn(text, stacklevel=level)


def unsaid(text: str) -> None:
    """The notice of a private table, whose texts nobody is to count."""


def _cut(
    columns: Mapping[str, Column],
    lengths: Mapping[str, int],
    notice: Notice,
    odd: Mapping[str, str] | None = None,
    known: Collection[str] = (),
) -> Records:
    """The records, with each text cut at the declared length of its column: otherwise one long text
    would set the width of all, and show in time and memory.

    Every table comes through here.
    """
    cut, kept = dict.fromkeys(columns, 0), dict(columns)
    for name, values in columns.items():
        most = lengths.get(name, LONGEST)
        if values.dtype.kind == "U" and letters_in(values) > most:
            cut[name] = int(np.count_nonzero(np.char.str_len(values) > most))
            kept[name] = values.astype(f"U{most}")
    if any(cut.values()):
        names = ", ".join(repr(name) for name, many in cut.items() if many)
        notice(
            f"texts cut at their greatest length, {LONGEST} characters unless a schema declares "
            f"another: {sum(cut.values()):,} in {names:.200}"
        )
    return Records(kept, lengths, odd, known)


def _typed(table: Table) -> bool:
    """Whether each column has a type of its own, whatever its values."""
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

    if isinstance(table, Mapping):
        return _readable(list(table), lambda name: values_of(str(name), table[name]), notice)
    if isinstance(table, polars.LazyFrame):
        names = table.collect_schema().names()
        frame = table.select(exactly(*chosen(names, only))).collect()
        return _readable(names, lambda name: column_of(frame.get_column(name)), notice, only)
    if hasattr(table, "to_frame") and hasattr(table, "name"):  # a series, of polars or pandas
        table = table.to_frame(table.name or "value")
    # of mixed cells, pyarrow cuts some
    if hasattr(table, "__arrow_c_stream__") and np.dtype(object) not in list(
        getattr(table, "dtypes", ())
    ):
        try:
            frame = polars.DataFrame(table)
        except (
            ImportError,
            TypeError,
            ValueError,
            polars.exceptions.ComputeError,
        ):
            # pandas then needs pyarrow; polars lacks the time zone +05:30
            if not hasattr(table, "dtypes"):
                raise
        except polars.exceptions.DuplicateError as error:
            raise InputError(
                f"two columns of the table have one name ({str(error).splitlines()[0]:.200}); "
                "give each a name of its own"
            ) from None
        else:
            return _readable(
                frame.columns, lambda name: column_of(frame.get_column(name)), notice, only
            )
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return _readable(
            list(table.columns), lambda name: values_of(str(name), table[name]), notice, only
        )
    raise InputError(
        "a table is a path, a mapping of columns, or a frame or series (pandas, polars, pyarrow); "
        f"not {type(table).__name__}"
    )


def _readable(
    names: Sequence[object],
    read: Callable[[Any], Column],
    notice: Notice,
    only: Collection[str] | None = None,
) -> Found:
    """Of the columns `only`, those that questions can be about, and for each other one the line
    that refuses it. Raises InputError if there are no others."""
    columns, odd, spelled = dict[str, Column](), dict[str, str](), [str(name) for name in names]
    wanted = chosen(spelled, only)
    twin = next((name for place, name in enumerate(spelled) if name in spelled[:place]), None)
    if twin is not None:
        raise InputError(
            f"two columns of the table are called {twin!r:.80}; give each a name of its own"
        )
    for name in names:
        if str(name) not in wanted:
            continue
        try:
            columns[str(name)] = read(name)
        except OddColumnError as error:
            odd[str(name)] = str(error)
    if odd and not columns:
        raise InputError(next(iter(odd.values())))
    if odd:
        notice(
            "left out, because no question can be about its cells: "
            f"{listed([repr(name) for name in odd])}"
        )
    return columns, odd, [name for name in spelled if name not in odd]


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
        return _cut(
            read_declared(path, schema, total, form),
            {
                name: length_of(kind)
                for name, kind in (schema or {}).items()
                if kind.startswith("text")
            },
            notice,
        )
    only = only if schema is None else chosen({**schema, **(dates or {})}, only)
    paths = files_of(path)
    suffix = paths[0].suffix.lower()
    said = [f"{len(paths)} {suffix} files"] * (path not in paths)
    cause = (
        ""
        if not total or schema is None
        else MALFORMED
        if suffix in TEXTS
        else "its columns are of another kind"
    )
    if csv and suffix not in TEXTS and (suffix == ".parquet" or form.sep or form.encoding):
        raise InputError(
            f"csv describes a CSV file, or decimal and missing cells of Excel, and {path.name!r} "
            "has none; leave out csv"
        )
    if suffix == ".xlsx" and total:
        raise InputError(
            f"{path.name!r} is an Excel file, whose last rows count unless they are empty; save a "
            "private table as CSV or Parquet"
        )
    used = (
        _scanned(path, paths, schema, total, only) if suffix == ".parquet" and not dates else None
    )
    if used is None:
        frame, names = _frame(path, paths, schema, total, form, said, only)
        if (
            copy
            and schema is None
            and not dates
            and suffix in TEXTS
            and sum(each.stat().st_size for each in paths) >= LARGE
        ):
            used = _copied(path, frame, names, only)
    if said:
        notice(f"{path.name!r}: {'; '.join(said)}")
    if used is not None:
        return used
    # Polars warns of an open quote
    quiet = warnings.catch_warnings(action="ignore" if total else None)
    with reading(path, "give a table of numbers and texts", cause), quiet:
        table = frame.collect()
        if not table.height or not table.width:
            raise InputError(
                f"the table {path.name!r} has {table.height} rows and {table.width} columns; at "
                "least one of each is needed"
            )
        if schema is not None:
            return _of_schema(table, names, {**schema, **_kinds(dates)}, total, notice)
        columns, odd, known = _readable(
            names, lambda name: _guessed(table.get_column(name), notice, dates), notice, only
        )
        return _cut(_formed(columns, dates, known), {}, notice, odd, known)


def _frame(
    path: Path,
    paths: list[Path],
    schema: Mapping[str, str] | None,
    total: bool,
    form: Form,
    said: list[str],
    only: Collection[str] | None,
) -> "tuple[polars.LazyFrame, list[str]]":
    """The columns `only` of files, with their types or as texts of declared types, and the names of
    all."""
    frame, names = frame_of(path, paths, schema, total, form, said, only)
    if paths[0].suffix.lower() == ".parquet":
        return frame, names
    if schema is not None:
        form.check_decimal(schema, paths[0])
        return declared_cells(frame, schema, form), names
    with reading(path, ADVICE):
        return inferred_columns(frame, form, said), names


def _copied(
    path: Path, frame: "polars.LazyFrame", names: Sequence[str], only: Collection[str] | None
) -> Scanned | None:
    """The table in a Parquet file of a temporary folder, which goes when nobody holds it: memory
    does not grow with the rows."""
    home = Folder(prefix="local-dp-table-")
    file = Path(home.name) / "t.parquet"
    with reading(path, ADVICE):
        frame.sink_parquet(file, compression="lz4", row_group_size=PART)
    return _scanned(path, [file], None, False, only, home, names) or None


LARGE = 1 << 26  # bytes of CSV: from here on it is copied to a Parquet file
MANY = 1 << 20  # rows: from here on a table in Parquet files is read as it is used


def _scanned(
    path: Path,
    paths: list[Path],
    schema: Mapping[str, str] | None,
    total: bool,
    only: Collection[str] | None,
    home: object = None,
    known: Sequence[str] = (),
) -> Scanned | None:
    """A table in Parquet files that is read as it is used; None for a small one, and where the
    values of a whole column decide how it is read."""
    import polars

    files = tuple(File.of(each, "it is damaged" if total else "") for each in paths)
    of_types = [polars.read_parquet_schema(each) for each in paths]
    rows, names, kinds = sum(file.rows for file in files), list(of_types[0]), schema or {}
    plain = total or not any(
        kind in ("whole", "truth") or kind.startswith("date") for kind in kinds.values()
    )
    if (
        (rows < MANY and home is None)
        or any(each != of_types[0] for each in of_types)
        or not plain
        or not kinds.keys() <= set(names)
    ):
        return None
    read = [name for name in (kinds or names) if name in chosen(kinds or names, only)]
    with reading(path, "give a table of numbers and texts", "it is damaged" if total else ""):
        facts = polars.scan_parquet(paths, glob=False).select(
            fact for name in read for fact in _facts(name, of_types[0][name], kinds, total)
        )
        found = {
            name: bool(value[0])
            for name, value in facts.collect(engine="streaming").to_dict().items()
        }
        try:
            empty = {
                name: polars.Series(
                    name, [None] * found.get(f"{name} lacks", False), of_types[0][name]
                )
                for name in read
            }
            columns = {
                name: declared_column(each, kinds[name], True) if name in kinds else column_of(each)
                for name, each in empty.items()
            }
        except OddColumnError:
            return None
    if any(value for name, value in found.items() if name.endswith(" decides")):
        return None
    types = {name: values.dtype for name, values in columns.items()}
    lengths = {name: length_of(kind) for name, kind in kinds.items() if kind.startswith("text")}
    return Scanned(
        Columns(files, types, kinds, 0, rows, home=home), lengths, known or list(kinds) or names
    )


def _facts(
    name: str, of_type: Any, kinds: Mapping[str, str], total: bool
) -> Iterator["polars.Expr"]:
    """Whether a column lacks values, and whether a cell decides more than itself: a text that is to
    be cut with a notice, or may be a date; a large number."""
    import polars

    cell = exactly(name)
    if name in kinds and total:
        return
    lacks = cell.null_count() > 0
    yield lacks.alias(f"{name} lacks")
    # whole numbers that are refused beside a missing one
    if name not in kinds and is_whole(of_type):
        yield (lacks & ((cell.max() > MERGED) | (cell.min() < -MERGED))).alias(
            f"{name} is merged decides"
        )
    if of_type in (polars.String, polars.Categorical, polars.Enum) or kinds.get(
        name, ""
    ).startswith("text"):
        text = cell.cast(polars.String)
        yield (text.str.len_chars().max() > length_of(kinds.get(name, "text"))).alias(
            f"{name} is long decides"
        )
        if name not in kinds and of_type == polars.String:
            yield (
                text.str.contains(f"^(?:{ISO})$").any() | text.str.contains(f"^(?:{LOCAL})$").any()
            ).alias(f"{name} may be dates decides")


def _guessed(series: "polars.Series", notice: Notice, dates: Dates) -> Column:
    """A column of a file. Texts that all have the form YYYY-MM-DD are dates."""
    import polars

    if series.dtype == polars.String and series.name not in (dates or {}):
        some = series.null_count() < len(series)
        if (
            some
            and series.str.contains(f"^(?:{ISO})$").all()
            and np.isnan(found := dates_of(series)).sum() == series.null_count()
        ):
            notice(f"column {series.name!r:.80} is read as dates of the form YYYY-MM-DD")
            return found
        if some and series.str.contains(f"^(?:{LOCAL})$").all():
            forms = [
                form
                for form in FORMS
                if series.str.to_datetime(form, strict=False).null_count() == series.null_count()
            ]
            declared = f"{series.name}={' or '.join(forms) or '...'}"
            notice(
                f"column {series.name!r:.80} is text, not dates, until their form is declared: "
                f"{declared:.120}"
            )
    return column_of(series)


def _kinds(dates: Dates) -> dict[str, str]:
    """The declared kind of each column of dates. Raises InputError for a form that is none."""
    wrong = next((name for name, form in (dates or {}).items() if "%" not in form), None)
    if wrong is not None:
        raise InputError(
            f"give the form of the dates in {wrong!r:.80}, as in --date {wrong + '=%m/%d/%Y'!r}"
        )
    return {name: f"date {form}" for name, form in (dates or {}).items()}


def _formed(
    columns: Mapping[str, Column], dates: Dates, known: Collection[str]
) -> dict[str, Column]:
    """The columns, those of `dates` read in their forms. Raises InputError for a column that is not
    `known`."""
    import polars

    formed = dict(columns)
    for name, kind in _kinds(dates).items():
        if name not in known:
            raise InputError(unknown("no column", name, known))
        if name in columns:
            formed[name] = dates_of(polars.Series(name, columns[name]), kind, required=True)
    return formed


def _of_schema(
    frame: "polars.DataFrame",
    names: Collection[str],
    schema: Mapping[str, str],
    total: bool,
    notice: Notice,
) -> Records:
    """The declared columns in the frame. Raises InputError for one that is not among the table's
    `names`."""
    lacking = next((name for name in schema if name not in names), None)
    if lacking is not None:
        raise InputError(
            f"the schema has a column {lacking!r} that the table lacks; there are "
            f"{listed(list(names))}"
        )
    lengths = {name: length_of(kind) for name, kind in schema.items() if kind.startswith("text")}
    columns = {
        name: declared_column(frame.get_column(name), kind, total)
        for name, kind in schema.items()
        if name in frame.columns
    }
    return _cut(columns, lengths, notice, {}, list(schema))


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
    try:
        low, high = bounds
        return float(low), float(high)
    except (TypeError, ValueError):
        raise InputError(f"bounds is {bounds!r}; give (low, high)") from None


def bounds_text(bounds: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Public bounds by column in the form of `Learn`."""
    return tuple(
        f"{column}={ends if isinstance(ends, str) else '..'.join(map(str, ends))}"
        for column, ends in (bounds or {}).items()
    )


def settings_text(parameters: Mapping[str, object] | None) -> tuple[str, ...]:
    """A learner's own parameters in the form of `Learn`."""
    return tuple(
        f"{name}={value if isinstance(value, str) else str(value).lower()}"
        for name, value in (parameters or {}).items()
    )
