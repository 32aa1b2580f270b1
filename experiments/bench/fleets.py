"""Real client processes beside bare ones, and rounds of client processes and of hosts with stores
beside rounds without."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, replace
from pathlib import Path
from statistics import median

from local_dp.bus.broker import EmbeddedBroker
from local_dp.experiments.bench.bare_clients import Fleet, bare_clients, proportional_size
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.simulation.execute import execute
from local_dp.simulation.over_bus import over_bus
from local_dp.simulation.settings import EMBEDDED, Randomness, Settings, Tier
from local_dp.tallies import Estimate, Tally

_TURNS, _ROUNDS, _EPSILON = 3, 6, 6.0


@contextmanager
def local_broker() -> Iterator[str]:
    """A Mosquitto of this machine on a free port of the loopback interface; where there is none,
    the embedded broker."""
    if shutil.which("mosquitto") is None:
        yield EMBEDDED
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        settings.write(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        settings.flush()
        with subprocess.Popen(
            ["mosquitto", "-c", settings.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as broker:
            try:
                yield f"mqtt://127.0.0.1:{port}"
            finally:
                broker.terminate()


def beside_bare(count: int, broker: str) -> tuple[Fleet, Fleet]:
    """A survey over client processes, and bare ones that only join the broker, alternately: the
    shortest times of each, and the most memory."""
    turns = [(_fleet(count, broker), asyncio.run(_bare(count, broker))) for _ in range(_TURNS)]
    ours, bare = map(_best, zip(*turns, strict=True))
    return ours, bare


def _best(fleets: Iterable[Fleet]) -> Fleet:
    ready, rounds, sizes = zip(*map(astuple, fleets), strict=True)
    return Fleet(min(ready), min(rounds), max(sizes))


def _settings(clients: int, epsilon: float, tier: Tier, broker: str) -> Settings:
    """A survey over clients that all answer."""
    protocol, everybody = Survey(), Terms(deadline=120.0, quorum=1.0)
    population = protocol.synthetic(clients, 0)
    return Settings(
        protocol,
        population,
        epsilon,
        randomness=Randomness(0, False),
        tier=tier,
        broker=broker,
        terms=everybody,
    )


def _fleet(count: int, broker: str) -> Fleet:
    sizes: list[float] = []
    looks: list[float] = []

    def look(progress: Progress) -> None:
        if not isinstance(progress, RoundProgress):
            return
        looks.append(time.perf_counter())
        if not sizes and progress.answered == progress.asked:
            sizes.extend(_member_sizes())

    start = time.perf_counter()
    seconds = execute(_settings(count, 1.0, "processes", broker), look).seconds[0]
    # the round has just begun at the first look
    return Fleet(looks[0] - start, seconds, max(sizes))


async def _bare(count: int, broker: str) -> Fleet:
    if broker != EMBEDDED:
        return bare_clients(count, broker)
    with tempfile.TemporaryDirectory() as folder:
        own = EmbeddedBroker(Path(folder))
        await own.start()
        try:
            return await asyncio.to_thread(bare_clients, count, own.url)
        finally:
            await own.stop()


def _member_sizes() -> list[float]:
    """The proportional set size of each client process, in MiB: our children's children."""
    return [
        proportional_size(member)
        for helper in _children(os.getpid())
        for member in _children(helper)
    ]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def with_stores(clients: int, tier: Tier, broker: str) -> tuple[float, str, float]:
    """The median round with stores, its unit, and the median round without."""
    pairs = [
        (
            _seconds(clients, tier, broker, stores=False),
            _seconds(clients, tier, broker, stores=True),
        )
        for _ in range(_TURNS)
    ]
    return median(pair[1] for pair in pairs), "s", median(pair[0] for pair in pairs)


def _seconds(clients: int, tier: Tier, broker: str, stores: bool) -> float:
    """The median round of a run."""
    query = LocalQuery(Survey().query, BinaryRR(_EPSILON / _ROUNDS), Cohort(0, clients))

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        for _ in range(_ROUNDS):
            (tally,) = yield (query,)
        return query.randomizer.estimate(tally)

    settings = replace(_settings(clients, _EPSILON, tier, broker), override=Adaptive(play))
    with tempfile.TemporaryDirectory(prefix="ldp-stores-") if stores else nullcontext("") as folder:
        return median(
            asyncio.run(over_bus(replace(settings, stores=folder), lambda progress: None)).seconds
        )
