"""The report and the figures: complete, escaped, self-contained, readable in a browser, and of
their tables."""

import base64
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import FancyBboxPatch

from local_dp.errors import InputError
from local_dp.experiments.lab import figures
from local_dp.experiments.lab.catalogue import NAMES, load, module_of
from local_dp.experiments.lab.chapters import CHAPTERS
from local_dp.experiments.lab.figure_text import alt_text
from local_dp.experiments.lab.figures import (
    Estimates,
    _canvas,
    _draw_curves,
    _draw_regions,
    plot_estimates,
)
from local_dp.experiments.lab.report import badge, build_pages, cell, prose, write_report
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.lab.shapes import (
    Curve,
    Figure,
    Finding,
    Region,
    Regions,
    table_of,
    tabulate,
)
from local_dp.experiments.lab.store import file_name
from local_dp.experiments.lab.style import (
    DEFAULT,
    INK,
    LIMIT,
    PALETTE,
    Drawing,
    groups,
    looks,
    model_of,
)
from tests.support.runs.browser import browser, faults, needs_chromium

ROOT = Path(__file__).parents[2]
INDEX, PAGE, OTHER = PAGES = "report.html", "toy.html", "wrong-toy.html"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of the toy experiment and of its wrong twin, and the report."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        run_experiments(
            ["tests.support.inputs.toy_experiment", "tests.support.inputs.wrong_toy_experiment"],
            "quick",
            1,
            out,
            workers=1,
        )
    write_report(out)
    return out


