"""Files of tables, which Polars reads; CSV and Excel files are texts at first. A form such as
`csv="sep=; decimal=,"` says how a CSV file is written.

The header alone is looked at here: for a name that two columns have, and for a form that was not
declared.
"""

import csv
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from local_dp.errors import InputError, reading
from local_dp.foreign import listed
from local_dp.records import chosen
from local_dp.storage.columns import exactly

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

Kinds: TypeAlias = Mapping[str, str] | None  # the declared kinds of columns
ADVICE = "give a CSV, TSV, Excel (.xlsx) or Parquet file, or a folder of such files"
TEXTS = (".csv", ".tsv", ".txt")
SUFFIXES = (*TEXTS, ".xlsx", ".parquet")
SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}  # as they are typed
MALFORMED = "its lines or quotes are malformed"
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"  # a date in Excel
_PART = re.compile(
    r"sep=(?P<sep>[,;|]|tab)|decimal=(?P<decimal>[.,])|encoding=(?P<encoding>\S+)|missing=(?P<missing>\S+)"
)


@dataclass(frozen=True)
class Form:
    """How a CSV file is written. By default commas, or tabs in a .tsv file, separate cells, and the
    text is UTF-8."""

    sep: str = ""
    decimal: str = ""
    encoding: str = ""
    missing: tuple[str, ...] = ()  # words that are missing cells

    @classmethod
    def parse(cls, text: str) -> "Form":
        """The form in a text such as "sep=; decimal=, encoding=latin-1 missing=NA missing=-".
        Raises InputError."""
        parts = (
            [_PART.fullmatch(each) for each in text.split()] if isinstance(text, str) else [None]
        )
        values = [
            (name, value)
            for part in parts
            if part
            for name, value in part.groupdict().items()
            if value
        ]
        if len(values) < len(parts):
            raise InputError(
                f"csv is {text!r:.80}; sep is , ; | or tab, decimal is . or , and encoding and "
                'missing are words: csv="sep=; decimal=, encoding=latin-1"'
            )
        once = {
            name: "\t" if value == "tab" else value for name, value in values if name != "missing"
        }
        form = cls(**once, missing=tuple(value for name, value in values if name == "missing"))
        try:
            "".encode(form.encoding or "utf-8")
        except (LookupError, ValueError):
            raise InputError(
                f"there is no encoding {form.encoding!r:.80}; give one such as "
                'csv="encoding=cp1252"'
            ) from None
        return form

    def sep_of(self, path: Path) -> str:
        """What separates the cells of this file."""
        return self.sep or ("\t" if path.suffix.lower() == ".tsv" else ",")

    def check_decimal(self, kinds: Mapping[str, str], path: Path) -> None:
        """Raises InputError where a declared number may have a decimal comma, whatever the rows
        hold."""
        if not self.decimal and self.sep_of(path) != "," and "number" in kinds.values():
            sep, which = SEPARATORS[self.sep_of(path)], 'csv="decimal=," or csv="decimal=."'
            raise InputError(
                f"{path.name!r} has separator {sep!r}, so its numbers may have decimal commas; "
                f"say which: {which}"
            )


def files_of(path: Path) -> list[Path]:
    """The files of a table: one, or all of a folder or a pattern, in the order of their names.
    Raises InputError."""
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path.name!r} ends in {path.suffix!r}; {ADVICE}")
        return [path]
    what, among = (
        ("folder", path.iterdir()) if path.is_dir() else ("pattern", map(Path, glob(str(path))))
    )
    found = sorted(
        each for each in among if each.suffix.lower() in SUFFIXES and not each.name.startswith(".")
    )
    kinds = sorted({each.suffix.lower() for each in found})
    if not found and what == "pattern":
        raise InputError(f"there is no file {str(path)!r}; {ADVICE}")
    if len(kinds) != 1:
        raise InputError(
            f"the {what} {path.name!r} has {' and '.join(kinds) or 'no'} tables; give one with "
            f"files of one kind: {', '.join(SUFFIXES)}"
        )
    return found


