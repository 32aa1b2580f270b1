"""Whose budgets a member's store holds: which place in it each row of the member's table has.
Charges, kept outcomes and sessions go by place."""

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

import msgpack
import numpy as np

from local_dp.arrays import Counts
from local_dp.errors import InputError
from local_dp.records import Records, absent
from local_dp.storage.log import Entry, Log

_ROWS, _COLUMN, _PEOPLE = "rows", "person", "people"  # parts of round 0
_DIGEST = 16  # bytes
_WHOLE = re.compile(r"([+-]?\d{1,40})(?:\.0*)?", re.ASCII)


class Places:
    """The places of rows, which rise from row to row; without any given, each row's number."""

    def __init__(self, places: Counts | None, rows: int) -> None:
        self._of_rows = places
        self.stop = rows if places is None else int(places[-1]) + 1  # one past the last place
        # rows whose place does not follow
        self._cuts = np.zeros(0, dtype=np.int64)
        if places is not None:
            self._cuts = np.flatnonzero(np.diff(places) != 1) + 1

    def of(self, start: int, stop: int) -> Counts:
        """The places of the rows start..stop."""
        return np.arange(start, stop) if self._of_rows is None else self._of_rows[start:stop]

    def digest(self) -> bytes:
        if self._of_rows is None:
            return b""
        return blake2b(self._of_rows.tobytes(), digest_size=_DIGEST).digest()

    def spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The rows start..stop by spans of places that follow each other: the first row, one past
        the last, the first place."""
        low, high = np.searchsorted(self._cuts, (start, stop), side="right")
        cuts = [start, *(cut for cut in self._cuts[low:high].tolist() if cut < stop), stop]
        for first, last in pairwise(cuts):
            yield first, last, first if self._of_rows is None else int(self._of_rows[first])


def people_of(records: Records, person: str) -> list[bytes]:
    """The text of each row's person. Raises InputError, without a value, for rows without a person
    or people with several rows."""
    values = records[person]
    texts = [_text(value) for value in values.tolist()]
    missing = int(np.count_nonzero(absent(values))) or texts.count(b"")
    if missing:
        raise InputError(
            f"column {person!r} lacks a value in {missing} rows; give each row its person"
        )
    if len(set(texts)) < len(texts):
        raise InputError(
            f"column {person!r} has a person in several rows; give each person one row"
        )
    return texts


def _text(value: object) -> bytes:
    """The same bytes for a whole number in every type and writing, as 7, 7.0 and "007": types may
    be read from the values, and change with another row."""
    text = (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )
    whole = _WHOLE.fullmatch(text)
    return (str(int(whole[1])) if whole else text).encode()


class Owners:
    """Binds a store to the rows of one table, in entries of its log: to their fingerprint, to the
    single client, or to people by a column."""

    def __init__(self, log: Log, secret: bytes) -> None:
        self._log, self._path, self._secret = log, log.path, secret
        entries = {entry.part: entry.data for entry in log.entries("")}
        self._rows = entries.get(_ROWS)
        if self._rows is None and any(entry.round for entry in log.entries()):
            raise InputError(
                f"the store {str(self._path)!r} is of an earlier version, which did not note "
                "whose budgets it holds; name another file"
            )
        self._column = entries[_COLUMN].decode() if _COLUMN in entries else ""
        digests = b"".join(data for part, data in entries.items() if part.startswith(_PEOPLE))
        self._places = {
            digests[first : first + _DIGEST]: place
            for place, first in enumerate(range(0, len(digests), _DIGEST))
        }

    def places(self, records: Records, person: str, moves: bool) -> Counts | None:
        """The place of each row by its person, or None without a column of people; new people are
        on the disk before it returns.

        `moves`: a single row may become another one. Raises InputError for rows that the store does
        not belong to.
        """
        if self._column and person != self._column:
            raise InputError(
                f"the store {str(self._path)!r} knows people by the column {self._column!r}; give "
                f"person={self._column!r}"
            )
        people = people_of(records, person) if person else []
        if not self._column:
            self._bind(records, moves and len(records) == 1)
        if not person:
            return None
        digests = [self._mac(b"person", text) for text in people]
        newcomers = [digest for digest in digests if digest not in self._places]
        entries = list[Entry]()
        if newcomers:
            part = f"{_PEOPLE} {len(self._places)}"
            entries.append(Entry("", 0, part, b"".join(newcomers)))
        if not self._column:
            entries.append(Entry("", 0, _COLUMN, person.encode()))
        if entries:
            self._log.append(entries)
        self._column = person
        for digest in newcomers:
            self._places[digest] = len(self._places)
        return np.array([self._places[digest] for digest in digests])

    def _bind(self, records: Records, alone: bool) -> None:
        """Binds a new store to these rows; of one that is bound already, checks that they are its
        own."""
        bound = msgpack.packb(1 if alone else self._mac(b"rows", records.digest()))
        if self._rows is None:
            self._log.append([Entry("", 0, _ROWS, bound)])
            self._rows = bound
        elif self._rows == msgpack.packb(1):
            if len(records) != 1:
                raise InputError(
                    f"the store {str(self._path)!r} is of a single client, and the table has "
                    f"{len(records)} rows; name another file"
                )
        elif self._rows != msgpack.packb(self._mac(b"rows", records.digest())):
            raise InputError(
                f"the store {str(self._path)!r} belongs to other rows, or to these in another "
                "order; name another store, or open this one once with its own table and "
                "person=COLUMN, a column that names people: from then on rows may move and change"
            )

    def _mac(self, what: bytes, data: bytes) -> bytes:
        return blake2b(data, key=self._secret, digest_size=_DIGEST, person=what).digest()
