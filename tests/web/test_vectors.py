"""docs/vectors in the JavaScript client: in Node and in a browser every vector holds, and one changed bit of any is found."""

import json

import pytest

from tests.support.runs.browser import browser, needs_chromium
from tests.support.web import needs_node, node, served

CASES, CHANGES = 600, 50_000  # at least


def _check(result: dict[str, object]) -> None:
    assert result["wrong"] == []
    assert isinstance(result["cases"], int)
    assert isinstance(result["changes"], int)
    print(f"{result['cases']} vectors hold; {result['changes']} changes of one bit are seen")
    assert result["cases"] >= CASES
    assert result["changes"] >= CHANGES


@needs_node
@pytest.mark.long
def test_every_vector_holds_in_node() -> None:
    _check(node("node-vectors.mjs"))


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("store", ["memory", "browser"])
def test_every_vector_holds_in_a_browser(store: str) -> None:
    """Under a policy that allows no other source; also with the ledger in the browser's own database."""
    with served() as address, browser() as tab:
        tab.go(address)
        program = f"import('/tests/web/page-vectors.mjs').then(page => page.result('{store}')).then(JSON.stringify)"
        _check(json.loads(tab.evaluate(program)))
        assert tab.errors == []
