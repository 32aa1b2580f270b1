"""The embedded broker: what it does for one client does not grow with the others, and one that sends very much waits."""

import asyncio

import pytest
from amqtt.broker import Broker
from amqtt.session import Session

from local_dp.bus import broker
from local_dp.bus.broker import PACE, Paced, linear_broker
from tests.support.virtual_time import run_virtually


class _Unwritten(Session):  # type: ignore[misc]  # amqtt has no types
    """A client that is somebody else's business."""

    def __repr__(self) -> str:
        raise AssertionError("written out")


def test_a_subscription_does_not_write_out_all_others() -> None:
    """amqtt does so for its log, at every subscription."""

    async def subscribed() -> Broker:
        made = linear_broker({"listeners": {"default": {"type": "external"}}, "plugins": {}})
        for number in range(3):
            session = _Unwritten()
            session.client_id = f"c{number}"
            assert await made.add_subscription(("run/req/all", 0), session) == 0
        return made

    subscriptions = asyncio.run(subscribed()).subscriptions
    assert len(subscriptions["run/req/all"]) == 3
    assert repr(subscriptions) == "1 filters"


def test_who_sends_very_much_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not who sends as much as is read at once, nor who sends for long at that pace."""
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

    assert run_virtually(seconds(at_once)) == 0
    assert run_virtually(seconds(at_once + 500)) == pytest.approx(500 / PACE)
    assert run_virtually(seconds(3 * at_once, 1 / PACE)) == pytest.approx(0, abs=1e-6)
