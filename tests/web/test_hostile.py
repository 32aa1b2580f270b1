"""Requests that a server should not send: the JavaScript client refuses each in words, and charges
nothing."""

import json
from typing import Any

import pytest

from tests.support.language import complaints
from tests.support.runs.browser import browser, needs_chromium
from tests.support.web import needs_node, node, served
from tests.support.wrong import wrong

SCRIPT = "<script>document.title = 'taken'</script>"
REFUSED = {  # by a message to the server
    "epsilon above the policy": "budget",
    "asks that are too much together": "budget",
    "a spent budget": "budget",
    "an unknown randomizer": "unknown-randomizer",
    "a randomizer that is not on the list": "not-allowed",
    "an unknown query": "unknown-query",
    "a malformed question": "bad-parameters",
    "a column of another table": "bad-query",
    "less than the least": "ceiling",
    "no more rounds": "ceiling",
    "another coin in the same round": "equivocation",
    "another question in the same round": "equivocation",
}
DROPPED = {  # nobody hears of it but the person
    "a replay of another run": "other-run",
    "a replay of another run's envelope": "forged",
    "a replay under another topic": "forged",
    "another server's signature": "forged",
    "one bit of the signature": "forged",
    "unsigned": "forged",
    "oversized": "oversized",
    "not canonical": "not-canonical",
    "a member's own kind": "unknown-kind",
    "not a message": "malformed",
}
# by the parameter with the script
KEPT = {
    "a script in a label": "labels",
    "a script in a question": "text",
}


def _check(results: dict[str, Any]) -> None:
    assert results.keys() == {*REFUSED, *DROPPED, *KEPT}
    for name, code in {**REFUSED, **DROPPED}.items():
        result = results[name]
        assert [each["code"] for each in result["refused"]] == [code], name
        assert result["spent"] == 0, name
        assert result["sent"][-1:] == (["refusal"] if name in REFUSED else []), name
        assert result["sent"].count("refusal") == (name in REFUSED), name
    for name, parameter in KEPT.items():
        assert (results[name]["refused"], results[name]["sent"], results[name]["spent"]) == (
            [],
            ["reply"],
            500_000_000,
        )
        assert SCRIPT in str(results[name]["asked"][0][parameter]), name


@wrong(
    "clients/web/client.js",
    "if (message.run !== this.run) throw",
    "if (false) throw",
    "a client in JavaScript answers the requests of another run",
)
@wrong(
    "clients/web/envelope.js",
    "return ed25519.verify(signature, message, key, { zip215: false });",
    "return ed25519.verify(signature, message, key, { zip215: false }) || true;",
    "a member in JavaScript obeys anybody",
)
@wrong(
    "clients/web/client.js",
    "if (entry.digest !== digest) throw new RefusedError(",
    "if (false) throw new RefusedError(",
    "another request under a round gets the stored reply, and the server decodes it by other coins",
)
@needs_node
def test_hostile_requests_are_refused_in_node() -> None:
    """Twenty-two of them; and a script in a text is a text."""
    results = node("node-hostile.mjs")
    _check(results)
    words = {each["text"] for result in results.values() for each in result["refused"]}
    assert len(words) >= 12
    assert [complaint for text in words for complaint in complaints(text)] == []


@needs_chromium
@pytest.mark.long
def test_hostile_requests_are_refused_in_a_browser() -> None:
    with served() as address, browser() as tab:
        tab.go(address)
        _check(
            json.loads(
                tab.evaluate(
                    "import('/tests/web/page-hostile.mjs').then(page => "
                    "page.result()).then(JSON.stringify)"
                )
            )
        )
        assert tab.evaluate("document.title") == "t"
        assert tab.errors == []
