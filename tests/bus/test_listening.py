"""A server's bus whose topics change: what comes under old and new topics is not lost, the rest is left, and every connection has those of now."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.address import Address
from local_dp.bus.interface import CONNECTED, Connected, Delivery
from local_dp.bus.mqtt import MqttBus
from tests.support.runs.brokers import a_broker, mosquitto, needs_mosquitto

WAIT = 20.0  # seconds, of a broker that has much to do


async def _numbers(events: AsyncGenerator[Delivery | Connected, None], topic: str, last: int) -> list[int]:
    numbers: list[int] = []
    async for event in events:
        if isinstance(event, Delivery) and event.topic == topic:
            numbers.append(int(event.payload))
            if numbers[-1] == last:
                break
    return numbers


async def _joined(bus: MqttBus) -> AsyncGenerator[Delivery | Connected, None]:
    events = bus.messages(WAIT)
    assert await anext(events) == CONNECTED
    return events


@needs_mosquitto
@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("embedded", marks=pytest.mark.long)])
def test_nothing_is_lost_while_topics_change(kind: str, tmp_path: Path) -> None:
    """Of 2,000 numbered messages, during which a wildcard gives way to 300 topics, each comes once or twice, in order; then no others come any more."""

    async def play(url: str) -> None:
        address = Address.parse(url)
        hearing, speaking = MqttBus(address, "hearing", ["t/+"]), MqttBus(address, "speaking", [])
        async with aclosing(await _joined(hearing)) as events, aclosing(await _joined(speaking)):
            reading = asyncio.create_task(_numbers(events, "t/1", 2000))
            for number in range(1, 2001):
                await speaking.publish("t/1", str(number).encode())
                if number == 1000:
                    changing = asyncio.create_task(hearing.listen([f"t/{each}" for each in range(300)]))
                if number % 50 == 0:
                    await asyncio.sleep(0.01)
            numbers = await asyncio.wait_for(reading, WAIT)
            await changing
            assert [each for place, each in enumerate(numbers) if place == 0 or each != numbers[place - 1]] == list(range(1, 2001))
            for topic in ("t/left", "t/2"):
                await speaking.publish(topic, b"1")
            assert await asyncio.wait_for(anext(events), WAIT) == Delivery("t/2", b"1")

    with a_broker(kind, tmp_path) as url:
        asyncio.run(play(url))


@needs_mosquitto
def test_a_connection_begins_with_the_topics_of_now(tmp_path: Path) -> None:
    """Also where they are others since it broke."""

    async def play() -> None:
        address = Address.parse(broker.url)
        hearing, speaking = MqttBus(address, "hearing", ["t/+"]), MqttBus(address, "speaking", [])
        async with aclosing(await _joined(hearing)) as events:
            await hearing.listen(["t/1", "t/2"])
            broker.restart()
            again = asyncio.ensure_future(anext(events))
            while hearing._client is not None:
                await asyncio.sleep(0.01)
            await hearing.listen(["t/2"])
            assert await asyncio.wait_for(again, WAIT) == CONNECTED
            async with aclosing(await _joined(speaking)):
                for topic in ("t/left", "t/1", "t/2"):
                    await speaking.publish(topic, b"1")
                assert await asyncio.wait_for(anext(events), WAIT) == Delivery("t/2", b"1")

    with mosquitto(tmp_path) as broker:
        asyncio.run(play())


class _Refusing:
    """A connection to a broker that grants only "t"."""

    def __init__(self) -> None:
        self.said: list[tuple[str, tuple[str, ...]]] = []

    @property
    def _disconnected(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    async def subscribe(self, topics: list[tuple[str, int]]) -> list[int]:
        self.said.append(("subscribe", tuple(topic for topic, _ in topics)))
        return [0 if topic == "t" else 0x80 for topic, _ in topics]

    async def unsubscribe(self, topics: list[str]) -> None:
        self.said.append(("unsubscribe", tuple(topics)))


def test_where_the_broker_refuses_the_old_topics_are_heard() -> None:
    """A server goes on hearing what it may."""
    bus, connection = MqttBus(Address("127.0.0.1", 1), "s", ["t"]), _Refusing()
    client: Any = connection
    bus._client, bus._standing = client, {"t"}
    asyncio.run(bus.listen(["a", "b"]))
    there = [("subscribe", ("a", "b")), ("unsubscribe", ("t",))]
    back = [("subscribe", ("t",)), ("unsubscribe", ("a", "b"))]
    assert [(what, tuple(sorted(topics))) for what, topics in connection.said] == there + back
    assert (bus.filters, bus._standing) == (["t"], {"t"})
