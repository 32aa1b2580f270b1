"""P6: what a stranger sends costs the server and a client bounded work, and ends neither."""

from typing import Any

import msgpack
import numpy as np
import pytest

from local_dp.clients import role as verification_budget
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole
from local_dp.errors import RefusedError, WireError
from local_dp.noise import SystemNoise
from local_dp.records import Records
from local_dp.wire import CLIENT, SERVER, Ask, Refusal, Reply, Request, decode
from tests.support.effort import Peak
from tests.support.inputs.builders import RUN, request, survey_query
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS
from tests.support.wrong import wrong

MEGABYTE = 1 << 20


def _peak(call: Any, *arguments: Any) -> tuple[Any, int]:
    """What the call gives or raises, and the most memory that Python and numpy held for it, in
    bytes."""
    with Peak() as peak:
        try:
            result = call(*arguments)
        except (WireError, RefusedError) as error:
            result = error
    return result, peak.bytes


def _asking(**changes: Any) -> dict[str, Any]:
    data = request(survey_query(9)).model_dump()
    data["asks"] = [{**data["asks"][0], **changes}]
    return data


BOMBS = {
    "a million asks of nothing": msgpack.packb({**_asking(), "asks": [None] * 1_000_000}),
    "lists of which the last item is wrong": msgpack.packb(
        _asking(query_params={f"a{place}": ["x"] * 60_000 + [None] for place in range(8)})
    ),
    "maps in maps": msgpack.packb(
        {"kind": "reply", "a": [{str(key): {} for key in range(9)}] * 40_000}
    ),
    "a million maps of nothing": b"\xdc\x00\x0f" + 15 * (b"\xdc\xff\xff" + b"\x80" * 65_535),
    "arrays of one": b"\xdc\xff\xff" + b"\x91\xc0" * 65_535,
}


@wrong(
    "local_dp.wire:_unpack",
    "left < 0",
    "False",
    "maps and arrays of a message are made before its schema, however many there are",
    at="a million maps of nothing",
)
@pytest.mark.parametrize("name", BOMBS)
def test_junk_is_refused_by_its_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack took the server 4.2 s and 1.7 GB: now no schema of a request is run there, and
    nobody holds more than 16 MB for it."""

    def run(*anything: Any) -> None:
        raise AssertionError("the schema of a request was run")

    result, most = _peak(decode, BOMBS[name], CLIENT)
    assert isinstance(result, WireError)
    monkeypatch.setattr(Request, "model_validate", run)
    peak, least = _peak(decode, BOMBS[name], SERVER)
    assert isinstance(peak, WireError)
    assert max(most, least) < 16 * MEGABYTE


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
    "a product of many factors": _ask("product", {"factors": ("x",) * 60_000}, "one-bit-mean"),
    "a text nested in itself": _ask("verdict", {"kind": "Tree", "hypothesis": NESTED}),
    "a query nested in itself": _ask(
        "encoded", {**ANY_PARAMETERS["encoded"], "query": NESTED}, "one-bit-mean"
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
    (answer,), most = _peak(member.handle, _round(ATTACKS[name]))
    assert isinstance(answer, Refusal)
    assert most < 64 * MEGABYTE
    assert isinstance(
        member.handle(_round(_ask("question", {"text": "yes == 1"}), number=2))[0], Reply
    )


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(3), KeyError("x")])
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


@wrong(
    "local_dp.clients.role:Work._spend",
    "self.done + units > self._end",
    "False",
    "a request makes a client verify as many channels as it names",
)
def test_what_is_verified_for_one_request_and_in_a_life_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of channels in one request, and in one after the other: refused as too much, at the
    stated ceilings."""
    monkeypatch.setattr(verification_budget, "FOR_ONE", 1 << 24)
    monkeypatch.setattr(verification_budget, "FOR_LIFE", 1 << 26)
    member, plain = _client(24.0), _ask("question", {"text": "yes == 1"})
    assert isinstance(member.handle(_round(plain))[0], Reply)
    before = member.work.done
    for number in range(2, 8):
        asks = [
            _ask("question", {"text": "yes == 1"}, epsilon=1e-6 * (1000 * number + place))
            for place in range(500)
        ]
        (answer,) = member.handle(_round(*asks, number=number))
        assert isinstance(answer, Refusal)
        assert answer.code == "too-much"
        assert member.work.done - before <= verification_budget.FOR_ONE
        before = member.work.done
    assert member.work.done <= verification_budget.FOR_LIFE
    member.work._randomizers.clear()
    assert isinstance(member.handle(_round(plain, number=20))[0], Refusal)