class _Page(HTMLParser):
    """What a page holds: its tags, its ids, and whatever it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")
            elif (
                name in ("src", "href", "srcset") and value and not value.startswith(("#", "data:"))
            ):
                self.resources.append(value)


def _parse(folder: Path, name: str) -> _Page:
    page = _Page()
    page.feed((folder / name).read_text())
    return page


def test_there_is_a_page_for_each_experiment_that_was_run(folder: Path) -> None:
    """The index leads to each chapter and experiment, a page to the others of its chapter and back;
    figures are numbered; details are folded."""
    assert sorted(path.name for path in folder.glob("*.html")) == [INDEX, PAGE, OTHER]
    assert {load(module_of(name)).chapter for name in NAMES} <= set(CHAPTERS)
    assert len({chapter.name for chapter in CHAPTERS}) == len(CHAPTERS)
    assert _parse(folder, INDEX).links[:2] == ["#models", "#local-model"]
    assert {PAGE, OTHER} <= set(_parse(folder, INDEX).links)
    page, text = _parse(folder, PAGE), (folder / PAGE).read_text()
    assert page.links[:5] == [INDEX, PAGE, OTHER, INDEX, f"{INDEX}#local-model"]
    assert text.index("<figure") < text.index('class="verdict"') < text.index("<details")
    assert re.findall(r"<figcaption><b>(.*?)</b>", text) == [
        f"Figure {place}." for place in range(1, 4)
    ]
    assert re.findall(r"<details class=part( open|)>", text) == ["", "", "", "", ""]
    # a lost check is in sight
    assert (
        "<details class=part open><summary><h2>What was checked (1)" in (folder / OTHER).read_text()
    )
    assert (
        "Markers are measured; lines without markers are computed; dashed lines are proven; bands "
        "and whiskers are 95\xa0% intervals."
    ) in text
    assert (
        '<th scope="row" role="rowheader" data-heading="n" class=number '
        'data-value="100"><span>100</span></th>'
    ) in text
    assert text.count('scope="col"') == 3


@pytest.mark.parametrize(("name", "figures"), [(INDEX, 1), (PAGE, 3)])
def test_pages_are_self_contained(folder: Path, name: str, figures: int) -> None:
    """A page has every figure inline, fetches nothing, runs its one script alone, has no id twice,
    and links only to what exists."""
    page, text = _parse(folder, name), (folder / name).read_text()
    assert (page.tags.count("svg"), page.tags.count("script"), page.resources) == (figures, 1, [])
    assert "url(http" not in text
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        file, _, place = link.partition("#")
        assert (folder / (file or name)).is_file(), link
        assert not place or place in _parse(folder, file or name).ids, link
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src "
        f"'sha256-{digest}'"
    ) in text


def test_pages_say_what_was_found(folder: Path) -> None:
    """Verdicts are read as words: shown, not shown, not run; an experiment brings its headline,
    claim, checks, evidence, command and alternative texts."""
    index, text, wrong = ((folder / name).read_text() for name in PAGES)
    # in the contents twice, as the verdict and at the one check
    assert (text.count("✓ shown"), text.count("✗ not shown")) == (
        3,
        1,
    )
    assert index.count("✓ shown") == index.count("✗ not shown") == 1
    assert "1 of 2 shown" in index
    assert Finding(checks=[], headline="").verdict == "not shown"
    assert index.count("– not run") == 1
    assert all(f"<code>{name}</code>" in index for name in NAMES)
    headline = re.search(r"With 1,600 people the error is (0\.\d+)", index)
    assert headline is not None
    assert headline[0] in text
    assert all(
        part in wrong
        for part in (
            "local-dp experiment wrong-toy --quick --seed 1",
            "with an error that falls as 1/√n",
        )
    )
    assert (
        'aria-label="Error against n, for $5 &amp; &lt;more&gt;. mean absolute error '
        "(logarithmic) against number of clients n"
    ) in text


@pytest.mark.parametrize("name", PAGES)
def test_pages_escape_text(folder: Path, name: str) -> None:
    """Text of an experiment is text: nothing in a title, claim, headline, check, table, note or
    figure becomes markup."""
    text = (folder / name).read_text()
    assert (
        text.count("<script"),
        "A note with &lt;script&gt;alert(1)&lt;/script&gt;." in text,
    ) == (1, name != INDEX)
    assert "&lt;within $5&gt;" in text
    for raw in ("<friends>", "<within", "<against>", "<b>bold", "<more>", " & nothing"):
        assert raw not in text, raw


def test_pages_are_repeatable_and_refuse_broken_results(folder: Path, tmp_path: Path) -> None:
    """The same results make the same pages; a damaged file, a missing figure and results without a
    headline are named in one line."""
    assert build_pages(folder) == {name: (folder / name).read_text() for name in PAGES}
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "toy" / "error.svg").unlink()
    with pytest.raises(InputError, match=r"error\.svg is missing; run the experiment again"):
        build_pages(tmp_path / "copy")
    path = tmp_path / "copy" / "toy" / "results.json"
    for missing in ("chapter", "headline"):
        results = json.loads((folder / "toy" / "results.json").read_text())
        del results[missing]
        path.write_text(json.dumps(results))
        with pytest.raises(InputError, match=r"an earlier version's.*; run the experiment again"):
            build_pages(tmp_path / "copy")
    path.write_text("{")
    with pytest.raises(InputError, match=r"cannot read .*results\.json"):
        build_pages(tmp_path / "copy")


def test_cells_badges_and_file_names() -> None:
    assert [cell(value) for value in (1234567, 0.123456, 28847.3, True, None, "x")] == [
        "1,234,567",
        "0.1235",
        "28,847",
        "yes",
        "–",
        "x",
    ]
    assert (
        prose("2^d < e^(-n/2)^2 & d^3.2.")
        == "2<sup>d</sup> &lt; e<sup>−n/2</sup><sup>2</sup> &amp; d<sup>3.2</sup>."
    )
    assert (
        prose("e^epsilon at epsilon 0.5, tau^2 +- 1e-05")
        == "e<sup>ε</sup> at ε\xa0=\xa00.5, τ<sup>2</sup> ± 10<sup>−5</sup>"
    )
    assert badge("not shown") == '<span class="badge not-shown">✗ not shown</span>'
    title = "Least number of clients that learn every bit in 90 % of the runs, at ε = 1"
    assert (
        file_name(title)
        == "least-number-of-clients-that-learn-every-bit-in-90-percent-of-the-runs-at-epsilon-1"
    )
    assert file_name("–") == "untitled"


def test_a_figure_is_told_in_words() -> None:
    figure = Figure(
        "f",
        "T",
        "x",
        "y",
        [
            Curve("a", [1, 2, 3], [1.0, 2.0, 4.0]),
            Curve("b", [1, 3], [1, 3], "bound"),
        ],
    )
    assert (
        alt_text(figure)
        == "T. y against x. a (measured): from 1 at 1 to 4 at 3; b (bound): from 1 at 1 to 3 at 3."
    )


def test_one_module_draws() -> None:
    drawing = [
        path.name
        for path in (ROOT / "experiments").rglob("*.py")
        if re.search(r"^\s*(from|import) matplotlib", path.read_text(), re.MULTILINE)
    ]
    assert drawing == ["figures.py"]
    program = (
        "import sys, local_dp.cli.inspect.experiment, local_dp.experiments.lab.figures; assert "
        "'matplotlib' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
    )


def test_curves_are_named_in_the_order_they_end() -> None:
    """The key lies beside the data and within the drawing: one name for each curve, the one that
    ends highest first."""
    curves = [
        Curve("low", [1, 20], [1, 9]),
        Curve("no points", [], [], "theory"),
        Curve("high", [20, 1], [100, 2], "bound"),
        Curve("mid", [1], [50], "theory"),
    ]
    with _canvas(Drawing(6), 4, "f") as canvas:
        _draw_curves(canvas, Figure("f", "T", "x", "y", curves))
        (axes,), (legend,) = canvas.axes, canvas.legends
        assert [text.get_text() for text in legend.get_texts()] == [
            "high",
            "mid",
            "low",
            "no points",
        ]
        assert axes.texts[:] == []
        canvas.draw_without_rendering()
        assert legend.get_window_extent().y1 < axes.get_window_extent().y0
    curves = [
        Curve(f"{number} shared rows, both errors 0.05: measured as they are", [1], [1])
        for number in (16, 40)
    ]
    with _canvas(DEFAULT, 4, "f") as canvas:
        _draw_curves(canvas, Figure("f", "T", "x", "y", curves))
        canvas.draw_without_rendering()
        key = canvas.legends[0].get_window_extent()
        assert 0 <= key.x0 < key.x1 <= canvas.bbox.x1


def test_a_diagram_fits() -> None:
    items = [("stumps", f"{'measured'}: {'9' * 40}\nproven: 3"), ("points", "proven: 2")]
    figure = Regions(
        "r",
        "T",
        [
            Region("LNI", "one round", items),
            Region("LI", "rounds", [("masked", "a\nb\nc")]),
            Region("CI", "curator", []),
        ],
    )
    with _canvas(DEFAULT, 6, "r") as canvas:
        _draw_regions(canvas, figure)
        axes = canvas.axes[0]
        boxes = [
            patch.get_bbox() for patch in axes.patches[::2] if isinstance(patch, FancyBboxPatch)
        ]
        heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert all(outer.y0 < inner.y0 and inner.y1 < outer.y1 for inner, outer in pairwise(boxes))
    assert (
        boxes[0].y0
        < heights["proven: 2"]
        < heights["points"]
        < heights["proven: 3"]
        < heights["LNI"]
        < boxes[0].y1
    )
    assert boxes[0].y1 < heights["c"] < heights["LI"] < boxes[1].y1 < heights["CI"] < boxes[2].y1


def test_curves_share_colours_by_subject() -> None:
    """What was measured has the colour of its prediction and its bound, whether a group says so or
    the labels do; two measured curves never share one."""
    styles = {
        "A, measured": "measured",
        "A, predicted": "theory",
        "bound, A": "bound",
        "measured": "measured",
        "A": "measured",
        "e^epsilon": "theory",
    }
    curves = [Curve(label, [1], [1], style) for label, style in styles.items()]  # type: ignore[arg-type]
    assert groups(curves) == [0, 0, 0, 1, 2, 3]
    assert groups([Curve("one", [1], [1], group="g"), Curve("two", [1], [1], group="g")]) == [0, 0]


def coloured(figure: Figure, parts: tuple[str, ...] = ()) -> set[tuple[str, str, bool]]:
    """The colours, markers and fillings of the series of a figure that have a colour."""
    return {
        (each.colour, each.marker, each.hollow) for each in looks(figure, parts) if each.coloured
    }


def test_no_figure_has_more_than_eight_coloured_series() -> None:
    """Of 58 series the first eight have a colour, or the first eight of those that are named; a
    limit and the others are grey. No two look alike."""
    curves = [Curve(f"way {place:02}", [1, 2], [place + 1, place + 2]) for place in range(58)]
    for count in (1, 8, 9, 58):
        figure = Figure(
            "f", "T", "x", "y", [*curves[:count], Curve("proven limit", [1, 2], [1, 1], "bound")]
        )
        assert len(coloured(figure)) == min(count, 8)
        assert [each.colour for each in looks(figure)][count:] == [LIMIT]
    assert [
        place for place, each in enumerate(looks(figure, ("57", "way 3"))) if each.coloured
    ] == [*range(30, 38)]
    assert [place for place, each in enumerate(looks(figure, ("57",))) if each.coloured] == [57]
    with pytest.raises(InputError, match="no series has 'x' in its name"):
        looks(figure, ("x",))


def test_a_colour_is_a_model_of_computation() -> None:
    """By the words of a curve's name, else by its figure's model; shades of different models
    differ. A curve that another one hides is drawn wider."""
    names = {
        "trusted curator, epsilon 1": "curator",
        "parity, no curator": "interactive",
        "two rounds, hashing": "interactive",
        "one round": "one-round",
    }
    names |= {
        "shuffled, one report": "shuffled",
        "no privacy": "plain",
        "local, interactive": "interactive",
        "local, non-interactive": "one-round",
        "MWEM, concentrated": "given",
    }
    assert {name: model_of(name, "given") for name in names} == names
    shades = [shade for model in PALETTE.values() for shade in model]
    assert len(set(shades)) == len(shades)
    pair = [Curve(name, [1, 2], [0.5, 1.0]) for name in ("believed", "checked")]
    assert [
        (each.colour, each.under) for each in looks(Figure("f", "T", "x", "y", pair, model="plain"))
    ] == [(INK, True), (PALETTE["plain"][1], False)]


def test_plot_estimates(tmp_path: Path) -> None:
    """`plot_estimates` draws PNG and SVG by name, takes any text as a label, and refuses other
    names and folders that do not exist."""
    shares = Estimates(
        "Shares for $5",
        "share",
        "fruit",
        ["a_$x$^2", "b $"],
        [0.2, 0.4],
        [0.1, 0.3],
        [0.3, 0.5],
        [0.25, 0.41],
    )
    for kind in ("png", "svg"):
        plot_estimates(shares, tmp_path / f"plot.{kind}")
        assert (tmp_path / f"plot.{kind}").stat().st_size > 5000
    with pytest.raises(InputError, match="not supported"):
        plot_estimates(shares, tmp_path / "plot.txt")
    with pytest.raises(InputError, match="cannot write the figure"):
        plot_estimates(replace(shares, truth=None), tmp_path / "none" / "plot.png")


def test_an_open_end_is_drawn_beyond_the_truth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its bar goes to an arrow beyond every drawn number; a closed end stays where it is, and an
    unknown interval has no bar."""
    drawings: list[Any] = []
    monkeypatch.setattr(figures, "_write", lambda canvas, path: drawings.append(canvas.axes[0]))
    plot_estimates(
        Estimates(
            "t",
            "x",
            "",
            ["a", "b", "c"],
            [2.0, 3.0, 4.0],
            [-math.inf, 2.5, math.nan],
            [2.5, math.inf, math.nan],
            [1.0, 9.0, 4.0],
        ),
        tmp_path,
    )
    bars = [[end[0] for end in bar] for bar in drawings[0].collections[0].get_segments()]
    arrows = {
        line.get_marker(): line.get_xdata()[~np.isnan(line.get_xdata())].tolist()
        for line in drawings[0].lines
    }
    assert bars[0][0] < 1.0
    assert bars[1][1] > 9.0
    assert (bars[0][1], bars[1][0], arrows["<"], arrows[">"]) == (
        2.5,
        2.5,
        [bars[0][0]],
        [bars[1][1]],
    )


