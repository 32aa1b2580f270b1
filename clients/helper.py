"""The preloaded helper: imports everything once, then forks one process per member. It never sees a record.

Each child asks the launcher's socket for its own configuration, and ends when the run does, or when the launcher is gone.
"""

import asyncio
import encodings.idna
import gc
import os
import resource
import signal
import struct
import sys
from typing import Any

import numpy as np

from clients.config import MemberConfig, pack_columns
from clients.member import filters, serve, will
from local_dp.bus.mqtt import Address, MqttBus
from local_dp.errors import BusError
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.wire import Ask, Request, decode, encode

READY = b"+"
FAILED = b"-"
_DESCRIPTORS = 1 << 16
_BROKER_LOST = 5  # the exit code for the bus, as on the command line


def raise_descriptor_limit() -> None:
    """Allows this process enough open files, if the machine permits: a thousand connections need more than the usual 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a callback raised, as always; but not that a connection was given up while it was being made."""
    if not isinstance(context.get("exception"), asyncio.CancelledError):
        loop.default_exception_handler(context)


async def _member(index: int, launcher: str) -> int:
    asyncio.get_running_loop().set_exception_handler(_report)
    reader, writer = await asyncio.open_unix_connection(launcher)
    os.dup(writer.get_extra_info("socket").fileno())  # so that the launcher's end closes when this process has ended, not before
    writer.write(struct.pack("<II", index, os.getpid()))
    (size,) = struct.unpack("<I", await reader.readexactly(4))
    config = MemberConfig.from_bytes(await reader.readexactly(size))
    _rehearse()  # once more, in this process: the pages that answering writes to are copied before the first round, not in it
    bus = MqttBus(
        Address.parse(config.broker),
        f"{config.run}-{config.member}",
        filters(config.run, config.group),
        will(config.run, config.group, config.member),
    )

    async def connected() -> None:
        writer.write(READY)
        await writer.drain()

    work = asyncio.create_task(serve(config.role(), bus, config.run, config.group, connected))
    launcher_gone = asyncio.create_task(reader.read(1))
    await asyncio.wait({work, launcher_gone}, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        os._exit(0)  # at once: a connection that is just being made may swallow a cancellation, and there is nothing to save
    launcher_gone.cancel()
    if isinstance(work.exception(), BusError):
        writer.write(FAILED + str(work.exception()).encode())
        await writer.drain()
        return _BROKER_LOST
    work.result()
    return 0


def _child(index: int, launcher: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        code = asyncio.run(_member(index, launcher))
    except (OSError, asyncio.IncompleteReadError):
        code = 0  # the launcher went away first
    finally:
        os._exit(code)


def _rehearse() -> None:
    """Plays a client's whole life on a made-up record, so that all it needs is imported and cached before the first fork and shared by every child."""
    encodings.idna.ToASCII("localhost")  # looking up a host name imports this
    columns = pack_columns(Records({"yes": np.zeros(1, dtype=np.uint8)}))
    config = MemberConfig(run="rehearsal", member="nobody", group="g0", broker="mqtt://127.0.0.1:1", start=0, columns=columns, seed=0, budget=1.0, allowed=None)
    role = MemberConfig.from_bytes(config.to_bytes()).role()
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
    request = decode(encode(Request(run="rehearsal", round=1, asks=(ask,))))
    assert isinstance(request, Request)
    for answer in role.handle(request):
        encode(answer)


def main() -> None:
    """Forks `count` members (first argument), which call at the launcher's socket (second), and waits until standard input closes."""
    count, launcher = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides when a run ends; members see it go
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is left as a zombie
    raise_descriptor_limit()
    QUERIES.load_all()  # here and not in the rehearsal, which every child repeats: what it touches is copied
    RANDOMIZERS.load_all()
    _rehearse()
    gc.collect()
    gc.freeze()  # a collection in a child must not touch, and so copy, the pages it shares with all others
    for index in range(count):
        if os.fork() == 0:
            os.close(sys.stdin.fileno())
            _child(index, launcher)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
