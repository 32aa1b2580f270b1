"""Acceptance test 18: messages that are made to hurt, each rejected under its own counter, which the result shows."""

import json
import math
import tracemalloc
from dataclasses import replace
from importlib.resources import files

import jsonschema
import msgpack
import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.experiments.api.show import summary
from local_dp.experiments.tiers.execute import execute
from local_dp.experiments.tiers.outcome import BusRecord, as_data
from local_dp.experiments.tiers.settings import Randomness, Settings
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.wire import MAX_BYTES, Hello, Reply, encode, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, survey_query
from tests.support.runs.virtual_time import run_virtually

SCHEMA = json.loads(files("local_dp.experiments.tiers").joinpath("outcome.schema.json").read_text())
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
    "an extension type": (msgpack.packb({**FIELDS, "start": msgpack.ExtType(5, b"x")}), "extension"),
    "not a number": (_packed(start=math.nan), "not-finite"),
    "a truth value for a whole number": (_packed(start=True), "wrong-type"),
    "a name twice": (_twice(), "repeated-key"),
    "bytes after the end": (encode(HONEST) + b"\x00", "trailing-bytes"),
    "an unknown field": (_packed(more=1), "unknown-field"),
    "a field that is missing": (msgpack.packb({key: value for key, value in FIELDS.items() if key != "width"}), "missing-field"),
    "a number out of range": (_packed(start=-1), "wrong-value"),
    "a whole number in nine bytes": (encode(HONEST).replace(b"\xa5start\x00", b"\xa5start\xcf" + bytes(8)), "not-canonical"),
    "no message of ours": (msgpack.packb({**FIELDS, "kind": "bomb"}), "unknown-kind"),
    "no MessagePack": (b"\xc1", "malformed"),
    "a reply to a round that was not asked": (_packed(round=7), "unfit"),
    "a reply of a stranger": (_packed(member="nobody"), "unread"),
}


def _server() -> RemoteOracle:
    coordinator = Coordinator(RUN, 2, SEED, 1.0, Terms(20.0))
    coordinator.receive(topic(RUN, "hello", "g0", "m"), Hello(run=RUN, member="m", start=0, stop=2, private=False), 0.0)
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
    """Each kind of bomb is rejected once, under a counter that no other has, with less than ten megabytes of memory."""
    assert len({kind for _, kind in BOMBS.values()}) == len(BOMBS)
    largest = 0
    for name, (payload, kind) in BOMBS.items():
        counted, most = _thrown(payload)
        assert counted == {kind: 1}, name
        largest = max(largest, most)
    together, _ = _thrown(*(payload for payload, _ in BOMBS.values()))
    assert together == {kind: 1 for _, kind in BOMBS.values()}
    figure(18, f"{len(BOMBS)} bombs, each under its own counter: {', '.join(sorted(together))}; at most {largest / (1 << 20):.1f} MiB")
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
        (BusRecord(silenced={"client-3": 2, "": 1}), "FLOODED by 1 member (client-3), ignored for a while and by strangers, shut out"),
    ],
)
def test_the_result_shows_the_counters_and_who_flooded(record: BusRecord, shown: str) -> None:
    """As data, in the published form, and in a person's words."""
    settings = Settings(Survey(), Survey().synthetic(9, 1), 1.0, Randomness(1, False), tier="population")
    data = as_data(settings, replace(execute(settings, lambda progress: None), bus=record))
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMA)
    assert data.get("rejections", {}) == record.rejections
    text = " ".join(summary(data, 100).split())
    assert ("silenced" in data) == ("FLOODED" in text) == bool(record.silenced)
    assert shown in text
