"""CSV files that may not fit in memory, as Parquet files in a temporary folder: the same rules read them as read small ones, some rows at a time."""

import codecs
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from local_dp.bus.children import Folder
from local_dp.errors import InputError, reading
from local_dp.experiments.api.cells import MISSING, PADDED, TRUTH, Form, guessed, number_pattern, stripped, typed
from local_dp.experiments.api.files import ADVICE, BOMS, Body, check_same, header_of, may_have_empty, rectangular, texts_of
from local_dp.oracles.local.oracles import keep_memory
from local_dp.records import chosen

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

LARGE = 1 << 26  # bytes: from here on
BLOCK = 3 << 20  # characters or bytes that are read at a time
SAMPLE = 100  # rows that show which columns are numbers
_START = 1 << 17  # that the header and the sample of `separator_of` are within
_TOGETHER = 8  # blocks in one Parquet file

Read: TypeAlias = "tuple[polars.DataFrame, int]"  # the rows of a block, and how many were left out


class Copied(NamedTuple):
    """The columns of a CSV table in Parquet files, the names of all its columns, its form, and what was detected. The files go when nobody holds `home`."""

    home: Folder
    files: list[Path]
    names: list[str]
    form: Form
    said: list[str]


def copied(path: Path, files: Sequence[Path], form: Form, only: Collection[str] | None) -> Copied | None:
    """The columns `only` of CSV files, in a temporary folder; memory does not grow with the rows. None where the reader of small files is to read, or refuse.

    Raises its InputErrors about decimal signs.
    """
    if files[0].suffix.lower() not in (".csv", ".tsv", ".txt") or sum(each.stat().st_size for each in files) < LARGE:
        return None
    import polars

    said = [] if path in files else [f"{len(files)} {files[0].suffix.lower()} files"]
    if form == Form() and (made := _copied(files, form, only, said, plain=True)):
        return made
    made = _copied(files, form, only, said, plain=False)
    if made is None:
        return None
    with polars.Config(engine_affinity="streaming"):
        lazy = polars.scan_parquet(made.files, glob=False)
        columns = guessed(stripped(lazy), made.form, path, made.said, only)
    if polars.Int128 in stripped(lazy).select(columns).collect_schema().dtypes():  # Parquet has no such numbers
        return None
    tables = [text.with_suffix(".typed.parquet") for text in made.files]
    for text, table in zip(made.files, tables, strict=True):
        typed(polars.scan_parquet(text, glob=False).collect(), columns, only).write_parquet(table)
        text.unlink()
    return made._replace(files=tables)


class Plain:
    """Reads rows as `texts_of` does, but as numbers and texts, by the parser of `polars`. Raises InputError where the rules of `cells` may differ."""

    def __init__(self) -> None:
        self.kinds: dict[str, polars.DataType] = {}  # of each column, under the names that `polars` gives them; those that are not wanted are texts

    def __call__(self, bodies: Sequence[Body], first: Sequence[str], wanted: Collection[str], form: Form) -> Read:
        import polars

        ((path, _, block),) = bodies
        if form != Form(sep=",") or not block.isascii() or b"\0" in block:
            raise InputError("cells may be more than they seem")
        wide, read = len(first), [place for place, name in enumerate(first) if name in wanted]
        self.kinds = self.kinds or _kinds(block, path, read)
        with reading(path, ADVICE):
            frame = polars.read_csv(block, has_header=False, schema=self.kinds, columns=read)
        if len(self.kinds) != wide or not rectangular(block, frame.height, wide, ",") or may_have_empty(frame, block, wide, ","):
            raise InputError("a row may be empty, short or long, or have a quote at an odd place")
        if any(texts.unique().str.strip_chars().str.contains(MISSING).any() for texts in frame if texts.dtype == polars.String):
            raise InputError("a text may be a missing cell")
        if any(numbers.is_nan().any() for numbers in frame if numbers.dtype == polars.Float64):
            raise InputError("a number is the word nan")
        if _padded(block, path, [numbers.name for numbers in frame if numbers.dtype == polars.Int64]):
            raise InputError("a whole number has leading zeros, and a notice is due")
        frame.columns = [first[place] for place in read]
        return frame, 0


def _padded(block: bytes, path: Path, whole: list[str]) -> bool:
    """Whether a number of these columns has leading zeros. They are read again if some cell of any column may begin so."""
    import polars

    if not whole or not _may_be_padded(block):
        return False
    with reading(path, ADVICE):
        cells = polars.read_csv(block, has_header=False, columns=whole, infer_schema_length=0)
    return any(texts.str.strip_chars().str.contains(PADDED).any() for texts in cells)


def _may_be_padded(block: bytes) -> bool:
    """Whether a cell may begin with 0 and another digit: behind a comma, quote, space or line end, and maybe + or -."""
    import polars

    signs = np.frombuffer(block, dtype=np.uint8)
    around = [polars.Series(signs[first : first - 3 or None]) for first in range(4)]
    _, before, sign, after = around
    zeros = (sign == ord("0")) & (before <= ord("-")) & (after >= ord("0"))  # as all of these are, no digit before and no dot behind: few are left
    first, second, _, digit = (each.filter(zeros).to_numpy() for each in around)
    begin = np.isin(np.where(np.isin(second, list(b"+-")), first, second), list(b'", \t\n'))
    return bool((begin & (digit - ord("0") < 10)).any()) or re.match(rb'[",\s]*[+-]?0\d', block) is not None


