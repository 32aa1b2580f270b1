"""Runs of which everybody's key is known to a test: members in threads on a real broker, or all on
a bus in memory in virtual time."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import ClientBus, SealedBus
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import HOSTS, filters, serve, will
from local_dp.clients.role import ClientRole
from local_dp.interaction import Adaptive, Play, as_play, run_async
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import RoundSummary
from local_dp.protocols.surveys.survey import Survey
from local_dp.sealing import UNSIGNED, Envelopes, Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Keys, Place, Roster
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.over_bus import serve_run
from local_dp.simulation.settings import LocalAlgorithm, Randomness, Settings
from local_dp.tallies import Estimate, Tally
from tests.support.inputs.builders import RUN, SEED
from tests.support.runs.virtual_time import beside, run_virtually

CLIENTS, MEMBERS = 40, 4
ROUNDS = 2
TERMS = Terms(20.0, 0.1)
BUDGET = 2.0
PEOPLE = Survey().synthetic(CLIENTS, SEED)


@dataclass(frozen=True)
class Member:
    """A host of some clients, with its key."""

    place: Place
    own: bytes
    private: bool = False

    def role(self) -> ClientRole:
        records = PEOPLE.batch(self.place.start, self.place.stop)
        return ClientRole(
            self.place.member,
            self.place.start,
            records,
            SystemNoise() if self.private else KeyedNoise(SEED),
            MemoryStore(BUDGET),
        )


@dataclass(frozen=True)
class Cast:
    """Who takes part: the server's key, and the members. Not `signed`, they use no keys."""

    signed: bool = True
    server: bytes = field(default_factory=new_key)
    members: Sequence[Member] = ()
    rounds: int = ROUNDS
    buses: list[SealedBus[ClientBus]] = field(default_factory=list)  # by the members

    @classmethod
    def of(
        cls,
        signed: bool = True,
        seeded: Sequence[int] = range(CLIENTS),
        members: int = MEMBERS,
        rounds: int = ROUNDS,
    ) -> "Cast":
        """Hosts that share the clients, some of them seeded, the others in private."""
        each, hosts = CLIENTS // members, list[Member]()
        for at in range(members):
            key, start = new_key(), each * at
            place = Place(f"host-{start}", HOSTS, start, start + each, public(key))
            hosts.append(Member(place, key, at not in seeded))
        return cls(signed, members=hosts, rounds=rounds)

    @property
    def keys(self) -> Keys | None:
        return (
            Keys(self.server, Roster(member.place for member in self.members))
            if self.signed
            else None
        )

    def at_the_server(self) -> Envelopes:
        return Party.server(RUN, self.server, self.keys.roster.speaker) if self.keys else UNSIGNED

    def of_a(self, member: Member) -> Envelopes:
        return Party.member(RUN, public(self.server), member.own) if self.signed else UNSIGNED

    def serve(self, member: Member, bus: ClientBus) -> Any:
        own_bus = SealedBus(bus, self.of_a(member))
        self.buses.append(own_bus)
        return serve(member.role(), own_bus, RUN, HOSTS)

    def algorithm(self) -> LocalAlgorithm:
        def play() -> Play[LocalQuery, Tally, Estimate]:
            for _ in range(self.rounds):
                estimate = yield from as_play(Survey().algorithm(BUDGET / self.rounds, CLIENTS))
            return estimate

        return Adaptive(play)


class _OverError(Exception):
    """The test is over."""


@contextmanager
def threads(cast: Cast, urls: Sequence[str]) -> Iterator[None]:
    """The members on a real broker, each at its own address of it."""
    ours, theirs = socket.socketpair()

    def over() -> None:
        raise _OverError

    def live(member: Member, url: str) -> None:
        place, envelopes = member.place, cast.of_a(member)
        name, last_words = f"{RUN}-{place.member}", will(RUN, HOSTS, place.member, envelopes)
        bus = BlockingBus(Address.parse(url), name, filters(RUN, HOSTS), last_words, theirs, over)
        with suppress(_OverError):
            finish(cast.serve(member, bus))

    living = [
        threading.Thread(target=live, args=each) for each in zip(cast.members, urls, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        # which is of a process, and there are several members in this one
        patch.setattr("local_dp.clients.member.unheard", nullcontext)
        for each in living:
            each.start()
        try:
            yield
        finally:
            ours.close()
            for each in living:
                each.join()
            theirs.close()


def settings(private: bool = False, broker: str = "") -> Settings:
    return Settings(Survey(), PEOPLE, BUDGET, Randomness(SEED, private), broker=broker, terms=TERMS)


def play_on(
    cast: Cast, server: str, members: Sequence[str] | str, private: bool = False
) -> Outcome:
    """A run on a real broker, whose address may be another one for each."""
    urls = [members] * len(cast.members) if isinstance(members, str) else members
    run = settings(private, server)
    with threads(cast, urls):
        return asyncio.run(
            serve_run(
                replace(run, override=cast.algorithm()),
                RUN,
                Address.parse(server),
                5.0,
                lambda progress: None,
                keys=cast.keys,
            )
        )


def play_in_memory(cast: Cast, broker: MemoryBroker) -> tuple[Coordinator, int]:
    """The same on a bus in memory: the coordinator at the end, and how many messages were
    forged."""

    async def play() -> tuple[Coordinator, int]:
        coordinator = Coordinator(
            RUN, CLIENTS, SEED, BUDGET, TERMS, cast.keys.roster if cast.keys else None
        )
        oracle = RemoteOracle(
            broker.join(server_filters(RUN)), coordinator, envelopes=cast.at_the_server()
        )
        async with beside(
            oracle.serve(1.0),
            *(cast.serve(member, broker.join(filters(RUN, HOSTS))) for member in cast.members),
        ):
            await oracle.ready(5.0)
            await run_async(cast.algorithm(), oracle)
            return coordinator, oracle.bus.forgeries

    return run_virtually(play())


def digests(rounds: Sequence[RoundSummary]) -> list[str | None]:
    return [summary.digest for summary in rounds]


def undisturbed() -> list[str | None]:
    """Those of a run in memory that nobody disturbs."""
    return digests(play_in_memory(Cast.of(), MemoryBroker())[0].rounds)
