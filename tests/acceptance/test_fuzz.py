"""Acceptance tests 17 and 18: bytes that nobody meant, and messages made to hurt: none is raised,
none is kept, each is counted."""

import json
import math
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files

import jsonschema
import msgpack
import psutil
import pytest

from local_dp.api.show import summary
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.role import ClientRole
from local_dp.errors import WireError
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import BusRecord, as_data
from local_dp.simulation.settings import Randomness, Settings
from local_dp.wire import (
    CLIENT,
    MAX_BYTES,
    SERVER,
    Gone,
    Hello,
    Refusal,
    Reply,
    Request,
    Roll,
    decode,
    encode,
    topic,
)
from tests.support.figures import figure
from tests.support.inputs.builders import (
    RUN,
    SEED,
    arrive,
    request,
    role,
    survey_query,
    yes_records,
)
from tests.support.runs.virtual_time import run_virtually

MEGABYTE = 1 << 20
ROOM = 50 * MEGABYTE
CLIENTS = 20
ASKED = survey_query(CLIENTS)
VALID = [
    encode(message)
    for message in (
        request(ASKED),
        request(ASKED, ASKED, number=2),
        request(ASKED).model_copy(update={"missing": ((0, 3), (7, 9))}),
        Reply(run=RUN, round=1, member="m3", ask=0, start=3, width=1, reports=b"\x01"),
        Reply(run=RUN, round=1, member="m0", ask=0, start=0, width=1, reports=bytes(3)),
        Refusal(run=RUN, round=1, member="m4", start=4, stop=5, code="budget", text="spent"),
        Hello(run=RUN, member="m9", start=9, stop=10, private=False),
        Gone(run=RUN, member="m5"),
        Roll(run=RUN),
    )
]
VALUES: tuple[object, ...] = (
    *(0, 1, -1, 2, 255, 1 << 31, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), True, None, "", "m1", b"", (), {}),
)


def _random(chance: random.Random) -> bytes:
    """Any bytes, of which half begin as a map does."""
    size = chance.choice((0, 1, 3, 20, 20, 60, 60, 200)) if chance.random() < 0.999 else 1 << 16
    return (
        bytes([0x80 + chance.getrandbits(4)]) if chance.random() < 0.5 else b""
    ) + chance.randbytes(size)


def _mutated(chance: random.Random) -> bytes:
    """A valid message with some bytes changed, lost, repeated or joined with another's, or with
    another value somewhere."""
    payload = bytearray(chance.choice(VALID))
    for _ in range(chance.choice((1, 1, 2, 5))):
        place, end = sorted(
            (chance.randrange(len(payload) + 1), chance.randrange(len(payload) + 1))
        )
        match chance.choice(("flip", "flip", "cut", "repeat", "splice", "exchange", "exchange")):
            case "flip":
                payload[place : place + 1] = bytes([chance.getrandbits(8)])
            case "cut":
                del payload[place : min(end, place + 8)]
            case "repeat":
                payload[place:place] = payload[place:end]
            case "splice":
                payload[place:] = chance.choice(VALID)[place:]
            case _:
                with suppress(
                    ValueError, OverflowError, TypeError, msgpack.exceptions.UnpackException
                ):
                    payload[:] = msgpack.packb(
                        _changed(msgpack.unpackb(payload, use_list=False), chance),
                        use_single_float=chance.random() < 0.1,
                    )
    return bytes(payload)


def _changed(data: object, chance: random.Random) -> object:
    """The same with another value, name or order somewhere."""
    if isinstance(data, tuple) and data and chance.random() < 0.9:
        place = chance.randrange(len(data))
        return (*data[:place], _changed(data[place], chance), *data[place + 1 :])
    if isinstance(data, dict) and data and chance.random() < 0.9:
        name, how = chance.choice([*data]), chance.random()
        if how < 0.1:
            return dict(reversed(data.items()))
        return (
            {**data, f"{name}s": 1} if how < 0.2 else {**data, name: _changed(data[name], chance)}
        )
    return chance.choice(VALUES)


def _open() -> Coordinator:
    """A server with its members in a round."""
    coordinator = Coordinator(RUN, CLIENTS, SEED, 1.0, Terms(20.0))
    for index in range(CLIENTS):
        arrive(coordinator, f"m{index}", index, index + 1, 0.0, "g0")
    coordinator.open((ASKED,), 0.0)
    return coordinator


