"""One member's process: its configuration, which it gets from the launcher over a private socket,
and its life until the end of the run."""

import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Self

import msgpack
import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from local_dp.arrays import Words
from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import SealedBus
from local_dp.clients.journal import MemoryStore, SqliteStore
from local_dp.clients.member import filters, serve, will
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import BusError, InputError
from local_dp.noise import Draw, KeyedNoise, Noise, StoreNoise, SystemNoise
from local_dp.oracles.local.asked import LocalQuery, cells_of
from local_dp.oracles.local.memory import Memory
from local_dp.populations.dealing import Dealing
from local_dp.populations.finite import Population, Rows
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Orders, Records
from local_dp.sealing import UNSIGNED, Envelopes, Party
from local_dp.storage.scanned import Columns, File, Scanned
from local_dp.wire import Reply, Request

_VALUES, _SAMPLED = 4, 16  # values of the domain, its ends among them, and reports of each


class LyingRole(ClientRole):
    """A client role whose clients `liars` lie. It is charged as others are."""

    liars: tuple[int, ...] = ()

    def _replies(
        self,
        request: Request,
        place: int,
        query: LocalQuery,
        noise: Noise,
        memory: Memory,
    ) -> list[Reply]:
        coins, replies = request.asks[place].coins, super()._replies
        return [
            self._lying(reply, query, coins)
            for reply in replies(request, place, query, noise, memory)
        ]

    def _lying(self, reply: Reply, query: LocalQuery, coins: bytes) -> Reply:
        reports = np.frombuffer(reply.reports, dtype=query.randomizer.report_dtype).copy()
        start, stop = reply.start, reply.start + len(reports)
        lying = [client - start for client in self.liars if start <= client < stop]
        if not lying:
            return reply
        first = start + lying[0]
        cells = cells_of(query.randomizer, coins, first, first + 1)
        reports[lying] = worst(query.randomizer, cells)
        return reply.model_copy(update={"reports": np.ascontiguousarray(reports).tobytes()})


def worst(randomizer: Randomizer, cells: Words) -> Words:
    """Among some possible reports, the one whose estimate is farthest from 0; shape (1,)."""
    dtype = randomizer.report_dtype
    candidates = [
        np.frombuffer(bytes([byte]) * dtype.itemsize, dtype=dtype) for byte in (0, 1, 255)
    ]
    for place, value in enumerate(randomizer.domain.some(_VALUES)):
        words = randomizer.draw(KeyedNoise(0), Draw(1, place), 0, _SAMPLED)
        candidates += np.split(
            randomizer.respond(np.array([value] * _SAMPLED), words, cells), _SAMPLED
        )
    possible = [report for report in candidates if bool(randomizer.possible(report).all())]
    return max(possible, key=lambda report: _pull(randomizer, report, cells))


def _pull(randomizer: Randomizer, report: Words, cells: Words) -> float:
    value = randomizer.estimate(randomizer.tally(report, cells)).value
    size = np.abs(np.asarray(value, dtype=np.float64)).sum()
    return float(np.nan_to_num(size))


READY = b"+"
FAILED = b"-"
_BROKER_LOST = 5  # the exit code for the bus, as on the command line


