"""The server's bus: it distinguishes a broker's answers by type, and a closed connection is no wrong password."""

import asyncio

import pytest
from aiomqtt.exceptions import MqttCodeError
from paho.mqtt.enums import MQTTErrorCode

from local_dp.bus.address import TIMEOUT, Address
from local_dp.bus.interface import CONNECTED, Delivery
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import BusError
from tests.support.adversaries.spoken import AB, BUSY, PASSWORD, UNKNOWN, WELCOME, granted, said, scripted
from tests.support.figures import figure


def _events(address: Address, count: int, patience: float = 5.0) -> list[object]:
    async def first() -> list[object]:
        events: list[object] = []
        messages = MqttBus(address, "s", ["t"]).messages(patience)
        async for event in messages:
            events.append(event)
            if len(events) == count:
                break
        await messages.aclose()
        return events

    return asyncio.run(first())


@pytest.mark.parametrize("answer", [PASSWORD, UNKNOWN])
def test_a_broker_that_does_not_know_us_is_an_error(answer: bytes) -> None:
    """Its answer to the connection says so."""
    with scripted((said(answer),)) as (address, _), pytest.raises(BusError, match="refused a client without a user name; correct the user and password"):
        _events(address, 1)


def test_a_broker_that_refuses_the_topics_is_an_error() -> None:
    """As for a client: a server that hears nothing would wait for its deadline."""
    with scripted((said(WELCOME), granted(code=0x80))) as (address, _), pytest.raises(BusError, match="access rules"):
        _events(address, 1)


def test_a_broker_that_is_busy_or_goes_away_is_asked_again() -> None:
    """Busy, or closed after a delivery: each is tried again."""
    with scripted((said(BUSY),), (said(WELCOME), granted(AB)), (said(WELCOME), granted())) as (address, _):
        assert _events(address, 3) == [CONNECTED, Delivery("t", b"ab"), CONNECTED]


def test_a_connection_that_is_lost_before_the_subscriptions_stand_is_made_again_at_once() -> None:
    """Not when the time for an answer is over, which is twice the patience here."""
    with scripted((said(WELCOME),), (said(WELCOME), granted())) as (address, _):
        assert _events(address, 1, patience=TIMEOUT / 2) == [CONNECTED]


@pytest.mark.parametrize("number", sorted(int(code) for code in MQTTErrorCode))
def test_no_error_of_the_connection_is_taken_for_a_wrong_password(number: int) -> None:
    """No error number of the client library itself is a refusal by the broker, not even 4 and 5 (no connection, connection refused)."""
    bus = MqttBus(Address("127.0.0.1", 1), "s", ["t"])
    bus._raise_if_final(MqttCodeError(MQTTErrorCode(number)), None)
    bus._raise_if_final(MqttCodeError(number), None)
    figure("class 8", f"a server: of {len(MQTTErrorCode)} errors of the connection none is a refusal")
