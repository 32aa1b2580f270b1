"""The report: an index of everything a folder of results shows, and a page for each experiment. A
reader needs neither the paper nor this project.

The pages fetch nothing and are whole without scripts. Their one script only lets tables be sorted,
and their content security policy allows no other.
"""

import base64
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.lab.catalogue import NAMES
from local_dp.experiments.lab.chapters import CHAPTERS, Chapter
from local_dp.experiments.lab.store import write_text
from local_dp.experiments.lab.stored import (
    RESULTS,
    Results,
    StoredCheck,
    StoredFigure,
    StoredTable,
    drawing,
    read_results,
)
from local_dp.experiments.lab.style import COLOURS, INK, MUTED, PAPER, RULE
from local_dp.foreign import shown
from local_dp.text.layout import marked, typeset

NOT_RUN = "not run"
SIGNS = {"shown": "✓ shown", "not shown": "✗ not shown", NOT_RUN: "– not run"}


def escape(text: str) -> str:
    """Text as markup."""
    return shown(text, "page")


def prose(text: str) -> str:
    """Text as markup: everything escaped, in the notation of mathematics, exponents such as 2^d and
    2^(-d/2) raised, indices such as z_beta lowered."""
    return "".join(
        f"<{mark}>{escape(part)}</{mark}>" if mark else escape(part) for mark, part in marked(text)
    )


def badge(verdict: str) -> str:
    """A verdict as a mark that is read, not only seen by its colour."""
    return f'<span class="badge {verdict.replace(" ", "-")}">{SIGNS[verdict]}</span>'


def cell(value: Any) -> str:
    """A value of a table as a reader wants it: whole numbers in groups of three, others to four
    digits."""
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
    """One cell of a column (its heading, whether it holds numbers): the first names its row; on a
    narrow screen each brings its heading along."""
    heading, numeric = column
    attributes = f' data-heading="{escape(typeset(heading))}"'
    if numeric:
        attributes += " class=number"
    if isinstance(value, int | float) and not isinstance(value, bool):
        attributes += f' data-value="{value!r}"'
    tag, role = ('th scope="row"', "rowheader") if place == 0 else ("td", "cell")
    return f'<{tag} role="{role}"{attributes}><span>{prose(cell(value))}</span></{tag[:2]}>'


def table_of(table: StoredTable, number: int, fold: bool) -> str:
    """A table under its title, which unfolds it; it scrolls inside its frame, should it be wider
    than the page.

    Its roles are spelt out, for they are lost where rows become blocks.
    """
    rows = table["rows"]
    columns = []
    head = ""
    for place, heading in enumerate(table["columns"]):
        cells = [row[place] for row in rows if row[place] is not None]
        numeric = bool(rows) and all(isinstance(value, int | float) for value in cells)
        columns.append((heading, numeric))
        kind = " class=number" if numeric else ""
        head += f'<th scope="col" role="columnheader"{kind}>{prose(heading)}</th>'
    lines = []
    for row in rows:
        marks = (_marked_up(value, place, columns[place]) for place, value in enumerate(row))
        lines.append(f'<tr role="row">{"".join(marks)}</tr>')
    body = "\n".join(lines)
    title, label = prose(table["title"]), escape(typeset(table["title"]))
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    start = "<details>" if fold else "<details open>"
    return (
        f'{start}<summary><b>Table {number}.</b> {title} <span class="rows">({count})</span>'
        f"</summary>"
        f'<div class="scroll" tabindex="0" '
        f'role="region" aria-label="{label}">'
        f'<table class="sortable" role="table" aria-label="{label}"><thead role="rowgroup"><tr '
        f'role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{body}</tbody></table></div></details>'
    )


def _inline_svg(folder: Path, figure: StoredFigure, prefix: str) -> str:
    """A drawing as part of the page: names made unique, colours handed to the page's style sheet,
    which has a light and a dark set."""
    label = f' role="img" aria-label="{escape(typeset(figure["alt"]))}"'
    svg = drawing(folder, figure["svg"], prefix, label)
    for name, colour in _PROPERTIES.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


