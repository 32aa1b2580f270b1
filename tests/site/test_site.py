"""The site as HTML: it builds strictly, holds every public name, asks no other host for anything, and is fit for eyes and for screen readers."""

import re
from pathlib import Path

import pytest

from local_dp.errors import InputError
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.site.build import build_site
from local_dp.experiments.site.reference import public_names
from tests.support.runs.browser import browser, faults, needs_chromium

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with a small gallery, built in strict mode."""
    folder = tmp_path_factory.mktemp("site")
    run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, folder / "results", workers=1)
    return build_site(folder / "out", folder / "results").parent


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """Every public class, function, constant and member in the library, the roles and the front door has an entry of its own, in one place."""
    anchors = [name for page in (site / "reference").glob("*.html") for name in re.findall(r'<h\d id="([\w.]+)"', page.read_text())]
    assert set(public_names()) - set(anchors) == set()
    assert len(anchors) == len(set(anchors))


def test_no_other_host_is_asked(site: Path) -> None:
    """No script, style sheet, picture or font of the site comes from another host."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag), f"{page.name}: {tag}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style.name


@needs_chromium
def test_every_page_is_fit_for_its_readers(site: Path) -> None:
    """Wide and narrow, light and dark: no page has an error, scrolls sideways or has anything serious for axe-core."""
    with browser() as tab:
        wrong_pages = {page.relative_to(site).as_posix(): wrong for page in sorted(site.rglob("*.html")) if (wrong := faults(tab, page))}
    assert wrong_pages == {}


@needs_chromium
def test_the_site_follows_the_system(site: Path) -> None:
    """Who prefers dark pages sees dark ones, and who changes their mind sees them change."""
    with browser() as tab:
        for scheme, palette in (("dark", "slate"), ("light", "default"), ("dark", "slate")):
            tab.appear(1200, scheme)
            tab.go((site / "index.html").as_uri(), f"document.body.dataset.mdColorScheme === '{palette}'")


@needs_chromium
def test_the_search_works_without_a_server(site: Path) -> None:
    """A page opened as a file finds what is looked for, in other pages too."""
    with browser() as tab:
        tab.appear(1200, "light")
        tab.go((site / "index.html").as_uri())
        tab.evaluate("document.querySelector('.md-search__input').focus()")
        tab.wait("document.querySelector('.md-search-result__meta').textContent.includes('Type to start')")  # the index is read
        tab.call("Input.insertText", text="randomized response")
        tab.call("Input.dispatchKeyEvent", type="keyUp", key="e")  # the search looks when a key is let go
        tab.wait("document.querySelectorAll('.md-search-result__link').length > 3")
        assert tab.errors == []


def test_a_broken_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that links to nothing stops the build, with the link's name."""
    monkeypatch.setattr("local_dp.experiments.site.build.TOP", {"README.md": "index.md"})
    monkeypatch.setattr("local_dp.experiments.site.build.home", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Nothing\n\n[gone](docs/gone.md)\n")
    with pytest.raises(InputError, match=r"gone\.md"):
        build_site(tmp_path / "out", None)
