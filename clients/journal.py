"""What a client has already answered: the same question again gets the same bytes, a different one under the same round gets none."""

from dataclasses import dataclass
from typing import Protocol

from local_dp.wire import Reply


@dataclass(frozen=True)
class Entry:
    """A round that was answered: the digest of the request and the replies, byte for byte."""

    request: bytes
    replies: tuple[Reply, ...]


class Journal(Protocol):
    """Unique by (run, round)."""

    def get(self, run: str, round: int) -> Entry | None: ...

    def put(self, run: str, round: int, entry: Entry) -> None: ...


class MemoryJournal:
    """Lives as long as its client's process."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], Entry] = {}

    def get(self, run: str, round: int) -> Entry | None:
        return self._entries.get((run, round))

    def put(self, run: str, round: int, entry: Entry) -> None:
        self._entries[run, round] = entry