def _heard(
    payload: bytes, coordinator: Coordinator, client: ClientRole, seen: Counter[str]
) -> None:
    try:
        message = decode(payload, SERVER)
        coordinator.receive(topic(RUN, "rep", "g0", getattr(message, "member", "m0")), message, 1.0)
        seen["server reads"] += 1
    except WireError as error:
        coordinator.rejections[error.kind] += 1
    try:
        message_read = decode(payload, CLIENT)
    except WireError as error:
        seen[f"client: {error.kind}"] += 1
        return
    seen["client reads"] += 1
    if isinstance(message_read, Request):
        client.handle(message_read)


def _batches(
    make: Callable[[random.Random], bytes], count: int, chance: random.Random
) -> Iterator[list[bytes]]:
    for start in range(0, count, 5000):
        yield [make(chance) for _ in range(min(5000, count - start))]


def _unpacking(batch: list[bytes]) -> float:
    began = time.process_time()
    for payload in batch:
        with suppress(ValueError, msgpack.exceptions.UnpackException):
            msgpack.unpackb(payload, use_list=False)
    return time.process_time() - began


@pytest.mark.parametrize(
    ("random_ones", "mutated_ones"),
    [(2_000, 2_000), pytest.param(1_000_000, 500_000, marks=pytest.mark.slow)],
)
def test_no_bytes_are_an_error(random_ones: int, mutated_ones: int) -> None:
    """Random bytes and changed messages: each is read, or rejected under a counter; nothing is
    raised, memory stays, and nobody pays twice."""
    chance, seen, memory = random.Random(17), Counter[str](), psutil.Process().memory_info
    coordinator, client = _open(), role(yes_records(CLIENTS))
    used, unpacking, before = 0.0, 0.0, memory().rss
    for make, count in ((_random, random_ones), (_mutated, mutated_ones)):
        for batch in _batches(make, count, chance):
            began = time.process_time()
            for payload in batch:
                _heard(payload, coordinator, client, seen)
            used += time.process_time() - began
            unpacking += _unpacking(batch)
    more, rejected = memory().rss - before, coordinator.rejections
    figure(
        17,
        f"{random_ones:,} random and {mutated_ones:,} mutated messages to a server and a client: "
        f"0 uncaught, {more / MEGABYTE:.0f} MB more, {(random_ones + mutated_ones) / used:,.0f} a "
        f"second through both, {used / unpacking:.0f} times what msgpack alone takes; the server "
        f"rejects {rejected.total():,} under {len(rejected)} counters and reads "
        f"{seen['server reads']:,}, a client reads {seen['client reads']:,}",
    )
    assert more < ROOM
    assert coordinator.counts.answered <= CLIENTS
    assert client.store.ledger.max_spent <= 1.0
    assert min(seen["server reads"], seen["client reads"]) > mutated_ones / 100
    assert {
        "malformed",
        "unknown-kind",
        "unknown-field",
        "missing-field",
        "wrong-type",
        "wrong-value",
        "trailing-bytes",
        "not-canonical",
    } <= rejected.keys()


SCHEMA = json.loads(files("local_dp.simulation").joinpath("outcome.schema.json").read_text())
HONEST = Reply(run=RUN, round=1, member="m", ask=0, start=0, width=1, reports=b"\x01")
FIELDS = msgpack.unpackb(encode(HONEST))


def _packed(**changed: object) -> bytes:
    packed: bytes = msgpack.packb({**FIELDS, **changed})
    return packed


def _twice() -> bytes:
    """The honest message with its first name and value once more."""
    honest, first = encode(HONEST), msgpack.packb("run") + msgpack.packb(RUN)
    twice: bytes = bytes([honest[0] + 1]) + first + honest[1:]
    return twice


