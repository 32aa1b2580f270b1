"""P5: a client on two connections at once, or a copy of it. Each report counts once and is paid
once; of two that differ the first counts."""

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, serve
from local_dp.clients.member import filters as member_filters
from local_dp.clients.role import ClientRole
from local_dp.noise import StoreNoise
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.wire import AnyMessage, Reply
from tests.support.inputs.builders import RUN, SEED, survey_query, yes_records
from tests.support.runs.parties import digests
from tests.support.runs.stores import open_store
from tests.support.runs.virtual_time import beside, run_virtually
from tests.support.wrong import wrong

EPSILON = 0.1
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
        counts, reports = server.counts, dict[tuple[int, int], int]()
        for number, round in server._history.items():
            (part,) = round.parts
            reports.update(
                {
                    (number, client): int(part.reports[client, 0])
                    for client in np.flatnonzero(part.answered).tolist()
                }
            )
        checks = {
            "reports": reports == self.first,
            "answered": counts.answered == len(self.first),
            "late": counts.late == len(self.late),
            "duplicate": counts.duplicate == self.duplicate,
            "conflicting": counts.conflicting == self.conflicting,
        }
        return [name for name, holds in checks.items() if not holds]


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
    store = open_store(path)
    records = yes_records(CLIENTS).take(slice(each * index, each * (index + 1)))
    return ClientRole(f"host-{index}", each * index, records, StoreNoise(store.secret), store)


def _copy(path: Path, target: Path) -> Path:
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
            _copy(path, other)
        lives.append(_member(path, index))
        if second != "none":
            lives.append(lives[-1] if second == "two connections" else _member(other, index))
    return lives


def _play(lives: list[ClientRole], seed: int) -> tuple[Coordinator, Told]:
    """Some rounds of hosts on their connections, and what the server was given."""

    async def play() -> tuple[Coordinator, Told]:
        broker, log = Roads(seed), Told()
        server = Coordinator(RUN, CLIENTS, SEED, 1.0, LONG)
        oracle = RemoteOracle(broker.join(filters(RUN)), server)
        receive = server.receive

        def noting(where: str, message: AnyMessage, now: float) -> None:
            if isinstance(message, Reply):
                log.add(message, server._history[message.round].closed)
            receive(where, message, now)

        server.receive = noting  # type: ignore[method-assign, assignment]
        async with beside(
            oracle.serve(1.0),
            *(serve(role, broker.join(member_filters(RUN, HOSTS)), RUN, HOSTS) for role in lives),
        ):
            await oracle.ready(20.0)
            for _ in range(ROUNDS):
                await oracle.answer((ASKED,))
            await oracle.end(10.0)
        return server, log

    return run_virtually(play())


def _check_charges(lives: list[ClientRole]) -> None:
    """Each store has paid for each round that it answered once, and together they answered all."""
    for index in range(MEMBERS):
        stores = {
            id(role.store): role.store for role in lives if role.member == f"host-{index}"
        }.values()
        lines = [set(store.lines(RUN)) for store in stores]
        for store, rounds in zip(stores, lines, strict=True):
            assert round(store.ledger.max_spent / EPSILON, 6) == store.rounds == len(rounds)
        assert set.union(*lines) == set(range(1, ROUNDS + 1))


def _closed(lives: list[ClientRole]) -> None:
    for role in lives:
        role.store.close()  # type: ignore[attr-defined]


@wrong(
    "local_dp.clients.journal:SqliteStore.__init__",
    "first.data[-_SECRET_BYTES:]",
    "os.urandom(_SECRET_BYTES)",
    "copies of a store answer one request with two noises, and a store no longer knows its rows",
    at="a copy of its store",
)
@wrong(
    "local_dp.noise:StoreNoise.bound",
    "blake2b(what, key=self._secret, digest_size=_SECRET)",
    "blake2b(what + os.urandom(8), key=self._secret, digest_size=_SECRET)",
    "a copy of a client's store answers by other bytes, at a second loss",
    at="a copy of its store",
)
@wrong(
    "local_dp.server.round:Round._count",
    "self.counts.answered += len(reports) - again",
    "self.counts.answered += len(reports)",
    "a repeated report counts again",
    at="another store",
)
@wrong(
    "local_dp.server.round:Round._count",
    "int((part.reports[window][before] != reports[before]).any(axis=1).sum())",
    "0 * int((part.reports[window][before] != reports[before]).any(axis=1).sum())",
    "nobody learns that two clients answer under one name",
    at="another store",
)
@wrong(
    "local_dp.server.round:Round._count",
    "np.where(before[:, None], part.reports[window], reports) if again else reports",
    "reports",
    "a copy of a client replaces its answer",
    at="another store",
)
@pytest.mark.parametrize("second", SECONDS[1:])
def test_a_host_on_two_connections_counts_once(second: str, tmp_path: Path) -> None:
    """Over a network that loses, repeats and delays: the reports are those of one connection, with
    one charge; answers of another store differ."""
    folder = tmp_path / "stores"
    folder.mkdir()
    _closed(_lives(folder, "none"))
    spare = shutil.copytree(folder, tmp_path / "alone")
    lives = _lives(folder, second)
    server, log = _play(lives, 1)
    assert log.faults(server) == []
    assert server.counts.answered == ROUNDS * CLIENTS
    assert log.duplicate > CLIENTS
    assert (log.conflicting > 0) == (second == "another store")
    _check_charges(lives)
    alone = _lives(spare, "none")
    if second != "another store":
        assert digests(server.rounds) == digests(_play(alone, 2)[0].rounds)
    _closed([*alone, *{id(role): role for role in lives}.values()])
