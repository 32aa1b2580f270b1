"""Numbers and notation for a person."""

import math
import re
from collections.abc import Iterator

_DIGITS = 4
_LARGEST, _SMALLEST = 1e15, 1e-6  # beyond these, with a power of ten


def number(value: float | None, error: float | None = None) -> str:
    """`value` to four significant digits; beside its standard error, to that error's second digit. A whole number has all its digits.

    None is "unknown". A nonzero value is never shown as zero: 0.00004 is 0.00004. A standard error, beside itself, has two digits.
    """
    if value is None:
        return "unknown"
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    alone = not error or not math.isfinite(error)
    scale = abs(value) if alone or error is None else error
    if scale == 0:
        return "0"
    places = (_DIGITS if alone else 2) - 1 - math.floor(math.log10(scale))
    if not _SMALLEST <= scale < _LARGEST:
        return f"{value:.{max(places + math.floor(math.log10(abs(value) or scale)), 0)}e}"
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if alone and places > 0 else text


def bound(value: float, up: bool, digits: int = 5) -> str:
    """A bound to so many significant digits, rounded up or down unless it is right to a millionth of the last one."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return f"{unit * (math.ceil(value / unit - 1e-6) if up else math.floor(value / unit + 1e-6)):.{digits}g}"


_GREEK = {"epsilon": "ε", "eps": "ε", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "tau": "τ"}
_LETTERS = re.compile(rf"(?<![\w.`-])({'|'.join(_GREEK)})(?!\w)")  # a word, not a part of a name or of an option
_RULES = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"\+-", "±"),
        (r"<=", "≤"),
        (r">=", "≥"),
        (r"(?<=[εαβγδλτ])'", "′"),
        (r"(?<![\w'])([εαβγδλτ]) (?:= )?(?=\d)", "\\1\xa0=\xa0"),  # "epsilon 1" says that it is 1
        (r"(?<=\d) ?%", "\xa0%"),
        (r"(?<=\w) \* (?=\w)", " · "),
        (r"\bsqrt(?:\((\w+)\)| (\w+))", r"√\1\2"),
        (r"\bsqrt(?=\()", "√"),
        (r"\blog2\b", "log₂"),
        (r"\b1e([+-])0*(?=\d)", r"10^\1"),
        (r"(?<=\d)e([+-])0*(?=\d)", r" · 10^\1"),
        (r"\^\+", "^"),
        (r"(?<=[\w)⌉]) - (?=[\w(⌈])", " − "),
        (r"(?<=[εαβγδλτ])-(?=\d)|(?<![\w.)\]-])-(?=\d|\w\b(?!-))", "−"),
    )
)
_RAISED = r"\^(?:([-−]?[^\W_]+(?:\.\d+)?)|\(([^()\n]+)\))"
_LOWERED = r"(?<=\b[A-Za-zα-ω])_(?:(\w+)(?!\w)|\{([^{}\n]+)\})"  # of one letter: with more it is a name in code
EXPONENT = re.compile(_RAISED)
_CODE = re.compile(r"`([^`]+)`")
_MARK = re.compile(f"{_RAISED}|{_LOWERED}")


def typeset(text: str) -> str:
    """The text with Greek letters, minus signs, ± and ≤ for what is spelt in ASCII; options such as --epsilon and names in code stay as they are.

    Exponents stay as 2^d: `EXPONENT` finds them, and they are raised in the manner of the place where the text is shown.
    """
    text = _LETTERS.sub(lambda found: _GREEK[found[1]], text)
    for pattern, sign in _RULES:
        text = pattern.sub(sign, text)
    return text


def marked(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a text, each with how it stands: "" in the line, "sup" as an exponent, "sub" as an index; all typeset but "code", from backticks."""
    for place, part in enumerate(_CODE.split(text)):
        yield from (("code", part),) if place % 2 else _typeset_parts(part)


def _typeset_parts(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, typeset(text)
    for found in _MARK.finditer(text):
        raised, lowered = found[1] or found[2], found[3] or found[4]
        yield "", text[place : found.start()]
        yield ("sup", raised.replace("-", "−")) if raised else ("sub", _GREEK.get(lowered, typeset(lowered)))
        place = found.end()
    yield "", text[place:]
