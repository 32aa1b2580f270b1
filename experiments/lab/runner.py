"""Runs experiments: every point in a pool of processes, or on a cluster in a process of its own;
every measurement stored at once, then the findings."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_dp.errors import BusError, InputError, LocalDPError, reading
from local_dp.experiments.lab.catalogue import load
from local_dp.experiments.lab.shapes import Data, Finding, Scale
from local_dp.experiments.lab.store import (
    MeasurementStore,
    canonical,
    code_stamp,
    plain,
    write_results,
)
from local_dp.experiments.lab.style import DEFAULT, Drawing
from local_dp.simulation.cluster import Cluster, died_over_and_over
from local_dp.simulation.pool import ENVIRONMENT, pool

Progress = Callable[[str, int, int], None]  # (experiment, points measured, points in all)
_GO_ON = "run the same command to go on"


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler, as many points at a time as they have threads. The points of
    a worker that dies are measured again."""
    with Cluster(address) as cluster:
        yield cluster.client.get_executor(pure=False)


def _result(future: Future[Data], what: str) -> Data:
    try:
        error = future.exception()
    except CancelledError:
        raise BusError(
            f"the cluster's scheduler went away while {what} was measured; {_GO_ON}"
        ) from None
    if died_over_and_over(error):
        raise BusError(
            f"the workers of the cluster died over and over while measuring {what}; {_GO_ON}"
        ) from None
    if isinstance(error, BrokenProcessPool):
        raise LocalDPError(
            f"a worker process was killed (out of memory?) while measuring {what}; {_GO_ON}"
        ) from None
    if error is not None:
        error.add_note(f"while measuring {what}")
        raise error
    return future.result()


@dataclass(eq=False)
class Job:
    """One experiment of a run, with the measurements it has."""

    module: str
    scale: Scale
    seed: int
    out: Path
    drawing: Drawing

    def __post_init__(self) -> None:
        self.experiment = load(self.module)
        self.name = self.experiment.name
        self.folder = self.out / self.name
        self.store = MeasurementStore(self.folder, code_stamp(self.module))
        self.points = self.experiment.points(self.scale)
        self.left = len(self.missing())

    def missing(self) -> list[int]:
        """The places of the points not yet measured."""
        points = enumerate(map(stored, self.points))
        return [place for place, point in points if self.store.get(point, self.seed) is None]

    def submit(self, executor: Executor, *, apart: bool) -> Iterator[tuple[Future[Data], Data]]:
        """The missing points, each `apart` in a process of its own if the executor is a
        cluster's."""
        for place in self.missing():
            task = self.module, self.scale, place, self.seed
            if apart:
                future = executor.submit(measure_apart, *task, self.store.stamp)
            else:
                future = executor.submit(measure, *task)
            yield future, stored(self.points[place])

    def conclude(self) -> Finding:
        """Writes the results. The order of the measurements is that of the points, whatever order
        they were made in."""
        experiment, store = self.experiment, self.store
        rows = []
        with reading(store.path, "remove it to measure again"):
            for point in self.points:
                measurement = store.get(stored(point), self.seed)
                rows.append((point, experiment.read(point, measurement)))
        store.sort()
        finding = experiment.conclude(rows, self.scale)
        write_results(
            self.folder, experiment, finding, self.scale, self.seed, store.stamp, self.drawing
        )
        return finding


def run_experiments(
    modules: list[str],
    scale: Scale,
    seed: int,
    out: Path,
    progress: Progress = lambda name, done, total: None,
    announce: Callable[[str, str], None] = lambda name, verdict: None,
    workers: int | None = None,
    cluster: str = "",
    drawing: Drawing = DEFAULT,
) -> dict[str, Finding]:
    """Runs the experiments of these modules under `out`; the finding of each by name.

    What `out` already holds for the same seed and the same code is not measured again. For one seed
    the results are the same bytes, whatever the number of workers and the order in which they
    finish; `cluster` is the address of a Dask scheduler whose workers are asked in place of some
    here. Raises InputError if `out` cannot be written; an error of a measurement passes through,
    with its point noted.
    """
    jobs = [Job(module, scale, seed, out, drawing) for module in modules]
    findings: dict[str, Finding] = {}

    def finish(job: Job) -> None:
        progress(job.name, len(job.points) - job.left, len(job.points))
        if not job.left:
            findings[job.name] = job.conclude()
            announce(job.name, findings[job.name].verdict)

    for job in jobs:
        finish(job)
    left = sum(job.left for job in jobs)
    if left:
        most = min(workers or os.cpu_count() or 1, left)
        with _cluster(cluster) if cluster else pool(most) as executor:
            waiting = {}
            for job in jobs:
                for future, point in job.submit(executor, apart=bool(cluster)):
                    waiting[future] = job, point
            for future in as_completed(waiting):
                job, point = waiting.pop(future)
                job.store.add(point, seed, _result(future, f"{job.name} at {point}"))
                job.left -= 1
                finish(job)
    return {job.name: findings[job.name] for job in jobs}


def stored(point: Any) -> Data:
    """A point as a store has it: its fields under the name of its class."""
    return {type(point).__name__: plain(point)}


def measure(module: str, scale: Scale, place: int, seed: int) -> Data:
    """One of the points of a module's experiment, in the calling process."""
    experiment = load(module)
    measurement: Data = plain(experiment.measure(experiment.points(scale)[place], seed))
    return measurement


def measure_apart(module: str, scale: Scale, place: int, seed: int, stamp: str) -> Data:
    """The same in a process of its own, with the code of this stamp and the environment of the
    pool's, that ends with the caller's.

    Raises LocalDPError with its last line if it fails.
    """
    task = canonical([module, scale, place, seed, stamp])
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        env=environment,
        text=True,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        messages: list[str] = []
        listening = threading.Thread(target=lambda stream=process.stderr: messages.extend(stream))
        listening.start()
        process.stdin.write(task + "\n")
        process.stdin.flush()  # but not closed: the process ends itself when this stream ends
        answer = process.stdout.read()
        listening.join()
    if process.returncode:
        last = "".join(messages[-1:]).strip() or f"it ended with code {process.returncode}"
        raise LocalDPError(
            f"a worker of the cluster could not measure point {place} of {module}: {last}"
        )
    with reading("the answer of a worker", _GO_ON):
        measurement: Data = json.loads(answer)
    return measurement


def main() -> None:
    """Reads one task, measures it, prints the measurement."""
    module, scale, place, seed, stamp = json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if (own := code_stamp(module)) != stamp:
        raise InputError(
            f"its code of {module} has the stamp {own}, and the run's has {stamp}; install the "
            "same version"
        )
    with redirect_stdout(sys.stderr):
        measurement = measure(module, scale, place, seed)
    print(canonical(measurement), flush=True)
    os._exit(0)  # not by way of the watching thread, which still reads


if __name__ == "__main__":
    main()
