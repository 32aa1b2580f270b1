"""The population tier on a Dask cluster of two workers: the bits of one process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from local_dp.api.asking import RunOptions, ask
from local_dp.api.sweep import Grid, comparison, swept
from local_dp.errors import BusError, InputError
from local_dp.oracles.local.asked import CHUNK
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.progress import RoundProgress
from local_dp.simulation import cluster
from local_dp.simulation.installation import Installation, rounds_folder
from local_dp.tallies import Tally
from local_dp.verification.sources import source_digest
from tests.support.inputs.documents import ROOT
from tests.support.long import short
from tests.support.runs.command import command, local_dp
from tests.support.wrong import wrong

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")

LOOPBACK = "127.0.0.1"
CLIENTS = 40 * CHUNK + 5
LOST = "local-dp: the cluster's scheduler went away; start it, and run the same command to go on"


def _dask(workers: int) -> Any:
    """A cluster of this machine, of so many workers with one thread each. Dask is imported here: no
    other test waits for it."""
    from distributed import LocalCluster

    near = {
        "host": LOOPBACK,
        "dashboard_address": f"{LOOPBACK}:0",
        "worker_dashboard_address": f"{LOOPBACK}:0",
    }
    return LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **near)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    """Two workers with one thread each, which can import the tests' experiments, as their processes
    here can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        with _dask(2) as workers:
            yield workers


def _run(
    protocol: LocalProtocol[Any], clients: int, address: str = "", **how: Any
) -> dict[str, Any]:
    data = ask(
        protocol, None, RunOptions(clients=clients, seed=3, cluster=address, **how)
    ).to_dict()
    return {key: data[key] for key in ("result", "clients", "interaction", "max_epsilon_spent")} | {
        "digests": [each["digest"] for each in data["rounds"]]
    }


@pytest.mark.parametrize(
    "protocol",
    [pytest.param(Survey(), marks=pytest.mark.long), Frequency(k=40)],
    ids=lambda each: each.name,
)
def test_a_cluster_gives_the_bits_of_one_process(
    two_workers: Any, protocol: LocalProtocol[Any]
) -> None:
    """Result, digests and counts are those of the tier alone, for many chunks and for less than
    one."""
    for clients in (3 * CHUNK + 5, 900):
        assert _run(protocol, clients, two_workers.scheduler_address) == _run(protocol, clients)


