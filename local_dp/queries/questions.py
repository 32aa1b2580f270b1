"""Answers to questions of the question language (`local_dp.queries.grammar`) about records, by
Kleene's three-valued logic."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Column, Floats
from local_dp.errors import InputError
from local_dp.queries.dates import FORMS, date_of, forms_of, like_a_date, readings
from local_dp.queries.grammar import (
    Arithmetic,
    Both,
    Call,
    Comparison,
    Either,
    Expression,
    In,
    Leaf,
    Name,
    Not,
    Null,
    Operand,
    leaves,
    names_of,
    operands_of,
)
from local_dp.queries.labels import Listed, lowered, signs_of
from local_dp.records import Records, absent, is_truth, may_lack

_COMPARE: dict[str, Callable[..., Bools]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_COMPUTE: dict[str, Callable[..., Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_NULLS = ("na", "nan", "null", "none")
_KINDS = {"U": "text", "M": "a date"}


def may_be_open(expression: Expression, records: Records) -> bool:
    """True if a record of these types may have no answer."""
    operands = [
        operand
        for leaf in leaves(expression)
        if not isinstance(leaf, Null)
        for operand in operands_of(leaf)
    ]
    return any(
        isinstance(each, Arithmetic) or any(may_lack(records[name]) for name in names_of(each))
        for each in operands
    )


@dataclass(frozen=True)
class Answers:
    """Who answers yes and who answers no, shape (n,) each; who does neither lacks a value that the
    question turns on."""

    yes: Bools
    no: Bools

    @property
    def unknown(self) -> Bools:
        return np.asarray(~(self.yes | self.no))


def evaluate(expression: Expression, records: Records) -> Bools:
    """Who answers yes, shape (n,)."""
    return answers_of(expression, records).yes


def answers_of(expression: Expression, records: Records) -> Answers:
    """The answer of each record, by Kleene's three-valued logic."""
    match expression:
        case Not(part):
            answers = answers_of(part, records)
            return Answers(answers.no, answers.yes)
        case Both(first, second):
            one = answers_of(first, records)
            other = answers_of(second, records)
            return Answers(one.yes & other.yes, one.no | other.no)
        case Either(first, second):
            one = answers_of(first, records)
            other = answers_of(second, records)
            return Answers(one.yes | other.yes, one.no & other.no)
        case _:
            return _answers_of_leaf(expression, records)


def _answers_of_leaf(leaf: Leaf, records: Records) -> Answers:
    match leaf:
        case Name(column):
            return _truths(_column_of(column, records), column)
        case Comparison(left, comparator, right):
            column_values = _column(left, records)
            if isinstance(right, Name) and right.column not in records.columns:
                _refuse_word(left, column_values, comparator, right.column)
            other = right if isinstance(right, int | float | str) else _column(right, records)
            if comparator not in ("==", "!="):
                orders = [
                    _order_of(each.column, records)
                    for each in (left, right)
                    if isinstance(each, Name)
                ]
                if any(order is not None for order in orders):
                    column_values = _ranks(column_values, orders)
                    other = _ranks(other, orders)
            return _compare(left, column_values, comparator, right, other)
        case In(left, values):
            column_values = _column(left, records)
            if column_values.dtype.kind == "U" and all(isinstance(value, str) for value in values):
                return _is_in(
                    column_values, tuple(dict.fromkeys(str(value).rstrip("\0") for value in values))
                )
            each = [_compare(left, column_values, "==", value, value) for value in values]
            return Answers(
                reduce(operator.or_, (one.yes for one in each)),
                reduce(operator.and_, (one.no for one in each)),
            )
        case Null(left):
            missing = absent(_column(left, records))
            return Answers(missing, ~missing)


def _order_of(column: str, records: Records) -> tuple[str, ...] | None:
    """The declared order of its values; None where they have that of their type: numbers without
    another one, and dates."""
    order, kind = records.orders.get(column), records[column].dtype.kind
    return order if kind == "U" or (order and kind in "iuf") else None


def _ranks(value: Any, orders: Sequence[tuple[str, ...] | None]) -> Any:
    """Values as their places in the declared order. Raises InputError."""
    order = orders[0]
    if not order or any(each != order for each in orders):
        raise InputError(
            "categories without one order compare by == and !=; declare it in a frame, which a "
            "Parquet file of pandas loses: pandas.Categorical(..., ordered=True) or polars.Enum"
        )
    values = np.atleast_1d(float(value) if isinstance(value, int) else value)
    places = Listed(order, values.dtype).places(values)
    if isinstance(value, np.ndarray):
        return np.where(places < 0, np.nan, places)
    if places < 0:
        raise InputError(f"{value!r} is no category of that column; compare it with one of them")
    return places.item()


def _refuse_word(left: Operand, values: Column, comparator: str, word: str) -> None:
    """Raises InputError for a word on the right that is no column, but means null or a text."""
    if word.lower() in _NULLS and comparator in ("==", "!="):
        negation = "not " if comparator == "!=" else ""
        raise InputError(
            f"there is no column {word!r}; write '{_as_typed(left)} is {negation}null' of a "
            "missing value"
        )
    if values.dtype.kind == "U":
        form = f"{_as_typed(left)} {comparator} {word!r}"
        raise InputError(
            f"there is no column {word!r}, and {_description(left)} is text; write a text in "
            f"quotes: {form!r}"
        )


def _is_in(texts: Column, values: tuple[str, ...]) -> Answers:
    """Whether a text is one of many, which are looked up at once."""
    matches = Listed(values, texts.dtype).places(texts) >= 0
    missing = absent(texts)
    return Answers(matches & ~missing, ~matches & ~missing)


