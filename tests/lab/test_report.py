"""The report and the figures: complete, escaped, self-contained, and readable in a browser."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.patches import FancyBboxPatch

from experiments.lab.catalogue import NAMES
from experiments.lab.claim import Curve, Figure, Finding, Region, Regions
from experiments.lab.figure_text import alt_text
from experiments.lab.figures import Estimates, _canvas, _draw_curves, _draw_regions, _groups, plot_estimates, save
from experiments.lab.report import badge, build_page, cell, prose, write_report
from experiments.lab.results import file_name, read_results
from experiments.lab.runner import run_experiments
from local_dp.errors import InputError
from tests.support.browser import browser, check_page, needs_chromium

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of the toy experiment and of its wrong twin, and the report."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        run_experiments(["tests.support.toy_experiment", "tests.support.wrong_toy_experiment"], "quick", 1, out)
    write_report(out)
    return out


def test_wrong_protocol_is_not_shown(folder: Path) -> None:
    """A verdict is computed: the twin whose server forgets the bias is "not shown", and so is a finding without checks."""
    right, wrong = (read_results(folder / name) for name in ("toy", "wrong-toy"))
    assert right is not None
    assert wrong is not None
    assert (right["verdict"], wrong["verdict"]) == ("shown", "not shown")
    assert [check["shown"] for check in wrong["checks"]] == [False]
    assert Finding(checks=[]).verdict == "not shown"


class _Page(HTMLParser):
    """What a page holds: its tags, its ids, and whatever it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")
            elif name in ("src", "href", "srcset") and value and not value.startswith(("#", "data:")):
                self.fetched.append(value)


def _parsed(folder: Path) -> _Page:
    page = _Page()
    page.feed((folder / "report.html").read_text())
    return page


def test_page_is_self_contained(folder: Path) -> None:
    """The page has every figure inline, fetches nothing, runs its one script alone, has no id twice, and links only to files that exist."""
    page, text = _parsed(folder), (folder / "report.html").read_text()
    assert page.tags.count("svg") == 6
    assert page.tags.count("script") == 1
    assert page.fetched == []
    assert "url(http" not in text
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).is_file(), link
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in text


def test_page_is_found_through(folder: Path) -> None:
    """The contents lead to every section, every experiment leads back; figures and tables are numbered in order, and every column has its heading."""
    page, text = _parsed(folder), (folder / "report.html").read_text()
    assert page.links[:4] == ["#models", "#verdicts", "#toy", "#wrong-toy"]
    assert page.links.count("#top") == 2
    assert re.findall(r"<figcaption><b>(.*?)</b>", text) == [f"Figure {place}." for place in range(1, 7)]
    assert re.findall(r"<caption><b>(.*?)</b>", text) == ["Table 1.", "Table 2."]
    assert "Markers are measured; solid lines without markers are computed; dashed lines are proven; bands and whiskers are 95\xa0% intervals." in text
    assert '<th scope="row" role="rowheader" data-heading="n" class=number data-value="100"><span>100</span></th>' in text
    assert text.count('scope="col"') == 4 + 2 * 3


def test_page_says_what_was_found(folder: Path) -> None:
    """Verdicts are read as words: shown, not shown, not run; each experiment brings its claim, checks, evidence, command and alternative texts."""
    text = (folder / "report.html").read_text()
    assert text.count("✓ shown") == 4  # in the contents, in the summary, at the heading and at the one check
    assert text.count("✗ not shown") == 4
    assert text.count("– not run") == len(NAMES)
    assert "local-dp experiment wrong-toy --quick --seed 1" in text
    assert "with an error that falls as 1/√n" in text
    assert 'aria-label="Error against n, for $5 &amp; &lt;more&gt;. mean absolute error (logarithmic) against number of clients n' in text


def test_page_escapes_text(folder: Path) -> None:
    """Text of an experiment is text: nothing in a title, claim, check, table, note or figure becomes markup."""
    text = (folder / "report.html").read_text()
    assert text.count("<script") == 1
    assert "A note with &lt;script&gt;alert(1)&lt;/script&gt;." in text
    for raw in ("<friends>", "<within 0.1>", "<against>", "<b>bold", "<more>", " & nothing"):
        assert raw not in text, raw


