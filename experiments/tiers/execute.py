"""One protocol, four ways to run it: processes, hosts, population, aggregate."""

import asyncio
import math
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from clients.config import MemberConfig, pack_columns
from clients.fleet import Fleet
from clients.member import HOSTS, client_group
from experiments.tiers.cluster import Cluster, ClusterOracle
from experiments.tiers.outcome import Outcome
from experiments.tiers.settings import EMBEDDED, Settings
from experiments.tiers.verified import Verified
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.mqtt import Address, MqttBus
from local_dp.interaction import Algorithm, Game, run, run_async
from local_dp.ledger import Ledger
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.base import epsilon_of
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.watched import Watched
from local_dp.tallies import Tally
from server.collecting import Interim, RoundProgress
from server.coordinator import Coordinator, Progress
from server.remote import RemoteOracle, filters
from server.round import Turnout

_JOINING = 30.0  # seconds to wait for members, and as much again for each 600 of them


OnProgress: TypeAlias = Callable[[Progress], None]
LocalAlgorithm: TypeAlias = Algorithm[LocalQuery, Tally, Any]


def execute(settings: Settings, on_progress: OnProgress) -> Outcome:
    """Runs the protocol. Raises QuorumError, RefusedError or BusError; whatever happens, no process outlives it."""
    started = time.perf_counter()
    algorithm = settings.protocol.algorithm(settings.epsilon, settings.clients)
    over_bus = settings.tier in ("processes", "hosts")
    outcome = asyncio.run(_over_bus(algorithm, settings, on_progress)) if over_bus else _in_memory(algorithm, settings, on_progress)
    return replace(outcome, wall=time.perf_counter() - started)


