"""What a member process is told when it starts: as MessagePack, from whoever started it, over a private socket."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgpack
import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from local_dp.clients.journal import MemoryStore, Store
from local_dp.clients.liar import LyingRole
from local_dp.clients.role import ClientRole, Policy
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.records import Records
from local_dp.sealing import UNSIGNED, Envelopes, Party


class MemberConfig(BaseModel):
    """One member: its clients' records, its noise (a seed, or None for the system's entropy), its budget and its own list of randomizers.

    `liars` are those of its clients that lie, in a run whose faults are asked for.
    `keys` are its own private key and its server's public one; without them nothing is signed.
    `store` is the file of what it answers and spends; without one, that is in memory.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str
    member: str
    group: str
    broker: str
    start: Annotated[int, Field(ge=0)]
    columns: dict[str, tuple[str, bytes]]
    seed: int | None
    budget: float
    allowed: tuple[str, ...] | None
    liars: tuple[int, ...] = ()
    keys: tuple[bytes, bytes] | None = None
    store: str = ""

    def role(self) -> ClientRole:
        """The client role this describes. Raises InputError for a store that cannot be used."""
        records = Records({name: np.frombuffer(data, dtype=dtype) for name, (dtype, data) in self.columns.items()})
        store, secret = self._kept()
        noise = SystemNoise(secret) if self.seed is None else KeyedNoise(self.seed)
        allowed = None if self.allowed is None else frozenset(self.allowed)
        kind = LyingRole if self.liars else ClientRole
        role = kind(self.member, self.start, records, noise, store, Policy(allowed))
        if isinstance(role, LyingRole):
            role.liars = self.liars
        return role

    def _kept(self) -> tuple[Store, bytes | None]:
        """The store, and the secret of its labels where it outlives the process."""
        if not self.store:
            return MemoryStore(self.budget), None
        from local_dp.clients.durable import SqliteStore  # a process without one is forked sooner without the database's libraries

        store = SqliteStore(Path(self.store), self.budget)
        return store, store.secret

    def envelopes(self) -> Envelopes:
        """How it signs, and whom it hears."""
        return UNSIGNED if self.keys is None else Party.member(self.run, server=self.keys[1], own=self.keys[0])

    def to_bytes(self) -> bytes:
        packed: bytes = msgpack.packb(self.model_dump(), use_bin_type=True)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> "MemberConfig":
        return cls.model_validate(msgpack.unpackb(data, use_list=False, raw=False, max_bin_len=1 << 31))


def pack_columns(batches: Iterable[Records]) -> dict[str, tuple[str, bytes]]:
    """Columns as fixed little-endian types and raw bytes, those of all batches one after another."""
    parts: dict[tuple[str, str], list[bytes]] = {}
    for records in batches:
        for name, values in records.columns.items():
            fixed = values.astype(values.dtype.newbyteorder("<"), copy=False)
            parts.setdefault((name, fixed.dtype.str), []).append(np.ascontiguousarray(fixed).tobytes())
    return {name: (kind, b"".join(made)) for (name, kind), made in parts.items()}


def one_of(columns: dict[str, tuple[str, bytes]], row: int) -> dict[str, tuple[str, bytes]]:
    """The columns with this row alone."""
    cells = {name: (kind, np.dtype(kind).itemsize, data) for name, (kind, data) in columns.items()}
    return {name: (kind, data[row * size : (row + 1) * size]) for name, (kind, size, data) in cells.items()}
