"""Whole runs in fresh interpreters, client processes beside bare ones, stores beside none; the cost of a message for a server, and a Dask cluster."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, replace
from functools import partial
from importlib.util import find_spec
from multiprocessing import Process
from pathlib import Path
from statistics import median

import numpy as np

from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.children import Folder
from local_dp.errors import BusError
from local_dp.experiments.bench.bare_clients import Fleet, bare_clients, proportional_size
from local_dp.experiments.bench.speeds import REPEATS, Speed, best_of
from local_dp.experiments.pages import LOOPBACK
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.cluster import Cluster, ClusterOracle, Rounds
from local_dp.experiments.tiers.execute import execute
from local_dp.experiments.tiers.over_bus import over_bus
from local_dp.experiments.tiers.settings import EMBEDDED, Randomness, Settings, Tier
from local_dp.interaction import Adaptive
from local_dp.noise import COINS, Draw, KeyedNoise
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery
from local_dp.oracles.local.oracles import AskedOf, keep_memory
from local_dp.populations.finite import Population
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Place, Roster
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.tallies import Estimate, Tally
from local_dp.wire import SERVER, Hello, Reply, decode, encode, topic

READY, ROUND, MEMORY = 1.5, 2.5, 1.3  # the most that client processes may take, in units of bare ones
RUN = ("-m", "local_dp", "run", "--json")
SMALL_FLEET = 200
_SPENT = 3.0  # seconds on one command
_MANY = 10**8  # clients: the most for which bare words are measured
_TURNS, _ROUNDS, _EPSILON = 3, 6, 6.0  # of runs with stores
_AT_MOST: dict[Tier, float] = {"processes": 1.5 / 1.09, "hosts": 1.5 / 1.15}  # 1.5 for signatures and stores, of which signatures take 9 and 15 %


def run_speeds() -> list[Speed]:
    """Whole commands. References: an interpreter that imports numpy, for a population bare words, for hosts a run of two clients."""
    bare, bare_memory = fastest(["-c", "import numpy"])
    start = {tier: fastest([*RUN, "survey", "--clients", "2", "--tier", tier])[0] for tier in ("population", "hosts")}
    SCREEN.working("measuring --help")
    speeds = [Speed("--help", fastest(["-m", "local_dp", "--help"])[0], "s", bare, 1.0)]
    for what, arguments, most in (("survey, 10^6 clients", ["survey", "--clients", "1000000"], 5.4), ("masked parity, default run", ["masked-parity"], 20.0)):
        SCREEN.working(f"measuring {what}")
        speeds.append(Speed(f"{what}: Enter to result", fastest([*RUN, *arguments])[0], "s", bare, most))
    for clients, tier, most in ((10**8, "population", 1.3), (10**10, "population", 2.7), (10**7, "hosts", 0.3), (10**8, "hosts", 3.0)):
        what = f"survey, 10^{len(str(clients)) - 1} clients, {tier}"
        SCREEN.working(f"measuring {what}")
        seconds, memory = fastest([*RUN, "survey", "--clients", str(clients), "--tier", tier])
        reference = bare_words(clients) if tier == "population" else start[tier]
        speeds.append(Speed(f"{what}: beyond start-up", seconds - start[tier], "s", reference, most))
        if tier == "population":
            speeds.append(Speed(f"{what}: memory", memory, "MiB", bare_memory, 2.4))
    return speeds


def bare_words(clients: int) -> float:
    """Seconds of numpy to draw two bytes for each client, its record and its noise, and to compare them, by a thread for each core."""
    keep_memory()
    cores, chunks = os.cpu_count() or 1, -(-2 * min(clients, _MANY) // CHUNK)

    def drawn(first: int) -> None:
        generator = np.random.Philox(first)
        for _ in range(first, chunks, cores):
            np.count_nonzero(generator.random_raw(CHUNK // 8).view(np.uint8) < 77)

    def all_drawn() -> None:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(drawn, range(cores)))

    return best_of(all_drawn) * clients / min(clients, _MANY)


def fastest(arguments: list[str]) -> tuple[float, float]:
    """Seconds and MiB of the fastest of repeated runs, at least two, for some seconds in all."""
    runs = [_command(arguments), _command(arguments)]
    while sum(seconds for seconds, _ in runs) < _SPENT:
        runs.append(_command(arguments))
    return min(runs)


_TIMED = """
import json, os, subprocess, sys, time
started = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps([time.perf_counter() - started, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)]))
"""  # by a small process: the peak memory of a child is no less than its parent's at its start


def _command(arguments: list[str]) -> tuple[float, float]:
    """Seconds from Enter to the end, and the peak resident memory in MiB."""
    output = subprocess.run([sys.executable, "-c", _TIMED, sys.executable, *arguments], stdout=subprocess.PIPE, check=True).stdout
    seconds, mebibytes, code = json.loads(output)
    if code:
        raise BusError(f"{' '.join(arguments)} ended with exit code {code}; run it alone to see why")
    return seconds, mebibytes


def process_speeds(most: int) -> list[Speed]:
    """A survey over 200 and over `most` real client processes, by the embedded broker and by Mosquitto where it is installed."""
    speeds = []
    for count in sorted({min(SMALL_FLEET, most), most} - {0}):
        speeds += _processes(count, EMBEDDED)
        if shutil.which("mosquitto"):
            with local_mosquitto() as url:
                speeds += _processes(count, url)
    return speeds


@contextmanager
def local_mosquitto() -> Iterator[str]:
    """A Mosquitto of this machine on a free port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        settings.write(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        settings.flush()
        with subprocess.Popen(["mosquitto", "-c", settings.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
            try:
                yield f"mqtt://127.0.0.1:{port}"
            finally:
                broker.terminate()


def _processes(count: int, broker: str) -> list[Speed]:
    """A survey over real client processes, and bare ones that only join the broker, alternately: the shortest times of each, and the most memory."""
    SCREEN.working(f"measuring {count} client processes")
    turns = [(_fleet(count, broker), asyncio.run(_bare(count, broker))) for _ in range(REPEATS)]
    ours, bare = map(_best, zip(*turns, strict=True))
    name = f"{count} client processes, {'embedded broker' if broker == EMBEDDED else 'Mosquitto'}"
    return [
        Speed(f"{name}: ready", ours.ready, "s", bare.ready, READY),
        Speed(f"{name}: one round", ours.round, "s", bare.round, ROUND),
        Speed(f"{name}: memory of one (PSS)", ours.memory, "MiB", bare.memory, MEMORY),
    ]


def _best(fleets: Iterable[Fleet]) -> Fleet:
    ready, rounds, sizes = zip(*map(astuple, fleets), strict=True)
    return Fleet(min(ready), min(rounds), max(sizes))


def _settings(clients: int, epsilon: float, tier: Tier, broker: str) -> Settings:
    """A survey over clients that all answer."""
    protocol, everybody = Survey(), Terms(deadline=120.0, quorum=1.0)
    population = protocol.synthetic(clients, 0)
    return Settings(protocol, population, epsilon, randomness=Randomness(0, False), tier=tier, broker=broker, terms=everybody)


def _fleet(count: int, broker: str) -> Fleet:
    sizes: list[float] = []
    looks: list[float] = []

    def look(progress: Progress) -> None:
        if not isinstance(progress, RoundProgress):
            return
        looks.append(time.perf_counter())
        if not sizes and progress.answered == progress.asked:
            sizes.extend(_member_sizes())

    started = time.perf_counter()
    seconds = execute(_settings(count, 1.0, "processes", broker), look).seconds[0]
    return Fleet(looks[0] - started, seconds, max(sizes))  # the round has just begun at the first look


async def _bare(count: int, broker: str) -> Fleet:
    if broker != EMBEDDED:
        return bare_clients(count, broker)
    with Folder() as folder:
        embedded = EmbeddedBroker(Path(folder))
        await embedded.start()
        try:
            return await asyncio.to_thread(bare_clients, count, embedded.url)
        finally:
            await embedded.stop()


def _member_sizes() -> list[float]:
    """The proportional set size of each client process, in MiB: our children's children."""
    return [proportional_size(member) for helper in _children(os.getpid()) for member in _children(helper)]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def store_speeds(processes: int) -> list[Speed]:
    """For client processes, and for 10^5 clients in two hosts: the median round with stores, beside the median round without."""
    with local_mosquitto() if shutil.which("mosquitto") else nullcontext(EMBEDDED) as broker:
        name = "embedded broker" if broker == EMBEDDED else "Mosquitto"
        speeds = [_beside(f"10^5 clients in 2 hosts, {name}", 100_000, "hosts", broker)]
        if processes:
            speeds.insert(0, _beside(f"{processes} client processes, {name}", processes, "processes", broker))
    return speeds


def _beside(what: str, clients: int, tier: Tier, broker: str) -> Speed:
    SCREEN.working(f"measuring {what}, with stores and without")
    pairs = [(_seconds(clients, tier, broker, stores=False), _seconds(clients, tier, broker, stores=True)) for _ in range(_TURNS)]
    without, kept = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    return Speed(f"{what}: one round with stores", kept, "s", without, _AT_MOST[tier])


def _seconds(clients: int, tier: Tier, broker: str, stores: bool) -> float:
    """The median round of a run."""
    query = LocalQuery(Survey().query, BinaryRR(_EPSILON / _ROUNDS), Cohort(0, clients))

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        for _ in range(_ROUNDS - 1):
            yield (query,)
        (tally,) = yield (query,)
        return query.randomizer.estimate(tally)

    settings = replace(_settings(clients, _EPSILON, tier, broker), played=Adaptive(play))
    with Folder() if stores else nullcontext("") as folder:
        return median(asyncio.run(over_bus(replace(settings, stores=folder), lambda progress: None)).seconds)


_RUN, _GROUP = "bench", "g0"
_MESSAGES = 500


def bus_speeds() -> list[Speed]:
    """For one-bit reports, beside the verification of the signature alone, and beside bare additions."""
    SCREEN.working("measuring the cost of a message for a server")
    verified, one = _per_message(1, _MESSAGES)
    whole, packed = _per_message(CHUNK, 4)
    empty, counts = Hadamard(1.0, k=1024).empty(), np.zeros(1024)
    merged, added = (best_of(lambda each=each: [each + each for _ in range(_MESSAGES)]) / _MESSAGES for each in (empty, counts))  # type: ignore[misc]
    return [
        Speed("a server: one client's reply", 1e6 * one, "us", 1e6 * verified, 2.0),
        Speed("a server: a packed report of a host's", 1e9 * packed / CHUNK, "ns", 1e9 * whole / CHUNK, 2.6),
        Speed("merging two tallies of 1,024 counts", 1e6 * merged, "us", 1e6 * added, 3.0),
    ]


def _per_message(reports: int, messages: int) -> tuple[float, float]:
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


CLIENTS = 10**9  # synthetic ones that workers share
GAIN = 0.85  # of the gain of bare processes
_PAIRS = 15  # the median counts: on a machine that others use too, five gave 1.35 to 1.64
_DRAWS = 4000


def cluster_speeds(what: str, protocol: Survey, population: Population) -> list[Speed]:
    """The gain of two workers over one on a survey, beside that of two processes that only draw words. Needs the extra `cluster`."""
    if find_spec("distributed") is None:
        return []
    which = Draw(1)
    asked = AskedOf(population, KeyedNoise(0), LocalQuery(protocol.query, BinaryRR(1.0), Cohort(0, population.size)), which, which.key(COINS, 0))

    def gather(cluster: Cluster) -> None:
        with Folder() as folder:
            ClusterOracle(cluster, population, 0, 1.0, lambda ask, tally: None, Rounds(Path(folder))).gather(asked)

    SCREEN.working(f"measuring clusters of one and two workers: {what}")
    with _cluster(1) as one, _cluster(2) as two:
        pairs = [(_gain(partial(gather, one), partial(gather, two)), _gain(_words, _words_twice)) for _ in range(_PAIRS)]
    gain, bare = (median(gains) for gains in zip(*pairs, strict=True))
    return [Speed(f"{what}, 2 Dask workers: times as fast as one", gain, "x", bare, GAIN, more=True)]


@contextmanager
def _cluster(workers: int) -> Iterator[Cluster]:
    """Workers of one thread on this machine."""
    from dask.config import set as configured
    from distributed import LocalCluster

    near = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0", "worker_dashboard_address": f"{LOOPBACK}:0"}
    with (
        configured({"distributed.worker.profile.enabled": False}),  # a profile that nobody reads
        LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **near) as started,
        Cluster(started.scheduler_address) as cluster,
    ):
        yield cluster


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
