"""Class 22: a client on two connections at once, or a copy of it. Each report counts once and is
paid once; of two that differ the first counts."""

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.journal import SqliteStore
from local_dp.clients.member import HOSTS, serve
from local_dp.clients.member import filters as member_filters
from local_dp.clients.role import ClientRole
from local_dp.noise import StoreNoise
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Past, Round
from local_dp.wire import AnyMessage, Hello, Reply, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, reply_of, survey_query, yes_records
from tests.support.runs.parties import digests
from tests.support.runs.virtual_time import beside, run_virtually

EPSILON = 0.1
TERMS = Terms(20.0, 0.01)
LONG = Terms(
    120.0,
    0.01,
    # so that all answer: a member is asked some 20 times, and is not heard after an ask with
    # probability 0.19
)
CLIENTS, MEMBERS = 20, 4
ASKED = survey_query(CLIENTS, randomizer=BinaryRR(EPSILON))


@dataclass
class Told:
    """The replies that a server was given, in their order, and what follows from it: each client's
    first report to an open round counts."""

    first: dict[tuple[int, int], int] = field(default_factory=dict)
    late: set[tuple[int, int]] = field(default_factory=set)
    duplicate: int = 0
    conflicting: int = 0

    def add(self, reply: Reply, is_closed: bool) -> None:
        for client, report in enumerate(reply.reports, reply.start):
            key = reply.round, client
            if key in self.first:
                self.duplicate += 1
                self.conflicting += report != self.first[key]
            elif is_closed:
                self.duplicate += key in self.late
                self.late.add(key)
            else:
                self.first[key] = report

    def faults(self, server: Coordinator) -> list[str]:
        """In what a server disagrees."""
        counts, counted = server.counts, dict[tuple[int, int], int]()
        for number, round in server._history.items():
            (part,) = round.parts
            counted.update(
                {
                    (number, client): int(part.reports[client, 0])
                    for client in np.flatnonzero(part.answered).tolist()
                }
            )
        checks = {
            "reports": counted == self.first,
            "answered": counts.answered == len(self.first),
            "late": counts.late == len(self.late),
            "duplicate": counts.duplicate == self.duplicate,
            "conflicting": counts.conflicting == self.conflicting,
            "tallies": all(
                summary.n == sum(number == place for number, _ in self.first)
                for place, summary in enumerate(server.rounds, 1)
            ),
        }
        return [name for name, holds in checks.items() if not holds]


class ByConnection(Coordinator):
    """A wrong twin: it counts a client's first report on each connection."""

    line = 0

    def receive(self, topic: str, message: AnyMessage, now: float) -> None:
        if isinstance(message, Reply):
            (part,) = self._history[message.round].parts
            flags = self.__dict__.setdefault("flags", {})
            part.answered = flags.setdefault(
                (message.round, self.line), np.zeros(len(part.answered), dtype=np.bool_)
            )
        super().receive(topic, message, now)


def _search(kind: type[Coordinator], seed: int) -> tuple[list[str], Told]:
    """Two rounds of one host: replies over any spans come on two connections, while a round is open
    and when it is over, some with other bytes."""
    chance, server, told, past = (
        Random(seed),
        kind(RUN, CLIENTS, SEED, 1.0, TERMS),
        Told(),
        list[Reply](),
    )
    server.receive(
        topic(RUN, "hello", HOSTS, "host-0"),
        Hello(run=RUN, member="host-0", start=0, stop=CLIENTS, private=True),
        0.0,
    )
    server.fresh = []
    right = {number: bytes(chance.randrange(2) for _ in range(CLIENTS)) for number in (1, 2)}

    def say(number: int, is_closed: bool) -> None:
        start, stop = sorted(chance.sample(range(CLIENTS + 1), 2))
        reports = right[number][start:stop]
        if chance.random() < 0.2:
            reports = bytes(report ^ (chance.random() < 0.5) for report in reports)
        reply = reply_of(number, "host-0", start, reports)
        server.line = chance.randrange(2)  # type: ignore[attr-defined]
        told.add(reply, is_closed)
        server.receive(topic(RUN, "rep", HOSTS, "host-0"), reply, 1.0)

    for number in right:
        round = server.open((ASKED,), 0.0)
        for _ in range(chance.randrange(2, 9)):
            say(number, False)
        server.close(2.0)
        past += server.fresh
        for _ in range(chance.randrange(4)):
            say(chance.randint(1, number), True)
    faults = told.faults(server)
    kept = Past(
        round.request_digest(), tuple(reply for reply in past if reply.round == round.number), None
    )
    again = Round(RUN, round.number, (ASKED,), SEED)
    again.restore(kept)
    if again.parts[0].reports.tobytes() != round.parts[0].reports.tobytes():
        faults.append("journal")
    return faults, told


