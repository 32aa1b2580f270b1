"""Records: named columns of equal length, one row an individual."""

from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Column, Floats, Ints, Words
from local_dp.errors import InputError, unknown

LONGEST = 256  # characters of a text, unless more or fewer are declared
MOST = 1000  # that can be declared
DATES = np.dtype("M8[us]")  # without a time zone
TRUTHS = np.dtype("f2")  # truth values of which some may be missing; no number has this type
# whole numbers of which some are missing, as doubles: numpy takes the type for their usual one
WHOLES = np.dtype(np.float64, metadata={"whole": True})
# of categories, by column; None of other columns
Orders: TypeAlias = Mapping[str, tuple[str, ...] | None]
_AT_A_TIME = 1 << 10  # rows
PART = 1 << 18  # rows
MERGED = 1 << 53  # beyond it, neighbouring whole numbers are one double


class Records:
    """Columnar records. Columns are numbers (any numpy integer or float type), truth values, dates
    (`M8[us]`) or text (numpy `U`); nothing else travels.

    A missing value is NaN among numbers, NaT among dates and the empty text among texts. Where one
    is missing, whole numbers are `WHOLES` and truth values are `TRUTHS`. `lengths` are the declared
    greatest lengths of texts in characters, where they are not `LONGEST`. `odd` has the line that
    refuses a question, for each column that was left out of the table. `names` are those that
    errors list: those of the whole table, where only some of its columns were read. `orders` are
    the categories of texts in their declared order, empty where they have none.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        lengths: Mapping[str, int] | None = None,
        odd: Mapping[str, str] | None = None,
        names: Collection[str] = (),
        orders: Orders | None = None,
    ) -> None:
        if not columns:
            raise InputError("records need at least one column")
        rows = {name: len(values) for name, values in columns.items()}
        if len(set(rows.values())) > 1:
            raise InputError(f"columns differ in length: {rows}")
        for name, values in columns.items():
            if values.dtype.kind not in "biufU" and values.dtype != DATES:
                raise InputError(
                    f"column {name!r} has type {values.dtype}; use numbers, truth values, dates "
                    "in microseconds or text"
                )
        self.columns = dict(columns)
        self.lengths = dict(lengths or {})
        self.odd = dict(odd or {})
        self.orders = dict(orders or {})
        self.names = tuple(names) or tuple(columns)
        self._length = next(iter(rows.values()))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            if name in self.names and name not in self.odd:
                raise InputError(
                    f"column {name!r:.80} was not read, because the protocol does not name it; "
                    "add it to `reads` of the protocol"
                ) from None
            if all(part.strip() in self.names for part in name.split(",")):
                raise InputError(
                    f"no column {name!r}; give one column, or where several may stand, separate "
                    "them by ';'"
                ) from None
            raise InputError(self.odd.get(name) or unknown("no column", name, self.names)) from None

    def whole(self, name: str) -> Ints:
        """A column of whole numbers. Raises InputError for any other, whatever the rows hold."""
        values = self[name]
        if values.dtype.kind not in "biu":
            kind = {"U": "text", "M": "of dates"}.get(values.dtype.kind, "of fractions")
            raise InputError(f"column {name!r} is {kind}; this query needs whole numbers")
        return values

    def numbers(self, name: str) -> Floats:
        """A column of numbers. Raises InputError if it is text, or dates."""
        values = self[name]
        if values.dtype.kind in "UM":
            kind, example = (
                ("text", f"{name} == 'text'")
                if values.dtype.kind == "U"
                else ("of dates", f"year({name}) == 2020")
            )
            remedy = (
                "give a column of numbers or, where one may stand, a yes/no question, such as "
                f"{example!r}"
            )
            raise InputError(f"column {name!r} is {kind}; this query needs numbers: {remedy}")
        return values.astype(np.float64)

    def words(self, name: str) -> Words:
        """A column of whole numbers as 64-bit words."""
        return self.whole(name).astype(np.uint64, copy=False)

    def schema(self) -> "Records":
        """No record, in columns of the same names and types, whatever the length of texts."""
        empty = {name: values[:0] for name, values in self.columns.items()}
        return self._of(
            {
                name: values.astype("U1") if values.dtype.kind == "U" else values
                for name, values in empty.items()
            }
        )

    def at_length(self) -> "Records":
        """The same records with room for the declared length in each text: neither memory nor time
        shows how long a text is. Longer ones are cut."""
        texts = {
            name: values.astype(f"U{self.lengths.get(name, LONGEST)}")
            for name, values in self.columns.items()
            if values.dtype.kind == "U"
        }
        return self._of({**self.columns, **texts})

    def digest(self) -> bytes:
        """A digest of all rows in order, all names and types. Truth values are 0 and 1; neither the
        room for texts nor, in the work, their length counts."""
        digest = blake2b(digest_size=16)
        for name, values in sorted(self.columns.items()):
            of_type = {"U": f"<U{max(MOST, values.dtype.itemsize // 4)}", "b": "u1"}
            own = values.dtype.newbyteorder("<") if values.dtype != TRUTHS else "<f8"
            kind = of_type.get(values.dtype.kind, own)
            head = repr((name, np.dtype(kind).str, len(values))).encode()
            digest.update(len(head).to_bytes(8) + head)
            for first in range(0, len(values), _AT_A_TIME):
                digest.update(
                    np.ascontiguousarray(values[first : first + _AT_A_TIME].astype(kind)).tobytes()
                )
        return digest.digest()

    def marks(self) -> bytes:
        """A digest of each column, one after another. Equal values have equal ones, whatever type
        their file gives to whole numbers and texts."""
        return b"".join(map(mark, self.columns.values()))

    def note(self) -> None:
        """These rows will not be asked for again soon: a table in files keeps the digests of what
        was read of them."""

    def without(self, name: str) -> "Records":
        """The records without this column. Raises InputError where there is no such column, or no
        other one."""
        self[name]
        rest = [each for each in self.names if each != name]
        columns = {each: values for each, values in self.columns.items() if each != name}
        return Records(columns, self.lengths, self.odd, rest, self.orders)

    def only(self, names: Collection[str] | None) -> "Records":
        """The records with these of their columns, or with the first where they have none of these.
        Errors still list all. None: all columns."""
        return self._of({name: self.columns[name] for name in chosen(self.columns, names)})

    def parts(self) -> Iterator["Records"]:
        """All rows in order, some at a time: a function of each row takes memory that does not grow
        with their number."""
        for first, last in chunks(0, self._length, PART):
            yield self.take(slice(first, last))

    def take(self, rows: Column | slice) -> "Records":
        """The records at these rows."""
        if isinstance(rows, slice) and rows == slice(0, self._length):
            return self
        return self._of({name: values[rows] for name, values in self.columns.items()})

    def _of(self, columns: Mapping[str, Column]) -> "Records":
        """Other values of these columns."""
        return Records(columns, self.lengths, self.odd, self.names, self.orders)


def chosen(names: Collection[str], only: Collection[str] | None) -> list[str]:
    """The names of the columns to read: those of `only`, all if it is None, or the first, for a
    table needs one."""
    return [name for name in names if only is None or name in only] or list(names)[:1]


def mark(values: Column) -> bytes:
    """A digest of a column. Whole numbers and texts have the room that the largest needs; fractions
    have 64 bits."""
    kind = values.dtype.kind
    of_type = {"f": "<f8", "M": DATES.str}.get(kind, values.dtype.str)
    if kind in "iu" and len(values):
        least = int(values.min())
        most = int(values.max())
        of_type = next(
            each
            for each in ("<i1", "<i2", "<i4", "<i8", "<u8")
            if np.iinfo(each).min <= least and most <= np.iinfo(each).max
        )
    if kind == "U":
        of_type = f"<U{1 + np.flatnonzero(letters(values).any(axis=0)).max(initial=0)}"
    fixed = np.ascontiguousarray(values.astype(of_type, copy=False))
    return blake2b(fixed.dtype.str.encode() + fixed.tobytes(), digest_size=16).digest()


def is_truth(of_type: "np.dtype[Any]") -> bool:
    """True for a column of truth values, with missing ones or without."""
    return of_type == TRUTHS or of_type.kind == "b"


def is_whole_type(of_type: "np.dtype[Any]") -> bool:
    """True for a column of whole numbers or truth values, with missing ones or without."""
    return of_type.kind in "iu" or is_truth(of_type) or "whole" in (of_type.metadata or ())


def may_lack(values: Column) -> bool:
    """True if a column of this type may have missing values."""
    return values.dtype.kind in "fUM"


def absent(values: Column) -> Bools:
    """Which values of a column are missing, shape (n,)."""
    if not may_lack(values):
        return np.zeros(len(values), dtype=np.bool_)
    if values.dtype.kind != "U":
        return np.isnan(values)
    return np.asarray(np.bitwise_or.reduce(letters(values), axis=1) == 0)


def letters(texts: Column) -> Words:
    """The code points of each text, 0 after its end, shape (n, width)."""
    contiguous = np.ascontiguousarray(texts, dtype=texts.dtype.newbyteorder("="))
    return contiguous.view(np.uint32).reshape(len(texts), texts.dtype.itemsize // 4)


def chunks(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """start..stop cut at the multiples of `size`: a client is in the same chunk for every range."""
    while start < stop:
        end = min(stop, (start // size + 1) * size)
        yield start, end
        start = end
