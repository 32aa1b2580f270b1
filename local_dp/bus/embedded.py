"""The process of the embedded broker: amqtt, behind a door, with constant work for a client that
joins or leaves, and a pace for one that floods."""

import asyncio
import gc
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter
from amqtt.broker import Broker
from amqtt.contexts import ListenerConfig
from amqtt.session import Session

from local_dp.bus.broker import USER, announce
from local_dp.bus.door import Door, packed

_BACKLOG = 1024  # amqtt's own listener has 100, which a ramp of client processes overflows
_LISTENER = "default"
# new objects between two searches for unreachable ones; at Python's 700, a fourth of the broker's
# time goes into these
_COLLECTING = 100_000
# pieces read of one connection, six to a message: at once, and in a second after that
AT_ONCE, PACE = 60_000, 1000.0


class _Subscribers:
    """The subscribers of one filter by client id; amqtt iterates over them as over a list of
    pairs."""

    def __init__(self) -> None:
        self._by_client: dict[str, tuple[Session, int]] = {}

    def __iter__(self) -> Iterator[tuple[Session, int]]:
        return iter(tuple(self._by_client.values()))

    def __len__(self) -> int:
        return len(self._by_client)

    def add(self, session: Session, qos: int) -> None:
        self._by_client.setdefault(session.client_id, (session, qos))

    def discard(self, session: Session) -> bool:
        """True if it was there."""
        return self._by_client.pop(session.client_id, None) is not None


class _Subscriptions(dict[str, _Subscribers]):
    """The subscribers of each filter; amqtt formats this for a log at every subscription, and
    iterates over it while it waits: so over a copy."""

    def __repr__(self) -> str:
        return f"{len(self)} filters"

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(super().__iter__()))


class LinearBroker(Broker):  # type: ignore[misc]  # amqtt has no types
    """amqtt's broker, with constant work for a client that joins or leaves."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._subscriptions = _Subscriptions()

    async def add_subscription(self, subscription: tuple[str, int], session: Session) -> int:
        """As if nobody else had subscribed to anything."""
        alone: Any = copy(self)
        alone._subscriptions = {}
        code: int = await Broker.add_subscription(alone, subscription, session)
        for topics, [(_, qos)] in alone._subscriptions.items():
            self._subscriptions.setdefault(topics, _Subscribers()).add(session, qos)
        return code

    def _del_subscription(self, a_filter: str, session: Session) -> int:
        return a_filter in self._subscriptions and self._subscriptions[a_filter].discard(session)

    async def _authenticate(self, session: Session, listener: ListenerConfig) -> bool:
        """The door has read the password."""
        return True


class Paced(StreamReaderAdapter):  # type: ignore[misc]  # amqtt has no types
    """Limits the rate of one client that floods; amqtt itself reads as fast as it can. `first` was
    read before."""

    def __init__(self, reader: asyncio.StreamReader, first: bytes = b"") -> None:
        super().__init__(reader)
        self._first = first
        self._left, self._last = float(AT_ONCE), 0.0

    async def read(self, n: int = -1) -> bytes:
        now = asyncio.get_running_loop().time()
        self._left = min(AT_ONCE, self._left + PACE * (now - self._last)) - 1
        self._last = now
        if self._left < 0:
            await asyncio.sleep(-self._left / PACE)
        if self._first:
            data, self._first = self._first[:n], self._first[n:]
        else:
            data = await super().read(n)
        return data


class Local(StreamWriterAdapter):  # type: ignore[misc]  # amqtt has no types
    """A connection from this machine, which has no address."""

    def get_peer_info(self) -> tuple[str, int]:
        return "local", 0


async def _serve(path: str, password: str) -> None:
    logging.disable(logging.CRITICAL)  # amqtt logs every disconnect with a traceback
    gc.set_threshold(_COLLECTING)
    Path(path).unlink(missing_ok=True)  # of one that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    listener.bind(path)
    listener.listen(_BACKLOG)
    broker = LinearBroker({"listeners": {_LISTENER: {"type": "external"}}, "plugins": {}})
    await broker.start()

    async def enter(line: socket.socket, greeting: bytes) -> None:
        reader, writer = await asyncio.open_connection(sock=line)
        try:
            await broker.external_connected(Paced(reader, greeting), Local(writer), _LISTENER)
        finally:
            writer.transport.abort()

    serving = asyncio.create_task(Door(listener, packed(USER, password), enter).serve())
    announce("amqtt")
    starter_gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), starter_gone.set)
    await starter_gone.wait()
    serving.cancel()


def main() -> None:
    """The broker's process: its only argument is the path of its socket; the first line on standard
    input is the password."""
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0) as standard_input:
        password = standard_input.readline().decode().strip()
    with suppress(FileNotFoundError):  # the starter is gone, and its folder
        serve(sys.argv[1], password)


def serve(path: str, password: str) -> None:
    """Serves until standard input closes."""
    asyncio.run(_serve(path, password))


if __name__ == "__main__":
    main()