def frame_of(
    path: Path,
    files: Sequence[Path],
    kinds: Kinds,
    total: bool,
    form: Form,
    said: list[str],
    only: Collection[str] | None,
) -> tuple["polars.LazyFrame", list[str]]:
    """The columns `only` of the files of `path`, in CSV and Excel as texts; and the names of all.
    Raises InputError for malformed rows.

    `kinds` and `total` are those of `read_records`. Of a declared table, no row is left out and no
    cell loses the spaces around it.
    """
    import polars

    frames, first, left_out, suffix, quiet = (
        list[polars.LazyFrame](),
        list[str](),
        0,
        files[0].suffix.lower(),
        total and kinds is not None,
    )
    for each in files:
        if suffix == ".parquet":
            with reading(each, ADVICE, "it is damaged" if total else ""):
                frame = polars.scan_parquet(each, glob=False)
                header = frame.collect_schema().names()
        else:
            header, frame = (
                _sheet(each, kinds, said) if suffix == ".xlsx" else _csv(each, kinds, quiet, form)
            )
        names = [name for name in header if name]
        if len(names) < len(header) and not first:
            said.append(f"columns without a name left out: {len(header) - len(names)}")
        first = first or names
        if names != first:
            raise InputError(
                f"{each.name!r} has the columns {listed(names)}, and {files[0].name!r} has "
                f"{listed(first)}; give files of equal columns"
            )
        if suffix in TEXTS and not quiet:
            empty = _check_rows(each, frame, len(header), form)
            if empty and kinds is None:
                frame, left_out = (
                    frame.filter(polars.any_horizontal(polars.all() != "")),
                    left_out + empty,
                )
        frames.append(frame.select(exactly(*chosen(names, only))))
    said += [f"empty rows left out: {left_out:,}"] * (left_out > 0)
    with reading(
        path,
        "give files whose columns have the same types",
        "its columns are of another kind" if quiet else "",
    ):
        whole = polars.concat(frames, how="vertical_relaxed")
    if suffix == ".parquet":
        return whole, first
    cells = whole.select(polars.all().str.strip_chars()) if kinds is None else whole
    # `replace` would keep a column in memory
    return cells.select(
        polars.when(~polars.all().is_in(["", *form.missing])).then(polars.all())
    ), first


def _unique(header: Sequence[str], path: Path) -> list[str]:
    """A name for every column: one that lacks it gets one that no file has. Raises InputError for a
    name that two columns have."""
    twin = next(
        (name for place, name in enumerate(header) if name and name in header[:place]), None
    )
    if twin is not None:
        raise InputError(
            f"two columns of {path.name!r} are called {twin!r:.80}; give each a name of its own"
        )
    return [name or f"\0{place}" for place, name in enumerate(header)]


def _sheet(path: Path, kinds: Kinds, said: list[str]) -> tuple[list[str], "polars.LazyFrame"]:
    """The header and rows of the first sheet, as texts: a type that is read from the values would
    drop those of another one. Dates are as 2026-11-26."""
    import polars

    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "Excel files need fastexcel; install it: pip install 'local-dp[excel]', or save the "
            "table as CSV"
        ) from None
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of empty columns
    with reading(
        path, "give an Excel file (.xlsx) whose first sheet is the table, or save it as CSV"
    ):
        sheets = fastexcel.read_excel(path).sheet_names
        how: Any = {"sheet_id": 1, "drop_empty_rows": kinds is None, "drop_empty_cols": False}
        rows = polars.read_excel(path, has_header=False, infer_schema_length=0, **how)
        header = [(each or "").strip() for each in rows.row(0)]
        typed = polars.read_excel(path, infer_schema_length=None, **how)
        rows.columns = typed.columns = _unique(header, path)
        # as texts, they are cut after ten digits
        fractions = typed.select(polars.selectors.float().cast(polars.String))
        texts = rows.slice(1).with_columns(
            fractions[name].fill_null(rows[name][1:]) for name in fractions.columns
        )
    if len(sheets) > 1:
        said.append(f"sheet {sheets[0]!r:.80}, the first of {len(sheets)}")
    return header, texts.with_columns(polars.all().str.replace(_MIDNIGHT, "$1")).lazy()


def _csv(path: Path, kinds: Kinds, quiet: bool, form: Form) -> tuple[list[str], "polars.LazyFrame"]:
    """The header and rows of a CSV file, as texts. Raises InputError for a header that shows
    another form than the declared one."""
    import polars

    sep = form.sep_of(path)
    source = path if kinds is None and not form.encoding else _text(path, form, quiet)
    header = header_of(path, form)
    names = _unique(header, path)
    frame = polars.scan_csv(
        source,
        separator=sep,
        infer_schema=False,
        truncate_ragged_lines=quiet,
        ignore_errors=quiet,
        with_column_names=lambda _: names,
        glob=False,
    )
    return header, frame


