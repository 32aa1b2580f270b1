"""A file that only grows: uniquely named entries, on the disk before `append` returns. Clients'
stores and servers' journals are folds over one.

Only SQLite writes the file, for one process at a time.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

from local_dp.errors import InputError

_SET_UP = (
    "CREATE TABLE entry (place INTEGER PRIMARY KEY, run TEXT NOT NULL, round INTEGER NOT NULL, "
    "part TEXT NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL,"
    " UNIQUE (run, round, part))",
    "CREATE TABLE head (count INTEGER NOT NULL, digest BLOB NOT NULL)",
)
_READ = "SELECT run, round, part, data, digest FROM entry"
_WRITE = "INSERT INTO entry (run, round, part, data, digest) VALUES (?, ?, ?, ?, ?)"
_HOLD = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = OFF",
    "PRAGMA wal_autocheckpoint = 0",
)


class BusyError(InputError):
    """Another process has the file open."""


@dataclass(frozen=True)
class Entry:
    """`data` under a name that is used once: a run, a round, and which part of it."""

    run: str
    round: int
    part: str
    data: bytes

    def digest(self) -> bytes:
        """A digest that changes with every bit of it."""
        return blake2b(
            repr((self.run, self.round, self.part)).encode() + self.data, digest_size=16
        ).digest()


class Log:
    """The entries of a file of one `kind`, in their order. Every method raises InputError, and once
    one has, all do: fail closed.

    An append is one transaction, synced in SQLite's write-ahead log and again in the file, so that
    the file alone is the whole state. We sync twice, where SQLite would sync four times. Opening
    checks a chain of digests over all entries; each use checks that nobody else changed the file.
    """

    def __init__(self, path: Path, kind: int) -> None:
        self.path = path
        self._why = ""  # nothing works any more, and why
        self._files: list[int] = []  # the write-ahead log, and the file
        with self._whole():
            if not path.is_file():
                raise InputError(f"there is no file {str(path)!r}")
            self._database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw", timeout=0.0, isolation_level=None, uri=True
            )
            try:
                # which fails where the file is open elsewhere, or not to be written
                for statement in (*_HOLD, "BEGIN IMMEDIATE"):
                    self._database.execute(statement)
                self._count, self._digest = self._check(kind)
                # last, since closing a file releases SQLite's lock on it
                self._files = [os.open(each, os.O_RDWR) for each in (f"{path.resolve()}-wal", path)]
                self._end()
                sync(path.parent)  # the names of both
            except BaseException:
                self._let_go()
                raise

    @classmethod
    def create(cls, path: Path, kind: int, first: Entry) -> Self:
        """A new file with its first entry; there is all of it under its name, or nothing. Raises
        InputError where there is one already."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            digest = chained(bytes(16), first.digest())
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                for statement in (
                    "PRAGMA synchronous = OFF",
                    "PRAGMA journal_mode = WAL",
                    "BEGIN",
                    *_SET_UP,
                    f"PRAGMA application_id = {kind}",
                ):
                    connection.execute(statement)
                connection.execute(_WRITE, _row(first))
                connection.execute("INSERT INTO head VALUES (1, ?)", (digest,))
                connection.execute("COMMIT")
            sync(temporary)
            os.link(temporary, path)
        except FileExistsError:
            raise InputError(f"{str(path)!r} exists already") from None
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cannot write {str(path)!r}: {error}") from None
        finally:
            with suppress(OSError):
                temporary.unlink()
        return cls(path, kind)

    def append(self, entries: Sequence[Entry]) -> None:
        """All of them, or none. A name that is taken is an error."""
        with self._whole():
            self._as_it_was_left()
            digest, rows = self._digest, [_row(entry) for entry in entries]
            for row in rows:
                digest = chained(digest, row[-1])
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(_WRITE, rows)
            self._database.execute(
                "UPDATE head SET count = ?, digest = ?", (self._count + len(entries), digest)
            )
            self._end()
            self._count, self._digest = self._count + len(entries), digest

    def get(self, run: str, round: int, part: str) -> bytes | None:
        """The data under a name, or None."""
        with self._whole():
            self._as_it_was_left()
            row = self._database.execute(
                f"{_READ} WHERE run = ? AND round = ? AND part = ?", (run, round, part)
            ).fetchone()
            return None if row is None else _entry(row).data

    def entries(self, run: str | None = None, round: int = 0) -> list[Entry]:
        """All of them, or those of one round of a run, in their order. A round is found by the
        index, however many there are."""
        with self._whole():
            self._as_it_was_left()
            condition, names = (
                ("", ()) if run is None else (" WHERE run = ? AND round = ?", (run, round))
            )
            return list(
                map(_entry, self._database.execute(f"{_READ}{condition} ORDER BY place", names))
            )

    def close(self) -> None:
        self._why = "closed"
        self._let_go()

    def _let_go(self) -> None:
        self._database.close()
        while self._files:
            os.close(self._files.pop())

    def _check(self, kind: int) -> tuple[int, bytes]:
        """The number of entries and the digest of their chain. Raises for a changed file."""
        if self._database.execute("PRAGMA application_id").fetchone() != (kind,):
            raise InputError(f"{str(self.path)!r} is another kind of file")
        digest, count = bytes(16), 0
        for row in self._database.execute(f"{_READ} ORDER BY place"):
            digest, count = chained(digest, _entry(row).digest()), count + 1
        heads = self._database.execute("SELECT count, digest FROM head").fetchall()
        if heads != [(count, digest)]:
            raise sqlite3.DatabaseError("its digest is another")
        if self._database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("its index is not that of its entries")
        return count, digest

    def _end(self) -> None:
        """Commits, and moves what was committed into the file; each is on the disk before the next
        step."""
        ahead, file = self._files
        self._database.execute("COMMIT")
        if os.fstat(ahead).st_size == 0:
            self._left = self._state()
            return  # nothing was written, nor left by who was killed
        _durable(ahead)
        busy, frames, copies = self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        if busy or frames != copies:
            raise sqlite3.OperationalError("not all could be written")
        _durable(file)
        self._left = self._state()

    def _state(self) -> tuple[int, ...]:
        now = os.stat(self.path, follow_symlinks=True)
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, stat.S_IMODE(now.st_mode)

    def _as_it_was_left(self) -> None:
        if self._state() != self._left:
            raise sqlite3.DatabaseError("somebody else has changed, replaced or removed it")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """An interrupted step leaves a log that refuses every later one."""
        if self._why:
            raise InputError(f"{str(self.path)!r} cannot be used: {self._why}")
        self._why = "it was interrupted"
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            # the last of a text that is not in Unicode, a name or SQLite's own message
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            self._why = "another process has it open" if busy else str(error)
            raise (BusyError if busy else InputError)(
                f"{str(self.path)!r} cannot be used: {self._why}"
            ) from None
        self._why = ""


_durable = getattr(os, "fdatasync", os.fsync)  # what is in an open file is on the disk


def sync(path: Path) -> None:
    """What is in a file, or which names are in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row(entry: Entry) -> tuple[str, int, str, bytes, bytes]:
    return entry.run, entry.round, entry.part, entry.data, entry.digest()


def _entry(row: tuple[str, int, str, bytes, bytes]) -> Entry:
    entry = Entry(*row[:4])
    if not isinstance(entry.data, bytes) or entry.digest() != row[4]:
        raise sqlite3.DatabaseError("an entry is not what was written")
    return entry


def chained(before: bytes, digest: bytes) -> bytes:
    return blake2b(before + digest, digest_size=16).digest()


def kind_of(path: Path) -> int:
    """The kind of the log in a file, or another number. Raises OSError."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(72)[68:])
