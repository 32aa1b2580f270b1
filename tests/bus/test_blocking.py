"""A client's bus: it distinguishes a broker's answers, reconnects, and sends messages whole."""

import asyncio
import socket

import pytest

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import CONNECTED, Delivery
from local_dp.errors import BusError
from tests.support.adversaries.spoken import AB, BUSY, CD, PASSWORD, UNKNOWN, WELCOME, granted, said, scripted
from tests.support.figures import figure


async def _first(bus: BlockingBus, count: int, patience: float = 5.0) -> list[object]:
    events: list[object] = []
    messages = bus.messages(patience)
    async for event in messages:
        events.append(event)
        if len(events) == count:
            break
    await messages.aclose()
    return events


def test_a_connection_that_breaks_is_made_again_and_said_so() -> None:
    """The first connection is closed after a delivery; the second one is announced, and delivers too, all in order."""
    with scripted((said(WELCOME), granted(AB)), (said(WELCOME), granted(CD, AB))) as (address, _):
        events = finish(_first(BlockingBus(address, "c", ["t"]), 5))
    assert events == [CONNECTED, Delivery("t", b"ab"), CONNECTED, Delivery("t", b"cd"), Delivery("t", b"ab")]


@pytest.mark.parametrize("answer", [PASSWORD, UNKNOWN])
def test_a_broker_that_does_not_know_us_is_an_error(answer: bytes) -> None:
    with scripted((said(answer),)) as (address, _), pytest.raises(BusError, match="refused a client without a user name; correct the user and password"):
        finish(_first(BlockingBus(address, "c", ["t"]), 1))


def test_a_broker_that_is_busy_is_asked_again() -> None:
    """Busy is no wrong password, nor is a connection that is closed at once: each is tried again, and the third time it works."""
    with scripted((said(BUSY),), (), (said(WELCOME), granted())) as (address, _):
        assert finish(_first(BlockingBus(address, "c", ["t"]), 1)) == [CONNECTED]
    figure("class 8", "a client: busy, and closed without a word, are tried again")


def test_a_broker_that_refuses_the_topics_is_an_error() -> None:
    refusing = said(WELCOME), granted(code=0x80)
    with scripted(refusing) as (address, _), pytest.raises(BusError, match="access rules"):
        finish(_first(BlockingBus(address, "c", ["t"]), 1))


def test_a_broker_that_is_not_there_is_an_error_when_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(BusError, match="cannot reach the broker"):
        finish(_first(BlockingBus(Address("127.0.0.1", port), "c", ["t"]), 1, patience=0.3))


def test_a_message_goes_out_whole_and_the_end_is_said() -> None:
    """A megabyte has left when `publish` returns; without a connection a message is dropped; after a close the broker does not send the will."""
    payload = bytes(1 << 20)

    async def sent(bus: BlockingBus) -> None:
        await bus.publish("t", payload)  # to nobody
        messages = bus.messages(5.0)
        assert await anext(messages) is CONNECTED
        await bus.publish("t", payload)
        await messages.aclose()

    with scripted((said(WELCOME), granted())) as (address, heard):
        finish(sent(BlockingBus(address, "c", ["t"])))
    assert b"".join(heard).count(payload) == 1
    assert b"".join(heard).endswith(b"\xe0\x00"), "the packet that says goodbye"


def test_what_waits_for_an_event_loop_is_no_work_for_a_client() -> None:
    waiting = asyncio.sleep(0)
    with pytest.raises(AssertionError, match="event loop"):
        finish(waiting)
    waiting.close()


def test_a_launcher_that_hangs_up_is_heard_beside_the_connection() -> None:
    """While a client waits for a message, its line to the launcher closes."""

    class HungUpError(Exception):
        pass

    def hung_up() -> None:
        raise HungUpError

    here, there = socket.socketpair()
    with scripted((said(WELCOME), granted())) as (address, _), here:
        there.close()
        with pytest.raises(HungUpError):
            finish(_first(BlockingBus(address, "c", ["t"], line=here, hung_up=hung_up), 2))
