"""The machinery of experiments: measurements are stored, resumed and repeatable, and a verdict
follows from them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import psutil
import pytest

import local_dp as library
from local_dp.cli.inspect import experiment as laboratory
from local_dp.errors import LocalDPError
from local_dp.experiments.lab.catalogue import chosen, load
from local_dp.experiments.lab.parts import ClientCount, Row, no_count
from local_dp.experiments.lab.runner import measure, measure_apart, run_experiments, stored
from local_dp.experiments.lab.shapes import Scale
from local_dp.experiments.lab.store import MeasurementStore, _module, canonical, code_stamp, plain
from local_dp.simulation.pool import ENVIRONMENT, pool
from tests.support.inputs.refusals import refuse
from tests.support.inputs.toy_experiment import Error, People, Toy
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

ROOT = Path(__file__).parents[2]
TOY = "tests.support.inputs.toy_experiment"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)  # worker processes inherit it


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.long
def test_results_are_complete_and_repeatable(tmp_path: Path) -> None:
    """One seed gives the same bytes, drawings included, with one worker and with two; every table
    has its CSV, every figure its PNG, SVG and PDF."""
    for workers in (1, 2):
        assert (
            run_experiments([TOY], "quick", 3, tmp_path / str(workers), workers=workers)[
                "toy"
            ].verdict
            == "shown"
        )
    one, two = _files(tmp_path / "1"), _files(tmp_path / "2")
    assert set(one) == {
        f"toy/{name}" for name in ("results.json", "measurements.jsonl", "error-against-n.csv")
    } | {
        f"toy/{stem}.{kind}"
        for stem in ("error", "bars", "regions")
        for kind in ("png", "svg", "pdf")
    }
    # whose lines are in the order they were measured in
    for name in set(one) - {"toy/measurements.jsonl"}:
        assert one[name] == two[name], name
    results = json.loads(one["toy/results.json"])
    assert results["command"] == "local-dp experiment toy --quick --seed 3"
    assert results["figures"][0]["curves"][0]["x"] == [100, 400, 1600]
    assert one["toy/error-against-n.csv"].decode().startswith("n,error,comment\n100,0.0")


def test_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run measures only what is missing: a full run uses the quick one's points, and a
    torn last line is measured again."""
    log = tmp_path / "log"
    monkeypatch.setenv("TOY_LOG", str(log))
    # what is drawn is compared above
    monkeypatch.setattr("local_dp.experiments.lab.store.save", lambda figure, *paths, drawing: None)
    out = tmp_path / "out"
    run_experiments([TOY], "quick", 1, out, workers=1)
    assert log.read_text().split() == ["100", "400", "1600"]
    store = out / "toy" / "measurements.jsonl"
    lines = store.read_text().splitlines(keepends=True)
    point = json.loads(lines[2])["point"]
    store.write_text("".join(lines[:2]) + lines[2][:20])
    run_experiments([TOY], "full", 1, out, workers=1)
    assert log.read_text().split()[3:] == [str(point["People"]["n"]), "6400", "25600"]
    run_experiments([TOY], "full", 1, tmp_path / "fresh", workers=1)
    assert (out / "toy" / "results.json").read_bytes() == (
        tmp_path / "fresh" / "toy" / "results.json"
    ).read_bytes()


@wrong(
    "local_dp.experiments.lab.store:MeasurementStore._read",
    "entry['code'] != self.stamp",
    "False",
    "a table mixes the measurements of two versions",
)
def test_store_keeps_seeds_and_code_apart(tmp_path: Path) -> None:
    """A measurement answers for its own seed, point and code only; numbers come back as they were,
    in plain Python."""
    store = MeasurementStore(tmp_path, "code-1")
    store.add({"d": 4, "learner": "A"}, 1, {"value": 0.1 + 0.2, "none": None})
    again = MeasurementStore(tmp_path, "code-1")
    assert again.get({"learner": "A", "d": 4}, 1) == {"value": 0.1 + 0.2, "none": None}
    assert again.get({"learner": "A", "d": 4}, 2) is None
    assert again.get({"learner": "A", "d": 5}, 1) is None
    assert MeasurementStore(tmp_path, "code-2").get({"d": 4, "learner": "A"}, 1) is None
    assert plain({"x": range(2), "y": float("inf")}) == {"x": [0, 1], "y": "inf"}


