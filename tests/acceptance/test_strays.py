"""P6: strangers who connect to a broker without its password, or to the page of a run, end no run,
and nothing is kept of them."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from local_dp.api.asking import RunOptions
from local_dp.bus import door
from local_dp.bus.door import Door, packed
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.watch import server as watch
from local_dp.server.watch.events import Scene
from tests.support.runs.at_end import OPEN
from tests.support.wrong import wrong

SOON = 3.0  # seconds for what takes a moment


def greeting(password: str) -> bytes:
    """The first message of a client, whose user is "run"."""
    protocol, name = packed("MQTT", "")[:-2], packed("stray", "")[:-2]
    body = protocol + bytes([4, 0xC2, 0, 30]) + name + packed("run", password)
    return bytes([0x10, len(body)]) + body


LOGIN = packed("run", "secret")
HELLO = greeting("secret")


class Doors:
    """A door in this process, and strangers who come to it in turn."""

    def __init__(self, path: Path) -> None:
        self.path, self.entries = str(path), list[bytes]()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1024)
        self.listener.setblocking(False)
        self.door = Door(self.listener, LOGIN, self._enter)

    async def _enter(self, line: socket.socket, first: bytes) -> None:
        self.entries.append(first)

    def come(self) -> socket.socket:
        line = OPEN.enter_context(socket.socket(socket.AF_UNIX))
        line.connect(self.path)
        line.setblocking(False)
        return line

    @contextmanager
    def open(self) -> Iterator[None]:
        serving = asyncio.create_task(self.door.serve())
        try:
            yield
        finally:
            serving.cancel()
            self.listener.close()


@wrong(
    "local_dp.bus.door:Door._meet",
    "line.close()",
    "line.detach()",
    "the descriptor of a connection that never gave the password is kept",
)
@wrong(
    "local_dp.bus.door:Door._meet",
    "not hmac.compare_digest(greeting[-len(self.login):], self.login)",
    "False",
    "every process of the machine joins the embedded broker",
)
def test_nobody_enters_without_the_password(tmp_path: Path) -> None:
    """Only a greeting that ends with the login is handed on, whole and in any pieces; every other
    connection is closed, and forgotten."""
    wrong = [
        b"",
        b"\xff" * 500,
        HELLO[:-1],
        greeting("wrong"),
        b"\x10\xff\xff\xff" + bytes(100),
        bytes([HELLO[0] ^ 1]) + HELLO[1:],
    ]

    async def play() -> None:
        doors, loop = Doors(tmp_path / "door"), asyncio.get_running_loop()
        with doors.open():
            for word, piece in product([*wrong, HELLO, HELLO + b"more"], (1, 4096)):
                with closing(doors.come()) as line, suppress(ConnectionError):
                    for at in range(0, len(word), piece):
                        await loop.sock_sendall(line, word[at : at + piece])
                        await asyncio.sleep(0)
                    line.shutdown(socket.SHUT_WR)
                    while await loop.sock_recv(line, 64):
                        pass
            await asyncio.sleep(0)
            assert not doors.door.waiting
            assert not doors.door.inside
        assert doors.entries.count(HELLO) == len(doors.entries) == 4

    asyncio.run(asyncio.wait_for(play(), SOON))


@wrong(
    "local_dp.bus.door:Door._place",
    "len(self.waiting) >= STRANGERS",
    "False",
    "silent strangers take every file that the broker may open",
)
@wrong(
    "local_dp.bus.door:Door._meet",
    "PATIENCE",
    "None",
    "a silent stranger keeps its place until another one comes",
)
def test_the_oldest_silent_stranger_gives_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three wait where two may: the first is closed after its shortest time; a member enters
    meanwhile; the others are closed after theirs."""
    monkeypatch.setattr(door, "STRANGERS", 3)
    monkeypatch.setattr(door, "CROWDED", 0.05)
    monkeypatch.setattr(door, "PATIENCE", 0.3)

    async def play() -> None:
        doors, loop = Doors(tmp_path / "door"), asyncio.get_running_loop()
        with doors.open():
            silent, began = [doors.come() for _ in range(3)], loop.time()
            assert await loop.sock_recv(silent[0], 1) == b""
            assert 0.04 < loop.time() - began < 0.25
            member = doors.come()
            await loop.sock_sendall(member, HELLO)
            assert await loop.sock_recv(member, 1) == b""
            assert doors.entries == [HELLO]
            for line in silent[1:]:
                assert await loop.sock_recv(line, 1) == b""
            assert loop.time() - began > 0.04
            await asyncio.sleep(0)
            assert not doors.door.waiting

    asyncio.run(asyncio.wait_for(play(), SOON))


@wrong(
    "local_dp.server.watch.server:_reader",
    "self.cycle is None",
    "False",
    "strangers who connect to the page of a run take the files that the run needs",
)
def test_strangers_at_the_page_take_no_files_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative: the page of a run closes connections beyond its number at once, and those that
    ask for nothing soon; then it answers a reader."""
    monkeypatch.setattr(watch, "CONNECTIONS", 5)
    monkeypatch.setattr(watch, "SILENCE", 0.2)
    page = watch.Page(Scene(RunOptions(clients=2000, seed=7).settings(Survey(), None)))
    try:
        here = page._socket.getsockname()
        silent = [OPEN.enter_context(socket.create_connection(here)) for _ in range(20)]
        for line in silent:
            line.settimeout(SOON)
            with line, suppress(ConnectionResetError):
                line.sendall(b"GET")
                assert line.recv(1) == b""
        assert not page._server.server_state.connections
        with socket.create_connection(here) as reader:
            reader.sendall(
                (
                    f"GET {page.url.split(str(here[1]))[1]} HTTP/1.1\r\nHost: "
                    "127.0.0.1\r\nConnection: close\r\n\r\n"
                ).encode()
            )
            assert reader.recv(12) == b"HTTP/1.1 200"
    finally:
        page.close()
