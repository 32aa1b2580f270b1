"""Silence while a record is read: what a query, or numpy, says of one is heard by nobody."""

import io
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout


class _Nowhere(io.TextIOBase):
    """Takes text and keeps none."""

    def write(self, text: str) -> int:
        return len(text)


_NOWHERE = _Nowhere()
_AS_EVER = nullcontext()
_NEVER: list[None] = []  # holds something where nothing is ever heard


def unheard() -> AbstractContextManager[None]:
    """Whatever is said meanwhile, on either stream, as a warning or in a log, might tell of a record, and is lost."""
    return _AS_EVER if _NEVER else _silenced()


@contextmanager
def _silenced() -> Iterator[None]:
    kept = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(_NOWHERE), redirect_stderr(_NOWHERE):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(kept)


def never_warned() -> None:
    """From now on this process, and what it forks, says nothing as a warning or in a log."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def never_heard() -> None:
    """From now on this process says nothing at all, on its two streams either, whoever writes to them: for one that is told of errors over a line of its own.

    A process that is forked by one that has `never_warned` inherits that, which touches every log there is.
    """
    if logging.root.manager.disable < logging.CRITICAL:
        never_warned()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    _NEVER.append(None)
