"""A budget in a file holds under concurrent processes and kills, and a log on a disk that loses
power."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from local_dp.curator.mechanism import Neighbours
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Approximate, Loss, Pure, approximate
from local_dp.storage import log
from local_dp.storage.budget_file import KeptBudget, Standing
from local_dp.storage.log import Entry, Log
from tests.support.inputs.refusals import refuse
from tests.support.runs.at_end import OPEN
from tests.support.wrong import wrong

NANO = 10**9
PAYS = """
import sys
from pathlib import Path
from local_dp.storage.budget_file import KeptBudget
from local_dp.loss import Pure
while True:
    KeptBudget(Path(sys.argv[1])).charge(Pure(1), "replace", "a test")
    print("paid", flush=True)
"""


@wrong(
    "local_dp.storage.budget_file:Standing.check",
    "self.spent",
    "Pure(self.spent.nano)",
    "many releases would each have the whole delta",
)
def test_charges_add_up_and_never_pass_the_budget(tmp_path: Path) -> None:
    """Kept between openings; what is refused is not kept; the whole budget may be spent,
    exactly."""
    budget_file = KeptBudget.create(tmp_path / "budget", approximate(1.0, 1e-6))
    assert budget_file.standing().left == approximate(1.0, 1e-6)
    assert budget_file.charge(Pure(NANO // 4), "replace", "a mean").spent == Pure(NANO // 4)
    again = KeptBudget(tmp_path / "budget")
    assert again.charge(approximate(0.5, 1e-6), "replace", "a histogram").left == Pure(NANO // 4)
    for too_much in (Pure(NANO // 4 + 1), Approximate(1, 1)):
        with pytest.raises(RefusedError, match="exceeds the budget"):
            again.charge(too_much, "replace", "too much")
    assert again.charge(Pure(NANO // 4), "replace", "the rest").left == Pure(0)
    assert [charge.what for charge in budget_file.standing().charges] == [
        "a mean",
        "a histogram",
        "the rest",
    ]


def test_neighbours_of_two_kinds_do_not_add_up(tmp_path: Path) -> None:
    """A budget is of records or of edges, by what it first paid for; a pure one pays for nothing
    with a delta."""
    budget_file = KeptBudget.create(tmp_path / "budget", Pure(NANO))
    with pytest.raises(RefusedError, match="exceeds the budget of epsilon 1"):
        budget_file.charge(approximate(0.1, 1e-9), "replace", "a histogram")
    assert budget_file.standing().spent == Pure(0)
    budget_file.charge(Pure(1), "edge", "triangles")
    with pytest.raises(RefusedError, match="spent on 'edge' neighbours") as refusal:
        budget_file.charge(Pure(1), "replace", "a mean")
    assert refusal.value.code == "neighbours"


def test_a_file_that_is_no_budget(tmp_path: Path) -> None:
    """None at all, text, another database, and one that exists already: each a line, and nothing is
    changed."""
    for content in (b"", b"a,b\n1,2\n" * 100):
        (tmp_path / "table").write_bytes(content)
        with pytest.raises(InputError, match="is no budget"):
            KeptBudget(tmp_path / "table").standing()
        assert (tmp_path / "table").read_bytes() == content
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE budget (x)")
    other.close()
    no_budget, create = KeptBudget(tmp_path / "other"), KeptBudget.create
    refuse(
        ("is no budget", no_budget.standing),
        ("is no budget", lambda: no_budget.charge(Pure(1), "replace", "a mean")),
        ("there is no budget", KeptBudget(tmp_path / "none").standing),
        ("never begun again", lambda: create(tmp_path / "table", Pure(1))),
        ("cannot write", lambda: create(tmp_path / "none" / "budget", Pure(1))),
    )


def test_a_charge_locks_the_file_before_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, check = tmp_path / "budget", Standing.check

    def checking(standing: Standing, loss: Loss, neighbours: Neighbours) -> None:
        with (
            closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        check(standing, loss, neighbours)

    monkeypatch.setattr(Standing, "check", checking)
    assert KeptBudget.create(path, Pure(2)).charge(Pure(1), "replace", "a mean").spent == Pure(1)


def test_many_at_once_share_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    KeptBudget.create(path, Pure(50))
    words = [sys.executable, "-c", PAYS, str(path)]
    payers = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [each.communicate(timeout=60) for each in payers]
    assert sum(out.count("paid") for out, _ in outputs) == 50
    assert all("exceeds the budget" in error for _, error in outputs)
    assert KeptBudget(path).standing().spent == Pure(50)


BLOCK = 4096
KIND = 0x1D9D
STATES = 12  # of the disk, at each moment before something is synced


class Disk:
    """What of a log's two files is surely there, and what else may be if the power fails now;
    `entries` were acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.chance = folder, random.Random(1)
        self.log = OPEN.enter_context(closing(Log.create(folder / "a.log", KIND, _entry(0))))
        self.entries = 1
        self.sure = [_content(each) for each in self.log._files]
        self.failures = 0

    def sync(self, descriptor: int) -> None:
        """The power fails now, in several ways, and then it does not."""
        for _ in range(STATES):
            self.fail()
        os.fdatasync(descriptor)
        place = self.log._files.index(descriptor)
        self.sure[place] = _content(descriptor)

    def fail(self) -> None:
        """What is acknowledged is read from what is left of the two files, and at most one entry
        more."""
        self.failures += 1
        left = self.folder / f"{self.failures}.log"
        for path, sure, descriptor in zip(
            (left.with_name(f"{left.name}-wal"), left), self.sure, self.log._files, strict=True
        ):
            path.write_bytes(self._some(sure, _content(descriptor)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log, "_durable", lambda descriptor: None)
            patch.setattr(log, "sync", lambda path: None)
            with closing(Log(left, KIND)) as again:
                assert again.entries() in (
                    [_entry(number) for number in range(count)]
                    for count in (self.entries, self.entries + 1)
                )

    def _some(self, sure: bytes, now: bytes) -> bytes:
        """A block is as it was or as it is now; what lies behind the end is as long as what is
        there of it."""
        blocks = []
        for at in range(0, max(len(sure), len(now)), BLOCK):
            blocks.append(self.chance.choice((sure, now))[at : at + BLOCK])
        while blocks and not blocks[-1]:
            blocks.pop()
        return b"".join(each.ljust(BLOCK, b"\0") for each in blocks[:-1]) + (
            blocks[-1] if blocks else b""
        )


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _entry(number: int) -> Entry:
    return Entry("run", number, "part", bytes([number % 256]) * (300 * number % 7000))


@wrong(
    "local_dp.storage.log:Log._end",
    "_durable(file)",
    "pass",
    "what was sent is lost when the machine stops, and is randomized again",
)
def test_no_failure_of_power_loses_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve entries of several sizes, on a disk that fails before each sync in any of the ways it
    may: all that was acknowledged is there, in a whole log."""
    disk = Disk(tmp_path)
    monkeypatch.setattr(log, "_durable", disk.sync)
    for number in range(1, 13):
        disk.log.append([_entry(number)])
        disk.entries += 1
        disk.fail()
    assert disk.failures == 12 * (2 * STATES + 1)
