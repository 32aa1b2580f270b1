"""A command in a terminal of its own, as a person has it: what is drawn there, and the interrupt
key."""

import fcntl
import os
import re
import select
import signal
import struct
import termios
import time

import psutil

from tests.support.runs.command import command

CLEARED = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h\r\x1b\[1A\x1b\[2K", re.DOTALL)  # the line of work


class Terminal:
    """One command, both of whose streams are a terminal of so many columns."""

    def __init__(self, *arguments: str, columns: int = 80) -> None:
        self._screen, inside = os.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
        }
        self.process = psutil.Popen(
            command(*arguments), stdout=inside, stderr=inside, env=environment
        )
        os.close(inside)
        self.output = ""

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Reads until what a regular expression says was drawn."""
        end = time.monotonic() + seconds
        while not re.search(text, self.output):
            assert time.monotonic() < end, f"{text!r} was not drawn: {self.output[-500:]!r}"
            assert self._read(0.1) or self.process.poll() is None, (
                f"it ended without {text!r}: {self.output[-500:]!r}"
            )

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 60.0) -> str:
        """Reads to the end: what stands on the screen then, without what was drawn and cleared.
        Ends a command that goes on for longer."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self._read(0.1)
        while self._read(0.1):
            pass
        os.close(self._screen)
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError(f"it went on for {seconds} seconds: {self.output[-500:]!r}")
        return CLEARED.sub("", self.output)

    def _read(self, seconds: float) -> bool:
        """Whether something was drawn meanwhile."""
        if not select.select([self._screen], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._screen, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.output += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
