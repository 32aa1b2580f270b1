"""Class 4: what a stranger sends costs the server and a client bounded work, and ends neither. Each
test prints its figure."""

import json
import time
import tracemalloc
from dataclasses import MISSING, fields
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_dp.clients import role as verification_budget
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole
from local_dp.domains import Parameter
from local_dp.errors import RefusedError, WireError
from local_dp.noise import SystemNoise
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.wire import (
    CLIENT,
    MAX_ASKS,
    MAX_BYTES,
    SERVER,
    Ask,
    Refusal,
    Reply,
    Request,
    Side,
    decode,
    encode,
)
from tests.support.golden import MESSAGES
from tests.support.inputs.builders import RUN, request, survey_query
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS

MEGABYTE = 1 << 20


def _peak(call: Any, *arguments: Any) -> tuple[Any, int, float]:
    """What the call gives or raises, the most memory that Python and numpy held for it, in bytes,
    and its processor time."""
    tracemalloc.start()
    began = time.process_time()
    try:
        result = call(*arguments)
    except (WireError, RefusedError) as error:
        result = error
    took, most = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, most, took


def _asking(**changes: Any) -> dict[str, Any]:
    data = request(survey_query(9)).model_dump()
    data["asks"] = [{**data["asks"][0], **changes}]
    return data


BOMBS = {
    "a million asks of nothing": msgpack.packb({**_asking(), "asks": [None] * 1_000_000}),
    "as many asks as may be, all wrong": msgpack.packb(
        {**_asking(), "asks": _asking(start=-1, stop="x", coins=1)["asks"] * MAX_ASKS}
    ),
    "lists of which the last item is wrong": msgpack.packb(
        _asking(query_params={f"a{place}": ["x"] * 60_000 + [None] for place in range(8)})
    ),
    "maps in maps": msgpack.packb(
        {"kind": "reply", "a": [{str(key): {} for key in range(9)}] * 40_000}
    ),
    "maps of nothing": b"\xdc\xff\xff" + b"\x80" * 65_535,
    "a million maps of nothing": b"\xdc\x00\x0f" + 15 * (b"\xdc\xff\xff" + b"\x80" * 65_535),
    "arrays of one": b"\xdc\xff\xff" + b"\x91\xc0" * 65_535,
}


