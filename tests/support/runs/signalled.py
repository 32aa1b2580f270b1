"""Commands that a test ends by a signal, and what they leave behind."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 20.0  # seconds for what takes a moment
COMMAND = (sys.executable, "-m", "local_dp")


class Marked:
    """A command with a mark in its environment, which all its descendants inherit, and a folder for
    temporary files."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.mark, self.folder = secrets.token_hex(8), folder
        self.process = self.start(
            [*COMMAND, *words],
            {**os.environ, "MARK": self.mark, "TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        )

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def alive(self) -> list[int]:
        """Every process with the mark, zombies apart."""
        pids, entry = [], f"MARK={self.mark}".encode()
        for each in Path("/proc").iterdir():
            with suppress(OSError):
                if each.name.isdigit() and entry in (each / "environ").read_bytes().split(b"\0"):
                    pids.append(int(each.name))
        return pids

    def wait(self, condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def left(self) -> tuple[int, list[str]]:
        """The processes and temporary files that stay."""
        self.wait(lambda: not self.alive() and not list(self.folder.iterdir()))
        return len(self.alive()), [each.name for each in self.folder.iterdir()]

    def end(self) -> None:
        for pid in self.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@contextmanager
def marked(folder: Path, *words: str) -> Iterator[Marked]:
    """Such a command, of which nothing is left after the block whatever a test finds."""
    command = Marked(folder, *words)
    try:
        yield command
    finally:
        command.end()


class Victim(Marked):
    """A command in a session of its own, in a folder with `tmp`; its streams are files."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.at = folder
        (temporary := folder / "tmp").mkdir(parents=True)
        super().__init__(temporary, *words)

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        environment |= {"HOME": str(self.at), "XDG_STATE_HOME": str(self.at / "state")}
        with (self.at / "text").open("w") as text:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=self.at,
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=text,
                text=True,
                start_new_session=True,
            )
