"""A log on a disk that loses power: of what was written since it was last synced, some blocks are there and some are not."""

import os
import random
from pathlib import Path

import pytest

from local_dp.storage import log
from local_dp.storage.log import Entry, Log

BLOCK = 4096
KIND = 0x1D9D
STATES = 12  # of the disk, at each moment before something is synced


class Disk:
    """What of a log's two files is surely there, and what else may be if the power fails now; `entries` were acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.chance = folder, random.Random(1)
        self.log = Log.create(folder / "a.log", KIND, _entry(0))
        self.entries = 1
        self.sure = [_content(each) for each in self.log._files]
        self.looked = 0

    def sync(self, descriptor: int) -> None:
        """The power fails now, in several ways, and then it does not."""
        for _ in range(STATES):
            self.fail()
        os.fdatasync(descriptor)
        place = self.log._files.index(descriptor)
        self.sure[place] = _content(descriptor)

    def fail(self) -> None:
        """What is acknowledged is read from what is left of the two files, and at most one entry more."""
        self.looked += 1
        left = self.folder / f"{self.looked}.log"
        for path, sure, descriptor in zip((left.with_name(f"{left.name}-wal"), left), self.sure, self.log._files, strict=True):
            path.write_bytes(self._some(sure, _content(descriptor)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log, "_durable", lambda descriptor: None)
            patch.setattr(log, "_sync", lambda path: None)
            again = Log(left, KIND)
            assert again.entries() in ([_entry(number) for number in range(count)] for count in (self.entries, self.entries + 1))
            again.close()

    def _some(self, sure: bytes, now: bytes) -> bytes:
        """A block is as it was or as it is now; what lies behind the end is as long as what is there of it."""
        blocks = []
        for at in range(0, max(len(sure), len(now)), BLOCK):
            blocks.append(self.chance.choice((sure, now))[at : at + BLOCK])
        while blocks and not blocks[-1]:
            blocks.pop()
        return b"".join(each.ljust(BLOCK, b"\0") for each in blocks[:-1]) + (blocks[-1] if blocks else b"")


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _entry(number: int) -> Entry:
    return Entry("run", number, "part", bytes([number % 256]) * (300 * number % 7000))


def test_no_failure_of_power_loses_what_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve entries of several sizes, on a disk that fails before each sync in any of the ways it may: all that was acknowledged is there, in a whole log."""
    disk = Disk(tmp_path)
    monkeypatch.setattr(log, "_durable", disk.sync)
    for number in range(1, 13):
        disk.log.append([_entry(number)])
        disk.entries += 1
        disk.fail()
    assert disk.looked == 12 * (2 * STATES + 1)
