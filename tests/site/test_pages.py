"""The pages of the site before they become HTML, whole and with links that lead on; a small site in a browser; and the tutorials, executed."""

import contextlib
import io
import re
import sys
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from dataclasses import fields
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markdown import markdown

import local_dp
from local_dp.errors import InputError
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.site import build
from local_dp.experiments.site.build import CHECKOUT, as_page, build_site, front_door, home, literal, names_in, page, public_names, sources, write_pages
from local_dp.experiments.site.notebooks import notebook
from local_dp.protocols.local_protocol import PROTOCOLS
from tests.support.inputs.documents import TUTORIALS, fenced, perform, typed_in
from tests.support.long import short
from tests.support.runs import command
from tests.support.runs.browser import browser, faults, needs_chromium


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, folder, workers=1)
    return folder


def _places(navigation: Any) -> Iterator[str]:
    for each in navigation:
        value = next(iter(each.values())) if isinstance(each, dict) else each
        if isinstance(value, str):
            yield value
        else:
            yield from _places(value)


@pytest.mark.long
def test_every_page_is_in_the_navigation(tmp_path: Path, results: Path) -> None:
    """Every document, every protocol, the gallery and every room is a page, and every page stands in the navigation once."""
    listed = sorted(_places(write_pages(tmp_path / "pages", results)))
    assert listed == sorted(path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.md"))
    assert {f"protocols/{name}.md" for name in PROTOCOLS} | {"index.md", "gallery/index.md", "tutorials/survey.md"} < set(listed)
    assert sum(path.suffix == ".md" for path in sources(home())) == sum(
        "/" not in place or place.startswith(("theory/", "tutorials/", "decisions/")) for place in listed
    )


def test_links_lead_from_page_to_page() -> None:
    """A link from the README, from a document or from a tutorial leads to the page of what it linked to; other addresses and anchors stay."""
    assert as_page(Path("README.md"), "[a](docs/why.md) [b](CHANGELOG.md)") == "[a](why.md) [b](changelog.md)"
    assert as_page(Path("docs/why.md"), "[a](../README.md) [b](limits.md#x) [c](#y)") == "[a](index.md) [b](limits.md#x) [c](#y)"
    assert as_page(Path("docs/tutorials/survey.md"), "[a](../deployment.md) [b](separation.md)") == "[a](../deployment.md) [b](separation.md)"
    assert as_page(Path("README.md"), "[a](https://example.org/docs/x)") == "[a](https://example.org/docs/x)"
    assert home() == CHECKOUT


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_protocols_page_tells_it_whole(name: str) -> None:
    """Each parameter with its default, privacy, utility, cost, the number of clients at five epsilons, and the code it comes from."""
    text = page(name)
    for each in fields(PROTOCOLS[name]):
        assert f"| `{each.name}` |" in text
    for word in ("Privacy", "Utility", "Cost"):
        assert re.search(rf"^\*\*{word}\*\*[:,] \S", text, re.MULTILINE), f"the docstring of {name} says nothing of {word.lower()}"
    assert f"| 1 | {PROTOCOLS[name]().clients(1.0):,} |" in text
    assert len(re.findall(r"^\| [\d.]+ \| [\d,]+ \|$", text, re.MULTILINE)) == 5


def test_a_docstring_stays_what_it_says() -> None:
    """Signs that mean something in Markdown are escaped, except in backticks."""
    text = "a*b_c <x> `d*e_f` [g](h) i <= j | k > l"
    shown = markdown(literal(text), extensions=["tables"])
    assert unescape(shown) == f"<p>{text.replace('`d*e_f`', '<code>d*e_f</code>')}</p>"


@pytest.mark.long
def test_the_gallery_shows_every_figure(tmp_path: Path, results: Path) -> None:
    """Under its claim each experiment has all of its figures, described in words; each is a file."""
    write_pages(tmp_path / "pages", results)
    text = (tmp_path / "pages" / "gallery" / "index.md").read_text()
    drawn = [path for name in names_in(results) for path in (results / name).glob("*.svg")]
    shown = re.findall(r'<img src="([^"]+)" alt="([^"]{20,})"', text)
    assert len(shown) == len(drawn) > 0
    assert all((tmp_path / "pages" / "gallery" / file).exists() for file, _ in shown)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds something other than a site is refused, and so is a file; nothing in it is lost."""
    (tmp_path / "thesis.tex").write_text("years of work")
    for out in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(InputError, match="would be lost"):
            build_site(out, None)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    done = command.local_dp("docs", "--no-gallery", "--no-open", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "would be lost" in done.stderr


def test_the_reference_owes_many_names() -> None:
    """Public names are found by reading the source: the front door's, the library's and the roles', with constants and members, none that is private."""
    names = set(public_names())
    assert {
        "local_dp.experiments.api.functions.mean",
        "local_dp.interaction.Nonadaptive",
        "local_dp.errors.InputError",
        "local_dp.server.coordinator.Coordinator",
    } < names
    assert {"local_dp.tallies.Z95", "local_dp.ledger.Ledger.charge", "local_dp.randomizers.randomizer.Randomizer.epsilon"} < names
    assert {name for name in local_dp.__all__ if name != "__version__"} <= {name.rpartition(".")[2] for name in (*names, *front_door())}
    assert len(names) > 2000
    assert not any(part.startswith("_") for name in names for part in name.split("."))


DOCUMENTS = [home() / path for path in sources(home()) if path.suffix == ".md"]


def _shown(text: str) -> str:
    return str(markdown(text, extensions=["tables", "fenced_code", "local_dp.experiments.site.typesetting"]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at eps 1, 2^d", "at ε\xa0=\xa01, 2<sup>d</sup>"),
        ("**C^2 b^2** / n, r_j and z_{beta/2}^2", "<strong>C<sup>2</sup> b<sup>2</sup></strong> / n, r<sub>j</sub> and z<sub>β/2</sub><sup>2</sup>"),
        ("z_beta, 2^(-d/2), e^eps, 1.96 +- 2^-5", "z<sub>β</sub>, 2<sup>−d/2</sup>, e<sup>ε</sup>, 1.96 ± 2<sup>−5</sup>"),
        ("`eps^2 <= r_j` and max_tau", "<code>eps^2 &lt;= r_j</code> and max_tau"),
        ("costs $5 or $6", "costs $5 or $6"),
        (r"from \$x\$", "from $x$"),
        ("`$x^2$`", "<code>$x^2$</code>"),
    ],
)
def test_prose_has_the_signs_of_mathematics(text: str, shown: str) -> None:
    """Greek letters, exponents and indices, across marks of emphasis; code, names and prices stay."""
    assert _shown(text) == f"<p>{shown}</p>"


def test_a_formula_is_mathml() -> None:
    text = _shown("Let $a_i * b_i * \\frac{\\tau}{2}$ be.\n\n$$x^2$$\n\n| a |\n|---|\n| $\\sqrt{n}$ |\n")
    first, alone, cell = (etree.fromstring(element) for element in re.findall(r"<math.*?</math>", text))
    inside = "{http://www.w3.org/1998/Math/MathML}"
    assert [element.get("display") for element in (first, alone, cell)] == ["inline", "block", "inline"]
    assert len(first.findall(f".//{inside}msub")) == 2
    assert len(first.findall(f".//{inside}mfrac")) == len(cell.findall(f".//{inside}msqrt")) == 1
    assert not any(part in text for part in ("<em>", "<sup>"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_formula_of_a_document_is_understood(path: Path) -> None:
    """No document shows a dollar sign outside its code, and no formula a word of TeX that was not understood."""
    text = re.sub(r"<(pre|code)\b.*?</\1>", "", _shown(path.read_text()), flags=re.DOTALL)
    assert "$" not in text
    for formula in re.findall(r"<math.*?</math>", text):
        assert "\\" not in "".join(etree.fromstring(formula).itertext()), formula


def test_the_limits_have_their_formulas() -> None:
    assert sum(len(re.findall("<math", _shown(page.read_text()))) for page in (home() / "docs" / "theory").glob("*.md")) > 150


ROOMS = ("local_dp.loss", "local_dp.server")
PAGES = ("index", "tutorials/survey", "protocols/mean", "gallery/index", "quantiles", "reference/local_dp.server")


@pytest.mark.slow
@needs_chromium
@pytest.mark.long
def test_a_page_of_each_kind_is_fit_for_its_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: modules for name, modules in build.rooms().items() if name in ROOMS}
    monkeypatch.setattr(build, "rooms", lambda: kept)
    monkeypatch.setattr(build, "front_door", list)
    run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, tmp_path / "results", workers=1)
    site = build_site(tmp_path / "out", tmp_path / "results", strict=False).parent
    with browser() as tab:
        wrong_pages = {page: wrong for page in PAGES if (wrong := faults(tab, site / f"{page}.html"))}
    assert wrong_pages == {}


ENOUGH = {"survey": (3, 3), "separation": (3, 1), "curator": (4, 1), "randomizer": (5, 0), "poll": (0, 1)}  # Python blocks and commands that there are at least
LONG = "local-dp experiment"  # some 20 s: the slow suite runs it


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A Python session of its own, as `python` starts one."""
    module = ModuleType("tutorial")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def follow(text: str, folder: Path, session: ModuleType, long: bool) -> tuple[int, int]:
    """Runs the cells of a tutorial's notebook; how many Python blocks and commands there are. Raises AssertionError where they print other lines."""
    python, commands, blocks = 0, 0, [language for language, _ in fenced(text)]
    assert set(blocks) <= {"python", "text", "sh", "console", "toml"}, "nobody checks a block in another language"
    for cell in notebook(text)["cells"]:
        if cell["cell_type"] == "markdown":
            continue
        shown = "".join(output["text"] for output in cell["outputs"])
        if not cell["source"].startswith("!"):
            assert _printed_by(cell["source"], session) == shown, cell["source"]
            python += 1
            continue
        commands += 1
        for line in cell["source"].removeprefix("!").split(" && "):
            if line.startswith(LONG) != long:
                continue
            done = perform(line, folder)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            missing = [each for each in shown.splitlines() if each not in done.stdout]
            assert not missing, f"{line} does not say {missing}"
    assert python == blocks.count("python")
    return python, commands


def _printed_by(body: str, session: ModuleType) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "tutorial", "exec"), session.__dict__)
    return printed.getvalue()