class _Rounds:
    """The rounds of a run in memory: how far the one that is played is, and how long each took."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.times: list[float] = []
        self.ledger: Ledger | None = None
        self._now = RoundProgress(0, 0, 0, 0.0, math.inf)
        self._tallies: list[Tally] = []
        self._lock = threading.Lock()

    @property
    def seconds(self) -> list[float]:
        return [end - start for start, end in zip(self.times[::2], self.times[1::2], strict=True)]

    def begin(self, queries: tuple[LocalQuery, ...]) -> None:
        self.times.append(time.perf_counter())
        self._tallies = [query.randomizer.empty() for query in queries]
        asked = sum(len(query.cohort) for query in queries)
        interim = Interim(queries, lambda: tuple(self._tallies))
        self._tell(RoundProgress(self._now.round + 1, 0, asked, epsilon_of(queries), math.inf, interim=interim))

    def answered(self, ask: int, tally: Tally) -> None:
        """More clients have answered one of the round's queries; called by several threads."""
        with self._lock:
            self._tallies[ask] += tally
            self._tell(replace(self._now, answered=self._now.answered + tally.n))

    def end(self, queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        self.times.append(time.perf_counter())
        self._tallies = list(tallies)
        self._tell(replace(self._now, answered=self._now.asked))

    def _tell(self, progress: RoundProgress) -> None:
        self._now = progress if self.ledger is None else replace(progress, spent=self.ledger.max_spent)
        self.on_progress(self._now)


def _oracle(settings: Settings, rounds: _Rounds, cluster: Cluster | None) -> PopulationOracle | AggregateOracle:
    population, seed = settings.population, settings.randomness.seed
    if settings.tier == "aggregate":
        return AggregateOracle(population, np.random.default_rng(seed), settings.epsilon)
    if cluster is not None:
        return ClusterOracle(cluster, population, seed, settings.epsilon, rounds.answered)
    return PopulationOracle(population, settings.randomness.noise(), seed, settings.epsilon, rounds.answered)


def _in_memory(algorithm: LocalAlgorithm, settings: Settings, on_progress: OnProgress) -> Outcome:
    started, rounds, verified = time.perf_counter(), _Rounds(on_progress), Verified(settings.allowed, settings.unverified)
    with Cluster(settings.cluster) if settings.cluster else nullcontext() as cluster:
        oracle = _oracle(settings, rounds, cluster)
        rounds.ledger = oracle.ledger
        result = run(algorithm, Watched(Watched(oracle, before=rounds.begin, after=rounds.end), before=verified.check))
    counts = Turnout(asked=sum(summary.n for summary in oracle.rounds), answered=sum(summary.n for summary in oracle.rounds))
    wall = time.perf_counter() - started
    return Outcome(result, oracle.interaction, oracle.rounds, rounds.seconds, counts, 0, oracle.ledger.max_spent, wall, tuple(verified.failures))


async def _over_bus(algorithm: LocalAlgorithm, settings: Settings, on_progress: OnProgress) -> Outcome:
    name = f"run-{secrets.token_hex(4)}"
    address: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    broker = EmbeddedBroker() if settings.broker == EMBEDDED else None
    spans = _spans(settings)

    async def config_of(index: int) -> MemberConfig:
        await asyncio.shield(address)
        start, stop = spans[index]
        return MemberConfig(
            run=name,
            member=f"host-{index}" if settings.tier == "hosts" else f"client-{index}",
            group=HOSTS if settings.tier == "hosts" else client_group(index),
            broker=broker.url if broker is not None else settings.broker,
            start=start,
            columns=pack_columns(settings.population.batch(start, stop)),
            seed=None if settings.randomness.private else settings.randomness.seed,
            budget=settings.epsilon,
            allowed=settings.allowed,
        )

    fleet = Fleet(len(spans), config_of, [query.randomizer for query in Game(algorithm).queries or ()])
    try:
        if broker is None:
            address.set_result(Address.parse(settings.broker))
        await fleet.start()
        if broker is not None:
            await broker.start()
            address.set_result(Address.parse(broker.url))
        joining = _JOINING * (1 + len(spans) / 600)
        return await serve_run(algorithm, settings, name, await address, joining, on_progress, fleet.watch())
    finally:
        await fleet.stop()
        if broker is not None:
            await broker.stop()


async def serve_run(
    algorithm: LocalAlgorithm,
    settings: Settings,
    name: str,
    address: Address,
    joining: float,
    on_progress: OnProgress,
    *watches: Coroutine[Any, Any, None],
) -> Outcome:
    """The server's side of a run over a broker: waits `joining` seconds for the clients, plays the rounds, says the end. `watches` end the run by raising."""
    started = time.perf_counter()
    coordinator = Coordinator(name, settings.clients, settings.randomness.seed, settings.epsilon, settings.terms)
    oracle = RemoteOracle(MqttBus(address, f"{name}-server", filters(name)), coordinator, on_progress)

    async def play() -> Outcome:
        await oracle.ready(joining)
        try:
            result = await run_async(algorithm, oracle)
        finally:
            await oracle.end()
        wall = time.perf_counter() - started
        return Outcome(
            result,
            coordinator.interaction,
            coordinator.rounds,
            coordinator.seconds,
            coordinator.counts,
            coordinator.rejected,
            coordinator.ledger.max_spent,
            wall,
        )

    playing = asyncio.create_task(play())
    tasks = {playing, *(asyncio.create_task(watch) for watch in (oracle.serve(patience=5.0), *watches))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {playing}:
            task.result()
        return await playing
    finally:
        await _cancel(tasks)


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    """Ends the tasks; asks again if one goes on, for a connection that is just being made may swallow a cancellation (before Python 3.12)."""
    pending = tasks
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.5)
    await asyncio.gather(*tasks, return_exceptions=True)


def _spans(settings: Settings) -> list[tuple[int, int]]:
    """The clients of each member: one each, or an equal share each."""
    if settings.tier == "processes":
        return [(index, index + 1) for index in range(settings.clients)]
    hosts = min(settings.hosts, settings.clients)
    return [(settings.clients * index // hosts, settings.clients * (index + 1) // hosts) for index in range(hosts)]
