"""The population tier on the workers of a Dask scheduler: the same chunks, hence the same bits, elsewhere."""

import ctypes
import sys
from functools import reduce
from operator import add
from typing import Any

from local_dp.errors import BusError, InputError, RefusedError
from local_dp.experiments.tiers.installation import installed_version
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import AskedOf, OnChunk, PopulationOracle, shared
from local_dp.populations.finite import Population
from local_dp.tallies import Tally

PATIENCE = 15.0  # seconds for the scheduler, and as many for its first worker
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
_MOST = 128  # steps in one task: of one-bit reports, a fifth of a second
_LEAST = 16  # of the largest task, the smallest: what a scheduler spends on one is some milliseconds


class Cluster:
    """A connection to a Dask scheduler that has workers; close it by leaving its block. Raises InputError without the extra, BusError if nobody answers."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("a cluster needs the packages dask and distributed: pip install 'local-dp[cluster]'") from None
        try:
            self.client: Any = Client(address, timeout=PATIENCE, set_as_default=False)
        except ValueError as error:
            raise InputError(f"cluster is {address!r}; give a scheduler's address, such as tcp://127.0.0.1:8786") from error
        except OSError as error:  # of which a timeout is one
            raise BusError(f"no Dask scheduler answers at {address}; start one with `dask scheduler`, or correct the address") from error
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except OSError as error:
            self.client.close()
            raise BusError(f"the Dask scheduler at {address} has no workers; start some with `dask worker {address}`") from error

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *raised: object) -> None:
        self.client.close()


def died_over_and_over(error: BaseException | None) -> bool:
    """Whether a task failed because the workers that had it died, one after the other."""
    if error is None or "distributed" not in sys.modules:
        return False
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


class ClusterOracle(PopulationOracle):
    """The population oracle whose chunks are answered by a cluster's workers. A worker that dies takes nothing with it: its chunks are answered again.

    Dask sends Python objects by pickle, so everybody who reaches its scheduler can run any code on its workers: for simulations alone.
    `on_chunk` receives the tally of some chunks together.
    """

    def __init__(self, cluster: Cluster, population: Population, seed: int, budget: float, on_chunk: OnChunk) -> None:
        super().__init__(population, KeyedNoise(seed), seed, budget, on_chunk)
        self.client = cluster.client

    def gather(self, work: AskedOf) -> tuple[Tally, list[bytes]]:
        """As in memory. Raises RefusedError("no-memory") for a session: workers do not keep who of the clients has spoken."""
        from distributed import KilledWorker, as_completed

        if work.query.session:
            raise RefusedError("no-memory", f"the session {work.query.session!r}: a cluster's workers do not keep who has spoken; leave out --cluster")
        spans = dealt(work.pieces, max(1, sum(self.client.nthreads().values())), _MOST * work.together)
        shared_data = self.client.submit(_same, work, pure=False)  # a task: repeated if its worker dies, unlike scattered data
        futures = self.client.map(_answers, spans, asked=shared_data, version=installed_version(), pure=False)
        tally, digests = work.query.randomizer.empty(), {}
        try:
            for future, (part, digests_of) in as_completed(futures, loop=self.client.loop, with_results=True):
                tally, digests[future.key] = tally + part, digests_of
                self.on_chunk(work.which.ask, part)
        except KilledWorker as error:
            raise BusError(f"the workers of the cluster died over and over: {error}") from None
        finally:
            self.client.cancel([shared_data, *futures])  # an interrupted run leaves nothing to do
        return tally, [digests[future.key] for future in futures]


def dealt(work: range, workers: int, most: int) -> list[range]:
    """The chunks in parts of at most `most`, smaller ones towards the end, so that no worker waits long for the last."""
    parts = []
    while work:
        each = min(most, max(1, most // _LEAST, len(work) // (2 * workers)))
        parts.append(work[:each])
        work = work[each:]
    return parts


def _same(asked: AskedOf) -> AskedOf:
    return asked


def _answers(span: range, asked: AskedOf, version: str) -> tuple[Tally, bytes]:
    """On a worker: the tally of some chunks, and their digests as one: Dask sends each bytes of a list by itself."""
    if installed_version() != version:
        raise InputError(f"a worker has version {installed_version()} of local-dp, and the run is of {version}; install the same")
    _keep_more()
    tallies, digests = zip(*map(asked.answers, shared(span, 1, asked.together)), strict=True)
    return reduce(add, tallies), b"".join(digests)


def _keep_more() -> None:
    """Keeps freed memory: Dask has glibc give back all beyond 64 KiB, which takes twice as long."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # not on macOS
        libc.mallopt(_TRIM, 64 << 20)
        libc.mallopt(_MMAP, 32 << 20)
