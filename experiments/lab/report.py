"""The report: one static page, without scripts or requests, of everything a folder of results shows. A reader needs neither the paper nor this project."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from experiments.lab.catalogue import NAMES
from experiments.lab.figure_text import EXPONENT
from experiments.lab.figures import COLOURS, INK, MUTED, PAPER, RULE
from experiments.lab.results import Results, read_results
from experiments.lab.store import write_text
from local_dp.errors import InputError

PAGE = "report.html"
NOT_RUN = "not run"
_SIGNS = {"shown": "✓ shown", "not shown": "✗ not shown", NOT_RUN: "– not run"}


def prose(text: str) -> str:
    """Text as markup: everything escaped, exponents such as 2^d and 2^(-d/2) raised."""
    return EXPONENT.sub(lambda found: f"<sup>{(found[1] or found[2]).replace('-', '−')}</sup>", escape(text))


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


def _table(table: Mapping[str, Any]) -> str:
    columns: Sequence[str] = table["columns"]
    rows: Sequence[Sequence[Any]] = table["rows"]
    numeric = [bool(rows) and all(isinstance(row[place], int | float) or row[place] is None for row in rows) for place in range(len(columns))]
    kinds = [' class="number"' if each else "" for each in numeric]
    head = "".join(f'<th scope="col"{kind}>{prose(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = "\n".join("<tr>" + "".join(f"<td{kind}>{prose(cell(value))}</td>" for value, kind in zip(row, kinds, strict=True)) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table["title"])}"><table><caption>{prose(table["title"])}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
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
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', svg, count=1)


def _figure(folder: Path, name: str, figure: Mapping[str, Any]) -> str:
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", f"{name}-{figure['svg'].removesuffix('.svg')}")
    svg = _inline_svg(folder / name / figure["svg"], prefix, figure["alt"])
    links = " · ".join(f'<a href="{escape(name)}/{escape(figure[kind])}">{kind.upper()}</a>' for kind in ("svg", "png"))
    drawing = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(figure["title"])}">{svg}</div>'
    return f"<figure>{drawing}<figcaption>Drawing: {links}</figcaption></figure>"


def _check(check: Mapping[str, Any]) -> str:
    mark = badge("shown" if check["shown"] else "not shown")
    return f'<li>{mark}<span>{prose(check["statement"])}</span><span class="evidence">{prose(check["evidence"])}</span></li>'


def _experiment(folder: Path, results: Results) -> str:
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
            *(_figure(folder, name, figure) for figure in results["figures"]),
            f'<h3>What was checked</h3><ul class="checks">{"".join(map(_check, results["checks"]))}</ul>',
            *map(_table, tables),
            f'<h3>Notes</h3><ul class="notes">{notes}</ul>' if notes else "",
            f"<h3>To repeat it</h3><pre><code>{escape(results['command'])}</code></pre>",
            data,
            "</section>",
        ]
    )


def _summary(found: Mapping[str, Results], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        results = found.get(name)
        if results is None:
            rows.append(f"<tr><td><code>{escape(name)}</code></td><td>–</td><td>–</td><td>{badge(NOT_RUN)}</td></tr>")
            continue
        passed = sum(check["shown"] for check in results["checks"])
        rows.append(
            f'<tr><td><code>{escape(name)}</code></td><td><a href="#{escape(name)}">{prose(results["title"])}</a></td>'
            f"<td>{passed} of {len(results['checks'])}</td><td>{badge(results['verdict'])}</td></tr>"
        )
    head = "".join(f'<th scope="col">{text}</th>' for text in ("Experiment", "What it shows", "Checks", "Verdict"))
    return (
        '<section class="summary" aria-labelledby="verdicts"><h2 id="verdicts">The verdicts</h2><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def build_page(folder: Path, names: Sequence[str] = NAMES) -> str:
    """The page of a folder of results: the experiments called `names` in this order, then any others found there. Raises InputError if there are none."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make one with: local-dp experiment all --quick --out {folder}")
    others = sorted(path.parent.name for path in folder.glob("*/results.json") if path.parent.name not in names)
    found = {name: results for name in (*names, *others) if (results := read_results(folder / name)) is not None}
    if not found:
        raise InputError(f"{folder} holds no results; make some with: local-dp experiment all --quick --out {folder}")
    return _template().substitute(
        style=files("experiments.lab").joinpath("report.css").read_text(encoding="utf-8"),
        summary=_summary(found, [*names, *others]),
        experiments="\n".join(_experiment(folder, results) for results in found.values()),
    )


def _template() -> Template:
    return Template(files("experiments.lab").joinpath("report.html").read_text(encoding="utf-8"))


def write_report(folder: Path) -> Path:
    """Writes the page into the folder; its path. Raises InputError if there are no results or the page cannot be written."""
    page = build_page(folder)
    path = folder / PAGE
    write_text(path, page)
    return path
