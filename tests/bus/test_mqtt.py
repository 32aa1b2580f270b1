"""The two buses of a broker: they distinguish its answers, reconnect, lose nothing while topics
change; and the embedded broker, fair to each client."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import aiomqtt
import pytest
from aiomqtt.exceptions import MqttCodeError
from amqtt.broker import Broker
from amqtt.session import Session
from paho.mqtt.enums import MQTTErrorCode

from local_dp.bus import embedded as served
from local_dp.bus.address import (
    FIRST_RETRY,
    SLOWEST_RETRY,
    TIMEOUT,
    Address,
    pause_after,
    unreachable,
    without_user,
)
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.embedded import PACE, LinearBroker, Paced
from local_dp.bus.interface import CONNECTED, Delivery
from local_dp.bus.mqtt import MqttBus, advice
from local_dp.errors import BusError, InputError
from local_dp.server.quorum import GRACE
from tests.support.adversaries.spoken import (
    AB,
    BUSY,
    CD,
    PASSWORD,
    UNKNOWN,
    WELCOME,
    Answer,
    granted,
    said,
    scripted,
)
from tests.support.runs.brokers import embedded, free_port, retain
from tests.support.runs.virtual_time import run_virtually
from tests.support.wrong import wrong

Events = Callable[..., list[object]]


async def _first(messages: AsyncGenerator[Any, None], count: int) -> list[object]:
    events: list[object] = []
    async with aclosing(messages):
        async for event in messages:
            events.append(event)
            if len(events) == count:
                break
    return events


def _client(address: Address, count: int, patience: float = 5.0, **options: Any) -> list[object]:
    return finish(_first(BlockingBus(address, "c", ["t"], **options).messages(patience), count))


def _server(address: Address, count: int, patience: float = 5.0) -> list[object]:
    return asyncio.run(_first(MqttBus(address, "c", ["t"]).messages(patience), count))


both = pytest.mark.parametrize("events", [_client, _server])


@both
def test_a_connection_that_breaks_is_made_again_and_said_so(events: Events) -> None:
    """The first connection is closed after a delivery; the second one is announced, and delivers
    too, all in order."""
    with scripted((said(WELCOME), granted(AB)), (said(WELCOME), granted(CD, AB))) as (address, _):
        assert events(address, 5) == [
            CONNECTED,
            Delivery("t", b"ab"),
            CONNECTED,
            Delivery("t", b"cd"),
            Delivery("t", b"ab"),
        ]


def test_a_client_that_hears_nothing_leaves() -> None:
    """A connection on which nothing more comes, and a broker that is gone, both end the events
    after the idle limit; what came is delivered."""
    with scripted((said(WELCOME), granted(AB))) as (address, _):
        began = time.monotonic()
        assert _client(address, 9, idle=0.4) == [CONNECTED, Delivery("t", b"ab")]
        assert 0.4 <= time.monotonic() - began < 10


@wrong(
    "local_dp.bus.address:pause_after",
    "uptime > SLOWEST_RETRY",
    "uptime >= 0",
    "two connections of one name cut each other, and neither has the time to answer",
    at="_client",
)
@both
def test_a_connection_that_did_not_last_is_made_again_later(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that cuts each connection at once, as it cuts two of one name in turn: the pauses
    grow, until a connection lasts."""
    pauses = list[float]()

    def note(pause: float, uptime: float) -> float:
        assert 0 <= uptime < SLOWEST_RETRY
        pauses.append(pause_after(pause, uptime))
        return pauses[-1]

    for home in ("blocking", "mqtt"):
        monkeypatch.setattr(f"local_dp.bus.{home}.pause_after", note)
    with scripted(*[(said(WELCOME), granted())] * 4) as (address, _):
        assert events(address, 4) == [CONNECTED] * 4
    assert pauses == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY]
    assert pause_after(SLOWEST_RETRY, SLOWEST_RETRY + 1) == FIRST_RETRY
    assert pause_after(SLOWEST_RETRY, -1.0) == SLOWEST_RETRY
    assert 4 * pause_after(SLOWEST_RETRY, 1.0) <= GRACE, (
        "a member that is cut is back before a server gives it up"
    )


