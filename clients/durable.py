"""A client's store in a file: what it has answered and spent outlives its process, and a machine that stops."""

import os
from pathlib import Path

import msgpack

from local_dp.clients.journal import Book, Commit
from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Charge
from local_dp.loss import NANO, nano_epsilon
from local_dp.storage.log import Entry, Log
from local_dp.wire import Reply, decode, encode

KIND = 0x1D9C  # SQLite's application id: the file is a client's store
_MADE = ".made"  # the name of the mark, after that of the file
_SECRET_BYTES = 32


class SqliteStore(Book):
    """The commits of one member's clients in a file of theirs alone; the ledger is a fold over them.

    `limit` is for each run, `lifetime` for all, in nats, and stays what it was when the file was made: without it, `limit`. `secret` is what memoised answers
    are expanded from. Raises InputError on opening, and RefusedError("store") afterwards, for a file that is missing though a mark beside it says that there
    was one, in use, not whole, or not to be written: then nobody knows what has been spent.
    """

    def __init__(self, path: Path, limit: float, lifetime: float | None = None) -> None:
        super().__init__(limit, lifetime)
        self._log = _opened(path, self.ledger.lifetime)
        made = self._log.entries(0)[0]
        life, self.secret = int.from_bytes(made.data[:-_SECRET_BYTES]), made.data[-_SECRET_BYTES:]
        if lifetime is not None and nano_epsilon(lifetime) != life:
            self._log.close()
            raise InputError(f"the store {str(path)!r} was made for epsilon {life / NANO:g} for life, which stays so; leave out --lifetime")
        self.ledger.lifetime = life
        for commit in self.commits():
            self._enter(commit)

    def commits(self) -> list[Commit]:
        """All of them, in their order."""
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
        """Lets another process have it."""
        self._log.close()


def _opened(path: Path, life: int) -> Log:
    """The log of a store; a new one where there never was one."""
    mark = path.with_name(path.name + _MADE)
    if not path.exists():
        if mark.exists():
            raise InputError(f"the store {str(path)!r} is gone, and what its clients have spent with it; who begins again all the same removes {str(mark)!r}")
        first = Entry("", 0, "made", life.to_bytes(8) + os.urandom(_SECRET_BYTES))
        log = Log.create(path, KIND, first)
    else:
        log = Log(path, KIND)
    try:
        mark.touch(mode=0o600)
    except OSError as error:
        raise InputError(f"cannot write {str(mark)!r}: {error.strerror}") from None
    return log


def _entry(commit: Commit) -> Entry:
    charges = [(each.start, each.stop, each.nano, each.memo, each.what) for each in commit.charges]
    data: bytes = msgpack.packb((commit.request, charges, [encode(reply) for reply in commit.replies], *commit.spoken), use_bin_type=True)
    return Entry(commit.run, commit.round, "", data)


def _commit(entry: Entry) -> Commit:
    request, charges, told, *spoken = msgpack.unpackb(entry.data, use_list=False, raw=False, max_bin_len=1 << 31)
    replies = tuple(reply for reply in map(decode, told) if isinstance(reply, Reply))
    return Commit(entry.run, entry.round, request, tuple(Charge(*each) for each in charges), replies, tuple(spoken))
