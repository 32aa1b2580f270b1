"""The gate between a WebSocket and the broker: it passes a member's MQTT, of bounded size and pace,
and nothing else.

A member writes its hello, its replies and its will, and reads requests. The gate adds the broker's
password and a client id of its own. So no page knows the password, and no page can take the
connection of another.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from local_dp.bus.address import Address
from local_dp.errors import ForgedError
from local_dp.sealing import Envelopes
from local_dp.server.members import Allowance
from local_dp.server.pace import clock
from local_dp.wire import EVERYBODY, VERSION

PACKET = 1 << 14  # bytes of one packet from a member: a reply has some hundred
RATE, BURST = 20.0, 100  # packets of one connection: a second, and at once
GREETING = 10.0  # seconds that a connection may take for its first packet
_CHUNK = 1 << 16
CONNECT, PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PING, DISCONNECT = 1, 3, 4, 8, 10, 12, 14
_TOPICS = 8  # in one subscription


class GateError(Exception):
    """Not a member's MQTT."""


@dataclass(frozen=True)
class Packet:
    """One MQTT packet: its first byte and what follows its length."""

    head: int
    body: bytes

    @property
    def kind(self) -> int:
        return self.head >> 4

    def __bytes__(self) -> bytes:
        size, length = len(self.body), bytearray()
        while True:
            size, digit = size >> 7, size & 0x7F
            length.append(digit | (0x80 if size else 0))
            if not size:
                return bytes([self.head]) + bytes(length) + self.body


class Packets:
    """Cuts a stream of bytes into packets. Raises GateError for one that is too long."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are whole now."""
        self._buffer += data
        packets = []
        while (packet := self._next()) is not None:
            packets.append(packet)
        return packets

    def _next(self) -> Packet | None:
        size = 0
        for place in range(1, 5):
            if place >= len(self._buffer):
                return None
            digit = self._buffer[place]
            size |= (digit & 0x7F) << 7 * (place - 1)
            if size > PACKET:
                break
            if not digit & 0x80:
                if len(self._buffer) < place + 1 + size:
                    return None
                packet = Packet(self._buffer[0], bytes(self._buffer[place + 1 : place + 1 + size]))
                del self._buffer[: place + 1 + size]
                return packet
        raise GateError("a packet that is too long")


