"""P1: a store is open in one process at a time, by whichever name it is opened."""

import multiprocessing
from pathlib import Path

import pytest

from local_dp.errors import InputError
from tests.support.runs.stores import asked, close, member
from tests.support.wrong import wrong


def _open_all(names: list[Path]) -> list[str]:
    """What becomes of processes that open a store at once, each by one of its names: "open" while
    all the others try, or the line of its error."""
    start, over, queue = FORK.Barrier(len(names)), FORK.Barrier(len(names)), FORK.SimpleQueue()

    def live(name: Path) -> None:
        start.wait()
        try:
            role = member(name)  # kept while the others try
        except InputError as error:
            queue.put(str(error))
        else:
            queue.put("open" if role.handle(asked(1)) else "silent")
        over.wait()

    processes = [FORK.Process(target=live, args=(name,)) for name in names]
    for each in processes:
        each.start()
    words = [queue.get() for _ in names]
    for each in processes:
        each.join()
    return words


FORK = multiprocessing.get_context("fork")
TRIES = 4  # processes that open a store at once
REFUSED = ("another process has it open", "exists already")


def _at_once(folder: Path, times: int) -> list[list[str]]:
    """New stores by one name, and old ones by their names: the file, a symbolic and a hard link."""
    outcomes = list[list[str]]()
    for turn in range(times):
        path = folder / f"{turn}.store"
        if turn % 2 == 0:
            outcomes.append(_open_all([path] * TRIES))
            continue
        close(member(path))
        (folder / f"{turn} symbolic").symlink_to(path)
        (folder / f"{turn} hard").hardlink_to(path)
        outcomes.append(
            _open_all([path, path, folder / f"{turn} symbolic", folder / f"{turn} hard"])
        )
    return outcomes


@wrong(
    "local_dp.storage.log",
    (
        "_HOLD = ('PRAGMA locking_mode = EXCLUSIVE', 'PRAGMA journal_mode = WAL', 'PRAGMA "
        "synchronous = OFF', 'PRAGMA wal_autocheckpoint = 0')"
    ),
    (
        "_HOLD = ('PRAGMA locking_mode = NORMAL', 'PRAGMA journal_mode = WAL', 'PRAGMA "
        "synchronous = OFF', 'PRAGMA wal_autocheckpoint = 0')"
    ),
    "two processes answer from one store, and spend one budget twice",
)
def test_a_store_is_opened_by_one_process_at_a_time(tmp_path: Path) -> None:
    """Four processes that open a store at the same moment: at most one has it, and the others end
    with a line each."""
    outcomes = _at_once(tmp_path, 4)
    openings = [words.count("open") for words in outcomes]
    assert max(openings) == 1
    assert all(
        line == "open" or ("\n" not in line and any(reason in line for reason in REFUSED))
        for words in outcomes
        for line in words
    )


@wrong(
    "local_dp.clients.journal:_open",
    "path = path.resolve()",
    "pass",
    "a link to a deleted store begins a new one with the whole budget",
)
def test_a_store_is_itself_by_a_link(tmp_path: Path) -> None:
    """Opened by a symbolic link, a store has its one mark and its charges; a link to a store that
    was deleted begins no new one."""
    store, link = tmp_path / "a.store", tmp_path / "link"
    role = member(store)
    answers = role.handle(asked(1))
    close(role)
    link.symlink_to(store)
    role = member(link)
    assert role.handle(asked(1)) == answers
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".made") == [
        "a.store.made"
    ]
    close(role)
    store.unlink()
    with pytest.raises(InputError, match="is gone"):
        member(link)
