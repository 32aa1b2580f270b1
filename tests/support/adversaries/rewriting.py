"""Somebody in the middle: a TCP proxy between clients and a broker that changes one byte of some of the replies and requests that pass."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

_PUBLISH = 3


@dataclass
class Rewriter:
    """Changes the share `of_all` of the messages whose topic has a leaf in `altered`, and counts them there."""

    broker: int
    of_all: float
    generator: np.random.Generator
    altered: dict[str, int] = field(default_factory=lambda: {"rep": 0, "req": 0})
    passed: int = 0
    port: int = 0

    def rewritten(self, packet: bytes, body: int) -> bytes:
        """An MQTT packet whose variable part begins at `body`; of a published message one byte behind the topic may be another."""
        if packet[0] >> 4 != _PUBLISH:
            return packet
        end = body + 2 + int.from_bytes(packet[body : body + 2], "big")
        leaf = packet[body + 2 : end].decode().split("/")[3]
        if leaf not in self.altered:
            return packet
        self.passed += 1
        if self.generator.random() >= self.of_all:
            return packet
        self.altered[leaf] += 1
        at = int(self.generator.integers(end, len(packet)))
        return packet[:at] + bytes([packet[at] ^ (1 << int(self.generator.integers(8)))]) + packet[at + 1 :]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self.broker)
        with suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(self._pass(reader, to_broker), self._pass(from_broker, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for packet, body in _packets(reader):
            writer.write(self.rewritten(packet, body))
            await writer.drain()
        writer.close()


async def _packets(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, int]]:
    """Each packet, and where its variable part begins."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head, size, more = await reader.readexactly(1), 0, 0x80
            while more & 0x80:
                head += await reader.readexactly(1)
                more = head[-1]
                size |= (more & 0x7F) << 7 * (len(head) - 2)
            yield head + await reader.readexactly(size), len(head)


@contextmanager
def rewriting(broker: int, of_all: float, seed: int) -> Iterator[Rewriter]:
    """The proxy before the broker at this port, for as long as the block lasts; it listens at `port`."""
    rewriter, loop = Rewriter(broker, of_all, np.random.default_rng(seed)), asyncio.new_event_loop()

    async def listen() -> None:
        server = await asyncio.start_server(rewriter._connected, "127.0.0.1", 0, backlog=200)
        rewriter.port = server.sockets[0].getsockname()[1]

    loop.run_until_complete(listen())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield rewriter
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(_end())
        loop.close()


async def _end() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
