"""The embedded broker: what it does for one client does not grow with the others."""

import asyncio

from amqtt.broker import Broker
from amqtt.session import Session

from local_dp.bus.broker import linear_broker


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
