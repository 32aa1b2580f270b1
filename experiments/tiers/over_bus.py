"""A run over a broker: a fleet of processes or hosts, and the server's side."""

import asyncio
import secrets
import time
from collections.abc import Coroutine
from typing import Any

from clients.config import MemberConfig, pack_columns
from clients.fleet import Fleet
from clients.member import HOSTS, client_group
from experiments.tiers.outcome import Outcome
from experiments.tiers.settings import EMBEDDED, LocalAlgorithm, OnProgress, Settings
from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.mqtt import MqttBus
from local_dp.interaction import Game, run_async
from local_dp.oracles.local.asked import CHUNK
from local_dp.records import chunks
from server.coordinator import Coordinator
from server.remote import RemoteOracle, filters

_JOINING = 30.0  # seconds to wait for members, and as much again for each 600 of them


async def over_bus(algorithm: LocalAlgorithm, settings: Settings, on_progress: OnProgress) -> Outcome:
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
            columns=pack_columns(settings.population.batch(*part) for part in chunks(start, stop, CHUNK)),
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