def test_code_stamp_follows_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stamp of an experiment changes with a module of the project that it imports, and stays
    with one that it does not."""
    package = tmp_path / "stamped"  # one of the project's packages, as far as the stamp knows
    package.mkdir()
    for name, text in {
        "__init__": "",
        "one": "def f():\n    from local_dp.stamped import two\n",
        "two": "x = 1",
        "three": "x = 1",
    }.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(library, "__path__", [*library.__path__, str(tmp_path)])
    stamps = []
    for edit in ("", "three", "two"):
        if edit:
            (package / f"{edit}.py").write_text("x = 2")
        for cache in (code_stamp, _module):
            cache.cache_clear()
        stamps.append(code_stamp("local_dp.stamped.one"))
    for cache in (code_stamp, _module):
        cache.cache_clear()
    del sys.modules["local_dp.stamped"]  # which the stamps imported
    assert stamps[0] == stamps[1] != stamps[2]


@pytest.mark.long
def test_interrupt_leaves_a_resumable_folder_and_no_process(tmp_path: Path) -> None:
    """Ctrl-C in the middle ends the run and its workers within seconds; what was measured is kept
    and the next run completes it."""
    program = f"""
from pathlib import Path
from local_dp.experiments.lab.parts import ClientCount, Row, no_count
from local_dp.experiments.lab.runner import run_experiments
if __name__ == "__main__":
    run_experiments(["slow_toy"], "full", 1, Path({str(tmp_path)!r}), workers=2)
"""
    slow = """
import time
from tests.support.inputs.toy_experiment import Error, People, Toy

class Slow(Toy):
    def measure(self, point, seed):
        time.sleep(60 if point.n > 1000 else 0)
        return super().measure(point, seed)

EXPERIMENT = Slow()
"""
    (tmp_path / "slow_toy.py").write_text(slow)
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        store = tmp_path / "toy" / "measurements.jsonl"
        _wait(lambda: store.exists() and store.read_text().count("\n") == 2)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert len(workers) >= 2
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) != 0
    _wait(
        lambda: (
            not any(
                worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
                for worker in workers
            )
        )
    )
    assert [
        json.loads(line)["point"]["People"]["n"] for line in store.read_text().splitlines()
    ] in (
        [100, 400],
        [400, 100],
    )


def test_killed_run_leaves_no_worker(tmp_path: Path) -> None:
    program = """
import time
from local_dp.simulation.pool import pool
if __name__ == "__main__":
    with pool(1) as started:
        started.submit(time.sleep, 0).result()
        print("ready", flush=True)
        started.submit(time.sleep, 60).result()
"""
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        process.kill()
    _wait(
        lambda: (
            not any(
                worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
                for worker in workers
            )
        )
    )


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(0.05)


def test_failed_measurement_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "no" / "such" / "folder"))
    with pytest.raises(FileNotFoundError) as error:
        run_experiments([TOY], "quick", 1, tmp_path / "out", workers=1)
    assert any("toy at {'People': {'n': 100}}" in note for note in error.value.__notes__)


def test_commands_refuse_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local_dp.experiments.lab.store.save", lambda figure, *paths, drawing: None)
    (tmp_path / "file").write_text("")
    (tmp_path / "full" / "toy" / "results.json").mkdir(parents=True)

    def run_in(name: str) -> None:
        run_experiments([TOY], "quick", 1, tmp_path / name, workers=1)

    refuse(
        ("no experiment named 'x'", laboratory.RunExperiment("x", out=tmp_path)),
        ("seed is -1; give a whole number", laboratory.RunExperiment("map", seed=-1, out=tmp_path)),
        (r"cannot write .*file/toy: Not a directory; choose", lambda: run_in("file")),
        (r"cannot write .*results\.json: Is a directory", lambda: run_in("full")),
        ("there is no folder", laboratory.Report(tmp_path / "nowhere")),
        ("no results; make some with: local-dp experiment all", laboratory.Report(tmp_path)),
    )


@pytest.mark.long
def test_command_runs_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`experiment` prints each verdict and the page on standard output, and progress on standard
    error."""
    monkeypatch.setattr(laboratory, "chosen", lambda name: [TOY])
    laboratory.RunExperiment("map", seed=5, out=tmp_path)()
    output = capsys.readouterr()
    assert output.out == f"toy: shown\nreport: {tmp_path / 'report.html'}\n"
    assert "3/3" in output.err
    assert json.loads((tmp_path / "toy" / "provenance.json").read_text())["code"] == code_stamp(TOY)


