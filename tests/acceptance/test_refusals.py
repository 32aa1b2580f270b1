"""P4: what a client refuses, in which words and at which length, is decided by the request and the
declared schema alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.api.tables import read_records
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import InputError, RefusedError
from local_dp.noise import SystemNoise
from local_dp.records import Records
from local_dp.wire import TEXTS, Ask, Refusal, Request, encode, reason
from tests.support.inputs.shapes import an_ask
from tests.support.wrong import wrong

SCHEMA = dict(zip("xybi", ("number", "whole", "whole", "text"), strict=True))
ROWS = (
    "3,1,0,Oslo",
    ",,99999999999999999999999,",
    "nan,-5,1,a text that is much longer than any other is",
    "1e999,none,1e3,7",
    '"-1e308",0x7,,"\u00e9"',
)
HEADER = "x,y,b,i"
Said = tuple[str, str, str, int]  # kind, code, text, length on the wire


def _table(folder: Path, row: str) -> Records:
    """The one-row table of a client that has declared its schema, as a private member reads it."""
    path = folder / "record.csv"
    path.write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
    return read_records(path, SCHEMA, total=True)


def _ask(generator: np.random.Generator) -> Ask:
    """A question about any column by a randomizer of its values, or one in which something is
    wrong."""
    ask = an_ask("any", generator, int(generator.integers(1, 3)))
    column = (
        {"column": str(generator.choice([*"xybi", "income"]))}
        if "column" in ask.query_params
        else {}
    )
    changes: list[dict[str, Any]] = [
        {}, {}, {"once": "weekly"}, {"query_params": {**ask.query_params, "epsilon": 3.0}},
        {"query_params": {**ask.query_params, **column}},
        {"randomizer": "telepathy"}, {"randomizer": "oue"},
        {"randomizer_params": {"epsilon": -1.0}},
    ]  # fmt: skip
    cheaper = ask.model_copy(
        update={
            "randomizer_params": {
                **ask.randomizer_params,
                "epsilon": float(generator.choice([0.25, 0.5, 1.0])),
            }
        }
    )
    return cheaper.model_copy(update=changes[int(generator.integers(len(changes)))])


def _script(seed: int) -> list[Request]:
    """Up to eight requests: rounds that come again, alike or changed, and runs of several names."""
    generator, requests = np.random.default_rng(seed), list[Request]()
    for _ in range(int(generator.integers(2, 9))):
        if requests and generator.random() < 0.2:
            requests.append(requests[int(generator.integers(len(requests)))])
            continue
        asks = tuple(_ask(generator) for _ in range(int(generator.integers(1, 3))))
        requests.append(
            Request(
                run=str(generator.choice(["a", "b"])),
                round=int(generator.integers(1, 5)),
                asks=asks,
            )
        )
    return requests


def _answers(
    records: Records, script: list[Request], allowed: frozenset[str] | None = None
) -> list[Said]:
    role = ClientRole("client-0", 0, records, SystemNoise(), MemoryStore(1.0), Policy(allowed))
    answers = (answer for each in script for answer in role.handle(each))
    return [
        (
            each.kind,
            *((each.code, each.text) if isinstance(each, Refusal) else ("", "")),
            len(encode(each)),
        )
        for each in answers
    ]


@wrong(
    "local_dp.clients.role:ClientRole._refusal",
    "reason(code, request)",
    "f'{reason(code, request)}: {self.records.columns}'",
    "a refusal's text holds the record",
)
def test_refusals_are_the_same_for_every_record(tmp_path: Path) -> None:
    """Two of five records of one declared schema, by request scripts: identical answers' kinds,
    codes, texts and lengths."""
    tables = [_table(tmp_path, row) for row in ROWS]
    kinds = set[str]()
    for seed in range(100):
        script = _script(seed)
        allowed = frozenset({"binary-rr", "grr"}) if seed % 5 == 0 else None
        first = _answers(tables[seed % len(tables)], script, allowed)
        other = _answers(tables[(1 + seed + seed % 4) % len(tables)], script, allowed)
        assert other == first, f"script {seed}"
        kinds |= {code or kind for kind, code, _, _ in first}
    assert {
        "reply",
        "budget",
        "equivocation",
        "bad-query",
        "bad-parameters",
        "unknown-randomizer",
        "not-allowed",
    } <= kinds


def test_types_seen_from_values_would_tell(tmp_path: Path) -> None:
    """The attack, and the wrong twin: one-row tables typed by what they hold answer a script
    otherwise; a private member must declare its types."""
    path, script, answers = (
        tmp_path / "record.csv",
        [each for seed in range(20) for each in _script(seed)],
        [],
    )
    for row in (ROWS[0], ROWS[3]):
        path.write_text(f"{HEADER}\n{row}\n")
        answers.append(_answers(read_records(path, notice=str), script))
    assert answers[0] != answers[1]
    both = [_answers(_table(tmp_path, row), script) for row in (ROWS[0], ROWS[3])]
    assert both[0] == both[1]
    assert _table(tmp_path, ROWS[1])["y"].tolist() == [0]
    with pytest.raises(InputError, match="declared whole"):
        read_records(tmp_path / "record.csv", SCHEMA)


@wrong(
    "local_dp.wire:known",
    "return code if code in TEXTS else FAILED",
    "TEXTS.setdefault(code, code)\n    return code",
    "a plug-in chooses the code, and may choose it by the record",
)
def test_a_refusal_is_made_of_the_request() -> None:
    """Every code has one line, which names what was asked and nothing else; a code that is none of
    these is "failed"."""
    question = _script(3)[0]
    for code in TEXTS:
        text = reason(code, question)
        assert not any(part in text for part in ("{", "\n"))

    class Tells(ClientRole):
        def _local_query(self, ask: Ask, span: tuple[int, int]) -> Any:
            raise RefusedError("my-record", f"the record is {self.records['x']}")

    (refusal,) = Tells(
        "m", 0, Records({"x": np.array([77.5])}), SystemNoise(), MemoryStore(1.0)
    ).handle(question)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.text) == ("failed", reason("failed", question))
    assert "77" not in refusal.text
