"""CSV files that may not fit in memory, as Parquet files in a temporary folder: the same rules read them as read small ones, some rows at a time."""

import codecs
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TextIO

from local_dp.errors import InputError, reading
from local_dp.experiments.api.cells import Form, guessed, stripped, typed
from local_dp.experiments.api.files import ADVICE, BOMS, check_same, header_of, texts_of
from local_dp.records import chosen

LARGE = 1 << 26  # bytes: from here on
BLOCK = 1 << 24  # characters or bytes that are read at a time
_START = 1 << 17  # that the header and the sample of `separator_of` are within


class Copied(NamedTuple):
    """The columns of a CSV table in Parquet files, the names of all its columns, and what was detected. The files go when nobody holds `home` any more."""

    home: TemporaryDirectory[str]
    files: list[Path]
    names: list[str]
    said: list[str]


def copied(path: Path, files: Sequence[Path], form: Form, only: Collection[str] | None) -> Copied | None:
    """The columns `only` of CSV files, in a temporary folder; memory does not grow with the rows. None where the reader of small files is to read, or refuse.

    Raises its InputErrors about decimal signs.
    """
    if files[0].suffix.lower() not in (".csv", ".tsv", ".txt") or sum(each.stat().st_size for each in files) < LARGE:
        return None
    import polars

    home, said = TemporaryDirectory(prefix="local-dp-table-"), [] if path in files else [f"{len(files)} {files[0].suffix.lower()} files"]
    try:
        texts, form, names = _texts(files, form, only, said, Path(home.name))
    except (InputError, OSError):
        return None
    with polars.Config(engine_affinity="streaming"):
        lazy = polars.scan_parquet(texts, glob=False)
        columns = guessed(stripped(lazy), form, path, said, only)
    if polars.Int128 in stripped(lazy).select(columns).collect_schema().dtypes():  # Parquet has no such numbers
        return None
    tables = [text.with_suffix(".typed.parquet") for text in texts]
    for text, table in zip(texts, tables, strict=True):
        typed(polars.scan_parquet(text, glob=False).collect(), columns, only).write_parquet(table)
        text.unlink()
    return Copied(home, tables, names, said)


def _texts(files: Sequence[Path], form: Form, only: Collection[str] | None, said: list[str], folder: Path) -> tuple[list[Path], Form, list[str]]:
    """The texts of all rows in files of the folder, as `files.read_table` has them in memory. Raises InputError for what it would refuse, and what is rare."""
    first, parts, left_out = list[str](), list[Path](), 0
    for path in files:
        with reading(path, ADVICE), path.open(encoding=(encoding := _encoding(path, form)), newline="") as file:
            start = file.read(_START).removeprefix("\ufeff").encode()
            names, form, _, rest = header_of(path, start, encoding, None, form, said, first)
            check_same(names, first := first or names, path, files[0])
            if b"\n" not in start or (not rest and file.read(1)):
                raise InputError("the header has no end")
            wanted = chosen(named := [name for name in first if name], None if form.unsure else only)
            for block in _blocks(file, rest):
                if b"\r" in block and block.count(b"\r") > block.count(b"\r\n"):  # the first test alone takes a tenth of the time
                    raise InputError("a line may end in CR alone")
                frame, empty = texts_of([(path, 0, block)], first, wanted, form)
                left_out += empty
                if frame.height:
                    parts.append(folder / f"{len(parts):06}.parquet")
                    frame.write_parquet(parts[-1], compression="lz4")
    said += [f"empty rows left out: {left_out:,}"] * (left_out > 0)
    if not parts:
        raise InputError("there are no rows")
    return parts, form, named


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


def _blocks(file: TextIO, rest: bytes) -> Iterator[bytes]:
    """What is left of a text, whole rows at a time, and without the empty lines at its end."""
    size, ended = BLOCK, False
    while True:
        while len(rest) < size and not ended:
            more = file.read(BLOCK).encode()
            rest, ended = rest + more, not more
        if end := _end(rest[:size]):
            yield rest[:end]
            rest, size = rest[end:], BLOCK
        elif size <= len(rest):
            size *= 2
        else:
            if body := rest.rstrip(b"\r\n"):
                yield body + b"\n"
            return


def _end(text: bytes) -> int:
    """The end of the last row that certainly ends: no quote is open, and the empty lines after it are not counted. 0 if there is none."""
    end = text.rfind(b"\n") + 1
    odd = text.count(b'"', 0, end) % 2
    while odd and end:
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd ^= text.count(b'"', before, end) % 2
        end = before
    while end and text.endswith((b"\n\n", b"\n\r\n"), 0, end):
        end -= 2 if text.endswith(b"\r\n", 0, end) else 1
    return 0 if text[:end] in (b"\n", b"\r\n") else end
