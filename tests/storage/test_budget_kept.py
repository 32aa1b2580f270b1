"""A curator's budget is refused where its file was damaged, deleted, put back or copied, and never
has more than was left."""

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import local_dp as ldp
from local_dp.errors import InputError
from local_dp.loss import Pure, approximate
from local_dp.records import Records
from local_dp.storage import budget_file, log, mark
from local_dp.storage.budget_file import KeptBudget
from tests.support.runs.command import local_dp
from tests.support.runs.stores import forked
from tests.support.wrong import wrong


def spent(folder: Path) -> tuple[Path, Path]:
    """A budget of which a quarter is spent by three releases, and its mark."""
    path = folder / "a.budget"
    budget = KeptBudget.create(path, approximate(2.0, 1e-5))
    for what in ("mean", "histogram", "median"):
        budget.charge(approximate(0.1, 1e-7), "replace", what)
    return path, folder / "a.budget.made"


def _flip(folder: Path, flips: int | None, patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Bits flipped one at a time in both files, all or so many, and how many were refused; the
    others change nothing of what was spent.

    Each bit of the mark and of a charge is refused.
    """
    path, mark_file = spent(folder)
    standing, refusals, done = KeptBudget(path).standing(), 0, 0
    with KeptBudget(path)._open() as journal:
        charges = [entry.data for entry in journal.entries()]
    patch.setattr(log, "_durable", lambda descriptor: None)
    for module in (log, mark):
        patch.setattr(module, "sync", lambda path: None)
    generator = random.Random(17)
    for file in (path, mark_file):
        data = file.read_bytes()
        live = [data.find(each) for each in charges] if file == path else []
        bits = [
            bit
            for at, each in zip(live, charges, strict=False)
            for bit in range(8 * at, 8 * (at + len(each)))
        ] or list(range(8 * len(data)))
        held_bits = set(bits)
        sample = (
            range(8 * len(data))
            if flips is None
            else [*generator.sample(range(8 * len(data)), flips), *generator.sample(bits, flips)]
        )
        for bit in sample:
            place, mask = divmod(bit, 8)
            file.write_bytes(data[:place] + bytes([data[place] ^ 1 << mask]) + data[place + 1 :])
            done += 1
            try:
                assert KeptBudget(path).standing() == standing
            except InputError:
                refusals += 1
            else:
                assert bit not in held_bits
        for left in (
            path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm", "-journal")
        ):
            left.unlink(missing_ok=True)
        file.write_bytes(data)
    assert KeptBudget(path).standing() == standing
    return done, refusals


@wrong(
    "local_dp.storage.budget_file:KeptBudget._open",
    "self._mark.check(log.entries())",
    "pass",
    "an older file would have the budget again that was spent since",
    at="60",
)
@pytest.mark.parametrize("flips", [60, pytest.param(None, marks=pytest.mark.slow)])
def test_no_flipped_bit_gives_more_budget(
    flips: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit of the file or of its mark: one line that refuses it, or the same account."""
    _flip(tmp_path, flips, monkeypatch)


def _remove(path: Path, mark_file: Path) -> None:
    path.unlink()


def _without_mark(path: Path, mark_file: Path) -> None:
    mark_file.unlink()


def _copy(path: Path, mark_file: Path) -> None:
    os.replace(shutil.copy(path, path.with_name("other")), path)


def _empty(path: Path, mark_file: Path) -> None:
    path.write_bytes(b"")


@wrong(
    "local_dp.storage.budget_file:KeptBudget.create",
    "(new._mark.file, path)",
    "(path,)",
    "a deleted budget would be begun again under its name",
    at="_remove-is gone",
)
@pytest.mark.parametrize(
    ("hurt", "words"),
    [
        (_remove, "is gone"),
        (_without_mark, "its mark 'a.budget.made' was removed"),
        (_copy, "is a copy"),
        (_empty, "is damaged"),
    ],
)
def test_a_budget_that_was_hurt_is_refused(
    hurt: Callable[[Path, Path], None], words: str, tmp_path: Path
) -> None:
    """By every use of it, with one line and exit code 2; nor is it begun again in its place."""
    path, mark_file = spent(tmp_path)
    hurt(path, mark_file)
    for use in (
        KeptBudget(path).standing,
        lambda: KeptBudget(path).charge(Pure(1), "replace", "a mean"),
    ):
        with pytest.raises(InputError, match=words):
            use()
    with pytest.raises(InputError, match="never begun again"):
        KeptBudget.create(path, Pure(10**9))
    done = local_dp("budget", str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@wrong(
    "local_dp.storage.mark:Mark._body",
    "self.path.stat().st_ino.to_bytes",
    "bytes",
    "two copies of a budget would be spent twice",
)
def test_an_older_file_is_refused(tmp_path: Path) -> None:
    """Every earlier state of the file, written over it; and a copy under another name, with its
    mark or without it."""
    path, mark_file = tmp_path / "a.budget", tmp_path / "a.budget.made"
    budget, states = KeptBudget.create(path, Pure(10**9)), list[bytes]()
    for _ in range(5):
        states.append(path.read_bytes())
        budget.charge(Pure(10**8), "replace", "a mean")
    latest = path.read_bytes()
    for state in states:
        path.write_bytes(state)
        with pytest.raises(InputError, match="is older than its mark"):
            budget.charge(Pure(1), "replace", "a mean")
    path.write_bytes(latest)
    assert budget.standing().left == Pure(5 * 10**8)
    shutil.copy(path, tmp_path / "b.budget")
    for _ in range(2):
        with pytest.raises(InputError, match="is a copy"):
            KeptBudget(tmp_path / "b.budget").standing()
        shutil.copy(mark_file, tmp_path / "b.budget.made")


def test_a_kill_between_the_charge_and_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stays, the next use moves the mark, and from then on the file before the charge is
    refused."""
    path, _ = spent(tmp_path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(mark.Mark, "set", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            KeptBudget(path).charge(Pure(7), "replace", "a mean")
    assert KeptBudget(path).standing().spent == approximate(0.3, 3e-7) + Pure(7)
    path.write_bytes(before)
    with pytest.raises(InputError, match="is older than its mark"):
        KeptBudget(path).standing()


def _kill(step: int, ask: Callable[[], str]) -> bool:
    """Whether a question gets its release, killed before or after the `step`-th time that it waits
    for the disk."""
    left = [step]

    def count() -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def count_around(real: Callable[..., None]) -> Callable[..., None]:
        def call(*args: object) -> None:
            count()
            real(*args)
            count()

        return call

    def live(send: Callable[[bytes], None]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for module, name in ((log, "_durable"), (log, "sync"), (mark, "sync")):
                patch.setattr(module, name, count_around(getattr(module, name)))
            send(ask().encode())

    return bool(forked(live)[0])


def test_a_killed_command_released_nothing_unpaid(tmp_path: Path) -> None:
    """`curate` killed at each durable step: a printed release is in the budget, and the next one is
    charged on top of it.

    The table is no file: threads of its reader would not outlive the fork.
    """
    path, _ = spent(tmp_path)
    table, charges, steps = Records({"age": np.arange(18, 90)}), 3, 0

    def ask() -> str:
        return repr(ldp.curate.median(table, "age", epsilon=0.01, budget=path))

    while not (output := _kill(steps, ask)):
        now = len(KeptBudget(path).standing().charges)
        assert now in (charges, charges + 1)
        charges, steps = now, steps + 1
    assert output
    assert len(KeptBudget(path).standing().charges) == charges + 1
    assert charges > 3
    assert steps >= 8


def test_a_budget_of_an_older_version(tmp_path: Path) -> None:
    """Its file had no digest: it is not opened, and the line says how to go on."""
    path = tmp_path / "old.budget"
    with closing(sqlite3.connect(path)) as old:
        old.execute(
            "CREATE TABLE budget (nano INTEGER NOT NULL, atto INTEGER NOT NULL, pure INTEGER NOT "
            "NULL)"
        )
        old.execute(f"PRAGMA application_id = {budget_file._UNGUARDED}")
        old.commit()
    with pytest.raises(
        InputError,
        match=r"of an older version.*make a new one of at most that: local-dp budget NEWFILE",
    ):
        KeptBudget(path).standing()


def test_a_link_to_a_budget_is_the_budget(tmp_path: Path) -> None:
    path, _ = spent(tmp_path)
    (tmp_path / "link").symlink_to(path)
    KeptBudget(tmp_path / "link").charge(Pure(1), "replace", "a mean")
    assert len(KeptBudget(path).standing().charges) == 4
