"""The answers and the spending of a client: the same request again gets the same bytes, a different
one under the same round gets none."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path

import msgpack

from local_dp.arrays import Counts
from local_dp.clients.places import Owners, people_of
from local_dp.errors import InputError, RefusedError, reading
from local_dp.ledger import Charge, Ledger
from local_dp.loss import NANO, nano_epsilon
from local_dp.oracles.local.memory import Memory, Outcomes
from local_dp.records import Records
from local_dp.storage.log import Entry, Log
from local_dp.wire import Line, Reply, checksum, decode, encode

KIND = 0x1D9C  # SQLite's application id: the file is a client's store
_MADE = ".made"  # the name of the mark, after that of the file
_DAMAGED = "what its clients have spent cannot be known, so they answer nothing more"
_SECRET_BYTES = 32


@dataclass(frozen=True)
class Commit:
    """One answered round: the digest of the request, its cost, the replies byte for byte.

    `speakers` are the clients that answered in each session (`Speakers.bits`), and `outcomes` the
    new ones under labels. `history` is a digest of the inputs of the replies
    (`noise.BoundNoise.history`).
    """

    run: str
    round: int
    request: bytes
    charges: tuple[Charge, ...]
    replies: tuple[Reply, ...]
    speakers: tuple[tuple[str, bytes], ...] = ()
    outcomes: tuple[Outcomes, ...] = ()
    history: bytes = b""


class Store(ABC):
    """A client's commits, unique by (run, round), and what they add up to: its ledger, who answered
    in each session, the kept outcomes, the number of rounds and the bytes of reports and outcomes.
    `histories` are those of the last commit under each label."""

    def __init__(self, limit: float, lifetime: float | None = None) -> None:
        self.ledger = Ledger(limit, lifetime)
        self.memory = Memory()
        self.histories: dict[str, bytes] = {}
        self.rounds = 0
        self.size = 0
        self._lines: dict[str, dict[int, Line]] = {}

    @abstractmethod
    def get(self, run: str, round: int) -> Commit | None:
        """The commit of a round, or None. Raises RefusedError("store") where that cannot be
        known."""

    @abstractmethod
    def commit(self, commit: Commit) -> None:
        """One step, before anything is sent. Raises RefusedError("budget") and keeps nothing, or
        ("store") and keeps it or not."""

    def places(self, records: Records, person: str = "", moves: bool = True) -> Counts | None:
        """Binds the store to these rows of its member's table, or raises InputError. Gives the
        place of each row, if it is not the row's number (`places.Owners`)."""
        if person:
            people_of(records, person)
        return None

    def lines(self, run: str) -> Mapping[int, Line]:
        return self._lines.get(run, {})

    def _enter(self, commit: Commit) -> None:
        """Adds a commit, without a check."""
        self.ledger.enter(commit.run, commit.charges)
        for session, bits in commit.speakers:
            self.memory.speakers.restore(session, bits)
        for outcomes in commit.outcomes:
            self.memory.memo.restore(outcomes)
            self.size += len(outcomes.data)
        for charge in commit.charges:
            if charge.label:
                self.histories[charge.label] = commit.history
        self.rounds += 1
        self.size += sum(len(reply.reports) for reply in commit.replies)
        count = sum(charge.stop - charge.start for charge in commit.charges)
        checksums = reduce(xor, map(checksum, commit.replies), 0)
        self._lines.setdefault(commit.run, {})[commit.round] = (commit.round, count, checksums)


class MemoryStore(Store):
    """Lives as long as its client's process."""

    def __init__(self, limit: float, lifetime: float | None = None) -> None:
        super().__init__(limit, lifetime)
        self._commits: dict[tuple[str, int], Commit] = {}

    @property
    def commits(self) -> tuple[Commit, ...]:
        return tuple(self._commits.values())

    def get(self, run: str, round: int) -> Commit | None:
        return self._commits.get((run, round))

    def commit(self, commit: Commit) -> None:
        self.ledger.check(commit.run, commit.charges)
        self._enter(commit)
        self._commits[commit.run, commit.round] = commit