def header_of(path: Path, form: Form) -> list[str]:
    """The names in the first line of a CSV file. Raises InputError for a header that shows another
    form than the declared one."""
    cause = (
        "its header has an open quote, or its lines end in CR alone; save it with lines that end "
        "in LF or CRLF"
    )
    with reading(path, ADVICE, cause), opened(path, form, "replace") as file:
        header = next(filter(None, csv.reader(file, delimiter=form.sep_of(path))), None)
    if header is None:
        raise InputError(
            f"the table {path.name!r} has 0 rows and 0 columns; at least one of each is needed"
        )
    whole, sep = "".join(header), form.sep_of(path)
    if "\0" in whole or "\ufffd" in whole:
        raise _encoding(path, form)
    if whole.startswith("sep="):
        raise InputError(
            f"the first line of {path.name!r} gives the separator alone; delete it, and type "
            "what "
            'it gives, such as csv="sep=;"'
        )
    others = [sign for sign in SEPARATORS if sign != sep and sign in whole]
    if others and not form.sep and (sep == "," or len(header) == 1):
        ways = " or ".join(f'csv="sep={SEPARATORS[sign]}"' for sign in (*others, sep))
        raise InputError(
            f"the header of {path.name!r} can be separated in {len(others) + 1} ways; say which: "
            f"{ways}"
        )
    return [name.strip() for name in header]


def opened(path: Path, form: Form, errors: str = "strict") -> TextIO:
    """The text of a CSV file, whose lines end in LF or CRLF. A long cell is no fault."""
    csv.field_size_limit(1 << 30)
    return path.open(encoding=form.encoding or "utf-8-sig", newline="\n", errors=errors)


def _text(path: Path, form: Form, lossy: bool) -> bytes:
    """The text of a file in memory, without empty lines at its end unless they may be records of
    one column. A byte that the encoding lacks is � if `lossy`."""
    with reading(path, ADVICE):
        data = path.read_bytes()
    try:
        text = data.decode(form.encoding or "utf-8", "replace" if lossy else "strict").removeprefix(
            "\ufeff"
        )
    except UnicodeError:
        raise _encoding(path, form) from None
    head, _, _ = text.partition("\n")
    return (text.rstrip("\r\n") + "\n" if form.sep_of(path) in head else text).encode()


def _encoding(path: Path, form: Form) -> InputError:
    return InputError(
        f"{path.name!r} is not in {form.encoding or 'UTF-8'}; name its encoding, such as "
        'csv="encoding=cp1252" or csv="encoding=utf-16"'
    )


def _check_rows(path: Path, frame: "polars.LazyFrame", width: int, form: Form) -> int:
    """Raises InputError for malformed rows. Returns how many rows have no cell.

    Polars refuses long rows and stray quotes where it reads every column. It fills short rows:
    where the last column lacks a cell, all cells are counted.
    """
    import polars

    with reading(path, 'a quote in a cell is doubled, with quotes around the cell: "5"" pipe"'):
        try:
            lacks = frame.select(polars.all().null_count()).collect(engine="streaming").row(0)
        except polars.exceptions.ComputeError as error:
            if "utf-8" in str(error):
                raise _encoding(path, form) from None
            check_rows(path, width, form)
            raise
    return check_rows(path, width, form) if lacks[-1] and width > 1 else 0


def check_rows(path: Path, width: int, form: Form) -> int:
    """Raises InputError for a row of more or fewer cells than the header, or a quote without an
    end. Returns how many rows have no cell."""
    with reading(path, ADVICE), opened(path, form) as file:
        rows, line, empty = csv.reader(file, delimiter=form.sep_of(path), strict=True), 1, 0
        try:
            for row in rows:
                if row and len(row) != width:
                    raise InputError(
                        f"line {line} of {path.name!r} has {len(row)} "
                        f"cell{'s' * (len(row) != 1)}, and the header {width}; correct the line"
                    )
                line, empty = rows.line_num + 1, empty + (not any(row))
        except csv.Error:
            raise InputError(
                f"line {line} of {path.name!r} begins a cell whose quotes or line ends do not "
                "match; correct the line"
            ) from None
    return empty
