"""What a person sees: results on standard output; on standard error, where that is a terminal, a line that says what is going on for as long as it takes.

The line is drawn by a thread of its own, so that it lives while modules are imported and numbers computed, and it is gone before anything else is printed.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self, TextIO

from local_dp.errors import InputError, printable

_DELAY = 0.2  # seconds: what is done before is not announced
_TICK = 0.2  # seconds
_CLEAR = "\r\x1b[2K"
CLOSED_PIPE = 141  # the exit code that a shell gives a program ended by SIGPIPE


class Screen:
    """The one screen of a command."""

    def __init__(self, delay: float = _DELAY) -> None:
        self.delay = delay
        self._text = "starting"
        self._drawn = False
        self._began = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._text, self._began = "starting", time.monotonic()
        self._over.clear()
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._clear()

    def working(self, text: str) -> None:
        """What is going on from now on."""
        self._text = text

    def note(self, text: str) -> None:
        """A line on standard error that stays."""
        with self._lock, suppress(OSError):  # who cannot be told cannot be told that either
            self._clear()
            print(_sayable(text, sys.stderr), file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        """A result, on standard output."""
        try:
            with self._lock:
                self._clear()
                print(_sayable(text, sys.stdout), flush=True)
        except BrokenPipeError:  # the reader has seen enough, as `| head` has
            _forget(sys.stdout)
            raise SystemExit(CLOSED_PIPE) from None
        except OSError as error:
            _forget(sys.stdout)
            raise InputError(f"cannot write the result to standard output: {error.strerror}") from None

    def complain(self, text: str) -> None:
        """An error: one line, which a terminal breaks between words. What a terminal would obey is written out: the words may be somebody else's."""
        text = printable(text)
        if sys.stderr.isatty():
            from local_dp.experiments.text.layout import paragraph, screen_width

            text = paragraph(f"local-dp: {text}", screen_width()).removeprefix("local-dp: ")
        self.note(f"local-dp: {text}")

    def _draw(self) -> None:
        self._over.wait(self.delay)
        while not self._over.is_set():
            with self._lock:
                self._clear()
                sys.stderr.write(self._line())
                sys.stderr.flush()
                self._drawn = True
            self._over.wait(_TICK)

    def _line(self) -> str:
        """The words that fit, and how long the command has run."""
        from local_dp.experiments.text.layout import screen_width, wrapped

        seconds = f" ({time.monotonic() - self._began:.0f} s)"
        first, *more = wrapped(self._text, screen_width() - len(seconds) - 4)
        return f"{first}{' ...' if more else ''}{seconds}"

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._drawn = False


def _sayable(text: str, stream: TextIO) -> str:
    """The text in letters that the stream has."""
    letters = stream.encoding or "utf-8"
    return text.encode(letters, "backslashreplace").decode(letters)


def _forget(stream: TextIO) -> None:
    """What could not be written is not tried again when the interpreter ends, which would be an error of its own."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


SCREEN = Screen()
