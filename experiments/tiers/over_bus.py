"""A run over a broker: a fleet of processes or hosts, and the server's side."""

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.interface import ServerBus
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.config import MemberConfig, one_of, pack_columns
from local_dp.clients.fleet import Fleet
from local_dp.clients.prefork import Opening
from local_dp.experiments.tiers.faults import Trouble
from local_dp.experiments.tiers.identities import Identities
from local_dp.experiments.tiers.outcome import Outcome, Seal
from local_dp.experiments.tiers.settings import EMBEDDED, LocalAlgorithm, OnProgress, Settings
from local_dp.interaction import Game, run_async
from local_dp.oracles.local.asked import CHUNK, LocalQuery
from local_dp.records import chunks
from local_dp.sealing import UNSIGNED, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.journal import Journal
from local_dp.server.listening import filters
from local_dp.server.remote import RemoteOracle, heard
from local_dp.server.roster import Keys
from local_dp.server.shuffler import ShufflerConfig, ShufflerProcess
from local_dp.shuffle.central import Behind, Crowds
from local_dp.tallies import Tally
from local_dp.wire import behind

_OF_A_WAIT = 0.8  # a shuffler takes for the clients, and leaves the rest to what it passes on
PARTING = 1.0  # seconds to wait for the accounts of members when the run is over, while somebody's is missing; and as much again for each 600 of them
_JOINING = 30.0  # seconds to wait for members, and as much again for each 600 of them


async def over_bus(algorithm: LocalAlgorithm, settings: Settings, on_progress: OnProgress) -> Outcome:
    name = f"run-{secrets.token_hex(4)}"
    prepared = asyncio.Event()
    broker = EmbeddedBroker() if settings.broker == EMBEDDED else None
    if broker is None:
        Address.parse(settings.broker)  # refused before anybody is started
    spans = _spans(settings)
    liars = settings.faults.liars(settings.clients, settings.randomness.seed) if settings.faults else ()

    async def config_of(index: int) -> MemberConfig:
        await prepared.wait()
        start, stop = spans[index]
        return MemberConfig(
            run=name,
            member=known.places[index].member,
            group=known.places[index].group,
            broker=url,
            start=start,
            columns=_columns(settings, start, stop) if everybody is None else one_of(everybody, index),
            seed=None if settings.randomness.private else settings.randomness.seed,
            budget=settings.epsilon,
            allowed=settings.allowed,
            liars=tuple(client for client in liars if start <= client < stop),
            keys=known.keys_of(index),
            store=f"{settings.stores}/{'host' if settings.tier == 'hosts' else 'client'}-{start}.store" if settings.stores else "",
        )

    first = Game(algorithm).queries or ()
    if settings.behind is not None:
        Crowds(settings.behind).check(first)  # before anybody is started
    opening = Opening.of(dict(settings.population.batch(0, 1).types), first)
    fleet, shuffler = Fleet(len(spans), config_of, opening, bool(settings.stores)), None
    joining = _JOINING * (1 + len(spans) / 600)
    try:
        await fleet.start()
        known = Identities.of(settings, spans)  # and what else takes a while, as the helper imports what members need
        everybody = _columns(settings, 0, settings.clients) if settings.tier == "processes" else None
        watches = [fleet.watch]
        if broker is not None:
            await broker.start()
            watches.append(broker.watch)
        url = settings.broker if broker is None else broker.url
        prepared.set()
        if settings.behind is not None:
            shuffler = ShufflerProcess(_shuffler(settings, settings.behind, known, name, url, joining))
            await shuffler.start()
            watches.append(shuffler.watch)
        trouble = None if settings.faults is None else Trouble(settings.faults, settings.randomness.seed, len(spans), fleet.kill)
        looks = [watch() for watch in watches]
        outcome = await serve_run(algorithm, settings, name, Address.parse(url), joining, on_progress, *looks, trouble=trouble, keys=known.server)
        return outcome if trouble is None else replace(outcome, faults=trouble.result(len(liars)))
    finally:
        if shuffler is not None:
            await shuffler.stop()
        await fleet.stop()
        if broker is not None:
            await broker.stop()


def _columns(settings: Settings, start: int, stop: int) -> dict[str, tuple[str, bytes]]:
    """The records of the clients start..stop, as they travel."""
    return pack_columns(settings.population.batch(*part) for part in chunks(start, stop, CHUNK))


def _shuffler(settings: Settings, crowd: Behind, known: Identities, name: str, broker: str, joining: float) -> ShufflerConfig:
    """The shuffler of a run on one broker: it waits less long than the server does for it."""
    seed = None if settings.randomness.private else settings.randomness.seed
    waits: dict[str, Any] = {"deadline": _OF_A_WAIT * settings.terms.deadline, "joining": _OF_A_WAIT * joining}
    assert known.shuffler is not None
    keys: dict[str, Any] = {"key": known.shuffler.own.hex(), "server_key": public(known.server.own).hex(), "roster": str(known.shuffler.roster)}
    return ShufflerConfig(run=name, broker=broker, server_broker=broker, clients=settings.clients, crowd=crowd.crowd, seed=seed, **waits, **keys)


class _Behind:
    """The oracle of a server whose clients are behind a shuffler."""

    def __init__(self, oracle: RemoteOracle, crowds: Crowds) -> None:
        self.oracle, self.crowds = oracle, crowds

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        self.crowds.check(queries)
        tallies = await self.oracle.answer(queries)
        self.crowds.add(queries, tallies)
        return tallies


async def serve_run(
    algorithm: LocalAlgorithm,
    settings: Settings,
    name: str,
    address: Address,
    joining: float,
    on_progress: OnProgress,
    *watches: Coroutine[Any, Any, None],
    trouble: Trouble | None = None,
    journal: Journal | None = None,
    keys: Keys | None = None,
) -> Outcome:
    """The server's side of a run over a broker: waits `joining` seconds for the clients, plays the rounds, says the end. `watches` end the run by raising;
    `trouble` makes it faulty.

    Where the clients are behind a shuffler, it hears the run only under the name that this gives it, and no member's account. With a journal it goes on where
    that ends. Without `keys` nothing is signed.
    """
    started = time.perf_counter()
    crowds = None if settings.behind is None else Crowds(settings.behind)
    name = name if crowds is None else behind(name)
    coordinator = Coordinator(name, settings.clients, settings.randomness.coin_seed, settings.epsilon, settings.terms, keys.roster if keys else None)
    broker: ServerBus = MqttBus(address, f"{name}-server", filters(name))
    bus = heard(broker if trouble is None else trouble.around(broker), UNSIGNED if keys is None else keys.envelopes(name), coordinator)
    oracle = RemoteOracle(bus, coordinator, on_progress, journal)

    async def play() -> Outcome:
        await oracle.ready(joining)
        patience = 0.0
        try:
            result = await run_async(algorithm, oracle if crowds is None else _Behind(oracle, crowds))
            patience = PARTING * (1 + coordinator.members.count / 600) if crowds is None else 0.0
        finally:
            await oracle.end(patience)
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
            None if crowds is None else crowds.central(),
            rejections=dict(coordinator.rejections),
            silenced=dict(coordinator.listening.silenced),
            irregularities=tuple(coordinator.irregularities),
            reconciliation=coordinator.reconciliation() if crowds is None else None,
            seal=Seal(bus.envelopes.signed, bus.forged, coordinator.members.attested),
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
