"""Strangers who connect to a broker without its password: they close at once, say nothing, send
junk, or give a wrong password."""

import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from local_dp.bus.address import Address
from local_dp.bus.door import packed
from tests.support.runs.brokers import line_to

KINDS = ("closes", "is silent", "sends junk", "has a wrong password")
SILENT = 300  # silent connections that stay open at one time
_WAIT = 3.0  # seconds for an answer


def greeting(password: str, name: str = "stray") -> bytes:
    """The first message of a client, whose user is "run"."""
    body = (
        packed("MQTT", "")[:-2]
        + bytes([4, 0xC2, 0, 30])
        + packed(name, "")[:-2]
        + packed("run", password)
    )
    return bytes([0x10, len(body)]) + body


class Strays:
    """Makes so many connections, of all kinds in turn, one after the other. `made` counts them,
    `lost` those that wait in vain for the broker to close; `hurry` ends it early."""

    def __init__(self, address: Address, count: int) -> None:
        self.address, self.count, self.made, self.lost, self.hurry = (
            address,
            count,
            0,
            0,
            threading.Event(),
        )
        self.silent = deque[socket.socket]()
        self.thread = threading.Thread(target=self._play)

    @property
    def over(self) -> bool:
        return not self.thread.is_alive()

    def _play(self) -> None:
        for number in range(self.count):
            if self.hurry.is_set():
                break
            with suppress(ConnectionError):
                self._come(KINDS[number % len(KINDS)])
            self.made += 1
        while self.silent:
            self.silent.popleft().close()

    def _come(self, kind: str) -> None:
        line = line_to(self.address)
        if kind == "is silent":
            self.silent.append(line)
            if len(self.silent) > SILENT:
                self.silent.popleft().close()
            return
        with line:
            line.settimeout(_WAIT)
            if kind == "closes":
                line.shutdown(socket.SHUT_WR)
            else:
                line.sendall(greeting("wrong") if kind == "has a wrong password" else b"\xff" * 500)
            try:
                while line.recv(64):
                    pass
            except TimeoutError:
                self.lost += 1


@contextmanager
def strays(address: Address, count: int) -> Iterator[Strays]:
    """They come in a thread, which the test starts, and are gone at the end of the block."""
    stranger = Strays(address, count)
    try:
        yield stranger
    finally:
        stranger.hurry.set()
        if stranger.thread.ident is not None:
            stranger.thread.join()
