"""Files of tables, which Polars reads; CSV and Excel files are texts at first. A form such as
`csv="sep=; decimal=,"` says how a CSV file is written.

The header alone is looked at here: for a name that two columns have, and for a form that was not
declared.
"""

import csv
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from local_dp.checks import check_path
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
_PART = re.compile(r"sep=([,;|]|tab)|decimal=[.,]|(encoding|missing)=\S+")
DAMAGED, OF_OTHER_KIND = "it is damaged", "its columns are of another kind"


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
        parts = text.split() if isinstance(text, str) else [""]
        if not all(map(_PART.fullmatch, parts)):
            raise InputError(
                f"csv is {text!r:.80}; sep is , ; | or tab, decimal is . or , and encoding and "
                'missing are words: csv="sep=; decimal=, encoding=latin-1"'
            )
        pairs = [part.partition("=")[::2] for part in parts]
        words = tuple(value for name, value in pairs if name == "missing")
        once = {name: "\t" if value == "tab" else value for name, value in pairs}
        form = cls(**{**once, "missing": words})  # type: ignore[arg-type]
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


def labels_file(path: "PathLike[str] | str") -> tuple[str, ...]:
    """The labels in a text file, one on each line; empty lines are none. Raises InputError."""
    with reading(str(path), "give a text file in UTF-8 with one label on each line"):
        lines = Path(path).read_text("utf-8-sig").split("\n")
    return tuple(filter(None, map(str.strip, lines)))


def files_of(path: Path) -> list[Path]:
    """The files of a table: one, or all of a folder or a pattern, in the order of their names.
    Raises InputError."""
    check_path("the table", path)
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path.name!r} ends in {path.suffix!r}; {ADVICE}")
        return [path]
    what, among = (
        ("folder", path.iterdir()) if path.is_dir() else ("pattern", map(Path, glob(str(path))))
    )
    tables = sorted(
        each for each in among if each.suffix.lower() in SUFFIXES and not each.name.startswith(".")
    )
    for each in (path, *tables):
        if each.is_fifo():
            raise InputError(f"{str(each)!r} is a pipe, which is read only once; save it as a file")
    kinds = sorted({each.suffix.lower() for each in tables})
    if not tables and what == "pattern":
        raise InputError(f"there is no file {str(path)!r}; {ADVICE}")
    if len(kinds) != 1:
        raise InputError(
            f"the {what} {path.name!r} has {' and '.join(kinds) or 'no'} tables; give one with "
            f"files of one kind: {', '.join(SUFFIXES)}"
        )
    return tables


