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
from dataclasses import dataclass, replace
from glob import glob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from local_dp.errors import InputError, reading
from local_dp.foreign import listed
from local_dp.queries.dates import ISO
from local_dp.records import chosen

if TYPE_CHECKING:
    from _csv import Reader

    import polars  # imported where it is used: it takes a third of a second

Kinds: TypeAlias = Mapping[str, str] | None  # the declared kinds of columns
ADVICE = "give a CSV, TSV, Excel (.xlsx) or Parquet file, or a folder of such files"
SUFFIXES = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}  # as they are typed
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
MISSING = r"(?i)^(na|n/a|#n/?a|#nv|null|#null!|nan|none|-|\.[a-z_]?)?$"  # in a column of numbers: R, Excel, databases, SPSS, Python, SAS and Stata
TRUTH = {"true": "1", "wahr": "1", "vrai": "1", "false": "0", "falsch": "0", "faux": "0"}  # English, German, French
_SPACES = " '\u2019\u00a0\u202f"  # between groups of three digits: French and Swiss spreadsheets
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"  # a date in Excel
_DECIMALS = 'csv="decimal=," or csv="decimal=."'
_PART = re.compile(r"sep=(?P<sep>[,;|]|tab)|decimal=(?P<decimal>[.,])|encoding=(?P<encoding>\S+)|missing=(?P<missing>\S+)")
_SAMPLE, _ROWS = 1 << 16, 100  # characters and rows that a separator is checked against


@dataclass(frozen=True)
class Form:
    """How a CSV file is written; empty where the file is to show it."""

    sep: str = ""
    decimal: str = ""
    encoding: str = ""
    missing: str = ""  # a text that is a missing cell, also in a column of texts

    @property
    def unsure(self) -> bool:
        """Whether all columns of numbers decide the decimal sign together."""
        return not self.decimal and self.sep not in ("", ",")

    @classmethod
    def parse(cls, text: str) -> "Form":
        """The form in a text such as "sep=; decimal=, encoding=latin-1". Raises InputError."""
        found = [_PART.fullmatch(each) for each in text.split()] if isinstance(text, str) else [None]
        if not all(found):
            raise InputError(
                f'csv is {text!r:.80}; sep is , ; | or tab, decimal is . or , and encoding and missing are words: csv="sep=; decimal=, encoding=latin-1"'
            )
        form = cls(**{name: "\t" if value == "tab" else value for part in found if part for name, value in part.groupdict().items() if value})
        try:
            "".encode(form.encoding or "utf-8")
        except (LookupError, ValueError):
            raise InputError(f'there is no encoding {form.encoding!r:.80}; give one such as csv="encoding=cp1252"') from None
        return form


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
                frames.append(frame.select(chosen(names, only)).lazy().collect())
            first = first or names
            _same(names, first, each, files[0])
        with reading(path, "give files whose columns have the same types", "its columns are of another kind" if total else ""):
            whole = polars.concat(frames, how="vertical_relaxed")
    else:
        whole, form, first = _csv(files, kinds, total, form, said, only)
    if suffix != ".parquet":
        whole = _guessed(whole, form, path, said, only) if kinds is None else _declared(whole, kinds, form, path)
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


