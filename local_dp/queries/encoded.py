"""Rows of many bits, 64 to a word, and the query for one of them."""

import json
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Column, Floats, Ints
from local_dp.checks import check_built, check_range, check_whole, check_width
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.queries.grammar import Expression, only_names, parse
from local_dp.queries.query import QUERIES, Query
from local_dp.queries.questions import answers_of, evaluate, may_be_open
from local_dp.records import Records, absent, may_lack

WORD = 64
MOST = 1 << 24  # bits to a row


def packed(bits: Bools) -> Records:
    """The table of rows of d bits, shape (n, d), as columns w0, w1, ...: bit j is bit j mod 64 of
    word j // 64."""
    n, d = bits.shape
    row = np.zeros((n, -(-d // WORD) * WORD), dtype=np.bool_)
    row[:, :d] = bits
    words = np.packbits(row, axis=1, bitorder="little").view("<u8")
    return Records({f"w{number}": words[:, number].copy() for number in range(words.shape[1])})


@dataclass(frozen=True)
class Bit(Query):
    """Bit `number` of a packed row."""

    name = "bit"
    summary = "Gives one bit of a packed row"
    domain = symbols(2)
    number: int

    def check(self) -> None:
        check_whole("the bit's number", self.number, 0, MOST - 1)

    def __call__(self, records: Records) -> Ints:
        word, place = divmod(self.number, WORD)
        return np.asarray(
            (records.words(f"w{word}") >> np.uint64(place) & np.uint64(1)).astype(np.uint8)
        )


FORMS = ("numbers", "bits", "grid")
MAX_FEATURES = 128


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """The features x0, x1, ... and the label y of a record of a table.

    A feature is a number column or a question, 1 for yes and 0 for no, moved from its public bounds
    [low, high] to [-1, 1] and clipped. `form` shows it times `scale` (numbers), as 1 above 0, else
    0 (bits), or a single one as the column x of `steps` whole numbers (grid). `constant` 1 adds a
    last feature that is always `scale`. The label is +1 or -1 (a question, or yes above 0 where
    bounds are equal), scaled like a feature, or absent.
    """

    features: tuple[str, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    form: str = "numbers"
    scale: float = 1.0
    constant: int = 0
    steps: int = 2
    label: str = ""
    label_low: float = 0.0
    label_high: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= len(self.features) <= MAX_FEATURES:
            raise InputError(
                f"there are {len(self.features)} features; give from 1 to {MAX_FEATURES}"
            )
        if not len(self.features) == len(self.lows) == len(self.highs) or (
            self.form == "grid" and len(self.features) > 1
        ):
            raise InputError(
                f"{len(self.features)} features, {len(self.lows)} lows and {len(self.highs)} "
                "highs do not fit together, or form a grid"
            )
        if self.form not in FORMS:
            raise InputError(f"the form is {self.form!r}; choose from {', '.join(FORMS)}")
        for what, low, high in zip(self.features, self.lows, self.highs, strict=True):
            check_bounds(what, low, high)
        if (self.label_low, self.label_high) != (0.0, 0.0):
            check_bounds(self.label, self.label_low, self.label_high)
        check_whole("steps", self.steps, 2, 4096)
        check_width("the scale", self.scale)
        if self.scale > 1:
            raise InputError(f"the scale is {self.scale}; give a number above 0 and at most 1")
        check_built(self._questions)  # parsed once

    @cached_property
    def _questions(self) -> tuple[Expression | None, ...]:
        return tuple(map(question_in, (*self.features, self.label)))

    def may_lack(self, records: Records) -> bool:
        """True if a record of these types may lack a feature or the label."""
        texts = zip((*self.features, self.label), self._questions, strict=True)
        return any(
            may_be_open(question, records) if question else may_lack(records[text])
            for text, question in texts
            if text
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the features that a learner sees."""
        if self.form == "grid":
            return ("x",)
        return tuple(f"x{place}" for place in range(len(self.features) + self.constant))

    @property
    def signed(self) -> bool:
        """True if the label is +1 or -1."""
        return bool(self.label) and self.label_low == self.label_high

    def present(self, records: Records) -> Bools:
        """Where no feature and no label is missing, shape (n,): a question is where a missing value
        leaves it open."""
        present = np.ones(len(records), dtype=np.bool_)
        for text, question in zip((*self.features, self.label), self._questions, strict=True):
            if text:
                present &= ~(
                    absent(records[text])
                    if question is None
                    else answers_of(question, records).unknown
                )
        return present

    def encode(self, records: Records) -> Records:
        """The features and the label. A missing number counts as the middle of its bounds:
        `present` says where that is."""
        pairs = zip(self.features, self._questions, strict=False)
        raw = np.stack([_number(records, *pair) for pair in pairs])
        places = _between(raw, np.array(self.lows)[:, None], np.array(self.highs)[:, None])
        features = [
            *self._show(places),
            *([self._show(np.ones(len(records)))] if self.constant else []),
        ]
        columns = dict(zip(self.shown, features, strict=True))
        if self.label:
            y = _number(records, self.label, self._questions[-1])
            columns["y"] = (
                np.where(y > 0, 1.0, -1.0)
                if self.signed
                else _between(y, self.label_low, self.label_high)
            )
        return Records(columns)

    def _show(self, values: Floats) -> Column:
        if self.form == "bits":
            return (values > 0).view(np.uint8)
        if self.form == "grid":
            places = np.floor((values + 1) / 2 * self.steps)
            return np.minimum(places, self.steps - 1).astype(np.int64)
        return self.scale * values


@lru_cache(maxsize=4096)
def question_in(text: str) -> Expression | None:
    """The question that a feature or a label is; None for a column. Raises InputError for what
    looks like a question but is not."""
    try:
        question = parse(text)
        return None if only_names(question) else question
    except InputError:
        if any(sign in text for sign in "<>="):
            raise
        return None


def check_bounds(what: str, low: float, high: float) -> None:
    """Raises InputError unless the bounds are in order, and numbers that can be computed with."""
    check_range(f" of {what!r:.80}", low, high)


def _number(records: Records, text: str, question: Expression | None) -> Floats:
    return (
        records.numbers(text)
        if question is None
        else evaluate(question, records).astype(np.float64)
    )


def _between(numbers: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """From [low, high] to [-1, 1], clipped; what is missing in the middle."""
    places = np.clip(2 * ((numbers - low) / (high - low)) - 1, -1.0, 1.0)
    return np.where(np.isnan(places), 0.0, places)


@dataclass(frozen=True, kw_only=True)
class Encoded(Encoding, Query):
    """A query about x0, x1, ... and y, as JSON of its name and parameters, put to a table's record;
    an incomplete one counts as 0 on [-1, 1]."""

    name = "encoded"
    summary = "Puts another query to the encoded columns of a table"
    query: str

    def __post_init__(self) -> None:
        super().__post_init__()
        domain = self.inner.domain
        if isinstance(self.inner, Encoded) or (
            domain.size != 2 and (domain.kind != "levels" or domain.high % 2)
        ):
            raise InputError(
                f"query {self.inner.name!r} cannot be encoded: it needs two values, or an even "
                "number of steps"
            )

    @cached_property
    def inner(self) -> Query:
        """The query that is put to the encoded record."""
        name, params = _read(self.query)
        if name == self.name:
            raise InputError("an encoded query cannot hold another one")
        return QUERIES.build(name, params)

    @property
    def domain(self) -> Domain:
        return levels(2) if self.inner.domain.size == 2 else self.inner.domain

    def __call__(self, records: Records) -> Column:
        inner = self.inner
        values = inner.values(self.encode(records))
        if inner.domain.size == 2:
            values = 2 * (values.astype(np.int64) - inner.domain.low)
        return np.where(self.present(records), values, self.domain.high // 2)


def encoded(encoding: Encoding, query: Query) -> Encoded:
    """The query, put to records of the table that the encoding is about."""
    settings: dict[str, Any] = {
        field.name: getattr(encoding, field.name) for field in fields(Encoding)
    }
    return Encoded(query=json.dumps([query.name, query.params()]), **settings)


def _read(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters from JSON. Raises InputError for anything but a text and numbers, texts
    and lists of them."""
    try:
        name, params = json.loads(text)
        values = {
            key: tuple(value) if isinstance(value, list) else value for key, value in params.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{text!r:.80} is not the name and the parameters of a query in JSON"
        ) from None
    parts = [
        part
        for value in values.values()
        for part in (value if isinstance(value, tuple) else (value,))
    ]
    if not (isinstance(name, str) and all(type(part) in (str, int, float) for part in parts)):
        raise InputError(f"{text!r:.80} is not the name and the parameters of a query in JSON")
    return name, values
