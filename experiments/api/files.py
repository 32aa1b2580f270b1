"""Files of tables, as spreadsheets, R, SAS, SPSS, Stata and databases write them: separator, encoding and decimal sign are detected, and said in one line.

A file that can be read in two ways is refused, with the words that decide: `csv="sep=; decimal=, encoding=latin-1"`. Where a schema is declared, nothing is
detected from rows: the header line gives the separator and the encoding, and a decimal sign that may be a comma is asked for.
"""

import codecs
import csv
import io
import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from local_dp.errors import InputError, reading
from local_dp.experiments.api.cells import SEPARATORS, Form, declared, guessed, stripped, typed
from local_dp.foreign import listed
from local_dp.records import chosen
from local_dp.storage.columns import exactly

if TYPE_CHECKING:
    from _csv import Reader

    import polars  # imported where it is used: it takes a third of a second

Kinds: TypeAlias = Mapping[str, str] | None  # the declared kinds of columns
Body: TypeAlias = tuple[Path, int, bytes]  # rows of a file, from this line on
ADVICE = "give a CSV, TSV, Excel (.xlsx) or Parquet file, or a folder of such files"
SUFFIXES = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"  # a date in Excel
_SAMPLE, _ROWS = 1 << 16, 100  # characters and rows that a separator is checked against


def read_table(
    path: Path, kinds: Kinds, total: bool, say: Callable[[str], object], form: Form, only: Collection[str] | None = None
) -> tuple["polars.DataFrame", list[str]]:
    """The columns `only` (`chosen`) of a file, or of all files of a folder or a pattern, in the order of their names; and the names of all columns.

    `say` gets one line about what was detected in these columns, unless it is nothing. `kinds` and `total` are those of `read_records`; columns of a CSV or
    Excel file that `kinds` declares are texts. Raises InputError.
    """
    import polars

    files, first = files_of(path), list[str]()
    suffix = files[0].suffix.lower()
    said = [] if path in files else [f"{len(files)} {suffix} files"]
    if suffix == ".xlsx" and total:
        raise InputError(f"{path.name!r} is an Excel file, whose last rows count unless they are empty; save a private table as CSV or Parquet")
    if suffix in (".xlsx", ".parquet"):
        if form != Form():
            raise InputError(f"csv describes a CSV file, and {path.name!r} has none; leave out csv")
        frames: list[polars.DataFrame] = []
        for each in files:
            with reading(each, ADVICE, "it is damaged" if total else ""):
                frame = _sheet(each, kinds, said) if suffix == ".xlsx" else polars.scan_parquet(each, glob=False)
                names = frame.collect_schema().names()
                frames.append(frame.select(exactly(*chosen(names, only))).lazy().collect())
            first = first or names
            check_same(names, first, each, files[0])
        with reading(path, "give files whose columns have the same types", "its columns are of another kind" if total else ""):
            whole = polars.concat(frames, how="vertical_relaxed")
    else:
        whole, form, first = _csv(files, kinds, total, form, said, only)
    if suffix != ".parquet":
        if kinds is None:
            cells = stripped(whole.lazy()).collect()
            whole = typed(whole, guessed(cells.lazy(), form, path, said, only), only)
        else:
            whole = declared(whole, kinds, form, path)
    if said:
        say(f"{path.name!r} is read as: {', '.join(said)}")
    return whole, first


def files_of(path: Path) -> list[Path]:
    """The files of a table: one, or all of a folder or a pattern, in the order of their names. Raises InputError."""
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path.name!r} ends in {path.suffix!r}; {ADVICE}")
        return [path]
    what, among = ("folder", path.iterdir()) if path.is_dir() else ("pattern", map(Path, glob(str(path))))
    found = sorted(each for each in among if each.suffix.lower() in SUFFIXES and not each.name.startswith("."))
    kinds = sorted({each.suffix.lower() for each in found})
    if not found and what == "pattern":
        raise InputError(f"there is no file {str(path)!r}; {ADVICE}")
    if len(kinds) != 1:
        raise InputError(f"the {what} {path.name!r} has {' and '.join(kinds) or 'no'} tables; give one with files of one kind: {', '.join(SUFFIXES)}")
    return found