@both
@pytest.mark.parametrize(
    ("answers", "words"),
    [
        *(((said(answer),), "refused a client") for answer in (PASSWORD, UNKNOWN)),
        ((said(WELCOME), granted(code=0x80)), "access rules"),
    ],
)
def test_a_broker_that_refuses_us_or_the_topics_is_an_error(
    answers: tuple[Answer, ...], words: str, events: Events
) -> None:
    """A member or server without its topics would wait for its deadline."""
    with scripted(answers) as (address, _), pytest.raises(BusError, match=words):
        events(address, 1)


@both
def test_a_broker_that_is_busy_is_asked_again(events: Events) -> None:
    """Busy is no wrong password, nor is a connection that is closed at once: each is tried
    again."""
    with scripted((said(BUSY),), (), (said(WELCOME), granted())) as (address, _):
        assert events(address, 1, patience=TIMEOUT / 2) == [CONNECTED]


@both
def test_a_broker_that_is_not_there_is_an_error_when_patience_ends(events: Events) -> None:
    with pytest.raises(BusError, match="cannot reach the broker"):
        events(Address("127.0.0.1", free_port()), 1, patience=0.3)


def test_a_connection_that_is_lost_before_the_subscriptions_stand_is_made_again_at_once() -> None:
    """Not when the time for an answer is over, which is twice the patience here."""
    with scripted((said(WELCOME),), (said(WELCOME), granted())) as (address, _):
        assert _server(address, 1, patience=TIMEOUT / 2) == [CONNECTED]


@pytest.mark.parametrize("number", sorted(int(code) for code in MQTTErrorCode))
def test_no_error_of_the_connection_is_taken_for_a_wrong_password(number: int) -> None:
    """No error number of the client library itself is a refusal by the broker, not even 4 and 5 (no
    connection, connection refused)."""
    bus = MqttBus(Address("127.0.0.1", 1), "s", ["t"])
    bus._raise_if_final(MqttCodeError(MQTTErrorCode(number)), None)
    bus._raise_if_final(MqttCodeError(number), None)


def test_a_message_goes_out_whole_and_the_end_is_said() -> None:
    """A megabyte has left when `publish` returns; without a connection a message is dropped; after
    a close the broker does not send the will."""
    payload = bytes(1 << 20)

    async def send(bus: BlockingBus) -> None:
        await bus.publish("t", payload)  # to nobody
        messages = bus.messages(5.0)
        assert await anext(messages) is CONNECTED
        await bus.publish("t", payload)
        await messages.aclose()

    with scripted((said(WELCOME), granted())) as (address, packets):
        finish(send(BlockingBus(address, "c", ["t"])))
    assert b"".join(packets).count(payload) == 1
    assert b"".join(packets).endswith(b"\xe0\x00"), "the packet that says goodbye"


