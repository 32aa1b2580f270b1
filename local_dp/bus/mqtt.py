"""The bus over MQTT 3.1.1: the only importer of aiomqtt. It reconnects by itself; what was sent meanwhile is lost, and the protocol asks again."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from local_dp.bus.address import AGAIN, FIRST_RETRY, KEEPALIVE, TIMEOUT, Address, pause_after, refused_topics, refused_who, unreachable
from local_dp.bus.interface import CONNECTED, Connected, Delivery

_UNAUTHORISED = ("Bad user name or password", "Not authorized")  # names of a broker's answers; their numbers mean something else elsewhere
_NOT_GRANTED = 0x80
_FILTERS = 100  # in one packet
_QUIET = logging.getLogger("local_dp.bus.mqtt")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False

Answers = TypeVar("Answers")


class MqttBus:
    """One connection to a broker that is made again for as long as `messages` is read."""

    def __init__(self, address: Address, identifier: str, filters: Sequence[str], will: tuple[str, bytes] | None = None) -> None:
        self.address = address
        self.identifier = identifier
        self.filters = filters
        self.will = will
        self._standing = set[str]()  # the filters of the connection
        self._client: aiomqtt.Client | None = None
        self._timeout = TIMEOUT
        self.lost = str(unreachable(address, Exception("no answer yet")))  # why there is no connection now

    def _new_client(self) -> aiomqtt.Client:
        address = self.address
        return aiomqtt.Client(
            address.host,
            address.port,
            username=address.user,
            password=address.password,
            identifier=self.identifier,
            protocol=aiomqtt.ProtocolVersion.V311,
            clean_session=True,
            keepalive=KEEPALIVE,
            timeout=self._timeout,
            tls_context=address.context() if address.tls else None,
            will=aiomqtt.Will(*self.will) if self.will else None,
            transport=address.transport,
            websocket_path=address.path,
            socket_options=address.options,
            logger=_QUIET,
        )

    async def publish(self, topic: str, payload: bytes) -> None:
        """Hands a message to the broker; without a connection it is dropped, as the network might have done."""
        if self._client is None:
            return
        try:
            await self._client.publish(topic, payload)
        except aiomqtt.MqttError:
            self._client = None

    async def listen(self, filters: Sequence[str]) -> None:
        """Subscribes to the new `filters` and leaves the others, in this order and at once; an answer comes after all earlier messages.

        A later connection begins with them. If the broker refuses one, the old filters hold again.
        """
        before, self.filters, client = self.filters, filters, self._client
        if client is None:
            return
        with suppress(aiomqtt.MqttError):  # the connection is lost, or will be heard as before until there are others to hear
            if not await self._changed(client, filters):
                self.filters = before
                await self._changed(client, before)

    async def _changed(self, client: aiomqtt.Client, filters: Sequence[str]) -> bool:
        """Whether the broker grants all of these."""
        wanted, standing = set(filters), self._standing
        new, old = [each for each in filters if each not in standing], [each for each in standing if each not in wanted]
        self._standing = wanted
        leaving = [client.unsubscribe(some) for some in _packets(old)]
        answers = asyncio.gather(*(client.subscribe([(topic, 0) for topic in some]) for some in _packets(new)), *leaving)
        granted = (reason for answer in await _answered(client, answers) for reason in answer or ())
        return not any(getattr(reason, "is_failure", reason == _NOT_GRANTED) for reason in granted)

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """Every delivery, and CONNECTED after every (re)connection once the subscriptions stand.

        The first connection is tried for `patience` seconds. Raises BusError if it fails, or when the broker refuses who we are or what we read.
        """
        loop = asyncio.get_running_loop()
        give_up: float | None = loop.time() + patience
        pause = FIRST_RETRY / 2
        while True:
            joined = float("inf")
            try:
                client = self._new_client()
                inbox = _Inbox(client)
                async with client:
                    self._standing = set()
                    filters = self.filters
                    if not await self._changed(client, filters):
                        raise refused_topics(self.address, self.identifier, filters)
                    self._client, give_up, joined, self._timeout = client, None, loop.time(), AGAIN
                    client.timeout, self.lost = TIMEOUT, ""
                    if self.filters is not filters:
                        await self.listen(self.filters)
                    yield CONNECTED
                    async with aclosing(inbox.deliveries()) as deliveries:
                        async for delivery in deliveries:
                            yield delivery
            except aiomqtt.MqttError as error:
                self._timeout = self._timeout if self._client is not None else min(2 * self._timeout, TIMEOUT)
                self._client = None
                self.lost = str(unreachable(self.address, error)) if joined == float("inf") else ""  # after a loss, the next try has the reason
                self._raise_if_final(error, give_up)
            pause = pause_after(pause, loop.time() - joined)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _raise_if_final(self, error: aiomqtt.MqttError, give_up: float | None) -> None:
        if isinstance(error, MqttConnectError) and str(error.rc) in _UNAUTHORISED:
            raise refused_who(self.address) from error
        if give_up is not None and asyncio.get_running_loop().time() >= give_up:
            raise unreachable(self.address, error) from error


async def _answered(client: aiomqtt.Client, answers: asyncio.Future[Answers]) -> Answers:
    """The broker's answers. Raises MqttError as soon as the connection is lost; aiomqtt itself would wait for its timeout."""
    end = client._disconnected
    try:
        await asyncio.wait((answers, end), return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise aiomqtt.MqttError("the connection was lost") from end.exception()
        return answers.result()
    finally:
        answers.cancel()


def _packets(filters: Sequence[str]) -> Iterator[list[str]]:
    return (list(filters[at : at + _FILTERS]) for at in range(0, len(filters), _FILTERS))


class _Inbox:
    """The messages of a connection, taken from paho: aiomqtt makes two tasks for each, which halves the speed under a flood."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self.client = client
        self._waiting: deque[Delivery] = deque()
        self._stirred = asyncio.Event()
        client._client.on_message = self._keep

    def _keep(self, client: object, data: object, message: Any) -> None:
        self._waiting.append(Delivery(message.topic, bytes(message.payload)))
        self._stirred.set()

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Every message, until the connection breaks: MqttError."""
        end = asyncio.ensure_future(anext(self.client.messages))  # it never gives a message, and ends with the connection
        end.add_done_callback(lambda ended: self._stirred.set())
        try:
            while not end.done():
                self._stirred.clear()
                while self._waiting:
                    yield self._waiting.popleft()
                if not end.done():
                    await self._stirred.wait()
            end.result()
        finally:
            end.cancel()
