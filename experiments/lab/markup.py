"""The parts of the report's pages: text, marks, numbers, tables and figures as markup."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.lab.figures import COLOURS, INK, MUTED, PAPER, RULE
from local_dp.experiments.text.notation import marked, typeset

NOT_RUN = "not run"
SIGNS = {"shown": "✓ shown", "not shown": "✗ not shown", NOT_RUN: "– not run"}


@dataclass(frozen=True)
class Numbers:
    """The numbers that figures and tables have on one page."""

    figures: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    tables: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def prose(text: str) -> str:
    """Text as markup: everything escaped, in the notation of mathematics, exponents such as 2^d and 2^(-d/2) raised, indices such as z_beta lowered."""
    return "".join(f"<{mark}>{escape(part)}</{mark}>" if mark else escape(part) for mark, part in marked(text))


def badge(verdict: str) -> str:
    """A verdict as a mark that is read, not only seen by its colour."""
    return f'<span class="badge {verdict.replace(" ", "-")}">{SIGNS[verdict]}</span>'


def cell(value: Any) -> str:
    """A value of a table as a reader wants it: whole numbers in groups of three, others to four digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def _marked_up(value: Any, place: int, column: tuple[str, bool]) -> str:
    """One cell of a column (its heading, whether it holds numbers): the first names its row; on a narrow screen each brings its heading along."""
    heading, numeric = column
    named = f' data-heading="{escape(typeset(heading))}"' + " class=number" * numeric
    if isinstance(value, int | float) and not isinstance(value, bool):
        named += f' data-value="{value!r}"'
    tag, role = ('th scope="row"', "rowheader") if place == 0 else ("td", "cell")
    return f'<{tag} role="{role}"{named}><span>{prose(cell(value))}</span></{tag[:2]}>'


def table_of(table: Mapping[str, Any], numbers: Numbers, folded: bool) -> str:
    """A table under its title, which unfolds it; it scrolls inside its frame, should it be wider than the page.

    Its roles are spelt out, for they are lost where rows become blocks.
    """
    columns: Sequence[str] = table["columns"]
    rows: Sequence[Sequence[Any]] = table["rows"]
    numeric = [bool(rows) and all(isinstance(row[place], int | float) or row[place] is None for row in rows) for place in range(len(columns))]
    kinds = list(zip(columns, numeric, strict=True))
    head = "".join(f'<th scope="col" role="columnheader"{" class=number" * number}>{prose(name)}</th>' for name, number in kinds)
    body = "\n".join('<tr role="row">' + "".join(_marked_up(value, place, kinds[place]) for place, value in enumerate(row)) + "</tr>" for row in rows)
    title, label = prose(table["title"]), escape(typeset(table["title"]))
    summary = f'<summary><b>Table {next(numbers.tables)}.</b> {title} <span class="rows">({len(rows)} {"row" if len(rows) == 1 else "rows"})</span></summary>'
    return (
        f'<details{"" if folded else " open"}>{summary}<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="sortable" role="table" aria-label="{label}"><thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{body}</tbody></table></div></details>'
    )


def _inline_svg(path: Path, prefix: str, alt: str) -> str:
    """A drawing as part of the page: names made unique, colours handed to the page's style sheet, which has a light and a dark set."""
    try:
        svg = path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(f"the figure {path} is missing; run the experiment again") from None
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", svg)
    names = {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper"} | {colour: f"c{place}" for place, colour in enumerate(COLOURS)}
    for colour, name in names.items():
        svg = svg.replace(colour, f"var(--{name})")
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{escape(typeset(alt))}" ', svg, count=1)


def figure_of(folder: Path, name: str, figure: Mapping[str, Any], numbers: Numbers) -> str:
    """A figure of the experiment `name`, with its caption, how to read it, and the files that hold it."""
    links = " · ".join(f'<a href="{escape(name)}/{escape(figure[kind])}">{escape(figure[kind])}</a>' for kind in ("svg", "png", "pdf") if kind in figure)
    return _captioned(folder, name, figure, numbers, f'{prose(figure.get("key", ""))} <span class="files">{links}</span>')


def lead_figure(folder: Path, name: str, figure: Mapping[str, Any], numbers: Numbers, page: str) -> str:
    """A figure on the index: its caption links to the page of its experiment."""
    return _captioned(folder, name, figure, numbers, f'From <a href="{escape(page)}#{escape(name)}">{escape(name)}</a>.')


def _captioned(folder: Path, name: str, figure: Mapping[str, Any], numbers: Numbers, more: str) -> str:
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", f"{name}-{figure['svg'].removesuffix('.svg')}")
    svg = _inline_svg(folder / name / figure["svg"], prefix, figure["alt"])
    return f"<figure>{svg}<figcaption><b>Figure {next(numbers.figures)}.</b> {prose(figure['title'])}. {more}</figcaption></figure>"


def check_of(check: Mapping[str, Any]) -> str:
    """One check: its mark, what it states, the figures that decide, and how sure the check is."""
    mark = badge("shown" if check["shown"] else "not shown")
    sure = f"Fails by chance: {check['chance']:.0e} at most. Catches {prose(check['catches'])}." if check["chance"] else "Computed; nothing is left to chance."
    statement, evidence = prose(check["statement"]), prose(check["evidence"])
    return f'<li>{mark}<span>{statement}</span><span class="evidence">{evidence}</span><span class="evidence">{sure}</span></li>'
