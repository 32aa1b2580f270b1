"""A run over a broker: a fleet of processes or hosts, and the server's side."""

import asyncio
import secrets
import sys
import warnings
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.interface import ServerBus
from local_dp.bus.mqtt import MqttBus, advice
from local_dp.clients.fleet import Fleet, packed
from local_dp.clients.member import HOSTS, PATIENCE, client_group
from local_dp.clients.process import MemberConfig, RunConfig, Shared, pack_columns
from local_dp.errors import InputError, LocalDPWarning, QuorumError
from local_dp.interaction import Game, run_async
from local_dp.oracles.local.asked import CHUNK, LocalQuery
from local_dp.records import chunks
from local_dp.registry import PLUG_INS, note_module
from local_dp.sealing import UNSIGNED, Envelopes, Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Keys, Place, Roster, filters
from local_dp.server.mixer import NAME
from local_dp.server.pace import LEAST_DEADLINE
from local_dp.server.phases import parting
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.server.shuffler import ShufflerConfig, ShufflerProcess
from local_dp.shuffle.central import Behind, Crowds
from local_dp.simulation.execute import check_asked
from local_dp.simulation.faults import FaultyBus, Trouble
from local_dp.simulation.outcome import BusRecord, Outcome
from local_dp.simulation.settings import EMBEDDED, OnProgress, Settings
from local_dp.wire import Span, behind

_OF_A_WAIT = 0.8  # a shuffler takes for the clients, and leaves the rest to what it passes on
_JOINING = PATIENCE + 5  # seconds to wait for members, and as much again for each 600 of them


@dataclass(frozen=True)
class Identities:
    """Keys made for one run: the members' places and private keys, and the keys of the server, or
    of a shuffler, which is then the server's only member.

    `asker` is the public key of the server, or of the shuffler, that asks the members.
    """

    places: Sequence[Place]
    own: Sequence[bytes]
    asker: bytes
    server: Keys
    shuffler: Keys | None

    @classmethod
    def of(cls, settings: Settings, spans: Sequence[Span]) -> "Identities":
        places, own = list[Place](), [new_key() for _ in spans]
        for index, (span, key) in enumerate(zip(spans, own, strict=True)):
            name, group = f"client-{index}", client_group(index)
            if settings.tier == "hosts":
                name, group = f"host-{index}", HOSTS
            places.append(Place(name, group, *span, public(key)))
        asking = Keys(new_key(), Roster(places))
        asker = public(asking.own)
        if settings.behind is None:
            return cls(places, own, asker, asking, None)
        relay = Roster([Place(NAME, NAME, 0, settings.population.size, asker)])
        return cls(places, own, asker, Keys(new_key(), relay), asking)


