"""What is made once for all workers of a run of the tests, and kept in the run's own temporary
folder until it ends."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from local_dp.experiments.lab.parts import Experiment
from local_dp.experiments.lab.store import canonical

P = TypeVar("P")


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """The folder that all workers of this run see."""
    return (
        factory.getbasetemp().parent
        if "PYTEST_XDIST_WORKER" in os.environ
        else factory.getbasetemp()
    )


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Whether this worker holds the lock at `path`; without `wait`, another one may."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


class Once:
    """Measurements that several tests need, each made by the worker that comes first: `name` stands
    for what measures, and for its seed.

    They must be asked for before anything is spoiled, or every other test would see them spoiled.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def measured(
        self, name: str, experiment: Experiment, points: list[P], measure: Callable[[P], object]
    ) -> list[tuple[P, Any]]:
        """Each point with its measurement, as they come back from a file of results."""
        files = [self.folder / f"{name}-{place}.json" for place in range(len(points))]
        for wait in (False, True):  # first what nobody is at
            for file, point in zip(files, points, strict=True):
                self._make(file, point, measure, wait=wait)
        return [
            (point, experiment.read(point, json.loads(file.read_text())))
            for file, point in zip(files, points, strict=True)
        ]

    def _make(self, file: Path, point: P, measure: Callable[[P], object], *, wait: bool) -> None:
        if file.exists():
            return
        with locked(file.with_suffix(".lock"), wait=wait) as mine:
            if mine and not file.exists():
                partial = file.with_suffix(".partial")
                partial.write_text(canonical(measure(point)))
                partial.rename(file)
