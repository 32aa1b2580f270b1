"""A client that crashes and comes back with what its disk kept."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from unittest.mock import patch

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.clients.journal import Commit, MemoryStore, SqliteStore, Store
from local_dp.clients.role import ClientRole, Policy
from local_dp.noise import Draw
from local_dp.oracles.local.memory import Speakers
from local_dp.records import Records
from local_dp.wire import Hello, Refusal, Reply, Request

RUN = "run-1"
BUDGET = 1.0  # nats, in a run and for life


class Crash(BaseException):
    """The client's machine stops here."""


@dataclass
class Disk:
    """What survives a crash: the commits. `crash` is where the next one comes.

    `truths` is the account's: of each commit, how many truths of each session its randomizers
    received.
    """

    name: str = ""
    commits: list[Commit] = field(default_factory=list)
    truths: list[Counter[str]] = field(default_factory=list)
    crash: str = ""

    def trip(self, *places: str) -> None:
        """Crashes if that was to happen here."""
        if self.crash in places:
            self.crash = ""
            raise Crash


class DurableStore(MemoryStore):
    """A store whose commits are on the disk before `commit` returns."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(BUDGET)
        self.disk = disk
        for commit in disk.commits:
            super().commit(commit)

    def commit(self, commit: Commit) -> None:
        super().commit(commit)
        self.disk.trip("crash-before")
        self.disk.commits.append(commit)
        self.disk.trip("crash-after")

    def close(self) -> None:
        """The machine has stopped."""


class FreshNoise:
    """As `SystemNoise`, never the same words again; from a source of its own, so that a run can be
    repeated."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        assert not which.label
        return np.frombuffer(
            self.source.randbytes((stop - start) * bits // 8), dtype=f"<u{bits // 8}"
        )


MakeRole = Callable[[str, int, Records, FreshNoise, Store, Policy], ClientRole]
MortalStore: TypeAlias = DurableStore | SqliteStore  # a store of a machine that may stop
MakeStore = Callable[[Disk], MortalStore]


class Client:
    """Client `index`, with a record and a disk of its own."""

    def __init__(self, index: int, seed: int, make_role: MakeRole, make_store: MakeStore) -> None:
        self.name, self.group, self.index = f"c{index}", f"g{index // 2}", index
        self.disk = Disk(f"{seed}-{index}")
        self.up = False
        bits = {
            "yes": np.array([index % 2], dtype=np.uint8),
            "level": np.array([index // 2], dtype=np.uint8),
        }
        self._records = Records({**bits, "table0": np.array([1 + index % 2], dtype=np.uint64)})
        self._source = random.Random(seed * 8 + index)
        self._make_role, self._make_store = make_role, make_store
        self.start()

    def start(self) -> None:
        self.up = True
        self._store = self._make_store(self.disk)
        self.role = self._make_role(
            self.name, self.index, self._records, FreshNoise(self._source), self._store, Policy()
        )

    def stop(self) -> None:
        if self.up:
            self._store.close()
        self.up = False
        self.disk.crash = ""

    def hello(self) -> Hello:
        return Hello(
            run=RUN, member=self.name, start=self.index, stop=self.index + 1, private=False
        )

    def answer(self, request: Request) -> list[Reply | Refusal]:
        """What it sends before it crashes, if it does."""
        answers: list[Reply | Refusal] = []
        with _truths() as truths:
            try:
                for answer in self.role.handle(request):
                    answers.append(answer)
                    self.disk.trip("crash-sending")
            except Crash:
                self.stop()
        self.disk.truths += [truths] * (len(self.disk.commits) - len(self.disk.truths))
        return answers


@contextmanager
def _truths() -> Iterator[Counter[str]]:
    """The number of truths of each session meanwhile: looked at where a value goes to its
    randomizer."""
    truths: Counter[str] = Counter()

    once_only = Speakers.once_only

    def looking(
        speakers: Speakers, session: str, silence: int, places: Counts, values: Ints
    ) -> Ints:
        values_sent = once_only(speakers, session, silence, places, values)
        truths[session] += int(np.count_nonzero(values_sent != silence))
        return values_sent

    with patch.object(Speakers, "once_only", looking):
        yield truths
