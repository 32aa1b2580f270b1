"""docs/vectors in the JavaScript client: in Node and in a browser every vector holds, and one
changed bit of any is found."""

import json

import pytest

from tests.support.runs.browser import browser, needs_chromium
from tests.support.web import needs_node, node, served

CASES, CHANGES = 600, 50_000  # at least


def _check(result: dict[str, object], changes: int = CHANGES) -> None:
    assert result["wrong"] == []
    assert isinstance(result["cases"], int)
    assert isinstance(result["changes"], int)
    print(f"{result['cases']} vectors hold; {result['changes']} changes of one bit are seen")
    assert result["cases"] >= CASES
    assert result["changes"] >= changes


@needs_node
def test_every_vector_holds_in_node() -> None:
    _check(node("node-vectors.mjs"), 0)


@needs_node
@pytest.mark.long
def test_one_changed_bit_of_a_vector_is_found_in_node() -> None:
    _check(node("node-vectors.mjs", "changes"))


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("store", ["memory", "browser"])
def test_every_vector_holds_in_a_browser(store: str) -> None:
    """Under a policy that allows no other source; also with the ledger in the browser's own
    database."""
    with served() as address, browser() as tab:
        tab.go(address)
        program = (
            "import('/tests/web/page-vectors.mjs').then(page => "
            f"page.result('{store}')).then(JSON.stringify)"
        )
        _check(json.loads(tab.evaluate(program)))
        assert tab.errors == []
