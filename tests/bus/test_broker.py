"""The embedded broker: what it does for one client does not grow with the others, and one that sends very much waits."""

import asyncio
from collections.abc import AsyncGenerator

import aiomqtt
import pytest
from amqtt.broker import Broker
from amqtt.session import Session

from local_dp.bus import broker
from local_dp.bus.address import Address
from local_dp.bus.broker import PACE, LinearBroker, Paced
from local_dp.bus.interface import CONNECTED
from local_dp.bus.mqtt import MqttBus
from tests.support.runs.brokers import embedded, retain
from tests.support.runs.virtual_time import run_virtually


class _Private(Session):  # type: ignore[misc]  # amqtt has no types
    """A client that is somebody else's business once it has subscribed."""

    busy = False

    def __getattribute__(self, name: str) -> object:
        assert name == "busy" or not self.busy, f"its {name} was looked at"
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        raise AssertionError("written out")


def test_a_subscription_does_not_look_at_all_others() -> None:
    """amqtt does so at every subscription and every parting, to see whether the client is there, and writes all out for its log."""
    sessions = [_Private() for _ in range(3)]

    async def subscribed() -> Broker:
        broker_under_test = LinearBroker({"listeners": {"default": {"type": "external"}}, "plugins": {}})
        for number, session in enumerate(sessions):
            session.client_id = f"c{number}"
            for _ in range(2):
                assert await broker_under_test.add_subscription(("run/req/all", 0), session) == 0
            session.busy = True
        assert await broker_under_test.add_subscription(("run/+x", 0), sessions[0]) == 0x80, "a level is a wildcard or none"
        last = sessions.pop()
        last.busy = False
        assert broker_under_test._del_subscription("run/req/all", last) == 1
        assert broker_under_test._del_subscription("run/req/all", last) == broker_under_test._del_subscription("run/req/none", last) == 0
        return broker_under_test

    subscriptions = asyncio.run(subscribed()).subscriptions
    assert list(subscriptions["run/req/all"]) == [(session, 0) for session in sessions]
    assert repr(subscriptions) == "1 filters"


def test_nobody_is_turned_away_who_joins_while_others_do() -> None:
    """Each gets what is retained as it joins, which the broker waits for while others subscribe: no connection is made twice."""
    clients: list[str] = []

    class Counted(MqttBus):
        def _new_client(self) -> aiomqtt.Client:
            clients.append(self.identifier)
            return super()._new_client()

    async def join(address: Address, number: int) -> AsyncGenerator[object, None]:
        messages = Counted(address, f"c{number}", [f"t/{number}", "t/+"]).messages(patience=10.0)
        assert await anext(messages) == CONNECTED
        return messages

    async def join_all(address: Address) -> None:
        first = await join(address, 0)
        others = await asyncio.gather(*(join(address, number) for number in range(1, 100)))
        for messages in (first, *others):
            await messages.aclose()

    with embedded() as url:
        for number in range(20):
            retain(url, f"t/{number}", b"kept")
        asyncio.run(join_all(Address.parse(url)))
    assert len(clients) == 100


def test_who_sends_very_much_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "AT_ONCE", at_once := 1500)

    async def seconds(count: int, pause: float = 0.0) -> float:
        stream = asyncio.StreamReader()
        stream.feed_data(bytes(count))
        paced, clock = Paced(stream), asyncio.get_running_loop().time
        began = clock()
        for _ in range(count):
            await paced.read(1)
            await asyncio.sleep(pause)
        return clock() - began - pause * count

    assert [run_virtually(seconds(count)) for count in (at_once, at_once + 500)] == pytest.approx([0, 500 / PACE])
    assert run_virtually(seconds(3 * at_once, 1 / PACE)) == pytest.approx(0, abs=1e-6)