@pytest.mark.parametrize("name", BOMBS)
def test_junk_is_refused_by_its_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack took the server 4.2 s and 1.7 GB: now no schema of a request is run there, and
    nobody holds more than 16 MB for it."""

    def run(*anything: Any) -> None:
        raise AssertionError("the schema of a request was run")

    result, most, _ = _peak(decode, BOMBS[name], CLIENT)
    assert isinstance(result, WireError)
    monkeypatch.setattr(Request, "model_validate", run)
    refused, least, _ = _peak(decode, BOMBS[name], SERVER)
    print(
        f"class 4: {len(BOMBS[name]):,} bytes, {name}: {most / MEGABYTE:.2f} MiB at a client, "
        f"{least / MEGABYTE:.2f} MiB at the server"
    )
    assert isinstance(refused, WireError)
    assert max(most, least) < 16 * MEGABYTE


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind)
def test_each_side_hears_its_own_kinds(message: Any) -> None:
    for side in (SERVER, CLIENT):
        if message.kind in side.kinds:
            assert decode(encode(message), side) == message
        else:
            with pytest.raises(WireError):
                decode(encode(message), side)


ATOMS = st.sampled_from(
    [None, True, 0, -1, 1 << 63, 0.5, "", "x", "asks", b"", b"x" * 40, "x" * 5000]
)
SHAPES = st.recursive(
    ATOMS,
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.sampled_from(["run", "kind", "asks", "a", "start"]), part)
    ),
    max_leaves=8,
)


@st.composite
def _junk(draw: st.DrawFn) -> bytes:
    """A message of which one part is something else, many times over, up to a megabyte."""
    data = draw(st.sampled_from(MESSAGES)).model_dump()
    part, key = draw(SHAPES), draw(st.sampled_from(sorted(data)))
    times = draw(st.sampled_from([1, 100, 4096, 65_535, 200_000]))
    times = max(1, min(times, (MAX_BYTES - 2000) // max(1, len(msgpack.packb(part)))))
    data[key] = [part] * times if draw(st.booleans()) else part
    if "asks" in data and draw(st.booleans()):
        data["asks"] = [
            {
                **request(survey_query(2)).model_dump()["asks"][0],
                draw(st.sampled_from(["query_params", "start", "coins"])): part,
            }
        ] * min(times, 3000)
    return bytes(msgpack.packb(data))


@pytest.mark.parametrize("examples", [25, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_junk_costs_more_than_reading_it(examples: int) -> None:
    """Its generalisation by search: memory in proportion to the bytes, and processor time at most
    20 times that of the largest honest request."""
    worst = [0.0, 0.0]
    honest = msgpack.packb({**_asking(), "asks": _asking()["asks"] * MAX_ASKS})
    reference = max(_peak(decode, honest, CLIENT)[2], 1e-3)

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_junk(), st.sampled_from([SERVER, CLIENT]))
    def search(payload: bytes, side: Side) -> None:
        _, most, took = _peak(decode, payload, side)
        assert most < 2 * MEGABYTE + 48 * len(payload)
        assert took < 20 * reference
        worst[:] = max(worst[0], most / MEGABYTE), max(worst[1], took / reference)

    search()
    most, ratio = worst[0], worst[1]
    print(
        f"class 4: {examples:,} kinds of junk: at most {most:.1f} MiB, {ratio:.2f} of the time of "
        "an honest request"
    )


RECORDS = Records({**dict.fromkeys(ANY_COLUMNS, np.arange(3.0)), "yes": np.arange(3)})


def _client(budget: float = 1.0) -> ClientRole:
    return ClientRole("client-0", 0, RECORDS, SystemNoise(), MemoryStore(budget))


def _ask(
    query: str,
    params: dict[str, Any],
    randomizer: str = "binary-rr",
    settings: dict[str, Any] | None = None,
    epsilon: float = 0.5,
) -> Ask:
    return Ask(
        query=query,
        query_params=params,
        randomizer=randomizer,
        randomizer_params={"epsilon": epsilon, **(settings or {})},
        start=0,
        stop=3,
        coins=bytes(16),
    )


def _round(*asks: Ask, number: int = 1) -> Request:
    return Request(run=RUN, round=number, asks=asks)


BOMB_LABELS = (*(f"{place:04d}" for place in range(4095)), "x" * 8_000)
NESTED = "[" * 30_000 + "]" * 30_000
ATTACKS = {
    "a label that makes each as long": _ask(
        "category", {"column": "x", "labels": BOMB_LABELS}, "grr", {"k": 4096}
    ),
    "the same in a table of two": _ask(
        "crossed",
        {
            "parts": ("x", "y"),
            "labels": ("\x1f".join(BOMB_LABELS[:2] + BOMB_LABELS[-1:]), "a\x1fb"),
        },
        "grr",
        {"k": 6},
    ),
    "a product of many factors": _ask("product", {"factors": ("x",) * 60_000}, "one-bit-mean"),
    "a text nested in itself": _ask("verdict", {"kind": "Tree", "hypothesis": NESTED}),
    "a query nested in itself": _ask(
        "encoded", {**ANY_PARAMETERS["encoded"], "query": NESTED}, "one-bit-mean"
    ),
    "waves with as many labels": _ask(
        "change-interval",
        {"waves": ("x",) * 4000, "labels": BOMB_LABELS[:4000], "change": 1, "width": 1},
        "change-tracking",
    ),
    "a channel of 10^12 entries": _ask(
        "grouped",
        {"column": "x", "low": 0.0, "high": 1.0},
        "rounded-grr",
        {"groups": 1 << 40, "steps": 1 << 20},
    ),
    "a deep question": _ask("question", {"text": "not " * 400 + "x > 1"}),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_request_ends_a_client(name: str) -> None:
    """Each attack made a client run out of memory or time, or end: now it is refused within 64 MB,
    and the client answers the next request."""
    member = _client()
    (answer,), most, took = _peak(member.handle, _round(ATTACKS[name]))
    print(
        f"class 4: {name}: refused ({answer.code}) with {most / MEGABYTE:.1f} MiB in {took:.3f} s"
    )
    assert isinstance(answer, Refusal)
    assert most < 64 * MEGABYTE
    assert isinstance(
        member.handle(_round(_ask("question", {"text": "yes == 1"}), number=2))[0], Reply
    )


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError(), SystemExit(3), AssertionError("x"), KeyError("x")]
)
def test_whatever_fails_is_one_refusal(error: BaseException) -> None:
    """Anything unexpected, wherever it is raised, is the one refusal "failed", and charges
    nothing."""

    class Failing(ClientRole):
        def _replies(self, *anything: Any) -> Any:
            raise error

    class FailingEarly(ClientRole):
        def _randomizer(self, *anything: Any) -> Any:
            raise error

    for kind in (Failing, FailingEarly):
        member = kind("client-0", 0, RECORDS, SystemNoise(), MemoryStore(1.0))
        (answer,) = member.handle(_round(_ask("question", {"text": "yes == 1"})))
        assert isinstance(answer, Refusal)
        assert (answer.code, member.store.ledger.max_spent) == ("failed", 0)


def test_the_charge_is_checked_before_the_channel() -> None:
    """A round that the budget does not allow costs a client no verification, which took 5 s for
    4,096 symbols."""
    member = _client(budget=0.1)
    (answer,) = member.handle(
        _round(_ask("category", {"column": "x", "labels": BOMB_LABELS[:4095]}, "grr", {"k": 4095}))
    )
    assert isinstance(answer, Refusal)
    assert (answer.code, member.work.done) == ("budget", verification_budget._BUILD)


def test_what_is_verified_for_one_request_and_in_a_life_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of channels in one request, and in one after the other: refused as too much, at the
    stated ceilings."""
    monkeypatch.setattr(verification_budget, "FOR_ONE", 1 << 24)
    monkeypatch.setattr(verification_budget, "FOR_LIFE", 1 << 26)
    member, plain = _client(24.0), _ask("question", {"text": "yes == 1"})
    assert isinstance(member.handle(_round(plain))[0], Reply)
    codes, before = list[str](), member.work.done
    for number in range(2, 12):
        asks = [
            _ask("question", {"text": "yes == 1"}, epsilon=1e-6 * (1000 * number + place))
            for place in range(500)
        ]
        (answer,) = member.handle(_round(*asks, number=number))
        assert isinstance(answer, Refusal)
        assert member.work.done - before <= verification_budget.FOR_ONE
        codes, before = [*codes, answer.code], member.work.done
    assert set(codes) == {"too-much"}
    assert member.work.done <= verification_budget.FOR_LIFE
    member.work._randomizers = verification_budget._Recent()
    assert isinstance(member.handle(_round(plain, number=20))[0], Refusal)
    print(
        f"class 4: 5,000 channels in 10 requests: {member.work.done:,} entries of "
        f"{verification_budget.FOR_LIFE:,}"
    )


