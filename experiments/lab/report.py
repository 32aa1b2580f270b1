"""The report: one static page of everything a folder of results shows. A reader needs neither the paper nor this project.

The page fetches nothing. Its one script only lets tables be sorted, and its content security policy allows no other.
"""

import base64
import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from experiments.lab.catalogue import NAMES
from experiments.lab.figures import COLOURS, INK, MUTED, PAPER, RULE
from experiments.lab.results import Results, read_results
from experiments.lab.store import write_text
from experiments.text.notation import marked, typeset
from local_dp.errors import InputError

PAGE = "report.html"
NOT_RUN = "not run"
_SIGNS = {"shown": "✓ shown", "not shown": "✗ not shown", NOT_RUN: "– not run"}


@dataclass(frozen=True)
class _Numbers:
    """The numbers that figures and tables have on one page."""

    figures: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    tables: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def prose(text: str) -> str:
    """Text as markup: everything escaped, in the notation of mathematics, exponents such as 2^d and 2^(-d/2) raised, indices such as z_beta lowered."""
    return "".join(f"<{mark}>{escape(part)}</{mark}>" if mark else escape(part) for mark, part in marked(text))


def badge(verdict: str) -> str:
    """A verdict as a mark that is read, not only seen by its colour."""
    return f'<span class="badge {verdict.replace(" ", "-")}">{_SIGNS[verdict]}</span>'


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


def _table(table: Mapping[str, Any], numbers: _Numbers) -> str:
    columns: Sequence[str] = table["columns"]
    rows: Sequence[Sequence[Any]] = table["rows"]
    numeric = [bool(rows) and all(isinstance(row[place], int | float) or row[place] is None for row in rows) for place in range(len(columns))]
    kinds = list(zip(columns, numeric, strict=True))
    head = "".join(f'<th scope="col" role="columnheader"{" class=number" * number}>{prose(name)}</th>' for name, number in kinds)
    body = "\n".join('<tr role="row">' + "".join(_marked_up(value, place, kinds[place]) for place, value in enumerate(row)) + "</tr>" for row in rows)
    caption = f"<b>Table {next(numbers.tables)}.</b> {prose(table['title'])}"
    return _framed("sortable", caption, table["title"], head, body)


def _framed(kind: str, caption: str, label: str, head: str, body: str) -> str:
    """A table that scrolls inside its frame, should it be wider than the page. Its roles are spelt out, for they are lost where rows become blocks."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(typeset(label))}"><table class="{kind}" role="table"><caption>{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n<tbody role="rowgroup">{body}</tbody></table></div>'
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


def _figure(folder: Path, name: str, figure: Mapping[str, Any], numbers: _Numbers) -> str:
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", f"{name}-{figure['svg'].removesuffix('.svg')}")
    svg = _inline_svg(folder / name / figure["svg"], prefix, figure["alt"])
    links = " · ".join(f'<a href="{escape(name)}/{escape(figure[kind])}">{escape(figure[kind])}</a>' for kind in ("svg", "png", "pdf") if kind in figure)
    caption = f"<b>Figure {next(numbers.figures)}.</b> {prose(figure['title'])}. {prose(figure.get('key', ''))}"
    return f'<figure>{svg}<figcaption>{caption} <span class="files">{links}</span></figcaption></figure>'


def _check(check: Mapping[str, Any]) -> str:
    mark = badge("shown" if check["shown"] else "not shown")
    return f'<li>{mark}<span>{prose(check["statement"])}</span><span class="evidence">{prose(check["evidence"])}</span></li>'


def _experiment(folder: Path, results: Results, numbers: _Numbers) -> str:
    name = results["name"]
    tables = results["tables"]
    notes = "".join(f"<li>{prose(note)}</li>" for note in results["notes"])
    files = ["results.json", *(table["csv"] for table in tables), *results["certificates"]]
    links = ", ".join(f'<a href="{escape(name)}/{escape(file)}">{escape(file)}</a>' for file in files)
    checked = " The certificates can be checked with <code>local-dp certify FILE</code>." if results["certificates"] else ""
    data = f'<p class="files">Data: {links}.{checked}</p>'
    return "\n".join(
        [
            f'<section class="experiment" id="{escape(name)}" aria-labelledby="{escape(name)}-title">',
            f'<p class="eyebrow">Experiment <code>{escape(name)}</code> · {prose(results["source"])}</p>',
            f'<div class="heading"><h2 id="{escape(name)}-title">{prose(results["title"])}</h2>{badge(results["verdict"])}</div>',
            f'<div class="claim"><p>{prose(results["claim"])}</p></div>',
            *(_figure(folder, name, figure, numbers) for figure in results["figures"]),
            f'<h3>What was checked</h3><ul class="checks">{"".join(map(_check, results["checks"]))}</ul>',
            *(_table(table, numbers) for table in tables),
            f'<h3>Notes</h3><ul class="notes">{notes}</ul>' if notes else "",
            f"<h3>To repeat it</h3><pre><code>{escape(results['command'])}</code></pre>",
            data,
            '<p class="top"><a href="#top">Back to top ↑</a></p>',
            "</section>",
        ]
    )


def _summary(found: Mapping[str, Results], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        results = found.get(name)
        title = f'<a href="#{escape(name)}">{prose(results["title"])}</a>' if results else "–"
        passed = f"{sum(check['shown'] for check in results['checks'])} of {len(results['checks'])}" if results else "–"
        verdict = badge(results["verdict"] if results else NOT_RUN)
        cells = "".join(f'<td role="cell"><span>{each}</span></td>' for each in (title, passed, verdict))
        rows.append(f'<tr role="row"><th scope="row" role="rowheader"><code>{escape(name)}</code></th>{cells}</tr>')
    head = "".join(f'<th scope="col" role="columnheader">{text}</th>' for text in ("Experiment", "What it shows", "Checks", "Verdict"))
    table = _framed("summary", "Every experiment and its verdict", "Every experiment and its verdict", head, "".join(rows))
    return f'<section id="verdicts" aria-labelledby="verdicts-title"><h2 id="verdicts-title">The verdicts</h2>{table}</section>'


def _contents(found: Mapping[str, Results]) -> str:
    """The links at the side: every experiment by its name, with a mark of its verdict."""
    links = [
        f'<li><a href="#{escape(name)}">{escape(name)}</a> <span class="{results["verdict"].replace(" ", "-")}">{_SIGNS[results["verdict"]]}</span></li>'
        for name, results in found.items()
    ]
    return "\n".join(links)


def build_page(folder: Path, names: Sequence[str] = NAMES) -> str:
    """The page of a folder of results: the experiments called `names` in this order, then any others found there. Raises InputError if there are none."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make one with: local-dp experiment all --quick --out {folder}")
    others = sorted(path.parent.name for path in folder.glob("*/results.json") if path.parent.name not in names)
    found = {name: results for name in (*names, *others) if (results := read_results(folder / name)) is not None}
    if not found:
        raise InputError(f"{folder} holds no results; make some with: local-dp experiment all --quick --out {folder}")
    numbers, script = _Numbers(), _part("report.js")
    return Template(_part("report.html")).substitute(
        style=_part("report.css"),
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        contents=_contents(found),
        summary=_summary(found, [*names, *others]),
        experiments="\n".join(_experiment(folder, results, numbers) for results in found.values()),
    )


def _part(name: str) -> str:
    return files("experiments.lab").joinpath(name).read_text(encoding="utf-8")


def write_report(folder: Path) -> Path:
    """Writes the page into the folder; its path. Raises InputError if there are no results or the page cannot be written."""
    page = build_page(folder)
    path = folder / PAGE
    write_text(path, page)
    return path
