"""The preloaded helper: imports everything once, then forks one process per member. It never sees a record.

Each child asks the launcher's socket for its own configuration, and ends when the run does, or when the launcher is gone.
"""

import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from local_dp.bus.children import allow_open_files
from local_dp.clients.pages import filled
from local_dp.clients.prefork import Opening
from local_dp.clients.process import introduce, live
from local_dp.clients.rehearsal import Rehearsal
from local_dp.clients.silence_output import never_heard, never_warned
from local_dp.errors import RefusedError
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.verification.gate import verify


def _child(index: int, launcher: str, rehearsal: Rehearsal) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    never_heard()
    code = 1
    try:
        line = socket.socket(socket.AF_UNIX)  # closed by the end of this process alone: so the launcher knows that it has ended
        line.connect(launcher)
        config = introduce(line, index)
        rehearsal.answer()
        code = 0 if config is None else live(line, config)
    except OSError:
        code = 0  # the launcher went away first
    finally:
        os._exit(code)


def verify_first(opening: Opening) -> None:
    """Verifies the randomizers that the run begins with, once for all children, who find the verdict."""
    for ask in opening.asks:
        with suppress(RefusedError):  # each client says so itself when it is asked
            verify(RANDOMIZERS.build(ask.randomizer, ask.randomizer_params))


def main() -> None:
    """Forks `count` members (first argument), which call at the launcher's socket (second), and waits until standard input closes.

    The third argument is the run's opening, in hexadecimal, and there is a fourth where members keep stores. Whatever became of the launcher, its folder is
    gone with us.
    """
    try:
        _fork()
    finally:
        rmtree(Path(sys.argv[2]).parent, ignore_errors=True)


def _fork() -> None:
    count, launcher = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides when a run ends; members see it go
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is left as a zombie
    allow_open_files(0)
    never_warned()
    opening = Opening.from_bytes(bytes.fromhex(sys.argv[3]))
    verify_first(opening)
    rehearsal = Rehearsal.of(opening)
    rehearsal.play(count, Path(launcher).parent if sys.argv[4:] else None)
    gc.collect()
    kept = filled()
    gc.freeze()  # a collection in a child must not touch, and so copy, the pages it shares with all others
    for index in range(count):
        if select.select([sys.stdin], [], [], 0)[0]:
            return  # it closed while we forked: nobody waits for the others
        if os.fork() == 0:
            os.close(sys.stdin.fileno())
            _child(index, launcher, rehearsal)
    sys.stdin.buffer.read()
    del kept


if __name__ == "__main__":
    main()