def _same(names: Sequence[str], first: Sequence[str], path: Path, other: Path) -> None:
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
    import polars

    quiet, bodies, first = total and kinds is not None, list[tuple[Path, int, bytes]](), list[str]()
    cause = "its lines or quotes are malformed" if quiet else ""
    for path in files:
        text, encoding = decoded(path, kinds is not None, quiet, form.encoding)
        excel = re.match(rb"sep=([,;|\t])\r?\n", text)  # a first line that Excel obeys
        text = text[excel.end() :] if excel else text
        with reading(path, ADVICE, cause):
            sep = form.sep or (excel[1].decode() if excel else "\t" if path.suffix.lower() == ".tsv" else separator_of(text, kinds, path))
            rows = csv_rows(text, sep)
            names = named_columns(next(rows, []), path, said)
        first = first or names
        _same(names, first, path, files[0])
        body = b"".join(text.split(b"\n", rows.line_num)[rows.line_num :])
        if kinds is None or len(names) > 1:  # of one declared column an empty line is a record
            body = body.rstrip(b"\r\n")
        bodies.append((path, rows.line_num + 1 + bool(excel), body if not body or body.endswith(b"\n") else body + b"\n"))
        if path is files[0]:
            form = replace(form, sep=sep)
            said += [f"separator {SEPARATORS[sep]!r}"] * (sep != "," and path.suffix.lower() != ".tsv")
            said += [f"encoding {encoding}"] * (not encoding.startswith("utf-8"))
    head = form.sep.join(f"c{place}" for place in range(len(first))).encode()
    with reading(files[0], ADVICE, cause), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would show a cell
        whole = b"".join([head, b"\n", *(body for _, _, body in bodies)])
        named = [name for name in first if name]
        wanted = chosen(named, None if kinds is None and form.unsure else only)
        read = [place for place, name in enumerate(first) if name in wanted or place == len(first) - 1]
        try:
            frame = polars.read_csv(whole, separator=form.sep, infer_schema=False, truncate_ragged_lines=quiet, ignore_errors=quiet, columns=read)
            if len(read) < len(first) and not (quiet or _even(whole, frame, len(first), form.sep)):
                read = list(range(len(first)))
                frame = polars.read_csv(whole, separator=form.sep, infer_schema=False)
        except polars.exceptions.ComputeError:
            check_rows([] if quiet else bodies, len(first), form.sep, failed=True)
            raise
    if not quiet and (b'"' in whole or frame[frame.columns[-1]].null_count()):  # else polars finds each fault: a short row ends with missing cells
        check_rows(bodies, len(first), form.sep)
    if kinds is None and len(first) > 1:
        empty = frame.height - (frame := frame.filter(polars.any_horizontal(polars.all().is_not_null()))).height
        said += [f"empty rows left out: {empty:,}"] * (empty > 0)
    frame = frame.with_columns(polars.all().replace(form.missing, None)) if form.missing else frame
    return _without(frame, [first[place] if first[place] in wanted else "" for place in read]), form, named


def _even(text: bytes, frame: "polars.DataFrame", width: int, sep: str) -> bool:
    """Whether each row certainly has `width` cells, though only some were read: no quote hides a separator, and the last cell of each row is there."""
    return b'"' not in text and not frame[frame.columns[-1]].null_count() and text.count(sep.encode()) == (width - 1) * (frame.height + 1)


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


def check_rows(bodies: Iterable[tuple[Path, int, bytes]], width: int, sep: str, failed: bool = False) -> None:
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


def number_pattern(decimal: str) -> str:
    """The pattern of a number with this decimal sign, in groups of three or not."""
    group = ",.".replace(decimal, "") + _SPACES
    return rf"(?i)^[+-]?((\d+|[1-9]\d{{0,2}}([{group}]\d{{3}})+)([{decimal}]\d*)?(e[+-]?\d+)?|[{decimal}]\d+(e[+-]?\d+)?|inf(inity)?)$"


def _plain(texts: "polars.Expr", decimal: str, other: "polars.Expr | None" = None) -> "polars.Expr":
    """Numbers with a decimal point and without groups; all else is `other`, by default missing."""
    import polars

    group = ",.".replace(decimal, "") + _SPACES
    plain = texts.str.replace_all(f"[{group}]", "").str.replace(decimal, ".", literal=True)
    return polars.when(texts.str.contains(number_pattern(decimal))).then(plain).otherwise(other)


def _declared(frame: "polars.DataFrame", kinds: Mapping[str, str], form: Form, path: Path) -> "polars.DataFrame":
    """The cells of declared numbers in the form that `polars` casts, each by itself. Raises InputError, from the header alone, where a comma may be decimal."""
    import polars

    numbers = [name for name, kind in kinds.items() if kind in ("number", "whole", "truth") and name in frame.columns]
    if not form.decimal and form.sep not in ("", ",") and any(kinds[name] == "number" for name in numbers):
        raise InputError(f"{path.name!r} has separator {SEPARATORS[form.sep]!r}, so its numbers may have decimal commas; say which: {_DECIMALS}")
    cells = {name: polars.col(name).str.strip_chars() for name in numbers}
    truth = {name: cell.str.to_lowercase().replace_strict(TRUTH, default=None) for name, cell in cells.items()}
    return frame.with_columns(_plain(cell, form.decimal or ".", truth[name]).alias(name) for name, cell in cells.items())