def _column_of(column: str, records: Records) -> Column:
    """The column. Raises InputError for an unknown one, also for a part of a name such as a/b."""
    whole = next(
        (
            each
            for each in records.names
            if column not in records.names and column in re.split(r"\W+", each)
        ),
        None,
    )
    if whole is not None:
        raise InputError(f"no column {column!r}; write a name with signs in backquotes: `{whole}`")
    return records[column]


def _truths(values: Column, column: str) -> Answers:
    if not is_truth(values.dtype):
        example = f"{column} " + {"U": "== 'text'", "M": "> '2020-06-01'"}.get(
            values.dtype.kind, "== 1"
        )
        raise InputError(
            f"column {column!r} is {_kind(values)}, no truth value; compare it with a value, as "
            f"in {example!r}"
        )
    return Answers(values == 1, values == 0)


def _column(operand: Operand, records: Records) -> Column:
    """The values of an operand, shape (n,), or shape () where it names no column."""
    match operand:
        case Name(column):
            return _column_of(column, records)
        case Call("lower", Name(column)):
            return lowered(_of_kind(records, "lower", column, "U"))
        case Call(function, Name(column)):
            dates = _of_kind(records, function, column, "M")
            months = dates.astype("M8[M]").astype(np.int64)
            return np.where(
                absent(dates),
                np.nan,
                1970 + months // 12 if function == "year" else 1 + months % 12,
            )
        case Arithmetic(first, rest):
            value = _number_of(first, records)
            with np.errstate(all="ignore"):
                for sign, part in rest:
                    value = np.asarray(_COMPUTE[sign](value, _number_of(part, records)))
                    value = np.where(np.isfinite(value), value, np.nan)
            return value
        case _:
            return np.asarray(operand)


def _of_kind(records: Records, function: str, column: str, kind: str) -> Column:
    values = _column_of(column, records)
    if values.dtype.kind != kind:
        advice = f"; {_declare(column, values)}" if kind == "M" else ""
        raise InputError(
            f"{function}() takes {_KINDS[kind]}, and column {column!r} is {_kind(values)}{advice}"
        )
    return values


def _number_of(operand: Operand, records: Records) -> Floats:
    values = _column(operand, records)
    if values.dtype.kind in _KINDS:
        raise InputError(
            f"arithmetic takes numbers, and {_description(operand)} is {_kind(values)}; compute "
            "with columns of numbers"
        )
    return values.astype(np.float64)


def _kind(value: Column | float | str) -> str:
    return _KINDS.get(np.asarray(value).dtype.kind, "a number")


def _compare(
    left: Operand, values: Column, comparator: str, right: Operand, other: Column | float | str
) -> Answers:
    """The operands are for the error."""
    if values.dtype.kind == "M" and isinstance(other, str):
        other = _date(other)
    kinds = _kind(values), _kind(other)
    if kinds[0] != kinds[1]:
        remedy = ""
        if isinstance(right, str) and kinds[0] == "a number":
            remedy = (
                f": write {right} without quotes"
                if re.fullmatch(r"-?\d+(\.\d+)?", right)
                else ": give a number"
            )
        elif kinds[0] != "a number" and isinstance(right, Arithmetic) and not names_of(right):
            remedy = ": write a date in quotes, such as '2020-06-01'"
        elif kinds[0] == "text" and isinstance(right, int | float):
            remedy = (
                f": write {right:g} in quotes"
                if comparator in ("==", "!=")
                else ", or give a column of numbers"
            )
        raise InputError(
            f"{_description(left)} is {kinds[0]} and {_description(right)} is {kinds[1]}; compare "
            f"like with like{remedy}"
        )
    if isinstance(other, str) and comparator not in ("==", "!=") and like_a_date(other):
        raise InputError(
            f"{_description(left)} is text, whose order is not that of dates such as {other!r}; "
            f"{_declare(min(names_of(left)), values)}"
        )
    # which compare with any number
    numbers = values.astype(np.float64) if is_truth(values.dtype) else values
    one, two = numbers, other
    if kinds[0] == "text" and not isinstance(other, int | float):
        one, two = signs_of(values, other), 0
    # a number too large for a float32 column is infinite to it, which compares right
    with np.errstate(over="ignore"):
        answers = np.asarray(_COMPARE[comparator](one, two), dtype=np.bool_)
    columns = (each for each in (values, other) if isinstance(each, np.ndarray))
    gaps = [absent(each) for each in columns if may_lack(each)]
    if not gaps:
        return Answers(answers, ~answers)
    present = ~reduce(operator.or_, gaps)
    return Answers(answers & present, ~answers & present)


def _date(text: str) -> Any:
    date = date_of(text)
    if date is None:
        advice = (
            " or ".join(map(repr, readings(text)))
            or "'2020-06-01', or with a time of day '2020-06-01 14:30'"
        )
        raise InputError(f"{text!r} is not in the form of a date here; write {advice}")
    return date


def _declare(column: str, values: Column) -> str:
    """What reads a column as dates, in a form that its first texts have."""
    texts = values[values != ""][:20].tolist() if values.dtype.kind == "U" else []
    ways = [forms_of(text) for text in texts]
    form = next((form for form in FORMS if all(form in each for each in ways)), FORMS[0])
    return f"give the form of its dates, as in --date '{column}={form}'"


def _as_typed(operand: Operand) -> str:
    """The operand as it is typed, where it is a column or a function of one."""
    return operand.column if isinstance(operand, Name) else _description(operand)


def _description(operand: Operand) -> str:
    match operand:
        case Name(column):
            return repr(column)
        case Call(function, Name(column)):
            return f"{function}({column})"
        case Arithmetic():
            return "the result of arithmetic"
        case _:
            return repr(operand)
