"""A member's whole life, played before the first fork: what it imports, caches and specialises is then shared by every child, and not made by each."""

import encodings.idna
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.bus.blocking import finish
from local_dp.bus.interface import CONNECTED, Connected, Delivery
from local_dp.bus.sealed import SealedClientBus
from local_dp.clients.config import MemberConfig
from local_dp.clients.member import serve
from local_dp.clients.pages import together
from local_dp.clients.prefork import Opening
from local_dp.clients.process import introduce, live
from local_dp.loss import MAX_EPSILON
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.sealing import Party, public
from local_dp.wire import End, Request, encode, topic

_RUN, _GROUP = "rehearsal", "g0"
_ENOUGH = 10  # the interpreter rewrites a function's code when it has run it eight times: in us, and not in each child
_SHORT = 0.05  # seconds; a survey's ask takes less than .001
_KEY = bytes(32)  # of everybody here
_PUBLIC = public(_KEY)
_CONNACK = bytes.fromhex("20020000")


class Rehearsal:
    """A client's life on a made-up record, in which the first thing asked is what the run asks first; nothing leaves the process."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self._request = _said(encode(Request(run=_RUN, round=1, asks=opening.asks[:1])))
        self._nobody = self._config("")

    @classmethod
    def of(cls, opening: Opening) -> "Rehearsal":
        """That of a run's opening; of a survey's where the run's first ask takes long, for each child repeats it."""
        own, took = cls(opening), 0.0
        for _ in range(2):  # the first time imports
            began = time.perf_counter()
            own.answer()
            took = time.perf_counter() - began
        return own if took <= _SHORT else cls(Opening())

    def play(self, children: int, stores: Path | None = None) -> None:
        """Plays it against a made-up broker, with a connection as in a run: once for each child that is to come, if they are few.

        With ten, little is left for them to do for the first time, and it pays to lay together what they share. Where they are to keep stores, each life
        has one too, in that folder.
        """
        QUERIES.load_all()
        RANDOMIZERS.load_all()
        encodings.idna.ToASCII("localhost")  # looking up a host name imports this
        for turn in range(min(children, _ENOUGH)):
            with together() if turn == 0 and children >= _ENOUGH else nullcontext():
                self.answer()
                self._life("" if stores is None else str(stores / f"rehearsal-{turn}.store"))

    def answer(self) -> None:
        """The part of it that answers a request. A child repeats it: the pages that answering writes to are copied before the first round, not in it."""
        config = MemberConfig.from_bytes(self._nobody)
        finish(serve(config.role(), SealedClientBus(_Asked(*self._request), config.envelopes()), _RUN, _GROUP))

    def _life(self, store: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as broker:
            playing = threading.Thread(target=self._broker, args=(broker,))
            playing.start()
            config = self._config(f"mqtt://127.0.0.1:{broker.getsockname()[1]}", store)
            member, launcher = socket.socketpair()
            with member, launcher:
                launcher.sendall(struct.pack("<I", len(config)) + config)
                told = introduce(member, 0)
                assert told is not None
                live(member, told, 0.0)
            playing.join()

    def _config(self, broker: str, store: str = "") -> bytes:
        """That of a member who holds nothing in each column, and may spend whatever is asked."""
        columns = {name: (kind, bytes(np.dtype(kind).itemsize)) for name, kind in self.opening.types.items()}
        spent: dict[str, Any] = {"start": 0, "columns": columns, "seed": 0, "budget": MAX_EPSILON, "allowed": None}
        return MemberConfig(run=_RUN, member="nobody", group=_GROUP, broker=broker, keys=(_KEY, _PUBLIC), store=store, **spent).to_bytes()

    def _broker(self, listener: socket.socket) -> None:
        """Just enough of MQTT 3.1.1 for one member that waits for each answer: its hello is answered by a request, its reply by the end of the run."""
        answers, (line, _) = self._answers(), listener.accept()
        with line:
            while packet := line.recv(1 << 12):
                line.sendall(_suback(packet) if packet[0] >> 4 == 8 else next(answers, b""))

    def _answers(self) -> Iterator[bytes]:
        """To the connection, to the hello, to the reply."""
        yield _CONNACK
        for where, payload in (self._request, _said(encode(End(run=_RUN)))):
            name = where.encode()
            body = struct.pack(">H", len(name)) + name + payload
            yield b"\x30" + _length(len(body)) + body


class _Asked:
    """A bus on which a member is asked once; what it says is lost."""

    def __init__(self, where: str, request: bytes) -> None:
        self.request = Delivery(where, request)

    async def publish(self, topic: str, payload: bytes) -> None: ...

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        yield CONNECTED
        yield self.request

    def now(self) -> float:
        return 0.0

    async def rest(self, seconds: float) -> None: ...


def _said(message: bytes) -> tuple[str, bytes]:
    """A topic, and what the server says under it."""
    where = topic(_RUN, "req", _GROUP)
    return where, Party.server(_RUN, _KEY, lambda topic: None).seal(where, message)


def _suback(subscribe: bytes) -> bytes:
    """The acknowledgement of a subscription to two topics: its two bytes of identifier come after a type and a length below 128."""
    return b"\x90\x04" + subscribe[2:4] + bytes(2)


def _length(size: int) -> bytes:
    """As MQTT writes one: seven bits to a byte, the lowest first."""
    return bytes((size,)) if size < 128 else bytes((size & 127 | 128,)) + _length(size >> 7)