class Fields:
    """Reads the fields of a packet. Raises GateError where it ends early."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._body):
            raise GateError("a packet that ends early")
        return self._body[self._at - size : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(2))

    def counted(self) -> bytes:
        """Bytes with their number before them."""
        return self.take(self.number())

    def text(self) -> str:
        try:
            return self.counted().decode()
        except UnicodeDecodeError:
            raise GateError("a topic that is no text") from None

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._body) - self._at)

    @property
    def more(self) -> bool:
        return self._at < len(self._body)


@dataclass(frozen=True)
class Gate:
    """The way to the broker of a run. `envelopes` are the server's: a message without its member's
    signature ends the connection."""

    run: str
    envelopes: Envelopes
    address: Address

    def written(self, topic: str, envelope: bytes, *leaves: str) -> tuple[str, str, str]:
        """The leaf, the group and the member of a message that its member may write, and has
        signed."""
        parts = topic.split("/")
        if (
            len(parts) != 6
            or "/".join(parts[:2]) != VERSION
            or parts[2] != self.run
            or parts[3] not in leaves
        ):
            raise GateError("a topic that no member writes")
        try:
            self.envelopes.open(topic, envelope)
        except ForgedError:
            raise GateError("a message that its member has not signed") from None
        return parts[3], parts[4], parts[5]


@dataclass
class Visit:
    """One connection: of one member, whose signed will names it. `on_hello` is given the member
    that says hello."""

    gate: Gate
    on_hello: Callable[[str], object]
    who: tuple[str, str] | None = None  # its group and its name, once it has greeted

    def passed(self, packet: Packet) -> Packet:
        """The packet for the broker. Raises GateError for one that this member does not send."""
        if (self.who is None) != (packet.kind == CONNECT):
            raise GateError("the first packet of a connection, and no other, is its greeting")
        fields = Fields(packet.body)
        if packet.kind == CONNECT:
            return self._greeting(fields)
        if packet.kind == PUBLISH:
            self._publish(packet.head, fields)
        elif packet.kind == SUBSCRIBE:
            self._subscribe(fields)
        elif packet.kind not in (UNSUBSCRIBE, PUBACK, PING, DISCONNECT):
            raise GateError(f"packet type {packet.kind}")
        return packet

    def _publish(self, head: int, fields: Fields) -> None:
        if head & 1:
            raise GateError("a message that the broker keeps")
        topic, _ = fields.text(), fields.take(2 if head & 6 else 0)
        leaf, *who = self.gate.written(topic, fields.rest(), "rep", "hello")
        if tuple(who) != self.who:
            raise GateError("a message of another member")
        if leaf == "hello":
            self.on_hello(who[1])

    def _subscribe(self, fields: Fields) -> None:
        assert self.who is not None
        topics, _ = 0, fields.number()
        while fields.more:
            topic, topics, _ = fields.text(), topics + 1, fields.take(1)
            if topic not in [
                f"{VERSION}/{self.gate.run}/req/{group}" for group in (self.who[0], EVERYBODY)
            ]:
                raise GateError("a topic that this member does not read")
        if not 1 <= topics <= _TOPICS:
            raise GateError("no topic, or too many")

    def _greeting(self, fields: Fields) -> Packet:
        """MQTT 3.1.1's greeting under a name that nobody knows, with the member's will and the
        broker's password."""
        if fields.counted() != b"MQTT" or fields.take(1) != b"\x04":
            raise GateError("not MQTT 3.1.1")
        flags, alive, _ = fields.take(1)[0], fields.take(2), fields.counted()
        if not flags & 4 or flags & 0x20:
            raise GateError("no will, or one that the broker keeps")
        will, last_words = fields.text(), fields.counted()
        _, *who = self.gate.written(will, last_words, "gone")
        self.who = who[0], who[1]
        # the will's flags, and a clean session
        connect_flags = flags & 0x1C | 2
        payload = [secrets.token_hex(11).encode(), will.encode(), last_words]
        for flag, word in ((0x80, self.gate.address.user), (0x40, self.gate.address.password)):
            if word is not None:
                connect_flags |= flag
                payload.append(word.encode())
        content = b"".join(len(part).to_bytes(2) + part for part in payload)
        return Packet(CONNECT << 4, b"\0\4MQTT\4" + bytes([connect_flags]) + alive + content)


async def pass_through(
    gate: Gate,
    receive: Callable[[], Awaitable[bytes | None]],
    send: Callable[[bytes], Awaitable[None]],
    on_hello: Callable[[str], object],
) -> None:
    """Joins a WebSocket with the broker until either ends, or the member breaks the rules. Raises
    OSError where there is no broker."""
    packets = _packets(Visit(gate, on_hello), receive)
    try:
        async with asyncio.timeout(GREETING):
            greeting = await anext(packets)
    except (StopAsyncIteration, GateError, TimeoutError):
        return  # before the broker knows of it
    address = gate.address
    if address.transport == "unix":
        reader, writer = await asyncio.open_unix_connection(address.host)
    else:
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=address.context() if address.tls else None
        )
    writer.write(greeting)

    async def inward() -> None:
        async for data in packets:
            writer.write(data)
            await writer.drain()

    async def outward() -> None:
        while data := await reader.read(_CHUNK):
            await send(data)

    tasks = {asyncio.create_task(inward()), asyncio.create_task(outward())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.transport.abort()


async def _packets(
    visit: Visit, receive: Callable[[], Awaitable[bytes | None]]
) -> AsyncIterator[bytes]:
    """The packets for the broker. Raises GateError for one that the member does not send, or for
    too many."""
    packets, allowance = Packets(), Allowance(RATE, BURST, at=clock())
    while (data := await receive()) is not None:
        for packet in packets.feed(data):
            if not allowance.take(clock()):
                raise GateError("too many packets")
            yield bytes(visit.passed(packet))