@wrong(
    "local_dp.bus.blocking:BlockingBus.messages",
    "self._client = None",
    "pass",
    "a client that SIGTERM ends is waited for to the end of the round",
)
def test_an_interrupted_client_says_no_goodbye() -> None:
    """As at SIGTERM: the broker then sends its will, and a server does not wait for it to the end
    of the round."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    here, there = socket.socketpair()
    with scripted((said(WELCOME), granted())) as (address, packets), here:
        messages = BlockingBus(address, "c", ["t"], line=here, hung_up=interrupt).messages(5.0)
        assert finish(anext(messages)) is CONNECTED
        there.close()
        with pytest.raises(KeyboardInterrupt):
            finish(anext(messages))
    assert b"\xe0\x00" not in b"".join(packets)


@wrong(
    "local_dp.bus.address:unreachable",
    "isinstance(cause, ConnectionRefusedError | FileNotFoundError)",
    "True",
    "a broker that is full is to be started",
    at="cause2-correct the host in --broker",
)
@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "start it, or correct --broker"),
        (FileNotFoundError(2, "No such file or directory"), "start it, or correct --broker"),
        (socket.gaierror(-2, "Name or service not known"), "correct the host in --broker"),
        (
            ssl.SSLError(1, "certificate verify failed"),
            "correct ?ca=FILE&cert=FILE in --broker, or the broker's certificate",
        ),
        (TimeoutError("timed out"), "let the network through, or correct --broker"),
        (
            ConnectionResetError(104, "Connection reset by peer"),
            "raise its max_connections, or correct the port in --broker",
        ),
        (TimeoutError(), "raise its max_connections, or correct the port in --broker"),
        (None, "raise its max_connections, or correct the port in --broker"),
    ],
)
def test_each_cause_of_no_connection_has_its_advice(cause: Exception | None, advice: str) -> None:
    """Raised by the client's library, or by the server's, which hides the cause behind an error of
    its own."""
    address = Address("127.0.0.1", 1)
    if isinstance(cause, OSError) and cause.args:
        assert str(unreachable(address, cause)).endswith(advice)
    wrapper = MqttCodeError(7)
    wrapper.__context__ = cause
    assert str(unreachable(address, wrapper)).endswith(advice)


def test_a_server_knows_why_it_has_no_connection() -> None:
    """Before its first connection and after the last one there is a reason, and while it has one
    there is none."""

    async def play() -> None:
        with scripted((said(WELCOME), granted())) as (address, _):
            bus = MqttBus(address, "s", ["t"])
            assert "no answer yet" in bus.lost
            async with aclosing(bus.messages(5.0)) as events:
                assert await anext(events) is CONNECTED
                assert bus.lost == ""
                reading = asyncio.ensure_future(anext(events))
                while not bus.lost:
                    await asyncio.sleep(0.01)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
        assert "the broker mqtt://" in bus.lost

    asyncio.run(asyncio.wait_for(play(), 20.0))


def test_a_client_that_ends_without_a_connection_knows_why() -> None:
    """Its broker is gone when its idle limit ends: that is no matter of the limit."""
    with scripted((said(WELCOME), granted())) as (address, _):
        bus = BlockingBus(address, "c", ["t"], idle=0.6)
        messages = bus.messages(5.0)
        assert finish(anext(messages)) is CONNECTED
        assert bus.lost == ""
    with pytest.raises(StopAsyncIteration):
        finish(anext(messages))
    assert bus.lost.startswith("cannot reach the broker")


def test_a_launcher_that_hangs_up_is_heard_beside_the_connection() -> None:
    def hung_up() -> None:
        raise EOFError

    here, there = socket.socketpair()
    with scripted((said(WELCOME), granted())) as (address, _), here:
        there.close()
        with pytest.raises(EOFError):
            _client(address, 2, line=here, hung_up=hung_up)


class _Private(Session):  # type: ignore[misc]  # amqtt has no types
    """A client that is somebody else's business once it has subscribed."""

    busy = False

    def __getattribute__(self, name: str) -> object:
        assert name == "busy" or not self.busy, f"its {name} was looked at"
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        raise AssertionError("written out")


def test_a_subscription_does_not_look_at_all_others() -> None:
    """amqtt does so at every subscription and every parting, to see whether the client is there,
    and writes all out for its log."""
    sessions = [_Private() for _ in range(3)]

    async def subscribe() -> Broker:
        broker_under_test = LinearBroker(
            {"listeners": {"default": {"type": "external"}}, "plugins": {}}
        )
        for number, session in enumerate(sessions):
            session.client_id = f"c{number}"
            for _ in range(2):
                assert await broker_under_test.add_subscription(("run/req/all", 0), session) == 0
            session.busy = True
        assert await broker_under_test.add_subscription(("run/+x", 0), sessions[0]) == 0x80, (
            "a level is a wildcard or none"
        )
        last = sessions.pop()
        last.busy = False
        assert broker_under_test._del_subscription("run/req/all", last) == 1
        assert (
            broker_under_test._del_subscription("run/req/all", last)
            == broker_under_test._del_subscription("run/req/none", last)
            == 0
        )
        return broker_under_test

    subscriptions = asyncio.run(subscribe()).subscriptions
    assert list(subscriptions["run/req/all"]) == [(session, 0) for session in sessions]
    assert repr(subscriptions) == "1 filters"


