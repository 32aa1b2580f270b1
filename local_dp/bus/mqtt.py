"""The bus over MQTT 3.1.1: the only importer of aiomqtt. It reconnects by itself; what was sent meanwhile is lost, and the protocol asks again."""

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiomqtt

from local_dp.bus.base import CONNECTED, Connected, Delivery
from local_dp.errors import BusError, InputError

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_AUTHORISATION = (4, 5, 134, 135)  # MQTT 3.1.1 and 5 codes: bad user name or password, not authorised
_SLOWEST_RETRY = 2.0  # seconds
_QUIET = logging.getLogger("local_dp.bus.mqtt")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass(frozen=True)
class Address:
    """Where a broker is: mqtt://[user[:password]@]host[:port], or mqtts:// for TLS, with ?ca=FILE for a private authority."""

    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca: str | None = None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """The address in `url`. Raises InputError."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
        except (ValueError, KeyError):
            raise InputError(f"cannot use the broker {url!r}; write mqtt://host:port or mqtts://user:password@host:port") from None
        if not parts.hostname:
            raise InputError(f"the broker {url!r} names no host; write mqtt://host:port")
        ca = parts.query.removeprefix("ca=") if parts.query.startswith("ca=") else None
        if ca is not None and not Path(ca).is_file():
            raise InputError(f"the certificate file {ca!r} of the broker does not exist; correct ?ca=FILE")
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return cls(parts.hostname, port, user, password, parts.scheme == "mqtts", ca)

    def __str__(self) -> str:
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"


class MqttBus:
    """One connection to a broker that is made again for as long as `messages` is read."""

    def __init__(self, address: Address, identifier: str, filters: Sequence[str], will: tuple[str, bytes] | None = None) -> None:
        self.address = address
        self.identifier = identifier
        self.filters = filters
        self.will = will
        self._client: aiomqtt.Client | None = None

    def _new_client(self) -> aiomqtt.Client:
        address = self.address
        try:
            context = ssl.create_default_context(cafile=address.ca) if address.tls else None
        except ssl.SSLError as error:
            raise InputError(f"the certificate file {address.ca!r} cannot be read as PEM: {error.reason}") from None
        return aiomqtt.Client(
            address.host,
            address.port,
            username=address.user,
            password=address.password,
            identifier=self.identifier,
            protocol=aiomqtt.ProtocolVersion.V311,
            clean_session=True,
            keepalive=30,
            timeout=10,
            tls_context=context,
            will=aiomqtt.Will(*self.will) if self.will else None,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
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

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        """Every delivery, and CONNECTED after every (re)connection once the subscriptions stand.

        The first connection is tried for `patience` seconds. Raises BusError if it fails, or when the broker refuses who we are.
        """
        loop = asyncio.get_running_loop()
        give_up: float | None = loop.time() + patience
        pause = 0.1
        while True:
            try:
                async with self._new_client() as client:
                    if self.filters:
                        await client.subscribe([(topic, 0) for topic in self.filters])
                    self._client, give_up, pause = client, None, 0.1
                    yield CONNECTED
                    async for message in client.messages:
                        payload = message.payload
                        yield Delivery(str(message.topic), payload if isinstance(payload, bytes) else b"")
            except aiomqtt.MqttError as error:
                self._client = None
                self._raise_if_final(error, give_up)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _SLOWEST_RETRY)

    def _raise_if_final(self, error: aiomqtt.MqttError, give_up: float | None) -> None:
        code = getattr(getattr(error, "rc", None), "value", getattr(error, "rc", None))
        if code in _AUTHORISATION:
            who = f"user {self.address.user!r}" if self.address.user else "a client without a user name"
            raise BusError(f"the broker {self.address} refused {who}; correct the user and password in mqtt://user:password@host:port") from error
        if give_up is not None and asyncio.get_running_loop().time() >= give_up:
            raise BusError(f"cannot reach the broker {self.address} ({error}); start it, or correct --broker") from error
