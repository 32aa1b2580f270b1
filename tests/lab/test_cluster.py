"""Experiments on a Dask cluster of two workers on this machine: the bytes of one machine, even if a worker dies on the way."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_dp.errors import LocalDPError
from local_dp.experiments.lab.apart import ENVIRONMENT, measure, measure_apart
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.lab.store import code_stamp
from tests.support.runs.two_workers import two_workers

ROOT = Path(__file__).parents[2]
TOY = "tests.support.inputs.toy_experiment"


@pytest.fixture(scope="module", name="address")
def _address() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)  # worker processes inherit it
        with two_workers() as started:
            yield started


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(address: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two dies by SIGKILL when the first point is in: the results are the bytes that processes here give."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setattr("local_dp.experiments.lab.results.save", lambda figure, *paths: None)  # what is drawn is compared in test_runner
    killed: list[int] = []

    def kill(name: str, done: int, total: int) -> None:
        if done == 1:
            killed.append(address.workers[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    findings = run_experiments([TOY], "full", 3, tmp_path / "cluster", kill, cluster=address.scheduler_address)
    assert (len(killed), findings) == (1, run_experiments([TOY], "full", 3, tmp_path / "here", workers=2))
    assert findings["toy"].verdict == "shown"
    cluster, here = _files(tmp_path / "cluster"), _files(tmp_path / "here")
    assert cluster.keys() == here.keys()
    for name in cluster:
        assert sorted(cluster[name].splitlines()) == sorted(here[name].splitlines()), name


def test_a_point_measured_apart_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back through a process of its own is what is measured here, to the last bit; linear algebra uses one thread."""
    monkeypatch.syspath_prepend(ROOT)
    here = measure(TOY, {"n": 100}, 5)
    there = measure_apart(TOY, {"n": 100}, 5, code_stamp(TOY))
    assert there == {key: float(value) for key, value in here.items()}
    assert ENVIRONMENT["OPENBLAS_NUM_THREADS"] == "1"


def test_other_code_and_failures_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with another version of the experiment refuses it, and one that fails says what its last line was."""
    monkeypatch.syspath_prepend(ROOT)
    with pytest.raises(LocalDPError, match="install the same version"):
        measure_apart(TOY, {"n": 100}, 5, "0")
    with pytest.raises(LocalDPError, match=r"could not measure .*KeyError"):
        measure_apart(TOY, {"m": 100}, 5, code_stamp(TOY))