def test_nobody_is_turned_away_who_joins_while_others_do() -> None:
    """Each gets what is retained as it joins, which the broker waits for while others subscribe: no
    connection is made twice."""
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
        others = await asyncio.gather(*(join(address, number) for number in range(1, 50)))
        for messages in (first, *others):
            await messages.aclose()

    with embedded() as url:
        for number in range(20):
            retain(url, f"t/{number}", b"kept")
        asyncio.run(join_all(Address.parse(url)))
    assert len(clients) == 50


def test_who_sends_very_much_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "AT_ONCE", at_once := 1500)

    async def seconds(count: int, pause: float = 0.0) -> float:
        stream = asyncio.StreamReader()
        stream.feed_data(bytes(count))
        reader, clock = Paced(stream), asyncio.get_running_loop().time
        began = clock()
        for _ in range(count):
            await reader.read(1)
            await asyncio.sleep(pause)
        return clock() - began - pause * count

    assert [run_virtually(seconds(count)) for count in (at_once, at_once + 500)] == pytest.approx(
        [0, 500 / PACE]
    )
    assert run_virtually(seconds(3 * at_once, 1 / PACE)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("url", [
    *(f"{scheme}://alice:S3cret@localhost:18899"
    for scheme in ("tls", "mqtts+tls", "mqtt+tls", "http", "MQTTS+TLS")),
    "//alice:S3cret@localhost:1",
    *(f"{start}alice:S3cret@localhost{rest}?ca=pyproject.toml" for start,
    rest in (("mqtt://", ""), ("ws://", ""), ("mqtt+unix://", "/b"), ("mqtts://", "#"))),
    "mqtt+unix://alice:S3cret@localhost/broker", "mqtt://alice:S3cret/@localhost",
    "mqtts://alice:1883/S3cret@localhost", "wss://alice:1/S3cret@localhost",
    "alice:S3cret@localhost", "mqtts://[alice:S3cret@localhost",
])  # fmt: skip
def test_no_address_loses_its_protection(url: str) -> None:
    """Where TLS is asked for, and is not used, the address is refused; no message has the
    password."""
    with pytest.raises(InputError, match="//") as error:
        Address.parse(url)
    assert "S3cret" not in str(error.value)
    assert Address.parse("MQTTS://localhost").tls
    assert without_user("mqtts://alice:S3@cret@localhost?ca=a@b") == "mqtts://localhost?ca=a@b"


@wrong(
    "local_dp.bus.mqtt:advice",
    "if least < _HELD:",
    "if False:",
    "a broker that is far, or slow once, is taken for one that holds messages back",
)
def test_only_a_broker_that_holds_messages_back_is_named() -> None:
    """By the seconds before its first and its second answer of each pair."""

    async def line(pairs: list[tuple[float, float]]) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(99)
            writer.write(WELCOME)
            for pair in pairs:
                await reader.readexactly(4)
                for pause in pair:
                    await asyncio.sleep(pause)
                    writer.write(b"\xd0\0")
            await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await advice(Address("127.0.0.1", server.sockets[0].getsockname()[1]), "s")

    late, far, at_once = (0.0, 0.04), (0.04, 0.0), (0.0, 0.0)
    lines = [asyncio.run(line(pairs)) for pairs in ([late] * 5, [far] * 5, [late] * 4 + [at_once])]
    assert [*map(bool, lines)] == [True, False, False]
