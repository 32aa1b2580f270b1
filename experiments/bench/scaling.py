"""How far it scales: the cost of a signed message for a server, and the population tier on a Dask cluster. docs/scaling.md uses the first."""

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from multiprocessing import Process
from statistics import median

import numpy as np

from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.cluster import Cluster, ClusterOracle
from local_dp.noise import COINS, Draw, KeyedNoise
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery
from local_dp.oracles.local.oracles import AskedOf, PopulationOracle
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Place, Roster
from local_dp.server.quorum import Terms
from local_dp.wire import SERVER, Hello, Reply, decode, encode, topic

_RUN, _GROUP = "bench", "g0"
_MESSAGES = 500


def bus_speeds() -> list[Speed]:
    """For one-bit reports, beside the verification of the signature alone, and beside bare additions."""
    SCREEN.working("measuring the cost of a message for a server")
    verified, one = _seconds(1, _MESSAGES)
    whole, packed = _seconds(CHUNK, 4)
    empty, counts = Hadamard(1.0, k=1024).empty(), np.zeros(1024)
    merged, added = (best_of(lambda each=each: [each + each for _ in range(_MESSAGES)]) / _MESSAGES for each in (empty, counts))  # type: ignore[misc]
    return [
        Speed("a server: one client's reply", 1e6 * one, "us", 1e6 * verified, 2.0),
        Speed("a server: a packed report of a host's", 1e9 * packed / CHUNK, "ns", 1e9 * whole / CHUNK, 2.6),
        Speed("merging two tallies of 1,024 counts", 1e6 * merged, "us", 1e6 * added, 3.0),
    ]


def _seconds(reports: int, messages: int) -> tuple[float, float]:
    """Seconds for each message of so many reports: for verifying its signature, and for all other work of a server."""
    name, keys = "host-0", (new_key(), new_key())
    roster = Roster([Place(name, _GROUP, 0, reports * messages, public(keys[1]))])
    server, member = Party.server(_RUN, keys[0], roster.speaker), Party.member(_RUN, public(keys[0]), keys[1])
    where = topic(_RUN, "rep", _GROUP, name)
    body = np.zeros(reports, dtype=np.uint8).tobytes()
    starts = range(0, reports * messages, reports)
    sent = [member.seal(where, encode(Reply(run=_RUN, round=1, member=name, ask=0, start=start, width=1, reports=body))) for start in starts]

    def hear(times: int) -> None:
        coordinator = Coordinator(_RUN, reports * messages, 0, 1.0, Terms(), roster)
        coordinator.receive(topic(_RUN, "hello", _GROUP, name), Hello(run=_RUN, member=name, start=0, stop=reports * messages, private=False), 0.0)
        coordinator.open((LocalQuery(Survey().query, BinaryRR(1.0), Cohort(0, reports * messages)),), 0.0)
        for envelope in sent[:times]:
            coordinator.receive(where, decode(server.open(where, envelope), SERVER), 0.0)
        assert coordinator.counts.answered == reports * times

    verified = best_of(lambda: [server.open(where, envelope) for envelope in sent])
    return verified / messages, max(0.0, best_of(partial(hear, messages)) - best_of(partial(hear, 0))) / messages  # without the work of a round


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
