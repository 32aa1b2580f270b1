"""Acceptance tests 1, 2 and 3: clients, network and server under faults of every kind, in virtual
time, from seeds (tests/support/faults)."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from local_dp.clients.journal import Commit, SqliteStore
from tests.support.faults.client import BUDGET, Disk
from tests.support.faults.shrink import load, shrunk
from tests.support.faults.twins import TWINS
from tests.support.faults.world import EVENTS, Makers, World, drawn, fault, play, searched
from tests.support.figures import figure

TRUE = Makers()
SAVED = sorted((Path(__file__).parents[1] / "support" / "faults" / "saved").glob("*.json"))


@pytest.mark.parametrize("seeds", [50, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_promise_is_broken(seeds: int) -> None:
    """Whatever happens to messages, clients and server: no budget exceeded, no second reply, none
    uncharged, no report counted twice or late, no exception."""
    began = time.process_time()
    failure = searched(range(seeds))
    figure(
        1,
        (
            f"{seeds:,} seeds x {EVENTS} events: "
            f"{'no promise broken' if failure is None else failure}, in "
            f"{time.process_time() - began:.0f} s of one core"
        ),
    )
    assert failure is None


class FileStore(SqliteStore):
    """A client's store as it is, in a file; the disk of the account lists its commits."""

    folder: ClassVar[Path]

    def __init__(self, disk: Disk) -> None:
        super().__init__(self.folder / disk.name, BUDGET)
        self.disk = disk
        disk.commits[:] = self.commits()

    def commit(self, commit: Commit) -> None:
        self.disk.trip("crash-before")
        super().commit(commit)
        self.disk.commits.append(commit)
        self.disk.trip("crash-after")


@pytest.mark.parametrize("seeds", [5, pytest.param(400, marks=pytest.mark.slow)])
def test_no_promise_is_broken_by_stores_in_files(seeds: int, tmp_path: Path) -> None:
    """The same with the store that real clients have, opened again after each crash; and a run is
    then, event by event, that of stores in memory."""
    FileStore.folder = tmp_path
    traces = [
        (play(seed, drawn(seed, EVENTS), Makers(store=FileStore)), play(seed, drawn(seed, EVENTS)))
        for seed in range(seeds)
    ]
    figure(
        1,
        (
            f"{seeds} seeds with the clients' stores in files: no promise broken, each event as "
            "with stores in memory"
        ),
    )
    assert all(filed == in_memory for filed, in_memory in traces)
    assert len(list(tmp_path.glob("*.made"))) == 4 * seeds


def test_much_happens() -> None:
    """Of 25 seeds' worlds: rounds are closed, reports come twice and late, clients crash, refuse,
    tell their truths, and spend nearly all they have."""
    seen = dict.fromkeys(("closed", "duplicate", "late", "rejected", "spent", "truths"), 0)
    for seed in range(25):
        world = World(seed, TRUE)
        world.play(drawn(seed, EVENTS))
        rounds = world.server.rounds.values()
        for what in ("duplicate", "late"):
            seen[what] += sum(getattr(round.counts, what) for round in rounds)
        seen["closed"] += len(world.server.closed)
        seen["rejected"] += world.server.coordinator.rejected
        seen["truths"] += sum(
            truths.total() for client in world.clients for truths in client.disk.truths
        )
        seen["spent"] += sum(sent.nano >= 7 * 10**8 for sent in world.sent)
    assert min(seen.values()) >= 10, seen


def test_the_twins_are_caught() -> None:
    """Each of the ten wrong twins breaks a promise in its saved, shrunk schedule; the true roles
    break none."""
    assert {load(path)[0] for path in SAVED} == TWINS.keys()
    lengths = {}
    for path in SAVED:
        name, seed, operations = load(path)
        lengths[name] = len(operations)
        assert fault(seed, operations, TWINS[name]), name
        assert not fault(seed, operations, TRUE), name
    figure(2, f"{len(lengths)} wrong twins caught again by as many operations each: {lengths}")


@pytest.mark.slow
def test_the_twins_are_caught_for_long() -> None:
    """Each within 1,000 seeds; the operations that catch it are shrunk."""
    lines = []
    for name, twin in TWINS.items():
        seeds = 1000
        failure = searched(range(seeds), twin)
        assert failure is not None, f"{name} survives {seeds} seeds"
        seed, operations = failure[:2]
        least = shrunk(operations, lambda left, seed=seed, twin=twin: bool(fault(seed, left, twin)))  # type: ignore[misc]
        lines.append(f"{name}: seed {seed}, {len(least)} operations")
    figure(2, f"{len(lines)} wrong twins, each caught within 1,000 seeds: {'; '.join(lines)}")


TRACES = (
    "from tests.support.faults.world import *\nprint([play(seed, drawn(seed, EVENTS)) for seed in "
    "range({})])"
)


@pytest.mark.parametrize("seeds", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_seed_is_a_run(seeds: int) -> None:
    """The same seed gives the same trace, here and in another process; another seed another one."""
    first, again = ([play(seed, drawn(seed, EVENTS)) for seed in range(seeds)] for _ in range(2))
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    elsewhere = subprocess.run(
        [sys.executable, "-c", TRACES.format(seeds)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert (first, str(first), len(set(first))) == (again, elsewhere.stdout.strip(), seeds)
    figure(
        3,
        (
            f"{seeds} seeds three times, once in another interpreter: the same {len(set(first))} "
            "traces"
        ),
    )
