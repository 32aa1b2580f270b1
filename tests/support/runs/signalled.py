"""Commands that a test ends by a signal, a closed terminal or a reader that leaves, at any moment;
and what they leave behind."""

import os
import pty
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 20.0  # seconds for what takes a moment
SOON = 2.0  # seconds in which a command may still end by itself
COMMAND = (sys.executable, "-m", "local_dp")
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], "
    "sys.argv[1:])"
)


class Marked:
    """A command with a mark in its environment, which all its descendants inherit, and a folder for
    temporary files."""

    def __init__(self, folder: Path, *words: str, code: str = "") -> None:
        self.mark, self.folder = secrets.token_hex(8), folder
        command = (sys.executable, "-c", code) if code else COMMAND
        self.process = self.start(
            [*command, *words],
            {**os.environ, "MARK": self.mark, "TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        )

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def alive(self) -> list[int]:
        """Every process with the mark, zombies apart."""
        pids, wanted = [], f"MARK={self.mark}".encode()
        for each in Path("/proc").iterdir():
            with suppress(OSError):
                if each.name.isdigit() and wanted in (each / "environ").read_bytes().split(b"\0"):
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
def marked(folder: Path, *words: str, code: str = "") -> Iterator[Marked]:
    """Such a command, of which nothing is left after the block whatever a test finds."""
    command = Marked(folder, *words, code=code)
    try:
        yield command
    finally:
        command.end()


@dataclass(frozen=True)
class Way:
    """A way to be ended: by a signal to the process, to its whole group as the keys of a terminal
    send it, by a closed terminal, or by readers that leave."""

    name: str
    number: int
    codes: tuple[int, ...]  # the exit codes that are right
    group: bool = False
    terminal: bool = False
    readers: tuple[int, ...] = ()  # of standard output and standard error


# inside exec() the interpreter ends itself by SIGINT, which a shell shows as 130
_INTERRUPT = (
    130,
    -signal.SIGINT,
)
WAYS = [
    Way("SIGINT", signal.SIGINT, _INTERRUPT),
    Way("SIGINT of the group", signal.SIGINT, _INTERRUPT, group=True),
    Way("SIGTERM", signal.SIGTERM, (143,)),
    Way("SIGTERM of the group", signal.SIGTERM, (143,), group=True),
    Way("SIGHUP", signal.SIGHUP, (129,)),
    Way("closed terminal", 0, (129,), terminal=True),
    Way("SIGKILL", signal.SIGKILL, (-signal.SIGKILL,)),
    Way("closed standard output", 0, (2, 141), readers=(1,)),
    Way("closed standard error", 0, (), readers=(2,)),
]


class Victim(Marked):
    """A command in a session of its own, in a folder with `tmp`; its streams are files, pipes whose
    readers may leave, or a terminal."""

    def __init__(self, folder: Path, way: Way, *words: str) -> None:
        self.way, self.at, self._readers, self._screen = way, folder, list[int](), -1
        (temporary := folder / "tmp").mkdir(parents=True)
        super().__init__(temporary, *words)
        self.began = time.monotonic()

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        environment |= {"HOME": str(self.at), "XDG_STATE_HOME": str(self.at / "state")}
        streams = {
            number: os.open(self.at / f"{number}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            for number in (1, 2)
        }
        for number in self.way.readers:
            reader, streams[number] = os.pipe()
            self._readers.append(reader)
        if self.way.terminal:
            self._screen, inside = pty.openpty()
            command = [
                sys.executable,
                "-c",
                (
                    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
                    "os.execv(sys.argv[1], sys.argv[1:])"
                ),
                *command,
            ]
            streams = {0: inside, 1: inside, 2: inside}
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=self.at,
            stdin=streams.get(0, subprocess.DEVNULL),
            stdout=streams[1],
            stderr=streams[2],
            text=True,
            start_new_session=True,
        )
        for each in set(streams.values()):
            os.close(each)
        return process

    def ready(self) -> bool:
        """Waits until it handles signals: before, the interpreter starts."""
        status = Path(f"/proc/{self.process.pid}/status")

        def handles() -> bool:
            with suppress(OSError):
                caught = re.search(r"SigCgt:\s*(\w+)", status.read_text())
                return self.process.poll() is not None or bool(
                    caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1
                )
            return True

        return self.wait(handles)

    def over(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))
            return True
        return False

    def strike(self) -> None:
        """Ends it in its way; one that goes on without its readers is ended by SIGTERM."""
        if self.way.terminal:
            os.close(self._screen)
        for each in self._readers:
            os.close(each)
        self._readers, self._screen = [], -1
        if self.way.number:
            with suppress(ProcessLookupError):
                (os.killpg if self.way.group else os.kill)(self.process.pid, self.way.number)
        elif self.way.readers and not self.over(1.0):
            self.process.terminate()

    def close(self) -> None:
        for each in [*self._readers, *[self._screen] * (self._screen >= 0)]:
            os.close(each)
        self.end()

    def text(self) -> str:
        """What it has printed into files."""
        return "".join((self.at / f"{number}.txt").read_text() for number in (1, 2))


@dataclass
class Trial:
    """One command, ended in one way, `seconds` after it could handle signals: its faults."""

    words: tuple[str, ...]
    way: Way
    seconds: float
    ended: bool = True  # by the signal, and not before it
    faults: list[str] = field(default_factory=list)

    def play(self, folder: Path, natural: int | None, whole: Callable[[Path], str]) -> "Trial":
        """`natural`: its exit code where nobody ends it. `whole` looks at its files, and gives what
        is wrong with them."""
        victim = Victim(folder, self.way, *self.words)
        try:
            if not victim.ready():
                self.faults.append("it never handled signals")
            self.ended = not victim.over(self.seconds)
            victim.strike()
            soon = victim.over(SOON)
            if not victim.over(PATIENCE):
                self.faults.append("it goes on")
            self._judge(victim, {0, natural} if soon or self.way.readers else set())
            self.faults += [whole(folder)] if whole(folder) else []
        finally:
            victim.close()
        return self

    def _judge(self, victim: Victim, natural: set[int | None]) -> None:
        code, text = victim.process.returncode, victim.text()
        right = {*self.way.codes, *({143} if self.way.readers else ()), *natural}
        if code not in right:
            self.faults.append(f"exit code {code}, and not {self.way.codes}")
        if match := re.search(
            r"Traceback|Exception ignored|Exception in|unhandled|never retrieved|Fatal", text
        ):
            self.faults.append(f"{match[0]}: {text[-1500:]}")
        if text.count("local-dp: ") > 1:
            self.faults.append(f"more than one line: {text[-1500:]}")
        if (left := victim.left()) != (0, []):
            self.faults.append(f"left behind: {left}")
