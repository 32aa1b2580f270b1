"""The door of the embedded broker: behind it is who knows the password, and of a stranger nothing
is kept."""

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

STRANGERS = 128  # connections that have not given the password, at one time
# seconds that one may take to give it; and while others wait for its place
PATIENCE, CROWDED = 5.0, 0.1
GREETING = 1 << 12  # bytes of the first message at most
_REFUSED = bytes([0x20, 2, 0, 5])  # MQTT's answer: not authorised
_PAUSE = 0.05  # seconds, where no more files may be open


def packed(user: str, password: str) -> bytes:
    """The end of the first message of a client that has this user and password."""
    return b"".join(len(word).to_bytes(2) + word for word in (user.encode(), password.encode()))


@dataclass(eq=False, repr=False)
class Door:
    """Reads the first message of each connection to `listener`, and hands both to `enter` if it
    ends with `login`; any other connection is closed.

    At most STRANGERS connections wait here. When there is one more, the oldest gives way, but none
    before it has had the CROWDED seconds.
    """

    listener: socket.socket
    login: bytes
    enter: Callable[[socket.socket, bytes], Awaitable[None]]

    def __post_init__(self) -> None:
        self.waiting: dict[asyncio.Task[None], float] = {}  # since when, the oldest first
        self.inside = set[asyncio.Task[None]]()
        self._left = asyncio.Event()

    async def serve(self) -> None:
        """Opens to one connection after the other, without end."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                line, _ = await loop.sock_accept(self.listener)
            except OSError:  # too many open files, or the connection is gone
                await asyncio.sleep(_PAUSE)
                continue
            task = asyncio.create_task(self._meet(line))
            self.waiting[task] = loop.time()
            task.add_done_callback(self._release)
            await self._place()

    async def _place(self) -> None:
        """Waits until there is a place for one more."""
        clock = asyncio.get_running_loop().time
        while len(self.waiting) >= STRANGERS:
            oldest, since = next(iter(self.waiting.items()))
            self._left.clear()
            try:
                async with asyncio.timeout(max(0.0, since + CROWDED - clock())):
                    await self._left.wait()
            except TimeoutError:
                if oldest in self.waiting:
                    oldest.cancel()
                    await asyncio.wait([oldest])

    async def _meet(self, line: socket.socket) -> None:
        try:
            line.setblocking(False)
            async with asyncio.timeout(PATIENCE):
                greeting = await _first(line)
            if not hmac.compare_digest(greeting[-len(self.login) :], self.login):
                line.send(_REFUSED)
                return
            task = asyncio.current_task()
            assert task is not None
            self._release(task)
            self.inside.add(task)
            await self.enter(line, greeting)
        except (OSError, EOFError, ValueError, TimeoutError):
            pass
        finally:
            line.close()

    def _release(self, task: asyncio.Task[None]) -> None:
        self.waiting.pop(task, None)
        self.inside.discard(task)
        self._left.set()


async def _first(line: socket.socket) -> bytes:
    """The first message of a connection, and not a byte more. Raises EOFError where it ends,
    ValueError if it is no greeting."""
    start = await _exactly(line, 2)
    size, here = start[1], start
    if size >= 0x80:
        here += await _exactly(line, 1)
        size += (here[2] - 1) << 7
    if start[0] != 0x10 or size > GREETING:
        raise ValueError("not a greeting")
    return here + await _exactly(line, size)


async def _exactly(line: socket.socket, size: int) -> bytes:
    loop, read = asyncio.get_running_loop(), b""
    while len(read) < size:
        more = await loop.sock_recv(line, size - len(read))
        if not more:
            raise EOFError
        read += more
    return read
