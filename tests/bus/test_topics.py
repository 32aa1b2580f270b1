"""The server's bus: what an old connection leaves touches no new one, and nothing is lost while
topics change."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from local_dp.bus.address import TIMEOUT, Address
from local_dp.bus.interface import CONNECTED, Connected, Delivery
from local_dp.bus.mqtt import MqttBus, _Connection
from tests.support.adversaries.spoken import WELCOME, Answer, granted, said, scripted
from tests.support.runs.brokers import a_broker, needs_mosquitto
from tests.support.wrong import wrong

WAIT = 20.0  # seconds, of a broker that has much to do


async def _numbers(
    events: AsyncGenerator[Delivery | Connected, None], topic: str, last: int
) -> list[int]:
    numbers: list[int] = []
    async for event in events:
        if isinstance(event, Delivery) and event.topic == topic:
            numbers.append(int(event.payload))
            if numbers[-1] == last:
                break
    return numbers


async def _join(bus: MqttBus) -> AsyncGenerator[Delivery | Connected, None]:
    events = bus.messages(WAIT)
    assert await anext(events) == CONNECTED
    return events


@needs_mosquitto
@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("embedded", marks=pytest.mark.long)])
def test_nothing_is_lost_while_topics_change(kind: str, tmp_path: Path) -> None:
    """Of 2,000 numbered messages, during which a wildcard gives way to 300 topics, each comes once
    or twice, in order; then no others come any more."""

    async def play(url: str) -> None:
        address = Address.parse(url)
        hearing, speaking = MqttBus(address, "hearing", ["t/+"]), MqttBus(address, "speaking", [])
        async with aclosing(await _join(hearing)) as events, aclosing(await _join(speaking)):
            reading = asyncio.create_task(_numbers(events, "t/1", 2000))
            for number in range(1, 2001):
                await speaking.publish("t/1", str(number).encode())
                if number == 1000:
                    changing = asyncio.create_task(
                        hearing.listen([f"t/{each}" for each in range(300)])
                    )
                if number % 50 == 0:
                    await asyncio.sleep(0.01)
            numbers = await asyncio.wait_for(reading, WAIT)
            await changing
            assert [
                each
                for place, each in enumerate(numbers)
                if place == 0 or each != numbers[place - 1]
            ] == list(range(1, 2001))
            for topic in ("t/left", "t/2"):
                await speaking.publish(topic, b"1")
            assert await asyncio.wait_for(anext(events), WAIT) == Delivery("t/2", b"1")

    with a_broker(kind, tmp_path) as url:
        asyncio.run(play(url))


@wrong(
    "local_dp.bus.mqtt:_Connection._write_to",
    "line.fileno() >= 0",
    "True",
    "the loop watches a socket that was closed, whose number may be another one's",
)
def test_what_a_lost_connection_owes_does_not_touch_the_next() -> None:
    """A publish that is under way ends with its connection, which the loop forgets; the next
    connection speaks."""

    async def play(address: Address) -> float:
        errors = list[object]()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: errors.append(context))
        bus = MqttBus(address, "s", ["t"])
        async with aclosing(await _join(bus)) as events:
            again = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            time.sleep(0.4)  # until the broker has hung up, unseen
            began = loop.time()
            await bus.publish("t", b"lost")
            duration = loop.time() - began
            assert await again == CONNECTED
            await bus.publish("t", b"later")
        assert errors == []
        return duration

    with scripted((said(WELCOME), granted()), (said(WELCOME), granted())) as (address, packets):
        assert asyncio.run(play(address)) < TIMEOUT / 2
    assert b"later" in b"".join(packets)


@wrong(
    "local_dp.bus.mqtt:MqttBus.publish",
    "connection.lose(error)",
    "self._connection = None",
    "after one message that did not leave in time, every later one is dropped",
)
def test_a_broker_that_does_not_read_is_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that does not leave in time ends its own connection."""
    monkeypatch.setattr("local_dp.bus.mqtt.TIMEOUT", 0.5)
    given_up = threading.Event()

    def deaf(packet: bytes) -> bytes:
        given_up.wait(WAIT)
        return b""

    async def play(address: Address) -> None:
        bus = MqttBus(address, "s", ["t"])
        async with aclosing(await _join(bus)) as events:
            again = asyncio.ensure_future(anext(events))
            connection: Any = bus._connection
            await bus.publish("t", bytes(1 << 25))
            await asyncio.sleep(0.01)
            given_up.set()
            assert connection.client._client.socket() is None
            assert await asyncio.wait_for(again, WAIT) == CONNECTED
            await bus.publish("t", b"later")

    with scripted((said(WELCOME), granted(), deaf), (said(WELCOME), granted())) as (
        address,
        packets,
    ):
        asyncio.run(play(address))
    assert b"later" in b"".join(packets)


@wrong(
    "local_dp.bus.mqtt:MqttBus.listen",
    "before, self.filters, connection = (self.filters, filters, self._connection)",
    "before, connection = (self.filters, self._connection)",
    "a change of topics that was lost with its connection is never made good",
)
def test_topics_that_are_lost_with_a_connection_stand_on_the_next() -> None:
    """A change that the broker never answers is made good, and the next change begins from
    there."""
    packets = list[bytes]()

    def note(answer: Answer) -> Answer:
        return lambda packet: packets.append(packet) or answer(packet)  # type: ignore[func-returns-value]

    async def play(address: Address) -> None:
        bus = MqttBus(address, "s", ["t"])
        async with aclosing(await _join(bus)) as events:
            again = asyncio.ensure_future(anext(events))
            await asyncio.wait_for(bus.listen(["t", "u"]), TIMEOUT / 2)
            assert await again == CONNECTED
            await bus.listen(["u"])

    def both_granted(packet: bytes) -> bytes:
        return b"\x90\x04" + packet[2:4] + b"\0\0"

    def left(packet: bytes) -> bytes:
        return b"\xb0\x02" + packet[2:4]

    with scripted(
        (said(WELCOME), granted(), said(b"")), (said(WELCOME), note(both_granted), note(left))
    ) as (address, _):
        asyncio.run(play(address))
    assert [packet[4:] for packet in packets] == [b"\0\x01t\0\0\x01u\0", b"\0\x01t"]


class _Refusing:  # a connection to a broker that grants only "t"
    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self._client = SimpleNamespace()
        self._disconnected = asyncio.Future[None]()

    async def subscribe(self, topics: list[tuple[str, int]]) -> list[int]:
        self.calls.append(("subscribe", tuple(topic for topic, _ in topics)))
        return [0 if topic == "t" else 0x80 for topic, _ in topics]

    async def unsubscribe(self, topics: list[str]) -> None:
        self.calls.append(("unsubscribe", tuple(topics)))


def test_where_the_broker_refuses_the_old_topics_are_heard() -> None:
    async def play() -> None:
        bus, client = MqttBus(Address("127.0.0.1", 1), "s", ["t"]), _Refusing()
        connection: Any = _Connection(cast("Any", client))
        bus._connection, connection._standing = connection, {"t"}
        await bus.listen(["a", "b"])
        there = [("subscribe", ("a", "b")), ("unsubscribe", ("t",))]
        back = [("subscribe", ("t",)), ("unsubscribe", ("a", "b"))]
        assert [(what, tuple(sorted(topics))) for what, topics in client.calls] == there + back
        assert (bus.filters, connection._standing) == (["t"], {"t"})

    asyncio.run(play())