def check_same(names: Sequence[str], first: Sequence[str], path: Path, other: Path) -> None:
    """Raises InputError unless two files of a folder have the same columns."""
    if list(names) != list(first):
        raise InputError(f"{path.name!r} has the columns {listed(list(names))}, and {other.name!r} has {listed(list(first))}; give files of equal columns")


def named_columns(names: Sequence[str], path: Path, said: list[str]) -> list[str]:
    """The names without spaces around. Raises InputError for a name that two columns have."""
    names = [name.strip() for name in names]
    twin = next((name for place, name in enumerate(names) if name and name in names[:place]), None)
    if twin is not None:
        raise InputError(f"two columns of {path.name!r} are called {twin!r:.80}; give each a name of its own")
    if "" in names and not any("without a name" in each for each in said):
        said.append(f"columns without a name left out: {names.count('')}")
    return names


def _without(frame: "polars.DataFrame", names: Sequence[str]) -> "polars.DataFrame":
    """The columns that have a name, under it."""
    import polars

    return polars.DataFrame([each.alias(name) for each, name in zip(frame, names, strict=True) if name])


def _sheet(path: Path, kinds: Kinds, said: list[str]) -> "polars.DataFrame":
    """The first sheet, as texts: a type that is read from the values would drop those of another one. Dates have the form 2026-11-26."""
    import polars

    try:
        import fastexcel
    except ImportError:
        raise InputError("Excel files need fastexcel; install it: pip install 'local-dp[excel]', or save the table as CSV") from None
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of empty columns
    with reading(path, "give an Excel file (.xlsx) whose first sheet is the table, or save it as CSV"):
        sheets = fastexcel.read_excel(path).sheet_names
        rows = polars.read_excel(path, sheet_id=1, has_header=False, infer_schema_length=0, drop_empty_rows=kinds is None, drop_empty_cols=False)
        names, texts = [each or "" for each in rows.row(0)], rows.slice(1).with_columns(polars.all().str.replace(_MIDNIGHT, "$1"))
    if len(sheets) > 1:
        said.append(f"sheet {sheets[0]!r:.80}, the first of {len(sheets)}")
    return _without(texts, named_columns(names, path, said))


def _csv(
    files: Sequence[Path], kinds: Kinds, total: bool, form: Form, said: list[str], only: Collection[str] | None
) -> tuple["polars.DataFrame", Form, list[str]]:
    """The texts of all files under the header of the first, at least of the columns `only`; their form; and the names of all columns."""
    quiet, bodies, first = total and kinds is not None, list[Body](), list[str]()
    cause = "its lines or quotes are malformed" if quiet else ""
    for path in files:
        text, encoding = decoded(path, kinds is not None, quiet, form.encoding)
        with reading(path, ADVICE, cause):
            names, form, line, body = header_of(path, text, encoding, kinds, form, said, first)
        first = first or names
        check_same(names, first, path, files[0])
        if kinds is None or len(names) > 1:  # of one declared column an empty line is a record
            body = body.rstrip(b"\r\n")
        bodies.append((path, line, body if not body or body.endswith(b"\n") else body + b"\n"))
    with reading(files[0], ADVICE, cause):
        named = [name for name in first if name]
        wanted = chosen(named, None if kinds is None and form.unsure else only)
        frame, empty = texts_of(bodies, first, wanted, form, quiet, kinds is None)
    said += [f"empty rows left out: {empty:,}"] * (empty > 0)
    return frame, form, named


def header_of(path: Path, text: bytes, encoding: str, kinds: Kinds, form: Form, said: list[str], first: Sequence[str]) -> tuple[list[str], Form, int, bytes]:
    """The names of a file's columns, its form, and the line and the text of its rows. The `first` file's names are empty, and it decides the form."""
    excel = re.match(rb"sep=([,;|\t])\r?\n", text)  # a first line that Excel obeys
    text = text[excel.end() :] if excel else text
    sep = form.sep or (excel[1].decode() if excel else "\t" if path.suffix.lower() == ".tsv" else separator_of(text, kinds, path))
    rows = csv_rows(text, sep)
    names = named_columns(next(rows, []), path, said)
    if not first:
        form = replace(form, sep=sep)
        said += [f"separator {SEPARATORS[sep]!r}"] * (sep != "," and path.suffix.lower() != ".tsv")
        said += [f"encoding {encoding}"] * (not encoding.startswith("utf-8"))
    return names, form, rows.line_num + 1 + bool(excel), b"".join(text.split(b"\n", rows.line_num)[rows.line_num :])


