"""What a client has answered and spent: the same request again gets the same bytes, a different one under the same round gets none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Protocol

from local_dp.ledger import Charge, Ledger
from local_dp.oracles.local.sessions import Spoken
from local_dp.wire import Line, Reply, checksum


@dataclass(frozen=True)
class Commit:
    """One round answered: the digest of the request, what it cost, and the replies, byte for byte; and of each session in it who has spoken (`Spoken.bits`)."""

    run: str
    round: int
    request: bytes
    charges: tuple[Charge, ...]
    replies: tuple[Reply, ...]
    spoken: tuple[tuple[str, bytes], ...] = ()

    @property
    def line(self) -> Line:
        """What the server is told of it when the run is over: the round, the reports that were charged, the checksum of those that were sent."""
        return self.round, sum(charge.stop - charge.start for charge in self.charges), reduce(xor, map(checksum, self.replies), 0)


class Store(Protocol):
    """A client's durable state: its commits, unique by (run, round), and what is a fold over them: its ledger, who has spoken in which session,
    their number and their size."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def spoken(self) -> Spoken: ...

    @property
    def rounds(self) -> int: ...

    @property
    def size(self) -> int: ...

    def lines(self, run: str) -> Mapping[int, Line]: ...

    def get(self, run: str, round: int) -> Commit | None:
        """What was committed. Raises RefusedError("store") where that cannot be known."""

    def commit(self, commit: Commit) -> None:
        """One step, before anything is sent. Raises RefusedError("budget") and keeps nothing, or ("store") and keeps it or not."""


class Book:
    """The fold: what a store is besides the bytes of its replies."""

    def __init__(self, limit: float, lifetime: float | None = None) -> None:
        self.ledger = Ledger(limit, lifetime)
        self.spoken = Spoken()
        self.rounds = 0
        self.size = 0  # bytes of reports
        self._lines: dict[str, dict[int, Line]] = {}

    def lines(self, run: str) -> Mapping[int, Line]:
        return self._lines.get(run, {})

    def _enter(self, commit: Commit) -> None:
        """Notes what is committed, without asking whether it might be."""
        self.ledger.enter(commit.run, commit.charges)
        for session, bits in commit.spoken:
            self.spoken.restore(session, bits)
        self.rounds += 1
        self.size += sum(len(reply.reports) for reply in commit.replies)
        self._lines.setdefault(commit.run, {})[commit.round] = commit.line


class MemoryStore(Book):
    """Lives as long as its client's process."""

    def __init__(self, limit: float, commits: Sequence[Commit] = (), lifetime: float | None = None) -> None:
        super().__init__(limit, lifetime)
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
        self.ledger.check(commit.run, commit.charges)
        self._enter(commit)
        self._commits[commit.run, commit.round] = commit