@pytest.mark.parametrize(
    ("chunks", "workers", "most"),
    [(1, 2, 512), (3815, 2, 512), (3815, 1, 64), (40, 100, 64), (0, 2, 4)],
)
def test_every_chunk_is_dealt_once(chunks: int, workers: int, most: int) -> None:
    parts = cluster.dealt(range(chunks), workers, most)
    sizes = [len(part) for part in parts]
    assert [chunk for part in parts for chunk in part] == list(range(chunks))
    assert sizes == sorted(sizes, reverse=True)
    assert all(0 < size <= most for size in sizes)
    assert chunks == 0 or sizes[-1] <= max(1, most // 16)


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(
    two_workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_MOST", 1)
    victims: list[int] = []

    def kill(progress: object) -> None:
        if (
            isinstance(progress, RoundProgress)
            and 0 < progress.answered < progress.asked
            and not victims
        ):
            victims.append(two_workers.workers[0].pid)
            os.kill(victims[0], signal.SIGKILL)

    assert _run(Survey(), CLIENTS, two_workers.scheduler_address, progress=kill) == _run(
        Survey(), CLIENTS
    )
    assert victims


@pytest.mark.parametrize(
    ("change", "message"),
    short(
        [
            ({"numpy": "1.0"}, "has numpy .*, and the run has numpy 1.0; install the same"),
            ({"python": "3.9"}, "has Python .*, and the run has Python 3.9"),
            ({"sources": (("local_dp", "0"),)}, "has other code of local_dp than the run"),
            (
                {"sources": (*Installation.here().sources, ("no_such_package", "1"))},
                "does not have the package no_such_package",
            ),
        ],
        lambda each: "sources" in str(each[0]),
        several=True,
    ),
)
def test_a_worker_of_another_installation_is_refused(
    two_workers: Any, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    """By name, and before a chunk counts, by run and by sweep: where it is looked at first, and in
    a task of a worker that joined later."""
    other, updates = replace(Installation.here(), **change), list[Any]()
    for looks in ("here", "checked"):
        with monkeypatch.context() as patch:
            if looks == "here":
                patch.setattr(Installation, "here", lambda plug_ins=(): other)
            else:
                patch.setattr(cluster.Cluster, "checked", lambda *_: other)
            pattern = rf"the worker at tcp://127\.0\.0\.1:\d+ {message}"
            with pytest.raises(InputError, match=pattern):
                _run(Survey(), 1000, two_workers.scheduler_address, progress=updates.append)
            with pytest.raises(InputError, match=pattern):
                swept(
                    comparison(Survey(), Grid(clients=(100,), runs=20)),
                    None,
                    lambda *_: pytest.fail("measured"),
                    cluster=two_workers.scheduler_address,
                )
    assert not [each for each in updates if isinstance(each, RoundProgress) and each.answered]


@pytest.mark.parametrize(
    "how",
    [{"private": True}, {"tier": "aggregate", "seed": 1}, {"tier": "hosts", "seed": 1}],
    ids=str,
)
def test_only_a_simulation_of_the_population_goes_to_a_cluster(how: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="simulates the population tier"):
        ask(Survey(), None, RunOptions(clients=1000, cluster="tcp://127.0.0.1:1", **how))


def test_a_cluster_that_is_not_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(BusError, match="no Dask scheduler answers"):
        _run(Survey(), 1000, "tcp://127.0.0.1:1")
    for address, message in (
        ("nothing://at all", "give a scheduler's address"),
        ("foo", "give a scheduler's address"),
        ("tls://127.0.0.1:1", "no TLS settings"),
    ):
        with pytest.raises(InputError, match=message):
            _run(Survey(), 1000, address)
    from distributed import Client

    assert not [client for client in Client._instances if client.status != "closed"], (
        "nobody waits for a half-made client at the end"
    )


@pytest.mark.long
def test_a_cluster_without_workers_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with (
        _dask(0) as empty,
        pytest.raises(BusError, match="has no workers"),
    ):
        _run(Survey(), 1000, empty.scheduler_address)


@wrong(
    "local_dp.simulation.cluster:ClusterOracle.gather",
    "(Installation.here(plug_ins), work.query)",
    "work.query",
    "after a lost scheduler a run goes on with what a plug-in answered that has changed since",
)
def test_what_other_code_answered_is_asked_again(
    two_workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored ask is used by the same run of the same code alone: another seed, and a plug-in that
    has changed since, ask anew."""
    asks: list[str] = []
    put, here = cluster.Rounds.put, Installation.here()

    def note(rounds: cluster.Rounds, ask: str, tally: Tally, digests: bytes) -> None:
        asks.append(ask)
        put(rounds, ask, tally, digests)

    # as if the run had been lost at its end
    monkeypatch.setattr(cluster.Rounds, "over", lambda rounds: None)
    monkeypatch.setattr(cluster.Rounds, "put", note)
    monkeypatch.setattr(cluster.Cluster, "checked", lambda *_: here)
    results = [_run(Survey(), 900, two_workers.scheduler_address) for _ in range(2)]
    assert (len(asks), results[0]) == (1, results[1])
    ask(Survey(), None, RunOptions(clients=900, seed=4, cluster=two_workers.scheduler_address))
    assert len(asks) == 2
    monkeypatch.setattr(
        Installation,
        "here",
        lambda plug_ins=(): replace(here, sources=(*here.sources, ("coins", "changed"))),
    )
    assert (_run(Survey(), 900, two_workers.scheduler_address), len(asks)) == (results[0], 3)


@pytest.mark.long
def test_what_a_plug_in_is_made_of_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packages of the classes of the work, at any depth; a package of one file or of several,
    by its text."""
    (tmp_path / "coins").mkdir()
    for name, text in (
        ("coins/__init__.py", ""),
        ("coins/loaded.py", "class Loaded: pass"),
        ("flat.py", "class Flat: pass"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    work = Survey()
    assert cluster.plug_ins_of(work) == frozenset()
    object.__setattr__(
        work, "coin", (1, [import_module("coins.loaded").Loaded(), import_module("flat").Flat()])
    )
    assert cluster.plug_ins_of(work) == {"coins", "flat"}
    here = Installation.here(["coins", "flat"])
    source_digest.cache_clear()
    assert here.difference(Installation.here(["coins", "flat"])) == ""
    (tmp_path / "coins" / "loaded.py").write_text("class Loaded: pass  # and more")
    source_digest.cache_clear()
    assert (
        here.difference(Installation.here(["coins", "flat"]))
        == "has other code of coins than the run"
    )


@contextmanager
def _separate() -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The address of a scheduler with one worker, and its process, which the test may end."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        address = f"tcp://{LOOPBACK}:{free.getsockname()[1]}"
    host, port = address.removeprefix("tcp://").split(":")
    lines = (
        ["distributed.cli.dask_scheduler", "--host", host, "--port", port],
        ["distributed.cli.dask_worker", address, "--nthreads", "1"],
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", *line, "--no-dashboard"], stderr=subprocess.DEVNULL
        )
        for line in lines
    ]
    try:
        yield address, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_killed_scheduler_is_one_line_and_the_same_command_goes_on(two_workers: Any) -> None:
    """Killed at ten moments of a run of four rounds: exit code 5 and one line. The same command
    asks for no round again that ended, and has the same bits."""
    for moment in range(10):
        line = f"run learn-decision-lists --tier population --seed {moment} --clients 5e8 --json"
        words = line.split()
        with _separate() as (address, scheduler):
            run = subprocess.Popen(
                command(*words, "--cluster", address),
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
            assert run.stderr is not None
            # so many rounds are over
            lines = [run.stderr.readline() for _ in range(moment % 3 + 1)]
            time.sleep(0.015 * moment)
            scheduler.kill()
            lines += run.stderr.read().splitlines()
        assert (run.wait(), [each for each in lines if not each.startswith("round ")]) == (
            5,
            [LOST],
        )
        assert len([*rounds_folder().glob("*/*.npz")]) >= moment % 3 + 1
        again = json.loads(local_dp(*words, "--cluster", two_workers.scheduler_address).stdout)
        alone = json.loads(local_dp(*words).stdout)
        assert [each["digest"] for each in again["rounds"]] == [
            each["digest"] for each in alone["rounds"]
        ]
        assert again["result"] == alone["result"]
        assert not [*rounds_folder().glob("*")]
