"""The screen of a command: results on standard output; on standard error, if that is a terminal, a
line with the current work.

A thread draws the line, also while modules are imported and numbers computed. It makes way for
anything else that is printed.
"""

import errno
import os
import select
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Self, TextIO

from local_dp.errors import InputError
from local_dp.foreign import shown
from local_dp.text.layout import in_shell, paragraph, screen_width
from local_dp.text.widgets import progress

if TYPE_CHECKING:
    from rich.progress import Progress

_DELAY = 0.2  # seconds before the line is drawn
_WHOLE = 1.000001  # shares of the work: at 1 the clock of the line would stop
CLOSED_PIPE = 141  # the exit code that a shell gives a program ended by SIGPIPE


class Screen:
    """The one screen of a command."""

    def __init__(self, delay: float = _DELAY) -> None:
        self.delay = delay
        self._work: tuple[str, float | None] = "starting", None
        self._line: Progress | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._work = "starting", None
        _reopen()
        if sys.stderr.isatty():
            self._timer = threading.Timer(self.delay, self._draw)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        with self._lock:
            self._hide()
            self._line = self._timer = None

    def _draw(self) -> None:
        line = progress()
        with self._lock:
            self._line = line
            self._show()

    def _show(self) -> None:
        if self._line is None:
            return
        text, done = self._work
        (task,) = self._line.tasks
        task.total = None if done is None else _WHOLE
        with suppress(OSError):  # of a closed terminal
            self._line.update(
                task.id, description=shown(text, encoding=_letters(sys.stderr)), completed=done
            )
            self._line.start()

    def _hide(self) -> None:
        if self._line is not None:
            with suppress(OSError):
                self._line.stop()

    def working(self, text: str, done: float | None = None) -> None:
        """Says what goes on. `done`, a share of the whole work, adds the time that is left."""
        with self._lock:
            self._work = text, done
            self._show()

    def note(self, text: str) -> None:
        """Prints a line on standard error, with options as a shell has them."""
        self._print(in_shell(text))

    def _print(self, text: str) -> None:
        with self._lock, suppress(OSError):  # an error here could not be printed either
            self._hide()
            print(shown(text, "block", _letters(sys.stderr)), file=sys.stderr, flush=True)
            self._show()

    def check(self) -> None:
        """Raises InputError if standard output takes no result: to be asked before something is
        charged for one."""
        # of a stream that is no file, such as a notebook's
        with _writing(), suppress(UnsupportedOperation):
            _try(sys.stdout.fileno())

    def tell(self, text: str, warning: str = "") -> None:
        """Prints a result on standard output. `warning` is what a person must know if that
        fails."""
        try:
            with _writing(warning), self._lock:
                self._hide()
                print(shown(text, "block", _letters(sys.stdout)), flush=True)
        except InputError as error:
            _forget(sys.stdout)
            if warning or not isinstance(error.__cause__, BrokenPipeError):
                raise
            raise SystemExit(CLOSED_PIPE) from None  # the reader has enough, such as `| head`

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """Adds a note to an interrupt: the measurements so far are stored."""
        try:
            yield
        except KeyboardInterrupt:
            self.note("stopped; the measurements are stored, and the same command continues")
            raise

    def complain(self, text: str) -> None:
        """Prints an error in one line, with options as a shell has them; a terminal breaks it
        between words."""
        text = in_shell(shown(text))
        if sys.stderr.isatty():
            text = paragraph(f"local-dp: {text}", screen_width()).removeprefix("local-dp: ")
        self._print(f"local-dp: {text}")


def _letters(stream: TextIO) -> str:
    return stream.encoding or "utf-8"


def _reopen() -> None:
    """Puts a stream in the place of each closed one, or the next file would get its number.
    Standard output then takes nothing; standard error drops all."""
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            # a number, for good
            setattr(sys, name, open(os.open(os.devnull, mode), "r" if name == "stdin" else "w"))  # noqa: SIM115


@contextmanager
def _writing(warning: str = "") -> Iterator[None]:
    """An error of standard output as an InputError that ends with `warning`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write the result to standard output: {error.strerror}"
            f"{warning and '; '}{warning}"
        ) from error


def _try(number: int) -> None:
    """Raises OSError for an open file that takes nothing: whose reader is gone, that is not for
    writing, or whose disk is full."""
    line, disk = select.poll(), os.fstatvfs(number)
    line.register(number, 0)
    if line.poll(0):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    os.write(number, b"")
    if stat.S_ISREG(os.fstat(number).st_mode) and 0 == disk.f_bavail < disk.f_blocks:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _forget(stream: TextIO) -> None:
    """Drops unwritten output, so that the interpreter does not fail on it at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


SCREEN = Screen()