def texts_of(
    bodies: Sequence[Body], first: Sequence[str], wanted: Collection[str], form: Form, quiet: bool = False, undeclared: bool = True
) -> tuple["polars.DataFrame", int]:
    """The `wanted` cells of some rows under the names `first`, and how many rows without a cell were left out. Raises InputError for malformed rows."""
    import polars

    whole = b"".join([form.sep.join(f"c{place}" for place in range(len(first))).encode(), b"\n", *(body for _, _, body in bodies)])
    read = [place for place, name in enumerate(first) if name in wanted or place == len(first) - 1]
    with reading(bodies[0][0], ADVICE, "its lines or quotes are malformed" if quiet else ""), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would show a cell
        try:
            frame = polars.read_csv(whole, separator=form.sep, infer_schema=False, truncate_ragged_lines=quiet, ignore_errors=quiet, columns=read)
            sure = quiet or (rectangular(whole, frame.height + 1, len(first), form.sep) and not may_have_empty(frame, whole, len(first), form.sep))
            if len(read) < len(first) and not sure:
                read = list(range(len(first)))
                frame = polars.read_csv(whole, separator=form.sep, infer_schema=False)
        except polars.exceptions.ComputeError:
            check_rows([] if quiet else bodies, len(first), form.sep, failed=True)
            raise
    if not sure:
        check_rows(bodies, len(first), form.sep)
    rows = frame.height
    if undeclared and len(first) > 1 and not sure:
        frame = frame.filter(polars.any_horizontal(polars.all().is_not_null()))
    empty = rows - frame.height
    frame = frame.with_columns(polars.all().replace(form.missing, None)) if form.missing else frame
    return _without(frame, [first[place] if first[place] in wanted else "" for place in read]), empty


def may_have_empty(frame: "polars.DataFrame", text: bytes, width: int, sep: str) -> bool:
    """Whether a row of the text may have no cell, where the frame has some of its columns: a line of separators alone. Quotes around nothing are a cell."""
    if not all(cells.null_count() for cells in frame):
        return False
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text  # the look takes a hundredth of the time
    line = (sep * (width - 1) + "\n").encode()
    return text.startswith(line) or b"\n" + line in text


def rectangular(text: bytes, rows: int, width: int, sep: str) -> bool:
    """Whether a text that ends in a line end surely is so many rows of `width` cells. Each quote must start or end a cell, or be doubled inside one.

    The parser of `polars` does not tell: it fills short rows, and cuts long ones behind the last cell that is asked for.
    """
    import polars

    if b"\r" in text and text.count(b"\r") > text.count(b"\r\n"):
        return False
    signs, end = polars.Series(np.frombuffer(text, dtype=np.uint8)), ord("\n")
    marks, expected = (signs == ord(sep)) | (signs == end), (sep * (width - 1) + "\n").encode() * rows
    if b'"' not in text:
        return signs.filter(marks).to_numpy().tobytes() == expected
    marks |= signs == ord('"')
    found, before, after = (each.filter(marks).to_numpy() for each in (signs, signs.shift(1, fill_value=end), signs.shift(-1, fill_value=end)))
    quotes, around = found == ord('"'), list(f'"{sep}\n'.encode())
    quoted = np.logical_xor.accumulate(quotes)
    begun, ended = np.isin(before[quotes & quoted], around), np.isin(after[quotes & ~quoted], [*around, ord("\r")])
    return bool(begun.all() and ended.all() and not quoted[-1]) and found[~(quotes | quoted)].tobytes() == expected


