"""The screen of a command: results on standard output; on standard error, if that is a terminal, a
line with the current work.

A thread draws the line, also while modules are imported and numbers computed. It is cleared before
anything else is printed.
"""

import errno
import os
import select
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from types import TracebackType
from typing import Self, TextIO

from local_dp.errors import InputError
from local_dp.foreign import shown
from local_dp.text.layout import in_shell, paragraph, screen_width, wrapped

_DELAY = 0.2  # seconds before the line is drawn
_TICK = 0.2  # seconds
_CLEAR = "\r\x1b[2K"
_SEEN = 0.05  # the share of the work from which the rest is estimated
CLOSED_PIPE = 141  # the exit code that a shell gives a program ended by SIGPIPE


class Screen:
    """The one screen of a command."""

    def __init__(self, delay: float = _DELAY) -> None:
        self.delay = delay
        self._text = "starting"
        self._drawn = False
        self._began = 0.0
        self._pace: tuple[float, float] | None = None  # a share of the work, and when it was done
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._text, self._began, self._pace = "starting", time.monotonic(), None
        self._over.clear()
        _reopen()
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._clear()

    def working(self, text: str, done: float | None = None) -> None:
        """Says what goes on. `done`, a share of the whole work, adds the time that is left."""
        self._text = f"{text}{'' if done is None else self._left(done)}"

    def _left(self, done: float) -> str:
        """The time that is left at the pace so far; empty before a twentieth of the work was seen
        to be done."""
        now = time.monotonic()
        if self._pace is None or done < self._pace[0]:
            self._pace = done, now
        first, since = self._pace
        return (
            f"; about {_span((now - since) * (1 - done) / (done - first))} left"
            if done - first >= _SEEN and done < 1
            else ""
        )

    def note(self, text: str) -> None:
        """Prints a line on standard error, with options as a shell has them."""
        self._print(in_shell(text))

    def _print(self, text: str) -> None:
        with self._lock, suppress(OSError):  # an error here could not be printed either
            self._clear()
            print(shown(text, "block", _letters(sys.stderr)), file=sys.stderr, flush=True)

    def check(self) -> None:
        """Raises InputError if standard output takes no result: to be asked before something is
        charged for one."""
        with (
            _writing(),
            suppress(UnsupportedOperation),
        ):  # of a stream that is no file, such as a notebook's
            _try(sys.stdout.fileno())

    def tell(self, text: str, lost: str = "") -> None:
        """Prints a result on standard output. `lost`: what is to be known if it takes none."""
        try:
            with _writing(lost), self._lock:
                self._clear()
                print(shown(text, "block", _letters(sys.stdout)), flush=True)
        except InputError as error:
            _forget(sys.stdout)
            if lost or not isinstance(error.__cause__, BrokenPipeError):
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

    def _draw(self) -> None:
        self._over.wait(self.delay)
        while not self._over.is_set():
            with self._lock:
                self._clear(self._line())
            self._over.wait(_TICK)

    def _line(self) -> str:
        """The words that fit, and the time since the start."""
        seconds = f" ({time.monotonic() - self._began:.0f} s)"
        first, *more = wrapped(
            shown(self._text, encoding=_letters(sys.stderr)), screen_width() - len(seconds) - 4
        )
        return f"{first}{' ...' if more else ''}{seconds}"

    def _clear(self, line: str = "") -> None:
        if self._drawn or line:
            with suppress(OSError):  # of a closed terminal
                sys.stderr.write(_CLEAR * self._drawn + line)
                sys.stderr.flush()
        self._drawn = bool(line)


def _span(seconds: float) -> str:
    """A time in words: seconds, minutes from two on, hours from two on."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


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
def _writing(lost: str = "") -> Iterator[None]:
    """An error of standard output as an InputError, with what is `lost`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write the result to standard output: {error.strerror}{lost and '; '}{lost}"
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
