"""A member's whole life, played before the first fork: what it imports, caches and specialises is then shared by every child, and not made by each."""

import encodings.idna
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from clients.config import MemberConfig, pack_columns
from clients.pages import together
from clients.process import introduce, live
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.sealing import Party, public
from local_dp.wire import CLIENT, Ask, End, Request, decode, encode, topic

_RUN, _GROUP = "rehearsal", "g0"
_ENOUGH = 10  # the interpreter rewrites a function's code when it has run it eight times: in us, and not in each child
_KEY = bytes(32)  # of everybody here
_PUBLIC = public(_KEY)
_CONNACK = bytes.fromhex("20020000")


def rehearse(children: int, stores: Path | None = None) -> None:
    """Plays a client's life on a made-up record against a made-up broker, with a connection as in a run; nothing leaves the process.

    Once for each child that is to come, if they are few: with ten, little is left for them to do for the first time, and it pays to lay together what they
    share. Where they are to keep stores, each life has one too, in that folder.
    """
    QUERIES.load_all()
    RANDOMIZERS.load_all()
    encodings.idna.ToASCII("localhost")  # looking up a host name imports this
    for turn in range(min(children, _ENOUGH)):
        with together() if turn == 0 and children >= _ENOUGH else nullcontext():
            answer()
            _life("" if stores is None else str(stores / f"rehearsal-{turn}.store"))


def answer() -> None:
    """The part of it that answers a request. A child repeats it: the pages that answering writes to are copied before the first round, not in it."""
    config, (where, envelope) = MemberConfig.from_bytes(_config("").to_bytes()), _asked()
    envelopes = config.envelopes()
    request = decode(envelopes.open(where, envelope), CLIENT)
    assert isinstance(request, Request)
    for reply in config.role().handle(request):
        envelopes.seal(where, encode(reply))


def _life(store: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        playing = threading.Thread(target=_broker, args=(broker,))
        playing.start()
        config = _config(f"mqtt://127.0.0.1:{broker.getsockname()[1]}", store).to_bytes()
        member, launcher = socket.socketpair()
        with member, launcher:
            launcher.sendall(struct.pack("<I", len(config)) + config)
            told = introduce(member, 0)
            assert told is not None
            live(member, told, 0.0)
        playing.join()


def _broker(listener: socket.socket) -> None:
    """Just enough of MQTT 3.1.1 for one member that waits for each answer: its hello is answered by a request, its reply by the end of the run."""
    answers, (line, _) = _answers(), listener.accept()
    with line:
        while packet := line.recv(1 << 12):
            line.sendall(_suback(packet) if packet[0] >> 4 == 8 else next(answers, b""))


def _answers() -> Iterator[bytes]:
    """To the connection, to the hello, to the reply."""
    yield _CONNACK
    for where, payload in (_asked(), _said(encode(End(run=_RUN)))):
        name = where.encode()
        body = struct.pack(">H", len(name)) + name + payload
        yield bytes((0x30, len(body) & 127 | 128, len(body) >> 7)) + body


def _suback(subscribe: bytes) -> bytes:
    """The acknowledgement of a subscription to two topics: its two bytes of identifier come after a type and a length below 128."""
    return b"\x90\x04" + subscribe[2:4] + bytes(2)


def _config(broker: str, store: str = "") -> MemberConfig:
    columns = pack_columns([Records({"yes": np.zeros(1, dtype=np.uint8)})])
    named: dict[str, Any] = {"run": _RUN, "member": "nobody", "group": _GROUP, "broker": broker}
    return MemberConfig(**named, start=0, columns=columns, seed=0, budget=1.0, allowed=None, keys=(_KEY, _PUBLIC), store=store)


@cache
def _said(message: bytes) -> tuple[str, bytes]:
    """A topic, and what the server says under it."""
    where = topic(_RUN, "req", _GROUP)
    return where, Party.server(_RUN, _KEY, lambda topic: None).seal(where, message)


@cache
def _asked() -> tuple[str, bytes]:
    randomizer = BinaryRR(1.0)
    ask = Ask(
        query="question",
        query_params={"text": "yes == 1"},
        randomizer=randomizer.name,
        randomizer_params=randomizer.params(),
        start=0,
        stop=1,
        coins=bytes(16),
    )
    return _said(encode(Request(run=_RUN, round=1, asks=(ask,))))