def decoded(path: Path, by_header: bool, quiet: bool, encoding: str) -> tuple[bytes, str]:
    """The file in UTF-8 with lines that end in \\n, and the encoding that it had: as its mark says, else UTF-8, else that of Windows."""
    with reading(path, ADVICE):
        data = path.read_bytes()
    probe = re.match(rb"(sep=.\r?\n)?[^\r\n]*", data)[0] if by_header else data  # type: ignore[index]
    marked = next((name for mark, name in BOMS.items() if data.startswith(mark)), "")
    encoding = encoding or marked
    if not encoding:
        if b"\0" in probe:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            remedy = 'if it is UTF-16 without a mark, add csv="encoding=utf-16-le"'
            raise InputError(f"{path.name!r} has a NUL byte in line {line}, so it is no text; {remedy}, else save it as CSV in UTF-8")
        encoding = "utf-8" if _in(probe, "utf-8") else "cp1252"
    try:
        text = data if encoding == "utf-8" and _in(data, "utf-8") else data.decode(encoding, "replace" if quiet else "strict").encode()
    except UnicodeError:
        raise InputError(f'{path.name!r} is not in {encoding}; name its encoding, such as csv="encoding=cp1252"') from None
    text = text.removeprefix(codecs.BOM_UTF8)
    if not text.strip():
        raise InputError(f"the table {path.name!r} has 0 rows and 0 columns; at least one of each is needed")
    return text if b"\n" in text else text.replace(b"\r", b"\n"), encoding


def _in(data: bytes, encoding: str) -> bool:
    try:
        return data.isascii() or bool(data.decode(encoding))
    except UnicodeError:
        return False


def csv_rows(text: bytes, sep: str, strict: bool = False) -> "Reader":
    """The rows of a text, each a list of cells."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a long cell is no fault
    return csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=sep, strict=strict)


def separator_of(text: bytes, kinds: Kinds, path: Path) -> str:
    """The separator that splits the header: into the declared names, or else into as many cells as the first rows have. Raises InputError for several."""
    heads = {sep: [name.strip() for name in next(csv_rows(text, sep), [])] for sep in SEPARATORS}
    if kinds is not None:
        return max(heads, key=lambda sep: (kinds.keys() <= set(heads[sep]), len(heads[sep])))
    able = [sep for sep, names in heads.items() if len(names) > 1] or [","]
    if len(able) > 1:
        sample = text if len(text) <= _SAMPLE else text[: text.rfind(b"\n", 0, _SAMPLE)]
        able = [sep for sep in able if all(len(row) in (0, len(heads[sep])) for row in islice(csv_rows(sample, sep), _ROWS))] or able
    if len(able) > 1:
        ways = " or ".join(f'csv="sep={SEPARATORS[sep]}"' for sep in able)
        raise InputError(f"the header of {path.name!r} can be separated in {len(able)} ways; say which: {ways}")
    return able[0]


def check_rows(bodies: Iterable[Body], width: int, sep: str, failed: bool = False) -> None:
    """Raises InputError for a row of more or fewer cells than the header, or a quote that does not match, with the file and its line."""
    for path, first, body in bodies:
        rows, line, fault = csv_rows(body, sep, strict=True), first, ""
        try:
            for row in rows:
                if row and len(row) != width:
                    fault = f"has {len(row)} cell{'s' * (len(row) != 1)}, and the header {width}"
                    break
                line = first + rows.line_num
        except csv.Error:
            fault = "begins a cell whose quotes do not match"
        if failed and not fault:  # Python's reader takes a quote in a cell without quotes around it as a letter, that of polars does not
            signs = sep.encode()
            rest = re.sub(rb'(?m)(^|[%b])"([^"]|"")*"(?=[%b\r\n]|\Z)' % (signs, signs), lambda cell: b"\n" * cell[0].count(b"\n"), body)
            line = first + rest.count(b"\n", 0, rest.find(b'"'))
            fault = "has a quote in a cell that has none around it" * (b'"' in rest)
        if fault:
            other = "," if sep == ";" else ";"
            raise InputError(f'line {line} of {path.name!r} {fault}; correct the line, or name another separator: csv="sep={other}"')
