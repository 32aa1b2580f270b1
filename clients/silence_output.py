"""Silence while a record is read: a warning, a log line or a print could reveal the record."""

import io
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


_NOWHERE = _Nowhere()


@contextmanager
def unheard() -> Iterator[None]:
    """Drops all that is printed, warned or logged meanwhile."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(_NOWHERE), redirect_stderr(_NOWHERE):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def never_heard() -> None:
    """Closes both streams of this process for good, for native code as well. Its errors go over another line."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
