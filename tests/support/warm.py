"""Helper processes that start at once, each forked from an interpreter that has imported what they import: for tests of many runs.

A run starts `wait_for_it` in the place of `clients.helper`; it asks the warm interpreter for a fork and lives exactly as long. That runs start their real
helper is tested elsewhere: by everything that does not use this.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def warm_helpers() -> Iterator[None]:
    """Every fleet's helper is forked; the interpreter that forks ends when its standard input closes: with the block, or with the test process."""
    import pytest

    from clients.fleet import LEAN
    from local_dp.bus.children import environment, python

    with tempfile.TemporaryDirectory(prefix="warm-") as folder, pytest.MonkeyPatch.context() as patch:
        path = str(Path(folder) / "line")
        words = python("tests.support.warm", path)
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(**LEAN)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"warm\n"
            patch.setattr("clients.fleet.python", lambda _, *arguments: [sys.executable, "-I", "-S", __file__, "fork", path, *arguments])
            yield


def serve(path: str) -> None:
    """Forks a helper for everyone who calls, until standard input closes."""
    from clients.helper import main as helper

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(path)
        line.listen()
        print("warm", flush=True)
        while sys.stdin not in (ready := select.select([line, sys.stdin], [], [])[0]):
            assert ready == [line]
            caller, _ = line.accept()
            said, streams, _, _ = socket.recv_fds(caller, 1 << 16, 2)
            if os.fork() == 0:
                os.setsid()
                for there, here in enumerate((caller.fileno(), *streams)):  # its standard input closes when the caller ends
                    os.dup2(here, there)
                for each in (line.fileno(), caller.fileno(), *streams):
                    os.close(each)
                sys.argv = ["clients.helper", *json.loads(said)]
                helper()
                os._exit(0)
            for each in streams:
                os.close(each)
            caller.close()


def wait_for_it(path: str, *arguments: str) -> None:
    """Has a helper forked with these arguments and these two streams, and waits until it ends or standard input closes; ending, it ends the helper."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        socket.send_fds(line, [json.dumps(arguments).encode()], [1, 2])
        select.select([line, sys.stdin], [], [])


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        wait_for_it(*sys.argv[2:])
    else:
        serve(sys.argv[1])
