"""Text on a screen of limited width: paragraphs, definitions and tables. No word is broken."""

import re
import shutil
from collections.abc import Sequence
from textwrap import shorten, wrap

_WIDTH = 80
_GAP = "  "
_HELD = "\xa0"  # a space at which no line ends


def screen_width() -> int:
    """The columns of the terminal, or of the environment's COLUMNS; else 80."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def held(text: str) -> str:
    """The text with spaces at which no line ends."""
    return text.replace(" ", _HELD)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of one paragraph; a word wider than the screen has a line of its own."""
    lines = wrap(text, max(width, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_HELD, " ") for line in lines] or [""]


def paragraph(text: str, width: int, indent: str = "") -> str:
    """One paragraph; further lines are indented."""
    return "\n".join(wrapped(text, width, indent))


def shortened(claim: str, width: int) -> str:
    """The start of a claim that fits, to the end of a clause if possible."""
    whole = claim.rstrip(".")
    if len(whole) <= width:
        return whole
    clauses = [whole[: match.start()] for match in re.finditer(r"[,;:](?= )| \(", whole[: width + 1])]
    clauses = [clause for clause in clauses if all(clause.count(left) == clause.count(right) for left, right in ("()", "[]", "{}"))]
    return clauses[-1] if clauses and len(clauses[-1]) > width / 2 else shorten(whole, max(width, 1), placeholder=" …")


def definitions(entries: Sequence[tuple[str, str]], width: int) -> str:
    """Terms and meanings in two columns; the meaning of a long term stands below it."""
    column = min(26, width // 3, max((len(term) for term, _ in entries), default=0))
    shown = []
    for term, meaning in entries:
        lines = wrapped(meaning, width - column - 4)
        first = [f"  {term:<{column}}  {lines.pop(0)}"] if len(term) <= column else [f"  {term}"]
        shown += [line.rstrip() for line in (*first, *(f"{'':{column + 4}}{line}" for line in lines))]
    return "\n".join(shown)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """A table, its first column left-aligned, the others right-aligned. If the screen is too narrow, row by row, with a line for each heading."""
    cells = [tuple(headings), *map(tuple, rows)]
    columns = list(zip(*cells, strict=True))
    widths = _fitting([max(map(len, column)) for column in columns], [max(map(_longest, column)) for column in columns], width)
    if widths is None:
        return "\n\n".join(definitions([(heading, cell) for heading, cell in zip(headings, row, strict=True) if cell], width) for row in rows)
    rule = _GAP.join("─" * each for each in widths)
    top, *body = ["\n".join(_lines(row, widths)) for row in cells]
    return "\n".join((top, rule, *body))


def _longest(text: str) -> int:
    return max(map(len, text.split(" ")))


def _fitting(natural: list[int], least: list[int], width: int) -> list[int] | None:
    """The widths of the columns: the widest shrink until all fit, but not below their longest words; None if that is impossible."""
    widths = list(natural)
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        spare = [place for place, each in enumerate(widths) if each > least[place]]
        if not spare:
            return None
        widths[max(spare, key=lambda place: widths[place])] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """One row of a table, as many lines high as its highest cell."""
    parts = [wrapped(cell, each) for cell, each in zip(row, widths, strict=True)]
    high = max(map(len, parts))
    padded = [part + [""] * (high - len(part)) for part in parts]
    shown = (
        _GAP.join(f"{text:<{each}}" if place == 0 else f"{text:>{each}}" for place, (text, each) in enumerate(zip(line, widths, strict=True)))
        for line in zip(*padded, strict=True)
    )
    return [line.rstrip() for line in shown]
