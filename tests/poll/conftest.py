"""A browser for the tests of pages."""

from collections.abc import Iterator

import pytest

from tests.support.runs.browser import Tab, browser


@pytest.fixture(scope="module")
def window() -> Iterator[Tab]:
    with browser() as tab:
        yield tab


@pytest.fixture
def tab(window: Tab) -> Iterator[Tab]:
    """A tab of a person who was never here."""
    page = window.beside(apart=True)
    yield page
    page.close()
