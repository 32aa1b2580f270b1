"""The preloaded helper: imports everything once, then forks one process per member. It never sees a
record.

Each child asks the launcher's socket for its own configuration, and ends when the run does, or when
the launcher is gone.
"""

import encodings.idna  # noqa: F401 - looking up a host name imports it
import gc
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

import msgpack

from local_dp.bus.blocking import finish
from local_dp.bus.children import allow_open_files
from local_dp.bus.interface import CONNECTED, Connected, Delivery, SealedBus
from local_dp.clients.member import never_heard, serve
from local_dp.clients.process import MemberConfig, RunConfig, introduce, live
from local_dp.errors import InputError, RefusedError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.query import QUERIES
from local_dp.queries.tables import Question
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.registry import load
from local_dp.sealing import Party, public
from local_dp.verification.audit import verify
from local_dp.verification.sources import code_digest
from local_dp.wire import Ask, Request, encode, topic

# Python rewrites the code of a function once that has run eight times: here, and not in each child
_TURNS = 10
_KEY = bytes(32)
_COLUMNS = {"yes": ("|u1", bytes(1))}
_SURVEY = Ask.of(LocalQuery(Question("yes == 1"), BinaryRR(1.0), Cohort(0, 1)), bytes(16))


class _OneQuestion:
    """A bus that brings one request and drops the answer."""

    async def publish(self, topic: str, payload: bytes) -> None: ...

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        where = topic("warm-up", "req", "g0")
        yield CONNECTED
        yield Delivery(
            where,
            Party.server("warm-up", _KEY, lambda topic: None).seal(
                where, encode(Request(run="warm-up", round=1, asks=(_SURVEY,)))
            ),
        )

    def now(self) -> float:
        return 0.0

    async def rest(self, seconds: float) -> None: ...


def warm_up() -> None:
    """Answers a survey on a made-up record: 30 % less memory for each client, and its first round
    takes a quarter of the time."""
    run = RunConfig(run="warm-up", broker="", budget=1.0, seed=0)
    member = MemberConfig(
        run=run, member="nobody", group="g0", start=0, columns=_COLUMNS, keys=(_KEY, public(_KEY))
    )
    config = MemberConfig.from_bytes(member.to_bytes())
    finish(serve(config.role(), SealedBus(_OneQuestion(), config.envelopes()), "warm-up", "g0"))


def _child(index: int, launcher: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    never_heard()
    code = 1
    try:
        # only the end of this process closes it: so the launcher knows that it has ended
        line = socket.socket(socket.AF_UNIX)
        line.connect(launcher)
        config = introduce(line, index)
        warm_up()  # the pages that answering writes to are copied now, and not in the first round
        code = 0 if config is None else live(line, config)
    except OSError:
        code = 0  # the launcher went away first
    finally:
        os._exit(code)


def _report(line: int) -> None:
    """Sends the launcher the process id and exit code of each child that has ended."""
    with suppress(OSError):
        while (status := os.waitpid(-1, os.WNOHANG))[0]:
            os.write(line, struct.pack("<Ii", status[0], os.waitstatus_to_exitcode(status[1])))


def verify_first(randomizers: bytes) -> None:
    """Verifies randomizers of other packages, packed by `clients.fleet`, once for all children, who
    inherit the verdict."""
    for name, params in msgpack.unpackb(randomizers, use_list=False):
        with suppress(RefusedError):  # each client says so itself when it is asked
            verify(RANDOMIZERS.build(name, params))


def main() -> None:
    """Forks `count` members (first argument), which call at the launcher's socket (second), and
    waits until standard input closes.

    The third argument names the randomizers to verify first, in hexadecimal; the others are the
    places of plug-ins.
    """
    count, launcher = int(sys.argv[1]), sys.argv[2]
    # the launcher decides when a run ends; members see it go
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = os.dup(1)  # the launcher reads standard output
    os.dup2(2, 1)
    signal.signal(signal.SIGCHLD, lambda number, frame: _report(line))
    allow_open_files(0)
    QUERIES.load_all()
    RANDOMIZERS.load_all()
    try:
        for place in sys.argv[4:]:
            load(place)
    except InputError as error:  # a file that moved
        sys.exit(f"local-dp: {error}")
    verify_first(bytes.fromhex(sys.argv[3]))
    code_digest(())  # the source is read once, and not by each child
    for _ in range(_TURNS):
        warm_up()
    gc.collect()
    # a collection in a child must not touch, and so copy, the pages it shares with all others
    gc.freeze()
    for index in range(count):
        if select.select([sys.stdin], [], [], 0)[0]:
            return  # it closed while we forked: nobody waits for the others
        if os.fork() == 0:
            os.close(sys.stdin.fileno())
            os.close(line)
            _child(index, launcher)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
