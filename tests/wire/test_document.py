"""docs/wire.md says what the library does: fields, limits, codes and names, read from its
tables."""

import re
from pathlib import Path

import pytest

from local_dp.bus.address import KEEPALIVE
from local_dp.clients.member import SLOT
from local_dp.clients.role import Policy
from local_dp.queries.grammar import COMPARATORS, MAX_DEPTH, MAX_LENGTH
from local_dp.queries.tables import MAX_LABEL
from local_dp.records import LONGEST
from local_dp.sealing import SIGNATURE, TAG
from local_dp.server.members import BURST, EACH, FLOOD, LEAVES, RATE
from local_dp.server.phases import SAID_AGAIN
from local_dp.wire import (
    CLIENT,
    EITHER,
    MAX_ASKS,
    MAX_BYTES,
    MAX_LINES,
    MAX_RECEIPTS,
    MAX_TEXT,
    MAX_WIDTH,
    SERVER,
    TEXTS,
    VERSION,
    Ask,
    topic,
)

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()


def _section(title: str) -> str:
    """The text under a heading, up to the next one."""
    (text,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(text)


def _rows(title: str) -> list[list[str]]:
    """The cells of the tables in a section, without their heads."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in _section(title).splitlines()
        if line.startswith("| `")
    ]
    assert rows
    return rows


def _code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_messages_are_those_of_the_page() -> None:
    """Each kind has the receiver, and the fields in the order, of the table; so has an ask."""
    rows = [row for row in _rows("Messages") if row[1] in ("members", "server")]
    for side, name in ((CLIENT, "members"), (SERVER, "server")):
        assert {kind.strip("`") for kind, to, _ in rows if to == name} == side.kinds.keys()
    for kind, _, text in rows:
        model = EITHER.kinds[kind.strip("`")]
        fields = [name for part in text.split("; ") for name in _code(part)[:1]]
        assert ["run", "kind", *fields] == list(model.model_fields), kind
    asks = [
        name
        for row in _rows("Messages")
        if row[1] not in ("members", "server")
        for name in _code(row[0])
    ]
    assert asks == list(Ask.model_fields)


def test_the_topics_are_those_of_the_page() -> None:
    """The last table of topics has every leaf of the wire."""
    topics = {_code(row[0])[0] for row in _rows("Transport")}
    assert topics == {
        topic("RUN", "req", "GROUP"),
        topic("RUN", "req", "all"),
        *(topic("RUN", leaf, "GROUP", "MEMBER") for leaf in LEAVES),
    }
    assert f"`{VERSION}`" in PAGE


def test_the_codes_are_those_of_the_page() -> None:
    """Every code of a refusal is in the table, and no other."""
    assert {code for row in _rows("Refusals") for code in _code(row[0])} == TEXTS.keys()


LIMITS = {
    "Messages": (MAX_BYTES, MAX_ASKS, MAX_WIDTH, MAX_RECEIPTS, MAX_LINES, MAX_TEXT),
    "Canonical form": (CLIENT.containers, CLIENT.map_length, CLIENT.array_length, CLIENT.text),
    "Envelopes": (SIGNATURE, MAX_BYTES),
    "Charges": (Policy().least, Policy().rounds, Policy().kept),
    "Records and queries": (LONGEST, MAX_LABEL),
    "Questions": (MAX_LENGTH, MAX_DEPTH),
    "What a client must never do": (SLOT,),
    "The client": (SAID_AGAIN,),
    "The server's side": (BURST, int(RATE), EACH, FLOOD),
    "Transport": (KEEPALIVE,),
}


@pytest.mark.parametrize("title", LIMITS)
def test_the_limits_are_those_of_the_page(title: str) -> None:
    """Each number stands in the section that is about it."""
    text = _section(title)
    for limit in LIMITS[title]:
        assert re.search(rf"(?<![\d,]){re.escape(f'{limit:,}')}(?![\d,]*\d)", text), (
            f"{limit:,} is not in {title}"
        )


def test_what_is_signed_is_that_of_the_page() -> None:
    """The tag and the signs of comparison."""
    assert f'"{TAG[:-1].decode()}" 0x00' in _section("Envelopes")
    (text,) = re.findall(r"comparison  ::= sum \((.*?)\)", PAGE)
    assert re.findall(r'"([^"]+)"', text) == list(COMPARATORS)
