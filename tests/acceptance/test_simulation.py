"""P1, P2, P5, P6: clients, network and server under faults of every kind, in virtual time, from
seeds (tests/support/faults)."""

from pathlib import Path
from typing import ClassVar

import pytest

from local_dp.clients.journal import Commit, SqliteStore
from tests.support.faults.client import BUDGET, Disk
from tests.support.faults.twins import TWINS
from tests.support.faults.world import EVENTS, Makers, drawn, fault, play
from tests.support.runs.at_end import OPEN
from tests.support.wrong import wrong


@wrong(
    "local_dp.clients.journal:MemoryStore.commit",
    "self._commits[commit.run, commit.round] = commit",
    "pass",
    "a repeated request is charged again",
)
@wrong(
    "local_dp.clients.role:ClientRole.handle",
    "self.store.commit(commit)",
    "pass",
    "a client sends what it has neither charged nor kept",
)
@wrong(
    "local_dp.server.round:Round._count",
    "return",
    "pass",
    "a report that comes after the round had closed enters the tally",
)
@wrong(
    "local_dp.server.coordinator:Coordinator._report",
    "self._history.get(message.round)",
    "self._history.get(len(self.rounds) + 1) or self._history.get(message.round)",
    "a report of an earlier round, sent again, counts in the open one",
)
def test_no_promise_is_broken() -> None:
    """Whatever happens to messages, clients and server: no budget exceeded, no second reply, none
    uncharged, no report counted twice or late, no exception."""
    assert [seed for seed in range(50) if fault(seed)] == []


class FileStore(SqliteStore):
    """A client's store as it is, in a file; the disk of the account lists its commits."""

    folder: ClassVar[Path]

    def __init__(self, disk: Disk) -> None:
        super().__init__(self.folder / disk.name, BUDGET)
        OPEN.callback(self.close)
        self.disk = disk
        disk.commits[:] = self.commits()

    def commit(self, commit: Commit) -> None:
        self.disk.trip("crash-before")
        super().commit(commit)
        self.disk.commits.append(commit)
        self.disk.trip("crash-after")


@wrong(
    "local_dp.clients.journal:_entry",
    "(commit.request, commit.history, charges, replies, outcomes, *commit.speakers)",
    "(commit.request, commit.history, charges, replies, outcomes)",
    "a client that is started again speaks again",
)
def test_no_promise_is_broken_by_stores_in_files(tmp_path: Path) -> None:
    """The same with the store that real clients have, opened again after each crash; a run is then,
    event by event, that of stores in memory."""
    FileStore.folder = tmp_path
    for seed in range(5):
        operations = drawn(seed, EVENTS)
        assert play(seed, operations, Makers(store=FileStore)) == play(seed, operations)
    assert len(list(tmp_path.glob("*.made"))) == 20


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_are_caught(name: str) -> None:
    """Each wrong twin of a client or a server breaks a promise in one of some worlds."""
    seed, twin = TWINS[name]
    assert fault(seed, twin)
