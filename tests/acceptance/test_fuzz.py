"""P6, P7: bytes that nobody meant, and messages made to hurt: none is raised, none is kept, each is
counted."""

import json
import math
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files

import jsonschema
import msgpack

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
    Reply,
    Request,
    decode,
    encode,
    topic,
)
from tests.support.effort import Peak
from tests.support.golden import MESSAGES
from tests.support.inputs.builders import (
    RUN,
    SEED,
    arrive,
    reply_of,
    request,
    role,
    survey_query,
    yes_records,
)
from tests.support.runs.virtual_time import run_virtually
from tests.support.wrong import wrong

MEGABYTE = 1 << 20
CLIENTS = 20
ASKED = survey_query(CLIENTS)
VALID = [
    encode(message)
    for message in (
        *MESSAGES,
        request(ASKED),
        *(reply_of(1, f"m{start}", start, b"\1") for start in range(3)),
        Hello(run=RUN, member="m9", start=9, stop=10, private=False),
        Gone(run=RUN, member="m5"),
    )
]


def _random(chance: random.Random) -> bytes:
    """Any bytes, of which half begin as a map does."""
    start = bytes([0x80 + chance.getrandbits(4)]) if chance.random() < 0.5 else b""
    return start + chance.randbytes(chance.choice((0, 1, 3, 20, 60, 200)))


def _mutate(chance: random.Random) -> bytes:
    """A valid message with some bytes changed, lost or repeated."""
    payload = bytearray(chance.choice(VALID))
    for _ in range(chance.choice((1, 1, 2, 5))):
        place, end = sorted(
            (chance.randrange(len(payload) + 1), chance.randrange(len(payload) + 1))
        )
        match chance.choice(("flip", "flip", "cut", "repeat")):
            case "flip":
                payload[place : place + 1] = bytes([chance.getrandbits(8)])
            case "cut":
                del payload[place : min(end, place + 8)]
            case _:
                payload[place:place] = payload[place:end]
    return bytes(payload)


def _open() -> Coordinator:
    """A server with its members in a round."""
    coordinator = Coordinator(RUN, CLIENTS, SEED, 1.0, Terms(20.0))
    for index in range(CLIENTS):
        arrive(coordinator, f"m{index}", index, index + 1, 0.0, "g0")
    coordinator.open((ASKED,), 0.0)
    return coordinator


def _hear(
    payload: bytes, coordinator: Coordinator, client: ClientRole, counts: Counter[str]
) -> None:
    try:
        message = decode(payload, SERVER)
        coordinator.receive(topic(RUN, "rep", "g0", getattr(message, "member", "m0")), message, 1.0)
        counts["server reads"] += 1
    except WireError as error:
        coordinator.rejections[error.kind] += 1
    with suppress(WireError):
        request = decode(payload, CLIENT)
        counts["client reads"] += 1
        if isinstance(request, Request):
            client.handle(request)


def test_no_bytes_are_an_error() -> None:
    """Random bytes and changed messages: each is read, or rejected under a counter; nothing is
    raised, and nobody pays twice."""
    chance, counts = random.Random(17), Counter[str]()
    coordinator, client = _open(), role(yes_records(CLIENTS))
    for make in (_random, _mutate):
        for _ in range(2_000):
            _hear(make(chance), coordinator, client, counts)
    assert coordinator.counts.answered <= CLIENTS
    assert client.store.ledger.max_spent <= 1.0
    assert min(counts["server reads"], counts["client reads"]) > 10
    assert {
        "malformed",
        "unknown-kind",
        "missing-field",
        "wrong-value",
        "trailing-bytes",
    } <= coordinator.rejections.keys()


SCHEMA = json.loads(files("local_dp.simulation").joinpath("outcome.schema.json").read_text())
HONEST = Reply(run=RUN, round=1, member="m", ask=0, start=0, width=1, reports=b"\x01")
FIELDS = msgpack.unpackb(encode(HONEST))


def _pack(**fields: object) -> bytes:
    data: bytes = msgpack.packb({**FIELDS, **fields})
    return data


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
    "not a number": (_pack(start=math.nan), "not-finite"),
    "a truth value for a whole number": (_pack(start=True), "wrong-type"),
    "a name twice": (_twice(), "repeated-key"),
    "bytes after the end": (encode(HONEST) + b"\x00", "trailing-bytes"),
    "an unknown field": (_pack(more=1), "unknown-field"),
    "a field that is missing": (
        msgpack.packb({key: value for key, value in FIELDS.items() if key != "width"}),
        "missing-field",
    ),
    "a number out of range": (_pack(start=-1), "wrong-value"),
    "a whole number in nine bytes": (
        encode(HONEST).replace(b"\xa5start\x00", b"\xa5start\xcf" + bytes(8)),
        "not-canonical",
    ),
    "no message of ours": (msgpack.packb({**FIELDS, "kind": "bomb"}), "unknown-kind"),
    "no MessagePack": (b"\xc1", "malformed"),
    "a reply to a round that was not asked": (_pack(round=7), "unfit"),
    "a reply of a stranger": (_pack(member="nobody"), "unread"),
}


def _server() -> RemoteOracle:
    coordinator = Coordinator(RUN, 2, SEED, 1.0, Terms(20.0))
    arrive(coordinator, "m", 0, 2, 0.0, "g0")
    coordinator.open((survey_query(2),), 0.0)
    return RemoteOracle(MemoryBroker().join([]), coordinator)


def _throw(*payloads: bytes) -> tuple[dict[str, int], int]:
    """What a server counts of these, and the most memory that it takes."""
    server = _server()

    async def throw() -> int:
        with Peak() as peak:
            for payload in payloads:
                sender = "nobody" if b"nobody" in payload else "m"
                server._deliver(Delivery(topic(RUN, "rep", "g0", sender), payload))
        return peak.bytes

    most = run_virtually(throw())
    assert server.coordinator.counts.answered == 0
    return dict(server.coordinator.rejections), most


@wrong(
    "local_dp.wire:decode",
    "encode(message) != payload",
    "False",
    "one message has many forms, so digests and equivocation checks do not hold",
)
@wrong(
    "local_dp.wire:_repeats",
    "len(pairs) - len(values)",
    "0",
    "a message with a name twice is not told from one that is written otherwise",
)
def test_every_bomb_has_its_counter() -> None:
    """Each kind of bomb is rejected once, under a counter that no other has, with less than ten
    megabytes of memory."""
    assert len({kind for _, kind in BOMBS.values()}) == len(BOMBS)
    largest = 0
    for name, (payload, kind) in BOMBS.items():
        counts, most = _throw(payload)
        assert counts == {kind: 1}, name
        largest = max(largest, most)
    together, _ = _throw(*(payload for payload, _ in BOMBS.values()))
    assert together == {kind: 1 for _, kind in BOMBS.values()}
    assert largest < 10 << 20


def test_the_result_shows_the_counters_and_who_flooded() -> None:
    """As data, in the published form, and in a person's words."""
    settings = Settings(
        Survey(), Survey().synthetic(9, 1), 1.0, Randomness(1, False), tier="population"
    )
    record = BusRecord(rejections={"oversized": 2, "too-deep": 1}, silences={"client-3": 2, "": 1})
    data = as_data(settings, replace(execute(settings, lambda progress: None), bus=record))
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMA)
    assert (data["rejections"], data["silenced"]) == (
        record.rejections,
        {"members": ["client-3"], "strangers": True},
    )
    text = " ".join(summary(data, 100).split())
    assert "2 oversized, 1 too-deep" in text
    assert "FLOODED by 1 member (client-3), ignored for a while and by strangers, shut out" in text
