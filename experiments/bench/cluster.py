"""The population tier of `local-dp bench` on a Dask cluster of this machine, beside one thread of one process."""

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from multiprocessing import Process
from statistics import median

import numpy as np

from local_dp.experiments.bench.speeds import Speed
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.cluster import Cluster, ClusterOracle
from local_dp.noise import COINS, Draw, KeyedNoise
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery
from local_dp.oracles.local.population import AskedOf, PopulationOracle
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR

CLIENTS = 10**9
LOOPBACK = "127.0.0.1"
GAIN = 0.85  # of the gain of bare processes
_PAIRS = 5  # the median counts
_DRAWS = 4000


def cluster_speeds() -> list[Speed]:
    """The gain of two workers of one thread on a survey of 10^9 clients, beside that of two processes that only draw words. Needs the extra `cluster`."""
    if find_spec("distributed") is None:
        return []
    from dask.config import set as configured
    from distributed import LocalCluster

    survey = Survey()
    which, population = Draw(1), survey.synthetic(CLIENTS, 0)
    asked = AskedOf(population, KeyedNoise(0), LocalQuery(survey.query, BinaryRR(1.0), Cohort(0, CLIENTS)), which, which.key(COINS, 0))
    alone = PopulationOracle(population, KeyedNoise(0), 0, 1.0, threads=1)
    SCREEN.working("measuring a cluster of two workers")
    near = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0", "worker_dashboard_address": f"{LOOPBACK}:0"}
    with (
        configured({"distributed.worker.profile.enabled": False}),  # a profile that nobody reads
        LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=50, **near) as started,
        Cluster(started.scheduler_address) as cluster,
    ):
        together = ClusterOracle(cluster, population, 0, 1.0, lambda ask, tally: None)
        pairs = [(_gain(partial(alone.gather, asked), partial(together.gather, asked)), _gain(_words, _words_twice)) for _ in range(_PAIRS)]
    gain, bare = (median(gains) for gains in zip(*pairs, strict=True))
    return [Speed("survey, 10^9 clients, 2 Dask workers: times as fast as one thread", gain, "x", bare, GAIN, more=True)]


def _gain(once: Callable[[], object], by_two: Callable[[], object]) -> float:
    """The speed of two in units of one."""
    started = time.perf_counter()
    once()
    middle = time.perf_counter()
    by_two()
    return (middle - started) / (time.perf_counter() - middle)


def _words(count: int = _DRAWS) -> None:
    noise = np.random.Philox(0)
    for _ in range(count):
        noise.random_raw(CHUNK // 8)


def _words_twice() -> None:
    both = [Process(target=_words, args=(_DRAWS // 2,)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
