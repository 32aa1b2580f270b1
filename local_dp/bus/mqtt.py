"""The bus over MQTT 3.1.1: the only importer of aiomqtt. It reconnects by itself; what was sent
meanwhile is lost, and the protocol asks again."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from local_dp.bus.address import (
    FIRST_RETRY,
    KEEPALIVE,
    TIMEOUT,
    Address,
    BrokerClient,
    pause_after,
    refused_topics,
    refused_who,
    unreachable,
)
from local_dp.bus.interface import CONNECTED, Connected, Delivery

# names of a broker's answers; their numbers mean something else elsewhere
_UNAUTHORISED = ("Bad user name or password", "Not authorized")
_NOT_GRANTED = 0x80
_FILTERS = 100  # in one packet
_LOST = "the connection was lost"
_PINGS = b"\xc0\0" * 2
_TRIALS, _HELD, _PATIENCE = 5, 0.02, 1.0  # seconds: no kernel acknowledges later than in 0.04
_QUIET = logging.getLogger("local_dp.bus.mqtt")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False

Answer = TypeVar("Answer")


@dataclass(eq=False, repr=False)
class MqttBus(BrokerClient):
    """One connection to a broker that is made again for as long as `messages` is read."""

    def __post_init__(self) -> None:
        self._connection: _Connection | None = None
        # why there is no connection now
        self.lost = (
            f"no answer yet from the broker {self.address}; read its log, or correct --broker"
        )

    def _new_client(self) -> aiomqtt.Client:
        address, will = self.address, self.will
        return aiomqtt.Client(
            address.host,
            address.port,
            username=address.user,
            password=address.password,
            identifier=self.identifier,
            protocol=aiomqtt.ProtocolVersion.V311,
            clean_session=True,
            keepalive=KEEPALIVE,
            timeout=TIMEOUT,
            tls_context=address.context() if address.tls else None,
            will=will and aiomqtt.Will(*will),
            transport=address.transport,
            websocket_path=address.path,
            socket_options=address.options,
            logger=_QUIET,
        )

    async def publish(self, topic: str, payload: bytes) -> None:
        """Hands a message to the broker; without a connection it is dropped, as the network might
        have done."""
        connection = self._connection
        if connection is None:
            return
        try:
            await connection.answered(connection.client.publish(topic, payload))
        except aiomqtt.MqttError as error:
            connection.lose(error)

    async def listen(self, filters: Sequence[str]) -> None:
        """Subscribes to the new `filters` and leaves the others, in this order and at once; an
        answer comes after all earlier messages.

        A later connection begins with them. If the broker refuses one, the old filters hold again.
        """
        before, self.filters, connection = self.filters, filters, self._connection
        if connection is None:
            return
        # the connection is lost, or will be heard as before until there are others to hear
        with suppress(aiomqtt.MqttError):
            if not await connection.change(filters):
                self.filters = before
                await connection.change(before)

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """Every delivery, and CONNECTED after every (re)connection once the subscriptions stand.

        The first connection is tried for `patience` seconds. Raises BusError if it fails, or when
        the broker refuses who we are or what we read.
        """
        loop = asyncio.get_running_loop()
        give_up: float | None = loop.time() + patience
        pause = FIRST_RETRY / 2
        while True:
            since = float("inf")
            connection = _Connection(self._new_client())
            try:
                async with connection.client:
                    connection.joined()
                    filters = self.filters
                    if not await connection.change(filters):
                        raise refused_topics(self.address, self.identifier, filters)
                    self._connection, give_up, since, self.lost = connection, None, loop.time(), ""
                    if self.filters is not filters:
                        await self.listen(self.filters)
                    yield CONNECTED
                    while True:
                        yield await connection.next()
            except aiomqtt.MqttError as error:
                connection.close()
                # after a loss, the next try has the reason
                self.lost = str(unreachable(self.address, error)) if since == float("inf") else ""
                self._raise_if_final(error, give_up)
            finally:
                self._connection = None
            pause = pause_after(pause, loop.time() - since)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _raise_if_final(self, error: aiomqtt.MqttError, give_up: float | None) -> None:
        if isinstance(error, MqttConnectError) and str(error.rc) in _UNAUTHORISED:
            raise refused_who(self.address) from error
        if give_up is not None and asyncio.get_running_loop().time() >= give_up:
            raise unreachable(self.address, error) from error


async def advice(address: Address, identifier: str) -> str:
    """One line if the broker holds small packets back (Nagle's algorithm), else empty.

    Of two answers that it may send at once, the second then waits for the delayed acknowledgement
    of the first, each time. Distance delays both; load delays one of some pairs.
    """
    client, times = MqttBus(address, identifier, ())._new_client(), asyncio.Queue[float]()
    line: Any = client._client

    def note(*log: Any) -> None:
        if log[-1] == "Received PINGRESP":
            times.put_nowait(asyncio.get_running_loop().time())

    line.on_log, least = note, float("inf")
    with suppress(aiomqtt.MqttError, OSError):
        async with asyncio.timeout(_PATIENCE), client:
            for _ in range(_TRIALS):
                line.socket().send(_PINGS)  # in one segment
                first, second = await times.get(), await times.get()
                least = min(least, second - first)
                if least < _HELD:
                    return ""
            return (
                f"the broker {address} holds small messages back for {1000 * least:.0f} ms each; "
                "let it send them at once (Mosquitto: set_tcp_nodelay true)"
            )
    return ""


def _packets(filters: Sequence[str]) -> Iterator[list[str]]:
    return (list(filters[at : at + _FILTERS]) for at in range(0, len(filters), _FILTERS))


class _Connection:
    """One connection: its client, its filters, its messages. It has them from paho: aiomqtt makes
    two tasks for each, which halves the speed under a flood."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self.client = client
        self._standing = set[str]()  # its filters
        self._waiting: deque[Delivery] = deque()
        self._news = asyncio.Event()
        self._paho = client._client
        self._paho.on_message = self._keep
        self._paho.on_disconnect = self._on_loss
        self._paho.on_socket_register_write = self._write

    def _keep(self, client: object, data: object, message: Any) -> None:
        self._waiting.append(Delivery(message.topic, bytes(message.payload)))
        self._news.set()

    def _on_loss(self, *details: Any) -> None:
        """Ends the wait for the broker's welcome too; aiomqtt itself would wait for its timeout."""
        if not self.client._connected.done():
            self.client._connected.set_exception(aiomqtt.MqttError(_LOST))
        self.client._on_disconnect(*details)

    def _write(self, client: object, data: object, line: Any) -> None:
        self.client._loop.call_soon_threadsafe(self._write_to, line)

    def _write_to(self, line: Any) -> None:
        """Passes over a connection that was lost meanwhile, as aiomqtt does not: its socket's
        number may be another one's."""
        if line.fileno() >= 0:
            self.client._loop.add_writer(line, self._paho.loop_write)

    def joined(self) -> None:
        """The broker's welcome has come."""
        self.client._disconnected.add_done_callback(self._on_end)

    def _on_end(self, end: asyncio.Future[None]) -> None:
        self._news.set()
        if not end.cancelled():
            end.exception()  # else asyncio reports one that nobody waits for

    def lose(self, error: aiomqtt.MqttError) -> None:
        """Ends it, where the broker does not read what it is sent."""
        if not self.client._disconnected.done():
            self.client._disconnected.set_exception(error)

    def close(self) -> None:
        """Closes its socket, which aiomqtt leaves open after a timeout."""
        self._paho._sock_close()

    async def next(self) -> Delivery:
        """The next message. Raises MqttError once the connection is lost."""
        while not self._waiting:
            if self.client._disconnected.done():
                raise aiomqtt.MqttError(_LOST) from self.client._disconnected.exception()
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    async def answered(self, call: Awaitable[Answer]) -> Answer:
        """The broker's answer. Raises MqttError as soon as the connection is lost; aiomqtt itself
        would wait for its timeout."""
        end, answer = self.client._disconnected, asyncio.ensure_future(call)
        try:
            await asyncio.wait((answer, end), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise aiomqtt.MqttError(_LOST) from end.exception()
            return answer.result()
        finally:
            answer.cancel()

    async def change(self, filters: Sequence[str]) -> bool:
        """True if the broker grants all of these."""
        standing, self._standing = self._standing, set(filters)
        new = [each for each in filters if each not in standing]
        old = [each for each in standing if each not in self._standing]
        joins = [[(topic, 0) for topic in some] for some in _packets(new)]
        answers = asyncio.gather(
            *map(self.client.subscribe, joins), *map(self.client.unsubscribe, _packets(old))
        )
        reasons = (reason for answer in await self.answered(answers) for reason in answer or ())
        return not any(getattr(reason, "is_failure", reason == _NOT_GRANTED) for reason in reasons)
