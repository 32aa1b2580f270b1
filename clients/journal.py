"""What a client has answered and spent: the same request again gets the same bytes, a different one under the same round gets none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from local_dp.ledger import Charge, Ledger
from local_dp.wire import Reply


@dataclass(frozen=True)
class Commit:
    """One round answered: the digest of the request, what it cost, and the replies, byte for byte."""

    run: str
    round: int
    request: bytes
    charges: tuple[Charge, ...]
    replies: tuple[Reply, ...]


class Store(Protocol):
    """A client's durable state: its commits, unique by (run, round), and the ledger, which is a fold over them."""

    @property
    def ledger(self) -> Ledger: ...

    def get(self, run: str, round: int) -> Commit | None: ...

    def commit(self, commit: Commit) -> None:
        """One step, before anything is sent. Raises RefusedError("budget") and keeps nothing."""


class MemoryStore:
    """Lives as long as its client's process."""

    def __init__(self, limit: float, commits: Sequence[Commit] = ()) -> None:
        self.ledger = Ledger(limit)
        self._commits: dict[tuple[str, int], Commit] = {}
        for commit in commits:
            self.commit(commit)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """All of them, in their order."""
        return tuple(self._commits.values())

    def get(self, run: str, round: int) -> Commit | None:
        return self._commits.get((run, round))

    def commit(self, commit: Commit) -> None:
        self.ledger.charge(commit.run, commit.charges)
        self._commits[commit.run, commit.round] = commit
