"""Helpers and brokers that start at once, each forked from an interpreter that has imported what
they import: for tests that are not about starts.

A run starts `wait_for_it` in the place of `local_dp.clients.helper` and `local_dp.bus.embedded`;
it asks the warm interpreter for a fork and lives exactly as long.
That runs start their real ones is tested elsewhere: by everything that does not use this, and by
commands in interpreters of their own.
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
def warm_interpreter() -> Iterator[str]:
    """Where the warm interpreter is called. It ends when its standard input closes: with the block,
    or with the test process."""
    from local_dp.bus.children import environment, python
    from local_dp.clients.fleet import LEAN

    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        path = str(Path(folder) / "line")
        words = python("tests.support.runs.warm", path)
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(**LEAN)
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"warm\n"
            yield path


@contextmanager
def forked_from(path: str) -> Iterator[None]:
    """Every run of this process has its helper and its broker forked from the warm interpreter."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        for home in ("local_dp.clients.fleet", "local_dp.bus.broker"):
            patch.setattr(
                f"{home}.python",
                lambda *arguments: [sys.executable, "-I", "-S", __file__, "fork", path, *arguments],
            )
        yield


def serve(path: str) -> None:
    """Forks a process for everyone who calls, until standard input closes."""
    from local_dp.bus.embedded import main as broker
    from local_dp.clients.helper import main as helper

    mains = {"local_dp.clients.helper": helper, "local_dp.bus.embedded": broker}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(path)
        line.listen()
        print("warm", flush=True)
        while sys.stdin not in (ready := select.select([line, sys.stdin], [], [])[0]):
            assert ready == [line]
            caller, _ = line.accept()
            data, streams, _, _ = socket.recv_fds(caller, 1 << 16, 2)
            if os.fork() == 0:
                os.setsid()
                # its standard input closes when the caller ends
                for there, here in enumerate((caller.fileno(), *streams)):
                    os.dup2(here, there)
                for each in (line.fileno(), caller.fileno(), *streams):
                    os.close(each)
                path, *sys.argv = json.loads(data)
                sys.path[:] = path.split(os.pathsep)  # with what is installed for the test
                mains[sys.argv[0]]()
                os._exit(0)
            for each in streams:
                os.close(each)
            caller.close()


def wait_for_it(path: str, *arguments: str) -> None:
    """Has a process forked with these words, a module first, and these two streams; hands it what
    comes on standard input, until that closes or it ends."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        socket.send_fds(line, [json.dumps([os.environ["PYTHONPATH"], *arguments]).encode()], [1, 2])
        while line.fileno() not in select.select([line.fileno(), 0], [], [])[0] and (
            data := os.read(0, 1 << 12)
        ):
            line.sendall(data)


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        wait_for_it(*sys.argv[2:])
    else:
        serve(sys.argv[1])
