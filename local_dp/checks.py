"""One check of each kind of parameter: each raises InputError with what is wrong, the value, and
what to give."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from numbers import Integral, Number, Real
from operator import index
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from local_dp.errors import InputError

_NOUNS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    NoneType: "None",
    tuple[float, float]: "(low, high)",
    tuple[str, ...]: "a list of texts",
    tuple[float, ...]: "a list of numbers",
    **dict.fromkeys((tuple, Sequence, Iterable), "a list"),
    Mapping: "a mapping",
    Callable: "a function",
    Path: "a path",
}


def converted(name: str, value: Any, hint: Any) -> Any:
    """The value in the type of an annotation: a number of any library as Python's own, a list as a
    tuple. A truth value is no number; a class that is not in `_NOUNS` takes every value.

    Raises InputError, which shows nothing of a table.
    """
    if isinstance(value, int) and value.bit_length() > _WIDEST:  # Python does not write it
        raise InputError(f"{name} is a number of {value.bit_length()} bits; give a smaller one")
    kinds = _alternatives(hint)
    if all(_form(kind) in _NOUNS for kind in kinds):  # others may take a table
        check_no_cells(name, value)
    if Path in kinds and isinstance(value, str | PathLike):
        check_path(name, value)
    with suppress(*_UNFIT):
        return _to_type(hint, value)
    is_plain = value is None or isinstance(value, str | bytes | Number)
    what = f"{value!r:.40}" if is_plain else f"a {type(value).__name__}"
    nouns = dict.fromkeys(_NOUNS.get(kind, _NOUNS.get(_form(kind), "")) for kind in kinds)
    raise InputError(f"{name} is {what}; give {' or '.join(nouns)}")


_LONGEST_NAME = 255  # bytes


def check_path(name: str, value: str | PathLike[str]) -> None:
    """Raises InputError for a path that no file of this project can have."""
    text, longest = fspath(value), math.inf
    with suppress(UnicodeEncodeError):
        longest = max(map(len, text.encode().split(b"/")))
    if "\0" in text or longest > _LONGEST_NAME:
        raise InputError(
            f"{name} is {text!r:.40}; give a path in UTF-8 with names of at most 255 bytes"
        )


_UNFIT = TypeError, ValueError, ArithmeticError
_WIDEST = 1 << 10  # bits of a whole number
_OF_COLUMNS = "column", "columns", "features", "by", "person", "on"  # names, and no cells


def check_no_cells(name: str, value: Any) -> None:
    """Raises InputError for a column of a table in the place of its name or of a list; also for an
    array in the place of a name."""
    several = [*value.values()] if isinstance(value, Mapping) else value
    parts = several if isinstance(several, list | tuple) else [value]
    for part in {type(part): part for part in parts}.values():
        dimensions = getattr(part, "ndim", 0)
        is_array = isinstance(dimensions, int) and dimensions > 0 and type(part).__name__ != "Index"
        if has_cells(part) or (is_array and name in _OF_COLUMNS):
            own = getattr(part, "name", None) or "age"
            give = (
                f"name the column: {own!r:.40}" if name in _OF_COLUMNS else "give a text or a list"
            )
            raise InputError(f"{name} is a {type(part).__name__}; {give}")


def has_cells(value: object) -> bool:
    """True for a frame, and a column of one."""
    marks = "iloc", "__arrow_c_stream__", "__arrow_c_array__"
    return any(hasattr(value, each) for each in marks)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _form(kind: Any) -> Any:
    form = get_origin(kind) or kind
    return str if form is Literal else form


def _to_type(hint: Any, value: Any) -> Any:
    """`converted` by the first type that fits. Raises an error of `_UNFIT`."""
    for kind in _alternatives(hint):
        with suppress(*_UNFIT):
            return _of_kind(kind, value)
    raise TypeError


def _of_kind(kind: Any, value: Any) -> Any:
    form = _form(kind)
    if form in (bool, int, float):
        return _number_of(form, value)
    if form is Mapping and isinstance(value, Mapping):
        key, each = get_args(kind)
        return {_to_type(key, name): _to_type(each, part) for name, part in value.items()}
    if form in (tuple, Sequence) and not isinstance(value, str | bytes | Mapping):
        values, kinds = tuple(value), get_args(kind)
        if kinds in ((str,), (str, ...)) and {*map(type, values)} == {str}:
            return values  # a million labels, say
        if len(kinds) == 1 or kinds[1:] == (...,):
            kinds = kinds[:1] * len(values)
        return tuple(_to_type(*each) for each in zip(kinds, values, strict=True))
    is_path = form is Path and isinstance(value, PathLike)
    if form in _NOUNS and not is_path and (isinstance(value, bytes) or not isinstance(value, form)):
        raise TypeError
    return str(value) if form is str else value


def _number_of(form: type[Any], value: Any) -> int | float:
    own = type(value).__name__
    is_truth = own in ("bool", "bool_")  # numpy's too
    is_real = isinstance(value, Real) or own == "Decimal"
    if is_truth != (form is bool) or (form is float and not is_real):
        raise TypeError
    real = form(value) if is_truth or form is float else index(value)  # it may be too large
    if isinstance(real, int) and real.bit_length() > _WIDEST:
        raise OverflowError
    return index(value) if isinstance(value, Integral) and not is_truth else real


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    with suppress(NameError):  # of a plug-in that imports a name for a type checker alone
        return get_type_hints(kind)
    return {}


def convert_fields(settings: Any) -> None:
    """Makes each field of a frozen dataclass the type of its annotation. Raises InputError."""
    kind: Any = type(settings)
    hints = _hints(kind)
    for each in fields(settings):
        value = converted(each.name, getattr(settings, each.name), hints.get(each.name, Any))
        object.__setattr__(settings, each.name, value)


def check_built(*parts: object) -> None:
    """Accepts everything: computing the arguments is the check, which raises InputError for wrong
    parameters."""


def check_whole(name: str, value: int, least: int, most: int) -> None:
    """Raises InputError unless `value` is a whole number with least <= value <= most."""
    if type(value) is not int or not least <= value <= most:
        those = f"a whole number from {least} to {most}" if least < most else least
        raise InputError(f"{name} is {value!r}; give {those}")


def whole_number(name: str, text: str) -> int:
    """The whole number that is written, also as 1e6, 1_000_000 or 0xff. Raises InputError."""
    try:
        return _check_bits(name, int(text, 0))
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():  # neither NaN nor infinity is
        raise InputError(f"{name} is {text!r:.80}; give a whole number")
    return _check_bits(name, int(value))


def _check_bits(name: str, value: int) -> int:
    """The number, if it has at most 128 bits. Raises InputError."""
    if value.bit_length() > 128:
        raise InputError(
            f"{name} is a number of {value.bit_length()} bits; give one of at most 128"
        )
    return value


def real_number(name: str, text: str) -> float:
    """The number in a text. Raises InputError for another text, nan, and a number too small to
    compute with."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{name} is {text!r:.80}; give a number")
    if 0 < abs(value) < SMALLEST:
        raise InputError(
            f"{name} is {text!r:.80}, too small to compute with; give a number of at least "
            f"{SMALLEST:g}"
        )
    return value