def test_page_is_repeatable_and_refuses_broken_results(folder: Path, tmp_path: Path) -> None:
    """The same results make the same page; a damaged file and a missing figure are named in one line."""
    assert build_page(folder) == (folder / "report.html").read_text()
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "toy" / "error.svg").unlink()
    with pytest.raises(InputError, match=r"error\.svg is missing; run the experiment again"):
        build_page(tmp_path / "copy")
    (tmp_path / "copy" / "toy" / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"cannot read .*results\.json"):
        build_page(tmp_path / "copy")


def test_cells_and_badges() -> None:
    """Numbers are shown to four digits and in groups of three; exponents are raised; a verdict's mark carries the word."""
    assert [cell(value) for value in (1234567, 0.123456, 28847.3, True, None, "x")] == ["1,234,567", "0.1235", "28,847", "yes", "–", "x"]
    assert prose("2^d < e^(-n/2)^2 & d^3.2.") == "2<sup>d</sup> &lt; e<sup>−n/2</sup><sup>2</sup> &amp; d<sup>3.2</sup>."
    assert prose("e^epsilon at epsilon 0.5, tau^2 +- 1e-05") == "e<sup>ε</sup> at ε\xa0=\xa00.5, τ<sup>2</sup> ± 10<sup>−5</sup>"
    assert badge("not shown") == '<span class="badge not-shown">✗ not shown</span>'


def test_file_names_are_whole() -> None:
    """Signs become words and no word is lost: titles that differ in their last word have different files."""
    title = "Least number of clients that learn every bit in 90 % of the runs, at ε = 1"
    assert file_name(title) == "least-number-of-clients-that-learn-every-bit-in-90-percent-of-the-runs-at-epsilon-1"
    assert file_name("–") == "untitled"


def test_drawings_have_no_date_and_no_chance(tmp_path: Path) -> None:
    """The same figure drawn twice is the same file, and holds no date."""
    figure = Figure(
        "f", "T", "x", "y", [Curve("a", [1, 2, 3], [1.0, 2.0, 4.0], low=[0.5, 1.5, 3.0], high=[1.5, 2.5, 5.0]), Curve("b", [1, 3], [1, 3], "bound")]
    )
    for round in "12":
        save(figure, *(tmp_path / f"{round}.{kind}" for kind in ("svg", "png", "pdf")))
    for kind in ("svg", "png", "pdf"):
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()
    assert "date" not in (tmp_path / "1.svg").read_text().lower()
    assert alt_text(figure) == "T. y against x. a (measured): from 1 at 1 to 4 at 3; b (bound): from 1 at 1 to 3 at 3."


