"""The site: strict, asks no other host, with the whole front door in its reference, fit for eyes
and screen readers; formulas are MathML."""

import importlib.util
import re
import shutil
import xml.etree.ElementTree as etree
from pathlib import Path
from typing import Any

import pytest
from markdown import markdown
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import local_dp
from tests.support.inputs.documents import DOCUMENTS, ROOT
from tests.support.runs.browser import browser, faults, needs_chromium

_SPEC = importlib.util.spec_from_file_location("site_hook", ROOT / "scripts" / "site_hook.py")
assert _SPEC is not None
assert _SPEC.loader is not None
HOOK: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(HOOK)


def built(out: Path, **settings: Any) -> Path:
    """The site as `mkdocs build --strict` makes it. Raises Abort for a warning."""
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out), strict=True, **settings)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
def test_the_site_is_whole(site: Path) -> None:
    """Strict; all of the front door and of the library's rooms in the reference; no page or style
    asks another host."""
    anchors = {
        name
        for page in (site / "reference").glob("*.html")
        for name in re.findall(r'id="(local_dp[\w.]+)"', page.read_text())
    }
    assert {
        "local_dp.interaction.Nonadaptive",
        "local_dp.errors.InputError",
        "local_dp.server.coordinator.Coordinator",
        "local_dp.tallies.Z95",
    } <= anchors
    assert set(local_dp.__all__) - {"__version__"} <= {
        part for name in anchors for part in name.split(".")
    }
    assert {path.stem for path in DOCUMENTS} - {"README", "index"} <= {
        page.stem for page in site.rglob("*.html")
    }
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag), f"{page.name}: {tag}"
    assert not [
        style
        for style in site.rglob("*.css")
        if re.search(r"url\([\"']?(?:https?:)?//", style.read_text())
    ]


@pytest.mark.slow
@needs_chromium
def test_every_page_is_fit_for_its_readers(site: Path) -> None:
    with browser() as tab:
        wrong_pages = {
            page.relative_to(site).as_posix(): wrong
            for page in sorted(site.rglob("*.html"))
            if (wrong := faults(tab, page))
        }
    assert wrong_pages == {}


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    ["", "[gone](gone.md)", "[gone](why.md#gone)", "[gone](../README.md#gone)"],
    ids=["none", "page", "heading", "readme"],
)
def test_a_dead_link_is_refused(
    line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To a page, to a heading, and to one of the README: the build names it and fails. Without the
    line it passes. The reference is left out."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "guide.md").open("a") as page:
        page.write(f"\n{line}\n")
    if not line:
        built(tmp_path / "site", docs_dir=str(tmp_path / "docs"), plugins=[])
        return
    with pytest.raises(Abort):
        built(tmp_path / "site", docs_dir=str(tmp_path / "docs"), plugins=[])
    assert "gone" in caplog.text


def _show(text: str) -> str:
    return str(markdown(text, extensions=["tables", "fenced_code", HOOK.Formulas()]))


def test_a_formula_is_mathml() -> None:
    """In a line, alone and in a table; prices, code and escaped signs stay."""
    text = _show(
        "Let $a_i * b_i * \\frac{\\tau}{2}$ be.\n\n$$x^2$$\n\n| a |\n|---|\n| $\\sqrt{n}$ |\n"
    )
    first, alone, cell = (
        etree.fromstring(element) for element in re.findall(r"<math.*?</math>", text)
    )
    inside = "{http://www.w3.org/1998/Math/MathML}"
    assert [element.get("display") for element in (first, alone, cell)] == [
        "inline",
        "block",
        "inline",
    ]
    assert len(first.findall(f".//{inside}msub")) == 2
    assert len(first.findall(f".//{inside}mfrac")) == len(cell.findall(f".//{inside}msqrt")) == 1
    assert "<em>" not in text
    for stays, html in (
        ("costs $5 or $6", "costs $5 or $6"),
        (r"from \$x\$", "from $x$"),
        ("`$x^2$`", "<code>$x^2$</code>"),
    ):
        assert _show(stays) == f"<p>{html}</p>"


def test_every_formula_of_a_document_is_understood() -> None:
    """No document shows a dollar sign outside its code, and no formula a word of TeX that was not
    understood."""
    formulas = 0
    for path in DOCUMENTS:
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", _show(path.read_text()), flags=re.DOTALL)
        assert "$" not in text, path
        for formula in re.findall(r"<math.*?</math>", text):
            assert "\\" not in "".join(etree.fromstring(formula).itertext()), formula
            formulas += 1
    assert formulas > 150
