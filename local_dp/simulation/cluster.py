"""The population tier on the workers of a Dask scheduler: the same chunks, hence the same bits,
elsewhere."""

import asyncio
import ctypes
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial, reduce
from hashlib import blake2b
from logging import CRITICAL, getLogger, root
from operator import add
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

import numpy as np

from local_dp.errors import BusError, InputError, RefusedError, reading
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.memory import Session
from local_dp.oracles.local.oracles import AskedOf, OnChunk, PopulationOracle, shared
from local_dp.populations.finite import Population
from local_dp.registry import PLUG_INS, load
from local_dp.simulation.installation import Installation
from local_dp.simulation.pool import each_here
from local_dp.tallies import Tally
from local_dp.verification.sources import OURS

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = 15.0  # seconds for the scheduler, and as many for its first worker
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
_MOST = 128  # steps in one task: of one-bit reports, a fifth of a second
# of the largest task, the smallest: what a scheduler spends on one is some milliseconds
_LEAST = 16


class Cluster:
    """A connection to a Dask scheduler that has workers; close it by leaving its block. Raises
    InputError without the extra, BusError if nobody answers."""

    def __init__(self, address: str) -> None:
        self._installations: dict[frozenset[str], Installation] = {}
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "a cluster needs the packages dask and distributed: pip install 'local-dp[cluster]'"
            ) from None
        for name in [*root.manager.loggerDict]:
            if name.startswith(("distributed", "tornado")):
                getLogger(name).setLevel(CRITICAL)  # a lost scheduler is one line, and ours
        try:
            with warnings.catch_warnings():
                # of other versions: `checked` refuses them in one line
                warnings.simplefilter("ignore")
                with ThreadPoolExecutor(1) as thread:  # here a loop may run, as in a notebook
                    thread.submit(asyncio.run, _reach(address)).result()
                self.client: Any = Client(address, timeout=PATIENCE, set_as_default=False)
        except ValueError as error:
            raise InputError(
                f"cluster is {address!r}; give a scheduler's address, such as tcp://127.0.0.1:8786"
            ) from error
        except (TypeError, RuntimeError) as error:
            raise InputError(
                f"cluster is {address!r}, for which Dask has no TLS settings "
                "(distributed.comm.tls); set them, or give its tcp:// address"
            ) from error
        except OSError as error:  # of which a timeout is one
            raise BusError(
                f"no Dask scheduler answers at {address}; start one with `dask scheduler`, or "
                "correct the address"
            ) from error
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except OSError as error:
            self.client.close()
            raise BusError(
                f"the Dask scheduler at {address} has no workers; start some with `dask worker "
                f"{address}`"
            ) from error

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *details: object) -> None:
        with suppress(OSError, RuntimeError):  # of a scheduler that is gone
            self.client.close(timeout=PATIENCE / 3)

    def checked(self, plug_ins: frozenset[str]) -> Installation:
        """This process's installation, with these packages. Raises InputError if that of a worker
        differs, BusError if the scheduler is gone."""
        if plug_ins not in self._installations:
            here = Installation.here(plug_ins)
            places = [PLUG_INS[name] for name in sorted(plug_ins) if name in PLUG_INS]
            with scheduled():
                if places:
                    self.client.register_worker_callbacks(partial(_load_all, places))
                self.client.run(_same_here, here)
            self._installations[plug_ins] = here
        return self._installations[plug_ins]

    def forget(self, futures: list[Any]) -> None:
        """Nobody waits for these any more."""
        # where the scheduler is gone, nobody works on them
        with suppress(OSError, CancelledError, RuntimeError):
            self.client.cancel(futures)


async def _reach(address: str) -> None:
    """Connects once: a Client that cannot is left half made, and holds up the end of the process
    for half a minute."""
    from distributed import Security
    from distributed.comm import connect

    line = await connect(address, timeout=PATIENCE, **Security().get_connection_args("client"))
    await line.close()


def died_over_and_over(error: BaseException | None) -> bool:
    """True if a task failed because the workers that had it died, one after the other."""
    if error is None or "distributed" not in sys.modules:
        return False
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


@contextmanager
def scheduled() -> Iterator[None]:
    """Raises BusError where the scheduler of a cluster goes away, or its workers die over and
    over."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise BusError(
            f"the workers of the cluster died over and over: {error}; run the same command to go on"
        ) from None
    except (CancelledError, OSError) as error:
        raise BusError(
            "the cluster's scheduler went away; start it, and run the same command to go on"
        ) from error


def each_of(
    work: Iterable[T], measure: Callable[[T], R], cluster: str = "", workers: int = 1
) -> Iterator[tuple[T, R]]:
    """Each piece of work with its result: one by one here, or as they are done, by several
    processes here or by the workers of a Dask scheduler.

    `cluster` is the scheduler's address. Raises BusError, and LocalDPError if a process is killed.
    """
    if not cluster:
        yield from (
            each_here(work, measure, workers)
            if workers > 1
            else ((each, measure(each)) for each in work)
        )
        return
    from distributed import as_completed

    pieces = list(work)
    with Cluster(cluster) as connection, scheduled():
        here = connection.checked(plug_ins_of([measure, *pieces]) | {f"{OURS}.experiments"})
        how = connection.client.submit(_same, measure, pure=False)
        tasks = {
            connection.client.submit(_measure, how, each, here, pure=False): each for each in pieces
        }
        for future in as_completed(tasks, loop=connection.client.loop):
            yield tasks[future], future.result()


def _measure(measure: Callable[[T], R], work: T, here: Installation) -> R:
    _same_here(here)
    return measure(work)


class Rounds:
    """A folder with the tally of each ask of a run, as a file, until the run is over. An ask is
    named by its number and all that decides its bits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, ask: str) -> tuple[Tally, bytes] | None:
        """The tally of an ask, and the digests of its chunks."""
        path = self._path(ask)
        if not path.exists():
            return None
        with reading(path, "delete it"), np.load(path, allow_pickle=False) as file:
            return Tally(file["counts"], int(file["n"])), file["digests"].tobytes()

    def put(self, ask: str, tally: Tally, digests: bytes) -> None:
        path = self._path(ask)
        self.folder.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".partial").open("wb") as file:
            np.savez(
                file, counts=tally.counts, n=tally.n, digests=np.frombuffer(digests, dtype=np.uint8)
            )
        path.with_suffix(".partial").replace(path)

    def over(self) -> None:
        """The run is over: nothing of it stays."""
        rmtree(self.folder, ignore_errors=True)

    def _path(self, ask: str) -> Path:
        return self.folder / f"{ask}.npz"