def test_interrupted_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **settings: object) -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("local_dp.experiments.lab.runner.run_experiments", interrupt)
    done = local_dp("experiment", "map", "--out", str(tmp_path))
    assert done.returncode == 130
    assert "the same command continues" in done.stderr


@pytest.mark.long
def test_a_claim_that_is_not_shown_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        laboratory, "chosen", lambda name: ["tests.support.inputs.wrong_toy_experiment"]
    )
    monkeypatch.setattr("local_dp.experiments.lab.store.save", lambda figure, *paths, drawing: None)
    monkeypatch.setattr(laboratory, "write_report", lambda folder: folder / "report.html")
    done = local_dp("experiment", "map", "--out", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.startswith("wrong-toy: not shown\nfailed: The slope is")
    assert "(slope 0." in done.stdout or "(slope -" in done.stdout


def test_a_point_measured_apart_is_the_same() -> None:
    """What comes back through a process of its own is what is measured here, to the last bit;
    linear algebra uses one thread."""
    here = measure(TOY, "quick", 0, 5)
    there = measure_apart(TOY, "quick", 0, 5, code_stamp(TOY))
    assert there == {key: float(value) for key, value in here.items()}
    assert ENVIRONMENT["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.long
def test_other_code_and_failures_are_one_line() -> None:
    """A worker with another version of the experiment refuses it, and one that fails says what its
    last line was."""
    with pytest.raises(LocalDPError, match="install the same version"):
        measure_apart(TOY, "quick", 0, 5, "0")
    with pytest.raises(LocalDPError, match=rf"could not measure point 9 of {TOY}: IndexError"):
        measure_apart(TOY, "quick", 9, 5, code_stamp(TOY))


class Searched(Row):
    count: ClientCount


def test_points_of_two_classes_are_stored_apart() -> None:
    """Points are stored under the names of their classes, and no two points of an experiment are
    stored alike; a measurement comes back as its class."""
    assert stored(People(3)) == {"People": {"n": 3}}
    assert Toy().read(People(3), {"error": 0.5, "half": "inf"}) == Error(0.5, float("inf"))
    for experiment in map(load, chosen("all")):
        for scale in get_args(Scale):
            names = [canonical(stored(point)) for point in experiment.points(scale)]
            assert len(set(names)) == len(names), experiment.name


def test_a_failed_search_ends_the_finding() -> None:
    """It is not shown, and says which search failed and why, whether the search is the measurement
    or a field of it."""
    for search in (no_count("success stays at .03"), Searched(no_count("success stays at .03"))):
        finding = Toy().conclude([(People(3), search)], "quick")
        assert finding.verdict == "not shown"
        assert [check.evidence for check in finding.checks] == ["People(n=3): success stays at .03"]


class Pressed:
    """The interrupt key, while a worker process is told what it measures."""

    def __call__(self, work: object) -> object:
        return work

    def __reduce__(self) -> tuple[type, tuple[()]]:
        signal.raise_signal(signal.SIGINT)
        return int, ()


@wrong(
    "local_dp.simulation.pool:pool",
    "_interrupt_key_waits()",
    "_worker_environment()",
    "a worker process that starts feels the interrupt key, or reads half of its orders",
)
@wrong("local_dp.simulation.pool:pool", "range(workers)", "range(1)", "the second may feel it")
def test_the_interrupt_key_waits_until_workers_have_started() -> None:
    with pool(2) as workers:
        assert len(workers._processes) == 2
        masks = [workers.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()) for _ in range(8)]
        assert all(signal.SIGINT in mask.result() for mask in masks)
    with pytest.raises(KeyboardInterrupt), pool(1, Pressed()):
        pass
