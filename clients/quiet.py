"""Silence while a record is read: what a query, or numpy, says of one is heard by nobody."""

import io
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


class _Nowhere(io.TextIOBase):
    """Takes text and keeps none."""

    def write(self, text: str) -> int:
        return len(text)


_NOWHERE = _Nowhere()


@contextmanager
def unheard() -> Iterator[None]:
    """Whatever is said meanwhile, on either stream, as a warning or in a log, might tell of a record, and is lost."""
    kept = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(_NOWHERE), redirect_stderr(_NOWHERE):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(kept)


def never_heard() -> None:
    """From now on this process says nothing on its two streams, whoever writes to them: for one that is told of errors over a line of its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