BOMBS = {
    "a body of 2 MB": (bytes(2 * MAX_BYTES), "oversized"),
    "a depth of 200,000": (b"\x81\xa1a" * 200_000 + b"\x00", "too-deep"),
    "an array of 2^32 - 1": (b"\xdd\xff\xff\xff\xff", "too-long"),
    "an extension type": (
        msgpack.packb({**FIELDS, "start": msgpack.ExtType(5, b"x")}),
        "extension",
    ),
    "not a number": (_packed(start=math.nan), "not-finite"),
    "a truth value for a whole number": (_packed(start=True), "wrong-type"),
    "a name twice": (_twice(), "repeated-key"),
    "bytes after the end": (encode(HONEST) + b"\x00", "trailing-bytes"),
    "an unknown field": (_packed(more=1), "unknown-field"),
    "a field that is missing": (
        msgpack.packb({key: value for key, value in FIELDS.items() if key != "width"}),
        "missing-field",
    ),
    "a number out of range": (_packed(start=-1), "wrong-value"),
    "a whole number in nine bytes": (
        encode(HONEST).replace(b"\xa5start\x00", b"\xa5start\xcf" + bytes(8)),
        "not-canonical",
    ),
    "no message of ours": (msgpack.packb({**FIELDS, "kind": "bomb"}), "unknown-kind"),
    "no MessagePack": (b"\xc1", "malformed"),
    "a reply to a round that was not asked": (_packed(round=7), "unfit"),
    "a reply of a stranger": (_packed(member="nobody"), "unread"),
}


def _server() -> RemoteOracle:
    coordinator = Coordinator(RUN, 2, SEED, 1.0, Terms(20.0))
    arrive(coordinator, "m", 0, 2, 0.0, "g0")
    coordinator.open((survey_query(2),), 0.0)
    return RemoteOracle(MemoryBroker().join([]), coordinator)


def _thrown(*payloads: bytes) -> tuple[dict[str, int], int]:
    """What a server counts of these, and the most memory that it takes."""
    server = _server()

    async def throw() -> int:
        tracemalloc.start()
        for payload in payloads:
            sender = "nobody" if b"nobody" in payload else "m"
            server._deliver(Delivery(topic(RUN, "rep", "g0", sender), payload))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    most = run_virtually(throw())
    assert server.coordinator.counts.answered == 0
    return dict(server.coordinator.rejections), most


def test_every_bomb_has_its_counter() -> None:
    """Each kind of bomb is rejected once, under a counter that no other has, with less than ten
    megabytes of memory."""
    assert len({kind for _, kind in BOMBS.values()}) == len(BOMBS)
    largest = 0
    for name, (payload, kind) in BOMBS.items():
        counted, most = _thrown(payload)
        assert counted == {kind: 1}, name
        largest = max(largest, most)
    together, _ = _thrown(*(payload for payload, _ in BOMBS.values()))
    assert together == {kind: 1 for _, kind in BOMBS.values()}
    figure(
        18,
        (
            f"{len(BOMBS)} bombs, each under its own counter: {', '.join(sorted(together))}; at "
            f"most {largest / (1 << 20):.1f} MiB"
        ),
    )
    assert largest < 10 << 20


def test_the_honest_one_is_counted() -> None:
    server = _server()

    async def hear() -> None:
        server._deliver(Delivery(topic(RUN, "rep", "g0", "m"), encode(HONEST)))

    run_virtually(hear())
    assert (server.coordinator.counts.answered, server.coordinator.rejected) == (1, 0)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (BusRecord(), ""),
        (BusRecord(rejections={"oversized": 2, "too-deep": 1}), "2 oversized, 1 too-deep"),
        (BusRecord(silenced={"": 1}), "FLOODED by strangers, shut out:"),
        (
            BusRecord(silenced={"client-3": 2, "": 1}),
            "FLOODED by 1 member (client-3), ignored for a while and by strangers, shut out",
        ),
    ],
)
def test_the_result_shows_the_counters_and_who_flooded(record: BusRecord, shown: str) -> None:
    """As data, in the published form, and in a person's words."""
    settings = Settings(
        Survey(), Survey().synthetic(9, 1), 1.0, Randomness(1, False), tier="population"
    )
    data = as_data(settings, replace(execute(settings, lambda progress: None), bus=record))
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMA)
    assert data.get("rejections", {}) == record.rejections
    text = " ".join(summary(data, 100).split())
    assert ("silenced" in data) == ("FLOODED" in text) == bool(record.silenced)
    assert shown in text