# the colours of drawings as properties of the style sheet; "plain-0" is ink too
_PROPERTIES = {"ink": INK, "muted": MUTED, "rule": RULE, "paper": PAPER} | COLOURS


def _files(name: str, figure: StoredFigure) -> str:
    """How to read a figure of the experiment `name`, and links to the files that hold it."""
    files = (figure["svg"], figure["png"], figure["pdf"])
    links = " · ".join(f'<a href="{escape(name)}/{file}">{file}</a>' for file in files)
    return f'{prose(figure["key"])} <span class="files">{links}</span>'


def lead_figure(folder: Path, name: str, figure: StoredFigure, number: int) -> str:
    """A figure on the index: its caption links to the page of its experiment."""
    more = f'From <a href="{escape(page_of(name))}">{escape(name)}</a>.'
    return figure_of(folder, name, figure, number, more)


def figure_of(folder: Path, name: str, figure: StoredFigure, number: int, more: str) -> str:
    """A figure of the experiment `name` with its number and more in its caption."""
    prefix = f"{name}-{figure['svg'].removesuffix('.svg')}"
    svg = _inline_svg(folder / name, figure, f"{prefix}-")
    return (
        f'<figure class="{figure["kind"]}">{svg}<figcaption><b>Figure {number}.</b> '
        f"{more}</figcaption></figure>"
    )


def check_of(check: StoredCheck) -> str:
    """One check: its mark, what it states, the figures that decide, and how sure the check is."""
    mark = badge("shown" if check["shown"] else "not shown")
    sure = (
        f"Fails by chance: {check['chance']:.0e} at most. Catches {prose(check['catches'])}."
        if check["chance"]
        else "Computed; nothing is left to chance."
    )
    statement, evidence = prose(check["statement"]), prose(check["evidence"])
    return (
        f'<li>{mark}<span>{statement}</span><span class="evidence">{evidence}</span><span '
        f'class="evidence">{sure}</span></li>'
    )


PAGE = "report.html"
_TITLE = "What can be learned privately, measured"
_LEAD = (
    "How much can be learned about a population when nobody hands over their data, and how much "
    "when one server is trusted with it? Each experiment takes one answer that theory gives, runs "
    "it, and reports whether the run showed it."
)
_MAP = "map"


def page_of(name: str) -> str:
    """The file of an experiment's page, beside the index."""
    return f"{name}.html"


