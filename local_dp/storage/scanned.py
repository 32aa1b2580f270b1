"""A table in Parquet files that is read as it is used, a range of rows of a column at a time:
memory does not grow with the rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from local_dp.arrays import Column
from local_dp.errors import InputError, reading
from local_dp.records import LONGEST, Orders, Records, chosen, mark
from local_dp.storage.columns import column_of_kind, exactly, length_of

_DIGEST = 16  # bytes
_END = 8  # bytes: the length of the footer, and PAR1
_ADVICE = "give a Parquet file"


@dataclass(frozen=True)
class File:
    """A Parquet file of so many rows. Its digest is of its size and its footer, which has the
    place, size and extremes of every part of each column."""

    path: str
    rows: int
    digest: bytes

    @classmethod
    def of(cls, path: Path, cause: str = "") -> "File":
        """Raises InputError for a file that cannot be read, with this cause, or with the parser's
        own."""
        import polars  # it takes a third of a second

        with reading(path, _ADVICE, cause):
            return cls(
                str(path.absolute()),
                int(polars.scan_parquet(path, glob=False).select(polars.len()).collect().item()),
                _digest(path),
            )


def _digest(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _END))
        footer = int.from_bytes(file.read(_END)[:4], "little") + _END
        file.seek(max(0, size - footer))
        return blake2b(size.to_bytes(8) + file.read(), digest_size=_DIGEST).digest()


@cache
def _verify(file: File) -> str:
    """The path of a file, once it is the one that was opened at first. Raises InputError for
    another, as on a machine that does not share it."""
    with reading(Path(file.path), "share the file, at the same path on all machines"):
        if _digest(Path(file.path)) != file.digest:
            raise InputError(
                f"{file.path!r} is another file than the one that the run began with; run it "
                "again, on one file"
            )
    return file.path


@dataclass(frozen=True)
class Columns(Mapping[str, Column]):
    """The columns of the rows start..stop. Each is read when it is first asked for, and then kept.
    `types` has the type of each; of texts, any length.

    `kinds` are the declared kinds (`declared_column`), if they are declared. Pickled, it travels
    without what it has read.
    """

    files: tuple[File, ...]
    types: Mapping[str, np.dtype[Any]]
    kinds: Mapping[str, str]
    start: int
    stop: int
    # of all rows
    marks: dict[tuple[str, int, int], bytes] = field(default_factory=dict, compare=False)
    memo: dict[str, Column] = field(default_factory=dict, compare=False)
    lock: Any = field(default_factory=Lock, compare=False)
    # of files that are removed as soon as nobody has it
    home: object = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, (self.files, dict(self.types), dict(self.kinds), self.start, self.stop)

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def __getitem__(self, name: str) -> Column:
        of_type = self.types[name]
        with self.lock:
            if name not in self.memo:
                self.memo[name] = self._read(name, of_type)
            return self.memo[name]

    def mark(self, name: str) -> bytes:
        """The digest of a column of these rows (`records.mark`); their numbers name it, and it is
        made once."""
        place = name, self.start, self.stop
        if place not in self.marks:
            self.marks[place] = mark(self[name])
        return self.marks[place]

    def only(self, names: Collection[str]) -> "Columns":
        """The columns of these names."""
        return replace(self, types={name: self.types[name] for name in names}, lock=Lock())

    def cut(self, first: int, last: int) -> "Columns":
        """The rows first..last of these."""
        # another thread may read meanwhile
        memo = {name: values[first:last] for name, values in dict(self.memo).items()}
        return Columns(
            self.files,
            self.types,
            self.kinds,
            self.start + first,
            self.start + last,
            self.marks,
            memo,
            home=self.home,
        )

    def _read(self, name: str, of_type: np.dtype[Any]) -> Column:
        import polars

        frames, ends = [], list(accumulate(file.rows for file in self.files))
        for file, end in zip(self.files, ends, strict=True):
            low, high = max(self.start, end - file.rows), min(self.stop, end)
            if low < high:
                # a parser's words may show a cell
                with reading(Path(file.path), _ADVICE, "it is damaged"):
                    scan = polars.scan_parquet(_verify(file), glob=False).select(exactly(name))
                    frames.append(scan.slice(low - end + file.rows, high - low).collect())
        if not frames:
            return np.zeros(0, dtype=of_type)
        series, kind = polars.concat(frames).to_series(), self.kinds.get(name, "")
        values = column_of_kind(series, kind)
        if of_type.kind != "U":
            return values.astype(of_type, copy=False)
        most = length_of(kind) if kind else LONGEST
        return values.astype(f"<U{most}") if values.dtype.itemsize > 4 * most else values


class Scanned(Records):
    """Records whose columns are read from Parquet files as they are asked for: `take` of a slice
    reads nothing yet. Pickled, it is paths and digests."""

    columns: Columns  # type: ignore[assignment]

    def __init__(
        self,
        columns: Columns,
        lengths: Mapping[str, int],
        names: Sequence[str],
        orders: Orders | None = None,
    ) -> None:
        self.columns, self.lengths, self.odd, self.names = columns, dict(lengths), {}, tuple(names)
        self.orders = dict(orders or {})
        self._length = columns.stop - columns.start

    def __reduce__(self) -> tuple[Any, ...]:
        """Of temporary files the rows travel: another machine lacks them, and they may be gone."""
        if self.columns.home is not None:
            return Records, (dict(self.columns), self.lengths, {}, self.names, self.orders)
        return Scanned, (self.columns, self.lengths, self.names, self.orders)

    def schema(self) -> Records:
        empty = {
            name: np.zeros(0, dtype="U1" if of_type.kind == "U" else of_type)
            for name, of_type in self.columns.types.items()
        }
        return self._of(empty)

    def marks(self) -> bytes:
        return b"".join(map(self.columns.mark, self.columns))

    def note(self) -> None:
        for part in self.parts():
            assert isinstance(part, Scanned)
            for name in part.columns.memo:
                part.columns.mark(name)

    def only(self, names: Collection[str] | None) -> "Scanned":
        return self._with(self.columns.only(chosen(self.columns, names)))

    def take(self, rows: Column | slice) -> Records:
        if not isinstance(rows, slice):
            return super().take(rows)
        first, last, _ = rows.indices(self._length)
        return self._with(self.columns.cut(first, max(first, last)))

    def _with(self, columns: Columns) -> "Scanned":
        return Scanned(columns, self.lengths, self.names, self.orders)
