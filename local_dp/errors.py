"""The errors that this project raises on purpose: each is one line that says what is wrong, with
which value, and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_dp.foreign import LISTED, brief, listed, shown

EXTREME = "a number is too large or too small to be computed with; give another"
_COMPARED = 80  # characters of a name that is compared with others


class LocalDPError(Exception):
    """Any error raised on purpose; every other exception is a bug. Its message is one line, however
    long and whatever the foreign text in it."""

    def __init__(self, message: object = "") -> None:
        super().__init__(brief(shown(str(message))))


class InputError(LocalDPError):
    """The caller's values are wrong: a parameter, a file, a column, a question."""


class RefusedError(LocalDPError):
    """A client's refusal to answer; `code` is its machine-readable reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self))  # from a worker process


class QuorumError(LocalDPError):
    """A round closed with fewer replies than its quorum."""


class BusError(LocalDPError):
    """The message bus cannot be reached, refused the connection, or closed it for good."""


class WireError(LocalDPError):
    """A message of another protocol: malformed, oversized, unknown or not canonical. `kind` is the
    counter of its rejection."""

    def __init__(self, message: str, kind: str = "unfit") -> None:
        super().__init__(message)
        self.kind = kind


class ForgedError(WireError):
    """A message without the signature of an allowed sender."""


class LocalDPWarning(UserWarning):
    """A notice about the caller's data or about the error of an answer."""


@contextmanager
def reading(path: Path | str, advice: str, cause: str = "") -> Iterator[None]:
    """Raises InputError if what is done inside cannot read the file, in any way; it ends with the
    advice. A `cause` is said in place of the parser's own, but not of the operating system's.

    A reader meets every kind of damage, and no list of exceptions is complete: a parser may even
    panic, which is no Exception.
    """
    try:
        yield
    except (LocalDPError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        cause = (
            getattr(error, "strerror", None)
            or cause
            or (str(error).splitlines() or [type(error).__name__])[0]
        )
        raise InputError(
            f"cannot read {brief(str(path), 300)!r}: {brief(cause, 300)}; {advice}"
        ) from None


def interrupted(error: BaseException | None) -> bool:
    """True if an interrupt caused this error: of one that comes while a class is made, Python makes
    a RuntimeError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def unknown(what: str, name: str, options: Iterable[str], listing: str = "") -> str:
    """The line for an unknown name, begun by `what`: the nearest known name and all of them, or of
    more than 40 the first ten and how to list all."""
    # here: it is needed when something is wrong, and takes time to import
    from difflib import get_close_matches

    names = list(options)
    # comparing takes the product of two lengths
    candidates = [each for each in names[: 25 * LISTED] if len(each) <= _COMPARED]
    near = get_close_matches(name[:_COMPARED], candidates, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{what} {brief(name, _COMPARED)!r}; {hint}there {verb} {listed(names, listing)}"