class SqliteStore(Store):
    """The commits of one member's clients in a file: they outlive its process, and a machine that
    stops.

    `limit` is for each run, `lifetime` for all, in nats; the lifetime of a new file is `limit` by
    default and never changes. Private words are derived from `secret` (`noise.StoreNoise`). A file
    that is in use, damaged or not writable raises InputError on opening, and RefusedError("store")
    afterwards. So does a missing file with a mark beside it, since nobody knows then how much was
    spent.
    """

    def __init__(self, path: Path, limit: float, lifetime: float | None = None) -> None:
        super().__init__(limit, lifetime)
        self._log = _open(path, self.ledger.lifetime)
        try:
            with reading(path, _DAMAGED):
                first = self._log.entries("")[0]
                life = int.from_bytes(first.data[:-_SECRET_BYTES])
                self.secret = first.data[-_SECRET_BYTES:]
            if lifetime is not None and nano_epsilon(lifetime) != life:
                raise InputError(
                    f"the store {str(path)!r} was made for epsilon {life / NANO:g} for life, which "
                    "stays so; leave out --lifetime"
                )
            self.ledger.lifetime = life
            with reading(path, _DAMAGED):
                self._owners = Owners(self._log, self.secret)
                for commit in self.commits():
                    self._enter(commit)
        except InputError:
            self._log.close()
            raise

    def places(self, records: Records, person: str = "", moves: bool = True) -> Counts | None:
        return self._owners.places(records, person, moves)

    def commits(self) -> list[Commit]:
        return [_commit(entry) for entry in self._log.entries() if entry.round]

    def get(self, run: str, round: int) -> Commit | None:
        try:
            data = self._log.get(run, round, "")
        except InputError as error:
            raise RefusedError("store", str(error)) from error
        return None if data is None else _commit(Entry(run, round, "", data))

    def commit(self, commit: Commit) -> None:
        self.ledger.check(commit.run, commit.charges)
        try:
            self._log.append([_entry(commit)])
        except InputError as error:
            raise RefusedError("store", str(error)) from error
        self._enter(commit)

    def close(self) -> None:
        """Frees the file for another process."""
        self._log.close()


def _open(path: Path, life: int) -> Log:
    """The log of a store; a new one where there never was one. Its mark is beside the file, not
    beside a link to it."""
    path = path.resolve()
    mark = path.with_name(path.name + _MADE)
    if path.exists():
        log = Log(path, KIND)
    else:
        if mark.exists():
            raise InputError(
                f"the store {str(path)!r} is gone, and the record of what its clients have spent; "
                f"to begin again, remove {str(mark)!r}"
            )
        log = Log.create(
            path, KIND, Entry("", 0, "made", life.to_bytes(8) + os.urandom(_SECRET_BYTES))
        )
    try:
        mark.touch(mode=0o600)
    except OSError as error:
        log.close()
        raise InputError(f"cannot write {str(mark)!r}: {error.strerror}") from None
    return log


def _entry(commit: Commit) -> Entry:
    charges = [(each.start, each.stop, each.nano, each.label, each.what) for each in commit.charges]
    replies = [encode(reply) for reply in commit.replies]
    outcomes = [(each.label, each.spans, each.data) for each in commit.outcomes]
    data: bytes = msgpack.packb(
        (commit.request, commit.history, charges, replies, outcomes, *commit.speakers),
        use_bin_type=True,
    )
    return Entry(commit.run, commit.round, "", data)


def _commit(entry: Entry) -> Commit:
    request, history, charges, messages, memos, *speakers = msgpack.unpackb(
        entry.data, use_list=False, raw=False, max_bin_len=1 << 31
    )
    if not isinstance(history, bytes):
        raise InputError(
            "the store is of an earlier version, which did not note the inputs of its answers; "
            "name another file"
        )
    replies = tuple(reply for reply in map(decode, messages) if isinstance(reply, Reply))
    costs = tuple(Charge(*each) for each in charges)
    outcomes = tuple(Outcomes(*each) for each in memos)
    return Commit(
        entry.run, entry.round, request, costs, replies, tuple(speakers), outcomes, history
    )
