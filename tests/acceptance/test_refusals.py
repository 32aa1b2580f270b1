"""Class 5, and acceptance test 11: what a client refuses, in which words and at which length, is
decided by the request and the declared schema alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.api.tables import read_records
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.domains import Parameter
from local_dp.errors import InputError, RefusedError
from local_dp.noise import SystemNoise
from local_dp.queries.query import QUERIES
from local_dp.records import Records
from local_dp.wire import TEXTS, Ask, Refusal, Request, encode, reason
from tests.support.figures import figure
from tests.support.inputs.questions import ANY_PARAMETERS

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
    """A question about any column by any randomizer, of which some fit."""
    name = str(generator.choice(sorted(ANY_PARAMETERS)))
    params: dict[str, Parameter] = {}
    for key, value in ANY_PARAMETERS[name].items():
        column = key in ("column", "label") and value
        params[key] = (
            str(generator.choice([*"xybi", "income"]))
            if column and generator.random() < 0.3
            else value
        )
    if generator.random() < 0.05:
        params["epsilon"] = 3.0
    randomizer, settings = (
        str(generator.choice(["grr", "binary-rr", "one-bit-mean", "oue", "telepathy"])),
        dict[str, Parameter](),
    )
    if generator.random() < 0.85:
        randomizer, settings = _fitting(name, params, generator)
    epsilon = float(generator.choice([0.25, 0.5, 1.0, -1.0, 30.0], p=[0.2, 0.35, 0.35, 0.05, 0.05]))
    once = str(generator.choice(["", "weekly"], p=[0.8, 0.2]))
    return Ask(
        query=name, query_params=params, randomizer=randomizer,
        randomizer_params={"epsilon": epsilon, **settings},
        start=0, stop=int(generator.integers(1, 3)), coins=bytes(16), once=once,
    )  # fmt: skip


def _fitting(
    name: str, params: dict[str, Parameter], generator: np.random.Generator
) -> tuple[str, dict[str, Parameter]]:
    """A randomizer that takes the query's values, where there is one of these."""
    try:
        domain = QUERIES.build(name, params).domain
    except RefusedError:
        return "binary-rr", {}
    if domain.kind == "symbols" and domain.size <= 64:
        return (
            ("binary-rr", {})
            if domain.size == 2 and generator.random() < 0.5
            else ("grr", {"k": domain.size})
        )
    return "one-bit-mean", {"steps": domain.high}


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


def _said(
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


@pytest.mark.parametrize("scripts", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_refusals_are_the_same_for_every_record(scripts: int, tmp_path: Path) -> None:
    """Two of five records of one declared schema, by request scripts: identical answers' kinds,
    codes, texts and lengths."""
    tables = [_table(tmp_path, row) for row in ROWS]
    seen: dict[str, int] = {}
    for seed in range(scripts):
        script = _script(seed)
        allowed = frozenset({"binary-rr", "grr"}) if seed % 5 == 0 else None
        first, other = (
            _said(tables[(seed + place) % len(tables)], script, allowed)
            for place in (0, 1 + seed % 4)
        )
        assert other == first, f"script {seed}"
        for kind, code, _, _ in first:
            seen[code or kind] = seen.get(code or kind, 0) + 1
    figure(
        11,
        (
            f"{scripts:,} scripts, each to two of five records: 0 differences; answers "
            f"{dict(sorted(seen.items()))}"
        ),
    )
    assert {
        "reply",
        "budget",
        "equivocation",
        "bad-query",
        "bad-parameters",
        "unknown-randomizer",
        "not-allowed",
    } <= seen.keys()


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
        answers.append(_said(read_records(path), script))
    assert answers[0] != answers[1]
    declared = [_said(_table(tmp_path, row), script) for row in (ROWS[0], ROWS[3])]
    figure(
        "class 5",
        (
            f"{len(script)} requests tell two rows apart by their types, and not where the types "
            "are declared"
        ),
    )
    assert declared[0] == declared[1]
    assert _table(tmp_path, ROWS[1])["y"].tolist() == [0]
    with pytest.raises(InputError, match="declared whole"):
        read_records(tmp_path / "record.csv", SCHEMA)


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
