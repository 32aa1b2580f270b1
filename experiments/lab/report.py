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
from typing import Any, Literal

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
    named = f' data-heading="{escape(typeset(heading))}"' + " class=number" * numeric
    if isinstance(value, int | float) and not isinstance(value, bool):
        named += f' data-value="{value!r}"'
    tag, role = ('th scope="row"', "rowheader") if place == 0 else ("td", "cell")
    return f'<{tag} role="{role}"{named}><span>{prose(cell(value))}</span></{tag[:2]}>'


def table_of(table: StoredTable, number: int, folded: bool) -> str:
    """A table under its title, which unfolds it; it scrolls inside its frame, should it be wider
    than the page.

    Its roles are spelt out, for they are lost where rows become blocks.
    """
    columns, rows = table["columns"], table["rows"]
    numeric = [
        bool(rows)
        and all(isinstance(row[place], int | float) or row[place] is None for row in rows)
        for place in range(len(columns))
    ]
    kinds = list(zip(columns, numeric, strict=True))
    head = "".join(
        f'<th scope="col" role="columnheader"{" class=number" * number}>{prose(name)}</th>'
        for name, number in kinds
    )
    body = "\n".join(
        '<tr role="row">'
        + "".join(_marked_up(value, place, kinds[place]) for place, value in enumerate(row))
        + "</tr>"
        for row in rows
    )
    title, label = prose(table["title"]), escape(typeset(table["title"]))
    summary = (
        f'<summary><b>Table {number}.</b> {title} <span class="rows">({len(rows)} '
        f"{'row' if len(rows) == 1 else 'rows'})</span></summary>"
    )
    return (
        f'<details{"" if folded else " open"}>{summary}<div class="scroll" tabindex="0" '
        f'role="region" aria-label="{label}">'
        f'<table class="sortable" role="table" aria-label="{label}"><thead role="rowgroup"><tr '
        f'role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{body}</tbody></table></div></details>'
    )


_DRAWN: tuple[Literal["svg", "png", "pdf"], ...] = ("svg", "png", "pdf")


