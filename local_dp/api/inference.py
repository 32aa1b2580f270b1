"""The types of columns of texts: numbers or truth values where Polars reads every cell so, else
texts. One line says what may have been meant otherwise."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from local_dp.api.files import Form
from local_dp.queries.dates import ISO, LOCAL
from local_dp.storage.columns import exactly

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

# in R, Excel, databases, SPSS, Python, SAS and Stata
_MISSING = r"(?i)^(na|n/a|#n/?a|#nv|null|#null!|nan|none|-|\.)$"
TRUTH = {"true": "1", "false": "0"}


def declared_cells(
    frame: "polars.LazyFrame", kinds: Mapping[str, str], form: Form
) -> "polars.LazyFrame":
    """The cells of declared numbers in the form that `polars` casts, each by itself."""
    numbers = [
        name
        for name in frame.collect_schema().names()
        if kinds.get(name) in ("number", "whole", "truth")
    ]
    return frame.with_columns(
        _number(exactly(name).str.strip_chars().str.to_lowercase().replace(TRUTH), form)
        for name in numbers
    )


def inferred_columns(frame: "polars.LazyFrame", form: Form, notes: list[str]) -> "polars.LazyFrame":
    """The columns with their types. All rows decide, so that no late text is lost. `notes` gets
    what may have been meant otherwise."""
    import polars

    names = frame.collect_schema().names()
    every = frame.select(
        polars.struct(_facts(exactly(name), form)).alias(name) for name in names
    ).collect(engine="streaming")
    casts = list[polars.Expr]()
    for name in names:
        facts = every.get_column(name)[0]
        kind, cell = _kind(facts), exactly(name).str.strip_chars()
        notes += [f"{name!r:.80} is {each}" for each in _doubts(facts, kind, form)]
        if kind == "truth":
            casts.append(cell.str.to_lowercase() == "true")
        elif kind != "text":
            of_type = polars.Int64 if kind == "whole" else polars.Float64
            casts.append(_number(cell, form).cast(of_type))
    return frame.with_columns(casts)


def _number(cell: "polars.Expr", form: Form) -> "polars.Expr":
    """The cell with a decimal point. Where commas are decimal, a cell with a point is no number: it
    may have groups of three digits."""
    import polars

    if form.decimal != ",":
        return cell
    return polars.when(~cell.str.contains(".", literal=True)).then(
        cell.str.replace(",", ".", literal=True)
    )


def _facts(raw: "polars.Expr", form: Form) -> "list[polars.Expr]":
    """Of a column: how many cells there are, how many are of some kind, and the first and last text
    that is no number."""
    import polars

    cell = raw.str.strip_chars()
    number = _number(cell, form).cast(polars.Float64, strict=False)
    word = polars.when(number.is_null()).then(cell)
    gap = polars.when(cell.str.contains(_MISSING)).then(cell)
    other = r"^[+-]?\d*\.\d+(,\d+)?$" if form.decimal == "," else r"^[+-]?[\d.]*(,\d+)+(\.\d*)?$"
    kinds = {"other": other, "digits": r"^[+-]?\d+$", "padded": r"^[+-]?0\d+$",
    "truth": "(?i)^(true|false)$",
             "points": r"\.", "groups": r"^[+-]?[1-9]\d{0,2}\.\d{3}$"}  # fmt: skip
    counts = {kind: cell.str.contains(pattern).sum() for kind, pattern in kinds.items()}
    values = {
        "cells": cell.count(),
        "spaced": ((raw != cell) & ~cell.str.contains(f"^(?:{ISO}|{LOCAL})$")).sum(),
        "numbers": number.count(),
        "whole": cell.cast(polars.Int64, strict=False).count(),
    }
    facts = {**counts, **values, "first": word.min(), "last": word.max(), "known": gap.min()}
    return [fact.alias(name) for name, fact in facts.items()]


def _kind(facts: Mapping[str, Any]) -> str:
    """Digits with leading zeros may be codes, and those beyond 64 bits fit no number, so both stay
    text."""
    cells = facts["cells"]
    if cells and facts["truth"] == cells:
        return "truth"
    if not cells or facts["numbers"] < cells or facts["padded"]:
        return "text"
    if facts["whole"] == cells:
        return "whole"
    return "text" if facts["digits"] == cells else "number"


def _doubts(facts: Mapping[str, Any], kind: str, form: Form) -> Iterator[str]:
    """What may have been meant otherwise, and the words that decide."""
    cells, others = facts["cells"], facts["cells"] - facts["numbers"]
    if (
        kind == "number"
        and 0 < facts["points"] == facts["groups"]
        and not form.decimal
        and form.sep not in ("", ",")
    ):
        yield (
            'a number with a decimal point; type csv="decimal=." if that is right, else take the '
            "points out of the cells"
        )
    if kind == "number" and facts["known"]:
        yield f"a number, with missing cells {facts['known']!r}"
    if kind != "text" or not cells:
        return
    if facts["spaced"]:
        yield f"text, and the spaces around {facts['spaced']:,} of {cells:,} cells count"
    word = (
        f"{facts['first']!r:.80}"
        if facts["first"] == facts["last"]
        else f"{facts['known']!r:.80}"
        if facts["known"]
        else ""
    )
    remedy = (
        f'; csv="missing={word[1:-1]}" makes {word} missing' if word and " " not in word else ""
    )
    if not others:
        yield (
            "text, because it has "
            f"{'leading zeros' if facts['padded'] else 'whole numbers beyond 64 bits'}; a schema "
            "declares other types"
        )
    elif facts["other"]:
        sign, remedy = ("point", "decimal=.") if form.decimal == "," else ("comma", "decimal=,")
        yield (
            f"text, because {facts['other']:,} of {cells:,} cells have a {sign}; type "
            f'csv="{remedy}" '
            "if it is decimal, else take it out of the cells"
        )
    elif facts["numbers"]:
        yield f"text, because {others:,} of {cells:,} cells are no numbers{remedy}"
    elif facts["known"]:
        yield f"text, with cells that may be missing{remedy}"