@pytest.mark.parametrize("seeds", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_overlapping_reports_count_once(seeds: int) -> None:
    """By search: replies that overlap on two connections, in any order, before and after the end of
    a round, against an account of single reports."""
    seen = Told()
    for seed in range(seeds):
        faults, told = _search(Coordinator, seed)
        assert faults == [], f"seed {seed}"
        seen.duplicate, seen.conflicting = (
            seen.duplicate + told.duplicate,
            seen.conflicting + told.conflicting,
        )
        seen.first.update({(seed, client): 1 for client in range(len(told.first))})
    figure(
        "class 22",
        (
            f"{seeds:,} runs: {len(seen.first):,} reports counted once, {seen.duplicate:,} "
            f"repeated ones, {seen.conflicting:,} of which differ"
        ),
    )
    assert seen.conflicting > seeds


def test_a_server_that_keys_on_the_connection_is_caught() -> None:
    caught = [seed for seed in range(20) if "answered" in _search(ByConnection, seed)[0]]
    assert len(caught) > 10


class Roads(MemoryBroker):
    """A network that holds each message back for up to three seconds, loses one in ten and repeats
    one in ten, on each connection by itself."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = Random(seed)

    def route(self, delivery: Delivery) -> None:
        for bus in self.buses:
            if bus.hears(delivery.topic):
                for _ in range(self.chance.choice([0, 1, 1, 1, 1, 1, 1, 1, 1, 2])):
                    asyncio.get_running_loop().call_later(
                        self.chance.uniform(0.0, 3.0), bus.queue.put_nowait, delivery
                    )


ROUNDS = 5
SECONDS = ("none", "two connections", "a copy of its store", "another store")


def _member(path: Path, index: int) -> ClientRole:
    """A private host of five clients with a store."""
    each = CLIENTS // MEMBERS
    store = SqliteStore(path, 1.0)
    return ClientRole(
        f"host-{index}",
        each * index,
        yes_records(CLIENTS).take(slice(each * index, each * (index + 1))),
        StoreNoise(store.secret),
        store,
    )


def _copied(path: Path, target: Path) -> Path:
    """A store and its mark, copied."""
    for end in ("", ".made"):
        shutil.copy(f"{path}{end}", f"{target}{end}")
    return target


def _lives(folder: Path, second: str) -> list[ClientRole]:
    """The roles of each host, one for each of its connections."""
    lives = list[ClientRole]()
    for index in range(MEMBERS):
        path, other = folder / f"{index}.store", folder / f"{index} again.store"
        if second == "a copy of its store":
            _copied(path, other)
        lives.append(_member(path, index))
        if second != "none":
            lives.append(lives[-1] if second == "two connections" else _member(other, index))
    return lives


def _played(lives: list[ClientRole], seed: int) -> tuple[Coordinator, Told]:
    """Some rounds of hosts on their connections, and what the server was given."""

    async def play() -> tuple[Coordinator, Told]:
        broker, told = Roads(seed), Told()
        server = Coordinator(RUN, CLIENTS, SEED, 1.0, LONG)
        oracle = RemoteOracle(broker.join(filters(RUN)), server)
        noted(server, told)
        async with beside(
            oracle.serve(1.0),
            *(serve(role, broker.join(member_filters(RUN, HOSTS)), RUN, HOSTS) for role in lives),
        ):
            await oracle.ready(20.0)
            for _ in range(ROUNDS):
                await oracle.answer((ASKED,))
            await oracle.end(10.0)
        return server, told

    return run_virtually(play())


def noted(server: Coordinator, told: Told) -> None:
    """Notes each reply that a server is given."""
    receive = server.receive

    def noting(where: str, message: AnyMessage, now: float) -> None:
        if isinstance(message, Reply):
            told.add(message, server._history[message.round].closed)
        receive(where, message, now)

    server.receive = noting  # type: ignore[method-assign, assignment]


def _charged(lives: list[ClientRole]) -> None:
    """Each store has paid for each round that it answered once, and together they answered all."""
    for index in range(MEMBERS):
        stores = {
            id(role.store): role.store for role in lives if role.member == f"host-{index}"
        }.values()
        answered = [set(store.lines(RUN)) for store in stores]
        assert (
            [round(store.ledger.max_spent / EPSILON, 6) for store in stores]
            == [store.rounds for store in stores]
            == [len(each) for each in answered]
        )
        assert set.union(*answered) == set(range(1, ROUNDS + 1))


def _closed(lives: list[ClientRole]) -> None:
    for role in lives:
        role.store.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("second", SECONDS[1:])
@pytest.mark.parametrize("seeds", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_host_on_two_connections_counts_once(seeds: int, second: str, tmp_path: Path) -> None:
    """Over a network that loses, repeats and delays: the reports are those of one connection, with
    one charge; answers of another store differ."""
    total = Told()
    for seed in range(seeds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _closed(_lives(folder, "none"))
        spare = shutil.copytree(folder, tmp_path / f"{seed} alone")
        lives = _lives(folder, second)
        server, told = _played(lives, seed)
        assert told.faults(server) == []
        assert server.counts.answered == ROUNDS * CLIENTS
        _charged(lives)
        alone = _lives(spare, "none")
        if second != "another store":
            assert told.conflicting == 0
            assert digests(server.rounds) == digests(_played(alone, seed + 1)[0].rounds)
        _closed([*alone, *{id(role): role for role in lives}.values()])
        total.duplicate, total.conflicting = (
            total.duplicate + told.duplicate,
            total.conflicting + told.conflicting,
        )
    figure(
        "class 22",
        (
            f"{second}: {seeds * ROUNDS * CLIENTS:,} reports counted once, {total.duplicate:,} "
            f"repeated, {total.conflicting:,} of them differ; paid once"
        ),
    )
    assert total.duplicate > seeds * CLIENTS
    assert (total.conflicting > 0) == (second == "another store")
