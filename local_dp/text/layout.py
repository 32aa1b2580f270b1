"""Text for a person: numbers, notation, errors in the reader's dialect, and paragraphs on a screen
of limited width, where no word is broken."""

import csv
import io
import math
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from local_dp.errors import InputError
from local_dp.foreign import shown

_DIGITS = 4
_LARGEST, _SMALLEST = 1e15, 1e-6  # beyond these, with a power of ten


def number(value: float | None, error: float | None = None) -> str:
    """`value` to its point and to four significant digits; beside its standard error, to that
    error's second digit, and all digits if that is 0.

    None is "unknown". A nonzero value is never shown as zero: 0.00004 is 0.00004. A standard error,
    beside itself, has two digits. A whole number has all.
    """
    if value is None:
        return "unknown"
    if isinstance(value, int) or error == 0 or not math.isfinite(value):
        return f"{value:,}".removesuffix(".0")
    alone = not error or not math.isfinite(error)
    scale = abs(value) if alone or error is None else error
    if scale == 0:
        return "0"
    places = (_DIGITS if alone else 2) - 1 - math.floor(math.log10(scale))
    if not _SMALLEST <= scale < _LARGEST:
        return f"{value:.{max(places + math.floor(math.log10(abs(value) or scale)), 0)}e}"
    places = max(places, 0) if alone else places
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if alone and places > 0 else text


def grain(error: float | None, ends: Sequence[float | None], value: Any = None) -> float | None:
    """How fine an estimate is shown: its standard error, or the width of its interval if that is
    less, to the estimate where an end is open. None where neither is known.

    0, which shows all digits, where these are all one, or without a standard error whole numbers.
    """
    values = [
        each for each in (*ends, value) if isinstance(each, int | float) and math.isfinite(each)
    ]
    if len(values) < 2:
        return error
    width = max(values) - min(values)
    return (
        min(error, width)
        if error
        else 0.0
        if all(float(each).is_integer() for each in values)
        else width
    )


def bound(value: float, up: bool, digits: int = 5) -> str:
    """A bound to so many significant digits, rounded up or down unless it is right to a millionth
    of the last one."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    units = math.ceil(value / unit - 1e-6) if up else math.floor(value / unit + 1e-6)
    return f"{unit * units:.{digits}g}"


_GREEK = {
    "epsilon": "ε",
    "eps": "ε",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "rho": "ρ",
    "tau": "τ",
}
# a word, not a part of a name or of an option
_LETTERS = re.compile(rf"(?<![\w.`-])({'|'.join(_GREEK)})(?!\w)")
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
# of one letter: with more it is a name in code
_LOWERED = r"(?<=\b[A-Za-zα-ω])_(?:(\w+)(?!\w)|\{([^{}\n]+)\})"
EXPONENT = re.compile(_RAISED)
_CODE = re.compile(r"`([^`]+)`")
# a reader may copy it
_QUOTED = re.compile(r"""((?<!\w)'[^'\n]*[<>=][^'\n]*'(?!\w)|"[^"\n]*[<>=][^"\n]*")""")
_MARK = re.compile(f"{_RAISED}|{_LOWERED}")


def typeset(text: str) -> str:
    """The text with Greek letters, minus signs, ± and ≤ for what is spelt in ASCII; options such as
    --epsilon, names in code and questions in quotes stay.

    Exponents stay as 2^d: `EXPONENT` finds them, and they are raised in the manner of the place
    where the text is shown.
    """
    return "".join(
        part if place % 2 else _typeset(part) for place, part in enumerate(_QUOTED.split(text))
    )


def _typeset(text: str) -> str:
    text = _LETTERS.sub(lambda match: _GREEK[match[1]], text)
    for pattern, sign in _RULES:
        text = pattern.sub(sign, text)
    return text


def marked(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a text, each with how it stands: "" in the line, "sup" as an exponent, "sub" as
    an index; all typeset but "code", from backticks."""
    for place, part in enumerate(_CODE.split(text)):
        yield from (("code", part),) if place % 2 else _typeset_parts(part)


