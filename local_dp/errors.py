"""What can go wrong by somebody's doing, split by whose: each error is one line that says what, with which value, and what to do."""

from collections.abc import Iterable


class LocalDPError(Exception):
    """Anything this project refuses on purpose; every other exception is a bug of ours."""


class InputError(LocalDPError):
    """The caller's values are wrong: a parameter, a file, a column, a question."""


class RefusedError(LocalDPError):
    """A client would not answer: `code` says why, in a word a machine can read."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class QuorumError(LocalDPError):
    """A round closed with fewer replies than its quorum."""


class BusError(LocalDPError):
    """The message bus cannot be reached, refused us, or went away for good."""


class WireError(LocalDPError):
    """A message is not one of ours: malformed, oversized, unknown or not in canonical form."""


class ForgedError(WireError):
    """A message that nobody signed who may say it."""


def printable(text: str) -> str:
    """Somebody else's words as they may be shown: what a terminal would obey is written out."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The line for a name that is not among the known ones: `what` it is not, the nearest known name, and all of them."""
    from difflib import get_close_matches  # here: it is needed when something is wrong, and takes time to import

    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"{what} {name!r}; {f'did you mean {near[0]!r}? ' if near else ''}there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"
