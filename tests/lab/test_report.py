"""The report and the figures: complete, escaped, self-contained, and readable in a browser."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.text import Annotation

from experiments.lab.claim import Curve, Figure, Finding
from experiments.lab.figure_text import alt_text
from experiments.lab.figures import _canvas, _draw_curves, _groups, _spread, plot_estimates, save
from experiments.lab.report import badge, build_page, cell, prose, write_report
from experiments.lab.results import read_results
from experiments.lab.runner import run_experiments
from local_dp.errors import InputError

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
    """The page has every figure inline, runs no script, fetches nothing, has no id twice, and links only to files that exist."""
    page = _parsed(folder)
    assert page.tags.count("svg") == 6
    assert "script" not in page.tags
    assert page.fetched == []
    assert "url(http" not in (folder / "report.html").read_text()
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).is_file(), link


def test_page_says_what_was_found(folder: Path) -> None:
    """Verdicts are read as words: shown, not shown, not run; each experiment brings its claim, checks, evidence, command and alternative texts."""
    text = (folder / "report.html").read_text()
    assert text.count("✓ shown") == 3  # in the summary, at the heading and at the one check
    assert text.count("✗ not shown") == 3
    assert text.count("– not run") == 10
    assert "local-dp experiment wrong-toy --quick --seed 1" in text
    assert "with an error that falls as 1/√n" in text
    assert 'aria-label="Error against n, for $5 &amp; &lt;more&gt;. mean absolute error (logarithmic) against number of clients n' in text


def test_page_escapes_text(folder: Path) -> None:
    """Text of an experiment is text: nothing in a title, claim, check, table, note or figure becomes markup."""
    text = (folder / "report.html").read_text()
    assert "<script" not in text
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
    assert badge("not shown") == '<span class="badge not-shown">✗ not shown</span>'


def test_drawings_have_no_date_and_no_chance(tmp_path: Path) -> None:
    """The same figure drawn twice is the same file, and holds no date."""
    figure = Figure(
        "f", "T", "x", "y", [Curve("a", [1, 2, 3], [1.0, 2.0, 4.0], low=[0.5, 1.5, 3.0], high=[1.5, 2.5, 5.0]), Curve("b", [1, 3], [1, 3], "bound")]
    )
    for round in "12":
        save(figure, tmp_path / f"{round}.svg", tmp_path / f"{round}.png")
    for kind in ("svg", "png"):
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


def test_labels_do_not_meet() -> None:
    """Direct labels are moved apart, keep their order and stay beside the axes."""
    heights = [0.1, 0.2, 0.1, 0.1]
    at = _spread([0.98, 0.95, 0.02, 0.97], heights)
    order = sorted(range(4), key=lambda place: at[place])
    assert order == [2, 1, 3, 0]
    for lower, upper in pairwise(order):
        assert at[upper] - at[lower] >= (heights[upper] + heights[lower]) / 2 - 1e-12
    assert at[2] - 0.05 >= 0
    assert at[0] + 0.05 <= 1


def test_labels_stand_at_their_curves() -> None:
    """The place a label points to is where the curve ends, on linear and on logarithmic axes."""
    for log in (False, True):
        figure = Figure("f", "T", "x", "y", [Curve("low", range(1, 21), range(1, 21)), Curve("high", [1, 20], [2, 100], "bound")], log_y=log)
        with _canvas(6, 4, "f") as canvas:
            axes = canvas.add_subplot()
            _draw_curves(axes, figure)
            canvas.draw_without_rendering()
            pointed = [text.xy[1] for text in axes.texts if isinstance(text, Annotation)]
            expected = [axes.transAxes.inverted().transform(axes.transData.transform((20, y)))[1] for y in (20, 100)]
        assert pointed == pytest.approx(expected)


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
    rows = (["a_$x$^2", "b $"], [0.2, 0.4], [0.1, 0.3], [0.3, 0.5])
    for kind in ("png", "svg"):
        plot_estimates("Shares for $5", *rows, truth=[0.25, 0.41], path=tmp_path / f"plot.{kind}")
        assert (tmp_path / f"plot.{kind}").stat().st_size > 5000
    with pytest.raises(InputError, match="give a name that ends in"):
        plot_estimates("Shares", *rows, truth=None, path=tmp_path / "plot.txt")
    with pytest.raises(InputError, match="cannot write the figure"):
        plot_estimates("Shares", *rows, truth=None, path=tmp_path / "none" / "plot.png")


def _browse(page: Path, profile: Path, *action: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
    command = [CHROMIUM, *flags.split(), "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={profile}", *action, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine: apt-get install chromium")
def test_page_opens_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """Headless Chromium shows every figure with a size, logs no console message (a wrong page does), and its screenshot is not blank."""
    shown = _browse(folder / "report.html", tmp_path / "profile", "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert len(re.findall(r"<svg [^>]*role=\"img\"", shown.stdout)) == 6
    picture = tmp_path / "page.png"
    _browse(folder / "report.html", tmp_path / "profile", "--window-size=1000,2000", f"--screenshot={picture}")
    from matplotlib.image import imread

    pixels = imread(picture)
    assert pixels.shape[:2] == (2000, 1000)
    assert pixels[:, :, :3].std() > 0.05
    (tmp_path / "wrong.html").write_text("<script>undefined_name</script>")
    assert "CONSOLE" in _browse(tmp_path / "wrong.html", tmp_path / "profile", "--dump-dom").stderr
