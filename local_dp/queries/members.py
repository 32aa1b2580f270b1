"""Sets in the texts of a column: "a;b;c", or keys with numbers, "a=0.3;b=-1"."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Column, Floats, Ints, Words
from local_dp.checks import check_range, check_whole
from local_dp.domains import Domain, bit_strings
from local_dp.errors import InputError
from local_dp.queries.query import Query, check_columns
from local_dp.randomizers.sets.padding_sampling import MAX_VALUES, key_rows, key_values
from local_dp.records import Records, letters

END, OF, DOT, MINUS = (np.uint32(ord(letter)) for letter in ";=.-")
DIGITS = 18  # letters of a number that are read


@dataclass(frozen=True)
class Members(Query):
    """Which public labels the text of a column lists between ";": a digit for each, 0 where it is
    not listed, else 1 plus the step of its number of `steps` steps in [low, high].

    A label without "=" and a number has the highest step. The digits are one number in base steps +
    2, the first digit the lowest, or with `rows` a row; before they are rounded, always a row. All
    texts of a column take the same work.
    """

    name = "members"
    summary = "Gives the labels that a text lists, and their numbers"
    column: str
    labels: tuple[str, ...]
    low: float = 0.0
    high: float = 1.0
    steps: int = 0
    rows: int = 0

    def check(self) -> None:
        check_columns(self.labels)
        check_range("", self.low, self.high)
        check_whole("steps", self.steps, 0, MAX_VALUES)
        if any(set(label) & set(";=") or not label for label in self.labels):
            raise InputError(f"a label of {self.column!r} is empty, or has ';' or '=' in it")

    @property
    def domain(self) -> Domain:
        k = len(self.labels)
        if self.rows:
            return key_rows(k, self.steps)
        return key_values(k, self.steps) if self.steps else bit_strings(k)

    @cached_property
    def breadth(self) -> int:
        return sum(map(len, self.labels)) + len(self.labels)

    def text(self, records: Records) -> Words:
        """The letters of each text between two ends, shape (n, width)."""
        points = letters(np.asarray(records[self.column], dtype=np.str_))
        ends = np.where(points == 0, END, points)
        return np.pad(ends, ((0, 0), (1, DIGITS)), constant_values=END)

    def listed(self, records: Records) -> Ints:
        """The number of entries of each text, shape (n,)."""
        text = self.text(records)
        return np.asarray(((text[:, 1:] != END) & (text[:, :-1] == END)).sum(axis=1))

    def digits(self, records: Records) -> Floats:
        """A digit for each label, which may lie between two steps; shape (n, k)."""
        text = self.text(records)
        digits = np.zeros((len(text), len(self.labels)))
        for place, label in enumerate(self.labels):
            starts, width = _starts(text, label), len(label) + 1
            after = np.minimum(starts.argmax(axis=1) + width, text.shape[1] - DIGITS)
            rest = np.take_along_axis(text, after[:, None] + np.arange(DIGITS), axis=1)
            share = np.clip((_numbers(rest[:, 1:]) - self.low) / (self.high - self.low), 0, 1)
            step = np.where(rest[:, 0] == OF, share * self.steps, self.steps)
            digits[:, place] = starts.any(axis=1) * (1 + step)
        return digits

    def __call__(self, records: Records) -> Column:
        digits = self.digits(records)
        return digits if self.steps else self.discretize(digits, np.zeros(len(digits)))

    def discretize(self, places: Column, random: Floats) -> Ints:
        if places.ndim == 1:
            return places
        digits = np.floor(places + random[:, None]).astype(np.int64)
        return digits if self.rows else digits @ (self.steps + 2) ** np.arange(len(self.labels))


def _starts(text: Words, label: str) -> Bools:
    """Where the end before this label stands, shape (n, places)."""
    after = text[:, len(label) + 1 :]
    starts: Bools = (after == END) | (after == OF)
    for place, letter in enumerate(f";{label}"):
        starts &= text[:, place : place + starts.shape[1]] == ord(letter)
    return starts


def _numbers(text: Words) -> Floats:
    """The decimal number at the start of each text, up to an end, shape (n,)."""
    inside = np.cumsum(text == END, axis=1) == 0
    digit = inside & (text >= ord("0")) & (text <= ord("9"))
    after = np.cumsum(text == DOT, axis=1) > 0
    number, scale = np.zeros(len(text)), np.ones(len(text))
    for place in range(text.shape[1]):
        own = digit[:, place]
        number = np.where(own, 10 * number + text[:, place] - float(ord("0")), number)
        scale = np.where(own & after[:, place], 10 * scale, scale)
    return np.where(text[:, 0] == MINUS, -number, number) / scale