SIZES = st.sampled_from(
    [0, 1, 2, 3, 8, 63, 64, 255, 1000, 1024, 4095, 4096, 65_536, 1 << 20, 1 << 22, 1 << 62]
)
TEXTS = st.sampled_from(
    ["grr", "hadamard", "oue", "k=4096", "k=8", "x", "ff" * 1024, "oue" * 300, ""]
)


@st.composite
def _parameters(draw: st.DrawFn, kind: type[Any], base: dict[str, Any]) -> dict[str, Parameter]:
    """Parameters of a query or a randomizer, of which some are other sizes, longer lists, longer
    texts."""
    params = dict(base)
    for field in fields(kind):
        if field.name in ("epsilon", "word_bits") or not draw(st.booleans()):
            continue
        value = params.get(field.name, None if field.default is MISSING else field.default)
        if isinstance(value, int | float):
            params[field.name] = draw(SIZES)
        elif isinstance(value, tuple):
            times = draw(st.sampled_from([1, 2, 64, 1000, 4096, 30_000]))
            alike = draw(st.booleans())
            item = value[0] if value else draw(TEXTS)
            params[field.name] = (
                (item,) * times
                if alike or not isinstance(item, str)
                else tuple(f"{item}{place}" for place in range(times))
            )
        elif isinstance(value, str):
            params[field.name] = (
                draw(st.sampled_from([value, value * 50, value * 20_000]))
                if draw(st.booleans())
                else draw(TEXTS)
            )
    return params


