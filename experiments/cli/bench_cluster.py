"""The population tier of `local-dp bench` on a Dask cluster of this machine, beside one thread of one process."""

import time
from importlib.util import find_spec

from experiments.cli.screen import SCREEN
from experiments.cli.speeds import Speed
from experiments.tiers.cluster import Cluster, ClusterOracle
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, coin_key
from local_dp.oracles.local.population import AskedOf, PopulationOracle
from local_dp.protocols.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR

CLIENTS = 10**9
LOOPBACK = "127.0.0.1"
GAIN = 1.6


def cluster_speeds() -> list[Speed]:
    """A survey of 10^9 clients by two workers with one thread each; nothing where the extra is not installed."""
    if find_spec("distributed") is None:
        return []
    from distributed import LocalCluster

    survey = Survey()
    which, population = Draw(1), survey.synthetic(CLIENTS, 0)
    asked = AskedOf(population, KeyedNoise(0), LocalQuery(survey.query, BinaryRR(1.0), Cohort(0, CLIENTS)), which, coin_key(0, which))
    SCREEN.working("measuring a cluster of two workers")
    near = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0", "worker_dashboard_address": f"{LOOPBACK}:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=50, **near) as started, Cluster(started.scheduler_address) as cluster:
        together = _seconds(ClusterOracle(cluster, population, 0, 1.0, lambda ask, tally: None), asked)
    alone = _seconds(PopulationOracle(population, KeyedNoise(0), 0, 1.0, threads=1), asked)
    return [Speed("survey, 10^9 clients, 2 Dask workers", together, "s", alone, alone / GAIN, together <= alone / GAIN)]


def _seconds(oracle: PopulationOracle, asked: AskedOf) -> float:
    started = time.perf_counter()
    oracle.gather(asked)
    return time.perf_counter() - started
