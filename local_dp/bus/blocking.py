"""A client's bus over MQTT 3.1.1: without an event loop, for a client does one thing at a time. The
only importer of paho."""

import math
import os
import random
import select
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from local_dp.bus.address import (
    FIRST_RETRY,
    KEEPALIVE,
    TIMEOUT,
    BrokerClient,
    pause_after,
    refused_topics,
    refused_who,
    unreachable,
)
from local_dp.bus.interface import CONNECTED, Connected, Delivery
from local_dp.errors import BusError

_UNAUTHORISED = tuple(
    ReasonCode(PacketTypes.CONNACK, name)
    for name in ("Bad user name or password", "Not authorized")
)
_GLANCE = 10.0  # seconds between two looks at whether the broker should hear that we live

Result = TypeVar("Result")


class _LostError(Exception):
    """The connection is no more."""


def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits for an event loop: it uses a `BlockingBus`
    alone."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("this coroutine waits for an event loop")


@dataclass(eq=False, repr=False)
class BlockingBus(BrokerClient):
    """One connection to a broker that is made again for as long as `messages` is read: as
    `MqttBus`, but every call waits until it is done.

    `line` is a socket that is watched beside the connection: when something comes from it, or it
    closes, `hung_up` is called, which ends the process.
    """

    line: socket.socket | None = None
    hung_up: Callable[[], object] = lambda: os._exit(0)
    idle: float = math.inf

    def __post_init__(self) -> None:
        self._latest = time.monotonic()  # when a message last came
        self._client: paho.Client | None = None
        self._inbox: deque[Delivery] = deque()
        self._stands = False
        self.lost = ""  # why there is no connection now

    async def publish(self, topic: str, payload: bytes) -> None:
        """Hands a message to the broker, all of it; without a connection it is dropped, as the
        network might have done."""
        client = self._client
        if client is None:
            return
        try:
            _check(client.publish(topic, payload).rc)
            while client.want_write():
                self._turn(client, _GLANCE)
        except (OSError, _LostError):
            self._client = None

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """Every delivery, and CONNECTED after every (re)connection once the subscriptions stand.

        It ends when no message came for `idle` seconds. The first connection is tried for
        `patience` seconds. Raises BusError if it fails, or when the broker refuses who we are or
        what we read.
        """
        give_up, pause = time.monotonic() + patience, FIRST_RETRY / 2
        self._latest = time.monotonic()
        while self._left() > 0:
            since = float("inf")
            try:
                client = self._connect()
                give_up, since, self.lost = float("inf"), time.monotonic(), ""
                yield CONNECTED
                while self._client is client and self._left() > 0:
                    while self._inbox:
                        yield self._inbox.popleft()
                        self._latest = time.monotonic()
                    self._turn(client, min(_GLANCE, self._left()))
            except (OSError, _LostError) as error:
                # after a loss, the next try has the reason
                self.lost = str(unreachable(self.address, error)) if since == float("inf") else ""
                if time.monotonic() >= give_up:
                    raise BusError(self.lost) from error
            except KeyboardInterrupt:
                self._client = None  # without a goodbye, the broker sends our will
                raise
            finally:
                self._close()
            pause = pause_after(pause, time.monotonic() - since)
            await self.rest(pause * random.uniform(0.5, 1.0))

    def _left(self) -> float:
        """Seconds until it has been idle for too long, if no message comes."""
        return max(0.0, self._latest + self.idle - time.monotonic())

    def _connect(self) -> paho.Client:
        """A client whose subscriptions stand."""
        address = self.address
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            self.identifier,
            clean_session=True,
            protocol=paho.MQTTv311,
            transport=address.transport,
        )
        if address.path is not None:
            client.ws_set_options(address.path)
        if address.user is not None:
            client.username_pw_set(address.user, address.password)
        if address.tls:
            client.tls_set_context(address.context())
        if self.will is not None:
            client.will_set(*self.will)
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_message = lambda client, data, message: self._inbox.append(
            Delivery(message.topic, bytes(message.payload))
        )
        client.on_socket_open = self._on_open
        client.connect_timeout = TIMEOUT
        self._stands = False
        client.connect(address.host, address.port, KEEPALIVE)
        end = time.monotonic() + min(TIMEOUT, self._left())
        while not self._stands:
            if time.monotonic() >= end:
                raise _LostError("no answer")
            self._turn(client, max(0.0, end - time.monotonic()))
        self._client = client
        return client

    def _turn(self, client: paho.Client, timeout: float) -> None:
        """Waits for something to read, or to write if there is something, and does so. Raises
        _LostError."""
        here = client.socket()
        if here is None:
            raise _LostError("closed")
        poll = select.poll()
        poll.register(here, select.POLLIN | (select.POLLOUT if client.want_write() else 0))
        if self.line is not None:
            poll.register(self.line, select.POLLIN)
        pending = getattr(here, "pending", None)
        has_data = pending is not None and pending() > 0  # TLS has read it already
        ready = dict(poll.poll(0 if has_data else 1000 * timeout))
        if self.line is not None and self.line.fileno() in ready:
            self.hung_up()
        events = ready.get(here.fileno(), 0)
        if has_data or events & ~select.POLLOUT:
            _check(client.loop_read())
        if events & select.POLLOUT:
            _check(client.loop_write())
        _check(client.loop_misc())

    def now(self) -> float:
        """Seconds on the machine's clock that never goes back."""
        return time.monotonic()

    async def rest(self, seconds: float) -> None:
        """Waits, unless the line hangs up."""
        if self.line is None:
            time.sleep(seconds)
        elif select.select([self.line], [], [], seconds)[0]:
            self.hung_up()

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None and client.socket() is not None:
            # the broker sends our will only if the connection breaks without this
            client.disconnect()

    def _on_open(self, client: paho.Client, data: object, line: Any) -> None:
        for option in self.address.options:
            line.setsockopt(*option)

    def _on_connect(
        self,
        client: paho.Client,
        data: object,
        flags: object,
        reason: ReasonCode,
        properties: object,
    ) -> None:
        if reason in _UNAUTHORISED:
            raise refused_who(self.address)
        if reason.is_failure:
            raise _LostError(str(reason))
        if self.filters:
            client.subscribe([(topic, 0) for topic in self.filters])
        else:
            self._stands = True

    def _on_subscribe(
        self,
        client: paho.Client,
        data: object,
        number: int,
        reasons: list[ReasonCode],
        properties: object,
    ) -> None:
        if any(reason.is_failure for reason in reasons):
            raise refused_topics(self.address, self.identifier, self.filters)
        self._stands = True


def _check(code: MQTTErrorCode) -> None:
    if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
        raise _LostError(paho.error_string(code))
