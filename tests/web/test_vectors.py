"""docs/vectors in the JavaScript client: in Node and in a browser every vector holds, and one
changed bit of any is found."""

import json

import pytest

from tests.support.runs.browser import browser, needs_chromium
from tests.support.web import needs_node, node, served
from tests.support.wrong import wrong

CASES, CHANGES = 600, 50_000  # at least


def _check(result: dict[str, object], changes: int = CHANGES) -> None:
    assert result["wrong"] == []
    assert isinstance(result["cases"], int)
    assert isinstance(result["changes"], int)
    print(f"{result['cases']} vectors hold; {result['changes']} changes of one bit are seen")
    assert result["cases"] >= CASES
    assert result["changes"] >= changes


@wrong(
    "clients/web/wire.js",
    "if (!reader.canonical || !same(encode(message), payload)) throw",
    "if (false) throw",
    "one message has many forms in JavaScript",
)
@wrong(
    "clients/web/plan.js",
    "if (nano > 0 && !(totals.run + nano <= perRun && totals.life + nano <= life)) {",
    "if (nano > 0 && !(totals.run + nano <= perRun)) {",
    "a client in JavaScript spends more in its life than its policy allows",
)
@wrong(
    "clients/web/rational.js",
    "return num >= 0n ? (num + den - 1n) / den : -(-num / den);",
    "return num / den;",
    "a threshold in JavaScript is rounded against privacy",
)
@wrong(
    "clients/web/randomizers/grr.js",
    "Math.min(Number(word / this.other), this.k - 1)",
    "Math.min(Number((word && word - 1n) / this.other), this.k - 1)",
    "the sampler in JavaScript flips one word more than its weight says",
)
@wrong(
    "clients/web/queries.js",
    "STEPS * Number(Number(cell) < Number(end))",
    "STEPS * Number(Number(cell) <= Number(end))",
    "a number at the threshold counts as below it",
)
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