def _guessed(frame: "polars.DataFrame", form: Form, path: Path, said: list[str], only: Collection[str] | None) -> "polars.DataFrame":
    """The columns `only`, as numbers and truth values where all cells are, or are missing; the others stay texts."""
    import polars

    frame = frame if form.unsure else frame.select(chosen(frame.columns, only))
    cells, either = frame.select(polars.all().str.strip_chars()), form.sep not in ("", ",") or form.decimal == ","
    fits = {each.name: _signs(each, either) for each in cells}
    unsure = {name: signs for name, signs in fits.items() if signs and (either or signs == {","})}
    marked = {name: signs for name, signs in unsure.items() if cells[name].str.contains(r"\d[.,]|[.,]\d").any()}
    decimal = form.decimal or _decimal(marked, form, path)
    columns, missing, words, group = list["polars.Series"](), dict[str, list[str]](), dict[str, list[str]](), ",.".replace(decimal, "") + _SPACES
    read = chosen(frame.columns, only)
    grouped = [name for name in read if decimal in fits[name] and cells[name].str.contains(rf"\d[{group}]\d").any()]
    for name in read:
        if decimal in fits[name]:
            plain = cells.select(_plain(polars.col(name), decimal)).to_series() if decimal == "," or name in grouped else cells[name]
            floats = plain.cast(polars.Float64, strict=False)
            whole = (plain.cast(kind, strict=False) for kind in (polars.Int64, polars.Int128))
            columns.append(next((each for each in whole if each.null_count() == floats.null_count()), floats))
        elif _fits(cells[name], f"(?i)^({'|'.join(TRUTH)})$"):
            columns.append((cells[name].str.to_lowercase().replace_strict(TRUTH, default=None, return_dtype=polars.String) == "1").alias(name))
        else:
            columns.append(frame[name])
            texts = frame.clear() if _fits(cells[name], f"^(?:{ISO})$") or not form.sep else cells.filter(polars.col(name).str.contains(MISSING))
            for text in texts[name].unique(maintain_order=True).to_list():
                words.setdefault(text, []).append(name)
            continue
        if columns[-1].null_count():
            for text in cells[name].filter(columns[-1].is_null()).drop_nulls().unique(maintain_order=True).to_list():
                missing.setdefault(text, []).extend([name] if text else [])
    others = [name for name, signs in marked.items() if name in read and decimal not in signs]
    said += ["decimal comma"] * (decimal == "," and bool(marked))
    said += [f"numbers in groups of three in {_quoted(grouped)}"] * bool(grouped)
    said += [f"texts in {_quoted(others)}, where the decimal sign is another"] * bool(others)
    said += [f"{text!r} missing in {_quoted(names)}" for text, names in missing.items() if text]
    said += [f'{text!r} a text in {_quoted(names)}, and missing with csv="missing={text}"' for text, names in words.items() if text]
    return polars.DataFrame(columns)


def _fits(cells: "polars.Series", pattern: str) -> bool:
    """Whether some cells are as the pattern says, and all others missing."""
    fit = cells.str.contains(pattern)
    return bool(fit.any()) and bool(cells.filter(~fit).str.contains(MISSING).all())


def _signs(cells: "polars.Series", either: bool) -> set[str]:
    """The decimal signs with which a column is one of numbers; a comma is tried where a point does not do, or where there may be `either`."""
    signs = {"."} if _fits(cells, number_pattern(".")) else set()
    return signs | {","} if (either or not signs) and _fits(cells, number_pattern(",")) else signs


def _quoted(names: Iterable[str]) -> str:
    return listed([repr(name) for name in names])


def _decimal(fits: Mapping[str, set[str]], form: Form, path: Path) -> str:
    """The decimal sign with which all these columns are numbers. A file with commas between its cells has points. Raises InputError where two or none fit."""
    if form.sep in ("", ",") or not fits:
        return "."
    signs = set.intersection(*fits.values())
    if len(signs) == 1:
        return signs.pop()
    if signs:
        raise InputError(f"the numbers of {_quoted(fits)} in {path.name!r} can have decimals or groups of three digits; say which: {_DECIMALS}")
    points, commas = (_quoted(name for name, each in fits.items() if each == {sign}) for sign in ".,")
    raise InputError(f"in {path.name!r} the decimal sign of {points} is a point, and that of {commas} a comma; say which: {_DECIMALS}")
