"""Values of a column against public labels and against each other. The work depends on the types
alone: never on how long a text or how large a number is."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from local_dp.arrays import Column, Ints, Words
from local_dp.noise import philox_words, stream_key
from local_dp.queries.dates import date_of, date_texts
from local_dp.records import letters

_LETTERS = 3  # of 21 bits each, in a word
# Latin, Greek and Cyrillic letters, which all versions of Unicode give the same lower case
_CASED = 0x530
_TRUTHS = {"True": 1, "False": 0}
_LOWER = np.array(
    [
        ord(lower if len(lower := chr(point).lower()) == 1 else chr(point))
        for point in range(_CASED)
    ],
    dtype=np.uint32,
)


def as_label(number: "float | np.floating[Any]") -> str:
    """A number as a text label: the shortest digits that stand for it in its type; a whole number
    prints without a decimal point."""
    return str(int(number)) if number.is_integer() else str(number)


def apart(numbers: Iterable[float]) -> list[str]:
    """Ascending numbers as short texts that tell them apart: exact to a millionth of their least
    distance, and of 1."""
    ends = np.array([*numbers], dtype=np.float64)
    places = 6 - math.floor(
        math.log10(min([1.0, *(each for each in np.diff(ends).tolist() if each > 0)]))
    )
    return [str(round(each, places) + 0.0).removesuffix(".0") for each in ends.tolist()]  # no -0


def _pack(texts: Column, width: int) -> Words:
    """The first `width` letters of each text in words, which sort as the texts do, shape (n,
    words)."""
    size = -(-width // _LETTERS)
    parts = (
        letters(texts.astype(f"U{size * _LETTERS}"))
        .astype(np.uint64)
        .reshape(len(texts), size, _LETTERS)
    )
    return parts[:, :, 0] << np.uint64(42) | parts[:, :, 1] << np.uint64(21) | parts[:, :, 2]


def signs_of(texts: Column, other: Column | str) -> Ints:
    """-1, 0 or 1 where the text sorts before the other one, equals it, or sorts after it, shape
    (n,)."""
    others = np.array([other]) if isinstance(other, str) else other
    # where the shorter ones end, the sign is known
    width = 1 + min(letters_in(texts), letters_in(others))
    signs = np.zeros(len(texts), dtype=np.int8)
    for one, two in zip(_pack(texts, width).T[::-1], _pack(others, width).T[::-1], strict=True):
        signs = np.where(one == two, signs, np.where(one < two, np.int8(-1), np.int8(1)))
    return signs


def lowered(texts: Column) -> Column:
    """Each text in lower case, letter by letter: those below U+0530 whose lower case is one letter;
    in a work that no letter decides."""
    points = letters(texts)
    lower = np.where(points < len(_LOWER), _LOWER[np.minimum(points, len(_LOWER) - 1)], points)
    return lower.view(f"U{letters_in(texts)}").reshape(len(texts))


def letters_in(texts: Column) -> int:
    """The most letters that a column of this type holds."""
    return texts.dtype.itemsize // 4


@dataclass(frozen=True)
class Listed:
    """Labels as values of one column type. A record takes the type's form, or of a text as many
    letters as decide; the labels never take a record's."""

    labels: tuple[str, ...]
    dtype: "np.dtype[np.generic]"

    def places(self, values: Column) -> Ints:
        """The position of each value in the list, -1 where it is not listed."""
        order, ordered, texts = self._index
        if not len(order):
            return np.full(len(values), -1)
        rows = _pack(values, self._width) if self.dtype.kind == "U" else None
        words = _words(values) if rows is None else _hashed(rows, self._salt)
        nearest = np.minimum(np.searchsorted(ordered, words), len(ordered) - 1)
        differs = (
            ordered[nearest] ^ words
            if rows is None
            else np.bitwise_or.reduce(texts[nearest] ^ rows, axis=1)
        )
        return np.where(differs == 0, order[nearest], -1)

    @cached_property
    def _values(self) -> tuple[list[int], Column]:
        """The places of the labels that some value of the type prints as, and these values."""
        values = {place: value_of(label, self.dtype) for place, label in enumerate(self.labels)}
        own = {place: value for place, value in values.items() if value is not None}
        kind = {"U": np.dtype(np.str_), "f": np.dtype(np.float64)}.get(self.dtype.kind, self.dtype)
        return list(own), np.array(list(own.values()), dtype=kind)

    @property
    def _width(self) -> int:
        """A letter more than the longest label, so that a longer text equals none."""
        return letters_in(self._values[1]) + 1

    @cached_property
    def _salt(self) -> int:
        """A number under which no two labels have the same hash."""
        words = _pack(self._values[1], self._width)
        # from the labels themselves: nobody can choose labels that meet
        salt = blake2b(words.tobytes(), digest_size=8)
        while len(np.unique(_hashed(words, int.from_bytes(salt.digest())))) < len(words):
            salt.update(b".")
        return int.from_bytes(salt.digest())

    @cached_property
    def _index(self) -> tuple[Ints, Words, Words]:
        """Of each label in the order of its word: the place, the word, and the letters of a
        text."""
        places, values = self._values
        if self.dtype.kind == "U":
            rows = _pack(values, self._width)
            words = _hashed(rows, self._salt)
        else:
            rows = words = _words(values)
        order = np.argsort(words, kind="stable")  # of two labels for one number, the first counts
        return np.array(places, dtype=np.int64)[order], words[order], rows[order]


def _hashed(words: Words, salt: int) -> Words:
    """A word for each row of words: their sum in odd multiples, shape (n,)."""
    odd = philox_words(stream_key("labels", salt), 0, words.shape[1]) | np.uint64(1)
    mixed = words ^ words >> np.uint64(29)  # the last letters decide the high bits too
    return np.asarray(np.einsum("ij,j->i", mixed, odd))


def _words(values: Column) -> Words:
    """Numbers as words, alike for equal ones and for all missing ones, shape (n,)."""
    if values.dtype.kind == "f":
        return (np.where(np.isnan(values), np.nan, values).astype(np.float64) + 0.0).view(np.uint64)
    return values.astype(np.int64 if values.dtype.kind == "M" else np.uint64).view(np.uint64)


def value_of(label: str, kind: "np.dtype[np.generic]") -> float | str | np.datetime64 | None:
    """The number, truth value, date or text of this type that the label stands for, if any."""
    if kind.kind == "U":
        fits = len(label) * 4 <= kind.itemsize
        return label if fits and not label.endswith("\0") else None  # no text of a column does
    if kind.kind == "M":
        date = date_of(label)
        texts = [] if date is None else date_texts(np.array([date])).tolist()
        return date if texts == [label] else None
    if kind.kind == "b":
        return _TRUTHS.get(label)
    try:
        if kind.kind == "f":
            # truth values are numbers where one is missing
            return _TRUTHS[label] if label in _TRUTHS else _fraction(label, kind)
        whole = int(label)
        return whole if str(whole) == label and whole == int(kind.type(whole)) else None
    except (ValueError, OverflowError):
        return None


def _fraction(label: str, kind: "np.dtype[np.generic]") -> float | None:
    """The number whose shortest digits the label has, in its own type or as a double, or whose 17
    digits, or all of a whole number."""
    number = float(label) + 0.0
    with np.errstate(over="ignore"):
        own = kind.type(number)
    if str(own) == label:
        return float(own)
    return number if label in (as_label(number), str(number), f"{number:.17g}") else None