def check_dimension(d: int, most: int = 64) -> None:
    """Raises InputError unless 1 <= d <= most."""
    check_whole("d", d, 1, most)


# of a number in a question: squares, quotients and differences of such numbers are numbers
LARGEST = 1e150
SMALLEST = 1e-150


def _is_number(value: object) -> bool:
    """True if it is a whole number or a float, including numpy's: a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_number(name: str, value: float) -> None:
    """Raises InputError unless `value` is a number from -1e150 to 1e150."""
    if not _is_number(value) or not -LARGEST <= value <= LARGEST:
        raise InputError(f"{name} is {value!r:.40}; give a number from -1e150 to 1e150")


def check_width(name: str, value: float) -> None:
    """Raises InputError unless `value` is a number from 1e-150 to 1e150."""
    if not _is_number(value) or not SMALLEST <= value <= LARGEST:
        raise InputError(f"{name} is {value!r:.40}; give a positive number, from 1e-150 to 1e150")


def check_range(name: str, low: float, high: float) -> None:
    """Raises InputError unless low < high are numbers within 1e150 of 0 and 1e-150 apart or
    more."""
    check_number(f"the lower of the bounds{name}", low)
    check_number(f"the upper of the bounds{name}", high)
    if not high - low >= SMALLEST:
        raise InputError(
            f"the bounds{name} are [{low}, {high}]; give numbers with low < high, 1e-150 apart or "
            "more"
        )


def check_positive(name: str, value: float) -> None:
    """Raises InputError unless `value` is a finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} is {value}; give a positive number")


def check_share(name: str, value: float) -> None:
    """Raises InputError unless `value` is strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}; give a number strictly between 0 and 1")


def check_shares(**shares: float) -> None:
    """Raises InputError unless each of these is strictly between 0 and 1."""
    for name, value in shares.items():
        check_share(name, value)


def check_success(success: float, least: float) -> None:
    """Raises InputError unless the probability of success is strictly between `least`, that of a
    guess, and 1."""
    if not least < success < 1:
        raise InputError(
            f"the probability of success is {success}; give a number strictly between {least:g} "
            "and 1"
        )


def check_vector(name: str, value: int, d: int) -> None:
    """Raises InputError unless `value` is d bits."""
    if type(value) is not int or not 0 <= value < 1 << d:
        raise InputError(f"{name} is {value!r}; give a whole number from 0 to 2^{d} - 1")


def treatment(of: str, meanings: Mapping[str, str]) -> dict[str, Any]:
    """The text and the choices of a policy: to refuse, or a word with its meaning."""
    words = (f"{word}: {meaning}" for word, meaning in meanings.items() if meaning)
    choices = ("refuse", *meanings)
    return {"brief": f"Treatment of {of}", "help": "; ".join(words), "choices": choices}


def check_choices(settings: Any) -> None:
    """Raises InputError if a field of a dataclass has none of its declared choices."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        choices = each.metadata.get("choices")
        if choices and value not in choices:
            raise InputError(f"{each.name} is {value!r}; choose from {', '.join(choices)}")
