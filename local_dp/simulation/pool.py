"""Worker processes of this machine: they compute alike, and end with the process that started
them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from local_dp.errors import LocalDPError

T = TypeVar("T")
R = TypeVar("R")

# The cores are shared already, sums must not depend on the number of threads, nor anything on the
# order of a set.
ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
_MEASURES: list[Callable[[Any], Any]] = []  # of a worker process


def _start(*measures: Callable[[Any], Any]) -> None:
    """A worker process leaves the interrupt key to its parent, and ends when its parent does,
    however that came about."""
    _MEASURES.extend(measures)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _worker_environment() -> Iterator[None]:
    """Processes started meanwhile do linear algebra on one thread, hash alike, and do not import
    from the folder where the user stands."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupt_key_waits() -> Iterator[None]:
    """The interrupt key acts at the end of the block. A process that starts meanwhile never feels
    it, nor reads half of its orders."""
    interrupts = list[int]()
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, before)
        for number in interrupts:
            signal.raise_signal(number)


@contextmanager
def pool(workers: int, *measures: Callable[[Any], Any]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that are gone when the block ends, at once if it ends by an exception or the
    interrupt key."""
    before: set[BaseProcess] = set(multiprocessing.active_children())
    with _worker_environment():
        executor = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=measures,
        )
        try:
            with _interrupt_key_waits():
                for _ in range(workers):
                    executor.submit(int)  # starts a process while none is idle
            yield executor
        except BaseException:
            for worker in set(multiprocessing.active_children()) - before:
                worker.terminate()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def each_here(work: Iterable[T], measure: Callable[[T], R], workers: int) -> Iterator[tuple[T, R]]:
    """Each piece of work with its result, as they are done by so many processes, which get
    `measure` once. Raises LocalDPError if one is killed."""
    with pool(workers, measure) as executor:
        tasks = {executor.submit(_apply, each): each for each in work}
        try:
            for future in as_completed(tasks):
                yield tasks[future], future.result()
        except BrokenProcessPool:
            raise LocalDPError(
                "a worker process was killed (out of memory?); run the same command to go on"
            ) from None


def _apply(work: Any) -> Any:
    return _MEASURES[-1](work)
