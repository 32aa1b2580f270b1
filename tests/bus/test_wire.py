"""The messages: canonical, strict, bounded."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from local_dp.wire import EITHER, AnyMessage, Ask, decode, encode
from tests.support.golden import KINDS, MESSAGES, kept


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind)
def test_messages_survive_the_wire(message: AnyMessage) -> None:
    """Decoded as they were; their bytes do not change by accident, for other machines may run
    another version."""
    assert decode(encode(message)) == message
    assert encode(message).hex() == kept()["messages"].get(message.kind), (
        "new values: python -m tests.support.golden"
    )


def test_every_message_is_tried() -> None:
    assert [type(message) for message in MESSAGES] == list(KINDS)


def _sequences(schema: Any) -> Iterator[dict[str, Any]]:
    """The parts of a validator's schema that take any number of items."""
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "set", "frozenset") or "variadic_item_index" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from _sequences(part)


def test_a_list_is_refused_at_its_first_error() -> None:
    """The validator collects no error of every item: of a receipt of 4,096 wrong ones it took two
    megabytes, of a long list of asks gigabytes."""
    parts = [part for kind in KINDS for part in _sequences(kind.__pydantic_core_schema__)]
    assert len(parts) == 9
    assert all(part.get("fail_fast") for part in parts)


def _name_fields(kind: type[BaseModel]) -> Iterator[tuple[str, bool]]:
    """The fields whose text follows a pattern, and whether it may be empty."""
    for name, field in kind.model_fields.items():
        for rule in field.metadata:
            if (pattern := getattr(rule, "pattern", None)) is not None:
                yield name, re.fullmatch(pattern, "") is not None


@pytest.mark.parametrize("kind", [Ask, *EITHER.kinds.values()])
def test_a_name_is_letters_to_its_end(kind: type[BaseModel]) -> None:
    """Of each field that is a name: 64 characters are, and nothing that ends in a line or begins
    with one, holds another letter, or is longer."""
    fields = dict(_name_fields(kind))
    assert fields
    for name, empty in fields.items():
        for text in ("a", "A-_.9", "x" * 64, *([""] if empty else [])):
            assert name not in _wrong(kind, {name: text})
        for text in (
            "a\n",
            "\na",
            "a\nb",
            "a b",
            "ä",
            "a\0",
            "x" * 65,
            "\n",
            *([] if empty else [""]),
        ):
            assert name in _wrong(kind, {name: text})


def _wrong(kind: type[BaseModel], data: dict[str, str]) -> set[object]:
    """The fields that are there and not as they should be."""
    with pytest.raises(ValidationError) as errors:
        kind.model_validate({**data, "more": 1})
    return {
        error["loc"][0]
        for error in errors.value.errors()
        if error["type"] == "string_pattern_mismatch"
    }


def test_the_names_of_parameters_are_names() -> None:
    ask = {
        "query": "q",
        "randomizer": "r",
        "start": 0,
        "stop": 1,
        "coins": bytes(16),
        "query_params": {},
        "randomizer_params": {"epsilon": 1.0},
    }
    Ask.model_validate(ask)
    for place in ("query_params", "randomizer_params"):
        with pytest.raises(ValidationError, match="pattern"):
            Ask.model_validate({**ask, place: {"epsilon\n": 1.0}})