def test_one_module_draws() -> None:
    """Only experiments/figures.py imports matplotlib, and not before something is drawn."""
    drawing = [path.name for path in (ROOT / "experiments").rglob("*.py") if re.search(r"^\s*(from|import) matplotlib", path.read_text(), re.MULTILINE)]
    assert drawing == ["figures.py"]
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, experiments.cli.experiment, experiments.lab.figures; print('matplotlib' in sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout == "False\n"


def test_curves_are_named_in_the_order_they_end() -> None:
    """The key lies beside the data, not among them: one name for each curve, the one that ends highest first, with a sample of its marks."""
    curves = [Curve("low", [1, 20], [1, 9]), Curve("no points", [], [], "theory"), Curve("high", [20, 1], [100, 2], "bound"), Curve("mid", [1], [50], "theory")]
    with _canvas(6, 4, "f") as canvas:
        axes = canvas.add_subplot()
        _draw_curves(axes, Figure("f", "T", "x", "y", curves))
        (legend,) = canvas.legends
        assert [text.get_text() for text in legend.get_texts()] == ["high", "mid", "low", "no points"]
        assert axes.texts[:] == []
        canvas.draw_without_rendering()
        assert legend.get_window_extent().y1 < axes.get_window_extent().y0


def test_a_diagram_fits() -> None:
    """Every line of evidence of a diagram lies inside its region, and the regions inside one another."""
    placed = [("stumps", f"{'measured'}: {'9' * 40}\nproven: 3"), ("points", "proven: 2")]
    figure = Regions("r", "T", [Region("LNI", "one round", placed), Region("LI", "rounds", [("masked", "a\nb\nc")]), Region("CI", "curator", [])])
    with _canvas(6.8, 6, "r") as canvas:
        _draw_regions(canvas, figure)
        axes = canvas.axes[0]
        boxes = [patch.get_bbox() for patch in axes.patches[::2] if isinstance(patch, FancyBboxPatch)]
        heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert all(outer.y0 < inner.y0 and inner.y1 < outer.y1 for inner, outer in pairwise(boxes))
    assert boxes[0].y0 < heights["proven: 2"] < heights["points"] < heights["proven: 3"] < heights["LNI"] < boxes[0].y1
    assert boxes[0].y1 < heights["c"] < heights["LI"] < boxes[1].y1 < heights["CI"] < boxes[2].y1


def test_curves_share_colours_by_subject() -> None:
    """What was measured has the colour of its prediction and its bound, whether a group says so or the labels do; two measured curves never share one."""
    labels = [
        ("A, measured", "measured"),
        ("A, predicted", "theory"),
        ("bound, A", "bound"),
        ("measured", "measured"),
        ("A", "measured"),
        ("e^epsilon", "theory"),
    ]
    curves = [Curve(label, [1], [1], style) for label, style in labels]  # type: ignore[arg-type]
    assert _groups(curves) == [0, 0, 0, 1, 2, 3]
    assert _groups([Curve("one", [1], [1], group="g"), Curve("two", [1], [1], group="g")]) == [0, 0]


def test_plot_estimates(tmp_path: Path) -> None:
    """`plot_estimates` draws PNG and SVG by name, takes any text as a label, and refuses other names and folders that do not exist."""
    shares = Estimates("Shares for $5", "share", "fruit", ["a_$x$^2", "b $"], [0.2, 0.4], [0.1, 0.3], [0.3, 0.5], [0.25, 0.41])
    for kind in ("png", "svg"):
        plot_estimates(shares, tmp_path / f"plot.{kind}")
        assert (tmp_path / f"plot.{kind}").stat().st_size > 5000
    with pytest.raises(InputError, match="give a name that ends in"):
        plot_estimates(shares, tmp_path / "plot.txt")
    with pytest.raises(InputError, match="cannot write the figure"):
        plot_estimates(replace(shares, truth=None), tmp_path / "none" / "plot.png")


@needs_chromium
def test_page_opens_in_a_browser(folder: Path) -> None:
    """Wide and narrow, light and dark: no console error (a script that the policy does not know is one), no horizontal scroll, nothing that axe-core minds."""
    check_page(folder / "report.html")


@needs_chromium
def test_tables_are_sorted_and_stacked_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """A heading sorts its column up, down and back, and says so; at 400 pixels no column is cut off; a script that was changed does not run."""
    numbers = "[...document.querySelector('.sortable').tBodies[0].rows].map(row => Number(row.cells[1].dataset.value))"
    heading = "document.querySelectorAll('.sortable thead th')[1]"
    with browser() as tab:
        tab.appear(400, "light")
        tab.go((folder / "report.html").as_uri())
        drawn = tab.evaluate(numbers)
        seen = []
        for _ in range(3):
            tab.evaluate(f"{heading}.querySelector('button').click()")
            seen.append((tab.evaluate(f"{heading}.getAttribute('aria-sort')"), tab.evaluate(numbers)))
        assert seen == [("ascending", sorted(drawn)), ("descending", sorted(drawn, reverse=True)), (None, drawn)]
        assert tab.evaluate("[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= each.clientWidth)")
        assert not tab.errors
        changed = tmp_path / "changed.html"
        changed.write_text((folder / "report.html").read_text().replace("<script>", "<script>document.title = 'changed';"))
        tab.go(changed.as_uri())
        assert tab.evaluate("document.title") != "changed"
        assert "Content Security Policy" in " ".join(tab.errors)
        assert tab.evaluate("document.querySelectorAll('.sortable button').length") == 0
