"""The look at a page that other tests take sees what is wrong with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs.browser import Tab, browser, faults, needs_chromium

GOOD = '<!DOCTYPE html><html lang="en"><title>a page</title><main><h1>A page</h1>{}</main></html>'


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """One browser for all pages."""
    with browser() as tab:
        yield tab


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("<p>all is well</p>", ""),
        ("<script>undefined_name</script>", "ReferenceError"),
        ("<script>console.error('so it said')</script>", "so it said"),
        ('<img alt="" src="none.png">', "none.png"),
        ("<p style='width: 500px'>wide</p>", "400 px, light: scrolls sideways by"),
        ("<p style='color: #bbbbbb; background: #ffffff'>pale</p>", "serious: color-contrast"),
        ("<style>@media (prefers-color-scheme: dark) { p { background: #000; color: #222 } }</style><p>dark</p>", "1200 px, dark: serious: color-contrast"),
        ("<input>", "critical: label"),
    ],
)
def test_faults_are_found(part: str, found: str, tab: Tab, tmp_path: Path) -> None:
    """It names a console error, a missing resource, a page too wide for a telephone, pale text in either scheme, a field without a label."""
    page = tmp_path / "page.html"
    page.write_text(GOOD.format(part))
    wrong = faults(tab, page)
    assert all(found in each for each in wrong[:1]) if found else not wrong, wrong
    assert bool(wrong) == bool(found)