def _colours() -> str:
    """The colours of the figures as properties of a style sheet, lighter on a dark screen."""
    light = " ".join(f"--{name}: {colour};" for name, colour in COLOURS.items())
    dark = " ".join(
        f"--{name}: color-mix(in srgb, {colour}, white 40%);" for name, colour in COLOURS.items()
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def _page(
    body: str, kind: str, title: str, eyebrow: str, lead: str, contents: Sequence[str]
) -> str:
    """A whole page, of this kind: its title, the line above it, the text below it, the contents."""
    script = _part("report.js")
    digest = hashlib.sha256(script.encode()).digest()
    return Template(_part("report.html")).substitute(
        style=_colours() + _part("report.css"),
        script=script,
        script_digest=base64.b64encode(digest).decode(),
        kind=kind,
        contents="\n".join(f"<li>{each}</li>" for each in contents),
        title=prose(title),
        eyebrow=eyebrow,
        lead=prose(lead),
        body=body,
    )


@dataclass(frozen=True)
class _Part:
    """One chapter's results, in the order of the catalogue."""

    chapter: Chapter
    folder: Path
    results: Mapping[str, Results]

    def lead(self) -> tuple[str, StoredFigure] | None:
        """The experiment and the figure that open the chapter: the first curves of the one named
        for it, else of any, else any figure."""
        names = sorted(self.results, key=lambda name: name != self.chapter.lead)
        figures = [(name, figure) for name in names for figure in self.results[name]["figures"]]
        return min(figures, key=lambda each: each[1]["kind"] != "curves", default=None)

    def siblings(self, here: str) -> list[str]:
        """Links to the pages of the chapter, with their verdicts."""
        links = []
        for name, results in self.results.items():
            current = " aria-current=page" if name == here else ""
            verdict = results["verdict"]
            links.append(
                f'<a href="{escape(page_of(name))}"{current}>{escape(name)}</a> <span '
                f'class="{verdict.replace(" ", "-")}">{SIGNS[verdict]}</span>'
            )
        return links

    def tally(self) -> str:
        """How many of the verdicts are "shown"."""
        verdicts = [results["verdict"] for results in self.results.values()]
        return f"{verdicts.count('shown')} of {len(verdicts)} shown"


def _section(title: str, body: str, unfold: bool = False) -> str:
    """A part of a page below a title that unfolds it."""
    start = "<details class=part open>" if unfold else "<details class=part>"
    return f"{start}<summary><h2>{title}</h2></summary>{body}</details>" if body else ""


def _experiment_page(part: _Part, results: Results) -> str:
    """An experiment's page: its headline, one figure, the verdict; then the details, folded unless
    a check was lost."""
    name, checks = results["name"], results["checks"]
    figures = [
        figure_of(part.folder, name, figure, number, _files(name, figure))
        for number, figure in enumerate(results["figures"], 1)
    ]
    successes = sum(check["shown"] for check in checks)
    verdict = (
        f'<p class="verdict">{badge(results["verdict"])} {successes} of {len(checks)} checks came '
        "out true.</p>"
    )
    claim = (
        f'<div class="claim"><p>{prose(results["claim"])}</p><p '
        f'class="eyebrow">{prose(results["source"])}</p></div>'
    )
    parts = (*figures[:1], verdict, claim, _section("More figures", "".join(figures[1:])))
    chapter = (
        f'<a href="{PAGE}">{_TITLE}</a> · <a '
        f'href="{PAGE}#{part.chapter.name}">{prose(part.chapter.title)}</a> · '
        f"<code>{escape(name)}</code>"
    )
    return _page(
        "\n".join(filter(None, (*parts, *_details(results)))),
        "experiment",
        results["title"],
        chapter,
        results["headline"],
        [f'<a href="{PAGE}">All experiments</a>', *part.siblings(name)],
    )


def _details(results: Results) -> Iterator[str]:
    """The checks, the tables, the notes, and how to repeat the run."""
    checks, tables = results["checks"], results["tables"]
    unfold = results["verdict"] != "shown"
    body = f'<ul class="checks">{"".join(map(check_of, checks))}</ul>'
    yield _section(f"What was checked ({len(checks)})", body, unfold)
    fold = len(tables) > 1
    body = "".join(table_of(table, number, fold) for number, table in enumerate(tables, 1))
    yield _section("Tables", body, not results["figures"])
    notes = "".join(f"<li>{prose(note)}</li>" for note in results["notes"])
    yield _section("Notes", f'<ul class="notes">{notes}</ul>' if notes else "")
    files = [RESULTS, *(table["csv"] for table in tables), *results["certificates"]]
    folder = escape(results["name"])
    links = ", ".join(f'<a href="{folder}/{escape(file)}">{escape(file)}</a>' for file in files)
    body = f'<pre><code>{escape(results["command"])}</code></pre><p class="files">Data: {links}.'
    if results["certificates"]:
        body += " The certificates can be checked with <code>local-dp certify FILE</code>."
    yield _section("To repeat it", f"{body}</p>")


def _line(results: Results) -> str:
    """One experiment on the index: its verdict, with the number of checks that were lost, its title
    and its headline."""
    checks = results["checks"]
    failures = sum(not check["shown"] for check in checks)
    remark = f"{failures} of {len(checks)} checks lost"
    remark = f' <span class="passed">{remark}</span>' if failures else ""
    title = f'<a href="{escape(page_of(results["name"]))}">{prose(results["title"])}</a>'
    return (
        f"<li>{badge(results['verdict'])} {title}{remark}<p "
        f'class="headline">{prose(results["headline"])}</p></li>'
    )


def _opening(part: _Part, numbers: Iterator[int]) -> str:
    """A chapter on the index: what it asks, what was found, one figure."""
    name, title, lead = part.chapter.name, prose(part.chapter.title), part.lead()
    lines = "".join(_line(results) for results in part.results.values())
    figure = lead_figure(part.folder, *lead, next(numbers)) if lead else ""
    return (
        f'<section class="opening" id="{name}" aria-labelledby="{name}-title"><h2 '
        f'id="{name}-title">{title}</h2>'
        f'<p>{prose(part.chapter.summary)}</p><div class="beside">{figure}<ul '
        f'class="found">{lines}</ul></div></section>'
    )


def _index(chapters: Sequence[_Part], missing: Sequence[str]) -> str:
    """The map, and each chapter in short."""
    numbers = itertools.count(1)
    drawing = ""
    for part in chapters:
        for figure in part.results[_MAP]["figures"] if _MAP in part.results else ():
            if figure["kind"] == "regions" and not drawing:
                drawing = lead_figure(part.folder, _MAP, figure, next(numbers))
    body = [
        Template(_part("models.html")).substitute(figure=drawing),
        *(_opening(part, numbers) for part in chapters),
    ]
    checks = [
        check
        for part in chapters
        for results in part.results.values()
        for check in results["checks"]
    ]
    chance = sum(check["chance"] for check in checks)
    body.append(
        f'<p class="sure">{len(checks)} checks. If all claims are true, any of them fails by '
        f"chance with probability {chance:.1g} at most.</p>"
    )
    if missing:
        names = ", ".join(f"<code>{escape(name)}</code>" for name in missing)
        body.append(f'<p class="missing">{badge(NOT_RUN)} {names}</p>')
    contents = ['<a href="#models">The map, in plain words</a>']
    for part in chapters:
        link = f'<a href="#{part.chapter.name}">{prose(part.chapter.title)}</a>'
        contents.append(f"{link} <span>{part.tally()}</span>")
    return _page(
        "\n".join(body),
        "index",
        _TITLE,
        "Local DP, a laboratory of differential privacy",
        _LEAD,
        contents,
    )


def _read(folder: Path) -> Iterator[Results]:
    """The results of a folder: those in the catalogue in its order, then any others."""
    names = {path.parent.name for path in folder.glob(f"*/{RESULTS}")}
    chapters = {chapter.name for chapter in CHAPTERS}
    for name in (*NAMES, *sorted(names.difference(NAMES))):
        results = read_results(folder / name)
        if results is None:
            continue
        if results["chapter"] not in chapters:
            raise InputError(
                f"the results in {folder / name} are an earlier version's; run the experiment again"
            )
        yield results


def build_pages(folder: Path) -> dict[str, str]:
    """The pages of a folder of results by their file names, the index first, then a page for each
    experiment that was run.

    Raises InputError if there are no results, or if they cannot be read.
    """
    make = f"with: local-dp experiment all --quick --out {folder}"
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make one {make}")
    everything = list(_read(folder))
    if not everything:
        raise InputError(f"{folder} holds no results; make some {make}")
    parts = []
    pages = {PAGE: ""}
    for chapter in CHAPTERS:
        own = {each["name"]: each for each in everything if each["chapter"] == chapter.name}
        if own:
            part = _Part(chapter, folder, own)
            parts.append(part)
            pages |= {page_of(name): _experiment_page(part, each) for name, each in own.items()}
    names = {results["name"] for results in everything}
    pages[PAGE] = _index(parts, [name for name in NAMES if name not in names])
    return pages


def _part(name: str) -> str:
    return files("local_dp.experiments.lab").joinpath(name).read_text(encoding="utf-8")


def write_report(folder: Path) -> Path:
    """Writes the pages into the folder; the path of the index. Raises InputError if there are no
    results or a page cannot be written."""
    for name, page in build_pages(folder).items():
        write_text(folder / name, page)
    return folder / PAGE
