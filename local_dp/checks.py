"""One check of each kind of parameter: each raises InputError with what is wrong, the value, and
what to give."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from local_dp.errors import InputError


def check_built(*parts: object) -> None:
    """Accepts everything: computing the arguments is the check, which raises InputError for wrong
    parameters."""


def check_whole(name: str, value: int, least: int, most: int) -> None:
    """Raises InputError unless `value` is a whole number with least <= value <= most."""
    if type(value) is not int or not least <= value <= most:
        raise InputError(f"{name} is {value!r}; give a whole number from {least} to {most}")


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
