"""The embedded broker: what it does for one client does not grow with the others, and one that sends much waits for them."""

import asyncio
from types import SimpleNamespace

from amqtt.broker import Broker
from amqtt.session import Session

from local_dp.bus.broker import AT_ONCE, InTurn, linear_broker


class _Unwritten(Session):  # type: ignore[misc]  # amqtt has no types
    """A client that is somebody else's business."""

    def __repr__(self) -> str:
        raise AssertionError("written out")


def test_a_subscription_does_not_write_out_all_others() -> None:
    """amqtt does so for its log, at every subscription."""

    async def subscribed() -> Broker:
        broker = linear_broker({"listeners": {"default": {"type": "external"}}, "plugins": {}})
        for number in range(3):
            session = _Unwritten()
            session.client_id = f"c{number}"
            assert await broker.add_subscription(("run/req/all", 0), session) == 0
        return broker

    broker = asyncio.run(subscribed())
    assert len(broker.subscriptions["run/req/all"]) == 3
    assert repr(broker.subscriptions) == "1 filters"


def test_who_sends_much_waits_for_what_others_have_sent() -> None:
    """Not who sends little, and not where nothing of others is to be passed on; and not for longer than that."""

    async def read(queued: int, count: int) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue()
        for number in range(queued):
            queue.put_nowait(number)
        stream = asyncio.StreamReader()
        stream.feed_data(bytes(count))
        turns, done = InTurn(stream, SimpleNamespace(_broadcast_queue=queue)), 0
        for done in range(count):
            reading = asyncio.ensure_future(turns.read(1))
            await asyncio.wait([reading], timeout=0.2)
            if not reading.done():
                queue.get_nowait()
                assert await asyncio.wait_for(reading, 10.0) == b"\0"
                return done
        return count

    assert asyncio.run(read(0, 3 * AT_ONCE)) == 3 * AT_ONCE
    assert asyncio.run(read(1, AT_ONCE)) == AT_ONCE
    assert AT_ONCE <= asyncio.run(read(1, 3 * AT_ONCE)) < 3 * AT_ONCE, "a new second may have begun once or twice"
