"""Foreign text, of a table, a results folder, a file name, a message or a plug-in: `shown` makes it
harmless where it is printed or written."""

import re
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Literal, TypeAlias

Place: TypeAlias = Literal["line", "block", "page", "cell"]
LISTED = 40  # names that a message lists; of more, the first ten
LONGEST = 2000  # characters of a message
_NAME = 80  # characters of a name in a list
_JOINERS = "\u200c\u200d"  # invisible, but part of words in Persian, Hindi and others
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%)?", re.IGNORECASE)
_FORMULA = tuple("=+-@＝＋－＠")


def shown(text: str, place: Place = "line", encoding: str = "utf-8") -> str:
    """The text in a `place`: no control character, no sign that turns letters around, nothing
    beyond the encoding; these are written as escapes.

    A "line" is printed on a terminal, or drawn; a "block" keeps its line breaks; on a "page"
    nothing is markup; a "cell" of a CSV file is no formula.
    """
    text = (
        text
        if text.isprintable()
        else "".join(
            each if _harmless(each, place) else each.encode("unicode_escape").decode()
            for each in text
        )
    )
    if place == "page":
        return escape(text)
    if place == "cell":
        return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
    try:
        return text.encode(encoding).decode(encoding)
    except UnicodeEncodeError:  # a terminal of Latin-1 draws the lines of a table with hyphens
        text = text.replace("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "-")
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _harmless(letter: str, place: Place) -> bool:
    return (
        letter.isprintable()
        or letter in _JOINERS
        or unicodedata.category(letter) == "Zs"
        or (letter == "\n" and place in ("block", "page"))
    )


def brief(text: str, most: int = LONGEST) -> str:
    """The text, or of a longer one its start and its end."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]} … {text[-(most // 4) :]}"


def listed(names: Sequence[object], command: str = "") -> str:
    """The names; of more than 40 the first ten, and the command that lists all."""
    if len(names) > LISTED:
        more = [f"and {len(names) - 10:,} more" + f" (`{command}`)" * bool(command)]
    else:
        more = []
    return ", ".join(
        [*(brief(str(name), _NAME) for name in (names[:10] if more else names)), *more]
    )