@pytest.mark.long
@needs_chromium
def test_pages_open_in_a_browser(folder: Path) -> None:
    """Wide and narrow, light and dark: no console error (a script that the policy does not know is
    one), no horizontal scroll, nothing that axe-core minds."""
    with browser() as tab:
        assert [fault for name in PAGES for fault in faults(tab, folder / name)] == []


@needs_chromium
def test_tables_are_sorted_and_stacked_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """A heading sorts its column up, down and back, and says so; at 400 pixels no column is cut
    off; a script that was changed does not run."""
    numbers = (
        "[...document.querySelector('.sortable').tBodies[0].rows].map(row => "
        "Number(row.cells[1].dataset.value))"
    )
    heading = "document.querySelectorAll('.sortable thead th')[1]"
    with browser() as tab:
        tab.appear(400, "light")
        tab.go((folder / PAGE).as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        order = tab.evaluate(numbers)
        states = []
        for _ in range(3):
            tab.evaluate(f"{heading}.querySelector('button').click()")
            states.append(
                (tab.evaluate(f"{heading}.getAttribute('aria-sort')"), tab.evaluate(numbers))
            )
        assert states == [
            ("ascending", sorted(order)),
            ("descending", sorted(order, reverse=True)),
            (None, order),
        ]
        assert tab.evaluate(
            "[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= "
            "each.clientWidth)"
        )
        assert not tab.errors
        copy = tmp_path / "changed.html"
        copy.write_text(
            (folder / PAGE).read_text().replace("<script>", "<script>document.title = 'changed';")
        )
        tab.go(copy.as_uri())
        assert tab.evaluate("document.title") != "changed"
        assert "Content Security Policy" in " ".join(tab.errors)
        assert tab.evaluate("document.querySelectorAll('.sortable button').length") == 0


TABLE = tabulate(
    "counts",
    "who | d | n | low | high",
    [("one", 4, 20, 18, 23), ("one", 2, 10, 9, 11), ("two", 2, 5, None, None)],
)


def test_a_figure_names_columns_of_its_table() -> None:
    """A curve for each name, in the order of x; a row without its number is left out, and so is a
    curve without a point."""
    assert TABLE.curves("who | d | n | low | high") == [
        Curve("one", (2, 4), (10, 20), "measured", (9, 18), (11, 23))
    ]
    assert [each.label for each in TABLE.curves("who | d | n")] == ["one", "two"]
    assert TABLE.curves("who | d | n", "two", "three", style="bound") == [
        Curve("two", (2,), (5,), "bound")
    ]
    assert TABLE.where("d", 2).curves("who | n | d", "one", group=True) == [
        Curve("one", (10,), (2,), group="one")
    ]
    with pytest.raises(ValueError, match="not in tuple"):
        TABLE.curves("who | d | clients")


def test_a_table_names_fields_of_its_rows() -> None:
    """The first of several objects that has a field gives it; a field of a field, a place of it and
    digits are named too."""
    table = table_of(
        "t",
        "x_label | of rows = rows.0.1 | log_y = log_y : 0",
        [(Figure("f", "f", "x", "y", [], log_y=True), TABLE)],
    )
    assert (table.columns, table.rows) == (("x_label", "of rows", "log_y"), [("x", 4, 1)])
    with pytest.raises(AttributeError):
        table_of("t", "clients", [TABLE])
