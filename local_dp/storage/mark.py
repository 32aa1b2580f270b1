"""The mark of a log: a small file beside it with its length, digest and inode, so that an older,
copied or missing log is noticed."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from local_dp.errors import InputError
from local_dp.storage.log import Entry, chained, sync

_DIGEST = 16  # bytes


@dataclass(frozen=True)
class Mark:
    """The mark of the log at `path`. It is written after each append, so a kill leaves it behind
    the log and never ahead of it.

    A copy of both files over both is not noticed.
    """

    path: Path

    @property
    def file(self) -> Path:
        return self.path.with_name(f"{self.path.name}.made")

    def set(self, entries: Sequence[Entry]) -> None:
        """Marks a log of these entries, on the disk before it returns. Raises InputError."""
        temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        try:
            with temporary.open("wb") as file:
                os.chmod(temporary, 0o600)
                file.write(_signed(self._body(entries)))
            sync(temporary)
            temporary.replace(self.file)
            sync(self.file.parent)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise InputError(f"cannot write {str(self.file)!r}: {error.strerror}") from None

    def check(self, entries: Sequence[Entry]) -> None:
        """Raises InputError for a log that is older than its mark or another file, and for a mark
        that is missing or damaged."""
        try:
            content = self.file.read_bytes()
        except OSError:
            raise InputError(
                f"{str(self.path)!r} is a copy, or its mark {self.file.name!r} was removed; use "
                "the original with its mark beside it"
            ) from None
        body, count = content[:-_DIGEST], int.from_bytes(content[:8])
        if content != _signed(body):
            raise InputError(
                f"{str(self.file)!r} is damaged, so nobody knows whether {self.path.name!r} is "
                "the latest; put both files back from before"
            )
        if body[8:16] != self._body([])[8:16]:
            raise InputError(
                f"{str(self.path)!r} is a copy; use the original: two copies of a budget would be "
                "spent twice"
            )
        if len(entries) < count or body != self._body(entries[:count]):
            raise InputError(
                f"{str(self.path)!r} is older than its mark {self.file.name!r}: entries are "
                "missing; put the latest file back"
            )
        if len(entries) > count:
            self.set(entries)  # for a process that was killed before it could

    def _body(self, entries: Sequence[Entry]) -> bytes:
        digest = bytes(_DIGEST)
        for entry in entries:
            digest = chained(digest, entry.digest())
        return len(entries).to_bytes(8) + self.path.stat().st_ino.to_bytes(8) + digest


def _signed(body: bytes) -> bytes:
    return body + blake2b(body, digest_size=_DIGEST).digest()