@dataclass(frozen=True)
class Source:
    """The files of a table, and how they are read. `kinds`, `total` and `only` are those of
    `tables.read_records`; `notes` gets what may have been meant otherwise."""

    path: Path
    kinds: Kinds
    total: bool
    form: Form
    only: Collection[str] | None
    files: list[Path]
    notes: list[str] = field(default_factory=list)

    @property
    def suffix(self) -> str:
        return self.files[0].suffix.lower()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.stat().st_size for each in self.files)

    @property
    def quiet(self) -> bool:
        """True if no row may be refused."""
        return self.total and self.kinds is not None

    @property
    def damage(self) -> str:
        """The cause of an unreadable file: a parser's own words may show a cell."""
        return DAMAGED if self.total else ""

    def frame(self) -> tuple["polars.LazyFrame", list[str]]:
        """The columns `only`, in CSV and Excel as texts; and the names of all. Raises InputError
        for malformed rows.

        Of a declared table, no row is left out and no cell loses the spaces around it.
        """
        import polars

        frames, first, rows_without_cells = list[polars.LazyFrame](), list[str](), 0
        for file in self.files:
            header, frame = self._file(file)
            names = [name for name in header if name]
            if not first and len(names) < len(header):
                self.notes.append(f"columns without a name left out: {len(header) - len(names)}")
            first = first or names
            if names != first:
                raise InputError(
                    f"{file.name!r} has the columns {listed(names)}, and {self.files[0].name!r} "
                    f"has {listed(first)}; give files of equal columns"
                )
            if self.suffix in TEXTS and not self.quiet:
                empty = _check_rows(file, frame, len(header), self.form)
                if empty and self.kinds is None:
                    frame = frame.filter(polars.any_horizontal(polars.all() != ""))
                    rows_without_cells += empty
            frames.append(frame.select(exactly(*chosen(names, self.only))))
        if rows_without_cells:
            self.notes.append(f"empty rows left out: {rows_without_cells:,}")
        cause = OF_OTHER_KIND if self.quiet else ""
        with reading(self.path, "give files whose columns have the same types", cause):
            whole = polars.concat(frames, how="vertical_relaxed")
        if self.suffix == ".parquet":
            return whole, first
        # `replace` would keep a column in memory
        lacks = polars.all().str.strip_chars().is_in(["", *self.form.missing])
        return whole.select(polars.when(~lacks).then(polars.all())), first

    def _file(self, file: Path) -> tuple[list[str], "polars.LazyFrame"]:
        """The header and rows of a file."""
        import polars

        if self.suffix == ".xlsx":
            return self._sheet(file)
        if self.suffix in TEXTS:
            return self._csv(file)
        with reading(file, ADVICE, self.damage):
            frame = polars.scan_parquet(file, glob=False)
            return frame.collect_schema().names(), frame

    def _sheet(self, path: Path) -> tuple[list[str], "polars.LazyFrame"]:
        """The header and rows of the first sheet, as texts: a type that is read from the values
        would drop those of another one. Dates are as 2026-11-26."""
        import polars

        try:
            import fastexcel
        except ImportError:
            raise InputError(
                "Excel files need fastexcel; install it: pip install 'local-dp[excel]', or save "
                "the table as CSV"
            ) from None
        logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of empty columns
        advice = "give an Excel file (.xlsx) whose first sheet is the table, or save it as CSV"
        with reading(path, advice):
            sheets = fastexcel.read_excel(path).sheet_names
            empty = {"drop_empty_rows": self.kinds is None, "drop_empty_cols": False}
            how: Any = {"sheet_id": 1, **empty}
            rows = polars.read_excel(path, has_header=False, infer_schema_length=0, **how)
            header = [(each or "").strip() for each in rows.row(0)]
            table = polars.read_excel(path, infer_schema_length=None, **how)
            rows.columns = table.columns = _unique(header, path)
            # as texts, they are cut after ten digits
            fractions = table.select(polars.selectors.float().cast(polars.String))
            texts = rows.slice(1).with_columns(
                fractions[name].fill_null(rows[name][1:]) for name in fractions.columns
            )
        if len(sheets) > 1:
            self.notes.append(f"sheet {sheets[0]!r:.80}, the first of {len(sheets)}")
        return header, texts.with_columns(polars.all().str.replace(_MIDNIGHT, "$1")).lazy()

    def _csv(self, path: Path) -> tuple[list[str], "polars.LazyFrame"]:
        """The header and rows of a CSV file, as texts. Raises InputError for a header that shows
        another form than the declared one."""
        import polars

        as_it_is = self.kinds is None and not self.form.encoding
        source = path if as_it_is else _text(path, self.form, self.quiet)
        header = header_of(path, self.form)
        names = _unique(header, path)
        frame = polars.scan_csv(
            source,
            separator=self.form.sep_of(path),
            infer_schema=False,
            truncate_ragged_lines=self.quiet,
            ignore_errors=self.quiet,
            with_column_names=lambda _: names,
            glob=False,
        )
        return header, frame


def check_distinct(names: Sequence[str], of: str) -> None:
    """Raises InputError for a name that two columns of a table have."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(
                f"two columns of {of} are called {name!r:.80}; give each a name of its own"
            )


def _unique(header: Sequence[str], path: Path) -> list[str]:
    """A name for every column: one that lacks it gets one that no file has. Raises InputError for a
    name that two columns have."""
    check_distinct([name for name in header if name], repr(path.name))
    return [name or f"\0{place}" for place, name in enumerate(header)]


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
        sign = whole[4:] or sep
        raise InputError(
            f"the first line of {path.name!r} gives the separator alone; delete it, and type "
            f'csv="sep={SEPARATORS.get(sign, sign):.9}"'
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
    where the last column lacks a cell, all cells are counted; also where a CR may join two rows.
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
    gaps = lacks[-1] and width > 1
    empty = check_rows(path, width, form) if gaps or _has_cr(path) else 0
    return empty if gaps else 0


def _has_cr(path: Path) -> bool:
    """False if every CR of the file is before an LF."""
    with reading(path, ADVICE), path.open("rb") as file:
        last = b""  # a CR at the end of a chunk
        while chunk := file.read(1 << 18):
            whole = last + chunk
            last = b"\r" if whole.endswith(b"\r") else b""
            if whole.removesuffix(b"\r").count(b"\r") > whole.count(b"\r\n"):
                return True
    return bool(last)


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