class _Members:
    """Makes the configurations of the members of a run, once its broker listens."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.shared = Shared.of(settings.population) if settings.tier == "hosts" else None
        self.liars: tuple[int, ...] = ()
        if settings.faults:
            seed = settings.randomness.seed
            self.liars = settings.faults.liars(settings.population.size, seed)
        self._ready = asyncio.Event()

    def begin(self, run: RunConfig, identities: Identities) -> None:
        """Lets the members have their configurations."""
        self._run, self._identities = run, identities
        self._ready.set()

    def trouble(self, kill: Callable[[int], bool]) -> Trouble | None:
        """The faults of the run, if it is to have any."""
        faults, members = self.settings.faults, len(self._identities.places)
        if faults is None:
            return None
        return Trouble(faults, self.settings.randomness.seed, members, kill)

    async def config_of(self, index: int) -> MemberConfig:
        await self._ready.wait()
        settings, place = self.settings, self._identities.places[index]
        batch, start, stop = settings.population.batch, place.start, place.stop
        first, columns, shared = batch(start, start + 1), {}, None
        if self.shared is None:
            columns = pack_columns(batch(*part) for part in chunks(start, stop, CHUNK))
        else:
            shared = self.shared, stop
        store = f"{settings.stores}/{place.member.partition('-')[0]}-{start}.store"
        return MemberConfig(
            run=self._run,
            member=place.member,
            group=place.group,
            start=start,
            columns=columns,
            shared=shared,
            lengths=first.lengths,
            orders=first.orders,
            liars=tuple(client for client in self.liars if start <= client < stop),
            keys=(self._identities.own[index], self._identities.asker),
            store=store if settings.stores else "",
            person=settings.person,
        )


async def over_bus(settings: Settings, on_progress: OnProgress) -> Outcome:
    """A run whose members, and broker and shuffler if there are any, are processes of this machine;
    none outlives it."""
    name, private = f"run-{secrets.token_hex(4)}", settings.randomness.private
    if settings.broker != EMBEDDED:
        Address.parse(settings.broker)  # refused before anybody is started
    spans, members = _spans(settings), _Members(settings)
    queries = Game(settings.algorithm).queries or ()
    if settings.behind is not None:
        Crowds(settings.behind).check(queries)  # before anybody is started
    plug_ins = _plug_ins(settings, queries)
    first = packed(query.randomizer for query in queries)
    fleet, shuffler = Fleet(len(spans), members.config_of, first, plug_ins), None
    broker = EmbeddedBroker(Path(fleet.folder.name)) if settings.broker == EMBEDDED else None
    joining = _JOINING * (1 + len(spans) / 600)

    def ending_of(member: str) -> str:
        """How the process of a member ended."""
        return fleet.ended(int(member.rpartition("-")[2])) if member != NAME else ""

    try:
        await fleet.start()
        # this takes a while, as the helper imports what members need
        identities = Identities.of(settings, spans)
        watches = [fleet.watch]
        if broker is not None:
            await broker.start()
            watches.append(broker.watch)
        url = settings.broker if broker is None else broker.url
        seed = None if private else settings.randomness.seed
        run = RunConfig(
            run=name, broker=url, budget=settings.epsilon, seed=seed, allowed=settings.allowed
        )
        members.begin(run, identities)
        if settings.behind is not None:
            shuffler = ShufflerProcess(
                _shuffler(settings, settings.behind, identities, run, joining, plug_ins)
            )
            await shuffler.start()
            watches.append(shuffler.watch)
        trouble = members.trouble(fleet.kill)
        outcome = await serve_run(
            settings,
            name,
            Address.parse(url),
            joining,
            on_progress,
            *(watch() for watch in watches),
            trouble=trouble,
            keys=identities.server,
            ending_of=ending_of,
        )
        faults = None if trouble is None else trouble.result(len(members.liars))
        return replace(outcome, broker="" if broker is None else broker.name, faults=faults)
    finally:
        if shuffler is not None:
            await shuffler.stop()
        await fleet.stop()
        if broker is not None:
            await broker.stop()


def _plug_ins(settings: Settings, queries: tuple[LocalQuery, ...]) -> tuple[str, ...]:
    """The places of the modules of plug-ins that members import. Raises InputError for a class in
    none."""
    check_asked(queries, settings)
    kinds = {type(settings.protocol), *chain(*(query.kinds for query in queries))}
    for kind in kinds:
        note_module(kind)
        home = sys.modules.get(kind.__module__)
        if getattr(home, kind.__qualname__, None) is not kind or kind.__module__ == "__main__":
            raise InputError(
                f"{kind.__qualname__} is defined where other processes cannot import it; put it "
                "into a file, or use tier population"
            )
    modules = sorted({kind.__module__ for kind in kinds})
    return tuple(PLUG_INS[module] for module in modules if module in PLUG_INS)


def _spans(settings: Settings) -> list[Span]:
    """The clients of each member: one each, or an equal share each."""
    clients = settings.population.size
    members = clients if settings.tier == "processes" else min(settings.hosts, clients)
    return [
        (clients * index // members, clients * (index + 1) // members) for index in range(members)
    ]


def _shuffler(
    settings: Settings,
    crowd: Behind,
    identities: Identities,
    run: RunConfig,
    joining: float,
    plug_ins: tuple[str, ...],
) -> ShufflerConfig:
    """The shuffler of a run on one broker: it waits less long than the server does for it."""
    keys, server = identities.shuffler, public(identities.server.own)
    assert keys is not None
    return ShufflerConfig(
        run=run.run,
        broker=run.broker,
        server_broker=run.broker,
        clients=settings.population.size,
        crowd=crowd.crowd,
        seed=run.seed,
        deadline=_OF_A_WAIT * (settings.terms.deadline or LEAST_DEADLINE),
        joining=_OF_A_WAIT * joining,
        key=keys.own.hex(),
        server_key=server.hex(),
        roster=str(keys.roster),
        plug_ins=plug_ins,
    )


async def serve_run(
    settings: Settings,
    name: str,
    address: Address,
    joining: float,
    on_progress: OnProgress,
    *watches: Coroutine[Any, Any, None],
    trouble: Trouble | None = None,
    journal: Journal | None = None,
    keys: Keys | None = None,
    ending_of: Callable[[str], str] = lambda name: "",
) -> Outcome:
    """The server's side of a run over a broker: waits `joining` seconds for the clients, plays the
    rounds, says the end. Of the population it uses the size alone, no record. `watches` end the run
    by raising; `trouble` makes it faulty.
    `ending_of` states how a member's process ended, where that is known.

    Behind a shuffler it reads the run only under the shuffler's name for it, and no member's
    account. With a journal it resumes where that ends, and where a quorum is missed no end is sent
    without a shuffler: the members wait for a server that resumes. Without `keys` nothing is
    signed.
    """
    crowds = None if settings.behind is None else Crowds(settings.behind)
    name = name if crowds is None else behind(name)
    envelopes: Envelopes = (
        UNSIGNED if keys is None else Party.server(name, keys.own, keys.roster.speaker)
    )
    roster = None if keys is None else keys.roster
    coordinator = Coordinator(
        name,
        settings.population.size,
        settings.randomness.coin_seed,
        settings.epsilon,
        settings.terms,
        roster,
        crowds,
    )
    coordinator.ending_of = ending_of
    if address.options and (line := await advice(address, f"{name}-server")):
        warnings.warn(line, LocalDPWarning, stacklevel=1)
    bus: ServerBus = MqttBus(address, f"{name}-server", filters(name))
    if trouble is not None:
        bus = FaultyBus(bus, trouble)
    oracle = RemoteOracle(bus, coordinator, on_progress, journal, envelopes)

    async def play() -> Outcome:
        await oracle.ready(joining)
        patience, resumable = 0.0, False
        try:
            result = await run_async(settings.algorithm, oracle)
            patience = parting(len(coordinator.members)) if crowds is None else 0.0
        except QuorumError:
            resumable = journal is not None and crowds is None
            raise
        finally:
            if not resumable:
                await oracle.end(patience)
        return outcome_of(result, oracle)

    return await _while_watched(play(), oracle.serve(patience=5.0), *watches)


async def _while_watched(
    play: Coroutine[Any, Any, Outcome], *watches: Coroutine[Any, Any, None]
) -> Outcome:
    """The outcome of `play`, unless a watch raises before; in the end nothing goes on."""
    playing = asyncio.create_task(play)
    tasks = {playing, *(asyncio.create_task(watch) for watch in watches)}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {playing}:
            task.result()
        return await playing
    finally:
        await end(tasks)


def outcome_of(result: Any, oracle: RemoteOracle) -> Outcome:
    """The outcome of a run whose clients have parted."""
    coordinator = oracle.coordinator
    crowds = coordinator.crowds
    record = BusRecord(
        rejections=dict(coordinator.rejections),
        silences=dict(coordinator.listening.silenced),
        irregularities=tuple(coordinator.irregularities),
        reconciliation=coordinator.reconciliation() if crowds is None else None,
        losses=coordinator.losses() if crowds is None else (),
        signed=oracle.bus.envelopes.signed,
        forgeries=oracle.bus.forgeries,
        attestation=coordinator.members.attested,
    )
    return Outcome(
        result=result,
        interaction=coordinator.interaction,
        rounds=coordinator.rounds,
        seconds=coordinator.seconds,
        counts=coordinator.counts,
        max_epsilon_spent=coordinator.ledger.max_spent,
        central=None if crowds is None else crowds.central(),
        bus=record,
    )


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Ends the tasks; asks again if one goes on, for a connection that is just being made may
    swallow a cancellation (before Python 3.12)."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.5)
    await asyncio.gather(*tasks, return_exceptions=True)