class ClusterOracle(PopulationOracle):
    """The population oracle whose chunks are answered by a cluster's workers. A worker that dies
    takes nothing with it: its chunks are answered again.

    Dask sends Python objects by pickle, so everybody who reaches its scheduler can run any code on
    its workers: for simulations alone. `on_chunk` receives the tally of some chunks together. Each
    ask goes into `storage`: after a lost scheduler the same run goes on from there.
    """

    def __init__(
        self,
        cluster: Cluster,
        population: Population,
        seed: int,
        budget: float,
        on_chunk: OnChunk,
        storage: Rounds,
    ) -> None:
        super().__init__(population, KeyedNoise(seed), seed, budget, on_chunk)
        self.cluster, self.client, self.storage = cluster, cluster.client, storage
        self._asks = 0

    def gather(self, work: AskedOf) -> tuple[Tally, list[bytes]]:
        """As in memory. Raises RefusedError("no-memory") for a session: workers do not keep which
        clients answered."""
        from distributed import as_completed

        if isinstance(work.query.repeat, Session):
            raise RefusedError(
                "no-memory",
                f"the session {work.query.label!r}: a cluster's workers do not keep which "
                "clients answered; leave out --cluster",
            )
        self._asks += 1
        plug_ins = plug_ins_of(work)
        content = repr((Installation.here(plug_ins), work.query)).encode()
        ask = f"{self._asks}-{blake2b(content, digest_size=8).hexdigest()}"
        if (entry := self.storage.get(ask)) is not None:
            self.on_chunk(work.which.ask, entry[0])
            return entry[0], [entry[1]]
        here = self.cluster.checked(plug_ins)
        tally, digests, futures = work.query.randomizer.empty(), dict[str, bytes](), list[Any]()
        # a task: repeated if its worker dies, unlike scattered data
        shared_data = self.client.submit(_same, work, pure=False)
        try:
            with scheduled():
                workers = max(1, sum(self.client.nthreads().values()))
                spans = dealt(work.pieces, workers, _MOST * work.together)
                futures += self.client.map(_answers, spans, work=shared_data, here=here, pure=False)
                for future in as_completed(futures, loop=self.client.loop):
                    part, digests[future.key] = future.result()
                    tally += part
                    self.on_chunk(work.which.ask, part)
        finally:
            self.cluster.forget([shared_data, *futures])  # an interrupted run leaves nothing to do
        self.storage.put(ask, tally, b"".join(digests[future.key] for future in futures))
        return tally, [digests[future.key] for future in futures]


def dealt(work: range, workers: int, most: int) -> list[range]:
    """The chunks in parts of at most `most`, smaller ones towards the end, so that no worker waits
    long for the last."""
    parts = []
    while work:
        each = min(most, max(1, most // _LEAST, len(work) // (2 * workers)))
        parts.append(work[:each])
        work = work[each:]
    return parts


def _load_all(places: list[str]) -> None:
    """On a worker, now or when it joins: imports modules of plug-ins. One that is not there is
    missed by `_same_here`."""
    for place in places:
        with suppress(InputError):
            load(place)


def _same_here(here: Installation, dask_worker: Any = None) -> None:
    """On a worker, which Dask gives, except to a task. Raises InputError unless it computes the
    same bits as the process whose installation is `here`."""
    from distributed import get_worker

    own = Installation.here(name for name, _ in here.sources if name != OURS)
    if difference := here.difference(own):
        raise InputError(
            f"the worker at {(dask_worker or get_worker()).address} {difference}; install the same"
        )


def plug_ins_of(work: object) -> frozenset[str]:
    """The packages, other than ours, of the classes that this object is made of."""
    identities, waiting, packages = set[int](), [work], set[str]()
    while waiting:
        each = waiting.pop()
        package = type(each).__module__.partition(".")[0]
        if id(each) in identities or package in ("builtins", "numpy"):
            if isinstance(each, tuple | list):
                waiting += each
            elif isinstance(each, dict):
                waiting += each.values()
            continue
        identities.add(id(each))
        packages.add(package)
        waiting += vars(each).values() if hasattr(each, "__dict__") else ()
    return frozenset(packages - {OURS, "__main__", *sys.stdlib_module_names})


def _same(data: T) -> T:
    return data


def _answers(span: range, work: AskedOf, here: Installation) -> tuple[Tally, bytes]:
    """On a worker, which may have joined late: the tally of some chunks, and their digests as one:
    Dask sends each bytes of a list by itself."""
    _same_here(here)
    _keep_more()
    tallies, digests = zip(*map(work.answers, shared(span, 1, work.together)), strict=True)
    return reduce(add, tallies), b"".join(digests)


def _keep_more() -> None:
    """Keeps freed memory: Dask has glibc give back all beyond 64 KiB, which takes twice as long."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # not on macOS
        libc.mallopt(_TRIM, 64 << 20)
        libc.mallopt(_MMAP, 32 << 20)