def _inline_svg(folder: Path, figure: StoredFigure, prefix: str) -> str:
    """A drawing as part of the page: names made unique, colours handed to the page's style sheet,
    which has a light and a dark set."""
    svg = drawing(
        folder, figure["svg"], prefix, f' role="img" aria-label="{escape(typeset(figure["alt"]))}"'
    )
    for colour, name in (
        {colour: name for name, colour in COLOURS.items()}
        | {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper"}
    ).items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def figure_of(folder: Path, name: str, figure: StoredFigure, number: int) -> str:
    """A figure of the experiment `name`, with how to read it and the files that hold it."""
    links = " · ".join(
        f'<a href="{escape(name)}/{figure[kind]}">{figure[kind]}</a>' for kind in _DRAWN
    )
    return _captioned(
        folder, name, figure, number, f'{prose(figure["key"])} <span class="files">{links}</span>'
    )


def lead_figure(folder: Path, name: str, figure: StoredFigure, number: int) -> str:
    """A figure on the index: its caption links to the page of its experiment."""
    return _captioned(
        folder, name, figure, number, f'From <a href="{escape(page_of(name))}">{escape(name)}</a>.'
    )


def _captioned(folder: Path, name: str, figure: StoredFigure, number: int, more: str) -> str:
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
    light, dark = (
        (
            ":root { "
            f"{' '.join(f'--{name}: {shade.format(colour)};' for name, colour in COLOURS.items())} "
            "}"
        )
        for shade in _SHADES
    )
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n"


_SHADES = ("{}", "color-mix(in srgb, {}, white 40%)")


def _page(
    body: str, kind: str, title: str, eyebrow: str, lead: str, contents: Sequence[str]
) -> str:
    """A whole page, of this kind: its title, the line above it, the text below it, the contents."""
    script = _part("report.js")
    return Template(_part("report.html")).substitute(
        style=_colours() + _part("report.css"),
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
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
    found: Mapping[str, Results]

    def lead(self) -> tuple[str, StoredFigure] | None:
        """The experiment and the figure that open the chapter: the first curves of the one named
        for it, else of any, else any figure."""
        names = sorted(self.found, key=lambda name: name != self.chapter.lead)
        figures = [(name, figure) for name in names for figure in self.found[name]["figures"]]
        return min(figures, key=lambda each: each[1]["kind"] != "curves", default=None)

    def siblings(self, here: str) -> list[str]:
        """Links to the pages of the chapter, with their verdicts."""
        links = []
        for name, results in self.found.items():
            current = " aria-current=page" if name == here else ""
            verdict = results["verdict"]
            links.append(
                f'<a href="{escape(page_of(name))}"{current}>{escape(name)}</a> <span '
                f'class="{verdict.replace(" ", "-")}">{SIGNS[verdict]}</span>'
            )
        return links

    def tally(self) -> str:
        """How many of the verdicts are "shown"."""
        return (
            f"{sum(results['verdict'] == 'shown' for results in self.found.values())} of "
            f"{len(self.found)} shown"
        )


def _folded(title: str, body: str, opened: bool = False) -> str:
    """A part of a page below a title that unfolds it."""
    return (
        f"<details class=part{' open' * opened}><summary><h2>{title}</h2></summary>{body}</details>"
        if body
        else ""
    )


def _experiment(told: _Part, results: Results) -> str:
    """An experiment's page: its headline, one figure, the verdict; then the details, folded unless
    a check was lost."""
    name, folder = results["name"], told.folder
    checks, tables, figures = results["checks"], results["tables"], results["figures"]
    files = [RESULTS, *(table["csv"] for table in tables), *results["certificates"]]
    notes = "".join(f"<li>{prose(note)}</li>" for note in results["notes"])
    links = ", ".join(
        f'<a href="{escape(name)}/{escape(file)}">{escape(file)}</a>' for file in files
    )
    checked = (
        " The certificates can be checked with <code>local-dp certify FILE</code>."
        if results["certificates"]
        else ""
    )
    first, *more = [
        figure_of(folder, name, figure, number) for number, figure in enumerate(figures, 1)
    ] or [""]
    parts = (
        _folded("More figures", "".join(more)),
        _folded(
            f"What was checked ({len(checks)})",
            f'<ul class="checks">{"".join(map(check_of, checks))}</ul>',
            results["verdict"] != "shown",
        ),
        _folded(
            "Tables",
            "".join(
                table_of(table, number, len(tables) > 1) for number, table in enumerate(tables, 1)
            ),
            not figures,
        ),
        _folded("Notes", f'<ul class="notes">{notes}</ul>' if notes else ""),
        _folded(
            "To repeat it",
            (
                f'<pre><code>{escape(results["command"])}</code></pre><p class="files">Data: '
                f"{links}.{checked}</p>"
            ),
        ),
    )
    lost = sum(not check["shown"] for check in checks)
    verdict = (
        f'<p class="verdict">{badge(results["verdict"])} {len(checks) - lost} of {len(checks)} '
        "checks came out true.</p>"
    )
    claim = (
        f'<div class="claim"><p>{prose(results["claim"])}</p><p '
        f'class="eyebrow">{prose(results["source"])}</p></div>'
    )
    body = "\n".join(filter(None, [first, verdict, claim, *parts]))
    chapter = (
        f'<a href="{PAGE}">{_TITLE}</a> · <a '
        f'href="{PAGE}#{told.chapter.name}">{prose(told.chapter.title)}</a> · '
        f"<code>{escape(name)}</code>"
    )
    return _page(
        body,
        "experiment",
        results["title"],
        chapter,
        results["headline"],
        [f'<a href="{PAGE}">All experiments</a>', *told.siblings(name)],
    )


def _line(results: Results) -> str:
    """One experiment on the index: its verdict, with the number of checks that were lost, its title
    and its headline."""
    lost = sum(not check["shown"] for check in results["checks"])
    passed = (
        f' <span class="passed">{lost} of {len(results["checks"])} checks lost</span>'
        if lost
        else ""
    )
    title = f'<a href="{escape(page_of(results["name"]))}">{prose(results["title"])}</a>'
    return (
        f"<li>{badge(results['verdict'])} {title}{passed}<p "
        f'class="headline">{prose(results["headline"])}</p></li>'
    )


def _opening(told: _Part, numbers: Iterator[int]) -> str:
    """A chapter on the index: what it asks, what was found, one figure."""
    name, title, lead = told.chapter.name, prose(told.chapter.title), told.lead()
    lines = "".join(map(_line, told.found.values()))
    figure = lead_figure(told.folder, *lead, next(numbers)) if lead else ""
    return (
        f'<section class="opening" id="{name}" aria-labelledby="{name}-title"><h2 '
        f'id="{name}-title">{title}</h2>'
        f'<p>{prose(told.chapter.summary)}</p><div class="beside">{figure}<ul '
        f'class="found">{lines}</ul></div></section>'
    )


def _index(chapters: Sequence[_Part], missing: Sequence[str]) -> str:
    """The map, and each chapter in short."""
    numbers = itertools.count(1)
    drawn = [
        (told, figure)
        for told in chapters
        if _MAP in told.found
        for figure in told.found[_MAP]["figures"]
        if figure["kind"] == "regions"
    ]
    figure = "".join(
        lead_figure(told.folder, _MAP, figure, next(numbers)) for told, figure in drawn[:1]
    )
    body = [
        Template(_part("models.html")).substitute(figure=figure),
        *(_opening(told, numbers) for told in chapters),
    ]
    checks = [
        check for told in chapters for results in told.found.values() for check in results["checks"]
    ]
    chance = sum(check["chance"] for check in checks)
    body.append(
        f'<p class="sure">{len(checks)} checks. If all claims are true, any of them fails by '
        f"chance with probability {chance:.1g} at most.</p>"
    )
    if missing:
        body.append(
            f'<p class="missing">{badge(NOT_RUN)} '
            f"{', '.join(f'<code>{escape(name)}</code>' for name in missing)}</p>"
        )
    contents = ['<a href="#models">The map, in plain words</a>']
    contents += [
        (
            f'<a href="#{told.chapter.name}">{prose(told.chapter.title)}</a> '
            f"<span>{told.tally()}</span>"
        )
        for told in chapters
    ]
    return _page(
        "\n".join(body),
        "index",
        _TITLE,
        "Local DP, a laboratory of differential privacy",
        _LEAD,
        contents,
    )


def _read(folder: Path, names: Sequence[str]) -> Iterator[Results]:
    """The results of a folder: the experiments called `names` in this order, then any others."""
    others = sorted(
        path.parent.name for path in folder.glob(f"*/{RESULTS}") if path.parent.name not in names
    )
    known = {chapter.name for chapter in CHAPTERS}
    for name in (*names, *others):
        if (results := read_results(folder / name)) is not None:
            if results["chapter"] not in known:
                raise InputError(
                    f"the results in {folder / name} are an earlier version's; run the experiment "
                    "again"
                )
            yield results


def build_pages(folder: Path, names: Sequence[str] = NAMES) -> dict[str, str]:
    """The pages of a folder of results by their file names, the index first, then a page for each
    experiment that was run.

    Raises InputError if there are no results, or if they cannot be read.
    """
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; make one with: local-dp experiment all --quick --out "
            f"{folder}"
        )
    found = {results["name"]: results for results in _read(folder, names)}
    if not found:
        raise InputError(
            f"{folder} holds no results; make some with: local-dp experiment all --quick --out "
            f"{folder}"
        )
    told = [
        _Part(
            chapter,
            folder,
            {name: each for name, each in found.items() if each["chapter"] == chapter.name},
        )
        for chapter in CHAPTERS
    ]
    told = [each for each in told if each.found]
    pages = {
        page_of(name): _experiment(each, results)
        for each in told
        for name, results in each.found.items()
    }
    return {PAGE: "", **pages} | {PAGE: _index(told, [name for name in names if name not in found])}


def _part(name: str) -> str:
    return files("local_dp.experiments.lab").joinpath(name).read_text(encoding="utf-8")


def write_report(folder: Path) -> Path:
    """Writes the pages into the folder; the path of the index. Raises InputError if there are no
    results or a page cannot be written."""
    for name, page in build_pages(folder).items():
        write_text(folder / name, page)
    return folder / PAGE