def _kinds(block: bytes, path: Path, read: Sequence[int]) -> "dict[str, polars.DataType]":
    """The kinds of all columns: of these places, as the first rows show, numbers or certainly texts; the others are read as texts."""
    import polars

    with reading(path, ADVICE):
        sample = polars.read_csv(block, has_header=False, n_rows=SAMPLE, infer_schema_length=SAMPLE)
    other = "|".join((number_pattern("."), number_pattern(","), MISSING, f"(?i)^({'|'.join(TRUTH)})$"))
    for column in sample.select(polars.nth(read)):
        if column.dtype not in (polars.Int64, polars.Float64) and (column.dtype != polars.String or column.str.strip_chars().str.contains(other).all()):
            raise InputError("cells may be other than numbers or texts")
    return {column.name: column.dtype if place in read else polars.String() for place, column in enumerate(sample)}


def _copied(files: Sequence[Path], form: Form, only: Collection[str] | None, said: Sequence[str], plain: bool) -> Copied | None:
    """All rows in files of a temporary folder, some at a time: as `Plain` reads them, or `texts_of`. None for what is refused, and what is rare."""
    import polars

    home, read = Folder(prefix="local-dp-table-"), Plain() if plain else texts_of
    first, said, parts, left_out = list[str](), list(said), list[Path](), 0
    keep_memory()
    try:
        for path in files:
            with reading(path, ADVICE), _opened(path, form, plain) as file:
                start = _read(file, _START).removeprefix(codecs.BOM_UTF8)
                names, form, _, rest = header_of(path, start, getattr(file, "encoding", "utf-8"), None, form, said, first)
                check_same(names, first := first or names, path, files[0])
                if b"\n" not in start or (not rest and file.read(1)):
                    raise InputError("the header has no end")
                wanted = chosen(named := [name for name in first if name], None if form.unsure else only)
                each = partial(_rows, read, path, first, wanted, form)
                frames = _ahead(each, _blocks(file, rest)) if plain else map(each, _blocks(file, rest))
                while some := list(islice(frames, _TOGETHER)):
                    left_out += sum(empty for _, empty in some)
                    if (whole := polars.concat(frame for frame, _ in some)).height:
                        parts.append(Path(home.name) / f"{len(parts):06}.parquet")
                        whole.write_parquet(parts[-1], compression="lz4")
    except (InputError, OSError):
        return None
    said += [f"empty rows left out: {left_out:,}"] * (left_out > 0)
    return Copied(home, parts, named, form, said) if parts else None


def _rows(read: Callable[..., Read], path: Path, first: Sequence[str], wanted: Collection[str], form: Form, block: bytes) -> Read:
    if b"\r" in block and block.count(b"\r") > block.count(b"\r\n"):  # the first test alone takes a tenth of the time
        raise InputError("a line may end in CR alone")
    return read([(path, 0, block)], first, wanted, form)


def _ahead(read: Callable[[bytes], Read], blocks: Iterable[bytes]) -> Iterator[Read]:
    """What is read of each block, in their order: of the first alone, which decides for all, and then of some on all cores."""
    waiting, threads = deque[Any](), os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        for place, block in enumerate(blocks):
            waiting.append(pool.submit(read, block))
            if not place or len(waiting) >= threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _opened(path: Path, form: Form, plain: bool) -> IO[Any]:
    """The file, as bytes if it is plain, else as text."""
    return path.open("rb") if plain else path.open(encoding=_encoding(path, form), newline="")


def _read(file: IO[Any], size: int) -> bytes:
    """So many characters or bytes, in UTF-8."""
    more = file.read(size)
    return more if isinstance(more, bytes) else more.encode()


def _encoding(path: Path, form: Form) -> str:
    """The encoding of a file, by the rules of `files.decoded`. Raises InputError for a NUL byte."""
    with path.open("rb") as file:
        data, decoder, encoding = file.read(BLOCK), codecs.getincrementaldecoder("utf-8")(), "utf-8"
        if marked := form.encoding or next((name for mark, name in BOMS.items() if data.startswith(mark)), ""):
            return marked
        while data:
            if b"\0" in data:
                raise InputError("it has a NUL byte")
            data, before = file.read(BLOCK), data
            try:
                decoder.decode(before, final=not data)
            except UnicodeError:
                encoding = "cp1252"
    return encoding


def _blocks(file: IO[Any], rest: bytes) -> Iterator[bytes]:
    """What is left of a text, whole rows at a time, and without the empty lines at its end."""
    size, ended = BLOCK, False
    while True:
        while len(rest) < size and not ended:
            more = _read(file, size - len(rest))
            rest, ended = rest + more, not more
        if end := _end(rest, min(size, len(rest))):
            yield rest[:end]
            rest, size = rest[end:], BLOCK
        elif size <= len(rest):
            size *= 2
        else:
            if body := rest.rstrip(b"\r\n"):
                yield body + b"\n"
            return


def _end(text: bytes, stop: int) -> int:
    """The end of the last row that certainly ends before `stop`: no quote is open, and the empty lines after it are not counted. 0 if there is none."""
    end = text.rfind(b"\n", 0, stop) + 1
    odd = text.count(b'"', 0, end) % 2 if b'"' in text else 0  # looking is faster than counting
    while odd and end:
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd ^= text.count(b'"', before, end) % 2
        end = before
    while end and text.endswith((b"\n\n", b"\n\r\n"), 0, end):
        end -= 2 if text.endswith(b"\r\n", 0, end) else 1
    return 0 if text[:end] in (b"\n", b"\r\n") else end