@pytest.mark.parametrize("page", short(list(TUTORIALS), lambda page: page.stem == "randomizer"), ids=[page.stem for page in TUTORIALS])
def test_a_tutorial_shows_what_happens(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: ModuleType) -> None:
    monkeypatch.chdir(tmp_path)
    python, commands = follow(page.read_text(), tmp_path, session, long=False)
    assert (python >= ENOUGH[page.stem][0]) & (commands >= ENOUGH[page.stem][1])


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorials_long_commands_run(page: Path, tmp_path: Path) -> None:
    for language, body in fenced(page.read_text()):
        for each in typed_in(body) if language in ("sh", "console") else ():
            if each.command.startswith(LONG):
                done = perform(each.command, tmp_path)
                assert done.returncode == 0, done.stderr
                assert "not shown" not in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\nprint(1)\n```\n```python\nx = 1\n```\n",
        "```python\nassert 1 == 2\n```\n",
        "```console\n$ local-dp schema\nno command says this\n```\n",
        "```ruby\nputs 1\n```\n",
    ],
)
def test_a_wrong_tutorial_is_noticed(text: str, tmp_path: Path, session: ModuleType) -> None:
    """Another output than the one shown, an output that is not shown, a failing block or command, a language that nobody checks: each fails."""
    with pytest.raises(AssertionError):
        follow(text, tmp_path, session, long=False)