def _typeset_parts(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, typeset(text)
    for match in _MARK.finditer(text):
        above, below = match[1] or match[2], match[3] or match[4]
        yield "", text[place : match.start()]
        yield (
            ("sup", above.replace("-", "−"))
            if above
            else ("sub", _GREEK.get(below, typeset(below)))
        )
        place = match.end()
    yield "", text[place:]


_WIDTH = 80
_HELD = "\xa0"  # a space at which no line ends


def screen_width() -> int:
    """The columns of the terminal, or of the environment's COLUMNS; else 0: paragraphs then take 80
    columns, and tables what they need."""
    return shutil.get_terminal_size((0, 24)).columns


def held(text: str) -> str:
    """The text with spaces at which no line ends."""
    return text.replace(" ", _HELD)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of one paragraph; a word wider than the screen has a line of its own."""
    lines = wrap(
        shown(text, "block"),
        width if width > 0 else _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HELD, " ") for line in lines] or [""]


def paragraph(text: str, width: int, indent: str = "") -> str:
    """One paragraph; further lines are indented."""
    return "\n".join(wrapped(text, width, indent))


def _cells(text: str) -> int:
    """How many columns of a screen a text takes: wide signs take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def definitions(entries: Sequence[tuple[str, str]], width: int) -> str:
    """Terms and meanings in two columns; the meaning of a long term stands below it."""
    column = min(26, width // 3, max((_cells(term) for term, _ in entries), default=0))
    text: list[str] = []
    for term, meaning in ((shown(term), meaning) for term, meaning in entries):
        lines = wrapped(meaning, width - column - 4)
        gap = column - _cells(term)
        first = [f"  {term}{'':{gap}}  {lines.pop(0)}"] if gap >= 0 else [f"  {term}"]
        text += [
            line.rstrip() for line in (*first, *(f"{'':{column + 4}}{line}" for line in lines))
        ]
    return "\n".join(text)


ENDS = "bounds=(low, high)"  # of one column
_FLAGS = "labels_from_data|resample|private|shuffle|unverified"
_NAMES = (
    rf"{_FLAGS}|missing|other|outside|labels|by|person|randomizer|tier|hosts|broker|seed|deadline|quorum|allow|crowd|cluster|stores|worst_case|fault|lifetime"
    "|schema|csv|bounds|low|high"
)
_PAIR = re.compile(rf"""(?<![\w-])({_NAMES})=("[^"]*"|'[^']*'|[\w.]+)""")
_OPTION = re.compile(
    rf"--({_NAMES.replace('_', '-')})\b(?: (processes|hosts|population|aggregate)\b)?"
)
_BARE = re.compile(r"\blabels_from_data\b(?!=)")
_COMMAND = re.compile(r"\blocal-dp .*", re.DOTALL)  # a command to type stays a command


class PythonInputError(InputError):
    """An InputError whose choices are keywords of Python; `plain` is its text before."""

    def __init__(self, plain: str) -> None:
        super().__init__(in_python(plain))
        self.plain = plain


@contextmanager
def python_errors() -> Iterator[None]:
    """Raises an InputError from inside in the dialect of Python."""
    try:
        yield
    except PythonInputError:
        raise
    except InputError as error:
        raise PythonInputError(str(error)) from error.__cause__


def in_shell(text: str) -> str:
    """The text with every `name=value` as an option of the command line."""

    def option(match: re.Match[str]) -> str:
        name, value = f"--{match[1].replace('_', '-')}", match[2].strip("\"'")
        return name if re.fullmatch(_FLAGS, match[1]) else f"{name} {shlex.quote(value)}"

    return _BARE.sub(
        "--labels-from-data", _PAIR.sub(option, text.replace(ENDS, "--low and --high"))
    )


def in_python(text: str) -> str:
    """The text with every `--name value` and every `name=value` as a keyword of a function."""
    command = _COMMAND.search(text)
    end = command.start() if command else len(text)
    prose = _OPTION.sub(
        lambda match: (
            f'{match[1].replace("-", "_")}="{match[2]}"' if match[2] else match[1].replace("-", "_")
        ),
        text[:end],
    )
    prose = _PAIR.sub(
        lambda match: f"{match[1]}={_literal(match[2])}", prose.replace("--records", "the table")
    )
    prose = re.sub(r"--date '([^']*)=([^'=]*)'", r'dates={"\1": "\2"}', prose)
    return _BARE.sub("labels_from_data=True", prose) + text[end:]


def _literal(value: str) -> str:
    """A value as Python writes it: labels that a shell separates by semicolons are a list, and
    bounds of columns a mapping."""
    text = value.strip("\"'")
    if "=LOW..HIGH" in text:
        return (
            "{"
            + ", ".join(
                f'"{each}": (low, high)' if each else "..."
                for each in re.split("=LOW..HIGH;?", text)[:-1]
            )
            + "}"
        )
    if re.fullmatch(r"\d[\d.e]*|True|False|None|\.{3}", text):
        return text
    if "|" in text:
        columns = [part.split("|") for part in text.split(";")]
        return str(columns if len(columns) > 1 else columns[0]).replace("'", '"')
    if re.match("(sep|decimal|encoding|missing)=", text):  # the form of a CSV file
        return f'"{text}"'
    return str(text.split(";")).replace("'", '"') if ";" in text else f'"{text}"'


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[Any]], end: str = "\n") -> str:
    """A table whose texts are no formulas for a spreadsheet."""
    text = io.StringIO()
    cells = (
        [shown(cell, "cell") if isinstance(cell, str) else cell for cell in row]
        for row in (columns, *rows)
    )
    csv.writer(text, lineterminator=end).writerows(cells)
    return text.getvalue()
