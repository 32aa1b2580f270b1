"""Commands that a test kills: each forked from the warm interpreter, so that its length is that of
its work."""

import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.support.runs.warm import COMMAND

PATIENCE = 60.0  # seconds for one command


class Command:
    """A command that runs, with its two streams in files of `folder`."""

    def __init__(self, line: str, folder: Path, *words: str) -> None:
        self.exit_code: int | None = None
        self._over = False
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(PATIENCE)
        self._line.connect(line)
        self._paths = [folder / f"{os.getpid()}-{id(self)}.{name}" for name in ("out", "err")]
        streams = [os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY) for path in self._paths]
        self.began = time.monotonic()
        socket.send_fds(
            self._line,
            [json.dumps([os.pathsep.join(filter(None, sys.path)), COMMAND, *words]).encode()],
            streams,
        )
        for each in streams:
            os.close(each)
        (self.pid,) = struct.unpack("<I", self._line.recv(4))

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._paths[0].read_text()

    @property
    def err(self) -> str:
        return self._paths[1].read_text()

    def over(self, seconds: float) -> bool:
        """Waits so long, or until it is over."""
        if self._over:
            return True
        self._line.settimeout(max(1e-6, seconds))
        with suppress(TimeoutError):
            self._line.recv(1, socket.MSG_PEEK)
            return True
        return False

    def code(self) -> int | None:
        """Its exit code once it is over; None if it was killed."""
        if not self._over:
            self._line.settimeout(PATIENCE)
            told = self._line.recv(1)
            self.length = time.monotonic() - self.began
            assert not told or not self._line.recv(1)  # it is no more
            self._over, self.exit_code = True, told[0] if told else None
            self._line.close()
        return self.exit_code

    def kill_after(self, seconds: float) -> int | None:
        """Kills it so many seconds after its start, if it is not over by then; its exit code if it
        was."""
        if not self.over(self.began + seconds - time.monotonic()):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, signal.SIGKILL)
        return self.code()

    def kill_when(self, seen: Callable[[], object]) -> int | None:
        """Kills it as soon as something is seen, if it is not over by then."""
        while not seen() and not self.over(1e-4):
            pass
        return self.kill_after(0.0)

    def kill_once_it_prints(self) -> int | None:
        """Kills it at the first byte of its output."""
        return self.kill_when(lambda: self._paths[0].stat().st_size)