QUERY_ASKS = st.sampled_from(sorted(ANY_PARAMETERS)).flatmap(
    lambda name: st.tuples(st.just(name), _parameters(QUERIES[name], ANY_PARAMETERS[name]))
)
RANDOMIZER_ASKS = st.sampled_from(list(RANDOMIZERS)).flatmap(
    lambda name: st.tuples(st.just(name), _parameters(RANDOMIZERS[name], {}))
)


def _fitting(name: str, params: dict[str, Parameter]) -> dict[str, Any]:
    """A query of the randomizer's values, where one is at hand."""
    try:
        domain = RANDOMIZERS.build(name, {"epsilon": 0.5, **params}).domain
    except RefusedError:
        return {"query": "question", "query_params": {"text": "yes == 1"}}
    if domain.kind == "symbols" and 3 <= domain.size <= 4096:
        return {
            "query": "category",
            "query_params": {"column": "yes", "labels": tuple(map(str, range(domain.size)))},
        }
    if domain.kind == "grouped levels":
        return {
            "query": "grouped",
            "query_params": {
                "column": "x",
                "low": 0.0,
                "high": 1.0,
                "steps": min(domain.high, 1 << 20),
            },
        }
    return {"query": "bounded", "query_params": {"column": "x", "low": 0.0, "high": 1.0}}


@pytest.mark.parametrize(
    ("examples", "codes"),
    [
        (40, set()),
        pytest.param(3_000, {"reply", "bad-parameters", "bad-query"}, marks=pytest.mark.slow),
    ],
)
def test_the_work_of_every_query_and_randomizer_is_bounded(examples: int, codes: set[str]) -> None:
    """Every query and randomizer, with parameters of any size by search: replies and refusals alike
    stay within the stated entries and 512 MB."""
    seen, worst = dict[str, int](), [0.0]

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(QUERY_ASKS, RANDOMIZER_ASKS, st.booleans())
    def search(
        query: tuple[str, dict[str, Any]], by: tuple[str, dict[str, Any]], fit: bool
    ) -> None:
        base, question = (
            _ask("question", {"text": "yes == 1"}).model_dump(),
            _fitting(*by) if fit else {"query": query[0], "query_params": query[1]},
        )
        ask = {
            **base,
            **question,
            "randomizer": by[0],
            "randomizer_params": {"epsilon": 0.5, **by[1]},
        }
        payload = msgpack.packb(
            {"run": RUN, "kind": "request", "round": 1, "asks": [ask], "missing": ()}
        )
        try:
            asking = decode(payload, CLIENT)
        except WireError:
            seen["no message"] = seen.get("no message", 0) + 1
            return
        assert isinstance(asking, Request)
        member = _client()
        answers, most, _ = _peak(member.handle, asking)
        code = answers[0].code if isinstance(answers[0], Refusal) else "reply"
        seen[code] = seen.get(code, 0) + 1
        worst[0] = max(worst[0], most / MEGABYTE)
        assert most < 512 * MEGABYTE, (query[0], by)
        assert member.work.done <= verification_budget.FOR_ONE
        assert json.dumps(code)

    search()
    print(f"class 4: {dict(sorted(seen.items()))}: at most {worst[0]:.0f} MiB")
    assert len(seen) > 2
    assert codes <= seen.keys()
