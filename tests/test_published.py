"""The figures of README and docs: each is a published one, to the digit."""

import json

from tests.support.published import PUBLISHED, cited, is_shown


def test_every_figure_is_published() -> None:
    """Each figure beside a citation of an experiment stands in docs/published.json, with its value
    and its command; no other one stands there."""
    figures = json.loads(PUBLISHED.read_text())["figures"]
    entries = {(figure["page"], figure["text"]): figure for figure in figures}
    assert {(figure.page, figure.text) for figure in cited()} == set(entries)
    for figure in cited():
        entry = entries[figure.page, figure.text]
        assert entry["command"] in figure.commands
        assert is_shown(figure.text, entry["value"]), entry


def test_another_digit_is_seen() -> None:
    """16,400 and 1.9 million are not what was measured."""
    assert is_shown("16,515", 16515)
    assert is_shown(".31", 0.3149)
    assert not is_shown("16,400", 16515)
    assert not is_shown(".31", 0.3151)
