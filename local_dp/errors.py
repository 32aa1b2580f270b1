"""The errors that this project raises on purpose: each is one line that says what is wrong, with which value, and what to do."""

from collections.abc import Iterable


class LocalDPError(Exception):
    """Any error raised on purpose; every other exception is a bug."""


class InputError(LocalDPError):
    """The caller's values are wrong: a parameter, a file, a column, a question."""


class RefusedError(LocalDPError):
    """A client's refusal to answer; `code` is its machine-readable reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class QuorumError(LocalDPError):
    """A round closed with fewer replies than its quorum."""


class BusError(LocalDPError):
    """The message bus cannot be reached, refused the connection, or closed it for good."""


class WireError(LocalDPError):
    """A message of another protocol: malformed, oversized, unknown or not canonical. `kind` is the counter of its rejection."""

    def __init__(self, message: str, kind: str = "unfit") -> None:
        super().__init__(message)
        self.kind = kind


class ForgedError(WireError):
    """A message without the signature of an allowed sender."""


def printable(text: str) -> str:
    """Somebody else's text for a terminal: control characters are escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def unknown(what: str, name: str, known: Iterable[str], listing: str = "") -> str:
    """The line for an unknown name, begun by `what`: the nearest known name and all of them, or of more than 40 the first ten and how to list all."""
    from difflib import get_close_matches  # here: it is needed when something is wrong, and takes time to import

    names = list(known)
    near = get_close_matches(name, names, n=1)
    shown = names if len(names) <= 40 else [*names[:10], f"and {len(names) - 10} more" + f" (`{listing}`)" * bool(listing)]
    return f"{what} {name!r}; {f'did you mean {near[0]!r}? ' if near else ''}there {'is' if len(names) == 1 else 'are'} {', '.join(shown)}"