class _Config(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class RunConfig(_Config):
    """Common to all members of a run: its name and broker, a seed (None: the system's entropy), the
    budget, the allowed randomizers."""

    run: str
    broker: str
    budget: float
    seed: int | None = None
    allowed: tuple[str, ...] | None = None


class Shared(_Config):
    """A table that a member reads itself: path, rows and digest of each file, types and declared
    kinds of the columns, and size and seed of the dealing.

    The seed is text, since it may have 128 bits. Raises InputError, when it is read, for other
    files than the launcher's.
    """

    files: tuple[tuple[str, int, bytes], ...]
    types: dict[str, str]
    kinds: dict[str, str]
    dealing: tuple[int, str] | None

    @classmethod
    def of(cls, population: Population) -> Self | None:
        """The table of these clients; None where it is not in files."""
        if not isinstance(population, Rows) or not isinstance(population.whole, Scanned):
            return None
        columns, dealing = population.whole.columns, population.dealing
        files = tuple((file.path, file.rows, file.digest) for file in columns.files)
        types = {name: kind.str for name, kind in columns.types.items()}
        deal = None if dealing is None else (dealing.size, str(dealing.seed))
        return cls(files=files, types=types, kinds=dict(columns.kinds), dealing=deal)

    def records(self, start: int, stop: int, lengths: dict[str, int], orders: Orders) -> Records:
        """Those of the clients start..stop."""
        files = tuple(File(*file) for file in self.files)
        types = {name: np.dtype(kind) for name, kind in self.types.items()}
        columns = Columns(files, types, self.kinds, 0, sum(file.rows for file in files))
        dealing = None if self.dealing is None else Dealing(self.dealing[0], int(self.dealing[1]))
        table = Scanned(columns, lengths, list(self.types), orders)
        return Rows(table, stop, dealing).batch(start, stop)


class MemberConfig(_Config):
    """One member of a run: its name and group, its first client and the records: `columns`, or a
    `shared` table.

    `liars` are those of its clients that lie, in a run with faults. `keys` are its own private key
    and its server's public one; without them nothing is signed. `store` is the file of its answers
    and charges, by the column `person` if it is given; without a file, these are in memory.
    """

    run: RunConfig
    member: str
    group: str
    start: Annotated[int, Field(ge=0)]
    columns: dict[str, tuple[str, bytes]] = {}
    shared: tuple[Shared, int] | None = None  # with the end of its clients
    lengths: dict[str, int] = {}
    orders: Orders = {}
    liars: tuple[int, ...] = ()
    keys: tuple[bytes, bytes] | None = None
    store: str = ""
    person: str = ""

    def role(self) -> ClientRole:
        """Its client role. Raises InputError for a store that cannot be used."""
        if self.shared is None:
            columns = {
                name: np.frombuffer(data, dtype=dtype)
                for name, (dtype, data) in self.columns.items()
            }
            records = Records(columns, self.lengths, orders=self.orders)
        else:
            records = self.shared[0].records(self.start, self.shared[1], self.lengths, self.orders)
        store = (
            SqliteStore(Path(self.store), self.run.budget)
            if self.store
            else MemoryStore(self.run.budget)
        )
        private = StoreNoise(store.secret) if isinstance(store, SqliteStore) else SystemNoise()
        noise = private if self.run.seed is None else KeyedNoise(self.run.seed)
        policy = Policy(None if self.run.allowed is None else frozenset(self.run.allowed))
        kind = LyingRole if self.liars else ClientRole
        # bound now: a launcher may give this member the row of another person
        store.places(records, self.person, moves=False)
        role = kind(self.member, self.start, records, noise, store, policy, self.person)
        if isinstance(role, LyingRole):
            role.liars = self.liars
        return role

    def envelopes(self) -> Envelopes:
        """How it signs, and whose signatures it accepts."""
        return (
            UNSIGNED
            if self.keys is None
            else Party.member(self.run.run, server=self.keys[1], own=self.keys[0])
        )

    def to_bytes(self) -> bytes:
        data: bytes = msgpack.packb(self.model_dump(), use_bin_type=True)
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> "MemberConfig":
        return cls.model_validate(
            msgpack.unpackb(data, use_list=False, raw=False, max_bin_len=1 << 31)
        )


def pack_columns(batches: Iterable[Records]) -> dict[str, tuple[str, bytes]]:
    """The columns of the batches, one after another: for each the fixed little-endian type and the
    raw bytes."""
    parts: dict[tuple[str, str], list[bytes]] = {}
    for records in batches:
        for name, values in records.columns.items():
            fixed = values.astype(values.dtype.newbyteorder("<"), copy=False)
            parts.setdefault((name, fixed.dtype.str), []).append(
                np.ascontiguousarray(fixed).tobytes()
            )
    return {name: (kind, b"".join(pieces)) for (name, kind), pieces in parts.items()}


def introduce(line: socket.socket, index: int) -> MemberConfig | None:
    """Reports the start of member `index`, and waits for its configuration; None if the launcher
    goes away first."""
    line.sendall(struct.pack("<II", index, os.getpid()))
    size = int.from_bytes(_read(line, 4), "little")
    data = _read(line, size)
    return MemberConfig.from_bytes(data) if data and len(data) == size else None


def _read(line: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the other side goes away."""
    data = b""
    while len(data) < size and (more := line.recv(size - len(data), socket.MSG_WAITALL)):
        data += more
    return data


def live(line: socket.socket, config: MemberConfig) -> int:
    """Joins the broker, reports that to the launcher, answers until the run ends or the launcher is
    gone; the exit code."""
    run, group, envelopes = config.run.run, config.group, config.envelopes()
    address, name = Address.parse(config.run.broker), f"{run}-{config.member}"
    last_words = will(run, group, config.member, envelopes)
    bus = BlockingBus(address, name, filters(run, group), last_words, line)

    async def announce() -> None:
        line.sendall(READY)

    try:
        finish(serve(config.role(), SealedBus(bus, envelopes), run, group, announce))
    except (BusError, InputError) as error:
        line.sendall(FAILED + str(error).encode())
        return _BROKER_LOST
    return 0
